//! *Callbacks*: who is owed some, those that fail first; every callback by its state; sending again one, or all since a moment.

use std::str::FromStr;
use std::sync::Arc;

use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};
use url::form_urlencoded;

use super::Console;
use super::calls::moment;
use super::page::{Frame, MenuPlace, html};
use super::refusal::Refused;
use super::shown::{Choice, Mark, callback_mark, delivery_mark, whole};
use super::times::{self, Moment};
use super::visit::Visit;
use super::words::{Words, fill};
use crate::domain::account::AppId;
use crate::domain::call::CallSid;
use crate::domain::callback::{Callback, CallbackKey, CallbackState};
use crate::management::CallbackReplay;
use crate::store::{CallbackFilter, ReplayFrom, WaitingReceiver};

/// Callbacks of a page.
const PAGE: u32 = 50;
/// Steps of sending many again that one request makes; the next request goes on.
const STEPS: usize = 200;
/// As a form says that what was delivered is sent again.
const DELIVERED: &str = "delivered";

#[derive(Template)]
#[template(path = "console/callbacks.html")]
struct CallbacksPage {
    frame: Frame,
    receivers: Vec<ReceiverRow>,
    host: String,
    app: String,
    again: AgainForm,
    /// What sends again goes on after this call.
    goes_on: Option<GoOn>,
    choices: Vec<Choice>,
    callbacks: Vec<CallbackLine>,
    older: Option<String>,
    /// How far was searched, and the address that searches further.
    further: Option<(String, String)>,
    /// What became of sending many again, or why it was not done.
    problem: Option<String>,
}

/// The form that sends many again, with what was typed into it.
struct AgainForm {
    host: String,
    app: String,
    since: String,
    /// Those that were delivered, and not those that were given up.
    of_delivered: bool,
}

impl AgainForm {
    /// Who has looked for a receiver or an application probably means it.
    fn new(visit: &Visit, host: &str, app: &str) -> Self {
        let or = |name: &str, otherwise: &str| visit.given(name).unwrap_or(otherwise).to_owned();
        Self {
            host: or("host", host),
            app: or("app", app),
            since: or("since", ""),
            of_delivered: visit.field("from") == DELIVERED,
        }
    }
}

/// Sending many again that has not come to its end: as it was asked for, and how far it has come.
struct GoOn {
    host: String,
    app: String,
    since: String,
    from: &'static str,
    after: CallSid,
}

/// What became of sending many again, or why it was not done.
#[derive(Default)]
struct Resent {
    told: Option<String>,
    goes_on: Option<GoOn>,
}

impl Resent {
    fn told(told: &str) -> Self {
        Self {
            told: Some(told.to_owned()),
            goes_on: None,
        }
    }
}

struct ReceiverRow {
    host: String,
    /// Its callbacks that wait.
    address: String,
    of_what: &'static str,
    waiting: u64,
    oldest: Moment,
    failures: u32,
    mark: Option<Mark>,
    /// What the last attempt brought.
    /// What it has answered last, or in our words why it could not.
    said: String,
    is_ours: bool,
}

struct CallbackLine {
    sid: String,
    key: String,
    is_event: bool,
    number: String,
    host: String,
    mark: Mark,
    attempts: u32,
    owed: Moment,
    next: String,
}

/// What is looked for, as it stands in the address.
struct WantedCallbacks {
    host: Option<String>,
    app: Option<AppId>,
    state: Option<CallbackState>,
    before: Option<CallbackKey>,
    /// Something there is not what it should be.
    is_wrong: bool,
}

impl WantedCallbacks {
    fn of(visit: &Visit) -> Self {
        let mut is_wrong = false;
        Self {
            host: visit.query("host"),
            app: read(visit, "app", &mut is_wrong),
            state: read(visit, "state", &mut is_wrong),
            before: read(visit, "before", &mut is_wrong),
            is_wrong,
        }
    }

    fn filter(&self) -> CallbackFilter {
        CallbackFilter {
            state: self.state,
            app: self.app.clone(),
            host: self.host.clone(),
            before: self.before.clone(),
            limit: PAGE,
        }
    }

    fn address(&self, before: &CallbackKey) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(host) = &self.host {
            query.append_pair("host", host);
        }
        if let Some(app) = &self.app {
            query.append_pair("app", app.as_str());
        }
        if let Some(state) = self.state {
            query.append_pair("state", state.as_str());
        }
        query.append_pair("before", &before.to_string());
        format!("/callbacks?{}", query.finish())
    }
}

fn read<T: FromStr>(visit: &Visit, name: &str, is_wrong: &mut bool) -> Option<T> {
    let text = visit.query(name)?;
    let value = text.parse().ok();
    *is_wrong |= value.is_none();
    value
}

pub async fn list(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    page(&console, &visit, Resent::default()).await
}

async fn page(console: &Console, visit: &Visit, resent: Resent) -> Result<Response, Refused> {
    let words = visit.language.words();
    let overview = console.management.overview().await?;
    let wanted = WantedCallbacks::of(visit);
    let problem = resent.told;
    let problem = problem.or_else(|| wanted.is_wrong.then(|| words.callbacks_bad.to_owned()));
    let found = console.management.callbacks(wanted.filter()).await?;
    let further = found.searched_until.as_ref().map(|until| {
        let back_to = fill(words.calls_searched, &[("sid", &until.to_string())]);
        (back_to, wanted.address(until))
    });
    let older = found.next.as_ref().map(|next| wanted.address(next));
    let receivers = overview.callbacks.receivers.iter();
    let host = wanted.host.clone().unwrap_or_default();
    let app = wanted.app.as_ref().map(ToString::to_string);
    let app = app.unwrap_or_default();
    Ok(html(&CallbacksPage {
        frame: Frame::new(console, visit, MenuPlace::Callbacks, words.callbacks_title),
        receivers: receivers
            .map(|receiver| receiver_row(console, receiver, words))
            .collect(),
        again: AgainForm::new(visit, &host, &app),
        host,
        app,
        goes_on: resent.goes_on,
        choices: choices(wanted.state, words),
        older: older.filter(|_| further.is_none()),
        further,
        callbacks: found
            .callbacks
            .iter()
            .map(|callback| line(console, callback, words))
            .collect(),
        problem,
    }))
}

fn choices(chosen: Option<CallbackState>, words: &'static Words) -> Vec<Choice> {
    let all = Choice {
        value: "",
        word: words.calls_all,
        is_chosen: chosen.is_none(),
    };
    let states = CallbackState::ALL.into_iter().map(|state| Choice {
        value: state.as_str(),
        word: callback_mark(state, words).word,
        is_chosen: chosen == Some(state),
    });
    std::iter::once(all).chain(states).collect()
}

fn receiver_row(console: &Console, receiver: &WaitingReceiver, words: &Words) -> ReceiverRow {
    let last = receiver.last_attempt.as_ref();
    let said = last.and_then(|last| last.error.clone().or_else(|| last.answer.clone()));
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("host", &receiver.host);
    // Those are found at once, however much was delivered since.
    query.append_pair("state", CallbackState::Waiting.as_str());
    let query = query.finish();
    ReceiverRow {
        host: receiver.host.clone(),
        address: format!("/callbacks?{query}"),
        of_what: if receiver.is_of_events {
            words.callbacks_events
        } else {
            words.callbacks_final
        },
        waiting: receiver.waiting,
        oldest: Moment::new(receiver.oldest_owed_at, &console.clock, words),
        failures: receiver.failures,
        mark: last.map(|last| delivery_mark(last.verdict, words)),
        said: said.unwrap_or_default(),
        is_ours: last.is_some_and(|last| last.error.is_some()),
    }
}

fn line(console: &Console, callback: &Callback, words: &Words) -> CallbackLine {
    let next = callback.due_at.map(|due| times::exact(due, &console.clock));
    CallbackLine {
        sid: callback.key.call.to_string(),
        key: callback.key.to_string(),
        is_event: callback.key.is_event(),
        number: callback.number.as_ref().map(whole).unwrap_or_default(),
        host: callback.url.host(),
        mark: callback_mark(callback.state, words),
        attempts: callback.attempts,
        owed: Moment::new(callback.owed_at, &console.clock, words),
        next: next.unwrap_or_default(),
    }
}

/// Sends one again.
pub async fn resend(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let key = visit.field("key").parse::<CallbackKey>();
    let key = key.map_err(|_| Refused::BadForm)?;
    console.acting(&visit).replay_callback(&key).await?;
    let back = match visit.field("back") {
        "call" => format!("/calls/{}?done=resent", key.call),
        _ => "/callbacks?done=resent".to_owned(),
    };
    Ok(Redirect::to(&back).into_response())
}

/// Sends all again that a receiver or an application has missed since a moment.
pub async fn resend_all(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let words = visit.language.words();
    let given = |name: &str| Some(visit.field(name).trim()).filter(|text| !text.is_empty());
    let Some(since) = moment(visit.field("since"), console.clock.zone()) else {
        return page(&console, &visit, Resent::told(words.calls_bad_time)).await;
    };
    let Ok(app) = given("app").map(str::parse).transpose() else {
        return page(&console, &visit, Resent::told(words.calls_bad_app)).await;
    };
    let after = given("after").map(str::parse::<CallSid>).transpose();
    let (from, from_word) = match visit.field("from") {
        DELIVERED => (ReplayFrom::Delivered, DELIVERED),
        _ => (ReplayFrom::GivenUp, "given-up"),
    };
    let wanted = CallbackReplay {
        app,
        host: given("host").map(str::to_owned),
        since,
        after: after.map_err(|_| Refused::BadForm)?,
        from,
    };
    if wanted.app.is_none() && wanted.host.is_none() {
        return page(&console, &visit, Resent::told(words.callbacks_name_one)).await;
    }
    let management = console.acting(&visit);
    let (mut count, mut after) = (0, None);
    for _ in 0..STEPS {
        let step = management.replay_callbacks(&wanted, after).await?;
        count += step.count;
        after = step.next;
        if after.is_none() {
            break;
        }
    }
    let text = match after {
        None => words.callbacks_resent,
        Some(_) => words.callbacks_resent_some,
    };
    let resent = Resent {
        told: Some(fill(text, &[("n", &count.to_string())])),
        goes_on: after.map(|after| GoOn {
            host: wanted.host.unwrap_or_default(),
            app: wanted.app.map_or_else(String::new, |app| app.to_string()),
            since: visit.field("since").to_owned(),
            from: from_word,
            after,
        }),
    };
    page(&console, &visit, resent).await
}
