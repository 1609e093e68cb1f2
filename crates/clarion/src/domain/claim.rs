//! A claimed call: who holds it, and how far it has come.

use std::collections::HashMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::account::{AccountSid, AppId};
use super::attempt::AttemptNumber;
use super::call::{CallSid, NewCall, Priority};
use super::call_state::CallState;
use super::callback::{EventAttempt, OwedEvent};
use super::customer_limits::{CallLimits, Customer};
use super::leg::Leg;
use super::notice::keys::CalleeChoice;
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

/// What a node asks for when it claims: of each lane at most so many, as far as the limits of their customers and the caps of their callees let them start.
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
pub struct HeartbeatReply {
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
    /// How many of those were for earlier attempts.
    pub tries_before: u32,
    /// The claim counts for its callee: it was taken to be dialled.
    pub is_counted: bool,
    /// Money is set aside for it.
    pub is_reserved: bool,
    /// Legs of this attempt that were stored before it was claimed.
    pub legs_before: u32,
    /// Where it may go over no other trunk than this one.
    pub only_trunk: Option<String>,
    /// How long its attempt may still begin, from the claim on; not known of a call that was taken over.
    pub time_left: Option<SignedDuration>,
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
    /// What it is about is over.
    Resolved,
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
    /// Its number cannot be reached now: it loses its turn when its patience is over. That begins with the first time, however often it is tried meanwhile.
    pub is_held_back: bool,
}

/// No trunk of a route can be used, for so long already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadRoute {
    pub route: RouteKey,
    pub time: SignedDuration,
}
