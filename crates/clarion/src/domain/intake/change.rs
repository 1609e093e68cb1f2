//! What becomes of the settings of an intake; what is not named stays.

use std::collections::BTreeMap;

use ipnet::IpNet;

use super::super::number_pattern::NumberPattern;
use super::super::prompt::CodeLanguage;
use super::{Intake, IntakeSettings, IntakeTarget, PLAN_FIELDS};

#[derive(Debug, Clone, Default)]
pub struct IntakeChange {
    pub text: Option<Option<String>>,
    pub language: Option<Option<CodeLanguage>>,
    pub to: Option<Vec<IntakeTarget>>,
    pub allowed_numbers: Option<Vec<NumberPattern>>,
    pub to_label: Option<Option<String>>,
    pub networks: Option<Vec<IpNet>>,
    pub close_after: Option<u32>,
    pub calls_for_new_alerts: Option<bool>,
    pub skips_recoveries: Option<bool>,
    pub silence_key: Option<Option<char>>,
    pub silence_url: Option<Option<String>>,
    pub silence_minutes: Option<u32>,
    /// Fields of a LandingCall; `None` takes one away.
    pub plan: BTreeMap<&'static str, Option<String>>,
}

/// Takes the new value, where there is one.
fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

impl IntakeChange {
    /// What would make any intake of its format into this one.
    pub fn of(intake: &Intake) -> Self {
        let settings = intake.settings.clone();
        let value = |field: &'static str| (field, settings.plan.get(field).cloned());
        Self {
            plan: PLAN_FIELDS.map(value).into(),
            text: Some(settings.text),
            language: Some(settings.language),
            to: Some(settings.to),
            allowed_numbers: Some(settings.allowed_numbers),
            to_label: Some(settings.to_label),
            networks: Some(settings.networks),
            close_after: Some(settings.close_after),
            calls_for_new_alerts: Some(settings.calls_for_new_alerts),
            skips_recoveries: Some(settings.skips_recoveries),
            silence_key: Some(settings.silence_key),
            silence_url: Some(settings.silence_url),
            silence_minutes: Some(settings.silence_minutes),
        }
    }
}

impl IntakeSettings {
    pub fn apply(&mut self, change: IntakeChange) {
        put(&mut self.text, change.text);
        put(&mut self.language, change.language);
        put(&mut self.to, change.to);
        put(&mut self.allowed_numbers, change.allowed_numbers);
        put(&mut self.to_label, change.to_label);
        put(&mut self.networks, change.networks);
        put(&mut self.close_after, change.close_after);
        put(&mut self.calls_for_new_alerts, change.calls_for_new_alerts);
        put(&mut self.skips_recoveries, change.skips_recoveries);
        put(&mut self.silence_key, change.silence_key);
        put(&mut self.silence_url, change.silence_url);
        put(&mut self.silence_minutes, change.silence_minutes);
        for (field, value) in change.plan {
            match value {
                Some(value) => self.plan.insert(field.to_owned(), value),
                None => self.plan.remove(field),
            };
        }
    }
}
