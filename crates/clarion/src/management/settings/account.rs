//! The settings of an account.

use super::{
    DEFAULT, NONE, Setting, SettingKind, limit, list, on_off, one_of, or_none, show_list,
    show_on_off, show_or,
};
use crate::config::parse_network;
use crate::domain::account::{AccountChange, AccountState};

pub const ACCOUNT_SETTINGS: &[Setting<AccountChange>] = &[
    Setting {
        name: "name",
        kind: SettingKind::Text,
        value: "NAME",
        help: "Name of the account",
        read: |change, text| {
            change.name = Some(text.to_owned());
            Ok(())
        },
        write: |change| change.name.clone(),
    },
    Setting {
        name: "state",
        kind: SettingKind::Choice(AccountState::WORDS),
        value: "STATE",
        help: "State: active, not-activated, suspended or closed",
        read: |change, text| {
            change.state = Some(one_of(text, AccountState::WORDS)?);
            Ok(())
        },
        write: |change| change.state.map(|state| state.as_str().to_owned()),
    },
    Setting {
        name: "bill-download",
        kind: SettingKind::Switch,
        value: "ON|OFF",
        help: "Allow bills to be downloaded: on or off",
        read: |change, text| {
            change.bill_download = Some(on_off(text)?);
            Ok(())
        },
        write: |change| change.bill_download.map(show_on_off),
    },
    Setting {
        name: "custom-display-number",
        kind: SettingKind::Switch,
        value: "ON|OFF",
        help: "Allow requests to choose the caller number: on or off",
        read: |change, text| {
            change.custom_display_number = Some(on_off(text)?);
            Ok(())
        },
        write: |change| change.custom_display_number.map(show_on_off),
    },
    Setting {
        name: "display-numbers",
        kind: SettingKind::List,
        value: "PATTERNS",
        help: "Caller numbers that may be shown, such as +864001234567,+86400*. Replaces the list; \"none\" empties it",
        read: |change, text| {
            change.display_numbers = Some(list(text, str::parse)?);
            Ok(())
        },
        write: |change| change.display_numbers.as_deref().map(show_list),
    },
    Setting {
        name: "allow-ips",
        kind: SettingKind::List,
        value: "NETWORKS",
        help: "Addresses or networks that requests may come from. Replaces the list; \"none\" allows any",
        read: |change, text| {
            change.allowed_networks = Some(list(text, parse_network)?);
            Ok(())
        },
        write: |change| change.allowed_networks.as_deref().map(show_list),
    },
    Setting {
        name: "requests-per-second",
        kind: SettingKind::Limit,
        value: "N|default",
        help: "Limit of requests per second; \"default\" is that of the settings",
        read: |change, text| {
            change.requests_per_second = Some(limit(text)?);
            Ok(())
        },
        write: |change| {
            let limit = change.requests_per_second?;
            Some(show_or(limit.as_ref(), DEFAULT))
        },
    },
    Setting {
        name: "requests-at-once",
        kind: SettingKind::Limit,
        value: "N|default",
        help: "Limit of requests answered at the same time; \"default\" is that of the settings",
        read: |change, text| {
            change.requests_at_once = Some(limit(text)?);
            Ok(())
        },
        write: |change| {
            let limit = change.requests_at_once?;
            Some(show_or(limit.as_ref(), DEFAULT))
        },
    },
    Setting {
        name: "calls-per-second",
        kind: SettingKind::Limit,
        value: "N|default",
        help: "Limit of calls started per second; \"default\" is that of the settings",
        read: |change, text| {
            change.calls_per_second = Some(limit(text)?);
            Ok(())
        },
        write: |change| {
            let limit = change.calls_per_second?;
            Some(show_or(limit.as_ref(), DEFAULT))
        },
    },
    Setting {
        name: "calls-at-once",
        kind: SettingKind::Limit,
        value: "N|default",
        help: "Limit of calls in progress at the same time; \"default\" is that of the settings",
        read: |change, text| {
            change.calls_at_once = Some(limit(text)?);
            Ok(())
        },
        write: |change| {
            let limit = change.calls_at_once?;
            Some(show_or(limit.as_ref(), DEFAULT))
        },
    },
    Setting {
        name: "call-hours",
        kind: SettingKind::Hours,
        value: "HOURS|none",
        help: "Hours in which calls may be made, such as \"1-5 0800-2100;6-7 1000-1800\" (1 is Monday); \"none\" for any",
        read: |change, text| {
            change.call_hours = Some(or_none(text)?);
            Ok(())
        },
        write: |change| {
            let hours = change.call_hours.as_ref()?;
            Some(show_or(hours.as_ref(), NONE))
        },
    },
    Setting {
        name: "urgent-outside-hours",
        kind: SettingKind::Switch,
        value: "ON|OFF",
        help: "Allow calls of priority 1 outside these hours: on or off",
        read: |change, text| {
            change.urgent_outside_hours = Some(on_off(text)?);
            Ok(())
        },
        write: |change| change.urgent_outside_hours.map(show_on_off),
    },
    Setting {
        name: "balance",
        kind: SettingKind::Amount,
        value: "AMOUNT|none",
        help: "Prepaid balance; \"none\" keeps no balance",
        read: |change, text| {
            change.balance = Some(or_none(text)?);
            Ok(())
        },
        write: |change| {
            let balance = change.balance?;
            Some(show_or(balance.as_ref(), NONE))
        },
    },
    Setting {
        name: "spending-limit",
        kind: SettingKind::Amount,
        value: "AMOUNT|none",
        help: "Limit of what may be spent in all; \"none\" sets no limit",
        read: |change, text| {
            change.spending_limit = Some(or_none(text)?);
            Ok(())
        },
        write: |change| {
            let spending_limit = change.spending_limit?;
            Some(show_or(spending_limit.as_ref(), NONE))
        },
    },
];
