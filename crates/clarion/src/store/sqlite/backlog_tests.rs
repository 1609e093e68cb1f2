//! What a verb of the queue costs does not depend on how much waits. The rounds of SQLite's machine are counted, so no time is measured.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, StatementStatus};

use super::{calls, claiming, ending, prepare_once, schema};
use crate::domain::call::{CallKind, NewCall, Priority, Queueing};
use crate::domain::claim::{CalleeCaps, Claim, ClaimedCall, LaneShare, NodeId};
use crate::domain::ended_call::EndedCall;
use crate::domain::outcome::Outcome;
use crate::domain::phone_number::PhoneNumber;
use crate::domain::prompt::Prompt;
use crate::domain::request_key::AcceptedCall;
use crate::domain::route::RouteKey;
use crate::store::migrations::SchemaRight;

const NOW: i64 = 1_800_000_000_000;
const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
const APP: &str = "fedcba9876543210fedcba9876543210";
const CUSTOMER: &str = "INSERT INTO accounts (sid, name, auth_token, state, bill_download, custom_display_number, created_at) \
    VALUES ('0123456789abcdef0123456789abcdef', 'a', 't', 'active', 1, 1, 0); \
  INSERT INTO applications (id, account_sid, name, state, created_at) \
    VALUES ('fedcba9876543210fedcba9876543210', '0123456789abcdef0123456789abcdef', 'a', 'active', 0)";
/// Calls that wait: their callee, when they are due (from now), when they expire, and whether they are parked.
const QUEUES: [(&str, &str); 3] = [
    ("that are due", "'861' || n, -1000, 3600000, 0"),
    ("that are due later", "'861' || n, 60000, 3600000, 0"),
    ("to one callee", "'86999', -1000, 3600000, 1"),
];

fn fill(db: &Connection, queue: &str, calls: u32) {
    let fill = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {calls}), \
         waiting (n, callee, due, expires, parked) AS (SELECT n, {queue} FROM numbers) \
         INSERT INTO call_queue (call_sid, account_sid, app_id, callee, route, priority, due_at, expires_at, state, parked) \
         SELECT printf('%032x', n), '{ACCOUNT}', '{APP}', callee, '', 5, {NOW} + due, {NOW} + expires, 0, parked FROM waiting; \
         INSERT OR IGNORE INTO calls (call_sid, account_sid, app_id, accepted_at, called, number, prompt) \
         SELECT call_sid, account_sid, app_id, {NOW}, callee, callee, '{{\"plays\":1}}' FROM call_queue"
    );
    db.execute_batch(&fill).unwrap();
}

fn order(sid: u128, callee: &str) -> AcceptedCall {
    AcceptedCall {
        event: None,
        call: NewCall {
            notice: None,
            kind: CallKind::Notification,
            sid: format!("{sid:032x}").parse().unwrap(),
            account: ACCOUNT.parse().unwrap(),
            app: APP.parse().unwrap(),
            accepted_at: Timestamp::from_millisecond(NOW).unwrap(),
            called: callee.to_owned(),
            number: PhoneNumber::from_stored(callee.to_owned(), None),
            callee: callee.to_owned(),
            caller: None,
            prompt: Prompt {
                speech: None,
                files: Vec::new(),
                code: None,
                plays: 1,
            },
            max_talk: None,
            resp_url: None,
            user_data: None,
            events: None,
        },
        queueing: Queueing {
            route: RouteKey::default(),
            priority: Priority::USUAL,
            pause: SignedDuration::from_secs(-3600),
            valid_for: SignedDuration::from_secs(3600),
            patience: None,
        },
        request: None,
    }
}

fn claim(db: &Connection, node: &NodeId) -> Vec<ClaimedCall> {
    let lanes = claiming::lanes(db).unwrap();
    let shares = lanes.into_iter().map(|(lane, _)| LaneShare {
        account: lane.account,
        lane: lane.lane,
        calls: 1,
    });
    let claim = Claim {
        node: node.clone(),
        shares: shares.collect(),
        limits: HashMap::new(),
        caps: CalleeCaps::default(),
    };
    claiming::claim(db, &claim, NOW).unwrap()
}

fn ended(claimed: ClaimedCall) -> EndedCall {
    EndedCall {
        choice: None,
        if_called_off: None,
        voice: None,
        events: Vec::new(),
        notice: None,
        claimed,
        outcome: Outcome::Busy,
        trunk: None,
        tries: 1,
        dialled_at: None,
        rang_at: None,
        answered_at: None,
        ended_at: Timestamp::from_millisecond(NOW).unwrap(),
        sip_code: None,
        reason: None,
        legs: Vec::new(),
        bill_day: "2027-01-15".parse().unwrap(),
        callback: None,
    }
}

fn database() -> Connection {
    let mut db = Connection::open_in_memory().unwrap();
    prepare_once(&db).unwrap();
    schema::migrate(&mut db, SchemaRight::Migrate).unwrap();
    db.execute_batch(CUSTOMER).unwrap();
    db
}

/// How many rounds each verb takes while so many calls wait.
fn rounds(queue: &str, calls: u32) -> Vec<(&'static str, u64)> {
    let mut db = database();
    let node = NodeId::new([1; 8]);
    // A callee who is being called.
    calls::accept(&db, &order(1 << 100, "86999"), NOW).unwrap();
    let busy = claim(&db, &node).remove(0);
    fill(&db, queue, calls);
    let counter = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&counter);
    let count = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    };
    db.progress_handler(1, Some(count)).unwrap();
    let since = || counter.swap(0, Ordering::Relaxed);
    let mut rounds = Vec::new();
    calls::accept(&db, &order(2 << 100, "86777"), NOW).unwrap();
    rounds.push(("accept", since()));
    let claimed = claim(&db, &node).remove(0);
    rounds.push(("claim", since()));
    ending::end(&db, &ended(claimed), NOW).unwrap();
    rounds.push(("end", since()));
    ending::end(&db, &ended(busy), NOW).unwrap();
    rounds.push(("end of the call to one callee", since()));
    claiming::lanes(&db).unwrap();
    rounds.push(("look for the longest due", since()));
    let overdue = claiming::claim_overdue(&db, &node, NOW, 1000).unwrap();
    assert_eq!(overdue, []);
    rounds.push(("look for overdue calls", since()));
    rounds
}

/// With other values each time.
#[test]
fn a_statement_of_the_queue_is_prepared_once() {
    let (db, node) = (database(), NodeId::new([1; 8]));
    for number in 1..=5 {
        let order = order(number << 100, &format!("8677{number}"));
        calls::accept(&db, &order, NOW).unwrap();
        let claimed = claim(&db, &node).remove(0);
        ending::end(&db, &ended(claimed), NOW).unwrap();
    }
    for statement in [claiming::DUE_CALLS, claiming::TAKEN, claiming::UNPARK] {
        let prepared = db.prepare_cached(statement).unwrap();
        assert!(
            prepared.get_status(StatementStatus::Run) >= 5,
            "{statement}"
        );
        assert_eq!(
            prepared.get_status(StatementStatus::RePrepare),
            0,
            "{statement}"
        );
    }
}

#[test]
fn no_verb_of_the_queue_costs_more_while_more_calls_wait() {
    for (name, queue) in QUEUES {
        let (few, many) = (rounds(queue, 10), rounds(queue, 20_000));
        assert_eq!(few, many, "calls {name}");
        assert!(few.iter().all(|(_, rounds)| *rounds > 0), "{few:?}");
    }
}
