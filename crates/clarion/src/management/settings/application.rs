//! The settings of an application.

use super::{NONE, Setting, SettingKind, limit, one_of, or_none, show_or};
use crate::domain::account::{AppState, ApplicationChange, BillJsonKey};

pub const APPLICATION_SETTINGS: &[Setting<ApplicationChange>] = &[
    Setting {
        name: "name",
        kind: SettingKind::Text,
        value: "NAME",
        help: "Name of the application",
        read: |change, text| {
            change.name = Some(text.to_owned());
            Ok(())
        },
        write: |change| change.name.clone(),
    },
    Setting {
        name: "state",
        kind: SettingKind::Choice(AppState::WORDS),
        value: "STATE",
        help: "State: active, disabled or deleted",
        read: |change, text| {
            change.state = Some(one_of(text, AppState::WORDS)?);
            Ok(())
        },
        write: |change| change.state.map(|state| state.as_str().to_owned()),
    },
    Setting {
        name: "voice",
        kind: SettingKind::Text,
        value: "VOICE|none",
        help: "Name of the voice that speaks its texts, as `clarion voice list` shows it; \"none\" means the first voice of the language",
        read: |change, text| {
            change.voice = Some(or_none(text)?);
            Ok(())
        },
        write: |change| {
            let voice = change.voice.as_ref()?;
            Some(show_or(voice.as_ref(), NONE))
        },
    },
    Setting {
        name: "callback-secret",
        kind: SettingKind::Secret,
        value: "SECRET|@FILE|-|none",
        help: "Secret that signs callbacks, beginning with whsec_, better from a file or from standard input (-) than written out; \"none\" signs no callbacks",
        read: |change, text| {
            change.callback_secret = Some(or_none(text)?);
            Ok(())
        },
        // The secret itself is never written.
        write: |change| {
            let secret = change.callback_secret.as_ref()?;
            let shown = if secret.is_some() { "" } else { NONE };
            Some(shown.to_owned())
        },
    },
    Setting {
        name: "calls-per-second",
        kind: SettingKind::Limit,
        value: "N|none",
        help: "Limit of calls started per second, beside that of the account; \"none\" sets no limit",
        read: |change, text| {
            change.calls_per_second = Some(limit(text)?);
            Ok(())
        },
        write: |change| {
            let limit = change.calls_per_second?;
            Some(show_or(limit.as_ref(), NONE))
        },
    },
    Setting {
        name: "calls-at-once",
        kind: SettingKind::Limit,
        value: "N|none",
        help: "Limit of calls in progress at the same time, beside that of the account; \"none\" sets no limit",
        read: |change, text| {
            change.calls_at_once = Some(limit(text)?);
            Ok(())
        },
        write: |change| {
            let limit = change.calls_at_once?;
            Some(show_or(limit.as_ref(), NONE))
        },
    },
    Setting {
        name: "bill-json-key",
        kind: SettingKind::Choice(BillJsonKey::WORDS),
        value: "KEY|none",
        help: "What the answer with a bill calls the address in JSON, for clients that know only one: downurl or downUrl; \"none\" means the platform's",
        read: |change, text| {
            change.bill_json_key = Some(or_none(text)?);
            Ok(())
        },
        write: |change| {
            let key = change.bill_json_key?;
            Some(key.map_or(NONE, BillJsonKey::as_str).to_owned())
        },
    },
];
