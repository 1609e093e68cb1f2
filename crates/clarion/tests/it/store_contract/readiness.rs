//! Readiness is a durable write, and asking for it does no harm, whatever hangs.

use std::time::Duration;

use clarion::store::Database;

use super::with_account;
use crate::support::{self, PATIENCE};

contract! {
    being_ready_is_a_write_that_is_there_afterwards,
    a_database_that_hangs_is_asked_once_and_is_ready_when_it_goes_on,
}

async fn writes(database: &Database) -> i64 {
    let query = "SELECT writes FROM probe";
    match database {
        Database::Sqlite(path) => {
            let db = rusqlite::Connection::open(path).unwrap();
            db.query_row(query, [], |row| row.get(0)).unwrap()
        }
        Database::Postgres(config) => {
            let client = support::postgres::connect(config.url()).await;
            client.query_one(query, &[]).await.unwrap().get(0)
        }
    }
}

async fn being_ready_is_a_write_that_is_there_afterwards(database: Database) {
    let store = with_account(&database).await;
    for asked in 1..=3 {
        store.ready().await.unwrap();
        assert_eq!(writes(&database).await, asked);
    }
    support::execute(&database, "DELETE FROM probe").await;
    assert!(store.ready().await.is_err(), "nothing was written");
    store.close().await;
    assert!(store.ready().await.is_err(), "it is closed");
}

/// Somebody holds what the probe wants to write.
enum Holder {
    Sqlite(rusqlite::Connection),
    Postgres(tokio_postgres::Client),
}

impl Holder {
    async fn hold(database: &Database) -> Self {
        match database {
            Database::Sqlite(path) => {
                let db = rusqlite::Connection::open(path).unwrap();
                db.execute_batch("BEGIN IMMEDIATE").unwrap();
                Self::Sqlite(db)
            }
            Database::Postgres(config) => {
                let client = support::postgres::connect(config.url()).await;
                let lock = "BEGIN; LOCK TABLE probe IN ACCESS EXCLUSIVE MODE";
                client.batch_execute(lock).await.unwrap();
                Self::Postgres(client)
            }
        }
    }

    async fn let_go(self) {
        match self {
            Self::Sqlite(db) => db.execute_batch("ROLLBACK").unwrap(),
            Self::Postgres(client) => client.batch_execute("ROLLBACK").await.unwrap(),
        }
    }
}

async fn a_database_that_hangs_is_asked_once_and_is_ready_when_it_goes_on(database: Database) {
    let store = with_account(&database).await;
    store.ready().await.unwrap();
    let holder = Holder::hold(&database).await;
    // Whoever asks has no patience, and comes again.
    for _ in 0..4 {
        let asked = tokio::time::timeout(Duration::from_millis(200), store.ready()).await;
        assert!(asked.is_err(), "{asked:?}");
    }
    holder.let_go().await;
    let asked = tokio::time::timeout(PATIENCE, store.ready()).await;
    asked.expect("it goes on").unwrap();
    assert_eq!(
        writes(&database).await,
        3,
        "the first, the one that hung, and the last"
    );
}
