//! A call in somebody's hands: leases, how far it has come, and everything that is written when it ends.

use std::fmt;

use jiff::Timestamp;

use super::account::{AccountSid, AppId};
use super::bill::BillLine;
use super::bill::call_type::CallType;
use super::bill::rating::Charge;
use super::call::{CallSid, NewCall};
use super::call_state::CallState;
use super::callback::OwedCallback;
use super::leg::Leg;
use super::outcome::Outcome;

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

/// The right to do something about a call. Whoever takes a call over gets a higher fence, and what the one before still tries to
/// write changes nothing.
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

/// This node among those that live: what all of them may use together is shared out by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeShare {
    /// How many of the others come before this one.
    pub rank: u32,
    /// This one included.
    pub nodes: u32,
}

impl NodeShare {
    pub const ALONE: Self = Self { rank: 0, nodes: 1 };

    /// This node's part of `all`: the parts of all nodes together are `all`, exactly. What cannot be divided goes to some of them, and not
    /// always to the same: it depends on the name of what is shared.
    pub fn part(self, all: u32, name: &str) -> u32 {
        if all == u32::MAX || self.nodes <= 1 {
            return all;
        }
        let turn = name.bytes().fold(0_u32, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        });
        let place = (u64::from(self.rank) + u64::from(turn)) % u64::from(self.nodes);
        let rest = place < u64::from(all % self.nodes);
        all / self.nodes + u32::from(rest)
    }
}

/// A wish for calls: of each application at most so many, as far as their callees may be called now.
#[derive(Debug, Clone)]
pub struct Claim {
    pub node: NodeId,
    pub now: Timestamp,
    pub lease_until: Timestamp,
    pub shares: Vec<(AppId, u32)>,
    pub caps: CalleeCaps,
}

/// How often one callee is called at most, counted when a call is claimed; 0: as often as asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CalleeCaps {
    pub per_minute: u32,
    pub per_hour: u32,
    pub per_day: u32,
}

/// A call that is ours to make, or to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedCall {
    pub call: NewCall,
    pub lease: Lease,
    /// How often it was dialled before.
    pub attempts: u32,
}

/// An application with calls in the queue, and when the first of them is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedApp {
    pub account: AccountSid,
    pub app: AppId,
    pub due_at: Timestamp,
}

/// Why a call that is still queued shall end without being dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overdue {
    /// It waited for too long.
    Expired,
    /// The operator cancelled it, or its account may not call any more.
    Cancelled,
}

/// A step of a call that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallUpdate {
    /// Committed before an INVITE leaves, for each leg: from then on it can be cancelled from another process.
    Dialling {
        /// The number of this attempt; its further legs have the same.
        attempt: u32,
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
}

impl CallUpdate {
    pub fn state(&self) -> CallState {
        match self {
            CallUpdate::Dialling { .. } => CallState::Dialling,
            CallUpdate::Ringing { .. } => CallState::Ringing,
            CallUpdate::Answered { .. } => CallState::Answered,
        }
    }

    /// What it takes to end the leg from another process.
    pub fn dialog(&self) -> Option<&str> {
        match self {
            CallUpdate::Dialling { dialog, .. } => Some(dialog),
            CallUpdate::Ringing { dialog, .. } | CallUpdate::Answered { dialog, .. } => {
                dialog.as_deref()
            }
        }
    }
}

/// How far a call had come when its process was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanedCall {
    pub claimed: ClaimedCall,
    pub state: CallState,
    pub trunk: Option<String>,
    pub dialled_at: Option<Timestamp>,
    pub rang_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    pub dialog: Option<String>,
    /// When its process was last known to live.
    pub last_seen: Timestamp,
}

/// The end of a call: outcome, bill line and owed callback go into one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedCall {
    pub claimed: ClaimedCall,
    pub outcome: Outcome,
    pub trunk: Option<String>,
    pub attempts: u32,
    pub dialled_at: Option<Timestamp>,
    pub rang_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    pub ended_at: Timestamp,
    pub sip_code: Option<u16>,
    pub reason: Option<String>,
    /// Every INVITE since it was claimed, in order.
    pub legs: Vec<Leg>,
    /// The day it is billed on, unless that is closed already.
    pub bill_day: jiff::civil::Date,
    /// Where the request named a respUrl.
    pub callback: Option<OwedCallback>,
}

impl EndedCall {
    pub fn sid(&self) -> &CallSid {
        &self.claimed.call.sid
    }

    /// Seconds from answer to hang-up, rounded up; 0 if never answered.
    pub fn seconds(&self) -> i64 {
        self.answered_at.map_or(0, |answered| {
            ((self.ended_at.as_millisecond() - answered.as_millisecond()).max(0) + 999) / 1000
        })
    }

    /// The same, as bills count them.
    pub fn whole_seconds(&self) -> u32 {
        u32::try_from(self.seconds())
            .unwrap_or(u32::MAX)
            .min(i32::MAX.unsigned_abs())
    }

    /// The call's line in the bill.
    pub fn bill_line(&self, charge: Charge) -> BillLine {
        let call = &self.claimed.call;
        BillLine {
            order_id: call.sid.to_string(),
            call_type: CallType::OutboundNotification,
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

/// Everything that is known of a call, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    pub sid: CallSid,
    pub account: AccountSid,
    pub app: AppId,
    pub called: String,
    pub number: super::phone_number::PhoneNumber,
    pub caller: Option<String>,
    pub state: CallState,
    pub outcome: Option<Outcome>,
    pub trunk: Option<String>,
    pub attempts: u32,
    pub accepted_at: Timestamp,
    pub due_at: Option<Timestamp>,
    pub dialled_at: Option<Timestamp>,
    pub rang_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub sip_code: Option<u16>,
    pub reason: Option<String>,
}

/// Which calls an operator wants to see, the newest first.
#[derive(Debug, Clone, Default)]
pub struct CallFilter {
    pub account: Option<AccountSid>,
    /// Only calls that have not ended.
    pub alive: bool,
    /// Only calls before this one: the next page.
    pub before: Option<CallSid>,
    pub limit: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_all_nodes_together_are_the_whole() {
        for name in ["provider", "backup", "x"] {
            for nodes in 1..=7 {
                for all in [0, 1, 2, 5, 30, 1000] {
                    let parts = (0..nodes).map(|rank| NodeShare { rank, nodes }.part(all, name));
                    assert_eq!(parts.sum::<u32>(), all, "{all} among {nodes} of {name}");
                }
            }
        }
        assert_eq!(
            NodeShare { rank: 1, nodes: 3 }.part(u32::MAX, "x"),
            u32::MAX
        );
    }
}
