//! A call as it is accepted, and its progress as clients see it.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::account::{AccountSid, AppId};
use super::bill::call_type::CallType;
pub use super::call_sid::{CallSid, CallSids};
use super::call_state::CallState;
use super::call_window::CallWindow;
use super::callee_choice::CalleeChoice;
use super::event_subscription::EventSubscription;
use super::hearing::AnsweredBy;
use super::notice::ending::{Confirmation, NoticeEnding};
use super::notice::keys::NoticeKeys;
use super::notice::machine::MachineDetection;
use super::notice::{Notice, Recipient};
use super::outcome::Outcome;
use super::phone_number::PhoneNumber;
use super::prompt::Prompt;
use super::resp_url::RespUrl;
use super::route::CallEnds;
use super::route::RouteKey;
use super::status_code::{Refusal, StatusCode};

/// What a call is for: it decides how the call is reported and billed, and what its record keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// `LandingCalls`.
    #[default]
    Notification,
    /// `VoiceVerify`: what it says is a secret. The record forgets it when the call ends.
    Verification,
}

impl CallKind {
    const ALL: [Self; 2] = [Self::Notification, Self::Verification];

    /// How it is billed, and stored.
    pub const fn call_type(self) -> CallType {
        match self {
            Self::Notification => CallType::OutboundNotification,
            Self::Verification => CallType::VoiceVerificationCode,
        }
    }

    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.call_type().code() == code)
    }
}

/// Everything about a call that is known when it is accepted. It never changes afterwards, except that the record of a verification forgets
/// its prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCall {
    pub sid: CallSid,
    pub kind: CallKind,
    pub account: AccountSid,
    pub app: AppId,
    pub accepted_at: Timestamp,
    /// `to` exactly as the client sent it: callbacks and bills show this.
    pub called: String,
    pub number: PhoneNumber,
    /// Who is called: one call at a time, and as often as the caps let it be.
    pub callee: String,
    /// Canonical digits of the number that is shown to the called party, or `None` if the platform has no default.
    pub caller: Option<String>,
    pub prompt: Prompt,
    /// Longest talk time in seconds, if the request asked for one.
    pub max_talk: Option<u32>,
    pub resp_url: Option<RespUrl>,
    pub user_data: Option<String>,
    /// Who is told what happens to it, step by step.
    pub events: Option<EventSubscription>,
    /// What the request asks for beyond one call. While an attempt of it is under way, the numbers above are those of the attempt.
    pub notice: Option<Arc<Notice>>,
}

impl NewCall {
    /// Where everything waits that may be owed for it: the report of its end, a silence, its events.
    pub fn receivers(&self) -> Vec<String> {
        let notice = self.notice.as_deref();
        let silence = notice.and_then(|notice| notice.silence.as_ref());
        let of_end = self.resp_url.as_ref().map(RespUrl::host);
        let of_silence = silence.map(|silence| RespUrl::from_stored(silence.url.clone()).host());
        let of_events = self.events.as_ref().map(EventSubscription::receiver);
        [of_end, of_silence, of_events]
            .into_iter()
            .flatten()
            .collect()
    }

    /// What decides which trunks carry it.
    pub fn ends(&self) -> CallEnds<'_> {
        CallEnds {
            called: self.number.digits(),
            caller: self.caller.as_deref(),
        }
    }

    /// The hours in which it may be dialled: its own, and its account's.
    pub fn hours<'a>(&'a self, account: Option<&'a CallWindow>) -> Vec<&'a CallWindow> {
        match self.notice.as_deref() {
            Some(notice) => notice.hours(account),
            None => account.into_iter().collect(),
        }
    }

    /// How long it may ring, where the request says so.
    pub fn ring_time(&self) -> Option<Duration> {
        let ring = self.notice.as_deref()?.ring?;
        Some(Duration::from_secs(ring.into()))
    }

    /// What the callee is asked to press, if anything.
    pub fn keys(&self) -> Option<&NoticeKeys> {
        self.notice.as_deref()?.keys.as_ref()
    }

    /// What it wants to know about whoever answers, if anything.
    pub fn machine(&self) -> Option<MachineDetection> {
        self.notice.as_deref()?.machine
    }

    /// What it has come to once it was answered and is over.
    pub fn answered(
        &self,
        choice: Option<CalleeChoice>,
        answered_by: Option<AnsweredBy>,
        has_begun: bool,
    ) -> Outcome {
        match self.notice.as_deref() {
            Some(notice) => notice.answered(choice, answered_by, has_begun),
            None => Outcome::Talked,
        }
    }

    /// `to` as the client wrote it.
    pub fn asked_for(&self) -> &str {
        let notice = self.notice.as_deref();
        let first = notice.and_then(|notice| notice.numbers.first());
        first.map_or(&self.called, |first| &first.called)
    }

    /// The same call, to another number of its notice.
    #[must_use]
    pub fn to(mut self, to: Recipient) -> Self {
        (self.called, self.number) = (to.called, to.number);
        (self.callee, self.caller) = (to.callee, to.caller);
        self
    }
}

/// How a call is queued. Its time runs by the store's clock, from the moment when the call is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queueing {
    /// The trunks that carry its number.
    pub route: RouteKey,
    pub priority: Priority,
    /// It is not dialled before this time has passed.
    pub pause: SignedDuration,
    /// A call that is still queued after this time is not dialled any more.
    pub valid_for: SignedDuration,
    /// Where its number is held back for longer than this, because it is being called or has had its calls, another number has its turn.
    pub patience: Option<SignedDuration>,
}

/// How urgent a call is among those of its account: 1 to 9, 1 first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Priority(u8);

impl Priority {
    pub const USUAL: Self = Self(5);
    pub const FIRST: Self = Self(1);

    pub fn new(number: u8) -> Option<Self> {
        (1..=9).contains(&number).then_some(Self(number))
    }

    pub fn number(self) -> u8 {
        self.0
    }
}

/// The progress of a call, as `CallResult` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallProgress {
    pub state: CallState,
    /// Present exactly when the state is `Ended`.
    pub outcome: Option<Outcome>,
    pub answered_at: Option<Timestamp>,
    /// Of the talk: a notice may have ended long after its last one.
    pub ended_at: Option<Timestamp>,
    /// Where it is more than one call.
    pub notice: Option<NoticeProgress>,
}

/// How far a notice has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeProgress {
    /// Attempts that are over.
    pub attempts: u32,
    pub confirmed: Option<Confirmation>,
    /// Present when it is over, where the request wanted to know.
    pub answered_by: Option<AnsweredBy>,
    /// Present when it is over.
    pub ending: Option<NoticeEnding>,
}

impl CallProgress {
    /// Of a call that is not over.
    pub fn under_way(state: CallState) -> Self {
        Self {
            state,
            outcome: None,
            answered_at: None,
            ended_at: None,
            notice: None,
        }
    }

    /// Returns the digit of `CallResult`: 0 to 2 as in the callback, 3 queued, 4 dialling or ringing, 5 talking.
    pub fn digit(&self) -> char {
        match (self.state, self.outcome) {
            (CallState::Queued | CallState::Claimed, _) => '3',
            (CallState::Dialling | CallState::Ringing, _) => '4',
            (CallState::Answered, _) => '5',
            (CallState::Ended, outcome) => {
                let outcome = outcome.unwrap_or(Outcome::Interrupted);
                let ending = self.notice.as_ref().and_then(|notice| notice.ending);
                ending.map_or_else(
                    || outcome.callback_state(),
                    |ending| ending.callback_state(outcome),
                )
            }
        }
    }

    /// Returns the seconds from answer to hang-up, rounded up, or 0 if the call was never answered or is not over.
    pub fn seconds(&self) -> i64 {
        match (self.answered_at, self.ended_at) {
            (Some(answered), Some(ended)) => {
                ((ended.as_millisecond() - answered.as_millisecond()).max(0) + 999) / 1000
            }
            _ => 0,
        }
    }
}

/// Checks third-party data. It is returned unchanged, so only its size is checked.
pub fn user_data(value: Option<&str>, byte_limit: usize) -> Result<Option<String>, Refusal> {
    match value {
        Some(text) if text.len() > byte_limit => Err(Refusal::new(
            StatusCode::DataTooLong,
            format!("userData is longer than {byte_limit} bytes"),
        )),
        other => Ok(other.map(str::to_owned)),
    }
}

/// The older interface's `maxCallTime`: whole seconds. 0 means no limit of the request's own. A longer time than the platform allows is
/// reduced to the platform's limit.
pub fn max_talk(value: Option<&str>, platform_limit: Duration) -> Result<Option<u32>, Refusal> {
    let limit = u32::try_from(platform_limit.as_secs()).unwrap_or(u32::MAX);
    match value.map(str::parse::<u32>) {
        None | Some(Ok(0)) => Ok(None),
        Some(Ok(seconds)) => Ok(Some(seconds.min(limit))),
        Some(Err(_)) => Err(Refusal::field(
            "maxCallTime must be a whole number of seconds",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn talk_time_is_rounded_up_to_whole_seconds() {
        let at = |ms| Some(Timestamp::from_millisecond(ms).unwrap());
        let progress = |answered_at, ended_at| CallProgress {
            state: CallState::Ended,
            outcome: Some(Outcome::Talked),
            answered_at,
            ended_at,
            notice: None,
        };
        assert_eq!(progress(at(1000), at(1001)).seconds(), 1);
        assert_eq!(progress(at(1000), at(31_000)).seconds(), 30);
        assert_eq!(progress(None, at(31_000)).seconds(), 0);
        assert_eq!(
            progress(at(31_000), at(1000)).seconds(),
            0,
            "a clock that was set back"
        );
    }
}
