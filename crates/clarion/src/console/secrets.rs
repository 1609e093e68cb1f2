//! The page that shows a secret once, in the answer to the form that made it: it has no address, so nobody comes back to it.

use askama::Template;
use axum::response::Response;

use crate::console::Console;
use crate::console::page::{Frame, MenuPlace, html};
use crate::console::visit::Visit;

#[derive(Template)]
#[template(path = "console/secret.html")]
struct SecretPage {
    frame: Frame,
    title: &'static str,
    rows: Vec<SecretRow>,
    onward: String,
}

pub struct SecretRow {
    label: &'static str,
    value: String,
}

impl SecretRow {
    pub fn new(label: &'static str, value: &str) -> Self {
        Self {
            label,
            value: value.to_owned(),
        }
    }
}

pub fn show_once(
    console: &Console,
    visit: &Visit,
    place: MenuPlace,
    title: &'static str,
    rows: Vec<SecretRow>,
    onward: String,
) -> Response {
    html(&SecretPage {
        frame: Frame::new(console, visit, place, title).at(onward.as_str()),
        title,
        rows,
        onward,
    })
}
