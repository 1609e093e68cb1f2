//! Bill files, the tokens for them, what is forgotten, and who closes the day.

use jiff::Timestamp;
use jiff::civil::Date;
use rusqlite::{Connection, params, params_from_iter};

use super::super::query::Query;
use crate::domain::bill::{BillFile, BillOf};
use crate::domain::claim::NodeId;
use crate::store::StoreError;
use crate::store::bills::{BillToken, Forgotten};
use crate::store::statements::bill_files::{self, FILE};
use crate::store::statements::sqlite;

const KEEP_UNTIL: &str =
    sqlite!("UPDATE bill_files SET expires_at = max(expires_at, $1) WHERE id = $2");
const ADD_TOKEN: &str = sqlite!(
    "INSERT INTO bill_tokens (token_hash, file_id, account_sid, expires_at) VALUES ($1, $2, $3, $4)"
);
const OLD_FILES: &str = sqlite!(
    FILE,
    "bill_files WHERE expires_at <= $1 OR day < $2 LIMIT $3"
);
const FORGET_FILE: [&str; 2] = [
    sqlite!("DELETE FROM bill_tokens WHERE file_id = $1"),
    sqlite!("DELETE FROM bill_files WHERE id = $1"),
];
/// A lease of the first version was by the machine's clock, which may have been set back since: then it reaches further than any could.
const TAKE_DUTY: &str = sqlite!(
    "INSERT INTO leases (duty, node, fence, lease_until) VALUES ($1, $2, 1, $4) \
     ON CONFLICT (duty) DO UPDATE SET node = $2, fence = fence + 1, lease_until = $4 \
     WHERE node = $2 OR lease_until <= $3 OR lease_until > $4"
);

pub fn find(db: &Connection, of: &BillOf, keywords: &str) -> Result<Option<BillFile>, StoreError> {
    let values = params![of.app.as_str(), of.day.to_string(), keywords];
    db.row(bill_files::FIND.sqlite, values, |row| bill_files::file(row))
}

pub fn record(db: &Connection, new: &BillFile) -> Result<BillFile, StoreError> {
    let values = bill_files::values(new);
    db.run(bill_files::RECORD.sqlite, params_from_iter(values))?;
    Ok(find(db, &new.of, &new.keywords)?.unwrap_or_else(|| new.clone()))
}

pub fn of_day(db: &Connection, day: Date) -> Result<Vec<BillFile>, StoreError> {
    db.rows(bill_files::OF_DAY.sqlite, [day.to_string()], |row| {
        bill_files::file(row)
    })
}

pub fn add_token(db: &Connection, token: &BillToken) -> Result<bool, StoreError> {
    let expires = token.expires_at.as_millisecond();
    if db.run(KEEP_UNTIL, params![expires, token.file_id])? == 0 {
        return Ok(false);
    }
    let values = params![token.hash, token.file_id, token.account.as_str(), expires];
    db.run(ADD_TOKEN, values)?;
    Ok(true)
}

pub fn of_token(
    db: &Connection,
    hash: &str,
    now: Timestamp,
) -> Result<Option<BillFile>, StoreError> {
    let values = params![hash, now.as_millisecond()];
    db.row(bill_files::OF_TOKEN.sqlite, values, |row| {
        bill_files::file(row)
    })
}

pub fn forget(
    db: &Connection,
    before: Date,
    now: Timestamp,
    limit: u32,
) -> Result<Forgotten, StoreError> {
    let (before, now) = (before.to_string(), now.as_millisecond());
    db.run(bill_files::FORGET_TOKENS.sqlite, params![now, limit])?;
    let old = params![now, before, limit];
    let files = db.rows(OLD_FILES, old, |row| bill_files::file(row))?;
    for file in &files {
        for forget in FORGET_FILE {
            db.run(forget, [&file.id])?;
        }
    }
    db.run(bill_files::FORGET_DAYS.sqlite, [&before])?;
    let lines = db.run(bill_files::FORGET_LINES.sqlite, params![before, limit])?;
    Ok(Forgotten {
        lines: lines as u64,
        files,
    })
}

pub fn take_duty(
    db: &Connection,
    duty: &str,
    node: &NodeId,
    now: i64,
    until: i64,
) -> Result<bool, StoreError> {
    let values = params![duty, node.as_str(), now, until];
    Ok(db.run(TAKE_DUTY, values)? == 1)
}

pub fn leave_duty(db: &Connection, duty: &str, node: &NodeId) -> Result<(), StoreError> {
    db.run(bill_files::LEAVE_DUTY.sqlite, [duty, node.as_str()])?;
    Ok(())
}
