//! Bill lines and days in SQLite. There is one writer at a time, so a day that a line is put into is open until the line is there.

use std::collections::HashSet;

use jiff::Timestamp;
use jiff::civil::Date;
use rusqlite::{Connection, params};

use super::super::query::Query;
use crate::domain::account::AppId;
use crate::domain::attempt::call_of_order;
use crate::domain::bill::import::{self, Imported, ImportedRecord, Known, NewLine};
use crate::domain::bill::rating::Charge;
use crate::domain::bill::{BillLine, BillOf, LinePlace};
use crate::domain::ended_call::EndedCall;
use crate::store::StoreError;
use crate::store::bills::{CallComparison, CallSpan, ClosedDay};
use crate::store::columns::Columns;
use crate::store::statements::bill_lines::{self, LINE, LINE_COLUMNS};
use crate::store::statements::sqlite;

const ADD: &str = sqlite!(
    "INSERT INTO bill_lines (account_sid, app_id, bill_day, ",
    LINE,
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)"
);
const OWNER: &str = sqlite!("SELECT account_sid FROM applications WHERE id = $1");
const KNOWN_LINE: &str = sqlite!(
    "SELECT ",
    LINE,
    ", app_id FROM bill_lines WHERE order_id = $1"
);

pub fn first_open(db: &Connection) -> Result<Date, StoreError> {
    db.only_row(bill_lines::FIRST_OPEN.sqlite, [], |row| {
        bill_lines::day(row)
    })
}

/// The line of a call that has just ended: what ends after its day was closed belongs to the first day that is open.
pub fn bill_call(db: &Connection, ended: &EndedCall, charge: Charge) -> Result<(), StoreError> {
    let call = &ended.claimed.call;
    let line = NewLine {
        account: call.account.clone(),
        app: call.app.clone(),
        day: ended.bill_day.max(first_open(db)?),
        line: ended.bill_line(charge),
    };
    add(db, &line)
}

fn add(db: &Connection, new: &NewLine) -> Result<(), StoreError> {
    let line = &new.line;
    let values = params![
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
    ];
    db.run(ADD, values)?;
    Ok(())
}

pub fn page(
    db: &Connection,
    of: &BillOf,
    after: Option<&LinePlace>,
    limit: u32,
) -> Result<Vec<BillLine>, StoreError> {
    let (ended_at, order_id) = after.map_or((i64::MIN, ""), |place| {
        (place.ended_at.as_millisecond(), place.order_id.as_str())
    });
    let values = params![
        of.day.to_string(),
        of.app.as_str(),
        ended_at,
        order_id,
        limit
    ];
    db.rows(bill_lines::PAGE.sqlite, values, |row| bill_lines::line(row))
}

pub fn import(
    db: &Connection,
    records: &[ImportedRecord],
    late: bool,
) -> Result<Imported, StoreError> {
    let (imported, new) = import::judge(records, known(db, records)?, late);
    if imported.refused.is_empty() {
        new.iter().try_for_each(|line| add(db, line))?;
    }
    Ok(imported)
}

fn known(db: &Connection, records: &[ImportedRecord]) -> Result<Known, StoreError> {
    let mut known = Known {
        first_open: first_open(db)?,
        ..Known::default()
    };
    let apps: HashSet<&AppId> = records.iter().map(|one| &one.record.app).collect();
    for app in apps {
        let owner = db.row(OWNER, [app.as_str()], |row| row.parsed(0))?;
        known.owners.extend(owner.map(|owner| (app.clone(), owner)));
    }
    for id in records.iter().map(|one| &one.record.line.order_id) {
        let found = db.row(KNOWN_LINE, [id], |row| {
            Ok((row.parsed(LINE_COLUMNS)?, bill_lines::line(row)?))
        })?;
        known.lines.extend(found.map(|found| (id.clone(), found)));
        let call = call_of_order(id);
        if db.exists(bill_lines::IS_CALL.sqlite, [call])? {
            known.calls.insert(call.to_owned());
        }
    }
    Ok(known)
}

pub fn next_day(db: &Connection, from: Date) -> Result<Option<Date>, StoreError> {
    db.row(bill_lines::NEXT_DAY.sqlite, [from.to_string()], |row| {
        bill_lines::day(row)
    })
}

/// Days before it that have lines are closed with it, and owe their files like any other.
pub fn close(db: &Connection, day: Date, now: Timestamp) -> Result<(), StoreError> {
    let next = day.tomorrow().map_err(StoreError::failed)?;
    let values = params![
        first_open(db)?.to_string(),
        day.to_string(),
        now.as_millisecond()
    ];
    db.run(bill_lines::CLOSE_DAYS.sqlite, values)?;
    db.run(bill_lines::MOVE_CALENDAR.sqlite, [next.to_string()])?;
    Ok(())
}

pub fn closed_days(db: &Connection) -> Result<Vec<ClosedDay>, StoreError> {
    db.rows(bill_lines::CLOSED_DAYS.sqlite, [], |row| {
        bill_lines::closed_day(row)
    })
}

pub fn filed(db: &Connection, day: Date, now: Timestamp) -> Result<(), StoreError> {
    let values = params![now.as_millisecond(), day.to_string()];
    db.run(bill_lines::FILED.sqlite, values)?;
    Ok(())
}

pub fn bills(db: &Connection, day: Date) -> Result<Vec<BillOf>, StoreError> {
    db.rows(bill_lines::BILLS.sqlite, [day.to_string()], |row| {
        bill_lines::bill_of(row, day)
    })
}

pub fn compare_with_calls(db: &Connection, span: &CallSpan) -> Result<CallComparison, StoreError> {
    let values = params![
        span.first_sid,
        span.last_sid,
        span.begins.as_millisecond(),
        span.ends.as_millisecond()
    ];
    db.only_row(bill_lines::COMPARE.sqlite, values, |row| {
        bill_lines::comparison(row)
    })
}
