//! What operators see of a call.

use std::sync::Arc;

use jiff::Timestamp;

use super::account::{AccountSid, AppId};
use super::attempt::AttemptNumber;
use super::call::{CallKind, CallSid, Priority};
use super::call_state::CallState;
use super::callback::EventSubscription;
use super::notice::Notice;
use super::notice::ending::NoticeEnding;
use super::outcome::Outcome;
use super::phone_number::PhoneNumber;

/// Everything that is known about a call, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    pub sid: CallSid,
    pub kind: CallKind,
    pub account: AccountSid,
    pub app: AppId,
    pub called: String,
    pub number: PhoneNumber,
    pub caller: Option<String>,
    /// What the application called its request.
    pub request_id: Option<String>,
    /// Of a call that has not ended: how urgent it is, and until when an attempt may begin.
    pub priority: Option<Priority>,
    pub expires_at: Option<Timestamp>,
    pub state: CallState,
    pub outcome: Option<Outcome>,
    pub trunk: Option<String>,
    pub tries: u32,
    pub accepted_at: Timestamp,
    pub due_at: Option<Timestamp>,
    pub dialled_at: Option<Timestamp>,
    pub rang_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// When the talk that began with the answer was over; a notice may have ended long after it.
    pub talk_ended_at: Option<Timestamp>,
    pub sip_code: Option<u16>,
    pub reason: Option<String>,
    /// Until it has ended.
    pub current: Option<CurrentAttempt>,
    /// What the request asked for beyond one call.
    pub notice: Option<Arc<Notice>>,
    /// How a notice ended.
    pub ending: Option<NoticeEnding>,
    /// Who is told what happens to it, step by step.
    pub events: Option<EventSubscription>,
}

impl CallRecord {
    /// The state in the callback, of a call that is over.
    pub fn callback_state(&self) -> Option<char> {
        let outcome = self.outcome?;
        Some(match self.ending {
            Some(ending) => ending.callback_state(outcome),
            None => outcome.callback_state(),
        })
    }
}

/// The attempt that a call is at: it waits to be dialled, or is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentAttempt {
    pub number: AttemptNumber,
    pub to: PhoneNumber,
}

/// The calls that an operator wants to see, the newest first. What is asked directly goes by an index; what is asked by `search` looks at a stretch of calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    pub account: Option<AccountSid>,
    pub app: Option<AppId>,
    /// Canonical digits of the number that the request named first.
    pub number: Option<String>,
    pub life: CallLife,
    /// Only calls from this callSid on.
    pub from: Option<CallSid>,
    /// Only calls before this one, for the next page.
    pub before: Option<CallSid>,
    pub search: CallSearch,
    pub limit: u32,
}

/// Which calls, by how far they have come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallLife {
    #[default]
    Any,
    /// They have not ended.
    Alive,
    /// They are in the hands of a node, and wait no more.
    Running,
}

/// What no index answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallSearch {
    pub outcome: Option<Outcome>,
    pub state: Option<CallState>,
    pub trunk: Option<String>,
    /// Canonical digits.
    pub caller: Option<String>,
    /// What the data of the application contains.
    pub user_data: Option<String>,
}

impl CallSearch {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A page of a list of calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallPage {
    pub calls: Vec<CallRecord>,
    /// The next page is before this call; `None`: there is none.
    pub next: Option<CallSid>,
    /// The search stopped here before the page was full: it can go on.
    pub searched_until: Option<CallSid>,
}
