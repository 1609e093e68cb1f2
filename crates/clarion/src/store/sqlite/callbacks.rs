//! Callbacks in SQLite. A lease belongs to the life of the one process that serves, so it has no end of its own.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, params, params_from_iter};

use super::SqliteStore;
use super::query::Query;
use super::queue_clock::QueueClock;
use crate::domain::account::AppId;
use crate::domain::call::CallSid;
use crate::domain::callback::{
    Callback, CallbackAttempt, CallbackKey, CallbackLease, ClaimedCallback, EndedAttempt,
    MAX_EVENTS, NextDelivery, OwedCallback, OwedEvent,
};
use crate::store::binding::millis;
use crate::store::callbacks::WaitingApp;
use crate::store::columns::Columns;
use crate::store::statements::callback_list::{self, CallbackList, Question};
use crate::store::statements::callbacks::{
    self, CLAIMED, GIVE_UP, IN_ORDER, LATE_EVENTS, OF_THEIR_CALL, OLDEST_FIRST, UNLESS_DELIVERING,
};
use crate::store::statements::sqlite;
use crate::store::{
    CallbackBacklog, CallbackClaim, CallbackFilter, CallbackPage, CallbackQueue, DueReceivers,
    ReceiverLook, ReplayFrom, ReplayStep, Replayed, StoreError,
};

const OWE: &str = sqlite!(
    "INSERT INTO callbacks (call_sid, seq, app_id, webhook_id, host, url, body, state, owed_at, due_at, expires_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, {waiting}, $8, $9, $10) ON CONFLICT DO NOTHING"
);
const NEXT_APP: &str = sqlite!(
    "SELECT app_id, coalesce((SELECT account_sid FROM applications WHERE id = app_id), app_id), due_at \
     FROM callbacks INDEXED BY callbacks_by_app WHERE state = {waiting} AND app_id > $1 ORDER BY app_id, due_at LIMIT 1"
);
const NEXT_RECEIVER: &str = sqlite!(
    "SELECT host, due_at FROM callbacks INDEXED BY callbacks_by_receiver \
     WHERE state = {waiting} AND app_id = $1 AND host > $2 ORDER BY host, due_at LIMIT 1"
);
const DUE: &str = sqlite!(
    "SELECT call_sid, seq FROM callbacks AS this INDEXED BY callbacks_by_receiver \
     WHERE state = {waiting} AND app_id = $1 AND host = $2 AND due_at <= $3",
    IN_ORDER,
    "$3",
    OF_THEIR_CALL,
    "$4"
);
const TAKE: &str = sqlite!(
    "UPDATE callbacks SET state = {delivering}, node = $3, fence = fence + 1 WHERE call_sid = $1 AND seq = $2 RETURNING ",
    CLAIMED
);
const RECORD: &str = sqlite!(
    "UPDATE callbacks SET state = $4, due_at = $5, finished_at = $6, attempts = attempts + 1, failures = failures + 1, node = NULL \
     WHERE call_sid = $1 AND seq = $2 AND fence = $3 AND state = {delivering} RETURNING attempts"
);
const SUPERSEDE: &str = sqlite!(
    "UPDATE callbacks SET state = {superseded}, due_at = NULL, finished_at = $3 \
     WHERE call_sid = $1 AND seq > 0 AND seq < $2 AND state = {waiting} \
       AND url = (SELECT url FROM callbacks AS delivered WHERE delivered.call_sid = $1 AND delivered.seq = $2)"
);
const RECORD_ATTEMPT: &str = sqlite!(
    "INSERT INTO callback_attempts (call_sid, seq, attempt, started_at, duration, verdict, status, error, answer) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
);
const RELEASE: &str = sqlite!(
    "UPDATE callbacks SET state = {waiting}, node = NULL WHERE call_sid = $1 AND seq = $2 AND fence = $3 AND state = {delivering}"
);
const REPLAY: &str = sqlite!(callbacks::REPLAY, "$3", UNLESS_DELIVERING);
const GIVEN_UP_AFTER: &str = sqlite!(callbacks::GIVEN_UP_AFTER);
const DELIVERED_AFTER: &str = sqlite!(callbacks::DELIVERED_AFTER);
const GIVE_UP_LATE: &str = sqlite!(
    GIVE_UP,
    "INDEXED BY callbacks_waiting_events",
    LATE_EVENTS,
    "$2",
    OLDEST_FIRST,
    ")"
);
const RECLAIM: &str = sqlite!(
    "UPDATE callbacks SET state = {waiting}, node = NULL WHERE state = {delivering} AND node <> $1"
);

#[async_trait]
impl CallbackQueue for SqliteStore {
    /// Looking is left to a reader: the writer is not kept from its work by what cannot be taken now.
    async fn due_receivers(&self, look: ReceiverLook) -> Result<DueReceivers, StoreError> {
        let clock = self.clock.clone();
        self.read(move |db| due_receivers(db, &look, clock.now()))
            .await
    }

    async fn claim_callbacks(
        &self,
        claim: CallbackClaim,
    ) -> Result<Option<Vec<ClaimedCallback>>, StoreError> {
        let clock = self.clock.clone();
        let taken = self.write_beside(move |db| take(db, &claim, clock.now()));
        Ok(Some(taken.await?))
    }

    async fn record_attempts(
        &self,
        ended: Vec<EndedAttempt>,
    ) -> Result<Vec<CallbackKey>, StoreError> {
        let clock = self.clock.clone();
        self.write_beside(move |db| {
            let mut recorded = Vec::with_capacity(ended.len());
            for attempt in &ended {
                if record(db, attempt, &clock)? {
                    recorded.push(attempt.lease.key.clone());
                }
            }
            Ok(recorded)
        })
        .await
    }

    async fn release_callbacks(&self, leases: Vec<CallbackLease>) -> Result<(), StoreError> {
        self.write_beside(move |db| {
            for lease in &leases {
                let (sid, seq) = (lease.key.call.as_str(), lease.key.seq);
                db.run(RELEASE, params![sid, seq, lease.fence])?;
            }
            Ok(())
        })
        .await
    }

    /// One process serves at a time, so whatever another one holds is held by a process that is gone.
    async fn reclaim_callbacks(&self, node: &str) -> Result<u64, StoreError> {
        let node = node.to_owned();
        self.write_beside(move |db| Ok(db.run(RECLAIM, [&node])? as u64))
            .await
    }

    async fn give_up_late_events(
        &self,
        waited: SignedDuration,
        now: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let clock = self.clock.clone();
        self.write_beside(move |db| {
            let due_by = clock.now() - millis(waited);
            let values = params![now.as_millisecond(), due_by, limit];
            Ok(db.run(GIVE_UP_LATE, values)? as u64)
        })
        .await
    }

    async fn callbacks(&self, filter: CallbackFilter) -> Result<CallbackPage, StoreError> {
        self.read(move |db| {
            let waiting = callback_list::waiting(&filter, '?').map(|question| {
                let values = params_from_iter(question.values);
                db.only_row(&question.text, values, |row| row.number(0))
            });
            let list = CallbackList::new(&filter, waiting.transpose()?, '?');
            let Question { text, values, .. } = list.found();
            let found: Vec<_> = db.rows(&text, params_from_iter(values), |row| {
                callbacks::callback(row)
            })?;
            let end = list.end(found.len()).map(|question| {
                let values = params_from_iter(question.values);
                db.row(&question.text, values, |row| callbacks::key(row))
            });
            let end = end.transpose()?.flatten();
            Ok(callback_list::page(found, end, &filter))
        })
        .await
    }

    async fn callback(
        &self,
        key: &CallbackKey,
    ) -> Result<Option<(Callback, Vec<CallbackAttempt>)>, StoreError> {
        let key = key.clone();
        self.read(move |db| find(db, &key)).await
    }

    async fn replay_callback(&self, key: &CallbackKey) -> Result<(), StoreError> {
        let (key, clock) = (key.clone(), self.clock.clone());
        self.write_beside(move |db| {
            let values = params![key.call.as_str(), key.seq, clock.now()];
            if db.run(REPLAY, values)? > 0 {
                return Ok(());
            }
            Err(match find(db, &key)? {
                Some(_) => StoreError::being_delivered(&key),
                None => StoreError::no_callback(&key),
            })
        })
        .await
    }

    async fn replay_callbacks(&self, step: ReplayStep) -> Result<Replayed, StoreError> {
        let clock = self.clock.clone();
        self.write_beside(move |db| replay(db, &step, clock.now()))
            .await
    }

    async fn owe_event(&self, owed: OwedCallback) -> Result<bool, StoreError> {
        let clock = self.clock.clone();
        self.write_beside(move |db| {
            let call = owed.key.call.as_str();
            let last: i32 =
                db.only_row(callbacks::LAST_EVENT.sqlite, [call], |row| row.number(0))?;
            if last >= MAX_EVENTS {
                return Ok(false);
            }
            owe(db, &owed.clone().numbered(last + 1), clock.now())?;
            Ok(true)
        })
        .await
    }

    async fn callback_backlog(&self) -> Result<CallbackBacklog, StoreError> {
        self.read(|db| db.only_row(callbacks::BACKLOG.sqlite, [], |row| callbacks::backlog(row)))
            .await
    }
}

/// To be called in the transaction that it is about. Owing the same again changes nothing.
pub fn owe(db: &Connection, owed: &OwedCallback, now: i64) -> Result<(), StoreError> {
    let values = params![
        owed.key.call.as_str(),
        owed.key.seq,
        owed.app.as_str(),
        owed.webhook_id,
        owed.receiver(),
        owed.url.as_str(),
        owed.body,
        owed.owed_at.as_millisecond(),
        now,
        owed.valid_for.map(|time| now + millis(time)),
    ];
    db.run(OWE, values)?;
    Ok(())
}

/// Events take their places behind those that the call has. Beyond the most that it may have only its end is told.
pub fn owe_events<'a>(
    db: &Connection,
    events: impl IntoIterator<Item = &'a OwedEvent>,
    now: i64,
) -> Result<(), StoreError> {
    for event in events {
        let call = [event.call.as_str()];
        let last: i32 = db.only_row(callbacks::LAST_EVENT.sqlite, call, |row| row.number(0))?;
        if event.has_room(last) {
            owe(db, &event.numbered(last + 1), now)?;
        }
    }
    Ok(())
}

pub(super) fn due_receivers(
    db: &Connection,
    look: &ReceiverLook,
    now: i64,
) -> Result<DueReceivers, StoreError> {
    let (apps, mut found) = look.choose(waiting_apps(db, now)?);
    for (app, after) in apps {
        let seen = waiting_receivers(db, &app.app, after, look.limit, now)?;
        found.add(&app, look.limit, seen);
    }
    Ok(found)
}

/// One step of the index an application, however much waits of it.
fn waiting_apps(db: &Connection, now: i64) -> Result<Vec<WaitingApp>, StoreError> {
    let mut apps: Vec<WaitingApp> = Vec::new();
    loop {
        let after = apps.last().map_or("", |last| last.app.as_str());
        let next = db.row(NEXT_APP, [after], |row| callbacks::waiting_app(row, now))?;
        match next {
            Some(app) => apps.push(app),
            None => return Ok(apps),
        }
    }
}

/// One step of the index a receiver, however much waits for it.
fn waiting_receivers(
    db: &Connection,
    app: &AppId,
    mut after: String,
    limit: u32,
    now: i64,
) -> Result<Vec<(String, SignedDuration)>, StoreError> {
    let mut seen = Vec::new();
    for _ in 0..limit {
        let next = db.row(NEXT_RECEIVER, [app.as_str(), &after], |row| {
            let due_at: i64 = row.number(1)?;
            Ok((row.string(0)?, SignedDuration::from_millis(due_at - now)))
        })?;
        let Some((receiver, first)) = next else {
            break;
        };
        after.clone_from(&receiver);
        seen.push((receiver, first));
    }
    Ok(seen)
}

pub(super) fn take(
    db: &Connection,
    claim: &CallbackClaim,
    now: i64,
) -> Result<Vec<ClaimedCallback>, StoreError> {
    let mut claimed = Vec::new();
    for share in &claim.shares {
        let due = params![share.app.as_str(), share.receiver, now, share.limit];
        for key in db.rows(DUE, due, |row| callbacks::key(row))? {
            let values = params![key.call.as_str(), key.seq, claim.node];
            claimed.extend(db.row(TAKE, values, |row| callbacks::claimed(row, now))?);
        }
    }
    Ok(claimed)
}

/// False if the lease was lost.
fn record(db: &Connection, ended: &EndedAttempt, clock: &QueueClock) -> Result<bool, StoreError> {
    let (key, wait) = (&ended.lease.key, ended.next.wait());
    let finished_at = ended.ended_at.as_millisecond();
    let values = params![
        key.call.as_str(),
        key.seq,
        ended.lease.fence,
        ended.next.state().number(),
        wait.map(|wait| clock.after(wait)),
        wait.is_none().then_some(finished_at),
    ];
    let Some(number) = db.row(RECORD, values, |row| row.number::<u32>(0))? else {
        return Ok(false);
    };
    if key.is_event() && ended.next == NextDelivery::Delivered {
        db.run(SUPERSEDE, params![key.call.as_str(), key.seq, finished_at])?;
    }
    let attempt = &ended.attempt;
    let values = params![
        key.call.as_str(),
        key.seq,
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

fn replay(db: &Connection, step: &ReplayStep, now: i64) -> Result<Replayed, StoreError> {
    let statement = match step.from {
        ReplayFrom::GivenUp => GIVEN_UP_AFTER,
        ReplayFrom::Delivered => DELIVERED_AFTER,
    };
    let values = params![step.after.as_str(), step.limit];
    let found = db.rows(statement, values, |row| {
        let is_wanted = step.is_wanted(row.text(1)?, row.text(2)?);
        Ok((row.parsed::<CallSid>(0)?, is_wanted))
    })?;
    let mut count = 0;
    for (call, _) in found.iter().filter(|(_, is_wanted)| *is_wanted) {
        count += db.run(REPLAY, params![call.as_str(), 0, now])? as u64;
    }
    let is_cut = found.len() >= usize::try_from(step.limit).unwrap_or(usize::MAX);
    let last = found.into_iter().next_back().filter(|_| is_cut);
    let next = last.map(|(call, _)| call);
    Ok(Replayed { count, next })
}

fn find(
    db: &Connection,
    key: &CallbackKey,
) -> Result<Option<(Callback, Vec<CallbackAttempt>)>, StoreError> {
    let values = params![key.call.as_str(), key.seq];
    let found = db.row(callbacks::FIND.sqlite, values, |row| {
        callbacks::callback(row)
    })?;
    let Some(callback) = found else {
        return Ok(None);
    };
    let attempts = db.rows(callbacks::ATTEMPTS.sqlite, values, |row| {
        callbacks::attempt(row)
    })?;
    Ok(Some((callback, attempts)))
}
