//! How nodes share a trunk, and wake each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use clarion::domain::trunk_grants::{GrantRequest, TrunkCapacity, TrunkGrant};
use clarion::store::{Database, Store};
use supervisor::Supervisor;

use super::{LEASE, call, node, now, pass};
use crate::store_contract::{open, order, with_account};
use crate::support::{self, eventually};

const WHOLE: TrunkCapacity = TrunkCapacity {
    channels: 10,
    per_second: 6,
};

static QUESTION: AtomicI64 = AtomicI64::new(1);

async fn ask(store: &Arc<dyn Store>, of: u8, in_use: u32, wants_more: bool) -> TrunkGrant {
    store.heartbeat(&node(of), now(), LEASE).await.unwrap();
    let request = GrantRequest {
        trunk: "east".to_owned(),
        question: QUESTION.fetch_add(1, Ordering::Relaxed),
        is_after_doubt: false,
        whole: WHOLE,
        in_use,
        keeps: in_use,
        wants_more,
    };
    let grants = store.share_trunks(&node(of), vec![request]).await.unwrap();
    assert_eq!(grants[0].0, "east");
    grants[0].1
}

#[tokio::test]
async fn a_server_that_is_alone_has_every_trunk() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::Sqlite(folder.path().join("clarion.db"));
    let store = with_account(&database).await;
    assert_eq!(ask(&store, 1, 3, true).await, TrunkGrant::whole(WHOLE));
}

#[tokio::test]
async fn nodes_never_have_more_together_than_the_trunk_and_a_lost_one_leaves_its_part() {
    let database = support::postgres::empty().await;
    let store = with_account(&database).await;
    assert_eq!(ask(&store, 1, 0, false).await.channels, 10);
    assert_eq!(ask(&store, 2, 0, true).await.channels, 0);
    assert_eq!(ask(&store, 1, 4, true).await.channels, 5);
    let second = ask(&store, 2, 0, true).await;
    assert_eq!((second.channels, second.rate), (5, 3000));
    // The first one is lost. Its part is free when its lease is over, and a moment later.
    pass(&database, LEASE * 3).await;
    let second = ask(&store, 2, 5, true).await;
    assert_eq!((second.channels, second.rate), (10, 6000));
    store.leave(&node(2)).await.unwrap();
    assert_eq!(ask(&store, 3, 0, false).await.channels, 10);
}

#[tokio::test]
async fn whoever_queues_a_call_wakes_the_others() {
    let database = support::postgres::empty().await;
    let (first, second) = (with_account(&database).await, open(&database).await);
    let supervisor = Supervisor::new();
    let (_own, woken) = (first.wake_up(&supervisor), second.wake_up(&supervisor));
    // The first one believes itself alone until its next heartbeat.
    for (store, number) in [(&first, 1), (&second, 2), (&first, 1)] {
        store.heartbeat(&node(number), now(), LEASE).await.unwrap();
    }
    // It takes a moment until a node listens; what was told before that is not heard.
    eventually("the other one wakes", async || {
        first
            .accept_call(order(call("8613800000001")))
            .await
            .unwrap();
        let woken = woken.notified();
        tokio::time::timeout(Duration::from_millis(200), woken)
            .await
            .is_ok()
    })
    .await;
    for store in [first, second] {
        store.close().await;
    }
    assert_eq!(supervisor.down(), Vec::<String>::new());
}
