//! What pages call each setting, and what they say about it, in both languages. A test holds it against the tables.

use crate::api::LANDING_CALL;
use crate::console::field_words;
use crate::console::language::PageLanguage;
use crate::console::words::Words;
use crate::domain::account::{AccountChange, ApplicationChange};
use crate::domain::intake::change::IntakeChange;
use crate::management::settings::Settings;

/// The words of a setting.
#[derive(Debug, Clone, Copy)]
pub struct SettingWords {
    /// Under which heading it stands.
    pub group: &'static str,
    pub label: &'static str,
    pub hint: &'static str,
}

/// Settings that pages have words for.
pub trait WordedSettings: Settings {
    fn worded(name: &str, words: &'static Words) -> Option<SettingWords>;
}

impl WordedSettings for AccountChange {
    fn worded(name: &str, words: &'static Words) -> Option<SettingWords> {
        let (group, label, hint) = match name {
            "name" => (words.group_account, words.set_name, ""),
            "state" => (
                words.group_account,
                words.set_state,
                words.set_account_state_hint,
            ),
            "bill-download" => (
                words.group_permissions,
                words.set_bill_download,
                words.set_bill_download_hint,
            ),
            "custom-display-number" => (
                words.group_permissions,
                words.set_custom_display,
                words.set_custom_display_hint,
            ),
            "display-numbers" => (
                words.group_permissions,
                words.set_display_numbers,
                words.set_display_numbers_hint,
            ),
            "allow-ips" => (
                words.group_permissions,
                words.set_allow_ips,
                words.set_allow_ips_hint,
            ),
            "requests-per-second" => (
                words.group_limits,
                words.set_requests_second,
                words.set_limit_default,
            ),
            "requests-at-once" => (
                words.group_limits,
                words.set_requests_once,
                words.set_limit_default,
            ),
            "calls-per-second" => (
                words.group_limits,
                words.set_calls_second,
                words.set_limit_default,
            ),
            "calls-at-once" => (
                words.group_limits,
                words.set_calls_once,
                words.set_limit_default,
            ),
            "call-hours" => (words.group_hours, words.set_hours, words.set_hours_hint),
            "urgent-outside-hours" => (words.group_hours, words.set_urgent, words.set_urgent_hint),
            "balance" => (words.group_money, words.set_balance, words.set_balance_hint),
            "spending-limit" => (
                words.group_money,
                words.set_spending,
                words.set_spending_hint,
            ),
            _ => return None,
        };
        Some(SettingWords { group, label, hint })
    }
}

impl WordedSettings for ApplicationChange {
    fn worded(name: &str, words: &'static Words) -> Option<SettingWords> {
        let (group, label, hint) = match name {
            "name" => (words.group_app, words.set_name, ""),
            "state" => (words.group_app, words.set_state, words.set_app_state_hint),
            "callback-secret" => (
                words.group_callbacks,
                words.set_secret,
                words.set_secret_hint,
            ),
            "calls-per-second" => (
                words.group_limits,
                words.set_calls_second,
                words.set_limit_beside,
            ),
            "calls-at-once" => (
                words.group_limits,
                words.set_calls_once,
                words.set_limit_beside,
            ),
            "bill-json-key" => (
                words.group_bills,
                words.set_bill_key,
                words.set_bill_key_hint,
            ),
            "voice" => (words.group_app, words.set_voice, words.set_voice_hint),
            _ => return None,
        };
        Some(SettingWords { group, label, hint })
    }
}

impl WordedSettings for IntakeChange {
    fn worded(name: &str, words: &'static Words) -> Option<SettingWords> {
        let (group, label, hint) = match name {
            "text" => (words.group_said, words.set_text, words.set_text_hint),
            "language" => (
                words.group_said,
                words.set_language,
                words.set_language_hint,
            ),
            "to" => (
                words.group_called,
                words.set_intake_to,
                words.set_intake_to_hint,
            ),
            "allow-numbers" => (
                words.group_called,
                words.set_allow_numbers,
                words.set_allow_numbers_hint,
            ),
            "to-label" => (
                words.group_called,
                words.set_to_label,
                words.set_to_label_hint,
            ),
            "new-alerts-call" => (
                words.group_incidents,
                words.set_new_alerts,
                words.set_new_alerts_hint,
            ),
            "skip-recoveries" => (
                words.group_incidents,
                words.set_skip_recoveries,
                words.set_skip_recoveries_hint,
            ),
            "close-after" => (
                words.group_incidents,
                words.set_close_after,
                words.set_close_after_hint,
            ),
            "networks" => (
                words.group_permissions,
                words.set_allow_ips,
                words.set_networks_hint,
            ),
            "silence-key" => (
                words.group_silence,
                words.set_silence_key,
                words.set_silence_key_hint,
            ),
            "silence-url" => (
                words.group_silence,
                words.set_silence_url,
                words.set_silence_url_hint,
            ),
            "silence-minutes" => (words.group_silence, words.set_silence_minutes, ""),
            // The fields of a request are called as the API calls them.
            plan => {
                let mut fields = LANDING_CALL.fields.iter();
                let field = fields.find(|field| field.option_name() == plan)?;
                let language = PageLanguage::of_words(words);
                let hint = field_words::meaning(field, language);
                (words.group_plan, field.name, hint)
            }
        };
        Some(SettingWords { group, label, hint })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::console::page_forms::settings::choice_word;
    use crate::console::page_forms::{PageForms, groups};
    use crate::console::words::{CHINESE, ENGLISH};
    use crate::management::settings::SettingKind;

    /// Every setting has a name of its own on the page, and every word that can be chosen for it.
    fn is_complete<C: WordedSettings>() {
        for words in [&ENGLISH, &CHINESE] {
            let mut labels = BTreeSet::new();
            for setting in C::TABLE {
                let worded = C::worded(setting.name, words);
                let worded = worded.unwrap_or_else(|| panic!("{} has no words", setting.name));
                assert!(labels.insert(worded.label), "{}", setting.name);
                let SettingKind::Choice(offered) = setting.kind else {
                    continue;
                };
                for value in offered {
                    let is_of_api = value.starts_with("down");
                    let is_chinese = choice_word(value, &CHINESE) != *value;
                    assert_eq!(is_chinese, !is_of_api, "{value}");
                }
            }
            let groups = groups(&C::default(), &PageForms::default(), words);
            let titles: BTreeSet<_> = groups.iter().map(|group| group.title).collect();
            assert_eq!(titles.len(), groups.len(), "a group is in one piece");
            let shown: usize = groups.iter().map(|group| group.rows.len()).sum();
            assert_eq!(shown, C::TABLE.len());
        }
    }

    #[test]
    fn every_setting_of_the_tables_has_words() {
        is_complete::<AccountChange>();
        is_complete::<ApplicationChange>();
        is_complete::<IntakeChange>();
    }
}
