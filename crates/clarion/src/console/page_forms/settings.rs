//! The settings of an account, an application or an intake as a form: a field for each row of its table.

use super::setting_words::WordedSettings;
use super::{FieldChoice, FieldMistake, FormError, FormField, PageForms, said};
use crate::console::visit::Visit;
use crate::console::words::Words;
use crate::management::settings::{Setting, SettingKind};

/// The name of the form, on every page that has one.
pub const FORM: &str = "settings";
/// Lines of the field for a template.
const TEMPLATE_ROWS: u8 = 5;

/// Settings that belong together.
#[derive(Debug)]
pub struct SettingGroup {
    pub title: &'static str,
    pub rows: Vec<SettingRow>,
}

/// A setting, to read and to change.
#[derive(Debug)]
pub struct SettingRow {
    pub label: &'static str,
    /// In words.
    pub shown: String,
    pub field: FormField,
}

/// All settings as they are now, in the order of their table.
pub fn groups<C: WordedSettings>(
    now: &C,
    forms: &PageForms,
    words: &'static Words,
) -> Vec<SettingGroup> {
    let mut groups: Vec<SettingGroup> = Vec::new();
    for setting in C::TABLE {
        let Some(worded) = C::worded(setting.name, words) else {
            continue;
        };
        let row = SettingRow {
            label: worded.label,
            shown: shown(setting, now, words),
            field: field(setting, now, forms, words),
        };
        match groups.last_mut() {
            Some(group) if group.title == worded.group => group.rows.push(row),
            _ => groups.push(SettingGroup {
                title: worded.group,
                rows: vec![row],
            }),
        }
    }
    groups
}

/// The value as it is written, or nothing where it is taken away.
fn present<C: WordedSettings>(setting: &Setting<C>, now: &C) -> Option<String> {
    let written = setting.written(now)?;
    (setting.taken_away() != Some(written.as_str())).then_some(written)
}

fn shown<C: WordedSettings>(setting: &Setting<C>, now: &C, words: &Words) -> String {
    match present(setting, now) {
        None => none_word(setting, words).to_owned(),
        Some(_) if setting.kind == SettingKind::Secret => words.setting_is_set.to_owned(),
        Some(text) => match setting.kind {
            SettingKind::Choice(_) | SettingKind::Switch => choice_word(&text, words).to_owned(),
            _ => text,
        },
    }
}

/// What it means that a setting has no value.
fn none_word<C>(setting: &Setting<C>, words: &Words) -> &'static str {
    let is_chosen = matches!(setting.kind, SettingKind::Choice(_));
    if is_chosen || setting.taken_away() == Some("default") {
        return words.setting_default;
    }
    words.setting_none
}

fn field<C: WordedSettings>(
    setting: &Setting<C>,
    now: &C,
    forms: &PageForms,
    words: &'static Words,
) -> FormField {
    let worded = C::worded(setting.name, words);
    let (label, hint) = worded.map_or((setting.name, ""), |worded| (worded.label, worded.hint));
    let present = present(setting, now).unwrap_or_default();
    let field = forms.line(FORM, setting.name, label, hint, &present);
    let was = Some(forms.value(FORM, &was_name(setting.name), &present));
    match setting.kind {
        SettingKind::Secret => field.secret(),
        SettingKind::Choice(offered) => {
            let none = setting.taken_away().map(|_| FieldChoice {
                value: "",
                word: words.setting_default,
            });
            let offered = choices(offered, words);
            FormField { was, ..field }.one_of(none.into_iter().chain(offered).collect())
        }
        SettingKind::Template => FormField { was, ..field }.of_lines(TEMPLATE_ROWS),
        SettingKind::Switch => FormField { was, ..field }.one_of(choices(&["on", "off"], words)),
        _ => FormField { was, ..field },
    }
}

fn was_name(name: &str) -> String {
    format!("was-{name}")
}

fn choices(offered: &[&'static str], words: &Words) -> Vec<FieldChoice> {
    let choice = |value: &'static str| FieldChoice {
        value,
        word: choice_word(value, words),
    };
    offered.iter().copied().map(choice).collect()
}

/// A word of a setting in the language of the page.
pub fn choice_word<'a>(value: &'a str, words: &Words) -> &'a str {
    match value {
        "on" => words.setting_on,
        "off" => words.setting_off,
        "active" => words.account_active,
        "not-activated" => words.account_not_activated,
        "suspended" => words.account_suspended,
        "closed" => words.account_closed,
        "disabled" => words.app_disabled,
        "deleted" => words.app_deleted,
        "zh" => words.language_chinese,
        "en" => words.language_english,
        // Names of the API.
        other => other,
    }
}

/// The change that a form makes: only what was changed on it. `None` if that is nothing.
pub fn change_of<C: WordedSettings>(visit: &Visit) -> Result<Option<C>, FormError> {
    let words = visit.language.words();
    let (mut change, mut mistakes, mut is_empty) = (C::default(), Vec::new(), true);
    for setting in C::TABLE {
        let Some(text) = changed(setting, visit) else {
            continue;
        };
        is_empty = false;
        if let Err(error) = setting.read(&mut change, text) {
            let worded = C::worded(setting.name, words);
            let label = worded.map_or(setting.name, |worded| worded.label);
            mistakes.push(FieldMistake {
                field: setting.name,
                sentence: said(&error.rule, label, words),
            });
        }
    }
    if !mistakes.is_empty() {
        return Err(FormError::Mistakes(mistakes));
    }
    Ok((!is_empty).then_some(change))
}

/// The text of a setting, if it is another than the page showed.
fn changed<'a, C>(setting: &Setting<C>, visit: &'a Visit) -> Option<&'a str> {
    // Browsers leave line breaks out of a field of one line.
    let one_line = |text: &str| text.replace(['\r', '\n'], "").trim().to_owned();
    let typed = visit.given(setting.name)?.trim();
    let is_same = if setting.kind == SettingKind::Secret {
        typed.is_empty()
    } else {
        one_line(typed) == one_line(visit.field(&was_name(setting.name)))
    };
    if is_same {
        return None;
    }
    match setting.taken_away() {
        Some(word) if typed.is_empty() => Some(word),
        _ => Some(typed),
    }
}
