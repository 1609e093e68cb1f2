//! What every store promises about whose callbacks are found: some of every account, whatever waits of one.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use clarion::domain::callback::{
    ClaimedCallback, DeliveryPlaces, DueReceiver, PlaceLimits, ReceiverShare, shares,
};
use clarion::store::{CallbackClaim, Database, ReceiverLook, Store};
use jiff::SignedDuration;

use super::with_account;
use crate::calls::stage::register;
use crate::support::owed::{look, now, owe, owed_to};
use crate::support::{self, APP, SID, eventually, postgres as cluster};

/// Behind eight digits it makes a callSid.
const PADDING: &str = "ffffffffffffffffffffffff";

contract! {
    a_single_callback_is_claimed_beside_a_hundred_thousand_of_another_account,
    looks_go_on_behind_the_last_receiver_until_all_were_seen,
    receivers_of_a_full_account_and_of_later_callbacks_are_not_looked_at,
}

/// Callbacks of the first account that wait: for which receiver, and since when (milliseconds from now).
async fn fill(database: &Database, count: u32, receiver: &str, due: i64) {
    let numbers = match database {
        Database::Sqlite(_) => format!(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})"
        ),
        Database::Postgres(_) => {
            format!("WITH numbers (n) AS (SELECT generate_series(1, {count}))")
        }
    };
    // One that was owed properly shows what now is.
    let fill = format!(
        "{numbers} INSERT INTO callbacks (call_sid, app_id, webhook_id, host, url, body, state, owed_at, due_at) \
         SELECT (10000000 + n) || '{PADDING}', '{APP}', 'w', {receiver}, 'http://h/', 'b', 0, 0, \
           (SELECT min(due_at) FROM callbacks) + {due} FROM numbers"
    );
    support::execute(database, &fill).await;
}

/// An account with one callback that is due, beside the first account.
async fn with_a_modest_account(database: &Database) -> (Arc<dyn Store>, String) {
    let store = with_account(database).await;
    let modest = register(&*store, 7, |_| {}).await;
    let mut owed = owed_to("http://modest/", 1, now());
    owed.app = modest.parse().unwrap();
    owe(database, vec![owed]).await;
    (store, modest)
}

async fn a_single_callback_is_claimed_beside_a_hundred_thousand_of_another_account(
    database: Database,
) {
    let (store, modest) = with_a_modest_account(&database).await;
    fill(&database, 100_000, "'h' || n || ':80'", -60_000).await;
    let few = ReceiverLook {
        limit: 10,
        ..look()
    };
    let found = store.due_receivers(few).await.unwrap();
    assert_eq!(found.receivers.len(), 11, "ten, and the one of the other");
    let mut places = DeliveryPlaces::new(PlaceLimits {
        per_account: 64,
        per_receiver: 32,
        per_address: 32,
    });
    let taken = places.take(found.receivers, 2, Instant::now());
    let claim = CallbackClaim {
        node: "n".to_owned(),
        lease: SignedDuration::from_secs(60),
        shares: shares(&taken),
    };
    let claimed = store.claim_callbacks(claim).await.unwrap().unwrap();
    let accounts: HashSet<_> = claimed.iter().map(|one| one.account.as_str()).collect();
    assert_eq!(accounts, HashSet::from([SID, &modest]));
}

async fn looks_go_on_behind_the_last_receiver_until_all_were_seen(database: Database) {
    let (store, _) = with_a_modest_account(&database).await;
    fill(&database, 25, "'h' || n || ':80'", -1000).await;
    let mut look = ReceiverLook {
        limit: 10,
        ..look()
    };
    let (mut seen, mut looks) = (HashSet::new(), 0);
    loop {
        let found = store.due_receivers(look.clone()).await.unwrap();
        assert!(found.receivers.len() <= 11);
        seen.extend(found.receivers.into_iter().map(|due| due.receiver));
        looks += 1;
        look.after = found.after;
        if look.after.is_empty() {
            break;
        }
    }
    assert_eq!((seen.len(), looks), (26, 3));
}

async fn receivers_of_a_full_account_and_of_later_callbacks_are_not_looked_at(database: Database) {
    let (store, modest) = with_a_modest_account(&database).await;
    fill(&database, 25, "'h' || n || ':80'", -1000).await;
    let full = ReceiverLook {
        full: vec![SID.parse().unwrap()],
        ..look()
    };
    let found = store.due_receivers(full).await.unwrap();
    let is_modest = |due: &DueReceiver| due.account.as_str() == modest;
    assert!(found.receivers.len() == 1 && found.receivers.iter().all(is_modest));
    let later = format!("UPDATE callbacks SET due_at = due_at + 60000 WHERE app_id = '{APP}'");
    support::execute(&database, &later).await;
    let found = store.due_receivers(look()).await.unwrap();
    assert_eq!(found.receivers.len(), 1);
    let wait = found.next_due.unwrap();
    assert!(
        wait > SignedDuration::ZERO && wait < SignedDuration::from_secs(60),
        "{wait}"
    );
}

async fn look_and_claim(store: &dyn Store) -> Vec<ClaimedCallback> {
    let few = ReceiverLook {
        limit: 10,
        ..look()
    };
    let found = store.due_receivers(few).await.unwrap();
    let taken = found.receivers.into_iter().map(|due| ReceiverShare {
        app: due.app,
        receiver: due.receiver,
        limit: 1,
    });
    let claim = CallbackClaim {
        node: "n".to_owned(),
        lease: SignedDuration::from_secs(60),
        shares: taken.take(3).collect(),
    };
    store.claim_callbacks(claim).await.unwrap().unwrap()
}

/// On PostgreSQL, the rows that looks and claims read are counted. SQLite's part is `store/sqlite/callback_backlog_tests.rs`.
#[tokio::test]
async fn no_look_and_no_claim_reads_more_while_more_callbacks_wait() {
    const TIMES: i64 = 10;
    for (name, receiver, due) in [
        ("for one receiver", "'h:80'", -1000),
        ("for as many receivers", "'h' || n || ':80'", -1000),
        ("that are due later", "'h:80'", 3_600_000),
    ] {
        let url = cluster::empty_database().await;
        let database = Database::parse(&url).unwrap();
        let (store, _) = with_a_modest_account(&database).await;
        // By now every statement has the plan that it keeps, made while hardly anything waited.
        for _ in 0..TIMES {
            let claimed = look_and_claim(&*store).await;
            assert_eq!(claimed.len(), 1);
            let leases = claimed.into_iter().map(|callback| callback.lease);
            store.release_callbacks(leases.collect()).await.unwrap();
        }
        support::execute(
            &database,
            "ALTER TABLE callbacks SET (autovacuum_enabled = off)",
        )
        .await;
        fill(&database, 20_000, receiver, due).await;
        let db = cluster::connect(&url).await;
        db.batch_execute("SELECT pg_stat_reset()").await.unwrap();
        for _ in 0..TIMES {
            look_and_claim(&*store).await;
        }
        store.close().await;
        let others = "SELECT count(*) FROM pg_stat_activity \
          WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let number = async |sql: &str| db.query_one(sql, &[]).await.unwrap().get::<_, i64>(0);
        eventually("the connections are closed", async || {
            number(others).await == 0
        })
        .await;
        let read = "SELECT seq_tup_read + (SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'callbacks') \
          FROM pg_stat_user_tables WHERE relname = 'callbacks'";
        let each = number(read).await / TIMES;
        assert!(each < 200, "20,000 callbacks {name}: {each} rows are read");
    }
}
