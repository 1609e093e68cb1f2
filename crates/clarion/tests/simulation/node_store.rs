//! The store as one node sees it: the model, at the other end of a line.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clarion::domain::account::{AccountSid, AppId};
use clarion::domain::attempt::CallHistory;
use clarion::domain::call::CallSid;
use clarion::domain::call_list::{CallList, ListName};
use clarion::domain::call_state::CallState;
use clarion::domain::claim::{
    CallUpdate, CancelledCall, Claim, ClaimedCall, DeadRoute, HeartbeatReply, Lease, LeaseEnd,
    NodeId, OrphanedCall, Overdue, QueuedLanes, Requeue, WatchedUpdate,
};
use clarion::domain::ended_call::{EndedCall, GoingOn, WentOn};
use clarion::domain::request_key::{Accepted, AcceptedCall, KnownRequest, RequestId};
use clarion::domain::trunk_grants::{GrantRequest, TrunkGrant};
use clarion::store::{CallQueue, CustomerRules, DispatchStore, ForgetStep, StoreError};
use jiff::{SignedDuration, Timestamp};
use supervisor::Supervisor;
use tokio::sync::{Notify, oneshot};

use crate::life::Life;
use crate::model::QueueModel;
use crate::weather::Fate;
use crate::world::World;

#[derive(Debug, Clone)]
pub struct NodeStore {
    pub world: Arc<World>,
    pub place: usize,
    pub life: Life,
}

const NOTHING_OLD: ForgetStep = ForgetStep {
    forgotten: 0,
    stopped_at: None,
};

/// A verb, and what it is about.
#[derive(Debug, Clone, Copy)]
struct Verb<'a>(&'static str, &'a str);

impl NodeStore {
    async fn read<T: Send + 'static>(
        &self,
        verb: &'static str,
        look: impl FnOnce(&QueueModel) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(Verb(verb, ""), true, move |model| look(model))
            .await
    }

    async fn write<T: Send + 'static>(
        &self,
        verb: &'static str,
        about: &str,
        change: impl FnOnce(&mut QueueModel) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(Verb(verb, about), false, change).await
    }

    /// Sends a request. Once it is on its way it is carried out whatever becomes of the node.
    async fn ask<T: Send + 'static>(
        &self,
        verb: Verb<'_>,
        only_reads: bool,
        change: impl FnOnce(&mut QueueModel) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        self.life.goes_on().await;
        let answer = match self.fate(only_reads, !verb.1.is_empty()) {
            Fate::Done(there, back) => {
                let done = self.send(verb, there, change).await;
                pass(back).await;
                done.map_err(|_| StoreError::Unknown("the history is over".to_owned()))
            }
            Fate::Failed(after) => {
                pass(after).await;
                Err(StoreError::Failed("simulated".to_owned()))
            }
            Fate::Unknown(after, done) => {
                if let Some(there) = done {
                    drop(self.send(verb, there, change));
                }
                pass(after).await;
                Err(StoreError::Unknown("simulated".to_owned()))
            }
        };
        self.life.goes_on().await;
        answer
    }

    fn fate(&self, only_reads: bool, is_of_call: bool) -> Fate {
        let mut state = self.world.state();
        let state = &mut *state;
        state
            .weather
            .fate(&mut state.chance, only_reads, is_of_call)
    }

    /// The answer comes when it has been carried out, after a time; whether anybody waits for it or not.
    fn send<T: Send + 'static>(
        &self,
        verb: Verb<'_>,
        there: Duration,
        change: impl FnOnce(&mut QueueModel) -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (reply, answer) = oneshot::channel();
        let (world, place) = (Arc::clone(&self.world), self.place);
        let (name, about, life) = (verb.0, verb.1.to_owned(), self.life.clone());
        let carry_out = move || {
            let mut state = world.state();
            // What a process sends in its last moment may never arrive.
            if !life.is_there() && state.chance.one_in(2) {
                return;
            }
            let _ = reply.send(change(&mut state.model));
            world.record(&mut state, place, name, &about);
        };
        if there.is_zero() {
            carry_out();
        } else {
            tokio::spawn(async move {
                tokio::time::sleep(there).await;
                carry_out();
            });
        }
        answer
    }
}

async fn pass(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

#[async_trait]
impl CallQueue for NodeStore {
    async fn accept_call(&self, order: AcceptedCall) -> Result<Accepted, StoreError> {
        let sid = order.call.sid.to_string();
        let accepted = self
            .write("accept", &sid, |model| model.accept(order))
            .await;
        self.world.wake_others(self.place);
        accepted
    }

    async fn find_request(
        &self,
        app: &AppId,
        id: &RequestId,
    ) -> Result<Option<KnownRequest>, StoreError> {
        let (app, id) = (app.clone(), id.clone());
        self.read("find", move |model| model.find_request(&app, &id))
            .await
    }

    async fn queued_lanes(&self) -> Result<QueuedLanes, StoreError> {
        self.read("lanes", QueueModel::queued_lanes).await
    }

    async fn claim_calls(&self, claim: Claim) -> Result<Vec<ClaimedCall>, StoreError> {
        self.write("claim", "", move |model| model.claim(&claim))
            .await
    }

    async fn claim_overdue(
        &self,
        node: &NodeId,
        limit: u32,
    ) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError> {
        let node = node.clone();
        self.write("overdue", "", move |model| {
            model.claim_overdue(&node, limit)
        })
        .await
    }

    /// The model's calls have no patience.
    async fn claim_stranded(
        &self,
        _node: &NodeId,
        _routes: &[DeadRoute],
        _limit: u32,
    ) -> Result<Vec<ClaimedCall>, StoreError> {
        Ok(Vec::new())
    }

    async fn advance_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        step: WatchedUpdate,
    ) -> Result<bool, StoreError> {
        let verb = match step.update {
            CallUpdate::Dialling { .. } => "dialling",
            CallUpdate::Ringing { .. } => "ringing",
            CallUpdate::Answered { .. } => "answered",
            CallUpdate::Chosen { .. } => "chosen",
        };
        let (about, sid, lease) = (sid.to_string(), sid.clone(), lease.clone());
        self.write(verb, &about, move |model| {
            model.advance(&sid, &lease, &step.update)
        })
        .await
    }

    async fn requeue_call(
        &self,
        claimed: &ClaimedCall,
        requeue: Requeue,
    ) -> Result<bool, StoreError> {
        let (sid, lease) = (claimed.call.sid.clone(), claimed.lease.clone());
        self.write("requeue", &sid.to_string(), move |model| {
            model.requeue(&sid, &lease, &requeue)
        })
        .await
    }

    async fn end_call(&self, ended: EndedCall) -> Result<bool, StoreError> {
        let about = format!("{} {}", ended.sid(), ended.outcome.as_str());
        self.write("end", &about, move |model| model.end(&ended))
            .await
    }

    async fn go_on(&self, going: GoingOn) -> Result<WentOn, StoreError> {
        let about = format!("{} {}", going.ended.sid(), going.ended.outcome.as_str());
        self.write("go-on", &about, move |model| model.go_on(going))
            .await
    }

    async fn take_orphaned_calls(
        &self,
        node: &NodeId,
        lease: SignedDuration,
        abandoned: &[CallSid],
        limit: u32,
    ) -> Result<Vec<OrphanedCall>, StoreError> {
        let (node, abandoned) = (node.clone(), abandoned.to_vec());
        self.write("orphans", "", move |model| {
            model.take_orphaned(&node, lease, &abandoned, limit)
        })
        .await
    }

    fn lease_end(&self) -> LeaseEnd {
        self.world.state().model.lease_end
    }

    async fn heartbeat(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease: SignedDuration,
    ) -> Result<HeartbeatReply, StoreError> {
        let node = node.clone();
        self.write("heartbeat", "", move |model| {
            model.heartbeat(&node, now, lease)
        })
        .await
    }

    async fn share_trunks(
        &self,
        node: &NodeId,
        requests: Vec<GrantRequest>,
    ) -> Result<Vec<(String, TrunkGrant)>, StoreError> {
        let node = node.clone();
        self.write("share", "", move |model| model.share(&node, requests))
            .await
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        let node = node.clone();
        self.write("leave", "", move |model| model.leave(&node))
            .await
    }

    async fn held_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError> {
        let node = node.clone();
        self.read("held", move |model| model.held_calls(&node))
            .await
    }

    async fn cancel_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError> {
        let (about, sid) = (sid.to_string(), sid.clone());
        self.write("cancel", &about, move |model| model.cancel(&sid))
            .await
    }

    async fn cancelled_calls(&self, node: &NodeId) -> Result<Vec<CancelledCall>, StoreError> {
        let node = node.clone();
        self.read("cancelled", move |model| model.cancelled_calls(&node))
            .await
    }

    async fn queue_depth(&self) -> Result<(u64, Option<SignedDuration>), StoreError> {
        self.read("depth", QueueModel::queue_depth).await
    }

    async fn calls_to(
        &self,
        account: &AccountSid,
        callee: &str,
        within: SignedDuration,
    ) -> Result<u32, StoreError> {
        let (account, callee) = (account.clone(), callee.to_owned());
        let calls_to = move |model: &QueueModel| model.calls_to(&account, &callee, within);
        self.read("calls-to", calls_to).await
    }

    /// No history lasts so long that anything is forgotten.
    async fn forget_calls(
        &self,
        _before: Timestamp,
        _after: Option<CallSid>,
        _limit: u32,
    ) -> Result<ForgetStep, StoreError> {
        Ok(NOTHING_OLD)
    }

    async fn forget_counted(&self, _limit: u32) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn forget_requests(
        &self,
        _before: Timestamp,
        _after: Option<CallSid>,
        _limit: u32,
    ) -> Result<ForgetStep, StoreError> {
        Ok(NOTHING_OLD)
    }
}

#[async_trait]
impl DispatchStore for NodeStore {
    async fn customer_rules(
        &self,
        _account: &AccountSid,
        _app: &AppId,
    ) -> Result<CustomerRules, StoreError> {
        self.read("limits", |_| CustomerRules::default()).await
    }

    /// No trunk of the simulation wants a registration.
    async fn registration_duty(
        &self,
        _: &str,
        _: &NodeId,
        _: SignedDuration,
    ) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// The model keeps no legs.
    async fn history_so_far(&self, sid: &CallSid) -> Result<CallHistory, StoreError> {
        let sid = sid.clone();
        let attempts = self.read("history", move |model| model.attempts_of(&sid));
        Ok(CallHistory {
            attempts: attempts.await?,
            legs: Vec::new(),
        })
    }

    /// No notice of the simulation names a list.
    async fn lists_of_notice(
        &self,
        _: &AccountSid,
        _: &[ListName],
    ) -> Result<Vec<CallList>, StoreError> {
        Ok(Vec::new())
    }

    /// Nor has its customer a do-not-call list.
    async fn unwanted_numbers(
        &self,
        _: &AccountSid,
        _: &[&str],
    ) -> Result<HashSet<String>, StoreError> {
        Ok(HashSet::new())
    }

    async fn operator_switches(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.read("switches", |_| ()).await?;
        Ok(self.world.state().switches.clone())
    }

    async fn paid_talk(
        &self,
        _sid: &CallSid,
        _lease: &Lease,
        _longest_talk: u32,
    ) -> Result<Option<u32>, StoreError> {
        self.read("paid", |_| None).await
    }

    fn woken(&self, _supervisor: &Supervisor) -> Arc<Notify> {
        Arc::clone(&self.world.wakers[self.place])
    }
}
