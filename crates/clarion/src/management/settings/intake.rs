//! The settings of an intake: what is said, who is called, and the fields of a LandingCall that all its notices have.

use std::str::FromStr;

use super::{
    NONE, Setting, SettingKind, SettingRule, list, on_off, show_list, show_on_off, show_or,
};
use crate::config::parse_network;
use crate::domain::callback::RespUrl;
use crate::domain::intake::change::IntakeChange;
use crate::domain::notice::keys::key;
use crate::domain::notice::silence::LONGEST_SILENCE;
use crate::domain::prompt::CodeLanguage;
use crate::domain::wording::wording;

const LANGUAGES: &[&str] = &["zh", "en"];
/// In minutes: 30 days.
const LONGEST_INCIDENT: u32 = 30 * 24 * 60;
const LONGEST_LABEL: usize = 100;

/// A field of a LandingCall.
macro_rules! plan_field {
    ($name:literal, $field:literal, $help:literal) => {
        Setting {
            name: $name,
            kind: SettingKind::Text,
            value: "VALUE|none",
            help: $help,
            read: |change, text| {
                let value = Some(text.to_owned()).filter(|text| text != NONE);
                change.plan.insert($field, value);
                Ok(())
            },
            write: |change| {
                let value = change.plan.get($field)?;
                Some(show_or(value.as_ref(), NONE))
            },
        }
    };
}

pub const INTAKE_SETTINGS: &[Setting<IntakeChange>] = &[
    Setting {
        name: "text",
        kind: SettingKind::Template,
        value: "TEMPLATE|none",
        help: "Template of what is said, such as \"{{ how_bad }}. {{ alerts[0].what }}\" (docs/alerting.md); \"none\" means the usual one",
        read: |change, text| {
            let text = Some(text.replace("\r\n", "\n")).filter(|text| text != NONE);
            change.text = Some(text);
            Ok(())
        },
        write: |change| Some(show_or(change.text.as_ref()?.as_ref(), NONE)),
    },
    Setting {
        name: "language",
        kind: SettingKind::Choice(LANGUAGES),
        value: "LANGUAGE|none",
        help: "Language of the usual template: zh or en; \"none\" means that of the alert",
        read: |change, text| {
            let languages = [CodeLanguage::Chinese, CodeLanguage::English];
            let known = languages.into_iter().find(|known| known.as_str() == text);
            if known.is_none() && text != NONE {
                return Err(SettingRule::OneOf(LANGUAGES));
            }
            change.language = Some(known);
            Ok(())
        },
        write: |change| {
            Some(
                change
                    .language?
                    .map_or(NONE, CodeLanguage::as_str)
                    .to_owned(),
            )
        },
    },
    Setting {
        name: "to",
        kind: SettingKind::List,
        value: "NUMBERS",
        help: "Whom to call, in the order of their turns: numbers and lists of the account, such as @night,13800000001. Replaces all; \"none\" empties it",
        read: |change, text| {
            change.to = Some(list(text, str::parse)?);
            Ok(())
        },
        write: |change| change.to.as_deref().map(show_list),
    },
    Setting {
        name: "allow-numbers",
        kind: SettingKind::List,
        value: "PATTERNS",
        help: "Numbers that an alert may name itself, such as +8613800000001,+86139*. Replaces the list; \"none\" empties it",
        read: |change, text| {
            change.allowed_numbers = Some(list(text, str::parse)?);
            Ok(())
        },
        write: |change| change.allowed_numbers.as_deref().map(show_list),
    },
    Setting {
        name: "to-label",
        kind: SettingKind::Text,
        value: "LABEL|none",
        help: "Label of an alert (a tag in uptime-kuma) that names whom to call instead: a list of the account, or a number of --allow-numbers",
        read: |change, text| {
            let fits = (1..=LONGEST_LABEL).contains(&text.chars().count());
            if !fits {
                return Err(SettingRule::Form(wording!(
                    "a label has 1 to {LONGEST_LABEL} characters",
                    "标签名为 1 到 {LONGEST_LABEL} 个字符"
                )));
            }
            change.to_label = Some(Some(text.to_owned()).filter(|text| text != NONE));
            Ok(())
        },
        write: |change| Some(show_or(change.to_label.as_ref()?.as_ref(), NONE)),
    },
    Setting {
        name: "new-alerts-call",
        kind: SettingKind::Switch,
        value: "ON|OFF",
        help: "An alert that joins a group about which somebody knows calls again: on or off",
        read: |change, text| {
            change.calls_for_new_alerts = Some(on_off(text)?);
            Ok(())
        },
        write: |change| change.calls_for_new_alerts.map(show_on_off),
    },
    Setting {
        name: "skip-recoveries",
        kind: SettingKind::Switch,
        value: "ON|OFF",
        help: "A text that says Up closes the incident and calls nobody (smseagle): on or off",
        read: |change, text| {
            change.skips_recoveries = Some(on_off(text)?);
            Ok(())
        },
        write: |change| change.skips_recoveries.map(show_on_off),
    },
    Setting {
        name: "close-after",
        kind: SettingKind::Limit,
        value: "MINUTES",
        help: "An incident of which nothing was heard for so long is closed, and the next alert opens a new one",
        read: |change, text| {
            change.close_after = Some(between(text, LONGEST_INCIDENT)?);
            Ok(())
        },
        write: |change| change.close_after.map(|minutes| minutes.to_string()),
    },
    Setting {
        name: "networks",
        kind: SettingKind::List,
        value: "NETWORKS",
        help: "Addresses and networks that alerts may come from. Replaces the list; \"none\" lets any address in",
        read: |change, text| {
            change.networks = Some(list(text, parse_network)?);
            Ok(())
        },
        write: |change| change.networks.as_deref().map(show_list),
    },
    Setting {
        name: "silence-key",
        kind: SettingKind::Text,
        value: "KEY|none",
        help: "Whoever confirms with this key silences the group in Alertmanager; the call says so. \"none\" offers it to nobody",
        read: |change, text| {
            let wanted = Some(text).filter(|text| *text != NONE);
            let wrong = || {
                SettingRule::Form(wording!(
                    "write one of the keys 0 to 9, * and #",
                    "应为 0 到 9、* 或 # 中的一个按键"
                ))
            };
            let wanted = wanted.map(|text| key(text).ok_or_else(wrong)).transpose()?;
            change.silence_key = Some(wanted);
            Ok(())
        },
        write: |change| Some(show_or(change.silence_key?.as_ref(), NONE)),
    },
    Setting {
        name: "silence-url",
        kind: SettingKind::Text,
        value: "URL|none",
        help: "Where Alertmanager is, such as http://alertmanager:9093. Its address must be public or in callbacks.allowed_networks",
        read: |change, text| {
            let url = Some(text).filter(|text| *text != NONE);
            let url = url.map(|text| RespUrl::named_by("it", text)).transpose();
            let url = url.map_err(|refusal| SettingRule::Form(refusal.wording()))?;
            change.silence_url = Some(url.map(|url| url.as_str().to_owned()));
            Ok(())
        },
        write: |change| Some(show_or(change.silence_url.as_ref()?.as_ref(), NONE)),
    },
    Setting {
        name: "silence-minutes",
        kind: SettingKind::Limit,
        value: "MINUTES",
        help: "How long such a silence lasts: 1 to 240",
        read: |change, text| {
            change.silence_minutes = Some(between(text, LONGEST_SILENCE)?);
            Ok(())
        },
        write: |change| change.silence_minutes.map(|minutes| minutes.to_string()),
    },
    plan_field!(
        "confirm-dtmf",
        "confirmDtmf",
        "Keys that confirm, such as 1 or 1;2; \"none\": an answer is enough"
    ),
    plan_field!(
        "wait-dtmf-time",
        "waitDtmfTime",
        "Seconds that a key is waited for after the message: 1 to 60"
    ),
    plan_field!(
        "replay-dtmf",
        "replayDtmf",
        "A key that plays the message again"
    ),
    plan_field!(
        "stop-dtmf",
        "stopDtmf",
        "A key that, pressed twice, puts the callee on the do-not-call list of the account"
    ),
    plan_field!(
        "redial-times",
        "redialTimes",
        "Further tries of a number after the first: 0 to 10"
    ),
    plan_field!(
        "redial-interval",
        "redialInterval",
        "Seconds between the tries of a number, such as 60 or 30;120"
    ),
    plan_field!(
        "redial-on",
        "redialOn",
        "Endings after which a number is tried again, such as busy;noanswer;unconfirmed"
    ),
    plan_field!(
        "backup-after",
        "backupAfter",
        "Tries of a number before the next one has its turn"
    ),
    plan_field!(
        "call-window",
        "callWindow",
        "Days and hours in which calls may be made, such as \"1-5 0800-2100\""
    ),
    plan_field!(
        "valid-time",
        "validTime",
        "Seconds after which no further attempt is begun"
    ),
    plan_field!(
        "priority",
        "priority",
        "1 to 9: 1 is dialled first among the calls of the account"
    ),
    plan_field!(
        "ring-time",
        "ringTime",
        "Seconds that one attempt may ring: 10 to 120"
    ),
    plan_field!(
        "play-times",
        "playTimes",
        "How often the message is played: 1 to 3"
    ),
    plan_field!(
        "display-num",
        "displayNum",
        "Number shown to the called party"
    ),
    plan_field!(
        "max-call-time",
        "maxCallTime",
        "Longest talk time in seconds"
    ),
    plan_field!(
        "resp-url",
        "respUrl",
        "Address that is told the end of each notice: who has confirmed, and by which key"
    ),
    plan_field!(
        "call-state-url",
        "callStateUrl",
        "Address that is told each step of each notice"
    ),
];

fn between(text: &str, most: u32) -> Result<u32, SettingRule> {
    let number = u32::from_str(text).ok();
    let number = number.filter(|number| (1..=most).contains(number));
    number.ok_or(SettingRule::Between(1, most))
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;
    use crate::domain::intake::{IntakeSettings, PLAN_FIELDS};

    #[test]
    fn what_is_written_is_read_again_as_the_same() {
        let texts = [
            ("text", "{{ text }}\n"),
            ("language", "en"),
            ("to", "@night,13800000001"),
            ("allow-numbers", "+86138*"),
            ("to-label", "oncall"),
            ("new-alerts-call", "on"),
            ("skip-recoveries", "off"),
            ("close-after", "90"),
            ("networks", "192.0.2.0/24"),
            ("silence-key", "9"),
            ("silence-url", "http://alerts.example:9093"),
            ("silence-minutes", "240"),
            ("confirm-dtmf", "1;2"),
            ("redial-times", "none"),
        ];
        let change = IntakeChange::from_texts(texts).unwrap();
        let shown = |change: &IntakeChange, name: &str| {
            let setting = INTAKE_SETTINGS.iter().find(|setting| setting.name == name);
            setting.unwrap().written(change)
        };
        for (name, text) in texts {
            assert_eq!(shown(&change, name).as_deref(), Some(text), "{name}");
        }
        let mut settings = IntakeSettings::default();
        settings.apply(change);
        assert_eq!(settings.plan.get("confirmDtmf").unwrap(), "1;2");
        assert_eq!(settings.plan.get("redialTimes"), None);
        assert_eq!(settings.silence().unwrap().minutes, 240);
    }

    #[test]
    fn every_field_of_the_plan_has_a_setting() {
        let mut change = IntakeChange::default();
        for setting in INTAKE_SETTINGS {
            let _ = setting.read(&mut change, "none");
        }
        let fields: Vec<_> = change.plan.keys().copied().collect();
        let mut wanted = PLAN_FIELDS.to_vec();
        wanted.sort_unstable();
        assert_eq!(fields, wanted);
    }

    #[test]
    fn a_mistake_tells_setting_and_rule() {
        for (name, text) in [
            ("language", "fr"),
            ("allow-numbers", "0138"),
            ("networks", "nowhere"),
            ("silence-key", "12"),
            ("silence-url", "ftp://h"),
            ("silence-minutes", "241"),
            ("close-after", "0"),
            ("new-alerts-call", "perhaps"),
        ] {
            let error = IntakeChange::from_texts([(name, text)]).unwrap_err();
            assert_eq!(error.setting, name, "{text}");
        }
    }
}
