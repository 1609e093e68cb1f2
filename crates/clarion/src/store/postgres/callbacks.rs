//! Callbacks in PostgreSQL. Due times and leases are by the database's clock, so nodes need not agree on the time.

use std::cmp::Reverse;
use std::collections::HashMap;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use tokio_postgres::types::ToSql;

use super::session::{PooledSession, Session};
use super::{PostgresStore, bound, column};
use crate::domain::account::AppId;
use crate::domain::call::CallSid;
use crate::domain::callback::{
    Callback, CallbackAttempt, CallbackKey, CallbackLease, ClaimedCallback, EndedAttempt,
    MAX_EVENTS, OwedCallback, OwedEvent,
};
use crate::store::binding::millis;
use crate::store::callbacks::WaitingApp;
use crate::store::columns::Columns;
use crate::store::statements::callback_list::{self, CallbackList, Question};
use crate::store::statements::callbacks::{
    self, CLAIMED, CLAIMED_COLUMNS, GIVE_UP, IN_ORDER, LATE_EVENTS, OF_THEIR_CALL, OLDEST_FIRST,
    UNLESS_DELIVERING,
};
use crate::store::statements::postgres;
use crate::store::{
    CallbackBacklog, CallbackClaim, CallbackFilter, CallbackPage, CallbackQueue, DueReceivers,
    ReceiverLook, ReplayFrom, ReplayStep, Replayed, StoreError,
};

const OWE: &str = postgres!(
    "INSERT INTO callbacks (call_sid, seq, app_id, webhook_id, host, url, body, state, owed_at, due_at, expires_at) \
     SELECT call_sid, seq, app_id, webhook_id, host, url, body, {waiting}, owed_at, {now}, {now} + valid_for \
     FROM unnest($1::text[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[]) \
       AS batch (call_sid, seq, app_id, webhook_id, host, url, body, owed_at, valid_for) ON CONFLICT DO NOTHING"
);
/// One step of the index an application, however much waits of it. The collation names the index (`0013_callbacks_by_account.sql`).
const WAITING_APPS: &str = postgres!(
    "WITH RECURSIVE apps AS ( \
       (SELECT app_id, due_at FROM callbacks WHERE state = {waiting} ORDER BY app_id COLLATE \"POSIX\", due_at LIMIT 1) \
       UNION ALL \
       SELECT next.app_id, next.due_at FROM apps, LATERAL ( \
         SELECT app_id, due_at FROM callbacks WHERE state = {waiting} AND app_id COLLATE \"POSIX\" > apps.app_id \
           ORDER BY app_id COLLATE \"POSIX\", due_at LIMIT 1) AS next) \
     SELECT app_id, coalesce((SELECT account_sid FROM applications WHERE id = app_id), app_id), due_at, {now} FROM apps"
);
/// One step of the index a receiver, however much waits for it.
const WAITING_RECEIVERS: &str = postgres!(
    "SELECT apps.place, found.host, found.due_at - {now} FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS apps (app_id, after, place), \
       LATERAL (WITH RECURSIVE hosts AS ( \
           (SELECT host, due_at FROM callbacks WHERE state = {waiting} AND app_id = apps.app_id AND host COLLATE \"POSIX\" > apps.after \
             ORDER BY host COLLATE \"POSIX\", due_at LIMIT 1) \
           UNION ALL \
           SELECT next.host, next.due_at FROM hosts, LATERAL ( \
             SELECT host, due_at FROM callbacks WHERE state = {waiting} AND app_id = apps.app_id AND host COLLATE \"POSIX\" > hosts.host \
               ORDER BY host COLLATE \"POSIX\", due_at LIMIT 1) AS next) \
         SELECT host, due_at FROM hosts LIMIT $3) AS found \
     ORDER BY apps.place, found.host COLLATE \"POSIX\""
);
/// What another node is just claiming is passed over, not waited for.
const CLAIM: &str = postgres!(
    "WITH free AS MATERIALIZED ( \
       SELECT picked.call_sid, picked.seq FROM unnest($1::text[], $2::text[], $3::bigint[]) AS shares (app_id, host, places), LATERAL ( \
         SELECT call_sid, seq FROM callbacks AS this \
           WHERE state = {waiting} AND app_id = shares.app_id AND host COLLATE \"POSIX\" = shares.host AND due_at <= {now}",
    IN_ORDER,
    "{now}",
    OF_THEIR_CALL,
    "shares.places FOR UPDATE OF this SKIP LOCKED) AS picked) \
     UPDATE callbacks SET state = {delivering}, node = $4, fence = fence + 1, lease_until = {now} + $5 \
     FROM free WHERE callbacks.call_sid = free.call_sid AND callbacks.seq = free.seq RETURNING ",
    CLAIMED,
    ", {now}"
);
const RECORD: &str = postgres!(
    "WITH batch AS (SELECT * FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::smallint[], $5::bigint[], $6::bigint[], $7::bigint[], \
       $8::bigint[], $9::text[], $10::smallint[], $11::text[], $12::text[]) AS batch (call_sid, seq, fence, next, wait, finished, \
       started_at, duration, verdict, status, error, answer)), \
     held AS (UPDATE callbacks SET state = batch.next, due_at = {now} + batch.wait, finished_at = batch.finished, \
       attempts = attempts + 1, failures = failures + 1, node = NULL, lease_until = NULL FROM batch \
       WHERE callbacks.call_sid = batch.call_sid AND callbacks.seq = batch.seq AND callbacks.fence = batch.fence \
         AND callbacks.state = {delivering} \
       RETURNING callbacks.call_sid, callbacks.seq, callbacks.attempts, callbacks.url), \
     superseded AS (UPDATE callbacks SET state = {superseded}, due_at = NULL, finished_at = batch.finished \
       FROM held JOIN batch USING (call_sid, seq) WHERE held.seq > 0 AND batch.next = {delivered} \
         AND callbacks.call_sid = held.call_sid AND callbacks.seq > 0 AND callbacks.seq < held.seq AND callbacks.state = {waiting} \
         AND callbacks.url = held.url) \
     INSERT INTO callback_attempts (call_sid, seq, attempt, started_at, duration, verdict, status, error, answer) \
       SELECT call_sid, seq, attempts, started_at, duration, verdict, status, error, answer FROM held JOIN batch USING (call_sid, seq) \
       RETURNING call_sid, seq"
);
const RELEASE: &str = postgres!(
    "UPDATE callbacks SET state = {waiting}, node = NULL, lease_until = NULL \
     FROM unnest($1::text[], $2::integer[], $3::bigint[]) AS held (call_sid, seq, fence) \
     WHERE callbacks.call_sid = held.call_sid AND callbacks.seq = held.seq AND callbacks.fence = held.fence AND state = {delivering}"
);
const REPLAY: &str = postgres!(callbacks::REPLAY, "{now}", UNLESS_DELIVERING);
/// One statement is one commit. $3 and $4 are the application and the host, where they are asked for.
const REPLAY_THEM: &str = "), replayed AS (UPDATE callbacks AS this SET state = {waiting}, failures = 0, finished_at = NULL, due_at = {now} \
       FROM stretch WHERE this.call_sid = stretch.call_sid AND this.seq = 0 AND this.state >= {delivered} \
       AND (CAST($3 AS TEXT) IS NULL OR stretch.app_id = $3) AND (CAST($4 AS TEXT) IS NULL OR stretch.host = $4) RETURNING this.call_sid) \
     SELECT (SELECT count(*) FROM replayed), count(*), max(call_sid) FROM stretch";
const REPLAY_GIVEN_UP: &str = postgres!(
    "WITH stretch AS MATERIALIZED (",
    callbacks::GIVEN_UP_AFTER,
    REPLAY_THEM
);
const REPLAY_DELIVERED: &str = postgres!(
    "WITH stretch AS MATERIALIZED (",
    callbacks::DELIVERED_AFTER,
    REPLAY_THEM
);
const RECLAIM: &str = postgres!(
    "UPDATE callbacks SET state = {waiting}, node = NULL, lease_until = NULL WHERE state = {delivering} AND lease_until < {now}"
);
/// What another node is just claiming is passed over.
const GIVE_UP_LATE: &str = postgres!(
    GIVE_UP,
    LATE_EVENTS,
    "{now} - $2",
    OLDEST_FIRST,
    " FOR UPDATE SKIP LOCKED)"
);

impl PostgresStore {
    async fn delivering(&self) -> Result<PooledSession, StoreError> {
        Ok(self.callbacks.get(self.usual).await?)
    }
}

#[async_trait]
impl CallbackQueue for PostgresStore {
    async fn due_receivers(&self, look: ReceiverLook) -> Result<DueReceivers, StoreError> {
        let client = self.delivering().await?;
        let rows = client.query(WAITING_APPS, &[]).await?;
        let apps = rows
            .iter()
            .map(|row| callbacks::waiting_app(row, row.number(3)?));
        let (apps, mut found) = look.choose(apps.collect::<Result<_, StoreError>>()?);
        if !apps.is_empty() {
            let mut seen = waiting_receivers(&client, &apps, look.limit).await?;
            for ((app, _), place) in apps.iter().zip(1..) {
                found.add(app, look.limit, seen.remove(&place).unwrap_or_default());
            }
        }
        Ok(found)
    }

    async fn claim_callbacks(
        &self,
        claim: CallbackClaim,
    ) -> Result<Option<Vec<ClaimedCallback>>, StoreError> {
        take(&*self.delivering().await?, &claim).await
    }

    async fn record_attempts(
        &self,
        ended: Vec<EndedAttempt>,
    ) -> Result<Vec<CallbackKey>, StoreError> {
        record(&*self.delivering().await?, &ended).await
    }

    async fn release_callbacks(&self, leases: Vec<CallbackLease>) -> Result<(), StoreError> {
        let client = self.delivering().await?;
        client
            .execute_once(
                RELEASE,
                &[
                    &column(&leases, |lease| lease.key.call.as_str()),
                    &column(&leases, |lease| lease.key.seq),
                    &column(&leases, |lease| lease.fence),
                ],
            )
            .await?;
        Ok(())
    }

    async fn reclaim_callbacks(&self, _node: &str) -> Result<u64, StoreError> {
        let client = self.delivering().await?;
        Ok(client.execute_once(RECLAIM, &[]).await?)
    }

    async fn give_up_late_events(
        &self,
        waited: SignedDuration,
        now: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let client = self.delivering().await?;
        let values: super::Values<'_> =
            &[&now.as_millisecond(), &millis(waited), &i64::from(limit)];
        Ok(client.execute(GIVE_UP_LATE, values).await?)
    }

    async fn callbacks(&self, filter: CallbackFilter) -> Result<CallbackPage, StoreError> {
        let client = self.client().await?;
        let asked = async |question: Question<'_>| {
            let values = bound(&question.values);
            client.query_once(&question.text, &values).await
        };
        let waiting = match callback_list::waiting(&filter, '$') {
            Some(question) => {
                let rows = asked(question).await?;
                rows.first().map(|row| row.number(0)).transpose()?
            }
            None => None,
        };
        let list = CallbackList::new(&filter, waiting, '$');
        let found = asked(list.found()).await?;
        let end = match list.end(found.len()) {
            Some(question) => {
                let rows = asked(question).await?;
                rows.first().map(callbacks::key).transpose()?
            }
            None => None,
        };
        let found = found.iter().map(callbacks::callback);
        let found: Result<_, StoreError> = found.collect();
        Ok(callback_list::page(found?, end, &filter))
    }

    async fn callback(
        &self,
        key: &CallbackKey,
    ) -> Result<Option<(Callback, Vec<CallbackAttempt>)>, StoreError> {
        find(&*self.client().await?, key).await
    }

    async fn replay_callback(&self, key: &CallbackKey) -> Result<(), StoreError> {
        let client = self.client().await?;
        let values: super::Values<'_> = &[&key.call.as_str(), &key.seq];
        if client.execute_once(REPLAY, values).await? > 0 {
            return Ok(());
        }
        Err(match find(&client, key).await? {
            Some(_) => StoreError::being_delivered(key),
            None => StoreError::no_callback(key),
        })
    }

    async fn replay_callbacks(&self, step: ReplayStep) -> Result<Replayed, StoreError> {
        let statement = match step.from {
            ReplayFrom::GivenUp => REPLAY_GIVEN_UP,
            ReplayFrom::Delivered => REPLAY_DELIVERED,
        };
        let app = step.app.as_ref().map(AppId::as_str);
        let values: super::Values<'_> = &[
            &step.after.as_str(),
            &i64::from(step.limit),
            &app,
            &step.host,
        ];
        let client = self.long_client().await?;
        let row = client.query_one_once(statement, values).await?;
        let is_cut = row.number::<u32>(1)? >= step.limit;
        let last: Option<CallSid> = row.optional_parsed(2)?;
        Ok(Replayed {
            count: row.number(0)?,
            next: last.filter(|_| is_cut),
        })
    }

    async fn owe_event(&self, owed: OwedCallback) -> Result<bool, StoreError> {
        let client = self.client().await?;
        loop {
            let call = owed.key.call.as_str();
            let statement = callbacks::LAST_EVENT.postgres;
            let row = client.query_one(statement, &[&call]).await?;
            let last = row.number::<i32>(0)?;
            if last >= MAX_EVENTS {
                return Ok(false);
            }
            // Somebody else may have taken the number.
            if owe(&client, &[owed.clone().numbered(last + 1)]).await? > 0 {
                return Ok(true);
            }
        }
    }

    async fn callback_backlog(&self) -> Result<CallbackBacklog, StoreError> {
        let client = self.client().await?;
        let row = client
            .query_one_once(callbacks::BACKLOG.postgres, &[])
            .await?;
        callbacks::backlog(&row)
    }
}

/// To be called in the transaction that they are about: one statement for the whole batch. Owing the same again changes nothing.
pub async fn owe(client: &Session, owed: &[OwedCallback]) -> Result<u64, StoreError> {
    let columns = columns(owed);
    let values: Vec<_> = columns.iter().map(|column| &**column as _).collect();
    Ok(client.execute(OWE, &values).await?)
}

/// The values of `OWE`.
pub fn columns<'a>(owed: &'a [OwedCallback]) -> [Box<dyn ToSql + Send + Sync + 'a>; 9] {
    [
        Box::new(column(owed, |owed| owed.key.call.as_str())),
        Box::new(column(owed, |owed| owed.key.seq)),
        Box::new(column(owed, |owed| owed.app.as_str())),
        Box::new(column(owed, |owed| owed.webhook_id.as_str())),
        Box::new(column(owed, OwedCallback::receiver)),
        Box::new(column(owed, |owed| owed.url.as_str())),
        Box::new(column(owed, |owed| owed.body.as_str())),
        Box::new(column(owed, |owed| owed.owed_at.as_millisecond())),
        Box::new(column(owed, |owed| owed.valid_for.map(millis))),
    ]
}

/// Events take their places behind those that the call has. Beyond the most that it may have only its end is told.
pub async fn owe_events(client: &Session, events: &[OwedEvent]) -> Result<(), StoreError> {
    for event in events {
        loop {
            let values: super::Values<'_> = &[&event.call.as_str()];
            let row = client
                .query_one(callbacks::LAST_EVENT.postgres, values)
                .await?;
            let last = row.number::<i32>(0)?;
            // Somebody else may have taken the place.
            if !event.has_room(last) || owe(client, &[event.numbered(last + 1)]).await? > 0 {
                break;
            }
        }
    }
    Ok(())
}

/// The receivers of each application, by its place in the list.
async fn waiting_receivers(
    client: &Session,
    apps: &[(WaitingApp, String)],
    limit: u32,
) -> Result<HashMap<i64, Vec<(String, SignedDuration)>>, StoreError> {
    let values: super::Values<'_> = &[
        &column(apps, |(app, _)| app.app.as_str()),
        &column(apps, |(_, after)| after.as_str()),
        &i64::from(limit),
    ];
    let mut seen: HashMap<i64, Vec<_>> = HashMap::new();
    for row in client.query(WAITING_RECEIVERS, values).await? {
        let first = SignedDuration::from_millis(row.number(2)?);
        let receivers = seen.entry(row.number(0)?).or_default();
        receivers.push((row.string(1)?, first));
    }
    Ok(seen)
}

/// `None` if another node has begun an event of the same call in the same moment: nothing was taken.
async fn take(
    client: &Session,
    claim: &CallbackClaim,
) -> Result<Option<Vec<ClaimedCallback>>, StoreError> {
    let lease = i64::try_from(claim.lease.as_millis()).unwrap_or(i64::MAX / 2);
    let values: super::Values<'_> = &[
        &column(&claim.shares, |share| share.app.as_str()),
        &column(&claim.shares, |share| share.receiver.as_str()),
        &column(&claim.shares, |share| i64::from(share.limit)),
        &claim.node,
        &lease,
    ];
    let rows = match client.query(CLAIM, values).await {
        Err(error) if error.is_duplicate() => return Ok(None),
        rows => rows?,
    };
    let claimed = rows
        .iter()
        .map(|row| callbacks::claimed(row, row.number(CLAIMED_COLUMNS)?));
    let mut claimed: Vec<_> = claimed.collect::<Result<_, StoreError>>()?;
    claimed.sort_by_key(|callback| Reverse(callback.lag));
    Ok(Some(claimed))
}

/// A statement alone is its own transaction: one round trip carries all the attempts and what follows from them.
async fn record(client: &Session, ended: &[EndedAttempt]) -> Result<Vec<CallbackKey>, StoreError> {
    let finished = |ended: &EndedAttempt| match ended.next.wait() {
        Some(_) => None,
        None => Some(ended.ended_at.as_millisecond()),
    };
    let status = |ended: &EndedAttempt| ended.attempt.status.and_then(|s| i16::try_from(s).ok());
    let rows = client
        .query(
            RECORD,
            &[
                &column(ended, |ended| ended.lease.key.call.as_str()),
                &column(ended, |ended| ended.lease.key.seq),
                &column(ended, |ended| ended.lease.fence),
                &column(ended, |ended| ended.next.state().number()),
                &column(ended, |ended| ended.next.wait().map(millis)),
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
    rows.iter().map(callbacks::key).collect()
}

async fn find(
    client: &Session,
    key: &CallbackKey,
) -> Result<Option<(Callback, Vec<CallbackAttempt>)>, StoreError> {
    let values: super::Values<'_> = &[&key.call.as_str(), &key.seq];
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
