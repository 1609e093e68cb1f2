//! What applications and operators ask and switch, in SQLite.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::params;

use super::SqliteStore;
use super::query::Query;
use crate::domain::account::AccountSid;
use crate::domain::attempt::CallHistory;
use crate::domain::call::{CallProgress, CallSid};
use crate::domain::call_record::CallRecord;
use crate::domain::call_state::CallState;
use crate::store::columns::Columns;
use crate::store::migrations::WANTED;
use crate::store::statements::{legs, queue, records, sqlite};
use crate::store::{BarredChange, Records, StoreError};

const BAR: &str =
    sqlite!("INSERT INTO do_not_call (number, added_at) VALUES ($1, $2) ON CONFLICT DO NOTHING");
const UNBAR: &str = sqlite!("DELETE FROM do_not_call WHERE number = $1");
const CHANGED: &str =
    sqlite!("INSERT INTO do_not_call_changes (number, is_barred, changed_at) VALUES ($1, $2, $3)");
const FORGET_CHANGES: &str = sqlite!("DELETE FROM do_not_call_changes WHERE changed_at < $1");

#[async_trait]
impl Records for SqliteStore {
    async fn call_progress(
        &self,
        account: &AccountSid,
        sid: &CallSid,
    ) -> Result<Option<CallProgress>, StoreError> {
        let (account, sid) = (account.clone(), sid.clone());
        self.read(move |db| {
            let values = [sid.as_str(), account.as_str()];
            db.row(records::PROGRESS.sqlite, values, |row| {
                records::progress(row)
            })
        })
        .await
    }

    async fn call_record(&self, sid: &CallSid) -> Result<Option<CallRecord>, StoreError> {
        let sid = sid.clone();
        self.read(move |db| {
            db.row(records::CALL.sqlite, [sid.as_str()], |row| {
                records::record(row)
            })
        })
        .await
    }

    async fn call_history(&self, sid: &CallSid) -> Result<CallHistory, StoreError> {
        let sid = sid.clone();
        self.read(move |db| {
            let sid = [sid.as_str()];
            Ok(CallHistory {
                attempts: db.rows(legs::ATTEMPTS.sqlite, sid, |row| legs::attempt(row))?,
                legs: db.rows(legs::LEGS.sqlite, sid, |row| legs::leg(row))?,
            })
        })
        .await
    }

    async fn set_switch(
        &self,
        name: &str,
        value: Option<&str>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (name, value) = (name.to_owned(), value.map(str::to_owned));
        self.write_beside(move |db| {
            match &value {
                Some(value) => {
                    let values = params![name, value, now.as_millisecond()];
                    db.run(records::SET_SWITCH.sqlite, values)?
                }
                None => db.run(records::RESET_SWITCH.sqlite, [&name])?,
            };
            Ok(())
        })
        .await
    }

    async fn switches(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.read(|db| db.rows(records::SWITCHES.sqlite, [], |row| records::switch(row)))
            .await
    }

    async fn bar_number(
        &self,
        digits: &str,
        barred: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let digits = digits.to_owned();
        self.write_beside(move |db| {
            let now = now.as_millisecond();
            let changed = if barred {
                db.run(BAR, params![digits, now])?
            } else {
                db.run(UNBAR, [&digits])?
            };
            if changed == 1 {
                db.run(CHANGED, params![digits, barred, now])?;
                db.run(FORGET_CHANGES, [now - records::CHANGES_KEPT_MS])?;
            }
            Ok(changed == 1)
        })
        .await
    }

    async fn barred_numbers(&self) -> Result<Vec<String>, StoreError> {
        self.read(|db| db.rows(records::BARRED.sqlite, [], |row| row.string(0)))
            .await
    }

    async fn barred_revision(&self) -> Result<i64, StoreError> {
        self.read(|db| db.only_row(records::BARRED_REVISION.sqlite, [], |row| row.number(0)))
            .await
    }

    async fn barred_changes(&self, after: i64) -> Result<Vec<BarredChange>, StoreError> {
        self.read(move |db| {
            db.rows(records::BARRED_CHANGES.sqlite, [after], |row| {
                records::barred_change(row)
            })
        })
        .await
    }

    async fn cancel_call_of(
        &self,
        account: &AccountSid,
        sid: &CallSid,
        before_answer: bool,
    ) -> Result<Option<CallState>, StoreError> {
        let (account, sid) = (account.clone(), sid.clone());
        self.write(move |db| {
            let values = params![sid.as_str(), account.as_str(), before_answer];
            db.row(queue::CANCEL_OF.sqlite, values, |row| {
                queue::call_state(row)
            })
        })
        .await
    }

    /// One process serves from a file.
    fn oldest_node(&self) -> usize {
        WANTED
    }

    async fn cancel_calls_of(&self, account: &AccountSid) -> Result<u64, StoreError> {
        let account = account.clone();
        self.write(move |db| {
            let cancelled = db.run(records::CANCEL_CALLS_OF.sqlite, [account.as_str()])?;
            Ok(cancelled as u64)
        })
        .await
    }
}
