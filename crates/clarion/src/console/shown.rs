//! Calls as pages show them: words for states and outcomes, and the colour that goes with each.

use super::named::NamedCall;
use super::times::{self, Moment};
use super::words::{Words, fill};
use crate::claim_holds::HoldKind;
use crate::clock::Clock;
use crate::dispatch::trunk_pool::TrunkState;
use crate::domain::account::{AccountState, AppState, Application};
use crate::domain::call_record::CallRecord;
use crate::domain::call_state::CallState;
use crate::domain::callback::{CallbackState, DeliveryResult};
use crate::domain::outcome::Outcome;
use crate::domain::phone_number::PhoneNumber;
use crate::readiness::NotReady;

/// An application that can be chosen.
#[derive(Debug)]
pub struct AppChoice {
    pub id: String,
    pub name: String,
    pub is_chosen: bool,
}

impl AppChoice {
    /// `chosen` is the id of the one that is.
    pub fn of(app: &Application, chosen: &str) -> Self {
        Self {
            id: app.id.to_string(),
            name: app.name.clone(),
            is_chosen: app.id.as_str() == chosen,
        }
    }
}

/// A word and its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub word: &'static str,
    /// The class of the style sheet: `good`, `bad`, `warn`, `busy` or `quiet`.
    pub tone: &'static str,
}

/// One of the values of a field, in words.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    pub value: &'static str,
    pub word: &'static str,
    pub is_chosen: bool,
}

/// A row of a list of calls.
#[derive(Debug)]
pub struct CallRow {
    pub sid: String,
    pub accepted: Moment,
    pub to: String,
    pub mark: Mark,
    pub account: String,
    pub app: String,
    pub trunk: String,
    pub talk: String,
}

impl CallRow {
    pub fn new(call: &NamedCall, clock: &Clock, words: &Words) -> Self {
        let record = &call.record;
        Self {
            sid: record.sid.to_string(),
            accepted: Moment::new(record.accepted_at, clock, words),
            to: whole(&record.number),
            mark: mark(record, words),
            account: call.account.clone(),
            app: call.app.clone(),
            trunk: record.trunk.clone().unwrap_or_default(),
            talk: talk(record, clock, words),
        }
    }
}

/// Operators see numbers whole: they have to help whoever was called, or was not.
pub fn whole(number: &PhoneNumber) -> String {
    match number.extension() {
        Some(extension) => format!("+{}-{extension}", number.digits()),
        None => format!("+{}", number.digits()),
    }
}

/// How long somebody has talked, or talks.
pub fn talk(record: &CallRecord, clock: &Clock, words: &Words) -> String {
    let Some(answered) = record.answered_at else {
        return String::new();
    };
    let until = record.talk_ended_at.unwrap_or_else(|| clock.now());
    times::lasting(until.duration_since(answered), words)
}

/// The state of a call, or its outcome when it has one.
pub fn mark(record: &CallRecord, words: &Words) -> Mark {
    record.outcome.map_or_else(
        || state_mark(record.state, words),
        |outcome| outcome_mark(outcome, words),
    )
}

pub fn state_mark(state: CallState, words: &Words) -> Mark {
    let (word, tone) = match state {
        CallState::Queued => (words.state_queued, "quiet"),
        CallState::Claimed => (words.state_claimed, "quiet"),
        CallState::Dialling => (words.state_dialling, "busy"),
        CallState::Ringing => (words.state_ringing, "busy"),
        CallState::Answered => (words.state_answered, "good"),
        CallState::Ended => (words.state_ended, "quiet"),
    };
    Mark { word, tone }
}

pub fn outcome_mark(outcome: Outcome, words: &Words) -> Mark {
    let word = match outcome {
        Outcome::Talked => words.outcome_talked,
        Outcome::NotAnswered => words.outcome_not_answered,
        Outcome::Busy => words.outcome_busy,
        Outcome::Declined => words.outcome_declined,
        Outcome::Cancelled => words.outcome_cancelled,
        Outcome::NoRoute => words.outcome_no_route,
        Outcome::TrunkFailure => words.outcome_trunk_failure,
        Outcome::InvalidNumber => words.outcome_invalid_number,
        Outcome::Expired => words.outcome_expired,
        Outcome::Interrupted => words.outcome_interrupted,
        Outcome::PromptFailed => words.outcome_prompt_failed,
        Outcome::Confirmed => words.outcome_confirmed,
        Outcome::Unconfirmed => words.outcome_unconfirmed,
        Outcome::Stopped => words.outcome_stopped,
        Outcome::Machine => words.outcome_machine,
    };
    let tone = match outcome.callback_state() {
        '0' => "good",
        '1' => "warn",
        _ => "bad",
    };
    Mark { word, tone }
}

pub fn account_mark(state: AccountState, words: &Words) -> Mark {
    let (word, tone) = match state {
        AccountState::Active => (words.account_active, "good"),
        AccountState::NotActivated => (words.account_not_activated, "quiet"),
        AccountState::Suspended => (words.account_suspended, "warn"),
        AccountState::Closed => (words.account_closed, "quiet"),
    };
    Mark { word, tone }
}

pub fn app_mark(state: AppState, words: &Words) -> Mark {
    let (word, tone) = match state {
        AppState::Active => (words.account_active, "good"),
        AppState::Disabled => (words.app_disabled, "warn"),
        AppState::Deleted => (words.app_deleted, "quiet"),
    };
    Mark { word, tone }
}

pub fn trunk_mark(state: &TrunkState, words: &Words) -> Mark {
    let (word, tone) = match state {
        TrunkState::Up => (words.trunk_up, "good"),
        TrunkState::Drained => (words.trunk_drained, "warn"),
        TrunkState::OutsideItsHours => (words.trunk_closed, "quiet"),
        TrunkState::Failing => (words.trunk_failing, "bad"),
        TrunkState::Down { .. } => (words.trunk_down, "bad"),
    };
    Mark { word, tone }
}

pub fn callback_mark(state: CallbackState, words: &Words) -> Mark {
    let (word, tone) = match state {
        CallbackState::Waiting => (words.callback_waiting, "warn"),
        CallbackState::Delivering => (words.callback_delivering, "busy"),
        CallbackState::Delivered => (words.callback_delivered, "good"),
        CallbackState::GivenUp => (words.callback_given_up, "bad"),
        CallbackState::Superseded => (words.callback_superseded, "quiet"),
    };
    Mark { word, tone }
}

pub fn delivery_mark(result: DeliveryResult, words: &Words) -> Mark {
    let word = match result {
        DeliveryResult::Delivered => words.verdict_delivered,
        DeliveryResult::Refused => words.verdict_refused,
        DeliveryResult::BadStatus => words.verdict_bad_status,
        DeliveryResult::TimedOut => words.verdict_timed_out,
        DeliveryResult::Unreachable => words.verdict_unreachable,
        DeliveryResult::Broken => words.verdict_broken,
        DeliveryResult::TlsFailed => words.verdict_tls_failed,
        DeliveryResult::Blocked => words.verdict_blocked,
    };
    let is_good = result == DeliveryResult::Delivered;
    Mark {
        word,
        tone: if is_good { "good" } else { "bad" },
    }
}

/// Why this node is not ready, in the language of the page.
pub fn not_ready(why: &NotReady, words: &Words) -> String {
    let text = match why {
        NotReady::Stopping => words.not_ready_stopping,
        NotReady::TasksDown(names) => return fill(words.not_ready_tasks, &[("names", names)]),
        NotReady::ClaimsHeld(HoldKind::Clock, _) => words.not_ready_clock,
        NotReady::ClaimsHeld(HoldKind::Prompts, _) => words.not_ready_prompts,
        NotReady::ClaimsHeld(HoldKind::Quality, _) => words.not_ready_quality,
        NotReady::Disk(_) => words.not_ready_disk,
        NotReady::NoWrite(_) => words.not_ready_write,
    };
    text.to_owned()
}
