//! *Calls*: the list, with its filters in the address, page by page by the key of the last call.

use std::sync::Arc;

use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};
use url::form_urlencoded;

use super::Console;
use super::guard::Visit;
use super::page::{Frame, MenuPlace, html};
use super::refusal::Refused;
use super::shown::CallRow;
use super::words::Words;
use crate::domain::account::AccountSid;
use crate::domain::call::CallSid;
use crate::domain::call_record::{CallFilter, CallPage};

/// Calls of a page.
const PAGE: u32 = 50;

#[derive(Template)]
#[template(path = "console/calls.html")]
struct CallsPage {
    frame: Frame,
    wanted: WantedCalls,
    calls: Vec<CallRow>,
    /// The address of the page after this one.
    older: Option<String>,
    export: String,
    /// The address of the first page.
    newest: String,
}

/// The filters, as they stand in the address.
#[derive(Debug, Default)]
pub struct WantedCalls {
    account: Option<String>,
    alive: bool,
    before: Option<CallSid>,
    /// What cannot be a filter, in a sentence.
    problem: Option<&'static str>,
}

impl WantedCalls {
    pub fn of(visit: &Visit, words: &Words) -> Self {
        let account = visit.query("account");
        let is_wrong = |text: &String| text.parse::<AccountSid>().is_err();
        let problem = account.as_ref().filter(|text| is_wrong(text));
        Self {
            problem: problem.map(|_| words.calls_bad_account),
            account,
            alive: visit.query("which").as_deref() == Some("alive"),
            before: visit.query("before").and_then(|text| text.parse().ok()),
        }
    }

    /// `None` if nothing can be found by it.
    pub fn filter(&self, limit: u32) -> Option<CallFilter> {
        let account = self.account.as_ref().map(|text| text.parse());
        Some(CallFilter {
            account: account.transpose().ok()?,
            alive: self.alive,
            before: self.before.clone(),
            limit,
            ..CallFilter::default()
        })
    }

    fn is_empty(&self) -> bool {
        self.account.is_none() && !self.alive && self.before.is_none()
    }

    fn account(&self) -> &str {
        self.account.as_deref().unwrap_or_default()
    }

    /// An address with these filters, and perhaps a place in the list.
    fn address(&self, path: &str, before: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(account) = &self.account {
            query.append_pair("account", account);
        }
        if self.alive {
            query.append_pair("which", "alive");
        }
        if let Some(before) = before {
            query.append_pair("before", before);
        }
        match query.finish() {
            query if query.is_empty() => path.to_owned(),
            query => format!("{path}?{query}"),
        }
    }
}

pub async fn list(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let words = visit.language.words();
    let mut wanted = WantedCalls::of(&visit, words);
    // Who has a callSid wants that call.
    if let Some(sid) = visit.query("sid") {
        match sid.parse::<CallSid>() {
            Ok(sid) => return Ok(Redirect::to(&format!("/calls/{sid}")).into_response()),
            Err(_) => wanted.problem = Some(words.calls_bad_sid),
        }
    }
    let page = match wanted.filter(PAGE) {
        Some(filter) => console.management.calls(filter).await?,
        None => CallPage::default(),
    };
    let older = page.next.as_ref();
    let older = older.map(|next| wanted.address("/calls", Some(next.as_str())));
    let found = console.names.calls(&console.management, page.calls).await?;
    let row = |call| CallRow::new(call, &console.clock, words);
    Ok(html(&CallsPage {
        frame: Frame::new(&console, &visit, MenuPlace::Calls, words.calls_title),
        calls: found.iter().map(row).collect(),
        older,
        export: wanted.address("/calls.csv", None),
        newest: wanted.address("/calls", None),
        wanted,
    }))
}
