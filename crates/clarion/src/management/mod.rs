//! What operators do, as verbs: the one layer under command line and console. The rules about what an operator may write, and the notes in the audit trail,
//! are here.
//!
//! Every verb that changes something notes the change before it makes it, and notes its failure (`noted`). What comes in and goes out has types. It reads
//! no arguments, prints nothing, knows no HTTP and has no SQL: that is the store's.

mod accounts;
mod audio;
mod bills;
mod call_again;
mod call_steps;
mod callbacks;
mod calls;
pub mod change;
mod concerns;
mod failure;
mod intakes;
mod lexicon;
mod lists;
mod operators;
mod overview;
mod server;
pub mod settings;
mod sound;
mod switches;
mod trunk_test;

use std::sync::Arc;

use anyhow::Context;
use supervisor::Supervisor;

pub use self::accounts::{NewAccount, NewApplication};
pub use self::audio::{AudioImport, ImportedAudio, OfferedFile};
pub use self::bills::BilledDay;
pub use self::call_steps::{CallStep, CallStepKind, PlayedMessage, SeenCall};
pub use self::callbacks::CallbackReplay;
pub use self::calls::{BarredNumber, CallStory};
pub use self::change::NotedChange;
pub use self::concerns::{Concern, is_scarce};
pub use self::failure::ManagementError;
pub use self::intakes::{NewIntake, TriedAlert, TriedNotice};
pub use self::lists::{DoNotCallChange, DoNotCallImport, DoNotCallLookup, WrittenList};
pub use self::operators::ChangedOperator;
pub use self::overview::{GIVEN_UP, LIVE_CALLS, NodeUse, Overview, OverviewMemory, TrunkUse};
pub use self::server::ManagedServer;
pub use self::switches::ManagedTrunk;
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::audit::{Actor, AuditEntry, AuditFilter, AuditLine};
use crate::private_files;
use crate::store::{Inspection, Store, StoreError};

/// Who manages, and what. It is made for each actor, and costs nothing.
#[derive(Debug, Clone)]
pub struct Management {
    store: Arc<dyn Store>,
    config: Arc<Config>,
    clock: Clock,
    actor: Actor,
    /// The command as it was written, without its secrets. The console writes none: what it does is put into the same words.
    written: Option<Arc<str>>,
    /// The server that this is in; `None` beside one.
    server: Option<Arc<ManagedServer>>,
}

impl Management {
    pub fn new(store: Arc<dyn Store>, config: Arc<Config>, clock: Clock, actor: Actor) -> Self {
        Self {
            store,
            config,
            clock,
            actor,
            written: None,
            server: None,
        }
    }

    /// The same for somebody else.
    #[must_use]
    pub fn acting_as(&self, actor: Actor) -> Self {
        Self {
            actor,
            ..self.clone()
        }
    }

    /// Opens the database of the settings as it is, beside a running server or without one.
    pub async fn open(config: Arc<Config>, actor: Actor) -> anyhow::Result<Self> {
        let store = config.database.open_as_is(&Supervisor::new()).await?;
        let clock = Clock::new(config.time_zone());
        Ok(Self::new(store, config, clock, actor))
    }

    /// Brings the schema of the database up to date, and tells what it was before. Nobody else may serve from it meanwhile: a server that runs from a file
    /// would find another schema under its feet. Nodes on PostgreSQL are asked which one they know.
    pub async fn migrate(
        config: &Arc<Config>,
        actor: Actor,
        written: &str,
    ) -> anyhow::Result<Inspection> {
        private_files::folder(&config.data_dir).context("data_dir")?;
        let database = &config.database;
        let _lock = database.lock_for_serving()?;
        let before = database.inspect().await?;
        let store = database.open(&Supervisor::new()).await?;
        // There may have been no trail before.
        if before.version < before.wanted {
            let clock = Clock::new(config.time_zone());
            let management = Self::new(Arc::clone(&store), Arc::clone(config), clock, actor);
            let change = NotedChange::new("migrate");
            management.written(written).record(&change, None).await?;
        }
        store.close().await;
        Ok(before)
    }

    /// Changes are noted in these words, whatever they are.
    #[must_use]
    pub fn written(mut self, line: &str) -> Self {
        self.written = Some(line.into());
        self
    }

    pub async fn close(&self) {
        self.store.close().await;
    }

    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What was changed, the newest first.
    pub async fn changes(&self, filter: AuditFilter) -> Result<Vec<AuditLine>, ManagementError> {
        Ok(self.store.changes(filter).await?)
    }

    /// Makes a change: notes it first, and if it fails, that too. A change that cannot be noted is not made.
    pub async fn noted<T, E: Into<ManagementError>>(
        &self,
        change: NotedChange,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, ManagementError> {
        self.noted_unless(change, work, |_| None).await
    }

    /// The same, of work that tells by what it returns why some of it was not done.
    async fn noted_unless<T, E: Into<ManagementError>>(
        &self,
        change: NotedChange,
        work: impl Future<Output = Result<T, E>>,
        failure: impl FnOnce(&T) -> Option<String>,
    ) -> Result<T, ManagementError> {
        let noted = self.record(&change, None).await;
        noted.map_err(ManagementError::NotNoted)?;
        let result = work.await.map_err(Into::into);
        let failure = match &result {
            Ok(done) => failure(done),
            Err(error) => Some(error.to_string()),
        };
        if let Some(failure) = failure
            && let Err(error) = self.record(&change, Some(failure)).await
        {
            tracing::error!(%error, "the failure could not be noted in the audit trail");
        }
        result
    }

    async fn record(
        &self,
        change: &NotedChange,
        failure: Option<String>,
    ) -> Result<(), StoreError> {
        let entry = AuditEntry {
            at: self.clock.now(),
            actor: self.actor.clone(),
            action: change.action().to_owned(),
            detail: match &self.written {
                Some(line) => line.to_string(),
                None => change.words(),
            },
            failure,
        };
        self.store.note_change(entry).await
    }
}
