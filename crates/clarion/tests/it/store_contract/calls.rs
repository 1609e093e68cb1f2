//! What is accepted is there, whatever happens to the store afterwards.

use std::sync::Arc;

use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::store::{Database, Store, StoreError};
use supervisor::Supervisor;

use super::order;
use super::{call, open, with_account};
use crate::support::SID;

contract! {
    an_accepted_call_is_queued_and_belongs_to_its_account,
    accepting_the_same_call_again_changes_nothing,
    thousands_of_calls_at_once_are_all_there,
    what_was_accepted_survives_a_new_opening,
    two_openings_of_one_empty_database_at_once_both_succeed,
    a_store_that_is_closed_says_so,
}

async fn an_accepted_call_is_queued_and_belongs_to_its_account(database: Database) {
    let store = with_account(&database).await;
    store.accept_call(order(call(1))).await.unwrap();
    let progress = store
        .call_progress(&SID.parse().unwrap(), &call(1).sid)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (progress.state, progress.outcome, progress.digit()),
        (CallState::Queued, None, '3')
    );
    assert_eq!(
        store
            .call_progress(&"f".repeat(32).parse().unwrap(), &call(1).sid)
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        store
            .call_progress(&SID.parse().unwrap(), &call(2).sid)
            .await
            .unwrap(),
        None
    );
}

async fn accepting_the_same_call_again_changes_nothing(database: Database) {
    let store = with_account(&database).await;
    for _ in 0..2 {
        store.accept_call(order(call(1))).await.unwrap();
    }
    assert!(
        store
            .call_progress(&SID.parse().unwrap(), &call(1).sid)
            .await
            .unwrap()
            .is_some()
    );
}

async fn thousands_of_calls_at_once_are_all_there(database: Database) {
    let store = with_account(&database).await;
    let mut accepting = tokio::task::JoinSet::new();
    for number in 0..3000 {
        let store = Arc::clone(&store);
        accepting.spawn(async move { store.accept_call(order(call(number))).await });
    }
    while let Some(result) = accepting.join_next().await {
        result.unwrap().unwrap();
    }
    for number in 0..3000 {
        assert!(is_there(&*store, &call(number).sid).await, "{number}");
    }
}

async fn what_was_accepted_survives_a_new_opening(database: Database) {
    let store = with_account(&database).await;
    store.accept_call(order(call(1))).await.unwrap();
    store.close().await;
    let store = open(&database).await;
    assert!(is_there(&*store, &call(1).sid).await);
    assert_eq!(store.accounts().await.unwrap().len(), 1);
}

async fn two_openings_of_one_empty_database_at_once_both_succeed(database: Database) {
    let supervisor = Supervisor::new();
    let (first, second) = tokio::join!(database.open(&supervisor), database.open(&supervisor));
    first.unwrap().ready().await.unwrap();
    second.unwrap().ready().await.unwrap();
}

async fn a_store_that_is_closed_says_so(database: Database) {
    let store = with_account(&database).await;
    store.close().await;
    assert!(matches!(
        store.accept_call(order(call(1))).await,
        Err(StoreError::Failed(_))
    ));
}

async fn is_there(store: &dyn Store, sid: &CallSid) -> bool {
    store
        .call_progress(&SID.parse().unwrap(), sid)
        .await
        .unwrap()
        .is_some()
}
