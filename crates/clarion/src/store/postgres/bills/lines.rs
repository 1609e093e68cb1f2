//! Bill lines and days in PostgreSQL.
//!
//! Whoever adds a line holds the calendar's row in share until the commit, whoever closes a day waits until nobody does and changes it:
//! so when a day is closed, every line that was on its way into it has arrived, and every later one has seen that it is closed.

use jiff::Timestamp;
use jiff::civil::Date;
use tokio_postgres::{Client, GenericClient, Row};

use super::super::queue::{parsed, time};
use crate::domain::account::{AccountSid, AppId};
use crate::domain::bill::call_type::CallType;
use crate::domain::bill::import::{self, Imported, ImportedRecord, Known, NewLine};
use crate::domain::bill::{BillLine, BillOf, LinePlace};
use crate::domain::money::Money;
use crate::store::StoreError;
use crate::store::bills::{CallComparison, CallSpan, ClosedDay};

const LINE: &str = "order_id, type, call_sid, caller, called, started_at, answered_at, ended_at, seconds, units, rate, fee, outcome, user_data";
/// Lines in one statement of an import.
const BATCH: usize = 1000;

pub async fn first_open<C: GenericClient>(client: &C, lock: &str) -> Result<Date, StoreError> {
    let row = client
        .query_one(&format!("SELECT first_open FROM bill_calendar {lock}"), &[])
        .await?;
    day(row.get(0))
}

pub fn day(text: &str) -> Result<Date, StoreError> {
    text.parse().map_err(StoreError::failed)
}

/// Reads the columns of `LINE`.
fn line(row: &Row) -> Result<BillLine, StoreError> {
    let whole = |column: usize| row.get::<_, i32>(column).cast_unsigned();
    Ok(BillLine {
        order_id: row.get(0),
        call_type: CallType::from_code(row.get(1))
            .ok_or_else(|| StoreError::failed("an unknown type of record"))?,
        call_sid: row.get(2),
        caller: row.get(3),
        called: row.get(4),
        started_at: time(row.get(5))?,
        answered_at: row.get::<_, Option<i64>>(6).map(time).transpose()?,
        ended_at: time(row.get(7))?,
        seconds: whole(8),
        units: whole(9),
        rate: Money::from_millionths(row.get(10)),
        fee: Money::from_millionths(row.get(11)),
        outcome: row.get(12),
        user_data: row.get(13),
    })
}

/// By the index and in its order, whatever the statistics say. A plan that was made, and remembered, while there were hardly any lines reads
/// and sorts them all: on the evening of a long day, for every page.
const IN_ORDER: &str = "SET LOCAL enable_sort = off";

pub async fn page(
    client: &mut deadpool_postgres::Client,
    of: &BillOf,
    after: Option<&LinePlace>,
    limit: u32,
) -> Result<Vec<BillLine>, StoreError> {
    let (ended_at, order_id) = after.map_or((i64::MIN, ""), |place| {
        (place.ended_at.as_millisecond(), place.order_id.as_str())
    });
    let transaction = client.transaction().await?;
    transaction.batch_execute(IN_ORDER).await?;
    let statement = transaction
        .prepare_cached(&format!(
            "SELECT {LINE} FROM bill_lines WHERE bill_day = $1 AND app_id = $2 AND (ended_at, order_id) > ($3, $4) \
             ORDER BY ended_at, order_id LIMIT $5"
        ))
        .await?;
    let rows = transaction
        .query(
            &statement,
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
    rows.iter().map(line).collect()
}

pub async fn import(
    client: &mut Client,
    brought: &[ImportedRecord],
    late: bool,
) -> Result<Imported, StoreError> {
    let transaction = client.transaction().await?;
    // Two imports of the same file at once: the second finds what the first has added.
    transaction
        .execute("LOCK TABLE bill_lines IN SHARE UPDATE EXCLUSIVE MODE", &[])
        .await?;
    let known = known(&transaction, brought).await?;
    let (imported, new) = import::judge(brought, known, late);
    if imported.refused.is_empty() {
        for batch in new.chunks(BATCH) {
            add(&transaction, batch).await?;
        }
        transaction.commit().await?;
    }
    Ok(imported)
}

async fn known<C: GenericClient>(
    client: &C,
    brought: &[ImportedRecord],
) -> Result<Known, StoreError> {
    let ids: Vec<_> = brought
        .iter()
        .map(|one| one.record.line.order_id.as_str())
        .collect();
    let apps: Vec<_> = brought.iter().map(|one| one.record.app.as_str()).collect();
    let mut known = Known {
        first_open: first_open(client, "FOR SHARE").await?,
        ..Known::default()
    };
    let owners = client
        .query(
            "SELECT id, account_sid FROM applications WHERE id = ANY($1)",
            &[&apps],
        )
        .await?;
    for row in owners {
        known.owners.insert(
            parsed::<AppId>(row.get(0))?,
            parsed::<AccountSid>(row.get(1))?,
        );
    }
    let lines = client
        .query(
            &format!("SELECT {LINE}, app_id FROM bill_lines WHERE order_id = ANY($1)"),
            &[&ids],
        )
        .await?;
    for row in lines {
        known
            .lines
            .insert(row.get(0), (parsed(row.get(14))?, line(&row)?));
    }
    let calls = client
        .query(
            "SELECT call_sid FROM calls WHERE call_sid = ANY($1)",
            &[&ids],
        )
        .await?;
    known.calls.extend(calls.iter().map(|row| row.get(0)));
    Ok(known)
}

async fn add<C: GenericClient>(client: &C, new: &[NewLine]) -> Result<(), StoreError> {
    fn column<'a, T>(new: &'a [NewLine], value: impl Fn(&'a NewLine) -> T) -> Vec<T> {
        new.iter().map(value).collect()
    }
    client
        .execute(
            &format!(
                "INSERT INTO bill_lines (account_sid, app_id, bill_day, {LINE}) SELECT * FROM unnest($1::text[], $2::text[], $3::text[], \
                   $4::text[], $5::smallint[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], \
                   $12::integer[], $13::integer[], $14::bigint[], $15::bigint[], $16::text[], $17::text[])"
            ),
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
                &column(new, |new| new.line.answered_at.map(Timestamp::as_millisecond)),
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

pub async fn next_day<C: GenericClient>(
    client: &C,
    from: Date,
) -> Result<Option<Date>, StoreError> {
    let row = client
        .query_opt(
            "SELECT bill_day FROM bill_lines WHERE bill_day >= $1 ORDER BY bill_day LIMIT 1",
            &[&from.to_string()],
        )
        .await?;
    row.map(|row| day(row.get(0))).transpose()
}

/// Days before it that have lines are closed with it, and owe their files like any other.
pub async fn close(client: &mut Client, day: Date, now: Timestamp) -> Result<(), StoreError> {
    let next = day.tomorrow().map_err(StoreError::failed)?.to_string();
    let (day, now) = (day.to_string(), now.as_millisecond());
    let transaction = client.transaction().await?;
    // The table, not its row: for the row, those who hold it in share go on overtaking whoever wants to change it.
    transaction
        .execute("LOCK TABLE bill_calendar IN EXCLUSIVE MODE", &[])
        .await?;
    let open = first_open(&transaction, "").await?.to_string();
    transaction
        .execute(
            "WITH RECURSIVE billed (day) AS (\
               SELECT min(bill_day) FROM bill_lines WHERE bill_day >= $1 AND bill_day < $2 \
               UNION ALL \
               SELECT (SELECT min(bill_day) FROM bill_lines WHERE bill_day > billed.day AND bill_day < $2) \
               FROM billed WHERE billed.day IS NOT NULL) \
             INSERT INTO bill_days (day, closed_at) \
               SELECT day, $3::bigint FROM billed WHERE day IS NOT NULL UNION ALL SELECT $2, $3 ON CONFLICT DO NOTHING",
            &[&open, &day, &now],
        )
        .await?;
    transaction
        .execute(
            "UPDATE bill_calendar SET first_open = greatest(first_open, $1)",
            &[&next],
        )
        .await?;
    Ok(transaction.commit().await?)
}

pub async fn closed_days<C: GenericClient>(client: &C) -> Result<Vec<ClosedDay>, StoreError> {
    let rows = client
        .query(
            "SELECT day, closed_at, filed_at FROM bill_days ORDER BY day",
            &[],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(ClosedDay {
                day: day(row.get(0))?,
                closed_at: time(row.get(1))?,
                filed_at: row.get::<_, Option<i64>>(2).map(time).transpose()?,
            })
        })
        .collect()
}

/// The applications of a day, found by leaping through the index from one to the next.
pub async fn bills<C: GenericClient>(client: &C, day: Date) -> Result<Vec<BillOf>, StoreError> {
    let rows = client
        .query(
            "WITH RECURSIVE billed (app_id) AS (\
               SELECT min(app_id) FROM bill_lines WHERE bill_day = $1 \
               UNION ALL \
               SELECT (SELECT min(app_id) FROM bill_lines WHERE bill_day = $1 AND app_id > billed.app_id) \
               FROM billed WHERE billed.app_id IS NOT NULL) \
             SELECT applications.account_sid, billed.app_id FROM billed JOIN applications ON applications.id = billed.app_id",
            &[&day.to_string()],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(BillOf {
                account: parsed(row.get(0))?,
                app: parsed(row.get(1))?,
                day,
            })
        })
        .collect()
}

pub async fn compare_with_calls<C: GenericClient>(
    client: &C,
    span: &CallSpan,
) -> Result<CallComparison, StoreError> {
    let row = client
        .query_one(
            "SELECT count(*), count(*) FILTER (WHERE line.order_id IS NULL), \
               count(*) FILTER (WHERE line.order_id IS NOT NULL AND (line.ended_at, line.app_id, line.called, coalesce(line.answered_at, 0)) \
                 <> (calls.ended_at, calls.app_id, calls.called, coalesce(calls.answered_at, 0))) \
             FROM calls LEFT JOIN bill_lines AS line ON line.order_id = calls.call_sid \
             WHERE calls.call_sid >= $1 AND calls.call_sid < $2 AND calls.ended_at >= $3 AND calls.ended_at < $4",
            &[
                &span.first_sid,
                &span.last_sid,
                &span.begins.as_millisecond(),
                &span.ends.as_millisecond(),
            ],
        )
        .await?;
    let count = |column: usize| row.get::<_, i64>(column).unsigned_abs();
    Ok(CallComparison {
        calls: count(0),
        without_line: count(1),
        differing: count(2),
    })
}
