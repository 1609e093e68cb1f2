//! Bill lines and days in PostgreSQL.
//!
//! Whoever adds a line holds the calendar's row in share until the commit, whoever closes a day waits until nobody does and changes it:
//! so when a day is closed, every line that was on its way into it has arrived, and every later one has seen that it is closed.

use jiff::Timestamp;
use jiff::civil::Date;

use super::super::column;
use super::super::session::Session;
use crate::domain::attempt::call_of_order;
use crate::domain::bill::import::{self, Imported, ImportedRecord, Known, NewLine};
use crate::domain::bill::rating::Charge;
use crate::domain::bill::{BillLine, BillOf, LinePlace};
use crate::domain::ended_call::EndedCall;
use crate::store::StoreError;
use crate::store::bills::{CallComparison, CallSpan, ClosedDay};
use crate::store::columns::Columns;
use crate::store::statements::bill_lines::{self, LINE, LINE_COLUMNS};
use crate::store::statements::{Statement, postgres};

/// Lines in one statement of an import.
const BATCH: usize = 1000;

/// By the index and in its order, whatever the statistics say. A plan that was made, and remembered, while there were hardly any lines reads
/// and sorts them all: on the evening of a long day, for every page.
const IN_ORDER: &str = "SET LOCAL enable_sort = off";
/// Two imports of the same file at once: the second finds what the first has added.
const LOCK_LINES: &str = "LOCK TABLE bill_lines IN SHARE UPDATE EXCLUSIVE MODE";
/// The table, not its row: for the row, those who hold it in share go on overtaking whoever wants to change it.
const LOCK_CALENDAR: &str = "LOCK TABLE bill_calendar IN EXCLUSIVE MODE";
const OWNERS: &str = postgres!("SELECT id, account_sid FROM applications WHERE id = ANY($1)");
const KNOWN_LINES: &str = postgres!(
    "SELECT ",
    LINE,
    ", app_id FROM bill_lines WHERE order_id = ANY($1)"
);
const KNOWN_CALLS: &str = postgres!("SELECT call_sid FROM calls WHERE call_sid = ANY($1)");
const ADD: &str = postgres!(
    "INSERT INTO bill_lines (account_sid, app_id, bill_day, ",
    LINE,
    ") SELECT * FROM unnest($1::text[], $2::text[], $3::text[], \
       $4::text[], $5::smallint[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], \
       $12::integer[], $13::integer[], $14::bigint[], $15::bigint[], $16::text[], $17::text[])"
);

pub async fn first_open(client: &Session, statement: Statement) -> Result<Date, StoreError> {
    bill_lines::day(&client.query_one_once(statement.postgres, &[]).await?)
}

pub async fn page(
    client: &mut Session,
    of: &BillOf,
    after: Option<&LinePlace>,
    limit: u32,
) -> Result<Vec<BillLine>, StoreError> {
    let (ended_at, order_id) = after.map_or((i64::MIN, ""), |place| {
        (place.ended_at.as_millisecond(), place.order_id.as_str())
    });
    let transaction = client.transaction().await?;
    transaction.batch_execute(IN_ORDER).await?;
    let rows = transaction
        .query(
            bill_lines::PAGE.postgres,
            &[
                &of.day.to_string(),
                &of.app.as_str(),
                &ended_at,
                &order_id,
                &i64::from(limit),
            ],
        )
        .await?;
    transaction.commit().await?;
    rows.iter().map(bill_lines::line).collect()
}

pub async fn import(
    client: &mut Session,
    records: &[ImportedRecord],
    late: bool,
) -> Result<Imported, StoreError> {
    let transaction = client.transaction().await?;
    transaction.execute_once(LOCK_LINES, &[]).await?;
    let known = known(&transaction, records).await?;
    let (imported, new) = import::judge(records, known, late);
    if imported.refused.is_empty() {
        for batch in new.chunks(BATCH) {
            add(&transaction, batch).await?;
        }
        transaction.commit().await?;
    }
    Ok(imported)
}

async fn known(client: &Session, records: &[ImportedRecord]) -> Result<Known, StoreError> {
    let ids = column(records, |one| one.record.line.order_id.as_str());
    let apps = column(records, |one| one.record.app.as_str());
    let mut known = Known {
        first_open: first_open(client, bill_lines::FIRST_OPEN_HELD).await?,
        ..Known::default()
    };
    for row in client.query_once(OWNERS, &[&apps]).await? {
        known.owners.insert(row.parsed(0)?, row.parsed(1)?);
    }
    for row in client.query_once(KNOWN_LINES, &[&ids]).await? {
        let line = (row.parsed(LINE_COLUMNS)?, bill_lines::line(&row)?);
        known.lines.insert(row.string(0)?, line);
    }
    let calls = column(records, |one| call_of_order(&one.record.line.order_id));
    for row in client.query_once(KNOWN_CALLS, &[&calls]).await? {
        known.calls.insert(row.string(0)?);
    }
    Ok(known)
}

/// The line of an attempt that has just ended: what ends after its day was closed belongs to the first day that is open.
pub async fn bill_call(
    client: &Session,
    ended: &EndedCall,
    charge: Charge,
) -> Result<(), StoreError> {
    let call = &ended.claimed.call;
    let first_open = first_open(client, bill_lines::FIRST_OPEN_HELD).await?;
    let line = NewLine {
        account: call.account.clone(),
        app: call.app.clone(),
        day: ended.bill_day.max(first_open),
        line: ended.bill_line(charge),
    };
    add(client, &[line]).await
}

async fn add(client: &Session, new: &[NewLine]) -> Result<(), StoreError> {
    client
        .execute_once(
            ADD,
            &[
                &column(new, |new| new.account.as_str()),
                &column(new, |new| new.app.as_str()),
                &column(new, |new| new.day.to_string()),
                &column(new, |new| new.line.order_id.as_str()),
                &column(new, |new| new.line.call_type.code()),
                &column(new, |new| new.line.call_sid.as_deref()),
                &column(new, |new| new.line.caller.as_str()),
                &column(new, |new| new.line.called.as_str()),
                &column(new, |new| new.line.started_at.as_millisecond()),
                &column(new, |new| {
                    new.line.answered_at.map(Timestamp::as_millisecond)
                }),
                &column(new, |new| new.line.ended_at.as_millisecond()),
                &column(new, |new| new.line.seconds.cast_signed()),
                &column(new, |new| new.line.units.cast_signed()),
                &column(new, |new| new.line.rate.millionths()),
                &column(new, |new| new.line.fee.millionths()),
                &column(new, |new| new.line.outcome.as_str()),
                &column(new, |new| new.line.user_data.as_deref()),
            ],
        )
        .await?;
    Ok(())
}

pub async fn next_day(client: &Session, from: Date) -> Result<Option<Date>, StoreError> {
    let row = client
        .query_opt_once(bill_lines::NEXT_DAY.postgres, &[&from.to_string()])
        .await?;
    row.as_ref().map(bill_lines::day).transpose()
}

/// Days before it that have lines are closed with it, and owe their files like any other.
pub async fn close(client: &mut Session, day: Date, now: Timestamp) -> Result<(), StoreError> {
    let next = day.tomorrow().map_err(StoreError::failed)?.to_string();
    let (day, now) = (day.to_string(), now.as_millisecond());
    let transaction = client.transaction().await?;
    transaction.execute_once(LOCK_CALENDAR, &[]).await?;
    let open = first_open(&transaction, bill_lines::FIRST_OPEN).await?;
    transaction
        .execute_once(
            bill_lines::CLOSE_DAYS.postgres,
            &[&open.to_string(), &day, &now],
        )
        .await?;
    transaction
        .execute_once(bill_lines::MOVE_CALENDAR.postgres, &[&next])
        .await?;
    Ok(transaction.commit().await?)
}

pub async fn closed_days(client: &Session) -> Result<Vec<ClosedDay>, StoreError> {
    let rows = client
        .query_once(bill_lines::CLOSED_DAYS.postgres, &[])
        .await?;
    rows.iter().map(bill_lines::closed_day).collect()
}

pub async fn bills(client: &Session, day: Date) -> Result<Vec<BillOf>, StoreError> {
    let rows = client
        .query_once(bill_lines::BILLS.postgres, &[&day.to_string()])
        .await?;
    rows.iter()
        .map(|row| bill_lines::bill_of(row, day))
        .collect()
}

pub async fn compare_with_calls(
    client: &Session,
    span: &CallSpan,
) -> Result<CallComparison, StoreError> {
    let row = client
        .query_one_once(
            bill_lines::COMPARE.postgres,
            &[
                &span.first_sid,
                &span.last_sid,
                &span.begins.as_millisecond(),
                &span.ends.as_millisecond(),
            ],
        )
        .await?;
    bill_lines::comparison(&row)
}
