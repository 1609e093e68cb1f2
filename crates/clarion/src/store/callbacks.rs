//! The verbs of the store that are about callbacks: one queue for final callbacks and events. They become owed in the transaction that ends
//! a call, or that they are about.

use std::collections::HashMap;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::StoreError;
use crate::domain::account::AppId;
use crate::domain::callback::{
    Callback, CallbackAttempt, CallbackKey, CallbackLease, CallbackState, ClaimedCallback,
    EndedAttempt,
};

/// Due times are by the store's own clock, as in the queue of calls: verbs are told how long, never when.
#[async_trait]
pub trait CallbackQueue: Send + Sync {
    /// Takes leases on callbacks that are due, oldest first, at most as many as each receiver has capacity for. Of the events of one call one is
    /// taken at a time, the earliest of those that are due.
    async fn claim_callbacks(&self, claim: CallbackClaim) -> Result<ClaimedBatch, StoreError>;
    /// Records attempts and what follows from each, all in one transaction. Those whose lease was lost are left out; the others are returned.
    /// An event that was delivered supersedes the earlier ones of its call that still wait.
    async fn record_attempts(
        &self,
        ended: Vec<EndedAttempt>,
    ) -> Result<Vec<CallbackKey>, StoreError>;
    /// Gives leases back; the callbacks are due as before.
    async fn release_callbacks(&self, leases: Vec<CallbackLease>) -> Result<(), StoreError>;
    /// Frees the callbacks of holders that are gone: on SQLite everyone but `node`, on PostgreSQL whose lease has run out. Returns how many.
    async fn reclaim_callbacks(&self, node: &str) -> Result<u64, StoreError>;
    /// Newest calls first.
    async fn callbacks(&self, filter: CallbackFilter) -> Result<Vec<Callback>, StoreError>;
    /// A callback with its attempts, oldest first.
    async fn callback(
        &self,
        key: &CallbackKey,
    ) -> Result<Option<(Callback, Vec<CallbackAttempt>)>, StoreError>;
    /// Makes a callback due now, at the beginning of the schedule, whatever became of it. Its attempts are kept.
    async fn replay_callback(&self, key: &CallbackKey) -> Result<(), StoreError>;
    async fn callback_backlog(&self) -> Result<CallbackBacklog, StoreError>;
}

/// Which callbacks a node may take now.
#[derive(Debug, Clone)]
pub struct CallbackClaim {
    /// This life of this process.
    pub node: String,
    /// Longer than an attempt may take, so that leases need no renewal.
    pub lease: SignedDuration,
    pub limit: u32,
    pub per_host: u32,
    /// Receivers that have less capacity than `per_host` at the moment (`CallbackKey::receiver`).
    pub capacity: HashMap<String, u32>,
}

impl CallbackClaim {
    /// Of the hosts with something waiting, each with the time until its first is due: those to take from and how many, and the time until
    /// one of the others is due. Hosts share what is free, and those with the least under way come first, so that a busy one cannot crowd others out.
    pub(super) fn choose(
        &self,
        waiting: Vec<(String, SignedDuration)>,
    ) -> (Vec<(String, u32)>, Option<SignedDuration>) {
        let next_due = waiting.iter().map(|(_, first)| *first);
        let next_due = next_due.filter(SignedDuration::is_positive).min();
        let mut due: Vec<_> = waiting
            .into_iter()
            .filter(|(_, first)| !first.is_positive())
            .map(|(host, first)| {
                let capacity = self.capacity.get(&host).copied().unwrap_or(self.per_host);
                (
                    self.per_host.saturating_sub(capacity),
                    first,
                    host,
                    capacity,
                )
            })
            .filter(|(_, _, _, capacity)| *capacity > 0)
            .collect();
        due.sort();
        due.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        let sharing = u32::try_from(due.len()).unwrap_or(u32::MAX).max(1);
        let share = (self.limit / sharing).max(1);
        let taken = due
            .into_iter()
            .map(|(_, _, host, capacity)| (host, capacity.min(share)));
        (taken.collect(), next_due)
    }
}

#[derive(Debug, Clone, Default)]
pub struct ClaimedBatch {
    pub callbacks: Vec<ClaimedCallback>,
    /// How long it takes until the next one is due, of the hosts where none is due now.
    pub next_due: Option<SignedDuration>,
}

#[derive(Debug, Clone, Default)]
pub struct CallbackFilter {
    pub state: Option<CallbackState>,
    pub app: Option<AppId>,
    /// Name and port.
    pub host: Option<String>,
    /// The page after this one: its last.
    pub before: Option<CallbackKey>,
    pub limit: u32,
}

/// What is still to be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallbackBacklog {
    pub waiting: u64,
    pub oldest_owed_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_share_what_is_free_and_the_least_busy_come_first() {
        let at = |second: i64| SignedDuration::from_secs(second - 10);
        let claim = |limit, capacity: &[(&str, u32)]| CallbackClaim {
            node: "n".to_owned(),
            lease: SignedDuration::ZERO,
            limit,
            per_host: 8,
            capacity: capacity
                .iter()
                .map(|(host, capacity)| ((*host).to_owned(), *capacity))
                .collect(),
        };
        let waiting = [("busy", 1), ("full", 2), ("idle", 3), ("later", 11)];
        let waiting = waiting.map(|(host, second)| (host.to_owned(), at(second)));
        let chosen =
            |limit, capacity: &[(&str, u32)]| claim(limit, capacity).choose(waiting.to_vec());
        let named = |host: &str, count| (host.to_owned(), count);
        let capacity = [("busy", 3), ("full", 0)];
        let next = Some(at(11));
        assert_eq!(
            chosen(100, &capacity),
            (vec![named("idle", 8), named("busy", 3)], next)
        );
        assert_eq!(
            chosen(4, &capacity),
            (vec![named("idle", 2), named("busy", 2)], next)
        );
        assert_eq!(chosen(1, &capacity), (vec![named("idle", 1)], next));
        assert_eq!(chosen(2, &[]).0, [named("busy", 1), named("full", 1)]);
    }
}
