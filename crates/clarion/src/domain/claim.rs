//! A claimed call: its lease, its progress, and everything that is written when it ends.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::account::{AccountSid, AppId};
use super::attempt::AttemptNumber;
use super::bill::BillLine;
use super::bill::rating::Charge;
use super::call::{CallKind, CallSid, NewCall, Priority};
use super::call_state::CallState;
use super::callback::{EventAttempt, OwedCallback, OwedEvent};
use super::customer_limits::{CallLimits, Customer};
use super::do_not_call::DoNotCallSource;
use super::leg::Leg;
use super::notice::keys::CalleeChoice;
use super::notice::{Confirmation, Notice, NoticeEnd, NoticeEnding, Recipient};
use super::outcome::Outcome;
use super::phone_number::PhoneNumber;
use super::route::RouteKey;

/// One life of one server process. Leases belong to it and end with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeId(String);

impl NodeId {
    pub fn new(random: [u8; 8]) -> Self {
        Self(format!("node-{:016x}", u64::from_be_bytes(random)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The right to change a call. A node that takes a call over gets a higher fence, and later writes of the node before it change nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub node: NodeId,
    pub fence: i64,
}

/// What ends the leases of a node that says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseEnd {
    /// Time: other nodes take its calls over when no heartbeat has come for the length of a lease.
    Time,
    /// Only the end of its process: nobody else can serve from the same database before that.
    Process,
}

/// Where a call waits: with the calls of its application that go the same way and are as urgent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    pub app: AppId,
    pub route: RouteKey,
    pub priority: Priority,
}

/// A lane with a call that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueLane {
    pub account: AccountSid,
    pub lane: Lane,
}

/// The lanes with something due, and how long it takes until a call of another lane is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueuedLanes {
    pub due: Vec<DueLane>,
    pub next_due: Option<SignedDuration>,
}

/// So many calls of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneShare {
    pub account: AccountSid,
    pub lane: Lane,
    pub calls: u32,
}

/// A wish for calls: of each lane at most so many, as far as the limits of their customers and the caps of their callees let them start.
#[derive(Debug, Clone)]
pub struct Claim {
    pub node: NodeId,
    pub shares: Vec<LaneShare>,
    /// Of every account and application among the shares.
    pub limits: HashMap<Customer, CallLimits>,
    pub caps: CalleeCaps,
}

impl Claim {
    /// The limits of a share's account and application.
    pub fn limits_of(&self, share: &LaneShare) -> [(Customer, CallLimits); 2] {
        let customers = [
            Customer::Account(share.account.clone()),
            Customer::App(share.lane.app.clone()),
        ];
        customers.map(|customer| {
            let limits = self.limits.get(&customer).copied();
            (customer, limits.unwrap_or(CallLimits::NONE))
        })
    }
}

/// How often one callee may be called, counted when a call is claimed. 0 means without limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CalleeCaps {
    pub per_minute: u32,
    pub per_hour: u32,
    pub per_day: u32,
}

impl CalleeCaps {
    /// What a person can be expected to bear.
    pub const CONSIDERATE: Self = Self {
        per_minute: 1,
        per_hour: 5,
        per_day: 20,
    };

    /// Each cap with the milliseconds that it counts over; those that are not set are left out.
    pub fn windows(self) -> impl Iterator<Item = (u32, i64)> {
        let caps = [
            (self.per_minute, 60_000),
            (self.per_hour, 3_600_000),
            (self.per_day, 86_400_000),
        ];
        caps.into_iter().filter(|(cap, _)| *cap > 0)
    }
}

/// What a node learns when its heartbeat is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeStanding {
    /// Nodes that live, this one included.
    pub nodes: u32,
    /// What the database's clock says, where it has one of its own.
    pub database_time: Option<Timestamp>,
}

/// A call that this node may make or end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedCall {
    pub call: NewCall,
    pub lease: Lease,
    /// The attempt that the call is at.
    pub attempt: AttemptNumber,
    /// How many trunks were tried for the call before.
    pub tries: u32,
    /// The claim counts for its callee: it was taken to be dialled.
    pub is_counted: bool,
    /// Legs of this attempt that were stored before it was claimed.
    pub legs_before: u32,
}

impl ClaimedCall {
    /// What events say of its attempt.
    pub fn about(&self) -> EventAttempt<'_> {
        EventAttempt {
            attempt: self.attempt.number(),
            called: &self.call.called,
        }
    }
}

/// Why a queued call ends without being dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overdue {
    /// The call waited for too long.
    Expired,
    /// The operator cancelled the call, or its account may not call any more.
    Cancelled,
    /// Its number was held back for too long: another one of its notice has its turn.
    HeldBack,
}

/// A call under way that shall end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelledCall {
    pub sid: CallSid,
    /// Only if nobody has answered.
    pub before_answer: bool,
}

/// A step of a call under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallUpdate {
    /// Committed before an INVITE leaves, for each leg: from then on it can be cancelled from another process.
    Dialling {
        /// How many trunks were tried with this one; its further legs have the same number.
        tries: u32,
        trunk: String,
        at: Timestamp,
        dialog: String,
    },
    Ringing {
        at: Timestamp,
        dialog: Option<String>,
    },
    Answered {
        at: Timestamp,
        dialog: Option<String>,
    },
    /// Committed before the callee hears that it was understood.
    Chosen { at: Timestamp, choice: CalleeChoice },
}

impl CallUpdate {
    pub fn state(&self) -> CallState {
        match self {
            CallUpdate::Dialling { .. } => CallState::Dialling,
            CallUpdate::Ringing { .. } => CallState::Ringing,
            CallUpdate::Answered { .. } | CallUpdate::Chosen { .. } => CallState::Answered,
        }
    }

    /// Returns the dialog snapshot: what it takes to end the leg from another process.
    pub fn dialog(&self) -> Option<&str> {
        match self {
            CallUpdate::Dialling { dialog, .. } => Some(dialog),
            CallUpdate::Ringing { dialog, .. } | CallUpdate::Answered { dialog, .. } => {
                dialog.as_deref()
            }
            CallUpdate::Chosen { .. } => None,
        }
    }
}

/// A step of a call, and what those who watch it are told of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedUpdate {
    pub update: CallUpdate,
    pub event: Option<OwedEvent>,
}

impl From<CallUpdate> for WatchedUpdate {
    fn from(update: CallUpdate) -> Self {
        Self {
            update,
            event: None,
        }
    }
}

/// A call whose process was lost, with its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanedCall {
    pub claimed: ClaimedCall,
    pub state: CallState,
    pub trunk: Option<String>,
    pub dialled_at: Option<Timestamp>,
    pub rang_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    pub choice: Option<CalleeChoice>,
    pub dialog: Option<String>,
    /// When the process of the call was last known to live.
    pub last_seen: Timestamp,
}

impl OrphanedCall {
    /// The last moment of which anything is known.
    pub fn last_known(&self) -> Timestamp {
        [self.answered_at, self.rang_at, self.dialled_at]
            .into_iter()
            .flatten()
            .fold(self.last_seen, Ord::max)
    }
}

/// How a call goes back to the queue. Nothing has rung, so it does not count for its callee either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requeue {
    /// The call is due after this time. Without a pause it keeps its place.
    pub pause: SignedDuration,
    /// How many trunks were tried in all.
    pub tries: u32,
    /// Every INVITE since it was claimed, in order.
    pub legs: Vec<Leg>,
}

/// The end of a call. Its outcome, its bill line and its owed callback go into one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedCall {
    pub claimed: ClaimedCall,
    pub outcome: Outcome,
    /// What the callee has said by keys.
    pub choice: Option<CalleeChoice>,
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
    /// How its notice ends instead, where that has been cancelled meanwhile.
    pub if_cancelled: Option<Box<NoticeOver>>,
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

/// The end of an attempt whose notice goes on, and the birth of the next attempt. One that was never dialled only makes way for another number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoingOn {
    pub ended: EndedCall,
    pub next: NextDial,
    /// How it ends instead, where it has been cancelled.
    pub if_cancelled: NoticeOver,
    /// How it ends instead, where the next attempt cannot be paid.
    pub if_unpaid: NoticeOver,
}

impl GoingOn {
    /// The same attempt as the last one of its notice.
    pub fn as_last(&self, over: &NoticeOver) -> EndedCall {
        self.ended.clone().over(over.clone())
    }
}

/// What became of the wish to go on.
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

    /// Its callee wants something.
    pub fn callee(&self) -> DoNotCallSource {
        DoNotCallSource::Callee(self.sid().clone())
    }

    /// The notice ends with it, in this way.
    #[must_use]
    pub fn over(self, over: NoticeOver) -> Self {
        Self {
            notice: Some(over.end),
            callback: over.callback,
            events: over.events,
            if_cancelled: None,
            ..self
        }
    }

    /// The same end, for a store that knows whether the notice has been cancelled.
    pub fn judged(&self, is_cancelled: bool) -> Cow<'_, Self> {
        match &self.if_cancelled {
            Some(over) if is_cancelled => Cow::Owned(self.clone().over((**over).clone())),
            _ => Cow::Borrowed(self),
        }
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
            },
            None => WholeEnd {
                outcome: self.outcome,
                dialled_at: self.dialled_at,
                answered_at: self.answered_at,
                ended_at: self.ended_at,
                ending: None,
                confirmed: None,
            },
        }
    }

    /// Whether anything was sent for this attempt, with what was stored of it before.
    pub fn was_dialled(&self, legs_before: u32) -> bool {
        self.dialled_at.is_some() || legs_before > 0 || !self.legs.is_empty()
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
    pub sip_code: Option<u16>,
    pub reason: Option<String>,
    /// Until it has ended.
    pub current: Option<CurrentAttempt>,
    /// What the request asked for beyond one call.
    pub notice: Option<Arc<Notice>>,
    /// How a notice ended.
    pub ending: Option<NoticeEnding>,
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

/// The calls that an operator wants to see, the newest first.
#[derive(Debug, Clone, Default)]
pub struct CallFilter {
    pub account: Option<AccountSid>,
    /// Only calls that have not ended.
    pub alive: bool,
    /// Only calls before this one, for the next page.
    pub before: Option<CallSid>,
    pub limit: u32,
}
