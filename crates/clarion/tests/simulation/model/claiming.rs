//! Taking calls: those that are due, those that shall end without being dialled, and those of nodes that are gone.

use std::collections::BTreeMap;

use clarion::domain::account::AccountSid;
use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::claim::{
    CalleeCaps, Claim, ClaimedCall, DueLane, Lane, LaneShare, Lease, LeaseEnd, NodeId,
    OrphanedCall, Overdue, QueuedLanes,
};
use clarion::domain::customer_limits::{Customer, LimitLedger};
use jiff::{SignedDuration, Timestamp};

use super::{ModelCall, Place, QueueModel, millis};

impl ModelCall {
    pub fn lane(&self) -> Lane {
        Lane {
            app: self.call.app.clone(),
            route: self.queueing.route.clone(),
            priority: self.queueing.priority,
        }
    }

    fn waiting(&self) -> Option<&Place> {
        self.place.as_ref().filter(|place| place.node.is_none())
    }

    /// Why it ends without being dialled, if it does.
    fn overdue(&self, now: i64) -> Option<Overdue> {
        let place = self.waiting()?;
        if place.expires_at <= now {
            return Some(Overdue::Expired);
        }
        place.is_cancelled.then_some(Overdue::Cancelled)
    }
}

impl QueueModel {
    pub fn queued_lanes(&self) -> QueuedLanes {
        let mut first: BTreeMap<Lane, (DueLane, i64)> = BTreeMap::new();
        for call in self.calls.values() {
            let Some(place) = call.waiting() else {
                continue;
            };
            if self.is_busy(&call.call.callee.clone()) || call.overdue(self.now).is_some() {
                continue;
            }
            let lane = DueLane {
                account: call.account().clone(),
                lane: call.lane(),
            };
            let (_, due) = first.entry(call.lane()).or_insert((lane, place.due_at));
            *due = place.due_at.min(*due);
        }
        let is_due = |(_, due): &&(DueLane, i64)| *due <= self.now;
        let due = first.values().filter(is_due);
        let next = first.values().filter(|lane| !is_due(lane));
        QueuedLanes {
            due: due.map(|(lane, _)| lane.clone()).collect(),
            next_due: next
                .map(|(_, due)| SignedDuration::from_millis(due - self.now))
                .min(),
        }
    }

    /// Takes what may be taken, lane by lane, the longest due first.
    pub fn claim(&mut self, claim: &Claim) -> Vec<ClaimedCall> {
        let mut ledger = self.ledger(claim);
        let mut taken = Vec::new();
        for share in &claim.shares {
            let mut left = share.calls;
            for sid in self.due_in(share) {
                if left.min(ledger.left(&share.account, &share.lane.app)) == 0 {
                    break;
                }
                if !self.may_be_claimed(&sid) {
                    continue;
                }
                let callee = self.calls[&sid].call.callee.clone();
                if let Some(until) = self.capped_until(&share.account, &callee, claim.caps) {
                    self.place_of(&sid).due_at = until;
                    continue;
                }
                taken.push(self.take(&sid, &claim.node));
                ledger.take(&share.account, &share.lane.app);
                left -= 1;
            }
        }
        if !taken.is_empty() {
            self.keep_tokens(&ledger);
        }
        taken
    }

    pub fn keep_tokens(&mut self, ledger: &LimitLedger) {
        for (customer, tokens) in ledger.tokens() {
            self.tokens.insert(customer.clone(), tokens);
        }
    }

    /// What the limits of the customers leave.
    pub fn ledger(&self, claim: &Claim) -> LimitLedger {
        let mut ledger = LimitLedger::default();
        for share in &claim.shares {
            for (customer, limits) in claim.limits_of(share) {
                let is_of = |call: &&ModelCall| {
                    call.is_under_way()
                        && match &customer {
                            Customer::Account(sid) => call.account() == sid,
                            Customer::App(app) => &call.call.app == app,
                        }
                };
                let under_way = self.calls.values().filter(is_of).count();
                let under_way = u32::try_from(under_way).expect("a few");
                let tokens = self.tokens.get(&customer).copied();
                ledger.add(customer, limits, under_way, tokens, self.now);
            }
        }
        ledger
    }

    /// Everything of a lane that is due, in its order.
    fn due_in(&self, share: &LaneShare) -> Vec<CallSid> {
        let mut due: Vec<_> = self
            .calls
            .iter()
            .filter(|(_, call)| call.lane() == share.lane)
            .filter_map(|(sid, call)| Some((call.waiting()?.due_at, sid)))
            .filter(|(due_at, _)| *due_at <= self.now)
            .collect();
        due.sort();
        due.into_iter().map(|(_, sid)| sid.clone()).collect()
    }

    /// It waits, is due, has not expired, is wanted, and nobody calls its callee.
    pub fn may_be_claimed(&self, sid: &CallSid) -> bool {
        let Some(call) = self.calls.get(sid) else {
            return false;
        };
        let is_due = |place: &Place| place.due_at <= self.now;
        call.waiting().is_some_and(is_due)
            && call.overdue(self.now).is_none()
            && !self.is_busy(&call.call.callee.clone())
    }

    pub fn is_busy(&self, callee: &str) -> bool {
        self.calls
            .values()
            .any(|call| call.is_under_way() && call.call.callee.clone() == callee)
    }

    fn capped_until(&self, account: &AccountSid, callee: &str, caps: CalleeCaps) -> Option<i64> {
        let until = |(cap, window): (u32, i64)| {
            let counts = |(of, at, sid): &&(String, i64, CallSid)| {
                let is_own = self.calls[sid].call.account == *account;
                is_own && of.as_str() == callee && *at > self.now - window
            };
            let mut times: Vec<_> = self
                .claims
                .iter()
                .filter(counts)
                .map(|(_, at, _)| *at)
                .collect();
            times.sort_unstable_by(|a, b| b.cmp(a));
            times.get(cap as usize - 1).map(|at| at + window)
        };
        caps.windows().filter_map(until).max()
    }

    /// Claims a call for being dialled.
    pub fn take(&mut self, sid: &CallSid, node: &NodeId) -> ClaimedCall {
        let callee = self.calls[sid].call.callee.clone();
        let is_same = |(of, _, claimed): &(String, i64, CallSid)| *of == callee && claimed == sid;
        if self.claims.iter().any(is_same) {
            self.claimed_again.insert(callee.clone());
        }
        self.claims.push((callee, self.now, sid.clone()));
        self.hold(sid, node, false)
    }

    fn hold(&mut self, sid: &CallSid, node: &NodeId, is_to_end: bool) -> ClaimedCall {
        let place = self.place_of(sid);
        place.state = CallState::Claimed;
        place.is_to_end = is_to_end;
        self.hand_over(sid, node)
    }

    /// The lease of a call is this node's from now on.
    fn hand_over(&mut self, sid: &CallSid, node: &NodeId) -> ClaimedCall {
        let call = self.calls.get_mut(sid).expect("it is known");
        let place = call.place.as_mut().expect("it has not ended");
        place.node = Some(node.clone());
        place.fence += 1;
        ClaimedCall {
            call: call.call.clone(),
            lease: Lease {
                node: node.clone(),
                fence: place.fence,
            },
            attempt: place.attempt,
            tries: place.tries,
            tries_before: place.tries_before,
            is_counted: !place.is_to_end,
            legs_before: place.legs,
            only_trunk: None,
            time_left: None,
            is_reserved: false,
        }
    }

    fn place_of(&mut self, sid: &CallSid) -> &mut Place {
        let call = self.calls.get_mut(sid).expect("it is known");
        call.place.as_mut().expect("it has not ended")
    }

    pub fn claim_overdue(&mut self, node: &NodeId, limit: u32) -> Vec<(ClaimedCall, Overdue)> {
        let overdue =
            |(sid, call): (&CallSid, &ModelCall)| Some((sid.clone(), call.overdue(self.now)?));
        let overdue: Vec<_> = self.calls.iter().filter_map(overdue).collect();
        let overdue = overdue.into_iter().take(limit as usize);
        overdue
            .map(|(sid, why)| (self.hold(&sid, node, true), why))
            .collect()
    }

    pub fn take_orphaned(
        &mut self,
        node: &NodeId,
        lease: SignedDuration,
        abandoned: &[CallSid],
        limit: u32,
    ) -> Vec<OrphanedCall> {
        let steady_since = self.nodes.get(node.as_str()).map(|row| row.steady_since);
        let is_steady = steady_since.is_some_and(|since| since <= self.now - millis(lease));
        let is_lost = |holder: &NodeId| match self.lease_end {
            LeaseEnd::Process => true,
            LeaseEnd::Time => {
                let row = self.nodes.get(holder.as_str());
                is_steady && row.is_some_and(|row| row.lease_until <= self.now)
            }
        };
        let mut orphaned = self.sids(|call| match call.holder() {
            None => false,
            Some(holder) if holder == node => abandoned.contains(&call.call.sid),
            Some(holder) => is_lost(holder),
        });
        orphaned.truncate(limit as usize);
        let orphaned = orphaned.into_iter();
        orphaned.map(|sid| self.take_over(&sid, node)).collect()
    }

    fn take_over(&mut self, sid: &CallSid, node: &NodeId) -> OrphanedCall {
        let holder = self.calls[sid].holder().expect("it is held").clone();
        let heartbeat = self.nodes.get(holder.as_str()).map(|row| row.heartbeat_at);
        let accepted_at = self.calls[sid].call.accepted_at;
        let place = self.place_of(sid);
        let time = |millis| Timestamp::from_millisecond(millis).expect("a time of this age");
        // What was known when it was taken over for the first time stays.
        let seen = place.seen_at.or(heartbeat).map(time);
        let moments = [seen, place.answered_at, place.rang_at, place.dialled_at];
        let last_seen = moments.into_iter().flatten().next().unwrap_or(accepted_at);
        place.seen_at = Some(last_seen.as_millisecond());
        let place = place.clone();
        OrphanedCall {
            claimed: self.hand_over(sid, node),
            state: place.state,
            trunk: place.trunk,
            dialled_at: place.dialled_at,
            rang_at: place.rang_at,
            answered_at: place.answered_at,
            choice: place.choice,
            dialog: place.dialog,
            last_seen,
        }
    }
}
