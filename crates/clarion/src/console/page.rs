//! What all pages have in common: the frame around them, and how they are sent.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};

use super::Console;
use super::assets;
use super::language::PageLanguage;
use super::local_address::sign_in_address;
use super::times;
use super::visit::{TOKEN_FIELD, Visit};
use super::words::Words;
use crate::domain::operator::OperatorRole;

/// Where in the menu a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MenuPlace {
    Now,
    Calls,
    Callbacks,
    Dialling,
    Accounts,
    Audio,
    Trunks,
    Bills,
    Intakes,
    Audit,
    Settings,
    Health,
    TryIt,
    Nowhere,
}

impl MenuPlace {
    /// Where the menu leads.
    pub fn address(self) -> &'static str {
        match self {
            Self::Now | Self::Nowhere => "/",
            Self::Calls => "/calls",
            Self::Callbacks => "/callbacks",
            Self::Dialling => "/dialling",
            Self::Accounts => "/accounts",
            Self::Audio => "/audio",
            Self::Trunks => "/trunks",
            Self::Bills => "/bills",
            Self::Intakes => "/intakes",
            Self::Audit => "/audit",
            Self::Settings => "/settings",
            Self::Health => "/health",
            Self::TryIt => "/try",
        }
    }
}

/// What stands around every page.
#[derive(Debug)]
pub struct Frame {
    pub words: &'static Words,
    pub language: PageLanguage,
    pub title: String,
    pub place: MenuPlace,
    pub operator: Option<ShownOperator>,
    pub zone: String,
    pub style: &'static str,
    pub script: &'static str,
    pub icon: &'static str,
    /// The name of the field that has the token of a form.
    pub token_field: &'static str,
    /// What was just done, in a sentence.
    pub done: Option<&'static str>,
    /// The address of this page, for the switch of the language.
    here: String,
}

#[derive(Debug)]
pub struct ShownOperator {
    pub name: String,
    pub role: &'static str,
    pub may_change: bool,
    pub form_token: String,
}

impl Frame {
    pub fn new(
        console: &Console,
        visit: &Visit,
        place: MenuPlace,
        title: impl Into<String>,
    ) -> Self {
        let words = visit.language.words();
        let operator = visit.operator.as_ref().map(|operator| ShownOperator {
            name: operator.name.to_string(),
            role: match operator.role {
                OperatorRole::Viewer => words.role_viewer,
                OperatorRole::Admin => words.role_admin,
            },
            may_change: visit.may(OperatorRole::Admin),
            form_token: operator.form_token.clone(),
        });
        // What answers a form has no address that could be looked at.
        let here = visit.parts.uri.path_and_query();
        let here = here.filter(|_| !visit.is_change()).map(ToString::to_string);
        Self {
            words,
            language: visit.language,
            title: title.into(),
            place,
            operator,
            zone: times::zone(&console.clock, words),
            style: assets::style(),
            script: assets::script(),
            icon: assets::icon(),
            token_field: TOKEN_FIELD,
            done: done(visit),
            here: here.unwrap_or_else(|| place.address().to_owned()),
        }
    }

    /// The page is that of another address than that of the request.
    #[must_use]
    pub fn at(mut self, address: impl Into<String>) -> Self {
        self.here = address.into();
        self
    }

    pub fn may_change(&self) -> bool {
        let operator = self.operator.as_ref();
        operator.is_some_and(|operator| operator.may_change)
    }

    /// What every form that changes something carries.
    pub fn token(&self) -> &str {
        let operator = self.operator.as_ref();
        operator.map_or("", |operator| operator.form_token.as_str())
    }

    /// The address of this page.
    pub fn address(&self) -> &str {
        &self.here
    }

    pub fn is_at(&self, place: MenuPlace) -> bool {
        self.place == place
    }

    /// The address that shows this page in the other language.
    pub fn other_language(&self) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let query = query.append_pair("back", &self.here).finish();
        format!("/language/{}?{query}", self.language.other().code())
    }

    /// Where to sign in, and then go on here.
    pub fn sign_in(&self) -> String {
        sign_in_address(&self.here)
    }

    /// The pages of the menu, in its order, and their names.
    pub fn menu(&self) -> [(MenuPlace, &'static str); 13] {
        let words = self.words;
        [
            (MenuPlace::Now, words.nav_now),
            (MenuPlace::Calls, words.nav_calls),
            (MenuPlace::Callbacks, words.nav_callbacks),
            (MenuPlace::Dialling, words.nav_dialling),
            (MenuPlace::Accounts, words.nav_accounts),
            (MenuPlace::Intakes, words.nav_intakes),
            (MenuPlace::Audio, words.nav_audio),
            (MenuPlace::Trunks, words.nav_trunks),
            (MenuPlace::Bills, words.nav_bills),
            (MenuPlace::TryIt, words.nav_try_it),
            (MenuPlace::Health, words.nav_health),
            (MenuPlace::Settings, words.nav_settings),
            (MenuPlace::Audit, words.nav_audit),
        ]
    }

    /// How the script says how long ago something was.
    pub fn units(&self) -> String {
        let words = self.words;
        [
            words.seconds_ago,
            words.minutes_ago,
            words.hours_ago,
            words.days_ago,
        ]
        .join("|")
    }
}

/// A page that was led to by a change says what was done: `?done=cancelled`.
fn done(visit: &Visit) -> Option<&'static str> {
    let words = visit.language.words();
    match visit.query("done")?.as_str() {
        "cancelled" => Some(words.call_cancelled),
        "over" => Some(words.call_over_already),
        "resent" => Some(words.call_resent),
        "saved" => Some(words.done_saved),
        "unchanged" => Some(words.done_unchanged),
        "suspended" => Some(words.done_suspended),
        "suspended-hung-up" => Some(words.done_suspended_hung_up),
        "resumed" => Some(words.done_resumed),
        "app-added" => Some(words.done_app_added),
        "rate-set" => Some(words.done_rate_set),
        "rate-removed" => Some(words.done_rate_removed),
        "list-added" => Some(words.done_list_added),
        "list-set" => Some(words.done_list_set),
        "list-removed" => Some(words.done_list_removed),
        "number-added" => Some(words.done_number_added),
        "number-removed" => Some(words.done_number_removed),
        "imported" => Some(words.done_imported),
        "stopped" => Some(words.dialling_is_stopped),
        "dialling" => Some(words.dialling_is_resumed),
        "barred" => Some(words.barred_is_added),
        "unbarred" => Some(words.barred_is_removed),
        "requested" => Some(words.try_requested),
        "intake-removed" => Some(words.done_intake_removed),
        "placed" => Some(words.call_placed),
        "added" => Some(words.audio_is_added),
        "removed" => Some(words.audio_is_removed),
        "drained" => Some(words.trunk_is_drained),
        "opened" => Some(words.trunk_is_open),
        _ => None,
    }
}

/// Leads from a change that was made to the page that says so.
pub fn led_to(address: &str, done: &str) -> Response {
    Redirect::to(&format!("{address}?done={done}")).into_response()
}

pub fn html(page: &impl Template) -> Response {
    html_with(StatusCode::OK, page)
}

pub fn html_with(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
