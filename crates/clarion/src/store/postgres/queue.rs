//! The queue in PostgreSQL, shared by any number of nodes. Leases run by the database's clock, so that nodes need not agree on the time.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use tokio_postgres::types::ToSql;

use super::group_commit::{Change, owned};
use super::legs::{self, KEEP_LEGS};
use super::{PostgresStore, accept, claiming, ending, notices, sharing, taking_over};
use crate::domain::account::{AccountSid, AppId};
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::callback::OwedEvent;
use crate::domain::claim::{
    CallUpdate, CancelledCall, Claim, ClaimedCall, DeadRoute, HeartbeatReply, Lease, LeaseEnd,
    NodeId, OrphanedCall, Overdue, QueuedLanes, Requeue, WatchedUpdate,
};
use crate::domain::ended_call::{EndedCall, GoingOn, WentOn};
use crate::domain::request_key::{Accepted, AcceptedCall, KnownRequest, RequestId};
use crate::domain::trunk_grants::{GrantRequest, TrunkGrant};
use crate::store::binding::millis;
use crate::store::columns::Columns;
use crate::store::migrations::WANTED;
use crate::store::statements::{Statement, do_not_call, postgres, queue, requests};
use crate::store::{CallQueue, ForgetStep, StoreError};

/// Each column of a moment has a statement of its own. What is dialled must leave while the lease still has its margin.
macro_rules! advance {
    ($column:literal) => {
        postgres!(
            "UPDATE call_queue SET state = greatest(state, $1), ",
            $column,
            " = coalesce(",
            $column,
            ", $2), trunk = coalesce($3, trunk), dialog = coalesce($4, dialog), attempts = coalesce($5, attempts) \
             WHERE call_sid = $6 AND {holder} = $7 AND fence = $8 AND state = ANY($9) \
               AND (NOT $10 OR EXISTS (SELECT 1 FROM nodes WHERE nodes.node = $7 AND nodes.lease_until > {now} + {margin})) \
             RETURNING call_sid"
        )
    };
}

/// What changes a call's place in the queue (`moved`), and an event that takes its place behind those that the call has; its six values are named, and
/// whether it is news.
/// Should somebody ask for the state of the call in the same moment and take the place, the event is left out: the next one says more.
macro_rules! with_event {
    (of_progress $change:ident) => {
        with_event!("$11", "$12", "$13", "$14", "$15", "$16", "true", "moved AS (", $change, ")")
    };
    ($app:literal, $host:literal, $url:literal, $before:literal, $after:literal, $owed_at:literal, $news:literal, $($moved:expr),+) => {
        postgres!(
            "WITH ",
            $($moved),+,
            ", place AS (SELECT call_sid, (SELECT coalesce(max(seq), 0) + 1 FROM callbacks WHERE callbacks.call_sid = moved.call_sid AND callbacks.seq > 0) AS seq FROM moved WHERE ",
            $news,
            "), \
             owed AS (INSERT INTO callbacks (call_sid, seq, app_id, webhook_id, host, url, body, state, owed_at, due_at, expires_at) \
               SELECT call_sid, seq, ",
            $app, ", 'msg_' || call_sid || '_' || seq, ", $host, ", ", $url, ", ", $before, "::text || seq || ", $after, "::text, {waiting}, ", $owed_at,
            ", {now}, {now} + {event_time} FROM place WHERE seq <= {most_events} ON CONFLICT DO NOTHING) SELECT 1 FROM moved"
        )
    };
}

const DIALLED: &str = advance!("dialled_at");
const RANG: &str = advance!("rang_at");
const ANSWERED: &str = advance!("answered_at");
/// The first choice counts. A confirmation that comes after a cancellation does not. Whoever wants no more calls gets none from this commit on.
const MOVED_CHOSEN: &str = postgres!(
    "moved AS (UPDATE call_queue SET choice = coalesce(choice, $1) WHERE call_sid = $3 AND {holder} = $4 AND fence = $5 AND state = ANY($6) \
       AND ($1 = 'stop' OR NOT {is_called_off}) RETURNING *), \
     unwanted AS (",
    do_not_call::ADD_CALLEE,
    " FROM moved AS chosen JOIN calls USING (call_sid) WHERE $1 = 'stop' ON CONFLICT DO NOTHING)"
);
const CHOSEN: &str = postgres!("WITH ", MOVED_CHOSEN, " SELECT 1 FROM moved");
const DIALLED_WITH_EVENT: &str = with_event!(of_progress DIALLED);
const RANG_WITH_EVENT: &str = with_event!(of_progress RANG);
const ANSWERED_WITH_EVENT: &str = with_event!(of_progress ANSWERED);
const CHOSEN_WITH_EVENT: &str = with_event!(
    "$7",
    "$8",
    "$9",
    "$10",
    "$11",
    "$12",
    // As it was before this statement: what was chosen then was told then.
    "NOT EXISTS (SELECT 1 FROM call_queue AS before WHERE before.call_sid = moved.call_sid AND before.choice IS NOT NULL)",
    MOVED_CHOSEN
);
const CALLS_TO: &str = postgres!(
    "SELECT count(*) FROM callee_calls WHERE callee = $1 AND account_sid IN ($3, '') AND claimed_at > {now} - $2"
);
const FORGET_COUNTED: &str = postgres!(
    "DELETE FROM callee_calls WHERE (callee, claimed_at, call_sid) IN (SELECT callee, claimed_at, call_sid FROM callee_calls \
       WHERE claimed_at < {now} - {day} ORDER BY claimed_at LIMIT $1)"
);
/// Its row is held as one that ends holds it, which no column here would do by itself: a claim that parks a call behind this one is waited for, and
/// one that comes later leaves it alone.
const REQUEUE: &str = postgres!(
    "WITH held AS MATERIALIZED (SELECT call_sid AS sid FROM call_queue WHERE call_sid = $29 AND {holder} = $30 AND fence = $31 AND state = ANY($32) FOR UPDATE), \
     ours AS (UPDATE call_queue SET state = {queued}, due_at = coalesce({now} + $27, due_at), node = NULL, parked = {in_lane}, trunk = NULL, \
         dialled_at = NULL, dialog = NULL, seen_at = NULL, attempts = $28, legs = legs + cardinality($1::text[]), \
         held_since = CASE WHEN $34 THEN coalesce(held_since, {now}) END, pass_at = CASE WHEN $34 THEN coalesce(held_since, {now}) + patience END \
       FROM held WHERE call_sid = sid \
       RETURNING call_sid, callee, attempt, legs - cardinality($1::text[]) AS legs_before), ",
    KEEP_LEGS,
    ", uncounted AS (DELETE FROM callee_calls USING ours \
       WHERE $33 AND callee_calls.callee = ours.callee AND callee_calls.call_sid = ours.call_sid AND callee_calls.claimed_at = \
         (SELECT max(last.claimed_at) FROM callee_calls AS last WHERE last.callee = ours.callee AND last.call_sid = ours.call_sid)) \
     SELECT 1 FROM ours"
);
const HEARTBEAT: &str = postgres!(
    "WITH seen AS (INSERT INTO nodes (node, steady_since, heartbeat_at, lease_until, schema_version) \
         VALUES ($1, {now}, {now}, {now} + $2, $3) ON CONFLICT (node) DO UPDATE SET heartbeat_at = {now}, lease_until = {now} + $2, \
         steady_since = CASE WHEN nodes.lease_until < {now} THEN {now} ELSE nodes.steady_since END), \
     forgotten AS (DELETE FROM nodes WHERE lease_until < {now} - {day} AND node <> $1 \
       AND NOT EXISTS (SELECT 1 FROM call_queue WHERE call_queue.node = nodes.node)) \
     SELECT count(*), {now}, least(min(coalesce(schema_version, 0)), $3) FROM nodes WHERE lease_until > {now} AND node <> $1"
);
/// The name stays for a while: a claim that is still on its way when the node leaves would otherwise be held by a name that nobody knows, and
/// never be taken over. While calls are held by it, its lease runs out by itself.
const LEAVE: &str = postgres!(
    "UPDATE nodes SET lease_until = {now} WHERE node = $1 AND lease_until > {now} \
       AND NOT EXISTS (SELECT 1 FROM call_queue WHERE call_queue.node = $1)"
);
const FORGET_REQUESTS: &str = postgres!("DELETE FROM request_keys WHERE call_sid = ANY($1)");
const FORGET_CALLS: &str = postgres!(
    "WITH old AS (SELECT unnest($1::text[]) AS call_sid), \
     named AS (UPDATE request_keys SET ended_at = calls.ended_at FROM old JOIN calls USING (call_sid) WHERE request_keys.call_sid = old.call_sid), \
     deliveries AS (DELETE FROM callback_attempts USING old WHERE callback_attempts.call_sid = old.call_sid), \
     legs_forgotten AS (DELETE FROM legs USING old WHERE legs.call_sid = old.call_sid), \
     attempts_forgotten AS (DELETE FROM attempts USING old WHERE attempts.call_sid = old.call_sid), \
     settled AS (DELETE FROM callbacks USING old WHERE callbacks.call_sid = old.call_sid) \
     DELETE FROM calls USING old WHERE calls.call_sid = old.call_sid"
);

#[async_trait]
impl CallQueue for PostgresStore {
    async fn accept_call(&self, order: AcceptedCall) -> Result<Accepted, StoreError> {
        self.accepter.accept(order).await
    }

    async fn find_request(
        &self,
        app: &AppId,
        id: &RequestId,
    ) -> Result<Option<KnownRequest>, StoreError> {
        let values: super::Values<'_> = &[&app.as_str(), &id.as_str()];
        let session = self.client().await?;
        let row = session.query_opt(requests::FIND.postgres, values).await?;
        let Some(row) = row else {
            return Ok(None);
        };
        accept::make_durable(&session).await?;
        requests::known(&row).map(Some)
    }

    async fn queued_lanes(&self) -> Result<QueuedLanes, StoreError> {
        let (lanes, now) = claiming::lanes(self).await?;
        Ok(queue::queued_lanes(lanes, now))
    }

    async fn claim_calls(&self, claim: Claim) -> Result<Vec<ClaimedCall>, StoreError> {
        claiming::claim(&mut *self.client().await?, &claim).await
    }

    async fn claim_overdue(
        &self,
        node: &NodeId,
        limit: u32,
    ) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError> {
        taking_over::claim_overdue(self, node, limit).await
    }

    async fn claim_stranded(
        &self,
        node: &NodeId,
        routes: &[DeadRoute],
        limit: u32,
    ) -> Result<Vec<ClaimedCall>, StoreError> {
        taking_over::claim_stranded(self, node, routes, limit).await
    }

    async fn advance_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        step: WatchedUpdate,
    ) -> Result<bool, StoreError> {
        self.progress.commit(advance(sid, lease, &step)).await
    }

    async fn requeue_call(
        &self,
        claimed: &ClaimedCall,
        requeue: Requeue,
    ) -> Result<bool, StoreError> {
        let (call, lease) = (&claimed.call, &claimed.lease);
        let mut values = legs::columns(&requeue.legs);
        values.extend(owned![
            queue::is_pause(requeue.pause).then(|| millis(requeue.pause)),
            queue::stored_tries(requeue.tries),
            call.sid.as_str().to_owned(),
            lease.node.as_str().to_owned(),
            lease.fence,
            states(|state| state.may_become(CallState::Queued)),
            claimed.is_counted,
            requeue.is_held_back,
        ]);
        let change = Change {
            sid: call.sid.clone(),
            sql: REQUEUE,
            values,
            frees: Some(call.callee.clone()),
        };
        self.ends.commit(change).await
    }

    async fn end_call(&self, ended: EndedCall) -> Result<bool, StoreError> {
        // What is more than one bill line and one callback takes several statements.
        if ended.claimed.call.notice.is_some() || !ended.events.is_empty() {
            let mut client = self.client().await?;
            return notices::end(&mut client, &ended).await;
        }
        self.ends.commit(ending::end(&ended)).await
    }

    async fn go_on(&self, going: GoingOn) -> Result<WentOn, StoreError> {
        let mut client = self.client().await?;
        notices::go_on(&mut client, &going).await
    }

    async fn take_orphaned_calls(
        &self,
        node: &NodeId,
        lease: SignedDuration,
        abandoned: &[CallSid],
        limit: u32,
    ) -> Result<Vec<OrphanedCall>, StoreError> {
        let mut client = self.client().await?;
        taking_over::take_orphaned(&mut client, node, millis(lease), abandoned, limit).await
    }

    fn lease_end(&self) -> LeaseEnd {
        LeaseEnd::Time
    }

    async fn heartbeat(
        &self,
        node: &NodeId,
        _now: Timestamp,
        lease: SignedDuration,
    ) -> Result<HeartbeatReply, StoreError> {
        let schema = i32::try_from(WANTED).unwrap_or(i32::MAX);
        let values: super::Values<'_> = &[&node.as_str(), &millis(lease), &schema];
        let session = self.heartbeats.get(self.usual).await?;
        let row = session.query_one(HEARTBEAT, values).await?;
        let nodes = row.number::<u32>(0)? + 1;
        self.signals.note_nodes(nodes, row.number(2)?);
        Ok(HeartbeatReply {
            nodes,
            database_time: Some(row.time(1)?),
        })
    }

    async fn share_trunks(
        &self,
        node: &NodeId,
        requests: Vec<GrantRequest>,
    ) -> Result<Vec<(String, TrunkGrant)>, StoreError> {
        sharing::share(&mut *self.client().await?, node, &requests).await
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        let duties = queue::LEAVE_DUTIES.postgres;
        for leave in [sharing::LEAVE, duties, LEAVE] {
            self.execute(leave, &[&node.as_str()]).await?;
        }
        Ok(())
    }

    async fn held_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError> {
        let rows = self
            .query(queue::HELD_BY.postgres, &[&node.as_str()])
            .await?;
        rows.iter().map(queue::call_sid).collect()
    }

    async fn cancel_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError> {
        let row = self
            .query_opt(queue::CANCEL.postgres, &[&sid.as_str()])
            .await?;
        row.as_ref().map(queue::call_state).transpose()
    }

    async fn cancelled_calls(&self, node: &NodeId) -> Result<Vec<CancelledCall>, StoreError> {
        let rows = self
            .query(queue::CANCELLED_OF.postgres, &[&node.as_str()])
            .await?;
        rows.iter().map(queue::cancelled).collect()
    }

    async fn queue_depth(&self) -> Result<(u64, Option<SignedDuration>), StoreError> {
        let waiting = queue::depth(&self.query_one(queue::DEPTH.postgres, &[]).await?)?;
        if self.plans.is_outgrown(waiting) {
            self.pool.forget_plans();
            self.ends.forget_plans();
        }
        let (lanes, now) = claiming::lanes(self).await?;
        Ok((waiting, queue::longest_due(&lanes, now)))
    }

    async fn calls_to(
        &self,
        account: &AccountSid,
        callee: &str,
        within: SignedDuration,
    ) -> Result<u32, StoreError> {
        let values: super::Values<'_> = &[&callee, &millis(within), &account.as_str()];
        let row = self.query_one(CALLS_TO, values).await?;
        row.number(0)
    }

    async fn forget_counted(&self, limit: u32) -> Result<u64, StoreError> {
        self.execute(FORGET_COUNTED, &[&i64::from(limit)]).await
    }

    async fn forget_requests(
        &self,
        before: Timestamp,
        after: Option<CallSid>,
        limit: u32,
    ) -> Result<ForgetStep, StoreError> {
        forget(self, requests::OLD, FORGET_REQUESTS, before, after, limit).await
    }

    async fn forget_calls(
        &self,
        before: Timestamp,
        after: Option<CallSid>,
        limit: u32,
    ) -> Result<ForgetStep, StoreError> {
        forget(self, queue::OLD_CALLS, FORGET_CALLS, before, after, limit).await
    }
}

async fn forget(
    store: &PostgresStore,
    old: Statement,
    forget: &str,
    before: Timestamp,
    after: Option<CallSid>,
    limit: u32,
) -> Result<ForgetStep, StoreError> {
    let after = after.as_ref().map_or("", CallSid::as_str);
    let values: super::Values<'_> = &[&i64::from(limit), &before.as_millisecond(), &after];
    let client = store.long_client().await?;
    let rows = client.query(old.postgres, values).await?;
    let seen = rows.iter().map(queue::old_one);
    let seen = seen.collect::<Result<Vec<_>, _>>()?;
    let (going, step) = queue::forget_step(&seen, limit);
    if !going.is_empty() {
        client.execute(forget, &[&going]).await?;
    }
    Ok(step)
}

/// Numbers of the states for which something holds.
fn states(holds: impl Fn(CallState) -> bool) -> Vec<i16> {
    CallState::ALL
        .into_iter()
        .filter(|state| holds(*state))
        .map(CallState::number)
        .collect()
}

/// Nothing happens if the call is not ours any more, or cannot go there from where it is.
fn advance(sid: &CallSid, lease: &Lease, step: &WatchedUpdate) -> Change {
    let update = &step.update;
    let (tries, trunk) = queue::tries_and_trunk(update);
    let from = states(|state| queue::may_follow(state, update));
    let moment = queue::moment(update).as_millisecond();
    let held = owned![
        sid.as_str().to_owned(),
        lease.node.as_str().to_owned(),
        lease.fence,
        from,
    ];
    let progress = |plain, with_event| {
        let values = owned![
            update.state().number(),
            moment,
            trunk.map(str::to_owned),
            update.dialog().map(str::to_owned),
            tries,
        ];
        ([plain, with_event], Vec::from(values))
    };
    let ([plain, with_event], mut values) = match update {
        CallUpdate::Dialling { .. } => progress(DIALLED, DIALLED_WITH_EVENT),
        CallUpdate::Ringing { .. } => progress(RANG, RANG_WITH_EVENT),
        CallUpdate::Answered { .. } => progress(ANSWERED, ANSWERED_WITH_EVENT),
        CallUpdate::Chosen { choice, .. } => (
            [CHOSEN, CHOSEN_WITH_EVENT],
            owned![choice.to_stored(), moment].into(),
        ),
    };
    values.extend(held);
    if !matches!(update, CallUpdate::Chosen { .. }) {
        let is_dialled = matches!(update, CallUpdate::Dialling { .. });
        values.extend(owned![is_dialled]);
    }
    let sql = match &step.event {
        Some(event) => {
            values.extend(event_values(event));
            with_event
        }
        None => plain,
    };
    Change {
        sid: sid.clone(),
        sql,
        values,
        frees: None,
    }
}

/// The six values of `with_event`.
fn event_values(event: &OwedEvent) -> [Box<dyn ToSql + Send + Sync>; 6] {
    let [before, after] = event.body.clone();
    owned![
        event.app.as_str().to_owned(),
        event.receiver(),
        event.url.as_str().to_owned(),
        before,
        after,
        event.owed_at.as_millisecond(),
    ]
}
