//! Reports how a call ended, and its events: what is owed to an application, the result of each attempt to deliver it, and what follows.
//!
//! A final callback is delivered at least once, however long that takes. Events arrive in their order, those that arrive: one is tried for a
//! minute at most, and is dropped when a later one was delivered. Neither waits for the other.
//!
//! An attempt is recorded when it is over, so a crash before that repeats it, with the same
//! webhook-id.

use std::str::FromStr;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

mod answer;
mod event;
mod key;
mod places;
mod schedule;
mod signature;
mod silence;
mod status_body;

pub use self::answer::{judge, requested_wait};
pub use self::event::{EventAttempt, MAX_EVENTS, OwedEvent, StateEvent};
pub use self::key::CallbackKey;
pub use self::places::{
    DeliveryPlaces, DueReceiver, PUT_BACK_PAUSE, PlaceId, PlaceLimits, ReceiverShare, shares,
};
pub use self::schedule::RetrySchedule;
pub use self::signature::sign;
pub use self::status_body::{CallReport, state_body, status_body};
use super::account::{AccountSid, AppId, CallbackSecret};
use super::call_sid::CallSid;
pub use super::event_subscription::{EVENTS_AT, EventSubscription};
use super::phone_number::PhoneNumber;
pub use super::resp_url::RespUrl;

/// How long an event may be tried.
pub const EVENT_TIME: SignedDuration = SignedDuration::from_mins(1);

/// What is written in the commit that ends a call, if the request named a respUrl; and for events, in the commit that they are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwedCallback {
    pub key: CallbackKey,
    pub app: AppId,
    /// The receiver recognises repeated deliveries by this id. It is stored, so that it stays the same even if a later version makes it
    /// differently.
    pub webhook_id: String,
    pub url: RespUrl,
    pub body: String,
    pub owed_at: Timestamp,
    /// How long it may be tried. A final callback is tried as often as its schedule says.
    pub valid_for: Option<SignedDuration>,
}

impl OwedCallback {
    pub fn new(report: &CallReport<'_>, app: AppId, url: RespUrl, zone: &TimeZone) -> Self {
        let key = CallbackKey::of_end(report.call.clone());
        Self {
            webhook_id: key.webhook_id(),
            key,
            app,
            url,
            body: status_body(report, zone),
            owed_at: report.ended_at,
            valid_for: None,
        }
    }

    /// The state of a call as somebody has asked for it; the store gives it its place among the events of the call.
    pub fn of_state(
        call: CallSid,
        app: AppId,
        url: RespUrl,
        is_over: bool,
        now: Timestamp,
    ) -> Self {
        let body = state_body(&call, is_over);
        let key = CallbackKey { call, seq: 1 };
        Self {
            webhook_id: key.webhook_id(),
            key,
            app,
            url,
            body,
            owed_at: now,
            valid_for: Some(EVENT_TIME),
        }
    }

    /// The same, as the event of this number.
    #[must_use]
    pub fn numbered(mut self, seq: i32) -> Self {
        self.key.seq = seq;
        self.webhook_id = self.key.webhook_id();
        self
    }

    /// Where it waits.
    pub fn receiver(&self) -> String {
        self.key.receiver(&self.url)
    }
}

/// Stored as its number. The numbers never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i16)]
pub enum CallbackState {
    /// The callback waits until it is due.
    Waiting = 0,
    /// A node holds the callback's lease and is delivering it.
    Delivering = 1,
    Delivered = 2,
    /// Every attempt of the schedule failed, or the receiver's address is not allowed.
    GivenUp = 3,
    /// An event that was not delivered before a later one was.
    Superseded = 4,
}

impl CallbackState {
    pub const ALL: [CallbackState; 5] = [
        CallbackState::Waiting,
        CallbackState::Delivering,
        CallbackState::Delivered,
        CallbackState::GivenUp,
        CallbackState::Superseded,
    ];

    pub fn number(self) -> i16 {
        self as i16
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivering => "delivering",
            Self::Delivered => "delivered",
            Self::GivenUp => "given-up",
            Self::Superseded => "superseded",
        }
    }
}

impl FromStr for CallbackState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| {
            "write waiting, delivering, delivered, given-up or superseded".to_owned()
        })
    }
}

/// The right to deliver one callback. The fence grows with every claim, so a holder that has lost its lease cannot record any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackLease {
    pub key: CallbackKey,
    pub fence: i64,
}

/// A due callback that this node has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedCallback {
    pub lease: CallbackLease,
    pub account: AccountSid,
    pub app: AppId,
    pub webhook_id: String,
    pub url: RespUrl,
    pub body: String,
    pub secret: Option<CallbackSecret>,
    /// How long it has been due.
    pub lag: SignedDuration,
    /// How long it may still be tried, if there is a limit to that.
    pub time_left: Option<SignedDuration>,
    pub attempts: u32,
    /// Failed attempts since the callback was owed or last replayed. This is its place in the schedule.
    pub failures: u32,
}

/// The result of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryResult {
    Delivered,
    /// The status is 2xx, but the body holds a statuscode that says no.
    Refused,
    /// The status is not 2xx. Redirects are not followed.
    BadStatus,
    TimedOut,
    /// The host has no address, or no address accepts a connection.
    Unreachable,
    /// The connection was made, but no whole answer came.
    Broken,
    TlsFailed,
    /// The address is neither public nor allowed. A retry would not change that.
    Blocked,
}

impl DeliveryResult {
    pub const ALL: [DeliveryResult; 8] = [
        DeliveryResult::Delivered,
        DeliveryResult::Refused,
        DeliveryResult::BadStatus,
        DeliveryResult::TimedOut,
        DeliveryResult::Unreachable,
        DeliveryResult::Broken,
        DeliveryResult::TlsFailed,
        DeliveryResult::Blocked,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Refused => "refused",
            Self::BadStatus => "bad-status",
            Self::TimedOut => "timed-out",
            Self::Unreachable => "unreachable",
            Self::Broken => "broken",
            Self::TlsFailed => "tls-failed",
            Self::Blocked => "blocked",
        }
    }

    /// Returns whether the receiver answered at all. A receiver that does not answer takes a place until the time limit.
    pub fn is_answer(self) -> bool {
        matches!(self, Self::Delivered | Self::Refused | Self::BadStatus)
    }
}

impl FromStr for DeliveryResult {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL
            .into_iter()
            .find(|verdict| verdict.as_str() == text);
        found.ok_or_else(|| format!("there is no verdict `{text}`"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackAttempt {
    pub started_at: Timestamp,
    pub milliseconds: i64,
    pub verdict: DeliveryResult,
    pub status: Option<u16>,
    /// Why the attempt failed, in words.
    pub error: Option<String>,
    /// The first bytes of the answer's body.
    pub answer: Option<String>,
}

/// What follows an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextDelivery {
    Delivered,
    /// So long after this is recorded.
    RetryAfter(SignedDuration),
    GivenUp,
}

impl NextDelivery {
    pub fn state(self) -> CallbackState {
        match self {
            Self::Delivered => CallbackState::Delivered,
            Self::RetryAfter(_) => CallbackState::Waiting,
            Self::GivenUp => CallbackState::GivenUp,
        }
    }

    pub fn wait(self) -> Option<SignedDuration> {
        match self {
            Self::RetryAfter(wait) => Some(wait),
            Self::Delivered | Self::GivenUp => None,
        }
    }
}

/// A finished attempt, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedAttempt {
    pub lease: CallbackLease,
    pub attempt: CallbackAttempt,
    pub ended_at: Timestamp,
    pub next: NextDelivery,
}

/// A callback as the operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callback {
    pub key: CallbackKey,
    pub app: AppId,
    /// The called number, or `None` if the call itself has been pruned.
    pub number: Option<PhoneNumber>,
    pub webhook_id: String,
    pub url: RespUrl,
    pub body: String,
    pub state: CallbackState,
    pub attempts: u32,
    pub owed_at: Timestamp,
    pub due_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_verdicts_read_back() {
        for state in CallbackState::ALL {
            assert_eq!(CallbackState::from_number(state.number()), Some(state));
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        for verdict in DeliveryResult::ALL {
            assert_eq!(verdict.as_str().parse(), Ok(verdict));
        }
    }
}
