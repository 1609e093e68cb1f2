//! A call as it is accepted, and its progress as clients see it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp, Zoned};

use super::account::{AccountSid, AppId, ID_LENGTH};
use super::bill::call_type::CallType;
use super::call_state::CallState;
use super::call_window::CallWindow;
use super::callback::{EventSubscription, RespUrl};
use super::hearing::AnsweredBy;
use super::notice::ending::{Confirmation, NoticeEnding};
use super::notice::keys::{CalleeChoice, NoticeKeys};
use super::notice::machine::MachineDetection;
use super::notice::{Notice, Recipient};
use super::outcome::Outcome;
use super::phone_number::PhoneNumber;
use super::prompt::Prompt;
use super::route::CallEnds;
use super::route::RouteKey;
use super::status_code::{Refusal, StatusCode};

/// `yyMMddHHmmss` in the platform's zone and twenty hex digits: five for the microseconds, fifteen random. These 32 characters sort by
/// time, down to the microsecond. So calls that are accepted together lie together in every index, and a batch dirties a page or two
/// instead of one per call. It is also the id of the bill record (`orderid`) of a call's first
/// attempt, so the primary key of the bill lines alone prevents billing it twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallSid(String);

impl CallSid {
    pub fn new(now: &Zoned, random: [u8; 8]) -> Self {
        Self::stamped(wall_micros(now), random)
    }

    /// Not greater than any that is made at this moment or later.
    pub fn first_at(moment: &Zoned) -> Self {
        Self::new(moment, [0; 8])
    }

    fn stamped(wall_micros: i64, random: [u8; 8]) -> Self {
        let wall = Timestamp::from_microsecond(wall_micros).unwrap_or(Timestamp::MAX);
        let wall = Offset::UTC.to_datetime(wall);
        let micros = wall.subsec_nanosecond() / 1000;
        let random = u64::from_be_bytes(random) >> 4;
        Self(format!(
            "{}{micros:05x}{random:015x}",
            wall.strftime("%y%m%d%H%M%S")
        ))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the local time in microseconds since local 1970.
fn wall_micros(now: &Zoned) -> i64 {
    now.timestamp().as_microsecond() + i64::from(now.offset().seconds()) * 1_000_000
}

/// Makes the callSids of one process. Each is greater than the one before, even within one microsecond, and even while the local time
/// repeats an hour or the clock has been set back: the stamp then advances by microseconds until the clock has caught up.
#[derive(Debug, Default)]
pub struct CallSids {
    last_micros: AtomicI64,
}

impl CallSids {
    pub fn create(&self, now: &Zoned, random: [u8; 8]) -> CallSid {
        let wall = wall_micros(now);
        let after = |last: i64| wall.max(last + 1);
        let last = self
            .last_micros
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
                Some(after(last))
            })
            .unwrap_or_else(|last| last);
        CallSid::stamped(after(last), random)
    }
}

impl FromStr for CallSid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() == ID_LENGTH && text.bytes().all(|b| b.is_ascii_alphanumeric()) {
            Ok(Self(text.to_owned()))
        } else {
            Err("a callSid is 32 letters or digits".to_owned())
        }
    }
}

impl fmt::Display for CallSid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

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
    fn a_call_sid_has_32_characters_and_sorts_by_time() {
        let sid = |text: &str, random| CallSid::new(&text.parse().unwrap(), random);
        let first = sid("2026-11-15T02:35:09.999999+08:00[Asia/Shanghai]", [0xff; 8]);
        let second = sid("2026-11-15T02:35:10+08:00[Asia/Shanghai]", [0xff; 8]);
        let third = sid("2026-11-15T02:35:10.000001+08:00[Asia/Shanghai]", [0; 8]);
        assert_eq!(first.as_str(), "261115023509f423ffffffffffffffff");
        assert_eq!(third.as_str(), "26111502351000001000000000000000");
        assert!(first < second && second < third && first.as_str().parse() == Ok(first.clone()));
    }

    #[test]
    fn the_call_sids_of_a_process_ascend_whatever_the_clock_does() {
        let sids = CallSids::default();
        let mut made = Vec::new();
        for (now, random) in [
            ("2028-10-29T02:59:59.999999+02:00[Europe/Berlin]", 0xff),
            // The same microsecond, and the hour that this zone has twice.
            ("2028-10-29T02:59:59.999999+02:00[Europe/Berlin]", 0),
            ("2028-10-29T02:00:00+01:00[Europe/Berlin]", 0),
            ("2028-10-29T02:30:00+01:00[Europe/Berlin]", 0xff),
            // The stamp is the local time again after the clock has passed these.
            ("2028-10-29T03:00:00.5+01:00[Europe/Berlin]", 0),
        ] {
            made.push(sids.create(&now.parse().unwrap(), [random; 8]));
        }
        assert!(made.is_sorted_by(|a, b| a < b), "{made:?}");
        assert_eq!(made[0].as_str(), "281029025959f423ffffffffffffffff");
        assert_eq!(made[3].as_str(), "28102903000000002fffffffffffffff");
        assert_eq!(made[4].as_str(), "2810290300007a120000000000000000");
    }

    #[test]
    fn threads_never_get_the_same_stamp() {
        let (sids, now) = (CallSids::default(), Timestamp::UNIX_EPOCH);
        let now = now.to_zoned(jiff::tz::TimeZone::UTC);
        let make = || (0..1000).map(|_| sids.create(&now, [7; 8]));
        let made = std::thread::scope(|threads| {
            let makers = [(); 4].map(|()| threads.spawn(|| make().collect::<Vec<_>>()));
            makers.map(|maker| maker.join().unwrap())
        });
        assert!(made.iter().all(|one| one.is_sorted()));
        let all: std::collections::HashSet<_> = made.iter().flatten().collect();
        assert_eq!(all.len(), 4000);
    }

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
