//! Changes to calls under way share commits on PostgreSQL, and none suffers for another.

use std::sync::Arc;

use clarion::domain::account::{Account, AccountSid};
use clarion::domain::claim::{CallUpdate, ClaimedCall};
use clarion::domain::ended_call::EndedCall;
use clarion::store::{Database, Store, StoreError};
use futures_util::future::join_all;

use super::{call, claim, dialling, ended, node, now};
use crate::store_contract::{order, with_account};
use crate::support::{self, postgres};

const CALLS: u32 = 60;

/// Calls to numbers of their own that this node has claimed.
async fn claimed_by(store: &Arc<dyn Store>, number: u8) -> Vec<ClaimedCall> {
    for callee in 0..CALLS {
        let call = call(&format!("86138{number}00{callee:04}"));
        store.accept_call(order(call)).await.unwrap();
    }
    claim(store, &node(number), CALLS).await
}

async fn end_all(store: &Arc<dyn Store>, ends: Vec<EndedCall>) -> Vec<Result<bool, StoreError>> {
    join_all(ends.into_iter().map(|end| store.end_call(end))).await
}

/// How many transactions have written the rows of a table.
async fn transactions(database: &Database, table: &str) -> i64 {
    let Database::Postgres(config) = database else {
        panic!("{database:?}");
    };
    let client = clarion::store::postgres::connect(config).await.unwrap();
    let sql = format!("SELECT count(DISTINCT xmin::text) FROM {table}");
    client.query_one(&sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn what_happens_to_calls_at_once_shares_commits() {
    let database = postgres::empty().await;
    let store = with_account(&database).await;
    let claimed = claimed_by(&store, 1).await;
    let steps = claimed.iter().map(async |claimed| {
        let (sid, lease) = (&claimed.call.sid, &claimed.lease);
        let dialled = store.advance_call(sid, lease, dialling(1, "first", now()).into());
        assert!(dialled.await.unwrap());
        let (at, dialog) = (now(), None);
        let answered = store.advance_call(sid, lease, CallUpdate::Answered { at, dialog }.into());
        assert!(answered.await.unwrap());
    });
    join_all(steps).await;
    // One that comes alone, and the rest together, at most 64 at a time.
    assert!(transactions(&database, "call_queue").await < 10);
    let ends = claimed.iter().map(|claimed| ended(claimed, now()));
    let results = end_all(&store, ends.collect()).await;
    assert!(results.iter().all(|result| matches!(result, Ok(true))));
    for table in ["bill_lines", "attempts", "callbacks"] {
        assert!(transactions(&database, table).await < 10, "{table}");
    }
}

#[tokio::test]
async fn a_change_that_is_refused_fails_alone() {
    let store = with_account(&postgres::empty().await).await;
    let mut claimed = claimed_by(&store, 1).await;
    // What is not this node's any more is no failure either.
    claimed[7].lease.fence += 1;
    let end = |claimed| ended(claimed, now());
    let mut ends: Vec<EndedCall> = claimed.iter().map(end).collect();
    ends[3].trunk = Some("no database takes this: \0".to_owned());
    let results = end_all(&store, ends).await;
    for (place, result) in results.iter().enumerate() {
        match place {
            3 => assert!(matches!(result, Err(StoreError::Failed(_))), "{result:?}"),
            7 => assert!(matches!(result, Ok(false)), "{result:?}"),
            _ => assert!(matches!(result, Ok(true)), "{result:?}"),
        }
    }
}

/// Both nodes charge both accounts, and their calls come in different orders.
#[tokio::test]
async fn nodes_that_charge_the_same_accounts_do_not_wait_for_each_other_in_a_circle() {
    let database = postgres::empty().await;
    let stores = [with_account(&database).await, {
        let supervisor = supervisor::Supervisor::new();
        database.open(&supervisor).await.unwrap()
    }];
    let other: AccountSid = "fedcba9876543210fedcba9876543210".parse().unwrap();
    let account = Account {
        sid: other.clone(),
        ..support::account()
    };
    stores[0].add_account(account).await.unwrap();
    let mut ends = [Vec::new(), Vec::new()];
    for (place, store) in stores.iter().enumerate() {
        let claimed = claimed_by(store, u8::try_from(place).unwrap()).await;
        for (number, mut claimed) in claimed.into_iter().enumerate() {
            if (number + place) % 2 == 0 {
                claimed.call.account = other.clone();
            }
            let (sid, account) = (&claimed.call.sid, &claimed.call.account);
            let reservation = format!(
                "INSERT INTO call_reservations (call_sid, account_sid, prefix, unit_seconds, price, unanswered, units, amount) \
                 VALUES ('{sid}', '{account}', '', 60, 1, 0, 1, 1)"
            );
            support::execute(&database, &reservation).await;
            ends[place].push(ended(&claimed, now()));
        }
    }
    let [one, two] = ends;
    let results = tokio::join!(end_all(&stores[0], one), end_all(&stores[1], two));
    for result in results.0.iter().chain(&results.1) {
        assert!(matches!(result, Ok(true)), "{result:?}");
    }
    // After a deadlock each would have been committed alone.
    assert!(transactions(&database, "bill_lines").await < 20);
}
