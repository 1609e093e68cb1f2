//! The call queue as it is meant to be: plain maps, no SQL, a clock that whoever drives it moves. It is the store of the simulation, and
//! what the databases are compared with.
//!
//! Nothing is parked here and nothing is set aside before it is taken: a call that waits may be claimed whenever it is due, has not
//! expired, is wanted, and nobody calls its callee. That the stores keep a parked call apart must make no difference.

mod claiming;
mod sharing;

use std::collections::{BTreeMap, BTreeSet};

use clarion::domain::account::{AccountSid, AppId};
use clarion::domain::attempt::{Attempt, AttemptNumber};
use clarion::domain::call::{CallSid, NewCall, Queueing};
use clarion::domain::call_state::CallState;
use clarion::domain::callback::OwedCallback;
use clarion::domain::claim::{
    CallUpdate, CancelledCall, HeartbeatReply, Lease, LeaseEnd, NodeId, Requeue,
};
use clarion::domain::customer_limits::{Customer, StartTokens};
use clarion::domain::ended_call::{CallOff, EndedCall, GoingOn, WentOn};
use clarion::domain::notice::ending::NoticeEnding;
use clarion::domain::notice::keys::CalleeChoice;
use clarion::domain::request_key::{Accepted, AcceptedCall, KnownRequest, RequestId};
use clarion::domain::trunk_grants::NodePart;
use jiff::{SignedDuration, Timestamp};

/// What is left of a lease must be more than this for an INVITE to leave, in milliseconds.
const MARGIN: i64 = 500;

#[derive(Debug)]
pub struct QueueModel {
    pub lease_end: LeaseEnd,
    /// The store's clock, in milliseconds.
    pub now: i64,
    pub calls: BTreeMap<CallSid, ModelCall>,
    requests: BTreeMap<(AppId, String), KnownRequest>,
    nodes: BTreeMap<String, NodeRow>,
    /// Callee, time and call of every claim that counts for the caps.
    claims: Vec<(String, i64, CallSid)>,
    /// Callees whom one call was claimed for more than once.
    claimed_again: BTreeSet<String>,
    tokens: BTreeMap<Customer, StartTokens>,
    /// Of each trunk, the part of each node.
    parts: BTreeMap<(String, String), NodePart>,
    pub callbacks: Vec<OwedCallback>,
    /// Of every attempt that was dialled, and of calls that never were.
    pub bill_lines: Vec<EndedCall>,
    /// Of every call.
    pub ends: Vec<EndedCall>,
}

/// A call, from when it is accepted.
#[derive(Debug)]
pub struct ModelCall {
    pub call: NewCall,
    pub queueing: Queueing,
    /// Those that are over, with what was written of each.
    pub attempts: Vec<Attempt>,
    /// Until it has ended.
    pub place: Option<Place>,
    /// By the store's clock.
    expires_at: i64,
    /// Somebody wanted that before it had ended.
    pub was_cancelled: bool,
}

/// A place in the queue.
#[derive(Debug, Clone)]
pub struct Place {
    due_at: i64,
    expires_at: i64,
    pub state: CallState,
    pub attempt: AttemptNumber,
    pub tries: u32,
    /// Of those, for earlier attempts.
    tries_before: u32,
    /// Of this attempt, stored before it was claimed.
    legs: u32,
    pub node: Option<NodeId>,
    fence: i64,
    /// It was taken to be ended, not to be dialled: its callee is not busy with it.
    is_to_end: bool,
    pub trunk: Option<String>,
    pub dialled_at: Option<Timestamp>,
    pub rang_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    pub choice: Option<CalleeChoice>,
    dialog: Option<String>,
    seen_at: Option<i64>,
    is_cancelled: bool,
}

impl Place {
    /// The same call, in nobody's hands.
    fn waiting_again(&self) -> Self {
        Self {
            state: CallState::Queued,
            node: None,
            is_to_end: false,
            trunk: None,
            dialled_at: None,
            dialog: None,
            seen_at: None,
            ..self.clone()
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct NodeRow {
    steady_since: i64,
    heartbeat_at: i64,
    lease_until: i64,
}

impl ModelCall {
    fn account(&self) -> &AccountSid {
        &self.call.account
    }

    fn holder(&self) -> Option<&NodeId> {
        self.place.as_ref()?.node.as_ref()
    }

    pub fn expires_at(&self) -> Timestamp {
        Timestamp::from_millisecond(self.expires_at).expect("a time of this age")
    }

    /// It waits for its end.
    pub fn is_cancelled(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.is_cancelled)
    }

    /// It is being made: it keeps its callee busy and counts for its customer.
    fn is_under_way(&self) -> bool {
        let place = self.place.as_ref();
        place.is_some_and(|place| place.node.is_some() && !place.is_to_end)
    }
}

impl QueueModel {
    pub fn new(lease_end: LeaseEnd, now: i64) -> Self {
        Self {
            lease_end,
            now,
            calls: BTreeMap::new(),
            requests: BTreeMap::new(),
            nodes: BTreeMap::new(),
            claims: Vec::new(),
            claimed_again: BTreeSet::new(),
            tokens: BTreeMap::new(),
            parts: BTreeMap::new(),
            callbacks: Vec::new(),
            bill_lines: Vec::new(),
            ends: Vec::new(),
        }
    }

    pub fn accept(&mut self, order: AcceptedCall) -> Accepted {
        if let Some(key) = &order.request {
            let name = (order.call.app.clone(), key.id.as_str().to_owned());
            let known = self.requests.entry(name).or_insert_with(|| KnownRequest {
                call: order.call.sid.clone(),
                accepted_at: order.call.accepted_at,
                digest: key.digest.clone(),
            });
            if known.call != order.call.sid {
                return Accepted::Before(known.clone());
            }
        }
        let place = Place {
            due_at: self.now + millis(order.queueing.pause),
            expires_at: self.now + millis(order.queueing.valid_for),
            state: CallState::Queued,
            attempt: AttemptNumber::FIRST,
            tries: 0,
            tries_before: 0,
            legs: 0,
            node: None,
            fence: 0,
            is_to_end: false,
            trunk: None,
            dialled_at: None,
            rang_at: None,
            answered_at: None,
            choice: None,
            dialog: None,
            seen_at: None,
            is_cancelled: false,
        };
        let call = ModelCall {
            call: order.call,
            queueing: order.queueing,
            attempts: Vec::new(),
            expires_at: place.expires_at,
            place: Some(place),
            was_cancelled: false,
        };
        self.calls.entry(call.call.sid.clone()).or_insert(call);
        Accepted::New
    }

    pub fn find_request(&self, app: &AppId, id: &RequestId) -> Option<KnownRequest> {
        let name = (app.clone(), id.as_str().to_owned());
        self.requests.get(&name).cloned()
    }

    pub fn advance(&mut self, sid: &CallSid, lease: &Lease, update: &CallUpdate) -> bool {
        let is_dialled = matches!(update, CallUpdate::Dialling { .. });
        let has_margin = self.lease_end == LeaseEnd::Process
            || self.lease_until(&lease.node) > self.now + MARGIN;
        let Some(place) = self.held(sid, lease) else {
            return false;
        };
        if !may_follow(place.state, update) || is_dialled && !has_margin {
            return false;
        }
        let confirms = matches!(
            update,
            CallUpdate::Chosen {
                choice: CalleeChoice::Confirmed(_),
                ..
            }
        );
        if confirms && place.is_cancelled {
            return false;
        }
        if update.state().number() > place.state.number() {
            place.state = update.state();
        }
        match update {
            CallUpdate::Dialling {
                tries, trunk, at, ..
            } => {
                place.tries = *tries;
                place.trunk = Some(trunk.clone());
                place.dialled_at.get_or_insert(*at);
            }
            CallUpdate::Ringing { at, .. } => _ = place.rang_at.get_or_insert(*at),
            CallUpdate::Answered { at, .. } => _ = place.answered_at.get_or_insert(*at),
            CallUpdate::Chosen { choice, .. } => _ = place.choice.get_or_insert(*choice),
        }
        if let Some(dialog) = update.dialog() {
            place.dialog = Some(dialog.to_owned());
        }
        true
    }

    pub fn requeue(&mut self, sid: &CallSid, lease: &Lease, requeue: &Requeue) -> bool {
        let now = self.now;
        let Some(place) = self.held(sid, lease) else {
            return false;
        };
        if !place.state.may_become(CallState::Queued) {
            return false;
        }
        let is_counted = !place.is_to_end;
        if requeue.pause > SignedDuration::ZERO {
            place.due_at = now + millis(requeue.pause);
        }
        *place = Place {
            tries: requeue.tries,
            legs: place.legs + u32::try_from(requeue.legs.len()).expect("a few"),
            ..place.waiting_again()
        };
        if is_counted {
            self.uncount(sid);
        }
        true
    }

    /// The last claim does not count for its callee: nothing has rung.
    fn uncount(&mut self, sid: &CallSid) {
        let callee = &self.calls[sid].call.callee;
        let is_last = |(of, _, claimed): &(String, i64, CallSid)| claimed == sid && of == callee;
        if let Some(last) = self.claims.iter().rposition(is_last) {
            self.claims.remove(last);
        }
    }

    pub fn end(&mut self, ended: &EndedCall) -> bool {
        let (sid, lease) = (ended.sid().clone(), ended.claimed.lease.clone());
        let Some(place) = self.held(&sid, &lease) else {
            return false;
        };
        let called_off = place.is_cancelled.then_some(CallOff::Cancelled);
        let ended = ended.judged(called_off).into_owned();
        self.finish(ended);
        true
    }

    fn finish(&mut self, ended: EndedCall) {
        let call = self.calls.get_mut(ended.sid()).expect("it is held");
        let legs_before = call.place.take().map_or(0, |place| place.legs);
        self.callbacks.extend(ended.callback.clone());
        self.ends.push(ended.clone());
        self.keep_attempt(ended, legs_before, true);
    }

    /// An attempt that was dialled has a line; a call that never was has one too.
    fn keep_attempt(&mut self, ended: EndedCall, legs_before: u32, is_last: bool) {
        if !ended.has_line(legs_before, is_last) {
            return;
        }
        let call = self.calls.get_mut(ended.sid()).expect("it is held");
        call.attempts.push(Attempt {
            number: ended.claimed.attempt,
            to: ended.claimed.call.number.clone(),
            outcome: ended.outcome,
            dialled_at: ended.attempt_dialled_at(legs_before),
            answered_at: ended.answered_at,
            ended_at: ended.ended_at,
            choice: ended.choice,
            answered_by: ended.answered_by(),
            voice: ended.voice.clone(),
        });
        self.bill_lines.push(ended);
    }

    /// Money is no matter here.
    pub fn go_on(&mut self, going: GoingOn) -> WentOn {
        let (sid, lease) = (going.ended.sid().clone(), going.ended.claimed.lease.clone());
        let now = self.now;
        let Some(place) = self.held(&sid, &lease) else {
            return WentOn::NotOurs;
        };
        if place.is_cancelled {
            self.finish(going.as_last(&going.if_called_off.cancelled));
            return WentOn::Over(NoticeEnding::Cancelled);
        }
        let (legs_before, is_counted) = (place.legs, !place.is_to_end);
        let was_dialled = u16::from(going.ended.was_dialled(legs_before));
        *place = Place {
            due_at: now + millis(going.next.pause),
            attempt: AttemptNumber::new(place.attempt.number() + was_dialled).expect("not 0"),
            tries: going.ended.tries,
            tries_before: going.ended.tries,
            legs: 0,
            rang_at: None,
            answered_at: None,
            choice: None,
            ..place.waiting_again()
        };
        if is_counted && was_dialled == 0 {
            self.uncount(&sid);
        }
        self.keep_attempt(going.ended, legs_before, false);
        let call = self.calls.get_mut(&sid).expect("it is held");
        call.call = call.call.clone().to(going.next.to);
        call.queueing.route = going.next.route;
        WentOn::Yes
    }

    /// The id of the bill line that the attempt of a call will have.
    pub fn order_id(&self, sid: &str) -> String {
        let call = sid
            .parse()
            .ok()
            .and_then(|sid: CallSid| self.calls.get(&sid));
        let place = call.and_then(|call| Some((call, call.place.as_ref()?)));
        place.map_or_else(
            || sid.to_owned(),
            |(call, place)| place.attempt.order_id(&call.call.sid),
        )
    }

    pub fn attempts_of(&self, sid: &CallSid) -> Vec<Attempt> {
        let call = self.calls.get(sid);
        call.map(|call| call.attempts.clone()).unwrap_or_default()
    }

    pub fn heartbeat(
        &mut self,
        node: &NodeId,
        now: Timestamp,
        lease: SignedDuration,
    ) -> HeartbeatReply {
        let is_shared = self.lease_end == LeaseEnd::Time;
        let seen = if is_shared {
            self.now
        } else {
            now.as_millisecond()
        };
        let row = NodeRow {
            steady_since: seen,
            heartbeat_at: seen,
            lease_until: self.now + millis(lease),
        };
        let known = self.nodes.entry(node.to_string()).or_insert(row);
        let was_lost = known.lease_until < self.now;
        *known = NodeRow {
            steady_since: if was_lost { seen } else { known.steady_since },
            ..row
        };
        let others = self.nodes.iter().filter(|(name, row)| {
            is_shared && row.lease_until > self.now && name.as_str() != node.as_str()
        });
        HeartbeatReply {
            nodes: u32::try_from(others.count()).expect("a few") + 1,
            database_time: is_shared
                .then(|| Timestamp::from_millisecond(self.now).expect("a time of this age")),
        }
    }

    pub fn held_calls(&self, node: &NodeId) -> Vec<CallSid> {
        self.sids(|call| call.holder() == Some(node))
    }

    pub fn cancel(&mut self, sid: &CallSid) -> Option<CallState> {
        let call = self.calls.get_mut(sid)?;
        let place = call.place.as_mut()?;
        place.is_cancelled = true;
        call.was_cancelled = true;
        Some(place.state)
    }

    /// The model knows no conditions.
    pub fn cancelled_calls(&self, node: &NodeId) -> Vec<CancelledCall> {
        let is_cancelled = |call: &ModelCall| call.place.as_ref().is_some_and(|p| p.is_cancelled);
        let sids = self.sids(|call| call.holder() == Some(node) && is_cancelled(call));
        let unconditional = |sid| CancelledCall {
            sid,
            before_answer: false,
        };
        sids.into_iter().map(unconditional).collect()
    }

    pub fn queue_depth(&self) -> (u64, Option<SignedDuration>) {
        let places = self.calls.values().filter_map(|call| call.place.as_ref());
        let waiting = || places.clone().filter(|place| place.node.is_none());
        let first = waiting().map(|place| place.due_at).min();
        let due = first.filter(|first| *first <= self.now);
        let due_for = due.map(|first| SignedDuration::from_millis(self.now - first));
        (waiting().count() as u64, due_for)
    }

    /// A database may have counted two claims of one call as one: those within a millisecond. They are attempts without a pause, which no plan has.
    pub fn may_count_fewer(&self, callee: &str) -> bool {
        self.claimed_again.contains(callee)
    }

    pub fn calls_to(&self, account: &AccountSid, callee: &str, within: SignedDuration) -> u32 {
        let since = self.now - millis(within);
        let counts = |(of, at, sid): &&(String, i64, CallSid)| {
            let is_own = self.calls[sid].call.account == *account;
            is_own && of.as_str() == callee && *at > since
        };
        u32::try_from(self.claims.iter().filter(counts).count()).expect("a few")
    }

    /// Nobody may take it away from this node now.
    pub fn is_held_by(&self, sid: &str, node: &NodeId) -> bool {
        let sid = sid.parse::<CallSid>().ok();
        let call = sid.and_then(|sid| self.calls.get(&sid));
        let is_valid = self.lease_end == LeaseEnd::Process || self.lease_until(node) > self.now;
        is_valid && call.is_some_and(|call| call.holder() == Some(node))
    }

    /// When other nodes may take over what this one holds.
    pub fn lease_until(&self, node: &NodeId) -> i64 {
        self.nodes
            .get(node.as_str())
            .map_or(i64::MIN, |row| row.lease_until)
    }

    fn held(&mut self, sid: &CallSid, lease: &Lease) -> Option<&mut Place> {
        let place = self.calls.get_mut(sid)?.place.as_mut()?;
        (place.node.as_ref() == Some(&lease.node) && place.fence == lease.fence).then_some(place)
    }

    fn sids(&self, wanted: impl Fn(&ModelCall) -> bool) -> Vec<CallSid> {
        let calls = self.calls.iter().filter(|(_, call)| wanted(call));
        calls.map(|(sid, _)| sid.clone()).collect()
    }
}

/// It is dialled again by the next trunk before anything has rung, and where a telephone that rang redirects it.
fn may_follow(state: CallState, update: &CallUpdate) -> bool {
    let again = match update {
        CallUpdate::Dialling { .. } => matches!(state, CallState::Dialling | CallState::Ringing),
        CallUpdate::Chosen { .. } => return state == CallState::Answered,
        _ => false,
    };
    again || state.may_become(update.state())
}

fn millis(time: SignedDuration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 4)
}
