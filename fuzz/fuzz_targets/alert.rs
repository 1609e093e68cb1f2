//! Any bytes as an alert of any tool: what is read is bounded, and can be said.

#![no_main]

use clarion::domain::intake::incident::MAX_FINGERPRINTS;
use clarion::domain::intake::{IntakeFormat, IntakeSettings};
use clarion::intakes::alert::{AlertGroup, AlertNews, MAX_ALERTS};
use clarion::intakes::formats::AlertReader;
use clarion::intakes::speech::AlertSpeaker;
use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;

const LONGEST: usize = 500;

fuzz_target!(|input: &[u8]| {
    let Some((first, body)) = input.split_first() else {
        return;
    };
    let format = IntakeFormat::ALL[usize::from(*first) % IntakeFormat::ALL.len()];
    let settings = IntakeSettings {
        to_label: Some("oncall".to_owned()),
        ..IntakeSettings::default()
    };
    let reader = AlertReader {
        format,
        settings: &settings,
        zone: &TimeZone::UTC,
    };
    for news in reader.read(body).into_iter().flatten() {
        match news {
            AlertNews::Firing(group) => check(format, &settings, &group),
            AlertNews::Resolved(key) | AlertNews::PartlyResolved(key) => assert!(!key.is_empty()),
            AlertNews::Nothing => {}
        }
    }
});

fn check(format: IntakeFormat, settings: &IntakeSettings, group: &AlertGroup) {
    assert!((1..=MAX_ALERTS).contains(&group.alerts.len()) && group.count >= group.alerts.len());
    assert!(group.fingerprints.len() <= MAX_FINGERPRINTS);
    assert!(group.incident().as_str().len() <= 400);
    let now = jiff::Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
    let speaker = AlertSpeaker {
        intake: &"fuzz".parse().unwrap(),
        format,
        settings,
        now: &now,
        longest: LONGEST,
    };
    let spoken = speaker.say(group);
    assert!(spoken.text.chars().count() <= LONGEST);
    assert!(
        !spoken.text.chars().any(char::is_control),
        "{:?}",
        spoken.text
    );
}
