//! *Calls*: the list, with its filters in the address, page by page by the key of the last call.

use std::sync::Arc;

use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;
use jiff::civil::DateTime;
use url::form_urlencoded;

use super::Console;
use super::page::{Frame, MenuPlace, html};
use super::refusal::Refused;
use super::sentence::Sentence;
use super::shown::{CallRow, Choice, outcome_mark, state_mark};
use super::visit::Visit;
use super::words::{Words, fill};
use crate::domain::call::CallSid;
use crate::domain::call_record::{CallFilter, CallLife, CallPage, CallSearch};
use crate::domain::call_state::CallState;
use crate::domain::outcome::Outcome;

/// Calls of a page.
const PAGE: u32 = 50;
/// The filters as they are called in the address, in the order of the form.
const FILTERS: [&str; 9] = [
    "account",
    "app",
    "number",
    "from",
    "to",
    "which",
    "trunk",
    "caller",
    "user_data",
];
/// Of `which`: calls that have not ended.
const ALIVE: &str = "alive";

#[derive(Template)]
#[template(path = "console/calls.html")]
struct CallsPage {
    frame: Frame,
    wanted: WantedCalls,
    choices: Vec<Choice>,
    calls: Vec<CallRow>,
    /// The address of the page after this one.
    older: Option<String>,
    /// How far was searched, and the address that searches further.
    further: Option<(String, String)>,
    export: String,
    /// The address of the first page.
    newest: String,
}

/// The filters, as they stand in the address and as the store takes them.
#[derive(Debug)]
pub struct WantedCalls {
    given: Vec<(&'static str, String)>,
    before: Option<CallSid>,
    /// Or what cannot be a filter, in a sentence.
    filter: Result<CallFilter, Sentence>,
}

impl WantedCalls {
    pub fn of(console: &Console, visit: &Visit) -> Self {
        let words = visit.language.words();
        let given = FILTERS.into_iter();
        let given = given.filter_map(|name| Some((name, visit.query(name)?)));
        let mut wanted = Self {
            given: given.collect(),
            before: visit.query("before").and_then(|text| text.parse().ok()),
            filter: Ok(CallFilter::default()),
        };
        wanted.filter = wanted.read(console, words);
        wanted
    }

    fn read(&self, console: &Console, words: &'static Words) -> Result<CallFilter, Sentence> {
        let (management, clock) = (&console.management, &console.clock);
        let digits = |name: &str| {
            let number = self.text(name).map(|text| management.digits(text));
            let number = number.transpose();
            number.map_err(|error| {
                Sentence::with_wording(words, words.calls_bad_number, &[], &error.wording())
            })
        };
        let moment = |name: &str| {
            let time = self.text(name).map(|text| moment(text, clock.zone()));
            let time = time.map(|time| time.ok_or(words.calls_bad_time));
            Ok::<_, &str>(time.transpose()?.map(|time| management.sid_at(time)))
        };
        let which = self.text("which").filter(|which| *which != ALIVE);
        let state = which.and_then(|which| which.parse::<CallState>().ok());
        let outcome = which.and_then(|which| which.parse::<Outcome>().ok());
        if which.is_some() && state.is_none() && outcome.is_none() {
            return Err(words.calls_bad_which.into());
        }
        let to = moment("to")?;
        Ok(CallFilter {
            account: self.parsed("account", words.calls_bad_account)?,
            app: self.parsed("app", words.calls_bad_app)?,
            number: digits("number")?,
            // The queue is looked at alone, however many calls have ended since.
            life: match state {
                Some(CallState::Queued) => CallLife::Alive,
                Some(CallState::Ended) => CallLife::Any,
                Some(_) => CallLife::Running,
                None if self.text("which") == Some(ALIVE) => CallLife::Alive,
                None => CallLife::Any,
            },
            from: moment("from")?,
            before: self.before.clone().or(to),
            search: CallSearch {
                outcome,
                state,
                trunk: self.text("trunk").map(str::to_owned),
                caller: digits("caller")?,
                user_data: self.text("user_data").map(str::to_owned),
            },
            limit: PAGE,
        })
    }

    fn parsed<T: std::str::FromStr>(
        &self,
        name: &str,
        problem: &'static str,
    ) -> Result<Option<T>, &'static str> {
        let value = self.text(name).map(str::parse);
        value.transpose().map_err(|_| problem)
    }

    fn text(&self, name: &str) -> Option<&str> {
        let mut given = self.given.iter();
        let found = given.find(|(known, _)| *known == name);
        found.map(|(_, text)| text.as_str())
    }

    /// What stands in a field of the form.
    fn value(&self, name: &str) -> &str {
        self.text(name).unwrap_or_default()
    }

    /// `None` if nothing can be found by it.
    pub fn filter(&self, limit: u32) -> Option<CallFilter> {
        let filter = self.filter.clone().ok()?;
        Some(CallFilter { limit, ..filter })
    }

    fn problem(&self) -> Option<&Sentence> {
        self.filter.as_ref().err()
    }

    fn is_empty(&self) -> bool {
        self.given.is_empty() && self.before.is_none()
    }

    /// Some of the filters are seldom used, and folded away unless they are.
    fn has_rare(&self) -> bool {
        let rare = ["trunk", "caller", "user_data", "app"];
        rare.into_iter().any(|name| self.text(name).is_some())
    }

    /// An address with these filters, and perhaps a place in the list.
    fn address(&self, path: &str, before: Option<&CallSid>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in &self.given {
            query.append_pair(name, value);
        }
        if let Some(before) = before {
            query.append_pair("before", before.as_str());
        }
        match query.finish() {
            query if query.is_empty() => path.to_owned(),
            query => format!("{path}?{query}"),
        }
    }
}

/// As browsers write it: the time on the wall of the platform.
pub fn moment(text: &str, zone: &jiff::tz::TimeZone) -> Option<Timestamp> {
    let local: DateTime = text.parse().ok()?;
    let zoned = local.to_zoned(zone.clone()).ok()?;
    Some(zoned.timestamp())
}

/// What `which` can be.
fn choices(wanted: &WantedCalls, words: &'static Words) -> Vec<Choice> {
    let chosen = wanted.value("which");
    let choice = |value: &'static str, word: &'static str| Choice {
        value,
        word,
        is_chosen: value == chosen,
    };
    let mut choices = vec![
        choice("", words.calls_all),
        choice(ALIVE, words.calls_alive),
    ];
    let states = [CallState::Queued, CallState::Ringing, CallState::Answered];
    choices.extend(states.map(|state| choice(state.as_str(), state_mark(state, words).word)));
    let outcomes = Outcome::ALL.iter().copied();
    let outcomes = outcomes.map(|one| choice(one.as_str(), outcome_mark(one, words).word));
    choices.extend(outcomes);
    choices
}

pub async fn list(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let words = visit.language.words();
    let mut wanted = WantedCalls::of(&console, &visit);
    // Who has a callSid wants that call.
    if let Some(sid) = visit.query("sid") {
        match sid.parse::<CallSid>() {
            Ok(sid) => return Ok(Redirect::to(&format!("/calls/{sid}")).into_response()),
            Err(_) => wanted.filter = Err(words.calls_bad_sid.into()),
        }
    }
    let page = match wanted.filter(PAGE) {
        Some(filter) => console.management.calls(filter).await?,
        None => CallPage::default(),
    };
    let older = page.next.as_ref();
    let further = page.searched_until.as_ref().map(|until| {
        let back_to = fill(words.calls_searched, &[("sid", until.as_str())]);
        (back_to, wanted.address("/calls", Some(until)))
    });
    let older = older.map(|next| wanted.address("/calls", Some(next)));
    let found = console.names.calls(&console.management, page.calls).await?;
    let row = |call| CallRow::new(call, &console.clock, words);
    Ok(html(&CallsPage {
        frame: Frame::new(&console, &visit, MenuPlace::Calls, words.calls_title),
        choices: choices(&wanted, words),
        calls: found.iter().map(row).collect(),
        older,
        further,
        export: wanted.address("/calls.csv", None),
        newest: wanted.address("/calls", None),
        wanted,
    }))
}
