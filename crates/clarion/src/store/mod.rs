//! The truth. One trait of verbs; each verb is one transaction, and none lets a transaction out.
//!
//! SQLite is the embedded default, PostgreSQL is what several nodes share. Each is complete in its own folder, in its own dialect, and
//! nothing outside them asks which one it is. Both pass the same contract suite (`tests/it/store_contract.rs`).

use std::collections::HashSet;
use std::fmt;
use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use async_trait::async_trait;
use jiff::Timestamp;
use thiserror::Error;

use crate::domain::account::{
    Account, AccountChange, AccountSid, AppId, Application, ApplicationChange,
};
use crate::domain::call::{CallProgress, CallSid, NewCall};
use crate::domain::call_state::CallState;
use crate::domain::claim::{
    Claim, ClaimedCall, EndedCall, Lease, LostCall, NodeId, Overdue, QueuedAccount, Step,
};
use crate::domain::prompt::{AddedFile, ContentId, FileName, FileOwner, VoiceOwner};

pub mod bills;
pub mod postgres;
pub mod sqlite;

pub use self::bills::BillBook;

/// The queue: who takes which call, how far it has come, and its end. Every verb that writes about a call is guarded by its lease; `false`
/// means that the call is not ours any more, and that nothing was changed.
#[async_trait]
pub trait CallQueue: Send + Sync {
    /// Accounts with calls waiting, and when the first of each is due.
    async fn queued_accounts(&self) -> Result<Vec<QueuedAccount>, StoreError>;
    /// Takes calls that are due, in their order, at most one for each callee and none for a callee that is being called.
    async fn claim_calls(&self, claim: Claim) -> Result<Vec<ClaimedCall>, StoreError>;
    /// Takes calls that shall end without being dialled.
    async fn claim_overdue(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
        most: u32,
    ) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError>;
    async fn advance_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        step: Step,
    ) -> Result<bool, StoreError>;
    /// Back to the queue: nothing has rung.
    async fn requeue_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        due_at: Timestamp,
    ) -> Result<bool, StoreError>;
    /// Outcome, bill line and owed callback in one commit.
    async fn end_call(&self, ended: EndedCall) -> Result<bool, StoreError>;
    /// Takes calls over whose process is gone.
    async fn take_lost_calls(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
        most: u32,
    ) -> Result<Vec<LostCall>, StoreError>;
    /// This process lives, and holds what it holds. How many live, itself included.
    async fn heartbeat(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<u32, StoreError>;
    /// The operator wants the call ended. How far it has come, if it has not ended.
    async fn cancel_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError>;
    /// Calls that this node has under way and shall end.
    async fn cancelled_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError>;
    /// Calls waiting, and when the oldest of them was accepted.
    async fn queue_depth(&self) -> Result<(u64, Option<Timestamp>), StoreError>;
}

#[async_trait]
pub trait Store: CallQueue + BillBook + fmt::Debug {
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
    async fn voice_files(
        &self,
        app: &AppId,
        owner: FileOwner,
        names: &[FileName],
    ) -> Result<Vec<Option<ContentId>>, StoreError>;

    /// Adds files, all of them or none. A name that its owner has already means the new content from now on; calls that were
    /// accepted before keep the old.
    async fn add_voice_files(&self, files: Vec<AddedFile>) -> Result<(), StoreError>;
    /// Ordered by name.
    async fn voice_files_of(&self, owner: &VoiceOwner) -> Result<Vec<AddedFile>, StoreError>;
    async fn remove_voice_file(
        &self,
        owner: &VoiceOwner,
        name: &FileName,
    ) -> Result<(), StoreError>;
    /// What a name means, or a call in the queue wants.
    async fn voice_contents_in_use(&self) -> Result<HashSet<ContentId>, StoreError>;

    // Calls.
    /// Makes the call durable and queues it. When this returns `Ok`, a power cut loses nothing. Calling it again with the same
    /// call changes nothing.
    async fn accept_call(&self, call: NewCall) -> Result<(), StoreError>;
    async fn call_progress(
        &self,
        account: &AccountSid,
        sid: &CallSid,
    ) -> Result<Option<CallProgress>, StoreError>;

    /// Can the store be read and written now? For the readiness probe.
    async fn ready(&self) -> Result<(), StoreError>;
    /// Finishes what has been handed in and lets go of the database.
    async fn close(&self);
}

#[derive(Debug, Clone, Error)]
pub enum StoreError {
    #[error("{0} exists already")]
    Exists(String),
    #[error("there is no {0}")]
    Missing(String),
    /// The database did not do it. Nothing was changed, as far as can be known.
    #[error("the database failed: {0}")]
    Failed(String),
}

impl StoreError {
    fn failed(error: impl fmt::Display) -> Self {
        Self::Failed(error.to_string())
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
pub struct ServeLock(#[expect(dead_code, reason = "held, never read")] File);

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
