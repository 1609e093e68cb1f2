//! What is told of one call: what was asked for, what is owed for it, and what it has cost.

use clarion::domain::callback::{CallbackKey, OwedCallback};
use clarion::store::Database;

use super::{call, claim, ended, node, now};
use crate::store_contract::{order, with_account};

contract! {
    a_call_that_has_ended_is_told_with_its_request_its_callbacks_and_its_bill_lines,
}

async fn a_call_that_has_ended_is_told_with_its_request_its_callbacks_and_its_bill_lines(
    database: Database,
) {
    let store = with_account(&database).await;
    let (asked, other) = (call("8613800000007"), call("8613800000008"));
    for call in [&asked, &other] {
        store.accept_call(order(call.clone())).await.unwrap();
    }
    assert_eq!(store.bill_lines_of(&asked.sid).await.unwrap(), []);
    for claimed in claim(&store, &node(1), 2).await {
        assert!(store.end_call(ended(&claimed, now())).await.unwrap());
    }
    let event = ended(&claim_of(&asked), now()).callback.unwrap();
    let event = OwedCallback {
        key: CallbackKey {
            call: asked.sid.clone(),
            seq: 1,
        },
        ..event
    };
    assert!(store.owe_event(event).await.unwrap());

    let found = store.accepted_call(&asked.sid).await.unwrap();
    assert_eq!(found, Some(asked.clone()));
    let nobody = "f".repeat(32).parse().unwrap();
    assert_eq!(store.accepted_call(&nobody).await.unwrap(), None);
    let owed = store.callbacks_of(&asked.sid, 10).await.unwrap();
    let seqs: Vec<_> = owed.iter().map(|one| one.key.seq).collect();
    assert_eq!(seqs, [0, 1], "the final one first");
    assert!(owed.iter().all(|one| one.key.call == asked.sid));
    assert_eq!(store.callbacks_of(&asked.sid, 1).await.unwrap().len(), 1);
    let lines = store.bill_lines_of(&asked.sid).await.unwrap();
    let ids: Vec<_> = lines.iter().map(|line| line.order_id.as_str()).collect();
    assert_eq!(ids, [asked.sid.as_str()]);
}

/// As it was taken: only what its callback is made of counts.
fn claim_of(call: &clarion::domain::call::NewCall) -> clarion::domain::claim::ClaimedCall {
    clarion::domain::claim::ClaimedCall {
        call: call.clone(),
        lease: clarion::domain::claim::Lease {
            node: node(1),
            fence: 1,
        },
        tries: 0,
        tries_before: 0,
        attempt: clarion::domain::attempt::AttemptNumber::FIRST,
        is_counted: true,
        legs_before: 0,
        only_trunk: None,
        time_left: None,
        is_reserved: false,
    }
}
