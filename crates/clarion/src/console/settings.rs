//! *Settings*: what the server has read, with what differs from the defaults first to be seen.

use askama::Template;
use axum::response::Response;

use super::Console;
use super::guard::Visit;
use super::page::{Frame, MenuPlace, html};
use crate::config::ShownSetting;

#[derive(Template)]
#[template(path = "console/settings.html")]
struct SettingsPage<'a> {
    frame: Frame,
    only_changed: bool,
    tables: Vec<SettingsTable<'a>>,
}

struct SettingsTable<'a> {
    name: &'a str,
    settings: Vec<&'a ShownSetting>,
}

pub fn show(console: &Console, visit: &Visit) -> Response {
    let only_changed = visit.query("which").as_deref() == Some("changed");
    let all = console.management.config().shown.iter();
    let mut tables: Vec<SettingsTable<'_>> = Vec::new();
    for setting in all.filter(|setting| !only_changed || setting.default.is_some()) {
        match tables.last_mut() {
            Some(table) if table.name == setting.table => table.settings.push(setting),
            _ => tables.push(SettingsTable {
                name: &setting.table,
                settings: vec![setting],
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
