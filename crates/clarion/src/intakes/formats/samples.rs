//! An alert of each tool, to try a template with before it is needed.

use crate::domain::intake::IntakeFormat;

/// A request as the tool would send it.
pub fn sample(format: IntakeFormat) -> &'static str {
    match format {
        IntakeFormat::Alertmanager => include_str!("samples/alertmanager.json"),
        IntakeFormat::Grafana => include_str!("samples/grafana.json"),
        IntakeFormat::Zabbix => include_str!("samples/zabbix.json"),
        IntakeFormat::UptimeKuma => include_str!("samples/uptime-kuma.json"),
        IntakeFormat::SmsEagle => include_str!("samples/smseagle.json"),
        IntakeFormat::Json => include_str!("samples/json.json"),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::super::super::alert::AlertNews;
    use super::super::AlertReader;
    use super::*;
    use crate::domain::intake::IntakeSettings;

    #[test]
    fn every_sample_is_read_and_says_what_where_and_since_when() {
        let settings = IntakeSettings::default();
        for format in IntakeFormat::ALL {
            let reader = AlertReader {
                format,
                settings: &settings,
                zone: &TimeZone::UTC,
            };
            let news = reader.read(sample(format).as_bytes()).unwrap();
            let [AlertNews::Firing(group)] = &news[..] else {
                panic!("{format:?}: {news:?}");
            };
            let first = &group.alerts[0];
            assert!(!group.key.is_empty() && !first.what.is_empty(), "{group:?}");
            if format != IntakeFormat::SmsEagle {
                assert!(!first.place.is_empty(), "{group:?}");
                assert!(first.since.is_some(), "{group:?}");
            }
        }
    }
}
