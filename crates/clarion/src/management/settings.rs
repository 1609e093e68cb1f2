//! The settings of accounts, applications and intakes that operators write: one table each. A command line and a form read the same text by the same rule, and tell
//! what is wrong with it in words of their own.

mod account;
mod application;
mod intake;

use std::fmt;
use std::str::FromStr;

use super::change::NotedChange;
use crate::domain::account::{AccountChange, ApplicationChange};
use crate::domain::intake::change::IntakeChange;
use crate::domain::wording::Wording;

pub use self::account::ACCOUNT_SETTINGS;
pub use self::application::APPLICATION_SETTINGS;
pub use self::intake::INTAKE_SETTINGS;

/// A higher limit is a typing error.
pub const HIGHEST_LIMIT: u32 = 1_000_000;
/// What takes a value away.
const NONE: &str = "none";
const DEFAULT: &str = "default";

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    Text,
    /// A text of several lines.
    Template,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// `on` or `off`.
    Switch,
    /// A whole number, or the word that takes it away.
    Limit,
    /// An amount, or `none`.
    Amount,
    /// Days and times, or `none`.
    Hours,
    /// Items with commas between them, or `none`.
    List,
    /// It is shown to nobody. `none` takes it away.
    Secret,
}

/// One setting of an account or of an application; `C` is the change that it is a part of.
#[derive(Debug)]
pub struct Setting<C: 'static> {
    /// That of the option, and of the field of a form.
    pub name: &'static str,
    pub kind: SettingKind,
    /// What stands for the value in a description, such as `N|default`.
    pub value: &'static str,
    pub help: &'static str,
    read: fn(&mut C, &str) -> Result<(), SettingRule>,
    write: fn(&C) -> Option<String>,
}

impl<C> Setting<C> {
    /// Adds it to a change.
    pub fn read(&self, change: &mut C, text: &str) -> Result<(), SettingError> {
        (self.read)(change, text).map_err(|rule| SettingError {
            setting: self.name,
            rule,
        })
    }

    /// The word that takes the value away, where that can be done: what a field means that was left empty.
    pub fn taken_away(&self) -> Option<&'static str> {
        let words = [NONE, DEFAULT].into_iter();
        let mut named = words.filter(|word| self.value.ends_with(word));
        let of_list = (self.kind == SettingKind::List).then_some(NONE);
        named.next().or(of_list)
    }

    /// As it is written, where the change has it. What an account has now is the change that makes it (`AccountChange::of`).
    pub fn written(&self, change: &C) -> Option<String> {
        (self.write)(change)
    }
}

/// What has a table of settings.
pub trait Settings: Default + Sized + 'static {
    const TABLE: &'static [Setting<Self>];

    /// The change that these names and texts make.
    fn from_texts<'a>(
        texts: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, SettingError> {
        let mut change = Self::default();
        for (name, text) in texts {
            let setting = Self::TABLE.iter().find(|setting| setting.name == name);
            let setting = setting.ok_or(SettingError {
                setting: "",
                rule: SettingRule::Unknown(name.to_owned()),
            })?;
            setting.read(&mut change, text)?;
        }
        Ok(change)
    }
}

impl Settings for AccountChange {
    const TABLE: &'static [Setting<Self>] = ACCOUNT_SETTINGS;
}

impl Settings for ApplicationChange {
    const TABLE: &'static [Setting<Self>] = APPLICATION_SETTINGS;
}

impl Settings for IntakeChange {
    const TABLE: &'static [Setting<Self>] = INTAKE_SETTINGS;
}

/// What a change says, as options.
pub(super) fn noted<C: Settings>(mut noted: NotedChange, change: &C) -> NotedChange {
    for setting in C::TABLE {
        let written = setting.written(change);
        noted = match (setting.kind, written) {
            (_, None) => noted,
            (SettingKind::Secret, Some(text)) if text != NONE => noted.with_secret(setting.name),
            (_, Some(text)) => noted.with(setting.name, text),
        };
    }
    noted
}

/// A setting that has a wrong value, and its rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingError {
    pub setting: &'static str,
    pub rule: SettingRule,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingRule {
    /// It must be a whole number from one to another.
    Between(u32, u32),
    OnOff,
    OneOf(&'static [&'static str]),
    /// A list without items.
    EmptyList,
    /// There is no setting of this name.
    Unknown(String),
    /// In a sentence.
    Form(Wording),
}

impl SettingError {
    /// In a sentence that calls the setting by this name.
    pub fn said_of(&self, name: &str) -> String {
        match &self.rule {
            SettingRule::Between(least, most) => format!("{name} must be from {least} to {most}"),
            SettingRule::OnOff => format!("{name}: write on or off"),
            SettingRule::OneOf(words) => {
                format!("{name} is not one of: {}", words.join(", "))
            }
            SettingRule::EmptyList => format!("{name} is empty: write none to remove the list"),
            SettingRule::Unknown(name) => format!("there is no setting {name}"),
            SettingRule::Form(sentence) => format!("{name}: {sentence}"),
        }
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said_of(self.setting))
    }
}

impl std::error::Error for SettingError {}

fn on_off(text: &str) -> Result<bool, SettingRule> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(SettingRule::OnOff),
    }
}

fn show_on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

fn one_of<T: FromStr>(text: &str, words: &'static [&'static str]) -> Result<T, SettingRule> {
    text.parse().map_err(|_| SettingRule::OneOf(words))
}

/// Reads a limit that may be taken away.
fn limit(text: &str) -> Result<Option<u32>, SettingRule> {
    if [NONE, DEFAULT].contains(&text) {
        return Ok(None);
    }
    let number = text.parse().ok();
    let number = number.filter(|number| (1..=HIGHEST_LIMIT).contains(number));
    number
        .map(Some)
        .ok_or(SettingRule::Between(1, HIGHEST_LIMIT))
}

/// Reads a value that may be taken away.
fn or_none<T: FromStr<Err: Into<Wording>>>(text: &str) -> Result<Option<T>, SettingRule> {
    if [NONE, DEFAULT].contains(&text) {
        return Ok(None);
    }
    let value = text.parse();
    let value = value.map_err(|rule: T::Err| SettingRule::Form(rule.into()))?;
    Ok(Some(value))
}

/// As it is written; `none` is the word for nothing.
fn show_or<T: ToString>(value: Option<&T>, none: &str) -> String {
    value.map_or_else(|| none.to_owned(), ToString::to_string)
}

/// Reads a list. An empty one is a mistake: whoever wants to remove all of it writes "none".
fn list<T>(text: &str, parse: impl Fn(&str) -> Result<T, Wording>) -> Result<Vec<T>, SettingRule> {
    if text == NONE {
        return Ok(Vec::new());
    }
    let items = text.split(',').map(str::trim);
    let items: Vec<_> = items.filter(|item| !item.is_empty()).collect();
    if items.is_empty() {
        return Err(SettingRule::EmptyList);
    }
    let items = items.into_iter();
    items
        .map(|item| parse(item).map_err(SettingRule::Form))
        .collect()
}

fn show_list<T: ToString>(items: &[T]) -> String {
    if items.is_empty() {
        return NONE.to_owned();
    }
    let items: Vec<_> = items.iter().map(ToString::to_string).collect();
    items.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_as_the_same() {
        let texts = [
            ("name", "A, B"),
            ("state", "suspended"),
            ("bill-download", "on"),
            ("custom-display-number", "off"),
            ("display-numbers", "+864001234567,+86400*"),
            ("allow-ips", "192.0.2.0/24,198.51.100.7/32"),
            ("requests-per-second", "default"),
            ("requests-at-once", "1"),
            ("calls-per-second", "1000000"),
            ("calls-at-once", "7"),
            ("call-hours", "1,2,3 0800-2100"),
            ("urgent-outside-hours", "on"),
            ("balance", "12.50"),
            ("spending-limit", "none"),
        ];
        assert_eq!(texts.len(), ACCOUNT_SETTINGS.len(), "every setting");
        let change = AccountChange::from_texts(texts).unwrap();
        for (setting, (name, text)) in ACCOUNT_SETTINGS.iter().zip(texts) {
            assert_eq!(setting.name, name);
            assert_eq!(setting.written(&change).as_deref(), Some(text));
        }
        let words = noted(NotedChange::new("account set").on("a"), &change).words();
        assert!(words.starts_with("account set a --name \"A, B\" --state suspended "));
        assert!(words.ends_with(" --balance 12.50 --spending-limit none"));
    }

    #[test]
    fn what_an_account_has_is_shown_as_it_would_be_written() {
        let texts = [
            ("calls-at-once", "7"),
            ("call-hours", "none"),
            ("bill-download", "on"),
        ];
        let change = AccountChange::from_texts(texts).unwrap();
        let mut account = crate::domain::account::test_account("a".repeat(32).parse().unwrap());
        account.apply(change);
        let now = AccountChange::of(&account);
        let shown = |name: &str| {
            let setting = ACCOUNT_SETTINGS.iter().find(|setting| setting.name == name);
            setting.unwrap().written(&now).unwrap()
        };
        for (name, text) in texts {
            assert_eq!(shown(name), text);
        }
        assert_eq!(shown("allow-ips"), "none");
        assert_eq!(shown("calls-per-second"), "default");
    }

    #[test]
    fn what_can_be_taken_away_has_a_word_that_does_it() {
        let word = |name: &str| {
            let setting = ACCOUNT_SETTINGS.iter().find(|setting| setting.name == name);
            setting.unwrap().taken_away()
        };
        for setting in ACCOUNT_SETTINGS {
            if let Some(word) = setting.taken_away() {
                let mut change = AccountChange::default();
                setting.read(&mut change, word).unwrap();
                assert_eq!(setting.written(&change).as_deref(), Some(word));
            }
        }
        for setting in APPLICATION_SETTINGS {
            if let Some(word) = setting.taken_away() {
                let mut change = ApplicationChange::default();
                setting.read(&mut change, word).unwrap();
                assert_eq!(setting.written(&change).as_deref(), Some(word));
            }
        }
        assert_eq!(word("calls-at-once"), Some("default"));
        assert_eq!(word("allow-ips"), Some("none"));
        assert_eq!((word("name"), word("bill-download")), (None, None));
    }

    #[test]
    fn secrets_are_hidden_and_their_removal_is_not() {
        let secret = format!("whsec_{}", "A".repeat(32));
        for (text, shown) in [(secret.as_str(), "(hidden)"), ("none", "none")] {
            let change = ApplicationChange::from_texts([("callback-secret", text)]).unwrap();
            let words = noted(NotedChange::new("app set").on("x"), &change).words();
            assert_eq!(words, format!("app set x --callback-secret {shown}"));
        }
        let error = ApplicationChange::from_texts([("callback-secret", "whsec_short")]);
        assert!(!error.unwrap_err().to_string().contains("whsec_short"));
    }

    #[test]
    fn a_mistake_tells_setting_and_rule() {
        for (name, text, said) in [
            (
                "calls-per-second",
                "0",
                "--calls-per-second must be from 1 to 1000000",
            ),
            (
                "calls-at-once",
                "1000001",
                "--calls-at-once must be from 1 to 1000000",
            ),
            (
                "calls-at-once",
                "x",
                "--calls-at-once must be from 1 to 1000000",
            ),
            ("bill-download", "yes", "--bill-download: write on or off"),
            (
                "state",
                "asleep",
                "--state is not one of: active, not-activated, suspended, closed",
            ),
            (
                "allow-ips",
                " , ",
                "--allow-ips is empty: write none to remove the list",
            ),
        ] {
            let error = AccountChange::from_texts([(name, text)]).unwrap_err();
            assert_eq!(error.said_of(&format!("--{name}")), said);
            assert_eq!(error.setting, name);
        }
        let unknown = AccountChange::from_texts([("colour", "red")]).unwrap_err();
        assert_eq!(unknown.to_string(), "there is no setting colour");
    }
}
