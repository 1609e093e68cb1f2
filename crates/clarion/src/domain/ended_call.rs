//! The end of a call, or of one attempt of a notice: everything that goes into its commit, and what follows.

use std::borrow::Cow;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::attempt::AttemptNumber;
use super::bill::BillLine;
use super::bill::rating::Charge;
use super::call::{CallKind, CallSid};
use super::callback::{OwedCallback, OwedEvent, StateEvent};
use super::claim::ClaimedCall;
use super::do_not_call::DoNotCallSource;
use super::hearing::AnsweredBy;
use super::leg::Leg;
use super::notice::Recipient;
use super::notice::ending::{Confirmation, NoticeEnd, NoticeEnding};
use super::notice::keys::CalleeChoice;
use super::outcome::Outcome;
use super::route::RouteKey;

/// The end of a call. Its outcome, its bill line and its owed callback go into one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedCall {
    pub claimed: ClaimedCall,
    pub outcome: Outcome,
    /// What the callee has said by keys.
    pub choice: Option<CalleeChoice>,
    /// The name of the voice that spoke the text.
    pub voice: Option<String>,
    pub trunk: Option<String>,
    pub tries: u32,
    pub dialled_at: Option<Timestamp>,
    pub rang_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    pub ended_at: Timestamp,
    pub sip_code: Option<u16>,
    pub reason: Option<String>,
    /// Every INVITE since it was claimed, in order.
    pub legs: Vec<Leg>,
    /// The day on which the call is billed, unless that day is closed already.
    pub bill_day: jiff::civil::Date,
    /// What is said of the whole, where it was an attempt of a notice.
    pub notice: Option<NoticeEnd>,
    /// The callback, if the request named a respUrl.
    pub callback: Option<OwedCallback>,
    /// What those who watch it are told with that.
    pub events: Vec<OwedEvent>,
    /// How its notice ends instead, where that has been called off meanwhile.
    pub if_called_off: Option<Box<CalledOff>>,
}

/// What is written of a call as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WholeEnd<'a> {
    pub outcome: Outcome,
    pub dialled_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    pub ended_at: Timestamp,
    pub ending: Option<NoticeEnding>,
    pub confirmed: Option<&'a Confirmation>,
    pub answered_by: Option<AnsweredBy>,
}

/// The next attempt of a notice, as it is queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextDial {
    pub to: Recipient,
    pub route: RouteKey,
    pub pause: SignedDuration,
    /// As `Queueing::patience`.
    pub patience: Option<SignedDuration>,
    /// So long a talk must be paid for, where money is a limit.
    pub longest_talk: u32,
}

/// The end of a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeOver {
    pub end: NoticeEnd,
    pub callback: Option<OwedCallback>,
    pub events: Vec<OwedEvent>,
}

/// Why a notice was called off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOff {
    /// Somebody does not want it any more.
    Cancelled,
    /// Somebody wanted it no more if nobody had answered by then.
    CancelledBefore,
    /// What it was about is over.
    Resolved,
}

/// The end of a notice that was called off, for either reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledOff {
    pub cancelled: NoticeOver,
    pub resolved: NoticeOver,
}

impl CalledOff {
    pub fn by(&self, reason: CallOff) -> &NoticeOver {
        match reason {
            CallOff::Cancelled | CallOff::CancelledBefore => &self.cancelled,
            CallOff::Resolved => &self.resolved,
        }
    }
}

/// The end of an attempt whose notice goes on, and the birth of the next attempt. One that was never dialled only makes way for another number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoingOn {
    pub ended: EndedCall,
    pub next: NextDial,
    /// How it ends instead, where it has been called off.
    pub if_called_off: CalledOff,
    /// How it ends instead, where the next attempt cannot be paid.
    pub if_unpaid: NoticeOver,
}

impl GoingOn {
    /// The same attempt as the last one of its notice.
    pub fn as_last(&self, over: &NoticeOver) -> EndedCall {
        self.ended.clone().over(over.clone())
    }
}

/// What came of going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WentOn {
    Yes,
    /// The notice is over instead.
    Over(NoticeEnding),
    /// The call is not ours any more.
    NotOurs,
}

impl EndedCall {
    pub fn sid(&self) -> &CallSid {
        &self.claimed.call.sid
    }

    /// Who has answered, where the request wanted to know. Only the last leg can have been answered. Whoever presses a key is a human, whatever it sounded
    /// like before.
    pub fn answered_by(&self) -> Option<AnsweredBy> {
        self.claimed.call.machine()?;
        if self.choice.is_some() {
            return Some(AnsweredBy::Human);
        }
        self.legs.last()?.heard?.answered_by
    }

    /// Who says that its number must not be called any more, where the callee has said so.
    pub fn unwanted(&self) -> Option<DoNotCallSource> {
        let is_stopped = self.choice == Some(CalleeChoice::Stopped);
        is_stopped.then(|| DoNotCallSource::Callee(self.sid().clone()))
    }

    /// What those who watch it are told when all is over: the end of its attempt, and that of the whole.
    pub fn last_events(&self, outcome: Outcome, zone: &TimeZone) -> Vec<OwedEvent> {
        let over = StateEvent::Ended(outcome.as_str());
        let over = OwedEvent::new(&self.claimed.call, over, None, self.ended_at, zone);
        self.hang_up_event(zone).into_iter().chain(over).collect()
    }

    /// What they are told when an attempt that was dialled is over.
    pub fn hang_up_event(&self, zone: &TimeZone) -> Option<OwedEvent> {
        if !self.was_dialled(self.claimed.legs_before) {
            return None;
        }
        let event = StateEvent::HangUp(self.outcome.as_str());
        let about = Some(self.claimed.about());
        OwedEvent::new(&self.claimed.call, event, about, self.ended_at, zone)
    }

    /// The notice ends with it, in this way.
    #[must_use]
    pub fn over(self, over: NoticeOver) -> Self {
        Self {
            notice: Some(over.end),
            callback: over.callback,
            events: over.events,
            if_called_off: None,
            ..self
        }
    }

    /// The same end, for a store that knows whether the notice has been called off.
    pub fn judged(&self, called_off: Option<CallOff>) -> Cow<'_, Self> {
        match (&self.if_called_off, called_off) {
            // They were quicker, and have heard it to the end.
            (_, Some(CallOff::CancelledBefore)) if self.outcome == Outcome::Talked => {
                Cow::Borrowed(self)
            }
            (Some(over), Some(reason)) => Cow::Owned(self.clone().over(over.by(reason).clone())),
            _ => Cow::Borrowed(self),
        }
    }

    /// What the source of an alert is told where the callee has asked for silence.
    pub fn silence(&self) -> Option<OwedCallback> {
        let call = &self.claimed.call;
        let silence = call.notice.as_deref()?.silence.as_ref()?;
        let key = self.choice.and_then(CalleeChoice::confirming_key)?;
        (key == silence.key).then(|| OwedCallback::of_silence(silence, call, self.ended_at))
    }

    /// What is written of the call as a whole: of a simple one, what is known of its only attempt.
    pub fn whole(&self) -> WholeEnd<'_> {
        match &self.notice {
            Some(notice) => WholeEnd {
                outcome: notice.outcome,
                dialled_at: notice.dialled_at,
                answered_at: notice.answered_at,
                // Not that of its last attempt: how long it is remembered counts from here.
                ended_at: self.ended_at,
                ending: Some(notice.ending),
                confirmed: notice.confirmed.as_ref(),
                answered_by: notice.answered_by,
            },
            None => WholeEnd {
                outcome: self.outcome,
                dialled_at: self.dialled_at,
                answered_at: self.answered_at,
                ended_at: self.ended_at,
                ending: None,
                confirmed: None,
                answered_by: None,
            },
        }
    }

    /// Whether anything was sent for this attempt, with what was stored of it before.
    pub fn was_dialled(&self, legs_before: u32) -> bool {
        self.dialled_at.is_some() || legs_before > 0 || !self.legs.is_empty()
    }

    /// As the attempts of a notice are counted. One that came back to the queue and ended there was dialled too: its legs tell when.
    pub fn attempt_dialled_at(&self, legs_before: u32) -> Option<Timestamp> {
        let was_dialled = self.claimed.call.notice.is_some() && self.was_dialled(legs_before);
        self.dialled_at.or(was_dialled.then_some(self.ended_at))
    }

    /// Whether the attempt has a row and a bill line. A call that was never dialled has those of its first attempt.
    pub fn has_line(&self, legs_before: u32, is_last: bool) -> bool {
        self.was_dialled(legs_before) || is_last && self.claimed.attempt == AttemptNumber::FIRST
    }

    /// Returns the seconds from answer to hang-up, rounded up, or 0 if the call was never answered.
    pub fn seconds(&self) -> i64 {
        self.answered_at.map_or(0, |answered| {
            ((self.ended_at.as_millisecond() - answered.as_millisecond()).max(0) + 999) / 1000
        })
    }

    /// Returns the seconds in the type that bills use.
    pub fn whole_seconds(&self) -> u32 {
        u32::try_from(self.seconds())
            .unwrap_or(u32::MAX)
            .min(i32::MAX.unsigned_abs())
    }

    /// What the record keeps instead of the prompt, where that is to be forgotten.
    pub fn forgotten_prompt(&self) -> Option<String> {
        let call = &self.claimed.call;
        let forgotten = (call.kind == CallKind::Verification).then(|| call.prompt.forgotten());
        forgotten.map(|prompt| serde_json::to_string(&prompt).expect("it has only text keys"))
    }

    /// Returns the call's line in the bill.
    pub fn bill_line(&self, charge: Charge) -> BillLine {
        let call = &self.claimed.call;
        BillLine {
            order_id: self.claimed.attempt.order_id(&call.sid),
            call_type: call.kind.call_type(),
            call_sid: Some(call.sid.to_string()),
            caller: call.caller.clone().unwrap_or_default(),
            called: call.called.clone(),
            started_at: self.dialled_at.unwrap_or(call.accepted_at),
            answered_at: self.answered_at,
            ended_at: self.ended_at,
            seconds: self.whole_seconds(),
            units: charge.units,
            rate: charge.rate,
            fee: charge.fee,
            outcome: self.outcome.as_str().to_owned(),
            user_data: call.user_data.clone(),
        }
    }
}
