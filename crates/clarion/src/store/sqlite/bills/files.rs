//! Bill files, the tokens for them, what is forgotten, and who closes the day.

use jiff::Timestamp;
use jiff::civil::Date;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::queue::{optional_time, parsed, time};
use super::lines::day;
use crate::domain::bill::{BillFile, BillOf, Totals};
use crate::domain::claim::NodeId;
use crate::domain::money::Money;
use crate::store::bills::{BillToken, Forgotten};

const FILE: &str = "bill_files.id, bill_files.account_sid, bill_files.app_id, bill_files.day, bill_files.keywords, bill_files.object, \
  bill_files.bytes, bill_files.lines, bill_files.fee, bill_files.sha256, bill_files.made_at, bill_files.expires_at";

fn file(row: &Row<'_>) -> rusqlite::Result<BillFile> {
    let count = |column| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.unsigned_abs());
    Ok(BillFile {
        id: row.get(0)?,
        of: BillOf {
            account: parsed(&row.get::<_, String>(1)?)?,
            app: parsed(&row.get::<_, String>(2)?)?,
            day: day(row, 3)?,
        },
        keywords: row.get(4)?,
        object: row.get(5)?,
        bytes: count(6)?,
        totals: Totals {
            lines: count(7)?,
            fee: Money::from_millionths(row.get(8)?),
        },
        sha256: row.get(9)?,
        made_at: time(row.get(10)?)?,
        expires_at: optional_time(row.get(11)?)?,
    })
}

pub fn find(db: &Connection, of: &BillOf, keywords: &str) -> rusqlite::Result<Option<BillFile>> {
    db.prepare_cached(&format!(
        "SELECT {FILE} FROM bill_files WHERE app_id = ? AND day = ? AND keywords = ?"
    ))?
    .query_row(params![of.app.as_str(), of.day.to_string(), keywords], file)
    .optional()
}

pub fn record(db: &Connection, new: &BillFile) -> rusqlite::Result<BillFile> {
    let signed = u64::cast_signed;
    db.prepare_cached(
        "INSERT INTO bill_files (id, account_sid, app_id, day, keywords, object, bytes, lines, fee, sha256, made_at, expires_at) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (app_id, day, keywords) DO NOTHING",
    )?
    .execute(params![
        new.id,
        new.of.account.as_str(),
        new.of.app.as_str(),
        new.of.day.to_string(),
        new.keywords,
        new.object,
        signed(new.bytes),
        signed(new.totals.lines),
        new.totals.fee.millionths(),
        new.sha256,
        new.made_at.as_millisecond(),
        new.expires_at.map(Timestamp::as_millisecond)
    ])?;
    Ok(find(db, &new.of, &new.keywords)?.unwrap_or_else(|| new.clone()))
}

pub fn of_day(db: &Connection, day: Date) -> rusqlite::Result<Vec<BillFile>> {
    db.prepare_cached(&format!(
        "SELECT {FILE} FROM bill_files WHERE day = ? ORDER BY app_id, keywords"
    ))?
    .query_map([day.to_string()], file)?
    .collect()
}

pub fn add_token(db: &Connection, token: &BillToken) -> rusqlite::Result<bool> {
    let expires = token.expires_at.as_millisecond();
    let there = db
        .prepare_cached("UPDATE bill_files SET expires_at = max(expires_at, ?) WHERE id = ?")?
        .execute(params![expires, token.file_id])?;
    if there == 0 {
        return Ok(false);
    }
    db.prepare_cached(
        "INSERT INTO bill_tokens (token_hash, file_id, account_sid, expires_at) VALUES (?, ?, ?, ?)",
    )?
    .execute(params![
        token.hash,
        token.file_id,
        token.account.as_str(),
        expires
    ])?;
    Ok(true)
}

pub fn of_token(db: &Connection, hash: &str, now: Timestamp) -> rusqlite::Result<Option<BillFile>> {
    db.prepare_cached(&format!(
        "SELECT {FILE} FROM bill_tokens JOIN bill_files ON bill_files.id = bill_tokens.file_id \
         WHERE bill_tokens.token_hash = ? AND bill_tokens.expires_at > ? AND bill_tokens.account_sid = bill_files.account_sid"
    ))?
    .query_row(params![hash, now.as_millisecond()], file)
    .optional()
}

pub fn forget(
    db: &Connection,
    before: Date,
    now: Timestamp,
    limit: u32,
) -> rusqlite::Result<Forgotten> {
    let (before, now) = (before.to_string(), now.as_millisecond());
    db.prepare_cached(
        "DELETE FROM bill_tokens WHERE token_hash IN (SELECT token_hash FROM bill_tokens WHERE expires_at <= ? LIMIT ?)",
    )?
    .execute(params![now, limit])?;
    let files: Vec<BillFile> = db
        .prepare_cached(&format!(
            "SELECT {FILE} FROM bill_files WHERE expires_at <= ? OR day < ? LIMIT ?"
        ))?
        .query_map(params![now, before, limit], file)?
        .collect::<rusqlite::Result<_>>()?;
    for file in &files {
        db.prepare_cached("DELETE FROM bill_tokens WHERE file_id = ?")?
            .execute([&file.id])?;
        db.prepare_cached("DELETE FROM bill_files WHERE id = ?")?
            .execute([&file.id])?;
    }
    db.prepare_cached("DELETE FROM bill_days WHERE day < ?")?
        .execute([&before])?;
    let lines = db
        .prepare_cached(
            "DELETE FROM bill_lines WHERE order_id IN (SELECT order_id FROM bill_lines WHERE bill_day < ? LIMIT ?)",
        )?
        .execute(params![before, limit])?;
    Ok(Forgotten {
        lines: lines as u64,
        files,
    })
}

/// By the clock of whoever asks. A lease that reaches further than any could was given by a clock that has been set back since.
pub fn take_duty(
    db: &Connection,
    duty: &str,
    node: &NodeId,
    now: Timestamp,
    until: Timestamp,
) -> rusqlite::Result<bool> {
    let taken = db
        .prepare_cached(
            "INSERT INTO leases (duty, node, fence, lease_until) VALUES (?1, ?2, 1, ?4) \
             ON CONFLICT (duty) DO UPDATE SET node = ?2, fence = fence + 1, lease_until = ?4 \
             WHERE node = ?2 OR lease_until <= ?3 OR lease_until > ?4",
        )?
        .execute(params![
            duty,
            node.as_str(),
            now.as_millisecond(),
            until.as_millisecond()
        ])?;
    Ok(taken == 1)
}

pub fn leave_duty(db: &Connection, duty: &str, node: &NodeId) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM leases WHERE duty = ? AND node = ?")?
        .execute([duty, node.as_str()])?;
    Ok(())
}
