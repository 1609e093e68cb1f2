//! On PostgreSQL, a verb of the queue reads as many rows with a long queue as with a short one, although statements were planned while the queue was
//! empty; and the steps of a call are updates in place. Rows are counted, so no time is measured. SQLite's part is
//! `store/sqlite/backlog_tests.rs`.

use std::sync::Arc;

use clarion::domain::claim::{CallUpdate, ClaimedCall, NodeId};
use clarion::store::{Database, Store};
use tokio_postgres::Client;

use super::{LEASE, call, claim, dialling, ended, node, now};
use crate::store_contract::{order, with_account};
use crate::support::{APP, SID, eventually, postgres};

const MANY: i64 = 20_000;
/// How often each verb is tried, before and after the queue has become long.
const TIMES: i64 = 10;
/// More rows than all verbs together read in any queue at a time, and far fewer than there are.
const FEW: i64 = 200;
/// A callee who is being called.
const BUSY: &str = "86999";

/// Calls that wait: their callee, when they are due (from now), and whether they are parked.
const QUEUES: [(&str, &str); 3] = [
    ("that are due", "'861' || n, -1000, 0"),
    ("that are due later", "'861' || n, 60000, 0"),
    ("to one callee", "'86999', -1000, 1"),
];

struct Site {
    store: Arc<dyn Store>,
    db: Client,
    node: NodeId,
}

impl Site {
    /// Nobody has counted its rows yet.
    async fn fresh() -> Self {
        let url = postgres::empty_database().await;
        let store = with_account(&Database::parse(&url).unwrap()).await;
        let site = Self {
            store,
            db: postgres::connect(&url).await,
            node: node(1),
        };
        for table in ["call_queue", "calls"] {
            let off = format!("ALTER TABLE {table} SET (autovacuum_enabled = off)");
            site.db.batch_execute(&off).await.unwrap();
        }
        site
    }

    /// It has been looked at once, while it was empty.
    async fn open() -> Self {
        let site = Self::fresh().await;
        for look in ["VACUUM ANALYZE call_queue", "VACUUM ANALYZE calls"] {
            site.db.batch_execute(look).await.unwrap();
        }
        site
    }

    async fn accept(&self, callee: &str) {
        let order = order(call(callee));
        self.store.accept_call(order).await.unwrap();
    }

    async fn claim(&self) -> Vec<ClaimedCall> {
        claim(&self.store, &self.node, 1).await
    }

    /// Accepted, claimed, dialled and answered.
    async fn answered_call(&self, callee: &str) -> ClaimedCall {
        self.accept(callee).await;
        let claimed = self.claim().await.remove(0);
        let (sid, lease) = (&claimed.call.sid, &claimed.lease);
        let answered = CallUpdate::Answered {
            at: now(),
            dialog: None,
        };
        for step in [dialling(1, "first", now()), answered] {
            assert!(
                self.store
                    .advance_call(sid, lease, step.into())
                    .await
                    .unwrap()
            );
        }
        claimed
    }

    async fn each_verb(&self) {
        let (store, node) = (&self.store, &self.node);
        for time in 0..TIMES {
            self.accept(&format!("8677{time}")).await;
            store.queued_lanes().await.unwrap();
            let claimed = self.claim().await.remove(0);
            store.end_call(ended(&claimed, now())).await.unwrap();
            assert_eq!(store.claim_overdue(node, 1000).await.unwrap(), []);
            store.cancelled_calls(node).await.unwrap();
            store.held_calls(node).await.unwrap();
            let orphans = store.take_orphaned_calls(node, LEASE, &[], 100);
            assert_eq!(orphans.await.unwrap(), []);
        }
    }

    async fn fill(&self, queue: &str) {
        let fill = format!(
            "CREATE TEMPORARY TABLE waiting AS SELECT lpad(n::text, 32, 'f') AS sid, w.* FROM generate_series(1, {MANY}) AS n, \
               LATERAL (SELECT {queue}) AS w (callee, due, parked); \
             INSERT INTO call_queue (call_sid, account_sid, app_id, callee, route, priority, due_at, expires_at, state, parked) \
             SELECT sid, '{SID}', '{APP}', callee, '', 5, extract(epoch FROM now())::bigint * 1000 + due, \
               extract(epoch FROM now())::bigint * 1000 + 3600000, 0, parked FROM waiting; \
             INSERT INTO calls (call_sid, account_sid, app_id, accepted_at, called, number, prompt) \
             SELECT sid, '{SID}', '{APP}', 0, callee, callee, '{{\"plays\":1}}' FROM waiting"
        );
        self.db.batch_execute(&fill).await.unwrap();
    }

    /// Closes the store: what its connections have done is told when they are gone.
    async fn close(&self) {
        self.store.close().await;
        let others = "SELECT count(*) FROM pg_stat_activity \
          WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
        eventually("the connections are closed", async || {
            self.number(others).await == 0
        })
        .await;
    }

    async fn number(&self, sql: &str) -> i64 {
        self.db.query_one(sql, &[]).await.unwrap().get(0)
    }
}

#[tokio::test]
async fn no_verb_of_the_queue_reads_more_while_more_calls_wait() {
    for (name, queue) in QUEUES {
        let site = Site::open().await;
        site.accept(BUSY).await;
        assert_eq!(site.claim().await.len(), 1);
        // By now every statement has its plan.
        site.each_verb().await;
        site.fill(queue).await;
        // Housekeeping counts the queue, and finds that the plans are outgrown.
        site.store.queue_depth().await.unwrap();
        site.each_verb().await;
        site.close().await;
        let read = "SELECT seq_tup_read + (SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'call_queue') \
          FROM pg_stat_user_tables WHERE relname = 'call_queue'";
        let counted = 2 * MANY;
        let each = (site.number(read).await - counted) / (2 * TIMES);
        assert!(each < FEW, "{MANY} calls {name}: {each} rows are read");
    }
}

/// A call is found by its callSid, however many calls its node holds.
#[tokio::test]
async fn no_step_of_a_call_reads_those_that_its_node_holds_beside_it() {
    const HELD: i64 = 500;
    let site = Site::fresh().await;
    let hold = format!(
        "INSERT INTO call_queue (call_sid, account_sid, app_id, callee, due_at, expires_at, state, node, fence) \
         SELECT lpad(n::text, 32, 'f'), '{SID}', '{APP}', '861' || n, 0, 9000000000000, 4, '{}', 1 FROM generate_series(1, {HELD}) AS n",
        site.node
    );
    for time in 0..2 * TIMES {
        // By now the statements have their plans.
        if time == TIMES {
            site.db.batch_execute(&hold).await.unwrap();
        }
        let claimed = site.answered_call(&format!("8677{time}")).await;
        site.store.end_call(ended(&claimed, now())).await.unwrap();
    }
    site.close().await;
    let read =
        "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'call_queue_node'";
    let read = site.number(read).await;
    assert!(read < HELD, "{read} calls are read by their node");
}

#[tokio::test]
async fn the_steps_of_a_call_and_heartbeats_are_updates_in_place() {
    let site = Site::open().await;
    for number in 0..TIMES {
        site.answered_call(&format!("8677{number}")).await;
    }
    site.close().await;
    let updates = async |table: &str, kind: &str| {
        let asked = format!("SELECT {kind} FROM pg_stat_user_tables WHERE relname = '{table}'");
        site.number(&asked).await
    };
    // A claim moves a call from one index to another.
    assert_eq!(updates("call_queue", "n_tup_upd").await, 3 * TIMES);
    assert_eq!(updates("call_queue", "n_tup_hot_upd").await, 2 * TIMES);
    assert_eq!(updates("nodes", "n_tup_upd").await, TIMES - 1);
    assert_eq!(updates("nodes", "n_tup_hot_upd").await, TIMES - 1);
}
