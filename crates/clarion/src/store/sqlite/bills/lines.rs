//! Bill lines and days in SQLite. There is one writer at a time, so a day that a line is put into is open until the line is there.

use std::collections::HashSet;

use jiff::Timestamp;
use jiff::civil::Date;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::queue::{conversion, optional_time, parsed, time};
use super::rates;
use crate::domain::account::AppId;
use crate::domain::bill::call_type::CallType;
use crate::domain::bill::import::{self, Imported, ImportedRecord, Known, NewLine};
use crate::domain::bill::{BillLine, BillOf, LinePlace};
use crate::domain::claim::EndedCall;
use crate::domain::money::Money;
use crate::store::bills::{CallComparison, CallSpan, ClosedDay};

const LINE: &str = "order_id, type, call_sid, caller, called, started_at, answered_at, ended_at, seconds, units, rate, fee, outcome, user_data";

pub fn first_open(db: &Connection) -> rusqlite::Result<Date> {
    db.prepare_cached("SELECT first_open FROM bill_calendar")?
        .query_row([], |row| day(row, 0))
}

pub(super) fn day(row: &Row<'_>, column: usize) -> rusqlite::Result<Date> {
    row.get::<_, String>(column)?
        .parse()
        .map_err(|error: jiff::Error| conversion(&error))
}

/// The line of a call that has just ended: what ends after its day was closed belongs to the first day that is open.
pub fn bill_call(db: &Connection, ended: &EndedCall) -> rusqlite::Result<()> {
    let call = &ended.claimed.call;
    let charge = rates::charge(db, ended)?;
    let line = NewLine {
        account: call.account.clone(),
        app: call.app.clone(),
        day: ended.bill_day.max(first_open(db)?),
        line: ended.bill_line(charge),
    };
    add(db, &line)
}

fn add(db: &Connection, new: &NewLine) -> rusqlite::Result<()> {
    let line = &new.line;
    db.prepare_cached(&format!(
        "INSERT INTO bill_lines (account_sid, app_id, bill_day, {LINE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    ))?
    .execute(params![
        new.account.as_str(),
        new.app.as_str(),
        new.day.to_string(),
        line.order_id,
        line.call_type.code(),
        line.call_sid,
        line.caller,
        line.called,
        line.started_at.as_millisecond(),
        line.answered_at.map(Timestamp::as_millisecond),
        line.ended_at.as_millisecond(),
        line.seconds,
        line.units,
        line.rate.millionths(),
        line.fee.millionths(),
        line.outcome,
        line.user_data
    ])?;
    Ok(())
}

/// Reads the columns of `LINE`.
fn line(row: &Row<'_>) -> rusqlite::Result<BillLine> {
    Ok(BillLine {
        order_id: row.get(0)?,
        call_type: CallType::from_code(row.get(1)?)
            .ok_or_else(|| conversion(&"an unknown type of record"))?,
        call_sid: row.get(2)?,
        caller: row.get(3)?,
        called: row.get(4)?,
        started_at: time(row.get(5)?)?,
        answered_at: optional_time(row.get(6)?)?,
        ended_at: time(row.get(7)?)?,
        seconds: row.get(8)?,
        units: row.get(9)?,
        rate: Money::from_millionths(row.get(10)?),
        fee: Money::from_millionths(row.get(11)?),
        outcome: row.get(12)?,
        user_data: row.get(13)?,
    })
}

pub fn page(
    db: &Connection,
    of: &BillOf,
    after: Option<&LinePlace>,
    limit: u32,
) -> rusqlite::Result<Vec<BillLine>> {
    let (ended_at, order_id) = after.map_or((i64::MIN, ""), |place| {
        (place.ended_at.as_millisecond(), place.order_id.as_str())
    });
    db.prepare_cached(&format!(
        "SELECT {LINE} FROM bill_lines WHERE bill_day = ? AND app_id = ? AND (ended_at, order_id) > (?, ?) \
         ORDER BY ended_at, order_id LIMIT ?"
    ))?
    .query_map(
        params![
            of.day.to_string(),
            of.app.as_str(),
            ended_at,
            order_id,
            limit
        ],
        line,
    )?
    .collect()
}

pub fn import(
    db: &Connection,
    brought: &[ImportedRecord],
    late: bool,
) -> rusqlite::Result<Imported> {
    let (imported, new) = import::judge(brought, known(db, brought)?, late);
    if imported.refused.is_empty() {
        new.iter().try_for_each(|line| add(db, line))?;
    }
    Ok(imported)
}

fn known(db: &Connection, brought: &[ImportedRecord]) -> rusqlite::Result<Known> {
    let mut known = Known {
        first_open: first_open(db)?,
        ..Known::default()
    };
    let apps: HashSet<&AppId> = brought.iter().map(|one| &one.record.app).collect();
    for app in apps {
        let owner = db
            .prepare_cached("SELECT account_sid FROM applications WHERE id = ?")?
            .query_row([app.as_str()], |row| parsed(&row.get::<_, String>(0)?))
            .optional()?;
        known.owners.extend(owner.map(|owner| (app.clone(), owner)));
    }
    let mut there = db.prepare_cached(&format!(
        "SELECT {LINE}, app_id FROM bill_lines WHERE order_id = ?"
    ))?;
    let mut call = db.prepare_cached("SELECT 1 FROM calls WHERE call_sid = ?")?;
    for id in brought.iter().map(|one| &one.record.line.order_id) {
        let found = there
            .query_row([id], |row| {
                Ok((parsed(&row.get::<_, String>(14)?)?, line(row)?))
            })
            .optional()?;
        known.lines.extend(found.map(|found| (id.clone(), found)));
        if call.exists([id])? {
            known.calls.insert(id.clone());
        }
    }
    Ok(known)
}

pub fn next_day(db: &Connection, from: Date) -> rusqlite::Result<Option<Date>> {
    db.prepare_cached(
        "SELECT bill_day FROM bill_lines WHERE bill_day >= ? ORDER BY bill_day LIMIT 1",
    )?
    .query_row([from.to_string()], |row| day(row, 0))
    .optional()
}

/// Days before it that have lines are closed with it, and owe their files like any other.
pub fn close(db: &Connection, day: Date, now: Timestamp) -> rusqlite::Result<()> {
    let next = day.tomorrow().map_err(|error| conversion(&error))?;
    db.prepare_cached(
        "WITH RECURSIVE billed (day) AS (\
           SELECT min(bill_day) FROM bill_lines WHERE bill_day >= (SELECT first_open FROM bill_calendar) AND bill_day < ?1 \
           UNION ALL \
           SELECT (SELECT min(bill_day) FROM bill_lines WHERE bill_day > billed.day AND bill_day < ?1) \
           FROM billed WHERE billed.day IS NOT NULL) \
         INSERT INTO bill_days (day, closed_at) SELECT day, ?2 FROM billed WHERE day IS NOT NULL ON CONFLICT DO NOTHING",
    )?
    .execute(params![day.to_string(), now.as_millisecond()])?;
    db.prepare_cached("UPDATE bill_calendar SET first_open = max(first_open, ?)")?
        .execute([next.to_string()])?;
    db.prepare_cached(
        "INSERT INTO bill_days (day, closed_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
    )?
    .execute(params![day.to_string(), now.as_millisecond()])?;
    Ok(())
}

pub fn closed_days(db: &Connection) -> rusqlite::Result<Vec<ClosedDay>> {
    db.prepare_cached("SELECT day, closed_at, filed_at FROM bill_days ORDER BY day")?
        .query_map([], |row| {
            Ok(ClosedDay {
                day: day(row, 0)?,
                closed_at: time(row.get(1)?)?,
                filed_at: optional_time(row.get(2)?)?,
            })
        })?
        .collect()
}

pub fn filed(db: &Connection, day: Date, now: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE bill_days SET filed_at = ? WHERE day = ? AND filed_at IS NULL")?
        .execute(params![now.as_millisecond(), day.to_string()])?;
    Ok(())
}

/// The applications of a day, found by leaping through the index from one to the next.
pub fn bills(db: &Connection, day: Date) -> rusqlite::Result<Vec<BillOf>> {
    db.prepare_cached(
        "WITH RECURSIVE billed (app_id) AS (\
           SELECT min(app_id) FROM bill_lines WHERE bill_day = ?1 \
           UNION ALL \
           SELECT (SELECT min(app_id) FROM bill_lines WHERE bill_day = ?1 AND app_id > billed.app_id) \
           FROM billed WHERE billed.app_id IS NOT NULL) \
         SELECT applications.account_sid, billed.app_id FROM billed JOIN applications ON applications.id = billed.app_id",
    )?
    .query_map([day.to_string()], |row| {
        Ok(BillOf {
            account: parsed(&row.get::<_, String>(0)?)?,
            app: parsed(&row.get::<_, String>(1)?)?,
            day,
        })
    })?
    .collect()
}

pub fn compare_with_calls(db: &Connection, span: &CallSpan) -> rusqlite::Result<CallComparison> {
    let count =
        |row: &Row<'_>, column| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.unsigned_abs());
    db.prepare_cached(
        "SELECT count(*), count(*) FILTER (WHERE line.order_id IS NULL), \
           count(*) FILTER (WHERE line.order_id IS NOT NULL AND (line.ended_at, line.app_id, line.called, coalesce(line.answered_at, 0)) \
             IS NOT (calls.ended_at, calls.app_id, calls.called, coalesce(calls.answered_at, 0))) \
         FROM calls LEFT JOIN bill_lines AS line ON line.order_id = calls.call_sid \
         WHERE calls.call_sid >= ? AND calls.call_sid < ? AND calls.ended_at >= ? AND calls.ended_at < ?",
    )?
    .query_row(
        params![
            span.first_sid,
            span.last_sid,
            span.begins.as_millisecond(),
            span.ends.as_millisecond()
        ],
        |row| {
            Ok(CallComparison {
                calls: count(row, 0)?,
                without_line: count(row, 1)?,
                differing: count(row, 2)?,
            })
        },
    )
}
