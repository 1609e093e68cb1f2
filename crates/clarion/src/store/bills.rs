//! The verbs of the store that are about money: rates, what an account may spend, bill lines, closed days, files and their tokens.

use async_trait::async_trait;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

use super::StoreError;
use crate::domain::account::AccountSid;
use crate::domain::bill::import::{Imported, ImportedRecord};
use crate::domain::bill::rating::{Funds, Prefix, Rate, Shortage};
use crate::domain::bill::{BillFile, BillLine, BillOf, LinePlace};
use crate::domain::call::CallSid;
use crate::domain::claim::{Lease, NodeId};
use crate::domain::request_key::{Accepted, AcceptedCall};

#[async_trait]
pub trait BillBook: Send + Sync {
    // What calls cost, and what an account may spend.
    async fn set_rate(&self, account: &AccountSid, rate: Rate) -> Result<(), StoreError>;
    /// False if there was no such rate.
    async fn remove_rate(&self, account: &AccountSid, prefix: &Prefix) -> Result<bool, StoreError>;
    /// Ordered by prefix; the platform's defaults where no account is named.
    async fn rates(&self, account: Option<&AccountSid>) -> Result<Vec<Rate>, StoreError>;
    /// In place of those before. They hold for numbers that an account has no rate of its own for.
    async fn set_default_rates(&self, rates: Vec<Rate>) -> Result<(), StoreError>;
    /// `accept_call` for an account with a balance or a limit: the fee of the longest talk is set aside in the same commit, or what
    /// there is, if it pays for at least a unit.
    async fn accept_call_within_limits(
        &self,
        order: AcceptedCall,
        longest_talk: u32,
    ) -> Result<Result<Accepted, Shortage>, StoreError>;
    /// Gives back what a talk of so long cannot cost. The longest talk that is paid for; `None` where money sets no limit.
    async fn tighten_reservation(
        &self,
        sid: &CallSid,
        lease: &Lease,
        longest_talk: u32,
    ) -> Result<Option<u32>, StoreError>;
    async fn funds(&self, account: &AccountSid) -> Result<Option<Funds>, StoreError>;

    // Lines and days.
    /// Takes all of the records, or none if one is refused. What is there already, word for word, is left alone.
    async fn import_records(
        &self,
        records: Vec<ImportedRecord>,
        late: bool,
    ) -> Result<Imported, StoreError>;
    /// Every day before this one is closed.
    async fn first_open_day(&self) -> Result<Date, StoreError>;
    /// The first day from this one on that has lines.
    async fn next_day_with_lines(&self, from: Date) -> Result<Option<Date>, StoreError>;
    /// When this returns, no line will ever be added to this day or one before.
    async fn close_day(&self, day: Date, now: Timestamp) -> Result<(), StoreError>;
    /// Days that were closed, with the moment when their last file was written.
    async fn closed_days(&self) -> Result<Vec<ClosedDay>, StoreError>;
    async fn day_is_filed(&self, day: Date, now: Timestamp) -> Result<(), StoreError>;
    /// The bills that have lines on this day.
    async fn bills_of_day(&self, day: Date) -> Result<Vec<BillOf>, StoreError>;
    /// The next lines of a bill, in their order. No snapshot is held from one page to the next.
    async fn bill_lines(
        &self,
        of: &BillOf,
        after: Option<LinePlace>,
        limit: u32,
    ) -> Result<Vec<BillLine>, StoreError>;
    /// The line of an attempt, by its orderId.
    async fn bill_line(&self, order_id: &str) -> Result<Option<BillLine>, StoreError>;
    async fn compare_with_calls(&self, span: CallSpan) -> Result<CallComparison, StoreError>;

    // Files and tokens.
    async fn bill_file(&self, of: &BillOf, keywords: &str) -> Result<Option<BillFile>, StoreError>;
    /// Records a file that is durable. If the same bill was recorded before, that file is the one, and is returned.
    async fn record_bill_file(&self, file: BillFile) -> Result<BillFile, StoreError>;
    async fn bill_files(&self, day: Date) -> Result<Vec<BillFile>, StoreError>;
    /// False if the file is gone. A filtered file is kept as long as a token for it is good.
    async fn add_bill_token(&self, token: BillToken) -> Result<bool, StoreError>;
    async fn file_of_token(
        &self,
        hash: &str,
        now: Timestamp,
    ) -> Result<Option<BillFile>, StoreError>;

    // What has had its time.
    /// Forgets tokens and filtered files that have expired, and bills of days before this one, a little at a time. What is left to do
    /// is known by the files returned and the lines forgotten: both are none when it is done.
    async fn forget_bills(
        &self,
        before: Date,
        now: Timestamp,
        limit: u32,
    ) -> Result<Forgotten, StoreError>;

    // Duties that must be done once however many nodes there are.
    /// Takes or keeps a duty. False if another node has it.
    async fn take_duty(
        &self,
        duty: &str,
        node: &NodeId,
        lease: SignedDuration,
    ) -> Result<bool, StoreError>;
    async fn leave_duty(&self, duty: &str, node: &NodeId) -> Result<(), StoreError>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosedDay {
    pub day: Date,
    pub closed_at: Timestamp,
    pub filed_at: Option<Timestamp>,
}

/// A right to fetch a file. The token itself is nowhere kept.
#[derive(Debug, Clone)]
pub struct BillToken {
    pub hash: String,
    pub file_id: String,
    pub account: AccountSid,
    pub expires_at: Timestamp,
}

#[derive(Debug, Default)]
pub struct Forgotten {
    pub lines: u64,
    pub files: Vec<BillFile>,
}

/// Calls that ended within a time, with callSids within a range that surely holds them.
#[derive(Debug, Clone)]
pub struct CallSpan {
    pub begins: Timestamp,
    pub ends: Timestamp,
    pub first_sid: String,
    pub last_sid: String,
}

/// What is found when bill lines are compared with the calls that are still kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallComparison {
    pub calls: u64,
    pub without_line: u64,
    pub differing: u64,
}
