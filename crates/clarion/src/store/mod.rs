//! The truth. One trait of verbs; each verb is one transaction, and none lets a transaction out.
//!
//! SQLite is the embedded default, PostgreSQL is what several nodes share. Each is complete in its own folder, in its own dialect, and
//! nothing outside them asks which one it is. Both pass the same contract suite (`tests/it/store_contract.rs`).

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use crate::domain::account::{
    Account, AccountChange, AccountSid, AppId, Application, ApplicationChange,
};
use crate::domain::call::{CallProgress, CallSid, NewCall};
use crate::domain::call_state::CallState;
use crate::domain::callback::{
    Callback, CallbackAttempt, CallbackLease, CallbackState, ClaimedCallback, EndedAttempt,
};
use crate::domain::claim::{
    CallFilter, CallRecord, CallUpdate, Claim, ClaimedCall, EndedCall, Lease, NodeId, NodeShare,
    OrphanedCall, Overdue, QueuedApp,
};
use crate::domain::prompt::{AddedFile, AudioOwner, ContentId, FileName, FileOwner};

pub mod bills;
mod inspection;
pub mod postgres;
pub mod sqlite;

pub use self::bills::BillBook;
pub use self::inspection::Inspection;

/// The queue: who takes which call, how far it has come, and its end. Every verb that writes about a call is guarded by its lease; `false`
/// means that the call is not ours any more, and that nothing was changed.
#[async_trait]
pub trait CallQueue: Send + Sync {
    /// Applications with calls waiting, and when the first of each is due.
    async fn queued_apps(&self) -> Result<Vec<QueuedApp>, StoreError>;
    /// Takes calls that are due, in their order, at most one for each callee and none for a callee that is being called.
    async fn claim_calls(&self, claim: Claim) -> Result<Vec<ClaimedCall>, StoreError>;
    /// Takes calls that shall end without being dialled.
    async fn claim_overdue(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
    ) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError>;
    async fn advance_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        step: CallUpdate,
    ) -> Result<bool, StoreError>;
    /// Back to the queue: nothing has rung, so it does not count for its callee either.
    async fn requeue_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        due_at: Timestamp,
    ) -> Result<bool, StoreError>;
    /// Outcome, bill line and owed callback in one commit.
    async fn end_call(&self, ended: EndedCall) -> Result<bool, StoreError>;
    /// Takes calls over whose process is gone, and those of our own that nobody here works at any more (`abandoned`).
    async fn take_orphaned_calls(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
        abandoned: &[CallSid],
        limit: u32,
    ) -> Result<Vec<OrphanedCall>, StoreError>;
    /// This process lives, and holds what it holds.
    async fn heartbeat(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<NodeShare, StoreError>;
    /// This process stops in good order: the others may use its part at once.
    async fn leave(&self, node: &NodeId) -> Result<(), StoreError>;
    /// Calls that this node holds.
    async fn held_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError>;
    /// The operator wants the call ended. How far it has come, if it has not ended.
    async fn cancel_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError>;
    /// Calls that this node has under way and shall end.
    async fn cancelled_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError>;
    /// Calls waiting, and when the oldest of them was accepted.
    async fn queue_depth(&self) -> Result<(u64, Option<Timestamp>), StoreError>;
    /// How often a callee was called since then, of the last day.
    async fn calls_to(&self, callee: &str, since: Timestamp) -> Result<u32, StoreError>;
    /// Forgets calls that ended before, with their callbacks; at most so many, the oldest first. What is still owed is kept. How many went.
    async fn forget_calls(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}

/// What operators ask and switch.
#[async_trait]
pub trait Records: Send + Sync {
    async fn call_record(&self, sid: &CallSid) -> Result<Option<CallRecord>, StoreError>;
    /// The newest first.
    async fn list_calls(&self, filter: CallFilter) -> Result<Vec<CallRecord>, StoreError>;
    /// `None` puts the switch back to where it was.
    async fn set_switch(
        &self,
        name: &str,
        value: Option<&str>,
        now: Timestamp,
    ) -> Result<(), StoreError>;
    async fn switches(&self) -> Result<Vec<(String, String)>, StoreError>;
    /// Whether a number may be called; false if that was so before.
    async fn bar_number(
        &self,
        digits: &str,
        barred: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError>;
    async fn barred_numbers(&self) -> Result<Vec<String>, StoreError>;
}

#[async_trait]
pub trait Store: CallQueue + Records + BillBook + fmt::Debug {
    // Accounts and applications.
    async fn add_account(&self, account: Account) -> Result<(), StoreError>;
    async fn account(&self, sid: &AccountSid) -> Result<Option<Account>, StoreError>;
    async fn accounts(&self) -> Result<Vec<Account>, StoreError>;
    /// Applies the change to what is stored, and returns the account as it is now.
    async fn change_account(
        &self,
        sid: &AccountSid,
        change: AccountChange,
    ) -> Result<Account, StoreError>;
    async fn add_application(&self, application: Application) -> Result<(), StoreError>;
    async fn application(&self, id: &AppId) -> Result<Option<Application>, StoreError>;
    async fn applications(&self, account: &AccountSid) -> Result<Vec<Application>, StoreError>;
    async fn change_application(
        &self,
        id: &AppId,
        change: ApplicationChange,
    ) -> Result<Application, StoreError>;

    // Voice files.
    /// What each name means to the application now; `None` where there is no such file.
    async fn audio_files(
        &self,
        app: &AppId,
        owner: FileOwner,
        names: &[FileName],
    ) -> Result<Vec<Option<ContentId>>, StoreError>;

    /// Adds files, all of them or none. A name that its owner has already means the new content from now on; calls that were
    /// accepted before keep the old.
    async fn add_audio_files(&self, files: Vec<AddedFile>) -> Result<(), StoreError>;
    /// Ordered by name.
    async fn audio_files_of(&self, owner: &AudioOwner) -> Result<Vec<AddedFile>, StoreError>;
    async fn remove_audio_file(
        &self,
        owner: &AudioOwner,
        name: &FileName,
    ) -> Result<(), StoreError>;
    /// What a name means, or a call in the queue wants.
    async fn audio_contents_in_use(&self) -> Result<HashSet<ContentId>, StoreError>;

    // Calls.
    /// Makes the call durable and queues it. When this returns `Ok`, a power cut loses nothing. Calling it again with the same
    /// call changes nothing.
    async fn accept_call(&self, call: NewCall) -> Result<(), StoreError>;
    async fn call_progress(
        &self,
        account: &AccountSid,
        sid: &CallSid,
    ) -> Result<Option<CallProgress>, StoreError>;

    // Callbacks. They become owed in the transaction that ends a call (`callbacks::owe` of each dialect).
    /// Takes leases on callbacks that are due, oldest first, at most as many as each host has room for.
    async fn claim_callbacks(&self, claim: CallbackClaim) -> Result<ClaimedBatch, StoreError>;
    /// Records attempts and what follows from each, all in one transaction. Those whose lease was lost are left out; the others are returned.
    async fn record_attempts(&self, ended: Vec<EndedAttempt>) -> Result<Vec<CallSid>, StoreError>;
    /// Gives leases back; the callbacks are due as before.
    async fn release_callbacks(&self, leases: Vec<CallbackLease>) -> Result<(), StoreError>;
    /// Frees the callbacks of lost holders: on SQLite everyone but `node`, on PostgreSQL whose lease has run out. Returns how many.
    async fn reclaim_callbacks(&self, node: &str) -> Result<u64, StoreError>;
    /// Newest calls first.
    async fn callbacks(&self, filter: CallbackFilter) -> Result<Vec<Callback>, StoreError>;
    /// A callback with its attempts, oldest first.
    async fn callback(
        &self,
        sid: &CallSid,
    ) -> Result<Option<(Callback, Vec<CallbackAttempt>)>, StoreError>;
    /// Makes a callback due now, at the beginning of the schedule, whatever became of it. Its attempts are kept.
    async fn replay_callback(&self, sid: &CallSid, now: Timestamp) -> Result<(), StoreError>;
    async fn callback_backlog(&self) -> Result<CallbackBacklog, StoreError>;

    /// Can the store be read and written now? For the readiness probe.
    async fn ready(&self) -> Result<(), StoreError>;
    /// Finishes what has been handed in and lets go of the database.
    async fn close(&self);
}

/// Which callbacks a node may take now.
#[derive(Debug, Clone)]
pub struct CallbackClaim {
    /// This life of this process.
    pub node: String,
    pub now: Timestamp,
    /// Longer than an attempt may take, so that leases need no renewal.
    pub lease: SignedDuration,
    pub limit: u32,
    pub per_host: u32,
    /// Hosts that have less room than `per_host` at the moment.
    pub room: HashMap<String, u32>,
}

impl CallbackClaim {
    /// Of the hosts with something waiting, each with the time of its first: those to take from and how many, and the next due time of
    /// the others. Hosts share what is free, and those with the least under way come first, so that a busy one cannot crowd others out.
    fn choose(&self, waiting: Vec<(String, Timestamp)>) -> (Vec<(String, u32)>, Option<Timestamp>) {
        let next_due = waiting.iter().map(|(_, first)| *first);
        let next_due = next_due.filter(|first| *first > self.now).min();
        let mut due: Vec<_> = waiting
            .into_iter()
            .filter(|(_, first)| *first <= self.now)
            .map(|(host, first)| {
                let room = self.room.get(&host).copied().unwrap_or(self.per_host);
                (self.per_host.saturating_sub(room), first, host, room)
            })
            .filter(|(_, _, _, room)| *room > 0)
            .collect();
        due.sort();
        due.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        let sharing = u32::try_from(due.len()).unwrap_or(u32::MAX).max(1);
        let share = (self.limit / sharing).max(1);
        let taken = due
            .into_iter()
            .map(|(_, _, host, room)| (host, room.min(share)));
        (taken.collect(), next_due)
    }
}

#[derive(Debug, Clone, Default)]
pub struct ClaimedBatch {
    pub callbacks: Vec<ClaimedCallback>,
    /// When the next one is due, of the hosts where none is due now.
    pub next_due: Option<Timestamp>,
}

#[derive(Debug, Clone, Default)]
pub struct CallbackFilter {
    pub state: Option<CallbackState>,
    pub app: Option<AppId>,
    /// Name and port.
    pub host: Option<String>,
    /// The page after this one: its last callSid.
    pub before: Option<CallSid>,
    pub limit: u32,
}

/// What is still to be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallbackBacklog {
    pub waiting: u64,
    pub oldest_owed_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Error)]
pub enum StoreError {
    #[error("{0} exists already")]
    Exists(String),
    #[error("there is no {0}")]
    Missing(String),
    /// It cannot be done now; later perhaps.
    #[error("{0}")]
    Conflict(String),
    /// The database did not do it. Nothing was changed, as far as can be known.
    #[error("the database failed: {0}")]
    Failed(String),
}

impl StoreError {
    fn failed(error: impl fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    fn no_callback(sid: &CallSid) -> Self {
        Self::Missing(format!("callback of call {sid}"))
    }

    fn being_delivered(sid: &CallSid) -> Self {
        Self::Conflict(format!(
            "the callback of call {sid} is being delivered right now; try again when that is over"
        ))
    }
}

/// Where the truth lives, as the setting `database` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Database {
    pub fn parse(url: &str) -> Result<Self, String> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            if path.is_empty() {
                return Err("database: name a file after `sqlite:`".to_owned());
            }
            return Ok(Self::Sqlite(PathBuf::from(path)));
        }
        if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            return Ok(Self::Postgres(url.to_owned()));
        }
        Err("database must begin with `sqlite:` or `postgres:`".to_owned())
    }

    /// Opens the database, bringing its schema up to date.
    pub async fn open(&self) -> anyhow::Result<Arc<dyn Store>> {
        Ok(match self {
            Self::Sqlite(path) => Arc::new(sqlite::SqliteStore::open(path).await?),
            Self::Postgres(url) => Arc::new(postgres::PostgresStore::open(url).await?),
        })
    }
}

/// Says that this process serves from a SQLite file, until it is dropped or the process ends in whatever way.
#[derive(Debug)]
pub struct ServeLock(File);

impl Drop for ServeLock {
    /// By name, and not only by closing the file: a process that is being started elsewhere holds a copy of it for a moment.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Database {
    /// One server at a time serves from a SQLite file: its leases belong to that process's life. The command line may still open the
    /// file beside it. Nodes that share a PostgreSQL need no such lock.
    pub fn lock_for_serving(&self) -> anyhow::Result<Option<ServeLock>> {
        let Self::Sqlite(path) = self else {
            return Ok(None);
        };
        let lock = path.with_extension("lock");
        let file = File::create(&lock)
            .with_context(|| format!("cannot make the lock file {}", lock.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(ServeLock(file))),
            Err(TryLockError::WouldBlock) => {
                bail!("another server is already serving from {}", path.display())
            }
            Err(TryLockError::Error(error)) => {
                Err(error).context("cannot lock the database for serving")
            }
        }
    }
}

/// For messages: a connection string without its password.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => match url::Url::parse(url) {
                Ok(mut url) => {
                    if url.password().is_some() {
                        // Fails only for URLs that cannot have a password.
                        let _ = url.set_password(Some("…"));
                    }
                    write!(f, "{url}")
                }
                Err(_) => f.write_str("postgres:…"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_share_what_is_free_and_the_least_busy_come_first() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let claim = |limit, room: &[(&str, u32)]| CallbackClaim {
            node: "n".to_owned(),
            now: at(10),
            lease: SignedDuration::ZERO,
            limit,
            per_host: 8,
            room: room
                .iter()
                .map(|(host, room)| ((*host).to_owned(), *room))
                .collect(),
        };
        let waiting = [("busy", 1), ("full", 2), ("idle", 3), ("later", 11)];
        let waiting = waiting.map(|(host, second)| (host.to_owned(), at(second)));
        let chosen = |limit, room: &[(&str, u32)]| claim(limit, room).choose(waiting.to_vec());
        let named = |host: &str, count| (host.to_owned(), count);
        let room = [("busy", 3), ("full", 0)];
        let next = Some(at(11));
        assert_eq!(
            chosen(100, &room),
            (vec![named("idle", 8), named("busy", 3)], next)
        );
        assert_eq!(
            chosen(4, &room),
            (vec![named("idle", 2), named("busy", 2)], next)
        );
        assert_eq!(chosen(1, &room), (vec![named("idle", 1)], next));
        assert_eq!(chosen(2, &[]).0, [named("busy", 1), named("full", 1)]);
    }
}
