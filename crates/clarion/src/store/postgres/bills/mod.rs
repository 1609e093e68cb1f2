//! Bills in PostgreSQL, shared by any number of nodes.

mod files;
mod lines;
mod rates;

pub(super) use self::lines::bill_call;
pub(super) use self::rates::{charge, reserve_next};
use async_trait::async_trait;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::PostgresStore;
use super::accept::{PATIENCE, PAUSE};
use crate::domain::account::AccountSid;
use crate::domain::bill::import::{Imported, ImportedRecord};
use crate::domain::bill::rating::{Funds, Prefix, Rate, Shortage};
use crate::domain::bill::{BillFile, BillLine, BillOf, LinePlace};
use crate::domain::call::CallSid;
use crate::domain::claim::{Lease, NodeId};
use crate::domain::request_key::{Accepted, AcceptedCall};
use crate::store::StoreError;
use crate::store::bills::{BillBook, BillToken, CallComparison, CallSpan, ClosedDay, Forgotten};
use crate::store::binding::millis;
use crate::store::statements::{bill_files, bill_lines, postgres, rates as rate_statements};

const TRIES: u32 = 3;
/// By the database's clock, so that nodes need not agree on the time.
const TAKE_DUTY: &str = postgres!(
    "INSERT INTO leases (duty, node, fence, lease_until) VALUES ($1, $2, 1, {now} + $3) \
     ON CONFLICT (duty) DO UPDATE SET node = $2, fence = leases.fence + 1, lease_until = {now} + $3 \
     WHERE leases.node = $2 OR leases.lease_until <= {now}"
);

#[async_trait]
impl BillBook for PostgresStore {
    async fn set_rate(&self, account: &AccountSid, rate: Rate) -> Result<(), StoreError> {
        rates::set(&*self.client().await?, account.as_str(), &rate).await
    }

    async fn remove_rate(&self, account: &AccountSid, prefix: &Prefix) -> Result<bool, StoreError> {
        let client = self.client().await?;
        let removed = client
            .execute_once(
                rate_statements::REMOVE.postgres,
                &[&account.as_str(), &prefix.as_str()],
            )
            .await?;
        Ok(removed == 1)
    }

    async fn rates(&self, account: Option<&AccountSid>) -> Result<Vec<Rate>, StoreError> {
        rates::all(&*self.client().await?, account).await
    }

    async fn set_default_rates(&self, rates: Vec<Rate>) -> Result<(), StoreError> {
        rates::set_defaults(&mut *self.long_client().await?, &rates).await
    }

    async fn accept_call_within_limits(
        &self,
        order: AcceptedCall,
        longest_talk: u32,
    ) -> Result<Result<Accepted, Shortage>, StoreError> {
        // When there is no answer to the commit nobody knows whether it took; accepting the same call again tells.
        let until = Instant::now() + PATIENCE;
        let (mut tries, mut in_doubt) = (TRIES, false);
        let account = &order.call.account;
        loop {
            tries -= 1;
            let Ok(turn) = self.reserving.take(account.as_str(), until).await else {
                let problem = "too many calls of the account wait for the database";
                return Err(if in_doubt {
                    StoreError::Unknown(problem.to_owned())
                } else {
                    StoreError::failed(problem)
                });
            };
            let accepted = match self.client_until(until).await {
                Ok(mut client) => rates::accept(&mut client, &order, longest_talk).await,
                Err(error) => Err(error),
            };
            drop(turn);
            match accepted {
                Err(error) if tries > 0 && Instant::now() + PAUSE < until => {
                    tracing::warn!(%error, "a call could not be accepted; trying again");
                    in_doubt |= error.is_unknown();
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) if in_doubt => return Err(StoreError::Unknown(error.to_string())),
                done => return done,
            }
        }
    }

    async fn tighten_reservation(
        &self,
        sid: &CallSid,
        lease: &Lease,
        longest_talk: u32,
    ) -> Result<Option<u32>, StoreError> {
        rates::tighten(&mut *self.client().await?, sid, lease, longest_talk).await
    }

    async fn funds(&self, account: &AccountSid) -> Result<Option<Funds>, StoreError> {
        rates::funds(&*self.client().await?, rate_statements::FUNDS, account).await
    }

    async fn import_records(
        &self,
        records: Vec<ImportedRecord>,
        late: bool,
    ) -> Result<Imported, StoreError> {
        lines::import(&mut *self.long_client().await?, &records, late).await
    }

    async fn first_open_day(&self) -> Result<Date, StoreError> {
        lines::first_open(&*self.client().await?, bill_lines::FIRST_OPEN).await
    }

    async fn next_day_with_lines(&self, from: Date) -> Result<Option<Date>, StoreError> {
        lines::next_day(&*self.client().await?, from).await
    }

    async fn close_day(&self, day: Date, now: Timestamp) -> Result<(), StoreError> {
        lines::close(&mut *self.long_client().await?, day, now).await
    }

    async fn closed_days(&self) -> Result<Vec<ClosedDay>, StoreError> {
        lines::closed_days(&*self.client().await?).await
    }

    async fn day_is_filed(&self, day: Date, now: Timestamp) -> Result<(), StoreError> {
        let client = self.client().await?;
        client
            .execute_once(
                bill_lines::FILED.postgres,
                &[&now.as_millisecond(), &day.to_string()],
            )
            .await?;
        Ok(())
    }

    async fn bills_of_day(&self, day: Date) -> Result<Vec<BillOf>, StoreError> {
        lines::bills(&*self.long_client().await?, day).await
    }

    async fn bill_lines(
        &self,
        of: &BillOf,
        after: Option<LinePlace>,
        limit: u32,
    ) -> Result<Vec<BillLine>, StoreError> {
        lines::page(&mut *self.long_client().await?, of, after.as_ref(), limit).await
    }

    async fn bill_line(&self, order_id: &str) -> Result<Option<BillLine>, StoreError> {
        let found = self
            .query_opt(bill_lines::FIND.postgres, &[&order_id])
            .await?;
        found.as_ref().map(bill_lines::line).transpose()
    }

    async fn compare_with_calls(&self, span: CallSpan) -> Result<CallComparison, StoreError> {
        lines::compare_with_calls(&*self.long_client().await?, &span).await
    }

    async fn bill_file(&self, of: &BillOf, keywords: &str) -> Result<Option<BillFile>, StoreError> {
        files::find(&*self.client().await?, of, keywords).await
    }

    async fn record_bill_file(&self, file: BillFile) -> Result<BillFile, StoreError> {
        files::record(&*self.client().await?, file).await
    }

    async fn bill_files(&self, day: Date) -> Result<Vec<BillFile>, StoreError> {
        files::of_day(&*self.client().await?, day).await
    }

    async fn add_bill_token(&self, token: BillToken) -> Result<bool, StoreError> {
        files::add_token(&*self.client().await?, &token).await
    }

    async fn file_of_token(
        &self,
        hash: &str,
        now: Timestamp,
    ) -> Result<Option<BillFile>, StoreError> {
        files::of_token(&*self.client().await?, hash, now).await
    }

    async fn forget_bills(
        &self,
        before: Date,
        now: Timestamp,
        limit: u32,
    ) -> Result<Forgotten, StoreError> {
        files::forget(&mut *self.long_client().await?, before, now, limit).await
    }

    async fn take_duty(
        &self,
        duty: &str,
        node: &NodeId,
        lease: SignedDuration,
    ) -> Result<bool, StoreError> {
        let client = self.client().await?;
        let lease = millis(lease);
        let taken = client
            .execute_once(TAKE_DUTY, &[&duty, &node.as_str(), &lease])
            .await?;
        Ok(taken == 1)
    }

    async fn leave_duty(&self, duty: &str, node: &NodeId) -> Result<(), StoreError> {
        let client = self.client().await?;
        client
            .execute_once(bill_files::LEAVE_DUTY.postgres, &[&duty, &node.as_str()])
            .await?;
        Ok(())
    }
}
