//! One step after the other, in a database and in the model.

use std::collections::BTreeMap;
use std::sync::Arc;

use clarion::domain::call::{CallKind, CallSid};
use clarion::domain::call_record::{CallRecord, CurrentAttempt};
use clarion::domain::call_state::CallState;
use clarion::domain::callback::CallbackKey;
use clarion::domain::claim::{CallUpdate, ClaimedCall, Lane, LeaseEnd, Requeue};
use clarion::domain::ended_call::{CalledOff, EndedCall, GoingOn, NextDial, NoticeOver};
use clarion::domain::notice::Recipient;
use clarion::domain::notice::ending::{NoticeEnd, NoticeEnding};
use clarion::domain::outcome::Outcome;
use clarion::domain::request_key::AcceptedCall;
use clarion::domain::route::RouteKey;
use clarion::store::Store;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::APPS;
use super::orders::{HOUR, claim, ended, node, number, order, recipient, request_id};
use super::verbs::{Action, GoOn, Step};
use crate::model::{ModelCall, QueueModel};
use crate::world::epoch;

const EVERYTHING: u32 = 1000;

type Outcomes = BTreeMap<String, (Option<String>, u64)>;

pub struct Comparison<'a> {
    stores: &'a [Arc<dyn Store>],
    model: QueueModel,
    /// Everything that was ever accepted, and every lease that was ever given.
    orders: Vec<AcceptedCall>,
    leases: Vec<ClaimedCall>,
    /// Moments that nodes tell go on by a second with every step.
    moment: Timestamp,
}

impl<'a> Comparison<'a> {
    pub fn new(stores: &'a [Arc<dyn Store>], lease_end: LeaseEnd) -> Self {
        Self {
            stores,
            model: QueueModel::new(lease_end, epoch().as_millisecond()),
            orders: Vec::new(),
            leases: Vec::new(),
            moment: epoch(),
        }
    }

    fn store(&self, node: u8) -> &'a dyn Store {
        &*self.stores[usize::from(node) % self.stores.len()]
    }

    pub async fn step(&mut self, action: Action) -> Result<(), TestCaseError> {
        self.moment += SignedDuration::from_secs(1);
        let any = self.store(0);
        match action {
            Action::Accept(request) => {
                let order = order(request, self.orders.len(), self.moment);
                self.orders.push(order.clone());
                self.accept(order).await?;
            }
            Action::AcceptAgain(place) => {
                if let Some(order) = one_of(&self.orders, place) {
                    self.accept(order).await?;
                }
            }
            Action::Find(name) => {
                let (app, id) = (APPS[0].parse().unwrap(), request_id(name));
                let found = any.find_request(&app, &id).await.unwrap();
                prop_assert_eq!(found, self.model.find_request(&app, &id));
            }
            Action::Lanes => self.lanes().await?,
            Action::Claim {
                node,
                calls,
                at_once,
            } => self.claim(node, calls, at_once).await?,
            Action::Overdue(of) => self.overdue(of).await?,
            Action::Advance(lease, step) => self.advance(lease, step).await?,
            Action::Requeue(lease, later, tries) => {
                self.requeue(lease, later, tries).await?;
            }
            Action::End(lease, outcome) => self.end(lease, outcome).await?,
            Action::GoOn(lease, outcome, another) => self.go_on(lease, outcome, another).await?,
            Action::Heartbeat(of, lives) => {
                let lease = if lives { HOUR } else { SignedDuration::ZERO };
                let (id, now) = (node(of), self.moment);
                let reply = self.store(of).heartbeat(&id, now, lease).await.unwrap();
                let known = self.model.heartbeat(&id, now, lease);
                prop_assert_eq!(reply.nodes, known.nodes);
            }
            Action::Orphans(of, given_up) => self.orphans(of, given_up).await?,
            Action::Leave(of) => {
                self.store(of).leave(&node(of)).await.unwrap();
                self.model.leave(&node(of));
            }
            Action::Held(of) => {
                let mut held = self.store(of).held_calls(&node(of)).await.unwrap();
                held.sort();
                prop_assert_eq!(held, self.model.held_calls(&node(of)));
            }
            Action::Cancel(place) => {
                if let Some(order) = one_of(&self.orders, place) {
                    let sid = &order.call.sid;
                    let state = any.cancel_call(sid).await.unwrap();
                    prop_assert_eq!(state, self.model.cancel(sid));
                }
            }
            Action::Cancelled(of) => {
                let mut cancelled = self.store(of).cancelled_calls(&node(of)).await.unwrap();
                cancelled.sort_by(|a, b| a.sid.cmp(&b.sid));
                prop_assert_eq!(cancelled, self.model.cancelled_calls(&node(of)));
            }
            Action::Depth => {
                let (waiting, due_for) = any.queue_depth().await.unwrap();
                let (known, may_be_due) = self.model.queue_depth();
                prop_assert_eq!(waiting, known);
                // What waits for its callee is due to the model, and not to a store.
                prop_assert!(due_for.is_none() || may_be_due.is_some(), "{due_for:?}");
            }
            Action::CallsTo(callee) => {
                let callee = number(callee).digits().to_owned();
                let account = super::ACCOUNT.parse().unwrap();
                let calls = any.calls_to(&account, &callee, HOUR).await.unwrap();
                let known = self.model.calls_to(&account, &callee, HOUR);
                if self.model.may_count_fewer(&callee) {
                    prop_assert!(calls <= known, "{calls} of {known}");
                } else {
                    prop_assert_eq!(calls, known);
                }
            }
        }
        Ok(())
    }

    async fn accept(&mut self, order: AcceptedCall) -> Result<(), TestCaseError> {
        let accepted = self.store(0).accept_call(order.clone()).await.unwrap();
        prop_assert_eq!(accepted, self.model.accept(order));
        Ok(())
    }

    /// A store may still tell of lanes in which nothing can be claimed: it finds out when it looks at them. It must not hide one.
    async fn lanes(&mut self) -> Result<(), TestCaseError> {
        let known = self.store(0).queued_lanes().await.unwrap();
        let told: Vec<_> = known.due.into_iter().map(|due| due.lane).collect();
        for (sid, call) in &self.model.calls {
            let is_first = |other: &CallSid| other == sid;
            let others = self.claimable_of(call);
            if others.iter().all(is_first)
                && self.model.may_be_claimed(sid)
                && !self.has_cancelled_before(call)
            {
                prop_assert!(told.contains(&call.lane()), "{sid} waits in a lane unseen");
            }
        }
        Ok(())
    }

    /// A call to the same callee is cancelled, and has not been ended yet. When it is, a second later at most, the next one is seen.
    fn has_cancelled_before(&self, call: &ModelCall) -> bool {
        let callee = call.call.callee.clone();
        let mut calls = self.model.calls.values();
        calls.any(|other| other.is_cancelled() && other.call.callee.clone() == callee)
    }

    /// The calls for a call's callee that may be claimed.
    fn claimable_of(&self, call: &ModelCall) -> Vec<CallSid> {
        let callee = call.call.callee.clone();
        let calls = self.model.calls.iter();
        calls
            .filter(|(sid, other)| {
                other.call.callee.clone() == callee && self.model.may_be_claimed(sid)
            })
            .map(|(sid, _)| sid.clone())
            .collect()
    }

    /// Which of several calls is taken is the store's to decide; whether it may be taken is not, nor whether any is left although it might,
    /// unless a cancelled one comes first.
    async fn claim(
        &mut self,
        of: u8,
        calls: [u32; 4],
        at_once: Option<u32>,
    ) -> Result<(), TestCaseError> {
        let claim = claim(of, calls, at_once);
        let mut ledger = self.model.ledger(&claim);
        let mut room: BTreeMap<Lane, u32> = BTreeMap::new();
        for share in &claim.shares {
            room.insert(share.lane.clone(), share.calls);
        }
        let claimed = self.store(of).claim_calls(claim.clone()).await.unwrap();
        for call in &claimed {
            let (account, app) = (&call.call.account, &call.call.app);
            let sid = &call.call.sid;
            prop_assert!(self.model.may_be_claimed(sid), "{sid} may not be claimed");
            prop_assert!(ledger.left(account, app) > 0, "{sid} is beyond the limit");
            let left = room.get_mut(&self.model.calls[sid].lane());
            let left = left.filter(|left| **left > 0);
            prop_assert!(left.is_some(), "{sid} was not asked for");
            *left.unwrap() -= 1;
            ledger.take(account, app);
            // By the database's clock.
            prop_assert!(
                call.time_left
                    .is_some_and(|left| left > SignedDuration::ZERO)
            );
            let call = ClaimedCall {
                time_left: None,
                ..call.clone()
            };
            prop_assert_eq!(call, self.model.take(sid, &claim.node));
        }
        self.model.keep_tokens(&ledger);
        let has_room = |sid: &CallSid| {
            let call = &self.model.calls[sid];
            let room = room.get(&call.lane()).copied().unwrap_or(0);
            room.min(ledger.left(&call.call.account, &call.call.app)) > 0
        };
        for (sid, call) in &self.model.calls {
            if self.model.may_be_claimed(sid)
                && self.claimable_of(call).iter().all(has_room)
                && !self.has_cancelled_before(call)
            {
                prop_assert!(false, "{sid} was left although it might be claimed");
            }
        }
        self.leases.extend(claimed);
        Ok(())
    }

    async fn overdue(&mut self, of: u8) -> Result<(), TestCaseError> {
        let store = self.store(of);
        let mut overdue = store.claim_overdue(&node(of), EVERYTHING).await.unwrap();
        overdue.sort_by(|(a, _), (b, _)| a.call.sid.cmp(&b.call.sid));
        prop_assert_eq!(&overdue, &self.model.claim_overdue(&node(of), EVERYTHING));
        self.leases
            .extend(overdue.into_iter().map(|(claimed, _)| claimed));
        Ok(())
    }

    async fn advance(&mut self, lease: usize, step: Step) -> Result<(), TestCaseError> {
        let Some(claimed) = one_of(&self.leases, lease) else {
            return Ok(());
        };
        let (at, dialog) = (self.moment, format!("{{\"at\":\"{}\"}}", self.moment));
        let update = match step {
            Step::Dialling => CallUpdate::Dialling {
                tries: claimed.tries + 1,
                trunk: "east".to_owned(),
                at,
                dialog,
            },
            Step::Ringing => CallUpdate::Ringing { at, dialog: None },
            Step::Answered => CallUpdate::Answered {
                at,
                dialog: Some(dialog),
            },
            Step::Chosen(choice) => CallUpdate::Chosen { at, choice },
        };
        let (sid, lease) = (&claimed.call.sid, &claimed.lease);
        let advanced = self
            .store(0)
            .advance_call(sid, lease, update.clone().into())
            .await;
        prop_assert_eq!(advanced.unwrap(), self.model.advance(sid, lease, &update));
        Ok(())
    }

    async fn requeue(
        &mut self,
        lease: usize,
        later: bool,
        tries: u32,
    ) -> Result<(), TestCaseError> {
        let Some(claimed) = one_of(&self.leases, lease) else {
            return Ok(());
        };
        let pause = if later { HOUR } else { SignedDuration::ZERO };
        let requeue = Requeue {
            pause,
            tries,
            legs: vec![],
            is_held_back: later,
        };
        let (sid, lease) = (&claimed.call.sid, &claimed.lease);
        let known = self.model.requeue(sid, lease, &requeue);
        let requeued = self.store(0).requeue_call(&claimed, requeue);
        prop_assert_eq!(requeued.await.unwrap(), known);
        Ok(())
    }

    async fn end(&mut self, lease: usize, outcome: Outcome) -> Result<(), TestCaseError> {
        let Some(claimed) = one_of(&self.leases, lease) else {
            return Ok(());
        };
        let ended = ended(claimed, outcome, self.moment);
        let is_ended = self.store(0).end_call(ended.clone()).await.unwrap();
        prop_assert_eq!(is_ended, self.model.end(&ended));
        Ok(())
    }

    async fn go_on(
        &mut self,
        lease: usize,
        outcome: Outcome,
        another: GoOn,
    ) -> Result<(), TestCaseError> {
        let claimed = one_of(&self.leases, lease);
        let Some(claimed) = claimed.filter(|claimed| claimed.call.notice.is_some()) else {
            return Ok(());
        };
        let ended = ended(claimed, outcome, self.moment);
        let over = |ending| NoticeOver {
            end: NoticeEnd {
                ending,
                ..ended.notice.clone().unwrap()
            },
            callback: ended.callback.clone(),
            events: Vec::new(),
        };
        let going = GoingOn {
            next: NextDial {
                to: recipient(another.callee),
                route: RouteKey::default(),
                pause: if another.later {
                    HOUR
                } else {
                    SignedDuration::ZERO
                },
                patience: None,
                longest_talk: 60,
            },
            if_called_off: CalledOff {
                cancelled: over(NoticeEnding::Cancelled),
                resolved: over(NoticeEnding::Resolved),
            },
            if_unpaid: over(NoticeEnding::Unpaid),
            ended: EndedCall {
                if_called_off: None,
                events: Vec::new(),
                dialled_at: ended.dialled_at.filter(|_| another.was_dialled),
                notice: None,
                callback: None,
                ..ended.clone()
            },
        };
        let went_on = self.store(0).go_on(going.clone()).await.unwrap();
        prop_assert_eq!(went_on, self.model.go_on(going));
        Ok(())
    }

    async fn orphans(&mut self, of: u8, given_up: Vec<usize>) -> Result<(), TestCaseError> {
        let given_up = given_up.into_iter();
        let given_up = given_up.filter_map(|place| one_of(&self.orders, place));
        let given_up: Vec<_> = given_up.map(|order| order.call.sid).collect();
        let given_up = given_up.into_iter().filter(|sid| {
            let place = self
                .model
                .calls
                .get(sid)
                .and_then(|call| call.place.as_ref());
            place.is_some_and(|place| place.node == Some(node(of)))
        });
        let given_up: Vec<_> = given_up.collect();
        let (store, id, lease) = (self.store(of), node(of), SignedDuration::ZERO);
        let orphans = store.take_orphaned_calls(&id, lease, &given_up, EVERYTHING);
        let mut orphans = orphans.await.unwrap();
        orphans.sort_by(|a, b| a.claimed.call.sid.cmp(&b.claimed.call.sid));
        let mut known = self.model.take_orphaned(&id, lease, &given_up, EVERYTHING);
        if self.model.lease_end == LeaseEnd::Time {
            // Heartbeats are by the database's clock there.
            for orphan in orphans.iter_mut().chain(&mut known) {
                orphan.last_seen = epoch();
            }
        }
        prop_assert_eq!(&orphans, &known);
        self.leases
            .extend(known.into_iter().map(|orphan| orphan.claimed));
        Ok(())
    }

    /// Every attempt of a notice that was dialled, and nothing else.
    pub fn judge_attempts(&self, stored: &BTreeMap<String, u64>) -> Result<(), TestCaseError> {
        let calls = self.model.calls.values();
        let calls = calls.filter(|call| call.call.notice.is_some());
        let known = calls.map(|call| (call.call.sid.to_string(), call.attempts.len() as u64));
        prop_assert_eq!(stored, &known.collect::<BTreeMap<_, _>>());
        Ok(())
    }

    /// Calls, outcomes, bill lines and owed callbacks.
    pub async fn judge_state(&self, outcomes: &Outcomes) -> Result<(), TestCaseError> {
        for (sid, call) in &self.model.calls {
            let record = self.store(0).call_record(sid).await.unwrap();
            let record = record.map(|record| CallRecord {
                due_at: None,
                expires_at: None,
                request_id: None,
                ..record
            });
            prop_assert_eq!(record, Some(self.record(call)));
            let callback = self
                .store(0)
                .callback(&CallbackKey::of_end(sid.clone()))
                .await
                .unwrap();
            let callback = callback.map(|(callback, _)| (callback.webhook_id, callback.body));
            let owed = self
                .model
                .callbacks
                .iter()
                .find(|owed| owed.key.call == *sid);
            let owed = owed.map(|owed| (owed.webhook_id.clone(), owed.body.clone()));
            prop_assert_eq!(callback, owed);
        }
        let lines = self.model.ends.iter().map(|end| {
            let lines = self.model.bill_lines.iter();
            let lines = lines.filter(|line| line.sid() == end.sid());
            let words = lines.map(|line| line.outcome.as_str().to_owned());
            let words: Vec<_> = words.collect();
            let count = words.len() as u64;
            (end.sid().to_string(), (words.into_iter().max(), count))
        });
        let lines: Outcomes = lines.collect();
        prop_assert_eq!(outcomes, &lines);
        Ok(())
    }

    fn record(&self, call: &ModelCall) -> CallRecord {
        let new = &call.call;
        let end = self.model.ends.iter().find(|end| end.sid() == &new.sid);
        let to = new.notice.as_deref().map(|notice| &notice.numbers[0]);
        let to = to.cloned().unwrap_or_else(|| Recipient {
            called: new.called.clone(),
            number: new.number.clone(),
            callee: new.callee.clone(),
            caller: new.caller.clone(),
        });
        let whole = end.map(EndedCall::whole);
        let place = call.place.as_ref();
        CallRecord {
            kind: CallKind::Notification,
            sid: new.sid.clone(),
            account: new.account.clone(),
            app: new.app.clone(),
            called: to.called,
            number: to.number,
            caller: to.caller,
            state: place.map_or(CallState::Ended, |place| place.state),
            outcome: whole.map(|whole| whole.outcome),
            trunk: end.map_or_else(|| place?.trunk.clone(), |end| end.trunk.clone()),
            tries: end.map_or_else(|| place.map_or(0, |p| p.tries), |end| end.tries),
            accepted_at: new.accepted_at,
            due_at: None,
            expires_at: None,
            request_id: None,
            priority: place.map(|_| call.queueing.priority),
            dialled_at: whole.map_or_else(|| place?.dialled_at, |whole| whole.dialled_at),
            rang_at: end.map_or_else(|| place?.rang_at, |end| end.rang_at),
            answered_at: whole.map_or_else(|| place?.answered_at, |whole| whole.answered_at),
            ended_at: whole.map(|whole| whole.ended_at),
            talk_ended_at: whole.map(|whole| {
                let attempts = call.attempts.iter().rev();
                let dialled = attempts.filter(|attempt| attempt.dialled_at.is_some());
                let last = dialled.map(|attempt| attempt.ended_at).next();
                let last = last.filter(|_| whole.ending.is_some());
                last.unwrap_or(whole.ended_at)
            }),
            sip_code: end.and_then(|end| end.sip_code),
            reason: end.and_then(|end| end.reason.clone()),
            current: place.map(|place| CurrentAttempt {
                number: place.attempt,
                to: new.number.clone(),
            }),
            notice: new.notice.clone(),
            ending: whole.and_then(|whole| whole.ending),
            events: new.events.clone(),
        }
    }
}

fn one_of<T: Clone>(all: &[T], place: usize) -> Option<T> {
    let place = place.checked_rem(all.len())?;
    Some(all[place].clone())
}
