//! What operators ask and switch, in SQLite.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteStore;
use super::queue::{optional_time, parsed, time};
use crate::domain::account::AccountSid;
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::claim::{CallFilter, CallRecord};
use crate::domain::outcome::Outcome;
use crate::domain::phone_number::PhoneNumber;
use crate::store::{Records, StoreError};

const RECORD: &str = "calls.call_sid, calls.account_sid, calls.app_id, calls.called, calls.number, calls.extension, calls.caller, \
  queue.state, calls.outcome, coalesce(calls.trunk, queue.trunk), coalesce(calls.attempts, queue.attempts, 0), calls.accepted_at, \
  queue.due_at, coalesce(calls.dialled_at, queue.dialled_at), coalesce(calls.rang_at, queue.rang_at), \
  coalesce(calls.answered_at, queue.answered_at), calls.ended_at, calls.sip_code, calls.reason";

fn record(row: &Row<'_>) -> rusqlite::Result<CallRecord> {
    let text = |column: usize| row.get::<_, String>(column);
    let number = |column: usize| row.get::<_, Option<i16>>(column);
    Ok(CallRecord {
        sid: parsed(&text(0)?)?,
        account: parsed(&text(1)?)?,
        app: parsed(&text(2)?)?,
        called: text(3)?,
        number: PhoneNumber::from_stored(text(4)?, row.get(5)?),
        caller: row.get(6)?,
        state: number(7)?
            .and_then(CallState::from_number)
            .unwrap_or(CallState::Ended),
        outcome: number(8)?.and_then(Outcome::from_number),
        trunk: row.get(9)?,
        attempts: row.get(10)?,
        accepted_at: time(row.get(11)?)?,
        due_at: optional_time(row.get(12)?)?,
        dialled_at: optional_time(row.get(13)?)?,
        rang_at: optional_time(row.get(14)?)?,
        answered_at: optional_time(row.get(15)?)?,
        ended_at: optional_time(row.get(16)?)?,
        sip_code: row.get(17)?,
        reason: row.get(18)?,
    })
}

fn list(db: &Connection, filter: &CallFilter) -> rusqlite::Result<Vec<CallRecord>> {
    let join = if filter.alive { "JOIN" } else { "LEFT JOIN" };
    db.prepare_cached(&format!(
        "SELECT {RECORD} FROM calls {join} call_queue AS queue USING (call_sid) \
         WHERE (?1 IS NULL OR calls.account_sid = ?1) AND (?2 IS NULL OR call_sid < ?2) ORDER BY call_sid DESC LIMIT ?3"
    ))?
    .query_map(
        params![
            filter.account.as_ref().map(AccountSid::as_str),
            filter.before.as_ref().map(CallSid::as_str),
            filter.limit
        ],
        record,
    )?
    .collect()
}

#[async_trait]
impl Records for SqliteStore {
    async fn call_record(&self, sid: &CallSid) -> Result<Option<CallRecord>, StoreError> {
        let sid = sid.clone();
        self.read(move |db| {
            db.prepare_cached(&format!(
                "SELECT {RECORD} FROM calls LEFT JOIN call_queue AS queue USING (call_sid) WHERE call_sid = ?"
            ))?
            .query_row([sid.as_str()], record)
            .optional()
        })
        .await
    }

    async fn list_calls(&self, filter: CallFilter) -> Result<Vec<CallRecord>, StoreError> {
        self.read(move |db| list(db, &filter)).await
    }

    async fn set_switch(
        &self,
        name: &str,
        value: Option<&str>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (name, value) = (name.to_owned(), value.map(str::to_owned));
        self.write(move |db| {
            match &value {
                Some(value) => db
                    .prepare_cached(
                        "INSERT INTO switches (name, value, set_at) VALUES (?1, ?2, ?3) \
                         ON CONFLICT (name) DO UPDATE SET value = ?2, set_at = ?3",
                    )?
                    .execute(params![name, value, now.as_millisecond()])?,
                None => db
                    .prepare_cached("DELETE FROM switches WHERE name = ?")?
                    .execute([&name])?,
            };
            Ok(())
        })
        .await
    }

    async fn switches(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.read(|db| {
            db.prepare_cached("SELECT name, value FROM switches ORDER BY name")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })
        .await
    }

    async fn bar_number(
        &self,
        digits: &str,
        barred: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let digits = digits.to_owned();
        self.write(move |db| {
            let changed = if barred {
                db.prepare_cached(
                    "INSERT INTO do_not_call (number, added_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
                )?
                .execute(params![digits, now.as_millisecond()])?
            } else {
                db.prepare_cached("DELETE FROM do_not_call WHERE number = ?")?
                    .execute([&digits])?
            };
            Ok(changed == 1)
        })
        .await
    }

    async fn barred_numbers(&self) -> Result<Vec<String>, StoreError> {
        self.read(|db| {
            db.prepare_cached("SELECT number FROM do_not_call ORDER BY number")?
                .query_map([], |row| row.get(0))?
                .collect()
        })
        .await
    }
}
