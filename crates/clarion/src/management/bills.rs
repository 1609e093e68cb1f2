//! Bills: days, their files, and records of other services.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::civil::Date;

use super::change::NotedChange;
use super::{Management, ManagementError};
use crate::billing::Billing;
use crate::billing::close::{CloseStep, Closer};
use crate::billing::import::{self, ImportReport};
use crate::billing::stream::{BillFormat, BillStream};
use crate::billing::verify::FileVerification;
use crate::domain::account::AppId;
use crate::domain::bill::keywords::Keywords;
use crate::domain::bill::{BillFile, BillOf, Totals, calendar};
use crate::domain::claim::NodeId;
use crate::domain::wording::wording;
use crate::random;
use crate::store::BilledAccount;
use crate::store::bills::ClosedDay;

/// Days whose totals are shown together.
const MAX_DAYS: i32 = 100;

/// A day that was closed, and what all its bills come to.
#[derive(Debug, Clone)]
pub struct BilledDay {
    pub closed: ClosedDay,
    pub totals: Totals,
    /// Whole ones, without those of keywords.
    pub files: u64,
}

impl Management {
    pub fn billing(&self) -> Result<Arc<Billing>, ManagementError> {
        let (store, clock) = (Arc::clone(&self.store), self.clock.clone());
        Ok(Arc::new(Billing::open(&self.config, store, clock)?))
    }

    /// Every day that was closed and is still kept.
    pub async fn billed_days(&self) -> Result<Vec<BilledDay>, ManagementError> {
        let totals = self.store.billed_days().await?.into_iter();
        let totals: BTreeMap<_, _> = totals.map(|day| (day.day, day)).collect();
        let days = self.store.closed_days().await?.into_iter().map(|closed| {
            let known = totals.get(&closed.day);
            BilledDay {
                closed,
                totals: known.map_or_else(Totals::default, |day| day.totals),
                files: known.map_or(0, |day| day.files),
            }
        });
        Ok(days.collect())
    }

    /// What each account has to pay for these closed days, the newest day first. At most so many days as are kept on one page.
    pub async fn billed_accounts(
        &self,
        from: Date,
        to: Date,
    ) -> Result<Vec<BilledAccount>, ManagementError> {
        let days = from.until(to).map_or(0, |span| span.get_days());
        if days >= MAX_DAYS {
            return Err(ManagementError::rule(wording!(
                "{from} to {to} are more than {MAX_DAYS} days",
                "{from} 到 {to} 超过 {MAX_DAYS} 天"
            )));
        }
        Ok(self.store.billed_accounts(from, to).await?)
    }

    pub async fn bill_files(&self, day: Date) -> Result<Vec<BillFile>, ManagementError> {
        Ok(self.store.bill_files(day).await?)
    }

    /// The lines of an application of one day, which may still be open: all of them, or those that the keywords match.
    pub async fn export_bill(
        &self,
        day: Date,
        app: AppId,
        keywords: Option<Keywords>,
        format: BillFormat,
    ) -> Result<BillStream, ManagementError> {
        let account = self.application(&app).await?.account;
        let of = BillOf { account, app, day };
        let (store, zone) = (Arc::clone(&self.store), self.clock.zone().clone());
        Ok(BillStream::new(store, of, zone, format, keywords))
    }

    /// Recounts a closed day.
    pub async fn verify_bill(&self, day: Date) -> Result<FileVerification, ManagementError> {
        if day >= self.store.first_open_day().await? {
            return Err(ManagementError::rule(wording!(
                "{day} is not closed yet",
                "{day} 尚未结账"
            )));
        }
        Ok(self.billing()?.verify(day).await?)
    }

    /// Closes this day and those before it, which must be over; or those that are due. How many were closed.
    pub async fn close_days(&self, day: Option<Date>) -> Result<usize, ManagementError> {
        let change = NotedChange::new("bill close").with_any("day", day);
        let close = async {
            let (billing, node) = (self.billing()?, NodeId::new(random::bytes()));
            let Some(day) = day else {
                return match Closer::new(billing, node).step().await? {
                    CloseStep::Nothing => Ok(0),
                    CloseStep::Closed(days) => Ok(days),
                    CloseStep::Elsewhere => Err(ManagementError::rule(wording!(
                        "a server is closing a day at this moment",
                        "有服务正在结账"
                    ))),
                };
            };
            if day >= calendar::day_of(self.clock.now(), self.clock.zone()) {
                return Err(ManagementError::rule(wording!(
                    "{day} is not over yet",
                    "{day} 尚未结束"
                )));
            }
            Ok(billing.close_now(day, &node).await?.len())
        };
        self.noted(change, Box::pin(close)).await
    }

    /// Adds records of other services, all of them or none. `name` is that of the file.
    pub async fn import_bill_records(
        &self,
        name: &str,
        text: &str,
        late: bool,
    ) -> Result<ImportReport, ManagementError> {
        let change = NotedChange::new("bill import")
            .on(name)
            .where_so("late", late);
        let import = import::import(&*self.store, text, &self.clock, late);
        self.noted_unless(change, import, ImportReport::failure)
            .await
    }
}
