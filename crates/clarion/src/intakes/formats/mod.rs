//! The alerts of each tool, as the tool itself writes them. Everything that comes in is bounded: the body before it gets here, and each text and list of
//! it here.

mod alertmanager;
mod grafana;
pub mod json;
mod samples;
mod smseagle;
mod uptime_kuma;
mod wire;
mod zabbix;

use jiff::tz::TimeZone;

use super::alert::AlertNews;
use crate::domain::intake::{IntakeFormat, IntakeSettings};
use crate::domain::prompt::CodeLanguage;
use crate::domain::status_code::Refusal;

pub use self::samples::sample;

/// What it takes to understand a request.
#[derive(Debug, Clone, Copy)]
pub struct AlertReader<'a> {
    pub format: IntakeFormat,
    pub settings: &'a IntakeSettings,
    /// Of times that are written without one.
    pub zone: &'a TimeZone,
}

impl AlertReader<'_> {
    /// What a body says. It names at least one thing.
    pub fn read(&self, body: &[u8]) -> Result<Vec<AlertNews>, Refusal> {
        let one = |news| Ok(vec![news]);
        match self.format {
            IntakeFormat::Alertmanager => one(alertmanager::read(body, self.settings)?),
            IntakeFormat::Grafana => one(grafana::read(body, self.settings)?),
            IntakeFormat::Zabbix => one(zabbix::read(body, self.zone)?),
            IntakeFormat::UptimeKuma => one(uptime_kuma::read(body, self.settings)?),
            IntakeFormat::SmsEagle => smseagle::read(body, self.settings),
            IntakeFormat::Json => one(json::read(body)?),
        }
    }
}

/// The numbers and lists of a text, as operators write them: separated by `;` or `,`.
fn names(text: &str) -> Vec<String> {
    let parts = text.split([';', ',']).map(str::trim);
    let parts = parts.filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

/// What uptime-kuma tells of a monitor, in the language of the intake or else of the alert.
fn is_down(name: &str, message: &str, settings: &IntakeSettings) -> String {
    let of_alert = || CodeLanguage::of_text(&format!("{name} {message}"));
    let message = wire::phrase(message);
    let (is_down, comma) = match settings.language.unwrap_or_else(of_alert) {
        CodeLanguage::Chinese => ("不可用", "，"),
        CodeLanguage::English => (" is down", ", "),
    };
    match message.as_str() {
        "" => format!("{name}{is_down}"),
        message => format!("{name}{is_down}{comma}{message}"),
    }
}
