//! The bill: one line per record, what a line costs, and how lines are read and written. Money is never counted in floating point.

pub mod calendar;
pub mod call_type;
pub mod cells;
pub mod csv;
pub mod import;
pub mod keywords;
pub mod rating;
pub mod record;

use jiff::Timestamp;
use jiff::civil::Date;

use self::call_type::CallType;
use super::account::{AccountSid, AppId};
use super::money::Money;

/// The columns of a bill file, in their order.
pub const COLUMNS: [&str; 15] = [
    "orderid", "type", "appId", "callSid", "caller", "called", "start", "answer", "end", "seconds",
    "units", "rate", "fee", "outcome", "userData",
];

/// One record of a bill. It never changes. Its account, application and day are those of its bill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BillLine {
    pub order_id: String,
    pub call_type: CallType,
    pub call_sid: Option<String>,
    pub caller: String,
    pub called: String,
    pub started_at: Timestamp,
    pub answered_at: Option<Timestamp>,
    pub ended_at: Timestamp,
    pub seconds: u32,
    pub units: u32,
    pub rate: Money,
    pub fee: Money,
    pub outcome: String,
    pub user_data: Option<String>,
}

impl BillLine {
    /// Returns the place of a line in its bill: by end time, then by id.
    pub fn place(&self) -> LinePlace {
        LinePlace {
            ended_at: self.ended_at,
            order_id: self.order_id.clone(),
        }
    }
}

/// The place after which reading goes on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinePlace {
    pub ended_at: Timestamp,
    pub order_id: String,
}

/// A bill: the lines of one application on one day.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BillOf {
    pub account: AccountSid,
    pub app: AppId,
    pub day: Date,
}

/// The sums of a bill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub lines: u64,
    pub fee: Money,
}

impl Totals {
    pub fn add(&mut self, line: &BillLine) {
        self.lines += 1;
        self.fee = self.fee.plus(line.fee);
    }
}

/// A bill that was written to a file. The file stays until the retention of the bill ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BillFile {
    /// 32 hex digits that nobody can guess. They are part of the download address.
    pub id: String,
    pub of: BillOf,
    /// The filter of the file, or empty for the whole bill.
    pub keywords: String,
    /// Where its bytes are in the object store.
    pub object: String,
    pub bytes: u64,
    pub totals: Totals,
    /// Hash of the bytes, in hex.
    pub sha256: String,
    pub made_at: Timestamp,
    /// Only filtered files expire before the bill's retention ends.
    pub expires_at: Option<Timestamp>,
}
