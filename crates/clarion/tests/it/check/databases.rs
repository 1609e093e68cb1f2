//! Databases: empty, ours, of a newer program, of no program, and not there.

use clarion::store::Database;

use super::Site;
use crate::support::{free_port, postgres};

#[tokio::test]
async fn a_postgresql_is_looked_into_and_not_changed() {
    let url = postgres::empty_database().await;
    let site = Site::new(&format!("database = {url:?}\n"));
    let said = site.check().await;
    said.has_no_problem();
    said.holds("ok", "database", "is empty; the first start makes schema");
    said.holds("ok", "clock", "agrees with the database");
    let client = postgres::connect(&url).await;
    let tables = client.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'", &[]);
    assert!(
        tables.await.unwrap().is_empty(),
        "the check has made tables"
    );

    site.with_account(&Database::parse(&url).unwrap()).await;
    let said = site.check().await;
    said.holds("ok", "database", "and can be written");
    said.holds("ok", "accounts", "1 accounts, 1 applications");

    let newer = "INSERT INTO schema_migrations (version) VALUES (999)";
    client.batch_execute(newer).await.unwrap();
    let said = site.check().await;
    said.holds(
        "ok",
        "database",
        "has schema 999, which is newer than this program",
    );
    let strange = "UPDATE schema_info SET oldest_program = 999";
    client.batch_execute(strange).await.unwrap();
    site.check()
        .await
        .problem("database", "has schema 999, this program knows");

    let mut nowhere = url::Url::parse(&url).unwrap();
    nowhere.set_port(Some(free_port())).unwrap();
    let said = Site::new(&format!("database = \"{nowhere}\"\n"))
        .check()
        .await;
    said.problem("database", "cannot be used");
}

#[tokio::test]
async fn a_server_on_a_postgresql_is_found_by_its_port() {
    let url = postgres::empty_database().await;
    let settings = format!(
        "database = {url:?}\n[http]\nlisten = [\"127.0.0.1:{}\"]\n[console]\nlisten = []\n[log]\nfilter = \"error\"\n",
        free_port()
    );
    let site = Site::new(&settings);
    let server = site.serve().await;
    let said = site.check().await;
    said.has_no_problem();
    let process = format!("is running (process {})", server.id().unwrap());
    said.holds("ok", "server", &process);
    drop(server);
}

#[tokio::test]
async fn a_database_file_of_a_newer_program_or_of_no_program_is_refused() {
    let site = Site::new("");
    let database = Database::Sqlite(site.data().join("clarion.db"));
    site.with_account(&database).await;
    let said = site.check().await;
    said.has_no_problem();
    said.holds("ok", "accounts", "1 accounts, 1 applications");
    let db = rusqlite::Connection::open(site.data().join("clarion.db")).unwrap();
    db.pragma_update(None, "user_version", 999).unwrap();
    db.execute("UPDATE schema_info SET oldest_program = 999", [])
        .unwrap();
    drop(db);
    site.check().await.problem("database", "has schema 999");
    std::fs::write(
        site.data().join("clarion.db"),
        "this is not a database at all, but a text",
    )
    .unwrap();
    site.check().await.problem("database", "cannot be used");
}
