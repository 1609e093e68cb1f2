//! The threads and tasks of a store belong to its supervisor.

use std::path::Path;
use std::sync::Arc;

use clarion::domain::call::NewCall;
use clarion::store::{Database, Store};
use supervisor::Supervisor;

use super::call;
use super::order;
use crate::support::{self, account, application, eventually, postgres};

async fn open_with(database: &Database, supervisor: &Supervisor) -> Arc<dyn Store> {
    let store = database.open(supervisor).await.unwrap();
    store.add_account(account()).await.unwrap();
    store.add_application(application()).await.unwrap();
    store
}

fn names(supervisor: &Supervisor) -> Vec<String> {
    let tasks = supervisor.tasks().into_iter();
    tasks.map(|task| task.name).collect()
}

/// The one that commits panics outside a change: nobody is promised anything any more, and the process is told to end.
async fn a_committer_that_panics_is_a_failure(database: Database, name: &str) {
    let supervisor = Supervisor::new();
    let store = open_with(&database, &supervisor).await;
    store.accept_call(order(call(1))).await.unwrap();
    assert!(supervisor.request_panic(name), "{:?}", names(&supervisor));
    let failure = tokio::time::timeout(support::PATIENCE, supervisor.failed());
    assert_eq!(failure.await.unwrap().task, name);
    assert_eq!(supervisor.down(), [name]);
    assert!(store.accept_call(order(call(2))).await.is_err());
}

#[tokio::test]
async fn a_writer_that_panics_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::Sqlite(folder.path().join("clarion.db"));
    a_committer_that_panics_is_a_failure(database, "store-writer").await;
}

#[tokio::test]
async fn an_accepter_that_panics_is_a_failure() {
    let database = postgres::empty().await;
    a_committer_that_panics_is_a_failure(database, "store-accepter").await;
}

#[tokio::test]
async fn a_group_commit_that_panics_is_a_failure() {
    for name in ["store-progress", "store-ends"] {
        let database = postgres::empty().await;
        let supervisor = Supervisor::new();
        let _store = open_with(&database, &supervisor).await;
        assert!(supervisor.request_panic(name), "{:?}", names(&supervisor));
        let failure = tokio::time::timeout(support::PATIENCE, supervisor.failed());
        assert_eq!(failure.await.unwrap().task, name);
    }
}

#[tokio::test]
async fn a_store_that_is_closed_or_dropped_leaves_no_task_and_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let file = Database::Sqlite(folder.path().join("clarion.db"));
    let shared = postgres::empty().await;
    for database in [file, shared] {
        let supervisor = Supervisor::new();
        for closed in [true, false] {
            let store = database.open(&supervisor).await.unwrap();
            assert!(!names(&supervisor).is_empty());
            if closed {
                store.close().await;
            }
            drop(store);
            eventually("no task is left", async || supervisor.tasks().is_empty()).await;
        }
    }
}

/// How often the log was started anew: it stands in its header.
fn log_number(database: &Path) -> u32 {
    let log = std::fs::read(database.with_extension("db-wal")).unwrap_or_default();
    let number = log.get(12..16).map(|bytes| bytes.try_into().unwrap());
    number.map_or(0, u32::from_be_bytes)
}

#[tokio::test]
async fn a_checkpoint_thread_that_panics_is_started_anew_and_the_log_stays_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clarion.db");
    let supervisor = Supervisor::new();
    let store = open_with(&Database::Sqlite(path.clone()), &supervisor).await;
    assert!(supervisor.request_panic("store-checkpoint"));
    eventually("it is down", async || {
        supervisor.down() == ["store-checkpoint"]
    })
    .await;
    store.accept_call(order(call(1))).await.unwrap();
    eventually("it is up again", async || supervisor.down().is_empty()).await;
    // More than the log may hold before it is started anew: 8 MiB.
    let before = log_number(&path);
    for number in 2..12 {
        let long = NewCall {
            user_data: Some("x".repeat(2 << 20)),
            events: None,
            ..call(number)
        };
        store.accept_call(order(long)).await.unwrap();
    }
    eventually("the log is started anew", async || {
        store.ready().await.unwrap();
        log_number(&path) > before
    })
    .await;
}
