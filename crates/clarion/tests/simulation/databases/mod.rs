//! The databases against the model: random verbs of several nodes, in the same order, and everything that can be seen of them. A sequence
//! that goes apart is shrunk to the shortest one that does. `MODEL_CASES` says how many sequences each database gets.
//!
//! Time decides nothing here: leases, pauses and terms last for no time or for an hour.

mod judge;
mod orders;
mod verbs;

use std::sync::Arc;

use clarion::domain::account::{
    Account, AccountLimits, AccountState, AppLimits, AppState, Application, Permissions,
};
use clarion::domain::claim::LeaseEnd;
use clarion::domain::lexicon::Lexicon;
use clarion::store::{Database, Store};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use supervisor::Supervisor;

use self::judge::Comparison;
use self::verbs::Action;
use crate::support::postgres;
use crate::{records, setting};

const ACCOUNT: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const APPS: [&str; 2] = [
    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb0",
    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb1",
];
const LONGEST: usize = 60;
const TABLES: [&str; 10] = [
    "attempts",
    "legs",
    "call_queue",
    "calls",
    "callee_calls",
    "nodes",
    "callbacks",
    "bill_lines",
    "request_keys",
    "start_tokens",
];

/// A database with an account and its applications, opened twice where several nodes may.
async fn open(database: &Database, times: usize) -> Vec<Arc<dyn Store>> {
    let mut stores = Vec::new();
    for _ in 0..times {
        stores.push(database.open(&Supervisor::new()).await.unwrap());
    }
    stores[0].add_account(account()).await.unwrap();
    for app in APPS {
        stores[0].add_application(application(app)).await.unwrap();
    }
    stores
}

fn account() -> Account {
    Account {
        sid: ACCOUNT.parse().unwrap(),
        name: "Test".to_owned(),
        auth_token: "t".repeat(32).parse().unwrap(),
        state: AccountState::Active,
        permissions: Permissions::default(),
        limits: AccountLimits::default(),
        balance: None,
        spending_limit: None,
        call_hours: None,
        display_numbers: vec![],
        allowed_networks: vec![],
        has_do_not_call: false,
        created_at: crate::world::epoch(),
        updated_at: crate::world::epoch(),
    }
}

fn application(id: &str) -> Application {
    Application {
        limits: AppLimits::default(),
        id: id.parse().unwrap(),
        account: ACCOUNT.parse().unwrap(),
        name: "Test".to_owned(),
        state: AppState::Active,
        callback_secret: None,
        created_at: crate::world::epoch(),
        bill_json_key: None,
        voice: None,
        lexicon: Lexicon::default(),
    }
}

async fn empty(database: &Database) {
    let statements: String = TABLES.map(|table| format!("DELETE FROM {table};")).concat();
    match database {
        Database::Sqlite(path) => {
            let db = rusqlite::Connection::open(path).unwrap();
            db.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
            db.execute_batch(&statements).unwrap();
        }
        Database::Postgres(config) => {
            let client = postgres::connect(config.url()).await;
            client.batch_execute(&statements).await.unwrap();
        }
    }
}

/// Both do the same, and then both are the same.
async fn compare(
    database: &Database,
    stores: &[Arc<dyn Store>],
    lease_end: LeaseEnd,
    actions: Vec<Action>,
) -> Result<(), TestCaseError> {
    empty(database).await;
    let mut comparison = Comparison::new(stores, lease_end);
    for action in actions {
        comparison.step(action).await?;
    }
    comparison.judge_attempts(&records::attempts(database).await)?;
    comparison
        .judge_state(&records::records(database).await)
        .await
}

fn try_sequences(database: &Database, lease_end: LeaseEnd, handles: usize, cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let stores = runtime.block_on(open(database, handles));
    let mut runner = TestRunner::new(ProptestConfig {
        cases: setting("MODEL_CASES").map_or(cases, |cases| u32::try_from(cases).unwrap()),
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    });
    let sequences = proptest::collection::vec(verbs::action(), 1..LONGEST);
    let outcome = runner.run(&sequences, |actions| {
        runtime.block_on(compare(database, &stores, lease_end, actions))
    });
    runtime.block_on(async {
        for store in &stores {
            store.close().await;
        }
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn sqlite_does_what_the_model_does() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::Sqlite(folder.path().join("clarion.db"));
    try_sequences(&database, LeaseEnd::Process, 1, 60);
}

#[test]
fn postgres_does_what_the_model_does() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(postgres::empty());
    try_sequences(&database, LeaseEnd::Time, 2, 60);
}
