//! The truth. One trait of verbs; each verb is one transaction, and none lets a transaction out.
//!
//! | part | its verbs are about |
//! |---|---|
//! | `AccountBook` | accounts and applications |
//! | `AudioCatalog` | what the names of audio files mean |
//! | `ListBook` | lists of numbers that accounts keep |
//! | `DoNotCallBook` | numbers that accounts must not call |
//! | `IntakeBook` | intakes of alerts, and their incidents |
//! | `OperatorBook` | operators of the console and their sign-ins |
//! | `CallQueue` | accepting a call, taking it, its progress and its end |
//! | `CallbackQueue` | callbacks that are owed |
//! | `AuditTrail` | who changed what |
//! | `Records` | what applications and operators ask and switch |
//! | `OperatorViews` | what operators look at |
//! | `BillBook` | rates, funds, bill lines, closed days, bill files |
//!
//! SQLite is the embedded default, PostgreSQL is what several nodes share. Each is complete in its own folder, and nothing outside them
//! asks which one it is. What both say in the same words is said once, in `statements`. Both pass the same contract suites
//! (`tests/it/*_contract.rs`).

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use supervisor::Supervisor;
use thiserror::Error;
use tokio::sync::Notify;

use crate::domain::account::{AccountSid, AppId};
use crate::domain::call_list::{CallList, ListName};
use crate::domain::callback::CallbackKey;
use crate::domain::intake::IntakeName;
use crate::domain::operator::OperatorName;
use crate::domain::wording::{Wording, wording};

mod accounts;
mod audio_files;
mod audit_trail;
pub mod bills;
mod binding;
mod call_lists;
mod call_queue;
mod callbacks;
mod columns;
mod dispatch_store;
mod do_not_call;
mod incident_room;
mod inspecting;
mod inspection;
mod intakes;
mod migrations;
mod operators;
pub mod postgres;
mod records;
mod serve_lock;
pub mod sqlite;
mod statements;
mod unavailable;
mod views;

pub use self::accounts::AccountBook;
pub use self::audio_files::AudioCatalog;
pub use self::audit_trail::AuditTrail;
pub use self::bills::BillBook;
pub use self::call_lists::ListBook;
pub use self::call_queue::{CallQueue, ForgetStep};
pub use self::callbacks::{
    CallbackBacklog, CallbackClaim, CallbackFilter, CallbackPage, CallbackQueue, DueReceivers,
    ReceiverLook, ReplayFrom, ReplayStep, Replayed,
};
pub use self::dispatch_store::{CustomerRules, DispatchStore};
pub use self::do_not_call::DoNotCallBook;
pub use self::inspection::{DatabaseRoute, Inspection};
pub use self::intakes::{IntakeBook, SeenIncident};
use self::migrations::SchemaRight;
pub use self::migrations::{HEARING, INTAKES, LISTS, NOTICES, VERIFICATION};
pub use self::operators::OperatorBook;
pub use self::records::{BarredChange, Records};
pub use self::serve_lock::ServeLock;
pub use self::unavailable::unavailable;
pub use self::views::{
    BilledAccount, DayTotals, OperatorViews, OwedCallbacks, QueueOverview, SeenNode,
    WaitingAccount, WaitingReceiver, WantedOwed,
};
pub use crate::config::Database;

/// What readiness asks of a store.
#[async_trait]
pub trait WriteProbe: Send + Sync + fmt::Debug {
    /// Makes a small write durable, by the way that other writes go. Whoever asks sets the time limit, and may stop waiting at any moment. One
    /// write is under way at a time, so a database that hangs is not asked again and again.
    async fn ready(&self) -> Result<(), StoreError>;
}

#[async_trait]
pub trait Store:
    AccountBook
    + AudioCatalog
    + AuditTrail
    + ListBook
    + DoNotCallBook
    + IntakeBook
    + OperatorBook
    + CallQueue
    + CallbackQueue
    + Records
    + OperatorViews
    + BillBook
    + DispatchStore
    + WriteProbe
{
    /// From now on so many bytes of the disk are kept for calls that have begun.
    fn keep_reserve(&self, bytes: u64);
    /// From now on this node wakes others when it queues calls, and is woken by them: what is returned is notified then. Where one process
    /// has the database to itself, that never happens.
    fn wake_up(&self, supervisor: &Supervisor) -> Arc<Notify>;
    /// Finishes what has been handed in and lets go of the database.
    async fn close(&self);
}

#[derive(Debug, Clone, Error)]
pub enum StoreError {
    #[error("{0} exists already")]
    Exists(Wording),
    #[error("there is no {0}")]
    Missing(String),
    /// It cannot be done now; later perhaps.
    #[error("{0}")]
    Conflict(Wording),
    /// The database did not do it. Nothing was changed.
    #[error("the database failed: {0}")]
    Failed(String),
    /// What is left of the disk is for calls that have begun.
    #[error("there is no room on the disk")]
    NoRoom,
    /// The database gave no answer. It may have done it, or may still do it.
    #[error("it is not known whether the database did it: {0}")]
    Unknown(String),
}

impl StoreError {
    fn failed(error: impl fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// What was asked for may be there.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    fn account_exists(sid: &AccountSid) -> Self {
        Self::Exists(wording!("account {sid}", "账户 {sid} "))
    }

    fn no_account(sid: &AccountSid) -> Self {
        Self::Missing(format!("account {sid}"))
    }

    fn application_exists(id: &AppId) -> Self {
        Self::Exists(wording!("application {id}", "应用 {id} "))
    }

    fn no_application(id: &AppId) -> Self {
        Self::Missing(format!("application {id}"))
    }

    fn list_exists(list: &CallList) -> Self {
        let CallList { name, account, .. } = list;
        Self::Exists(wording!(
            "list {name} of account {account}",
            "账户 {account} 的列表 {name} "
        ))
    }

    fn no_list(account: &AccountSid, name: &ListName) -> Self {
        Self::Missing(format!("list {name} of account {account}"))
    }

    fn intake_exists(name: &IntakeName) -> Self {
        Self::Exists(wording!("intake {name}", "接入点 {name} "))
    }

    fn no_intake(name: &IntakeName) -> Self {
        Self::Missing(format!("intake {name}"))
    }

    fn operator_exists(name: &OperatorName) -> Self {
        Self::Exists(wording!("operator {name}", "操作员 {name} "))
    }

    fn no_operator(name: &OperatorName) -> Self {
        Self::Missing(format!("operator {name}"))
    }

    fn no_callback(key: &CallbackKey) -> Self {
        Self::Missing(format!("callback of call {key}"))
    }

    fn being_delivered(key: &CallbackKey) -> Self {
        Self::Conflict(wording!(
            "the callback of call {key} is being delivered right now; try again when that is over",
            "呼叫 {key} 的回调正在发送，请稍后重试"
        ))
    }
}

impl Database {
    /// Opens the database, bringing its schema up to date: only servers and `clarion migrate` may. What works for it in the background
    /// belongs to the supervisor.
    pub async fn open(&self, supervisor: &Supervisor) -> anyhow::Result<Arc<dyn Store>> {
        self.open_with(SchemaRight::Migrate, supervisor).await
    }

    /// Opens the database as it is. A schema that this program cannot work with is refused; an empty database gets one.
    pub async fn open_as_is(&self, supervisor: &Supervisor) -> anyhow::Result<Arc<dyn Store>> {
        self.open_with(SchemaRight::TakeAsIs, supervisor).await
    }

    async fn open_with(
        &self,
        right: SchemaRight,
        supervisor: &Supervisor,
    ) -> anyhow::Result<Arc<dyn Store>> {
        Ok(match self {
            Self::Sqlite(path) => {
                Arc::new(sqlite::SqliteStore::open(path, right, supervisor).await?)
            }
            Self::Postgres(config) => {
                Arc::new(postgres::PostgresStore::open(config, right, supervisor).await?)
            }
        })
    }
}
