//! Callbacks in PostgreSQL. Leases run by the database's clock, so nodes need not agree on the time.

use async_trait::async_trait;
use jiff::Timestamp;

use super::session::Session;
use super::{PostgresStore, bound, column};
use crate::domain::call::CallSid;
use crate::domain::callback::{
    Callback, CallbackAttempt, CallbackLease, ClaimedCallback, EndedAttempt, OwedCallback,
};
use crate::store::columns::Columns;
use crate::store::statements::callbacks::{self, CLAIMED};
use crate::store::statements::{postgres, queue};
use crate::store::{
    CallbackBacklog, CallbackClaim, CallbackFilter, CallbackQueue, ClaimedBatch, StoreError,
};

const OWE: &str = postgres!(
    "INSERT INTO callbacks (call_sid, app_id, webhook_id, host, url, body, state, owed_at, due_at) \
     SELECT call_sid, app_id, webhook_id, host, url, body, {waiting}, owed_at, owed_at \
     FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[]) \
       AS batch (call_sid, app_id, webhook_id, host, url, body, owed_at) ON CONFLICT (call_sid) DO NOTHING"
);
/// Each host that has something waiting, and when its first is due: one step of the index a host, however much waits for it.
const WAITING_HOSTS: &str = postgres!(
    "WITH RECURSIVE hosts AS ( \
       (SELECT host, due_at FROM callbacks WHERE state = {waiting} ORDER BY host, due_at LIMIT 1) \
       UNION ALL \
       SELECT next.host, next.due_at FROM hosts, LATERAL ( \
         SELECT host, due_at FROM callbacks WHERE state = {waiting} AND host > hosts.host ORDER BY host, due_at LIMIT 1) AS next) \
     SELECT host, due_at FROM hosts"
);
/// What another node is just claiming is passed over, not waited for.
const CLAIM: &str = postgres!(
    "WITH free AS MATERIALIZED ( \
       SELECT picked.call_sid FROM unnest($1::text[], $2::bigint[]) AS hosts (host, capacity), LATERAL ( \
         SELECT call_sid, due_at FROM callbacks WHERE state = {waiting} AND host = hosts.host AND due_at <= $3 \
         ORDER BY due_at LIMIT hosts.capacity FOR UPDATE SKIP LOCKED) AS picked \
       ORDER BY picked.due_at LIMIT $4) \
     UPDATE callbacks SET state = {delivering}, node = $5, fence = fence + 1, lease_until = {now} + $6 \
     FROM free WHERE callbacks.call_sid = free.call_sid RETURNING ",
    CLAIMED
);
const RECORD: &str = postgres!(
    "WITH batch AS (SELECT * FROM unnest($1::text[], $2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], \
       $7::bigint[], $8::text[], $9::smallint[], $10::text[], $11::text[]) AS batch (call_sid, fence, next, next_due, finished, \
       started_at, duration, verdict, status, error, answer)), \
     held AS (UPDATE callbacks SET state = batch.next, due_at = batch.next_due, finished_at = batch.finished, \
       attempts = attempts + 1, failures = failures + 1, node = NULL, lease_until = NULL FROM batch \
       WHERE callbacks.call_sid = batch.call_sid AND callbacks.fence = batch.fence AND callbacks.state = {delivering} \
       RETURNING callbacks.call_sid, callbacks.attempts) \
     INSERT INTO callback_attempts (call_sid, attempt, started_at, duration, verdict, status, error, answer) \
       SELECT call_sid, attempts, started_at, duration, verdict, status, error, answer FROM held JOIN batch USING (call_sid) \
       RETURNING call_sid"
);
const RELEASE: &str = postgres!(
    "UPDATE callbacks SET state = {waiting}, node = NULL, lease_until = NULL \
     FROM unnest($1::text[], $2::bigint[]) AS held (call_sid, fence) \
     WHERE callbacks.call_sid = held.call_sid AND callbacks.fence = held.fence AND state = {delivering}"
);
const RECLAIM: &str = postgres!(
    "UPDATE callbacks SET state = {waiting}, node = NULL, lease_until = NULL WHERE state = {delivering} AND lease_until < {now}"
);

#[async_trait]
impl CallbackQueue for PostgresStore {
    async fn claim_callbacks(&self, claim: CallbackClaim) -> Result<ClaimedBatch, StoreError> {
        let client = self.client().await?;
        let (hosts, next_due) = claim.choose(waiting_hosts(&client).await?);
        let callbacks = if hosts.is_empty() {
            Vec::new()
        } else {
            take(&client, &claim, &hosts).await?
        };
        Ok(ClaimedBatch {
            callbacks,
            next_due,
        })
    }

    async fn record_attempts(&self, ended: Vec<EndedAttempt>) -> Result<Vec<CallSid>, StoreError> {
        record(&*self.client().await?, &ended).await
    }

    async fn release_callbacks(&self, leases: Vec<CallbackLease>) -> Result<(), StoreError> {
        let client = self.client().await?;
        client
            .execute_once(
                RELEASE,
                &[
                    &column(&leases, |lease| lease.call.as_str()),
                    &column(&leases, |lease| lease.fence),
                ],
            )
            .await?;
        Ok(())
    }

    async fn reclaim_callbacks(&self, _node: &str) -> Result<u64, StoreError> {
        let client = self.client().await?;
        Ok(client.execute_once(RECLAIM, &[]).await?)
    }

    async fn callbacks(&self, filter: CallbackFilter) -> Result<Vec<Callback>, StoreError> {
        let (list, values) = callbacks::list(&filter, '$');
        let client = self.client().await?;
        let rows = client.query_once(&list, &bound(&values)).await?;
        rows.iter().map(callbacks::callback).collect()
    }

    async fn callback(
        &self,
        sid: &CallSid,
    ) -> Result<Option<(Callback, Vec<CallbackAttempt>)>, StoreError> {
        find(&*self.client().await?, sid).await
    }

    async fn replay_callback(&self, sid: &CallSid, now: Timestamp) -> Result<(), StoreError> {
        let client = self.client().await?;
        let values: super::Values<'_> = &[&sid.as_str(), &now.as_millisecond()];
        let replayed = client
            .execute_once(callbacks::REPLAY.postgres, values)
            .await?;
        if replayed > 0 {
            return Ok(());
        }
        Err(match find(&client, sid).await? {
            Some(_) => StoreError::being_delivered(sid),
            None => StoreError::no_callback(sid),
        })
    }

    async fn callback_backlog(&self) -> Result<CallbackBacklog, StoreError> {
        let client = self.client().await?;
        let row = client
            .query_one_once(callbacks::BACKLOG.postgres, &[])
            .await?;
        callbacks::backlog(&row)
    }
}

/// To be called in the transaction that ends the calls: one statement for the whole batch. Owing the same again changes nothing.
pub async fn owe(client: &Session, owed: &[OwedCallback]) -> Result<(), StoreError> {
    client
        .execute_once(
            OWE,
            &[
                &column(owed, |owed| owed.call.as_str()),
                &column(owed, |owed| owed.app.as_str()),
                &column(owed, |owed| owed.webhook_id.as_str()),
                &column(owed, |owed| owed.url.host()),
                &column(owed, |owed| owed.url.as_str()),
                &column(owed, |owed| owed.body.as_str()),
                &column(owed, |owed| owed.owed_at.as_millisecond()),
            ],
        )
        .await?;
    Ok(())
}

async fn waiting_hosts(client: &Session) -> Result<Vec<(String, Timestamp)>, StoreError> {
    let rows = client.query(WAITING_HOSTS, &[]).await?;
    rows.iter()
        .map(|row| Ok((row.string(0)?, row.time(1)?)))
        .collect()
}

async fn take(
    client: &Session,
    claim: &CallbackClaim,
    hosts: &[(String, u32)],
) -> Result<Vec<ClaimedCallback>, StoreError> {
    let lease = i64::try_from(claim.lease.as_millis()).unwrap_or(i64::MAX / 2);
    let rows = client
        .query(
            CLAIM,
            &[
                &column(hosts, |(host, _)| host.as_str()),
                &column(hosts, |(_, capacity)| i64::from(*capacity)),
                &claim.now.as_millisecond(),
                &i64::from(claim.limit),
                &claim.node,
                &lease,
            ],
        )
        .await?;
    let claimed = rows.iter().map(callbacks::claimed);
    let mut claimed: Vec<_> = claimed.collect::<Result<_, _>>()?;
    claimed.sort_by_key(|callback| callback.due_at);
    Ok(claimed)
}

/// A statement alone is its own transaction: one round trip carries all the attempts and what follows from them.
async fn record(client: &Session, ended: &[EndedAttempt]) -> Result<Vec<CallSid>, StoreError> {
    let due = |ended: &EndedAttempt| ended.next.due_at().map(Timestamp::as_millisecond);
    let finished = |ended: &EndedAttempt| match ended.next.due_at() {
        Some(_) => None,
        None => Some(ended.ended_at.as_millisecond()),
    };
    let status = |ended: &EndedAttempt| ended.attempt.status.and_then(|s| i16::try_from(s).ok());
    let rows = client
        .query(
            RECORD,
            &[
                &column(ended, |ended| ended.lease.call.as_str()),
                &column(ended, |ended| ended.lease.fence),
                &column(ended, |ended| ended.next.state().number()),
                &column(ended, due),
                &column(ended, finished),
                &column(ended, |ended| ended.attempt.started_at.as_millisecond()),
                &column(ended, |ended| ended.attempt.milliseconds),
                &column(ended, |ended| ended.attempt.verdict.as_str()),
                &column(ended, status),
                &column(ended, |ended| ended.attempt.error.as_deref()),
                &column(ended, |ended| ended.attempt.answer.as_deref()),
            ],
        )
        .await?;
    rows.iter().map(queue::call_sid).collect()
}

async fn find(
    client: &Session,
    sid: &CallSid,
) -> Result<Option<(Callback, Vec<CallbackAttempt>)>, StoreError> {
    let values: super::Values<'_> = &[&sid.as_str()];
    let found = client
        .query_opt_once(callbacks::FIND.postgres, values)
        .await?;
    let Some(row) = found else {
        return Ok(None);
    };
    let attempts = client
        .query_once(callbacks::ATTEMPTS.postgres, values)
        .await?;
    let attempts = attempts.iter().map(callbacks::attempt);
    Ok(Some((
        callbacks::callback(&row)?,
        attempts.collect::<Result<_, _>>()?,
    )))
}
