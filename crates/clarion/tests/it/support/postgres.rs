//! A PostgreSQL database for one test, in the cluster that `scripts/with-postgres` has started.

use clarion::store::Database;
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// An empty database, for the store.
pub async fn empty() -> Database {
    Database::parse(&empty_database().await).unwrap()
}

/// Makes an empty database and returns its address. It goes away with the cluster.
pub async fn empty_database() -> String {
    let cluster = std::env::var("TEST_POSTGRES_URL").expect(
        "these tests need a PostgreSQL cluster: run `make test`, or `scripts/with-postgres cargo test`",
    );
    let name = format!(
        "test_{}_{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    connect(&cluster)
        .await
        .batch_execute(&format!("CREATE DATABASE {name}"))
        .await
        .unwrap();
    let mut url = url::Url::parse(&cluster).unwrap();
    url.set_path(&name);
    url.to_string()
}

pub async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}
