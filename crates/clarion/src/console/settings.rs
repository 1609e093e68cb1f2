//! *Settings*: what the server has read, with what differs from the defaults first to be seen.

use askama::Template;
use axum::response::Response;

use super::Console;
use super::language::PageLanguage;
use super::page::{Frame, MenuPlace, html};
use super::setting_meanings::meaning;
use super::visit::Visit;
use crate::config::{HIDDEN, ShownSetting};

#[derive(Template)]
#[template(path = "console/settings.html")]
struct SettingsPage<'a> {
    frame: Frame,
    only_changed: bool,
    tables: Vec<SettingsTable<'a>>,
}

struct SettingsTable<'a> {
    name: &'a str,
    settings: Vec<SettingLine<'a>>,
}

struct SettingLine<'a> {
    key: &'a str,
    value: String,
    /// `None` where it has its default.
    default: Option<&'a str>,
    meaning: &'a str,
}

impl<'a> SettingLine<'a> {
    fn new(setting: &'a ShownSetting, language: PageLanguage) -> Self {
        let hidden = language.words().settings_hidden;
        Self {
            key: &setting.key,
            value: setting.value.replace(HIDDEN, hidden),
            default: setting.default.as_deref(),
            meaning: meaning(setting, language),
        }
    }
}

pub fn show(console: &Console, visit: &Visit) -> Response {
    let only_changed = visit.query("which").as_deref() == Some("changed");
    let all = console.management.config().shown.iter();
    let mut tables: Vec<SettingsTable<'_>> = Vec::new();
    for setting in all.filter(|setting| !only_changed || setting.default.is_some()) {
        let line = SettingLine::new(setting, visit.language);
        match tables.last_mut() {
            Some(table) if table.name == setting.table => table.settings.push(line),
            _ => tables.push(SettingsTable {
                name: &setting.table,
                settings: vec![line],
            }),
        }
    }
    let title = visit.language.words().settings_title;
    html(&SettingsPage {
        frame: Frame::new(console, visit, MenuPlace::Settings, title),
        only_changed,
        tables,
    })
}
