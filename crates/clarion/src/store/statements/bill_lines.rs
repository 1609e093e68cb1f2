//! Bill lines and the days they belong to.

use jiff::civil::Date;

use super::{Statement, statement};
use crate::domain::bill::call_type::CallType;
use crate::domain::bill::{BillLine, BillOf};
use crate::store::StoreError;
use crate::store::bills::{CallComparison, ClosedDay};
use crate::store::columns::Columns;

/// What a line is read from.
pub const LINE: &str = "order_id, type, call_sid, caller, called, started_at, answered_at, ended_at, seconds, units, rate, fee, outcome, user_data";
/// The columns of `LINE`.
pub const LINE_COLUMNS: usize = 14;

pub const FIRST_OPEN: Statement = statement!("SELECT first_open FROM bill_calendar");
/// Held until the commit, so that nobody closes the day before the line is there.
pub const FIRST_OPEN_HELD: Statement =
    statement!("SELECT first_open FROM bill_calendar{for_share}");
pub const PAGE: Statement = statement!(
    "SELECT ",
    LINE,
    " FROM bill_lines WHERE bill_day = $1 AND app_id = $2 AND (ended_at, order_id) > ($3, $4) \
     ORDER BY ended_at, order_id LIMIT $5"
);
pub const FIND: Statement = statement!("SELECT ", LINE, " FROM bill_lines WHERE order_id = $1");
pub const NEXT_DAY: Statement =
    statement!("SELECT bill_day FROM bill_lines WHERE bill_day >= $1 ORDER BY bill_day LIMIT 1");
/// From the first open day ($1) to the day that is closed ($2): those that have lines, and that day itself.
pub const CLOSE_DAYS: Statement = statement!(
    "WITH RECURSIVE billed (day) AS (\
       SELECT min(bill_day) FROM bill_lines WHERE bill_day >= $1 AND bill_day < $2 \
       UNION ALL \
       SELECT (SELECT min(bill_day) FROM bill_lines WHERE bill_day > billed.day AND bill_day < $2) \
       FROM billed WHERE billed.day IS NOT NULL) \
     INSERT INTO bill_days (day, closed_at) \
       SELECT day, CAST($3 AS BIGINT) FROM billed WHERE day IS NOT NULL UNION ALL SELECT $2, $3 WHERE TRUE ON CONFLICT DO NOTHING"
);
pub const MOVE_CALENDAR: Statement =
    statement!("UPDATE bill_calendar SET first_open = {greatest}(first_open, $1)");
pub const CLOSED_DAYS: Statement =
    statement!("SELECT day, closed_at, filed_at FROM bill_days ORDER BY day");
pub const FILED: Statement =
    statement!("UPDATE bill_days SET filed_at = $1 WHERE day = $2 AND filed_at IS NULL");
/// The applications of a day, found by leaping through the index from one to the next.
pub const BILLS: Statement = statement!(
    "WITH RECURSIVE billed (app_id) AS (\
       SELECT min(app_id) FROM bill_lines WHERE bill_day = $1 \
       UNION ALL \
       SELECT (SELECT min(app_id) FROM bill_lines WHERE bill_day = $1 AND app_id > billed.app_id) \
       FROM billed WHERE billed.app_id IS NOT NULL) \
     SELECT applications.account_sid, billed.app_id FROM billed JOIN applications ON applications.id = billed.app_id"
);
pub const COMPARE: Statement = statement!(
    "SELECT count(*), count(*) FILTER (WHERE line.order_id IS NULL), \
       count(*) FILTER (WHERE calls.notice IS NULL AND line.order_id IS NOT NULL AND (line.ended_at, line.app_id, line.called, coalesce(line.answered_at, 0)) \
         <> (calls.ended_at, calls.app_id, calls.called, coalesce(calls.answered_at, 0))) \
     FROM calls LEFT JOIN bill_lines AS line ON line.order_id = calls.call_sid \
     WHERE calls.call_sid >= $1 AND calls.call_sid < $2 AND calls.ended_at >= $3 AND calls.ended_at < $4"
);
pub const IS_CALL: Statement = statement!("SELECT 1 FROM calls WHERE call_sid = $1");

pub fn day(row: &impl Columns) -> Result<Date, StoreError> {
    row.parsed(0)
}

/// Reads the columns of `LINE`.
pub fn line(row: &impl Columns) -> Result<BillLine, StoreError> {
    Ok(BillLine {
        order_id: row.string(0)?,
        call_type: CallType::from_code(row.number(1)?)
            .ok_or_else(|| StoreError::failed("an unknown type of record"))?,
        call_sid: row.optional_string(2)?,
        caller: row.string(3)?,
        called: row.string(4)?,
        started_at: row.time(5)?,
        answered_at: row.optional_time(6)?,
        ended_at: row.time(7)?,
        seconds: row.number(8)?,
        units: row.number(9)?,
        rate: row.money(10)?,
        fee: row.money(11)?,
        outcome: row.string(12)?,
        user_data: row.optional_string(13)?,
    })
}

pub fn closed_day(row: &impl Columns) -> Result<ClosedDay, StoreError> {
    Ok(ClosedDay {
        day: row.parsed(0)?,
        closed_at: row.time(1)?,
        filed_at: row.optional_time(2)?,
    })
}

pub fn bill_of(row: &impl Columns, day: Date) -> Result<BillOf, StoreError> {
    Ok(BillOf {
        account: row.parsed(0)?,
        app: row.parsed(1)?,
        day,
    })
}

pub fn comparison(row: &impl Columns) -> Result<CallComparison, StoreError> {
    Ok(CallComparison {
        calls: row.number(0)?,
        without_line: row.number(1)?,
        differing: row.number(2)?,
    })
}
