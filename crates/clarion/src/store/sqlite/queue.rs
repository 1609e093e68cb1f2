//! The queue in SQLite: who takes which call, how far it has come, and its end.
//!
//! One server serves from a file at a time (`ServeLock`), so a call that is held by another node is held by a process that is gone.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, params};

use super::held_call::held_state;
use super::query::Query;
use super::queue_clock::QueueClock;
use super::{SqliteStore, callbacks, calls, claiming, ending, legs};
use crate::domain::account::{AccountSid, AppId};
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::claim::{
    CallUpdate, CancelledCall, Claim, ClaimedCall, DeadRoute, HeartbeatReply, Lease, LeaseEnd,
    NodeId, OrphanedCall, Overdue, QueuedLanes, Requeue, WatchedUpdate,
};
use crate::domain::ended_call::{EndedCall, GoingOn, WentOn};
use crate::domain::notice::keys::CalleeChoice;
use crate::domain::request_key::{Accepted, AcceptedCall, KnownRequest, RequestId};
use crate::domain::trunk_grants::{GrantRequest, TrunkGrant};
use crate::store::columns::Columns;
use crate::store::migrations::WANTED;
use crate::store::statements::{do_not_call, queue, requests, sqlite};
use crate::store::{CallQueue, ForgetStep, StoreError};

/// Each column of a moment has a statement of its own.
macro_rules! advance {
    ($column:literal) => {
        sqlite!(
            "UPDATE call_queue SET state = max(state, $1), ",
            $column,
            " = coalesce(",
            $column,
            ", $2), trunk = coalesce($3, trunk), dialog = coalesce($4, dialog), attempts = coalesce($5, attempts) WHERE call_sid = $6"
        )
    };
}

const DIALLED: &str = advance!("dialled_at");
const RANG: &str = advance!("rang_at");
const ANSWERED: &str = advance!("answered_at");
/// The first choice counts. A confirmation that comes after a cancellation does not.
const CHOSEN: &str = sqlite!(
    "UPDATE call_queue SET choice = coalesce(choice, $1) WHERE call_sid = $2 AND ($1 = 'stop' OR NOT {is_called_off})"
);
const HAS_CHOSEN: &str =
    sqlite!("SELECT 1 FROM call_queue WHERE call_sid = $1 AND choice IS NOT NULL");
const UNWANTED: &str = sqlite!(
    do_not_call::ADD_CALLEE,
    " FROM call_queue AS chosen JOIN calls USING (call_sid) WHERE call_sid = $1 ON CONFLICT DO NOTHING"
);
const REQUEUE: &str = sqlite!(
    "UPDATE call_queue SET state = {queued}, due_at = coalesce($1, due_at), node = NULL, parked = {in_lane}, trunk = NULL, dialled_at = NULL, dialog = NULL, \
       seen_at = NULL, attempts = $3, legs = legs + $4, held_since = CASE WHEN $5 THEN coalesce(held_since, $6) END, \
       pass_at = CASE WHEN $5 THEN coalesce(held_since, $6) + patience END WHERE call_sid = $2 RETURNING callee, legs - $4"
);
const CALLS_TO: &str = sqlite!(
    "SELECT count(*) FROM callee_calls WHERE callee = $1 AND account_sid IN ($3, '') AND claimed_at > $2"
);
const FORGET_COUNTED: &str = sqlite!(
    "DELETE FROM callee_calls WHERE (callee, claimed_at, call_sid) IN (SELECT callee, claimed_at, call_sid FROM callee_calls \
       WHERE claimed_at < $2 - {day} ORDER BY claimed_at LIMIT $1)"
);
const HEARTBEAT: &str = sqlite!(
    "INSERT INTO nodes (node, steady_since, heartbeat_at, lease_until, schema_version) VALUES ($1, $2, $2, $3, $4) \
     ON CONFLICT (node) DO UPDATE SET heartbeat_at = $2, lease_until = $3"
);
/// Names of processes that are long gone, and hold nothing.
const FORGET_NODES: &str = sqlite!(
    "DELETE FROM nodes WHERE lease_until < $1 - {day} AND NOT EXISTS (SELECT 1 FROM call_queue WHERE call_queue.node = nodes.node)"
);
const FORGET_REQUEST: [&str; 1] = [sqlite!("DELETE FROM request_keys WHERE call_sid = $1")];
const FORGET_CALL: [&str; 6] = [
    sqlite!(
        "UPDATE request_keys SET ended_at = (SELECT ended_at FROM calls WHERE call_sid = $1) WHERE call_sid = $1"
    ),
    sqlite!("DELETE FROM legs WHERE call_sid = $1"),
    sqlite!("DELETE FROM attempts WHERE call_sid = $1"),
    sqlite!("DELETE FROM callback_attempts WHERE call_sid = $1"),
    sqlite!("DELETE FROM callbacks WHERE call_sid = $1"),
    sqlite!("DELETE FROM calls WHERE call_sid = $1"),
];

#[async_trait]
impl CallQueue for SqliteStore {
    async fn accept_call(&self, order: AcceptedCall) -> Result<Accepted, StoreError> {
        let clock = self.clock.clone();
        self.begin(move |db| Ok(calls::accept(db, &order, clock.now())?.accepted))
            .await
    }

    async fn find_request(
        &self,
        app: &AppId,
        id: &RequestId,
    ) -> Result<Option<KnownRequest>, StoreError> {
        let (app, id) = (app.clone(), id.clone());
        self.read(move |db| {
            let values = [app.as_str(), id.as_str()];
            db.row(requests::FIND.sqlite, values, |row| requests::known(row))
        })
        .await
    }

    async fn queued_lanes(&self) -> Result<QueuedLanes, StoreError> {
        let lanes = self.read(claiming::lanes).await?;
        Ok(queue::queued_lanes(lanes, self.clock.now()))
    }

    async fn claim_calls(&self, claim: Claim) -> Result<Vec<ClaimedCall>, StoreError> {
        let clock = self.clock.clone();
        self.begin(move |db| claiming::claim(db, &claim, clock.now()))
            .await
    }

    async fn claim_overdue(
        &self,
        node: &NodeId,
        limit: u32,
    ) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError> {
        let (node, clock) = (node.clone(), self.clock.clone());
        self.write(move |db| claiming::claim_overdue(db, &node, clock.now(), limit))
            .await
    }

    async fn claim_stranded(
        &self,
        node: &NodeId,
        routes: &[DeadRoute],
        limit: u32,
    ) -> Result<Vec<ClaimedCall>, StoreError> {
        let (node, routes, clock) = (node.clone(), routes.to_vec(), self.clock.clone());
        self.write(move |db| claiming::claim_stranded(db, &node, &routes, clock.now(), limit))
            .await
    }

    async fn advance_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        step: WatchedUpdate,
    ) -> Result<bool, StoreError> {
        let (sid, lease, clock) = (sid.clone(), lease.clone(), self.clock.clone());
        self.write(move |db| {
            // What was chosen before was told before.
            let is_news = !matches!(step.update, CallUpdate::Chosen { .. })
                || !db.exists(HAS_CHOSEN, [sid.as_str()])?;
            let is_ours = advance(db, &sid, &lease, &step.update)?;
            if is_ours && is_news {
                callbacks::owe_events(db, &step.event, clock.now())?;
            }
            Ok(is_ours)
        })
        .await
    }

    async fn requeue_call(
        &self,
        claimed: &ClaimedCall,
        requeue: Requeue,
    ) -> Result<bool, StoreError> {
        let (claimed, clock) = (claimed.clone(), self.clock.clone());
        self.write(move |db| put_back(db, &claimed, &requeue, &clock))
            .await
    }

    async fn end_call(&self, ended: EndedCall) -> Result<bool, StoreError> {
        let clock = self.clock.clone();
        self.write(move |db| ending::end(db, &ended, clock.now()))
            .await
    }

    async fn go_on(&self, going: GoingOn) -> Result<WentOn, StoreError> {
        let clock = self.clock.clone();
        self.write(move |db| ending::go_on(db, &going, clock.now()))
            .await
    }

    async fn take_orphaned_calls(
        &self,
        node: &NodeId,
        _lease: SignedDuration,
        abandoned: &[CallSid],
        limit: u32,
    ) -> Result<Vec<OrphanedCall>, StoreError> {
        let (node, abandoned) = (node.clone(), abandoned.to_vec());
        self.write(move |db| claiming::take_orphaned(db, &node, &abandoned, limit))
            .await
    }

    /// One server serves from a file at a time, and what it holds is its own until its process is gone.
    fn lease_end(&self) -> LeaseEnd {
        LeaseEnd::Process
    }

    /// This process lives. What it holds, it holds until it is gone: its lease is only written down for people to see.
    async fn heartbeat(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease: SignedDuration,
    ) -> Result<HeartbeatReply, StoreError> {
        let (node, clock) = (node.clone(), self.clock.clone());
        self.write(move |db| {
            let values = params![
                node.as_str(),
                now.as_millisecond(),
                clock.after(lease),
                i64::try_from(WANTED).unwrap_or(i64::MAX)
            ];
            db.run(HEARTBEAT, values)?;
            db.run(FORGET_NODES, [clock.now()])?;
            clock.write(db)
        })
        .await?;
        Ok(HeartbeatReply {
            nodes: 1,
            database_time: None,
        })
    }

    /// One process serves at a time, and has every trunk to itself.
    async fn share_trunks(
        &self,
        _node: &NodeId,
        requests: Vec<GrantRequest>,
    ) -> Result<Vec<(String, TrunkGrant)>, StoreError> {
        let whole = |request: GrantRequest| (request.trunk, TrunkGrant::whole(request.whole));
        Ok(requests.into_iter().map(whole).collect())
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        let node = node.clone();
        self.write(move |db| {
            for leave in [queue::LEAVE_DUTIES.sqlite, queue::LEAVE.sqlite] {
                db.run(leave, [node.as_str()])?;
            }
            Ok(())
        })
        .await
    }

    async fn held_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError> {
        let node = node.clone();
        self.read(move |db| {
            db.rows(queue::HELD_BY.sqlite, [node.as_str()], |row| {
                queue::call_sid(row)
            })
        })
        .await
    }

    async fn cancel_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError> {
        let sid = sid.clone();
        self.write(move |db| {
            db.row(queue::CANCEL.sqlite, [sid.as_str()], |row| {
                queue::call_state(row)
            })
        })
        .await
    }

    async fn cancelled_calls(&self, node: &NodeId) -> Result<Vec<CancelledCall>, StoreError> {
        let node = node.clone();
        self.read(move |db| {
            db.rows(queue::CANCELLED_OF.sqlite, [node.as_str()], |row| {
                queue::cancelled(row)
            })
        })
        .await
    }

    async fn queue_depth(&self) -> Result<(u64, Option<SignedDuration>), StoreError> {
        let clock = self.clock.clone();
        self.read(move |db| {
            let waiting = db.only_row(queue::DEPTH.sqlite, [], |row| queue::depth(row))?;
            let lanes = claiming::lanes(db)?;
            Ok((waiting, queue::longest_due(&lanes, clock.now())))
        })
        .await
    }

    async fn calls_to(
        &self,
        account: &AccountSid,
        callee: &str,
        within: SignedDuration,
    ) -> Result<u32, StoreError> {
        let (account, callee) = (account.clone(), callee.to_owned());
        let since = self.clock.after(-within);
        self.read(move |db| {
            let values = params![callee, since, account.as_str()];
            db.only_row(CALLS_TO, values, |row| row.number(0))
        })
        .await
    }

    async fn forget_counted(&self, limit: u32) -> Result<u64, StoreError> {
        let now = self.clock.now();
        self.write_beside(move |db| Ok(db.run(FORGET_COUNTED, params![limit, now])? as u64))
            .await
    }

    async fn forget_requests(
        &self,
        before: Timestamp,
        after: Option<CallSid>,
        limit: u32,
    ) -> Result<ForgetStep, StoreError> {
        let old = requests::OLD.sqlite;
        self.write_beside(move |db| forget(db, old, &FORGET_REQUEST, before, after.as_ref(), limit))
            .await
    }

    async fn forget_calls(
        &self,
        before: Timestamp,
        after: Option<CallSid>,
        limit: u32,
    ) -> Result<ForgetStep, StoreError> {
        let old = queue::OLD_CALLS.sqlite;
        self.write_beside(move |db| forget(db, old, &FORGET_CALL, before, after.as_ref(), limit))
            .await
    }
}

/// False if the call is not ours any more, or cannot go there from where it is.
fn advance(
    db: &Connection,
    sid: &CallSid,
    lease: &Lease,
    update: &CallUpdate,
) -> Result<bool, StoreError> {
    match held_state(db, sid, lease)? {
        Some(state) if queue::may_follow(state, update) => {}
        _ => return Ok(false),
    }
    let statement = match update {
        CallUpdate::Dialling { .. } => DIALLED,
        CallUpdate::Ringing { .. } => RANG,
        CallUpdate::Answered { .. } => ANSWERED,
        CallUpdate::Chosen { at, choice } => {
            if db.run(CHOSEN, params![choice.to_stored(), sid.as_str()])? == 0 {
                return Ok(false);
            }
            if *choice == CalleeChoice::Stopped {
                db.run(UNWANTED, params![sid.as_str(), at.as_millisecond()])?;
            }
            return Ok(true);
        }
    };
    let (tries, trunk) = queue::tries_and_trunk(update);
    let values = params![
        update.state().number(),
        queue::moment(update).as_millisecond(),
        trunk,
        update.dialog(),
        tries,
        sid.as_str()
    ];
    db.run(statement, values)?;
    Ok(true)
}

fn put_back(
    db: &Connection,
    claimed: &ClaimedCall,
    requeue: &Requeue,
    clock: &QueueClock,
) -> Result<bool, StoreError> {
    let sid = &claimed.call.sid;
    match held_state(db, sid, &claimed.lease)? {
        Some(state) if state.may_become(CallState::Queued) => {}
        _ => return Ok(false),
    }
    let due_at = queue::is_pause(requeue.pause).then(|| clock.after(requeue.pause));
    let tries = queue::stored_tries(requeue.tries);
    let values = params![
        due_at,
        sid.as_str(),
        tries,
        requeue.legs.len().cast_signed(),
        requeue.is_held_back,
        clock.now()
    ];
    let (callee, legs_before) =
        db.only_row(REQUEUE, values, |row| Ok((row.string(0)?, row.number(1)?)))?;
    legs::keep(db, claimed, &requeue.legs, legs_before)?;
    if claimed.is_counted {
        db.run(queue::UNCOUNT.sqlite, [&callee, sid.as_str()])?;
    }
    claiming::unpark(db, &callee)?;
    Ok(true)
}

fn forget(
    db: &Connection,
    old: &str,
    forget: &[&str],
    before: Timestamp,
    after: Option<&CallSid>,
    limit: u32,
) -> Result<ForgetStep, StoreError> {
    let after = after.map_or("", CallSid::as_str);
    let values = params![limit, before.as_millisecond(), after];
    let seen = db.rows(old, values, |row| queue::old_one(row))?;
    let (going, step) = queue::forget_step(&seen, limit);
    for sid in going {
        for forget in forget {
            db.run(forget, [sid])?;
        }
    }
    Ok(step)
}
