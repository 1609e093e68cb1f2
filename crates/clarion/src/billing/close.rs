//! Closes each day, a grace time after midnight. One node has this duty, however many nodes there are. Days that were missed because no
//! server ran are closed at the next start.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use jiff::civil::Date;
use supervisor::Watch;
use tokio::task::JoinSet;

use super::{Billing, retention};
use crate::clock::JumpWatch;
use crate::domain::bill::calendar;
use crate::domain::claim::NodeId;
use crate::store::Store;

const DUTY: &str = "close-day";
/// Short, because two nodes that close a day at the same time do no harm, and an interrupted close should resume soon.
const LEASE: SignedDuration = SignedDuration::from_secs(5);
const RENEWAL: Duration = Duration::from_millis(1500);
/// Time between two looks for days that are due and for bills beyond their retention.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseStep {
    /// Every day that is due is filed.
    Nothing,
    /// Another node has the duty.
    Elsewhere,
    /// The number of days that were closed and filed.
    Closed(usize),
}

#[derive(Debug)]
pub struct Closer {
    billing: Arc<Billing>,
    node: NodeId,
    /// The last due day for which nothing more is to do.
    done: Option<Date>,
}

impl Closer {
    pub fn new(billing: Arc<Billing>, node: NodeId) -> Self {
        Self {
            billing,
            node,
            done: None,
        }
    }

    /// Looks once, and closes and files every day that is due.
    pub async fn step(&mut self) -> anyhow::Result<CloseStep> {
        let billing = &self.billing;
        let (now, zone) = (billing.clock.now(), billing.clock.zone());
        let due = calendar::last_due(now, zone, billing.grace());
        if self.done == Some(due) {
            return Ok(CloseStep::Nothing);
        }
        if !billing.has_work(due).await? {
            self.done = Some(due);
            return Ok(CloseStep::Nothing);
        }
        let Some(duty) = Duty::take(billing, &self.node).await? else {
            return Ok(CloseStep::Elsewhere);
        };
        let closed = billing.close_until(due).await;
        duty.leave(billing, &self.node).await?;
        let days = closed?;
        self.done = Some(due);
        Ok(CloseStep::Closed(days.len()))
    }
}

impl Billing {
    async fn has_work(&self, due: Date) -> anyhow::Result<bool> {
        let unfiled = self.unfiled().await?;
        Ok(!unfiled.is_empty() || self.next_open(due).await?.is_some())
    }

    async fn unfiled(&self) -> anyhow::Result<Vec<Date>> {
        let days = self.store.closed_days().await?;
        Ok(days
            .iter()
            .filter(|day| day.filed_at.is_none())
            .map(|day| day.day)
            .collect())
    }

    /// Returns the next day to be closed. A day without lines is not closed until someone asks for its bill, so a clock that is a year
    /// ahead for a minute does not close a year.
    async fn next_open(&self, due: Date) -> anyhow::Result<Option<Date>> {
        let open = self.store.first_open_day().await?;
        let next = self.store.next_day_with_lines(open).await?;
        Ok(next.filter(|day| *day <= due))
    }

    /// Closes every day up to this one, and writes the files.
    pub async fn close_until(&self, due: Date) -> anyhow::Result<Vec<Date>> {
        while let Some(day) = self.next_open(due).await? {
            self.store.close_day(day, self.clock.now()).await?;
        }
        let days = self.unfiled().await?;
        for day in &days {
            let bills = self.store.bills_of_day(*day).await?;
            for of in &bills {
                let file = self.file(of, None).await?;
                tracing::info!(%day, app = %of.app, lines = file.totals.lines, bytes = file.bytes, "bill written");
            }
            self.store.day_is_filed(*day, self.clock.now()).await?;
            metrics::counter!("clarion_bill_days_closed_total").increment(1);
            tracing::info!(%day, bills = bills.len(), "day closed");
        }
        Ok(days)
    }

    /// Closes any day that is over, for an operator who does not want to wait for the grace time.
    pub async fn close_now(&self, day: Date, node: &NodeId) -> anyhow::Result<Vec<Date>> {
        let Some(duty) = Duty::take(self, node).await? else {
            anyhow::bail!("a server is closing a day at this moment: please try again");
        };
        let closed = self.close_and_file(day).await;
        duty.leave(self, node).await?;
        closed
    }

    async fn close_and_file(&self, day: Date) -> anyhow::Result<Vec<Date>> {
        self.store.close_day(day, self.clock.now()).await?;
        self.close_until(day).await
    }
}

/// Holds the duty until `leave`. If it is dropped instead, the duty ends with its lease.
struct Duty {
    renewal: JoinSet<()>,
}

impl Duty {
    async fn take(billing: &Billing, node: &NodeId) -> anyhow::Result<Option<Self>> {
        if !billing.store.take_duty(DUTY, node, LEASE).await? {
            return Ok(None);
        }
        let mut renewal = JoinSet::new();
        renewal.spawn(renew(Arc::clone(&billing.store), node.clone()));
        Ok(Some(Self { renewal }))
    }

    /// Gives the duty back. The renewal ends first, because it might otherwise take the duty again.
    async fn leave(mut self, billing: &Billing, node: &NodeId) -> anyhow::Result<()> {
        self.renewal.shutdown().await;
        Ok(billing.store.leave_duty(DUTY, node).await?)
    }
}

async fn renew(store: Arc<dyn Store>, node: NodeId) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        if let Err(error) = store.take_duty(DUTY, &node, LEASE).await {
            tracing::warn!(%error, "the duty of closing the day could not be kept");
        }
    }
}

/// Closes days and forgets old ones while the server runs.
pub async fn keep_closing(billing: Arc<Billing>, node: NodeId, watch: Watch) {
    let mut closer = Closer::new(Arc::clone(&billing), node);
    let mut sweeps = retention::Rhythm::from(billing.clock.now());
    // A closed day never changes, so a clock that was set to another day closes nothing for a while.
    let mut jumps = JumpWatch::new(billing.clock.clone());
    loop {
        watch.heartbeat();
        if jumps.believes()
            && let Err(error) = closer.step().await
        {
            tracing::error!(%error, "a day could not be closed; trying again");
        }
        if sweeps.is_due(billing.clock.now())
            && let Err(error) = retention::sweep(&billing).await
        {
            tracing::warn!(%error, "old bills could not be forgotten");
        }
        tokio::time::sleep(LOOK).await;
    }
}
