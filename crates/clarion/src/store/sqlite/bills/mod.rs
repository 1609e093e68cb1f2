//! Bills in SQLite.

mod files;
mod lines;
mod rates;

use async_trait::async_trait;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

use super::SqliteStore;
use super::query::Query;
use crate::domain::account::AccountSid;
use crate::domain::bill::import::{Imported, ImportedRecord};
use crate::domain::bill::rating::{Funds, Prefix, Rate, Shortage};
use crate::domain::bill::{BillFile, BillLine, BillOf, LinePlace};
use crate::domain::call::CallSid;
use crate::domain::claim::{Lease, NodeId};
use crate::domain::request_key::{Accepted, AcceptedCall};
use crate::store::StoreError;
use crate::store::bills::{BillBook, BillToken, CallComparison, CallSpan, ClosedDay, Forgotten};
use crate::store::statements::bill_lines;

pub use lines::bill_call;
pub use rates::{charge, reserve_next};

#[async_trait]
impl BillBook for SqliteStore {
    async fn set_rate(&self, account: &AccountSid, rate: Rate) -> Result<(), StoreError> {
        let account = account.clone();
        self.write_beside(move |db| rates::set(db, account.as_str(), &rate))
            .await
    }

    async fn remove_rate(&self, account: &AccountSid, prefix: &Prefix) -> Result<bool, StoreError> {
        let (account, prefix) = (account.clone(), prefix.clone());
        self.write_beside(move |db| rates::remove(db, &account, &prefix))
            .await
    }

    async fn rates(&self, account: Option<&AccountSid>) -> Result<Vec<Rate>, StoreError> {
        let account = account.cloned();
        self.read(move |db| rates::all(db, account.as_ref())).await
    }

    async fn set_default_rates(&self, rates: Vec<Rate>) -> Result<(), StoreError> {
        self.write_beside(move |db| rates::set_defaults(db, &rates))
            .await
    }

    async fn accept_call_within_limits(
        &self,
        order: AcceptedCall,
        longest_talk: u32,
    ) -> Result<Result<Accepted, Shortage>, StoreError> {
        let clock = self.clock.clone();
        self.begin(move |db| rates::accept(db, &order, longest_talk, clock.now()))
            .await
    }

    async fn tighten_reservation(
        &self,
        sid: &CallSid,
        lease: &Lease,
        longest_talk: u32,
    ) -> Result<Option<u32>, StoreError> {
        let (sid, lease) = (sid.clone(), lease.clone());
        self.write(move |db| rates::tighten(db, &sid, &lease, longest_talk))
            .await
    }

    async fn funds(&self, account: &AccountSid) -> Result<Option<Funds>, StoreError> {
        let account = account.clone();
        self.read(move |db| rates::funds(db, &account)).await
    }

    async fn import_records(
        &self,
        records: Vec<ImportedRecord>,
        late: bool,
    ) -> Result<Imported, StoreError> {
        self.begin(move |db| lines::import(db, &records, late))
            .await
    }

    async fn first_open_day(&self) -> Result<Date, StoreError> {
        self.read(lines::first_open).await
    }

    async fn next_day_with_lines(&self, from: Date) -> Result<Option<Date>, StoreError> {
        self.read(move |db| lines::next_day(db, from)).await
    }

    async fn close_day(&self, day: Date, now: Timestamp) -> Result<(), StoreError> {
        self.write_beside(move |db| lines::close(db, day, now))
            .await
    }

    async fn closed_days(&self) -> Result<Vec<ClosedDay>, StoreError> {
        self.read(lines::closed_days).await
    }

    async fn day_is_filed(&self, day: Date, now: Timestamp) -> Result<(), StoreError> {
        self.write_beside(move |db| lines::filed(db, day, now))
            .await
    }

    async fn bills_of_day(&self, day: Date) -> Result<Vec<BillOf>, StoreError> {
        self.read(move |db| lines::bills(db, day)).await
    }

    async fn bill_lines(
        &self,
        of: &BillOf,
        after: Option<LinePlace>,
        limit: u32,
    ) -> Result<Vec<BillLine>, StoreError> {
        let of = of.clone();
        self.read(move |db| lines::page(db, &of, after.as_ref(), limit))
            .await
    }

    async fn bill_line(&self, order_id: &str) -> Result<Option<BillLine>, StoreError> {
        let order_id = order_id.to_owned();
        self.read(move |db| {
            db.row(bill_lines::FIND.sqlite, [&order_id], |row| {
                bill_lines::line(row)
            })
        })
        .await
    }

    async fn compare_with_calls(&self, span: CallSpan) -> Result<CallComparison, StoreError> {
        self.read(move |db| lines::compare_with_calls(db, &span))
            .await
    }

    async fn bill_file(&self, of: &BillOf, keywords: &str) -> Result<Option<BillFile>, StoreError> {
        let (of, keywords) = (of.clone(), keywords.to_owned());
        self.read(move |db| files::find(db, &of, &keywords)).await
    }

    async fn record_bill_file(&self, file: BillFile) -> Result<BillFile, StoreError> {
        self.begin(move |db| files::record(db, &file)).await
    }

    async fn bill_files(&self, day: Date) -> Result<Vec<BillFile>, StoreError> {
        self.read(move |db| files::of_day(db, day)).await
    }

    async fn add_bill_token(&self, token: BillToken) -> Result<bool, StoreError> {
        self.begin(move |db| files::add_token(db, &token)).await
    }

    async fn file_of_token(
        &self,
        hash: &str,
        now: Timestamp,
    ) -> Result<Option<BillFile>, StoreError> {
        let hash = hash.to_owned();
        self.read(move |db| files::of_token(db, &hash, now)).await
    }

    async fn forget_bills(
        &self,
        before: Date,
        now: Timestamp,
        limit: u32,
    ) -> Result<Forgotten, StoreError> {
        self.write_beside(move |db| files::forget(db, before, now, limit))
            .await
    }

    async fn take_duty(
        &self,
        duty: &str,
        node: &NodeId,
        lease: SignedDuration,
    ) -> Result<bool, StoreError> {
        let (duty, node, clock) = (duty.to_owned(), node.clone(), self.clock.clone());
        self.write_beside(move |db| {
            files::take_duty(db, &duty, &node, clock.now(), clock.after(lease))
        })
        .await
    }

    async fn leave_duty(&self, duty: &str, node: &NodeId) -> Result<(), StoreError> {
        let (duty, node) = (duty.to_owned(), node.clone());
        self.write_beside(move |db| files::leave_duty(db, &duty, &node))
            .await
    }
}
