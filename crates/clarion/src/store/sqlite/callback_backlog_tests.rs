//! What a look for callbacks and a claim cost does not depend on how much waits. The rounds of SQLite's machine are counted, so no time is
//! measured.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::SignedDuration;
use rusqlite::Connection;

use super::{callbacks, schema};
use crate::domain::callback::ReceiverShare;
use crate::store::migrations::SchemaRight;
use crate::store::{CallbackClaim, ReceiverLook};

const NOW: i64 = 1_800_000_000_000;
const GREEDY: &str = "11111111111111111111111111111111";
const MODEST: &str = "22222222222222222222222222222222";
/// Receivers that a look sees.
const LOOKED_AT: u32 = 10;

fn fill(db: &Connection, app: &str, receiver: &str, due: i64, count: u32) {
    let fill = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) \
         INSERT INTO callbacks (call_sid, app_id, webhook_id, host, url, body, state, owed_at, due_at) \
         SELECT printf('%s%016x', substr('{app}', 1, 16), n), '{app}', 'w', {receiver}, 'http://h/', 'b', 0, 0, {NOW} + {due} FROM numbers"
    );
    db.execute_batch(&fill).unwrap();
}

/// How many rounds a look and a claim take beside so many callbacks of another account.
fn rounds(receiver: &str, due: i64, count: u32) -> (u64, u64) {
    let mut db = Connection::open_in_memory().unwrap();
    super::prepare_once(&db).unwrap();
    schema::migrate(&mut db, SchemaRight::Migrate).unwrap();
    fill(&db, GREEDY, receiver, due, count);
    fill(&db, MODEST, "'modest:80'", -1, 1);
    let counter = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&counter);
    let count = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    };
    db.progress_handler(1, Some(count)).unwrap();
    let since = || counter.swap(0, Ordering::Relaxed);
    let look = ReceiverLook {
        limit: LOOKED_AT,
        after: HashMap::new(),
        full: Vec::new(),
    };
    let found = callbacks::due_receivers(&db, &look, NOW).unwrap();
    let looked = since();
    let modest = found
        .receivers
        .iter()
        .filter(|due| due.app.as_str() == MODEST);
    assert_eq!(modest.count(), 1, "it is found");
    let shares = found.receivers.into_iter().map(|due| ReceiverShare {
        app: due.app,
        receiver: due.receiver,
        limit: 2,
    });
    let claim = CallbackClaim {
        node: "n".to_owned(),
        lease: SignedDuration::ZERO,
        shares: shares.collect(),
    };
    callbacks::take(&db, &claim, NOW).unwrap();
    (looked, since())
}

#[test]
fn no_look_and_no_claim_costs_more_while_more_callbacks_wait() {
    for (name, receiver, due) in [
        ("for one receiver", "'h:80'", -1000),
        ("for as many receivers", "printf('h%05d:80', n)", -1000),
        ("that are due later", "printf('h%05d:80', n)", 60_000),
    ] {
        let (few, many) = (rounds(receiver, due, 20), rounds(receiver, due, 20_000));
        assert_eq!(few, many, "callbacks {name}");
        assert!(few.0 > 0 && few.1 > 0, "{few:?}");
    }
}
