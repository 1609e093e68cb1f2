//! Fills a SQLite file in large transactions, without syncs while it is written: nobody but a bench may do that.

use std::fs::File;
use std::path::Path;

use clarion::store::sqlite;
use rusqlite::{Connection, params};

use super::super::progress::Progress;
use super::past::{BILL_TYPE, CALLER, Past, PastCall};
use super::steps;

const CHECKPOINT: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

pub fn fill(path: &Path, past: &Past, progress: &mut Progress) -> anyhow::Result<()> {
    let mut connection = sqlite::connect(path)?;
    connection.execute_batch("PRAGMA synchronous = off; PRAGMA cache_size = -262144;")?;
    for step in steps(past.calls) {
        let done = step.end;
        let transaction = connection.transaction()?;
        step.map(|order| past.call(order))
            .try_for_each(|call| insert(&transaction, past, &call))?;
        transaction.commit()?;
        connection.execute_batch(CHECKPOINT)?;
        progress.show(done);
    }
    // Everything on the disk before anything is measured.
    connection.execute_batch("ANALYZE")?;
    connection.execute_batch(CHECKPOINT)?;
    Ok(File::open(path)?.sync_all()?)
}

fn insert(db: &Connection, past: &Past, call: &PastCall) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO calls (call_sid, account_sid, app_id, accepted_at, called, number, prompt, resp_url, user_data, outcome, caller, \
           trunk, attempts, dialled_at, rang_at, answered_at, ended_at, sip_code) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        call.sid,
        past.account,
        past.app,
        call.accepted_at,
        call.called,
        call.number,
        past.prompt,
        past.resp_url,
        call.user_data,
        call.outcome.number(),
        CALLER,
        call.trunk,
        call.dialled_at,
        call.rang_at,
        call.answered_at,
        call.ended_at,
        call.sip_code,
    ])?;
    db.prepare_cached(
        "INSERT INTO bill_lines (order_id, account_sid, app_id, bill_day, type, call_sid, caller, called, started_at, answered_at, \
           ended_at, seconds, units, rate, fee, outcome, user_data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        call.sid,
        past.account,
        past.app,
        call.day,
        BILL_TYPE,
        call.sid,
        CALLER,
        call.called,
        call.dialled_at,
        call.answered_at,
        call.ended_at,
        call.seconds,
        call.units,
        call.rate,
        call.fee,
        call.outcome.as_str(),
        call.user_data,
    ])?;
    Ok(())
}
