//! A pooler before PostgreSQL: one that gives sessions serves us, one that gives transactions is refused with a sentence.

use clarion::store::Database;
use supervisor::Supervisor;

use crate::support::child::Installation;
use crate::support::cluster::{Daemon, pgbouncer};
use crate::support::{TestServer, call_sid, postgres};

const SENTENCE: &str = "a connection pooler in transaction mode (such as PgBouncer with pool_mode = transaction) stands before PostgreSQL";

fn through(pooler: &Daemon, database: &str) -> String {
    let mut url = url::Url::parse(database).unwrap();
    url.set_port(Some(pooler.port)).unwrap();
    url.to_string()
}

#[tokio::test]
async fn a_pooler_in_transaction_mode_is_refused_at_the_start_and_by_the_check() {
    let pooler = pgbouncer("transaction").await;
    let database = postgres::empty_database().await;
    let url = through(&pooler, &database);
    let opened = Database::parse(&url).unwrap();
    let refused = opened.open(&Supervisor::new()).await.unwrap_err();
    assert!(format!("{refused:#}").contains(SENTENCE), "{refused:#}");
    let installation = Installation::empty(&url);
    for command in ["check", "serve"] {
        let said = installation.clarion(&[command]).await;
        assert!(!said.status.success());
        let text = [said.stdout, said.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(SENTENCE), "{command}: {text}");
    }
}

#[tokio::test]
async fn a_pooler_in_statement_mode_is_refused() {
    let pooler = pgbouncer("statement").await;
    let url = through(&pooler, &postgres::empty_database().await);
    let opened = Database::parse(&url).unwrap();
    let refused = opened.open(&Supervisor::new()).await.unwrap_err();
    assert!(format!("{refused:#}").contains(SENTENCE), "{refused:#}");
}

/// Servers that are handed out in turn are not shared, but change.
#[tokio::test]
async fn a_pooler_that_hands_out_its_servers_in_turn_is_refused() {
    let pooler = pgbouncer("transaction\nserver_round_robin = 1").await;
    let database = postgres::empty_database().await;
    let url = through(&pooler, &database);
    // It has more servers than we open sessions.
    let mut clients = Vec::new();
    for _ in 0..12 {
        let client = postgres::connect(&url).await;
        client.batch_execute("BEGIN; SELECT 1").await.unwrap();
        clients.push(client);
    }
    for client in &clients {
        client.batch_execute("COMMIT").await.unwrap();
    }
    let opened = Database::parse(&url).unwrap();
    let refused = opened.open(&Supervisor::new()).await.unwrap_err();
    assert!(format!("{refused:#}").contains(SENTENCE), "{refused:#}");
}

#[tokio::test]
async fn a_pooler_in_session_mode_serves() {
    let pooler = pgbouncer("session").await;
    let url = through(&pooler, &postgres::empty_database().await);
    let server = TestServer::start_with(&format!("database = {url:?}\n")).await;
    for _ in 0..5 {
        call_sid(
            &server
                .call_json("\"to\":\"13800000000\",\"mediaTxt\":\"x\"")
                .await,
        );
    }
    server.store.ready().await.unwrap();
}
