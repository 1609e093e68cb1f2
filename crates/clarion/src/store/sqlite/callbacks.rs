//! Callbacks in SQLite. A lease belongs to the life of the one process that serves, so it has no end of its own.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, params, params_from_iter};

use super::SqliteStore;
use super::query::Query;
use crate::domain::call::CallSid;
use crate::domain::callback::{
    Callback, CallbackAttempt, CallbackLease, ClaimedCallback, EndedAttempt, OwedCallback,
};
use crate::store::columns::Columns;
use crate::store::statements::callbacks::{self, CLAIMED};
use crate::store::statements::sqlite;
use crate::store::{
    CallbackBacklog, CallbackClaim, CallbackFilter, CallbackQueue, ClaimedBatch, StoreError,
};

const OWE: &str = sqlite!(
    "INSERT INTO callbacks (call_sid, app_id, webhook_id, host, url, body, state, owed_at, due_at) \
     VALUES ($1, $2, $3, $4, $5, $6, {waiting}, $7, $7) ON CONFLICT DO NOTHING"
);
const NEXT_HOST: &str = sqlite!(
    "SELECT host, due_at FROM callbacks WHERE state = {waiting} AND host > $1 ORDER BY host, due_at LIMIT 1"
);
const DUE: &str = sqlite!(
    "SELECT call_sid FROM callbacks WHERE state = {waiting} AND host = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3"
);
const TAKE: &str = sqlite!(
    "UPDATE callbacks SET state = {delivering}, node = $2, fence = fence + 1 WHERE call_sid = $1 RETURNING ",
    CLAIMED
);
const RECORD: &str = sqlite!(
    "UPDATE callbacks SET state = $3, due_at = $4, finished_at = $5, attempts = attempts + 1, failures = failures + 1, node = NULL \
     WHERE call_sid = $1 AND fence = $2 AND state = {delivering} RETURNING attempts"
);
const RECORD_ATTEMPT: &str = sqlite!(
    "INSERT INTO callback_attempts (call_sid, attempt, started_at, duration, verdict, status, error, answer) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
);
const RELEASE: &str = sqlite!(
    "UPDATE callbacks SET state = {waiting}, node = NULL WHERE call_sid = $1 AND fence = $2 AND state = {delivering}"
);
const RECLAIM: &str = sqlite!(
    "UPDATE callbacks SET state = {waiting}, node = NULL WHERE state = {delivering} AND node <> $1"
);

#[async_trait]
impl CallbackQueue for SqliteStore {
    async fn claim_callbacks(&self, claim: CallbackClaim) -> Result<ClaimedBatch, StoreError> {
        // Looking is left to a reader: the writer is not kept from its work by what waits for hosts without capacity.
        let (hosts, next_due) = claim.choose(self.read(waiting_hosts).await?);
        let callbacks = if hosts.is_empty() {
            Vec::new()
        } else {
            self.write(move |db| take(db, &claim, &hosts)).await?
        };
        Ok(ClaimedBatch {
            callbacks,
            next_due,
        })
    }

    async fn record_attempts(&self, ended: Vec<EndedAttempt>) -> Result<Vec<CallSid>, StoreError> {
        self.write(move |db| {
            let mut recorded = Vec::with_capacity(ended.len());
            for attempt in &ended {
                if record(db, attempt)? {
                    recorded.push(attempt.lease.call.clone());
                }
            }
            Ok(recorded)
        })
        .await
    }

    async fn release_callbacks(&self, leases: Vec<CallbackLease>) -> Result<(), StoreError> {
        self.write(move |db| {
            for lease in &leases {
                db.run(RELEASE, params![lease.call.as_str(), lease.fence])?;
            }
            Ok(())
        })
        .await
    }

    /// One process serves at a time, so whatever another one holds is held by a process that is gone.
    async fn reclaim_callbacks(&self, node: &str) -> Result<u64, StoreError> {
        let node = node.to_owned();
        self.write(move |db| Ok(db.run(RECLAIM, [&node])? as u64))
            .await
    }

    async fn callbacks(&self, filter: CallbackFilter) -> Result<Vec<Callback>, StoreError> {
        self.read(move |db| {
            let (list, values) = callbacks::list(&filter, '?');
            db.rows(&list, params_from_iter(values), |row| {
                callbacks::callback(row)
            })
        })
        .await
    }

    async fn callback(
        &self,
        sid: &CallSid,
    ) -> Result<Option<(Callback, Vec<CallbackAttempt>)>, StoreError> {
        let sid = sid.clone();
        self.read(move |db| find(db, &sid)).await
    }

    async fn replay_callback(&self, sid: &CallSid, now: Timestamp) -> Result<(), StoreError> {
        let sid = sid.clone();
        self.write(move |db| {
            let values = params![sid.as_str(), now.as_millisecond()];
            if db.run(callbacks::REPLAY.sqlite, values)? > 0 {
                return Ok(());
            }
            Err(match find(db, &sid)? {
                Some(_) => StoreError::being_delivered(&sid),
                None => StoreError::no_callback(&sid),
            })
        })
        .await
    }

    async fn callback_backlog(&self) -> Result<CallbackBacklog, StoreError> {
        self.read(|db| db.only_row(callbacks::BACKLOG.sqlite, [], |row| callbacks::backlog(row)))
            .await
    }
}

/// To be called in the transaction that ends the call. Owing the same again changes nothing.
pub fn owe(db: &Connection, owed: &OwedCallback) -> Result<(), StoreError> {
    let values = params![
        owed.call.as_str(),
        owed.app.as_str(),
        owed.webhook_id,
        owed.url.host(),
        owed.url.as_str(),
        owed.body,
        owed.owed_at.as_millisecond(),
    ];
    db.run(OWE, values)?;
    Ok(())
}

/// Each host that has something waiting, and when its first is due: one step of the index a host, however much waits for it.
fn waiting_hosts(db: &Connection) -> Result<Vec<(String, Timestamp)>, StoreError> {
    let mut hosts: Vec<(String, Timestamp)> = Vec::new();
    loop {
        let after = hosts.last().map_or("", |(host, _)| host);
        let next = db.row(NEXT_HOST, [after], |row| Ok((row.string(0)?, row.time(1)?)))?;
        match next {
            Some(host) => hosts.push(host),
            None => return Ok(hosts),
        }
    }
}

fn take(
    db: &Connection,
    claim: &CallbackClaim,
    hosts: &[(String, u32)],
) -> Result<Vec<ClaimedCallback>, StoreError> {
    let mut claimed = Vec::new();
    for (host, capacity) in hosts {
        let left = u64::from(claim.limit).saturating_sub(claimed.len() as u64);
        let limit = left.min((*capacity).into()).cast_signed();
        let due = params![host, claim.now.as_millisecond(), limit];
        for sid in db.rows(DUE, due, |row| row.string(0))? {
            let taken = db.row(TAKE, params![sid, claim.node], |row| {
                callbacks::claimed(row)
            })?;
            claimed.extend(taken);
        }
    }
    Ok(claimed)
}

/// False if the lease was lost.
fn record(db: &Connection, ended: &EndedAttempt) -> Result<bool, StoreError> {
    let (sid, due_at) = (ended.lease.call.as_str(), ended.next.due_at());
    let values = params![
        sid,
        ended.lease.fence,
        ended.next.state().number(),
        due_at.map(Timestamp::as_millisecond),
        due_at.is_none().then(|| ended.ended_at.as_millisecond()),
    ];
    let Some(number) = db.row(RECORD, values, |row| row.number::<u32>(0))? else {
        return Ok(false);
    };
    let attempt = &ended.attempt;
    let values = params![
        sid,
        number,
        attempt.started_at.as_millisecond(),
        attempt.milliseconds,
        attempt.verdict.as_str(),
        attempt.status,
        attempt.error,
        attempt.answer,
    ];
    db.run(RECORD_ATTEMPT, values)?;
    Ok(true)
}

fn find(
    db: &Connection,
    sid: &CallSid,
) -> Result<Option<(Callback, Vec<CallbackAttempt>)>, StoreError> {
    let found = db.row(callbacks::FIND.sqlite, [sid.as_str()], |row| {
        callbacks::callback(row)
    })?;
    let Some(callback) = found else {
        return Ok(None);
    };
    let attempts = db.rows(callbacks::ATTEMPTS.sqlite, [sid.as_str()], |row| {
        callbacks::attempt(row)
    })?;
    Ok(Some((callback, attempts)))
}
