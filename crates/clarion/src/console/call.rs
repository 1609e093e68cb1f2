//! *One call*: its story, its messages, its sound, its callback and its bill; and what an admin may do about it.

use std::sync::Arc;

use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};

use super::Console;
use super::events::{self, Fragment};
use super::ladder::{self, Ladder};
use super::named::NamedCall;
use super::page::{Frame, MenuPlace, html};
use super::refusal::Refused;
use super::shown::{self, Mark, callback_mark, delivery_mark};
use super::timeline::{self, TimelineStep};
use super::times::{self, Moment};
use super::visit::Visit;
use super::words::{Words, fill};
use crate::domain::bill::BillLine;
use crate::domain::call::{CallKind, CallSid, Priority};
use crate::domain::call_state::CallState;
use crate::domain::callback::{Callback, CallbackAttempt, CallbackKey, CallbackState};
use crate::domain::leg::Leg;
use crate::domain::outcome::Outcome;
use crate::management::{CallStory, ManagementError};

#[derive(Template)]
#[template(path = "console/call.html")]
struct CallPage {
    frame: Frame,
    sid: String,
    part: CallPart,
}

/// What changes while a call is under way.
#[derive(Template)]
#[template(path = "console/call_part.html")]
struct CallPart {
    words: &'static Words,
    sid: String,
    kind: &'static str,
    mark: Mark,
    to: String,
    caller: String,
    account: String,
    account_sid: String,
    app: String,
    app_id: String,
    trunk: String,
    talk: String,
    accepted: Moment,
    request: String,
    /// Of a call that has not ended.
    priority: Option<u8>,
    valid_until: Option<Moment>,
    reason: String,
    /// What ends it, if it may be ended.
    stop: Option<&'static str>,
    /// It is over, and says nothing secret: it can be made again.
    may_repeat: bool,
    /// Who may change something has a token for it.
    token: Option<String>,
    steps: Vec<TimelineStep>,
    sounds: Vec<SoundRow>,
    callback: Option<CallbackBox>,
    events: Vec<EventRow>,
    bill: Vec<BillRow>,
    ladder: Option<Ladder>,
    /// What it says may be heard again.
    is_told: bool,
}

struct SoundRow {
    leg: usize,
    codec: String,
    sent: u32,
    late: u32,
    received: u32,
    lost: u32,
    jitter: String,
    trip: String,
}

struct BillRow {
    line: BillLine,
    /// In the language of the page, where it is one of ours.
    outcome: String,
}

struct CallbackBox {
    mark: Mark,
    url: String,
    body: String,
    attempts: Vec<CallbackRow>,
}

/// A callback that told of something before the end.
struct EventRow {
    key: String,
    at: String,
    what: String,
    mark: Mark,
    attempts: u32,
}

struct CallbackRow {
    at: String,
    mark: Mark,
    status: String,
    took: String,
    /// What the receiver has answered, or in our words why it could not.
    answer: String,
    is_ours: bool,
}

pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let words = visit.language.words();
    let (part, _) = part(&console, &visit).await?;
    let title = fill(words.call_title, &[("sid", &part.sid)]);
    Ok(html(&CallPage {
        frame: Frame::new(&console, &visit, MenuPlace::Calls, title),
        sid: part.sid.clone(),
        part,
    }))
}

/// Until the call is over, and its callback too.
pub async fn watch(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    // A call that is not there has no stream.
    find(&console, &visit).await?;
    events::stream(
        console,
        visit,
        async |console: Arc<Console>, visit: Arc<Visit>| {
            let (part, is_last) = part(&console, &visit).await?;
            let html = part.render().unwrap_or_default();
            Ok(Fragment { html, is_last })
        },
    )
}

/// A call with everything that its page tells.
struct CallFile {
    call: NamedCall,
    story: CallStory,
    /// What became of the final callback.
    callback: Option<(Callback, Vec<CallbackAttempt>)>,
}

async fn find(console: &Console, visit: &Visit) -> Result<CallFile, Refused> {
    let management = &console.management;
    let mut story = management.call_story(&sid(visit)?).await?;
    let record = story.seen.record.clone();
    let callback = match &story.seen.callback {
        Some(callback) => Some(management.callback(&callback.key).await?),
        None => None,
    };
    // It may have been delivered meanwhile: what the story tells of it must not be older than what ends the stream.
    if let Some((callback, _)) = &callback {
        story.seen.callback = Some(callback.clone());
    }
    Ok(CallFile {
        call: console.names.call(management, record).await?,
        story,
        callback,
    })
}

fn sid(visit: &Visit) -> Result<CallSid, Refused> {
    let sid = visit.path_value("sid").parse();
    sid.map_err(|_| Refused::NotFound)
}

/// The page as it is now, and whether it will stay so.
async fn part(console: &Console, visit: &Visit) -> Result<(CallPart, bool), Refused> {
    let file = find(console, visit).await?;
    let is_last = is_settled(&file);
    let frame = Frame::new(console, visit, MenuPlace::Calls, "");
    let token = frame.may_change().then(|| frame.token().to_owned());
    Ok((CallPart::new(console, frame.words, &file, token), is_last))
}

fn is_settled(file: &CallFile) -> bool {
    let is_open = |callback: &Callback| {
        matches!(
            callback.state,
            CallbackState::Waiting | CallbackState::Delivering
        )
    };
    let callback = file.callback.as_ref();
    file.call.record.state == CallState::Ended
        && callback.is_none_or(|(callback, _)| !is_open(callback))
}

impl CallPart {
    fn new(
        console: &Console,
        words: &'static Words,
        file: &CallFile,
        token: Option<String>,
    ) -> Self {
        let (record, clock) = (&file.call.record, &console.clock);
        let legs = file
            .story
            .seen
            .history
            .legs
            .iter()
            .map(|of_call| &of_call.leg);
        let sounds = legs.enumerate().filter_map(|(place, leg)| {
            let codec = leg.media.codec.clone()?;
            Some(sound_row(place + 1, codec, leg, words))
        });
        let callback = file.callback.as_ref();
        let messages = console.management.messages_of(&record.sid);
        Self {
            words,
            sid: record.sid.to_string(),
            kind: match record.kind {
                CallKind::Verification => words.call_verification,
                CallKind::Notification if record.notice.is_some() => words.call_notice,
                CallKind::Notification => words.call_notification,
            },
            mark: shown::mark(record, words),
            to: shown::whole(&record.number),
            caller: record.caller.clone().unwrap_or_default(),
            account: file.call.account.clone(),
            account_sid: record.account.to_string(),
            app: file.call.app.clone(),
            app_id: record.app.to_string(),
            trunk: record.trunk.clone().unwrap_or_default(),
            talk: shown::talk(record, clock, words),
            accepted: Moment::new(record.accepted_at, clock, words),
            request: record.request_id.clone().unwrap_or_default(),
            priority: record.priority.map(Priority::number),
            valid_until: record
                .expires_at
                .map(|until| Moment::new(until, clock, words)),
            reason: record.reason.clone().unwrap_or_default(),
            stop: stop(record.state, words),
            may_repeat: record.state == CallState::Ended && record.kind == CallKind::Notification,
            token,
            steps: timeline::steps(&file.story.seen, clock, words),
            sounds: sounds.collect(),
            callback: callback
                .map(|(callback, attempts)| callback_box(console, words, callback, attempts)),
            events: file
                .story
                .callbacks
                .iter()
                .filter(|callback| callback.key.is_event())
                .map(|event| event_row(console, words, event))
                .collect(),
            bill: file
                .story
                .bill_lines
                .iter()
                .map(|line| bill_row(line, words))
                .collect(),
            is_told: record.kind == CallKind::Notification,
            ladder: ladder::draw(&messages, clock, words),
        }
    }
}

fn stop(state: CallState, words: &'static Words) -> Option<&'static str> {
    match state {
        CallState::Queued | CallState::Claimed => Some(words.call_cancel),
        CallState::Dialling | CallState::Ringing | CallState::Answered => Some(words.call_hang_up),
        CallState::Ended => None,
    }
}

fn sound_row(number: usize, codec: String, leg: &Leg, words: &Words) -> SoundRow {
    let media = &leg.media;
    let millis = |time: std::time::Duration| format!("{:.1}", time.as_secs_f64() * 1000.0);
    let (jitter, worst) = (millis(media.jitter), millis(media.worst_jitter));
    let trip = media.round_trip.map(millis);
    SoundRow {
        leg: number,
        codec,
        sent: media.packets_sent,
        late: media.packets_late,
        received: media.packets_received,
        lost: media.packets_lost,
        jitter: fill(words.quality_worst, &[("ms", &jitter), ("worst", &worst)]),
        trip: trip.map_or_else(String::new, |trip| fill(words.quality_ms, &[("ms", &trip)])),
    }
}

fn bill_row(line: &BillLine, words: &Words) -> BillRow {
    let mut known = Outcome::ALL.iter();
    let known = known.find(|outcome| outcome.as_str() == line.outcome);
    let shown = known.map(|outcome| shown::outcome_mark(*outcome, words).word);
    BillRow {
        outcome: shown.unwrap_or(&line.outcome).to_owned(),
        line: line.clone(),
    }
}

fn callback_box(
    console: &Console,
    words: &'static Words,
    callback: &Callback,
    attempts: &[CallbackAttempt],
) -> CallbackBox {
    let row = |attempt: &CallbackAttempt| CallbackRow {
        at: times::exact(attempt.started_at, &console.clock),
        mark: delivery_mark(attempt.verdict, words),
        status: attempt
            .status
            .map(|status| status.to_string())
            .unwrap_or_default(),
        took: fill(
            words.quality_ms,
            &[("ms", &attempt.milliseconds.to_string())],
        ),
        answer: attempt
            .error
            .clone()
            .or_else(|| attempt.answer.clone())
            .unwrap_or_default(),
        is_ours: attempt.error.is_some(),
    };
    CallbackBox {
        mark: callback_mark(callback.state, words),
        // The query may carry secrets of the receiver.
        url: callback.url.without_query().to_owned(),
        body: callback.body.clone(),
        attempts: attempts.iter().map(row).collect(),
    }
}

fn event_row(console: &Console, words: &'static Words, event: &Callback) -> EventRow {
    // The body is one that we have written.
    let what = event.body.split_once("<event>");
    let what = what.and_then(|(_, rest)| rest.split_once("</event>"));
    EventRow {
        key: event.key.to_string(),
        at: times::exact(event.owed_at, &console.clock),
        what: what.map(|(what, _)| what.to_owned()).unwrap_or_default(),
        mark: callback_mark(event.state, words),
        attempts: event.attempts,
    }
}

/// Ends a call: one that waits is not dialled, one under way is hung up.
pub async fn cancel(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let sid = sid(&visit)?;
    // What there is not cannot be ended.
    console.management.call(&sid).await?;
    let done = match console.acting(&visit).cancel_call(&sid).await {
        Ok(_) => "cancelled",
        // It ended by itself, before or meanwhile.
        Err(ManagementError::Rule(_)) => "over",
        Err(error) => return Err(error.into()),
    };
    Ok(Redirect::to(&format!("/calls/{sid}?done={done}")).into_response())
}

/// The same request once more, as a new call.
pub async fn again(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let placed = console.acting(&visit).call_again(&sid(&visit)?).await?;
    Ok(Redirect::to(&format!("/calls/{placed}?done=placed")).into_response())
}

pub async fn resend_callback(
    console: Arc<Console>,
    visit: Arc<Visit>,
) -> Result<Response, Refused> {
    let sid = sid(&visit)?;
    let key = CallbackKey::of_end(sid.clone());
    console.acting(&visit).replay_callback(&key).await?;
    Ok(Redirect::to(&format!("/calls/{sid}?done=resent")).into_response())
}
