//! A database of version 0.1.0, as a killed process left it, is brought up to date by the next start: every call in it ends once, is reported
//! and billed. The fixtures were made by that version itself, with calls, callbacks and bills in every state; `user_data` says which is which.

use std::collections::BTreeMap;

use clarion::domain::money::Money;
use clarion::domain::prompt::AudioOwner;
use clarion::store::{Database, Store};
use supervisor::Supervisor;

use crate::support::child::Installation;
use crate::support::receiver::{Receiver, ok};
use crate::support::{SID, all_is_over, app_id, eventually_within, execute, postgres};

const ON_SQLITE: &str = include_str!("../fixtures/first_version/sqlite.sql");
const ON_POSTGRES: &str = include_str!("../fixtures/first_version/postgres.sql");
/// Where its callbacks went.
const RECEIVER: &str = "127.0.0.1:9";
const PREPAID: &str = "00000000000000000000000000000001";
/// Nothing is forgotten, however old the fixtures are by now.
const SETTINGS: &str = "[calls]\nretention_days = 0\n[bills]\nretention_days = 36500\n[callbacks]\nallowed_networks = [\"127.0.0.0/8\"]\n[dispatch]\nlease_seconds = 3\nlead_in_ms = 100\n\
    [media]\nbind = \"127.0.0.1\"\n[[trunk]]\nname = \"loopback\"\nloopback = true\nchannels = 50\ncalls_per_second = 50\nprefixes = [\"\"]\n";
const ENDS_WITHIN: std::time::Duration = std::time::Duration::from_secs(120);

/// As if all of it had been long ago, whatever the machine's clock says. One of the calls has expired since.
const LONG_AGO: &str = "UPDATE call_queue SET due_at = 1 WHERE due_at < 4000000000000; \
    UPDATE call_queue SET expires_at = 2 WHERE call_sid IN (SELECT call_sid FROM calls WHERE user_data LIKE 'doomed %'); \
    UPDATE call_queue SET lease_until = 1 WHERE lease_until IS NOT NULL; \
    UPDATE callbacks SET lease_until = 1 WHERE lease_until IS NOT NULL; \
    UPDATE callbacks SET due_at = 1 WHERE due_at IS NOT NULL; \
    UPDATE callee_calls SET claimed_at = 1; \
    UPDATE nodes SET steady_since = 1, heartbeat_at = 1;";

/// What becomes of each call. Those above the line had ended before.
const OUTCOMES: [(&str, &str); 29] = [
    ("talked", "talked"),
    ("talked2", "talked"),
    ("file", "talked"),
    ("busy", "busy"),
    ("none", "not-answered"),
    ("declined", "declined"),
    ("no-route", "no-route"),
    ("trunk-failure", "trunk-failure"),
    ("prompt-failed", "prompt-failed"),
    ("invalid", "invalid-number"),
    ("ended-cancelled", "cancelled"),
    ("ended-interrupted", "interrupted"),
    ("ended-interrupted-answered", "interrupted"),
    ("ended-expired", "expired"),
    ("callback-delivering", "talked"),
    ("callback-waiting", "talked"),
    // ---
    ("queued", "talked"),
    ("queued-busy", "busy"),
    ("queued-prepaid", "talked"),
    ("queued-behind", "talked"),
    ("later", "talked"),
    ("claimed", "talked"),
    ("dialling", "interrupted"),
    ("ringing", "interrupted"),
    ("answered", "interrupted"),
    ("prepaid", "interrupted"),
    ("doomed", "expired"),
    ("cancelled", "cancelled"),
    ("future", "cancelled"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sqlite_file_of_the_first_version_is_brought_up_to_date() {
    upgrade(&Installation::empty_with("", SETTINGS), ON_SQLITE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgresql_database_of_the_first_version_is_brought_up_to_date() {
    let url = postgres::empty_database().await;
    upgrade(&Installation::empty_with(&url, SETTINGS), ON_POSTGRES).await;
}

async fn upgrade(installation: &Installation, dump: &str) {
    let receiver = Receiver::start(vec![ok()]).await;
    let database = &installation.database;
    execute(
        database,
        &dump.replace(RECEIVER, &receiver.address.to_string()),
    )
    .await;
    execute(database, LONG_AGO).await;
    assert_eq!(database.inspect().await.unwrap().version, 1);

    let _server = installation.start().await;
    let found = database.inspect().await.unwrap();
    assert_eq!(found.version, found.wanted);
    let sids = call_sids(database).await;
    // It had been told to dial nothing, and one call is due in many years.
    says(installation, &["call", "resume"]).await;
    says(installation, &["call", "cancel", &sids["future"]]).await;
    let store = database.open(&Supervisor::new()).await.unwrap();
    eventually_within(ENDS_WITHIN, "everything has come to its end", async || {
        all_is_over(&*store).await
    })
    .await;
    every_call_has_ended_once(installation, &sids).await;
    every_report_was_delivered(database, &receiver).await;
    the_rest_is_as_it_was(&*store).await;
    store.close().await;
}

/// The calls by what their clients called them.
async fn call_sids(database: &Database) -> BTreeMap<String, String> {
    let rows = rows(database, "SELECT user_data, call_sid FROM calls").await;
    let named = rows.into_iter().map(|row| {
        let name = row[0].split(' ').next().unwrap().to_owned();
        (name, row[1].clone())
    });
    named.collect()
}

async fn every_call_has_ended_once(installation: &Installation, sids: &BTreeMap<String, String>) {
    let query = "SELECT calls.call_sid, coalesce(max(bill_lines.outcome), 'none'), CAST(count(order_id) AS TEXT) \
         FROM calls LEFT JOIN bill_lines ON bill_lines.call_sid = calls.call_sid GROUP BY calls.call_sid";
    let rows = rows(&installation.database, query).await;
    let billed: BTreeMap<_, _> = rows.iter().map(|row| (&row[0], &row[1..])).collect();
    assert_eq!((sids.len(), billed.len()), (OUTCOMES.len(), OUTCOMES.len()));
    for (name, outcome) in OUTCOMES {
        let sid = &sids[name];
        assert_eq!(billed[sid], [outcome, "1"], "{name}");
        let shown = says(installation, &["call", "show", sid]).await;
        assert!(
            shown.contains(outcome) && shown.contains(sid),
            "{name}: {shown}"
        );
    }
}

/// Each that was asked for is there once, and all but the one that had been given up have been delivered.
async fn every_report_was_delivered(database: &Database, receiver: &Receiver) {
    let query = "SELECT CAST(count(*) AS TEXT), CAST(count(DISTINCT calls.call_sid) AS TEXT) FROM calls \
         JOIN callbacks ON callbacks.call_sid = calls.call_sid WHERE resp_url IS NOT NULL";
    assert_eq!(rows(database, query).await, [["27", "27"]]);
    let query = "SELECT calls.user_data FROM callbacks JOIN calls ON calls.call_sid = callbacks.call_sid WHERE callbacks.state <> 2";
    let undelivered = rows(database, query).await;
    assert_eq!(undelivered.len(), 1, "{undelivered:?}");
    assert!(undelivered[0][0].starts_with("busy "), "{undelivered:?}");
    let received = receiver.received();
    for name in [
        "callback-delivering",
        "callback-waiting",
        "queued",
        "claimed",
        "answered",
    ] {
        let reports = received
            .iter()
            .filter(|one| one.body.contains(&format!("{name} ")));
        assert_eq!(reports.count(), 1, "{name}");
    }
}

async fn the_rest_is_as_it_was(store: &dyn Store) {
    let own = AudioOwner::Application(app_id());
    for (owner, name) in [(own, "w.wav"), (AudioOwner::Platform, "common.wav")] {
        let files = store.audio_files_of(&owner).await.unwrap();
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].name.as_str(), name);
    }
    let closed = store.closed_days().await.unwrap();
    let days: Vec<_> = closed.iter().map(|closed| closed.day.to_string()).collect();
    assert!(days.contains(&"2026-11-14".to_owned()), "{days:?}");
    assert_eq!(store.barred_numbers().await.unwrap(), ["8613999999999"]);
    assert!(
        store
            .account(&SID.parse().unwrap())
            .await
            .unwrap()
            .is_some()
    );
    let funds = store.funds(&PREPAID.parse().unwrap()).await.unwrap();
    assert_eq!(
        funds.unwrap().reserved,
        Money::default(),
        "nothing is under way"
    );
}

async fn says(installation: &Installation, arguments: &[&str]) -> String {
    let output = installation.clarion(arguments).await;
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Columns of text, read without any of our own code.
async fn rows(database: &Database, query: &str) -> Vec<Vec<String>> {
    match database {
        Database::Sqlite(path) => {
            let db = rusqlite::Connection::open(path).unwrap();
            let mut statement = db.prepare(query).unwrap();
            let columns = statement.column_count();
            let read =
                |row: &rusqlite::Row<'_>| (0..columns).map(|column| row.get(column)).collect();
            let rows = statement.query_map([], read).unwrap();
            rows.map(Result::unwrap).collect()
        }
        Database::Postgres(config) => {
            let rows = postgres::connect(config.url())
                .await
                .query(query, &[])
                .await;
            let read =
                |row: &tokio_postgres::Row| (0..row.len()).map(|column| row.get(column)).collect();
            rows.unwrap().iter().map(read).collect()
        }
    }
}
