//! From one state to the next, and the one end.

use clarion::domain::call::{CallSid, NewCall};
use clarion::domain::call_state::CallState;
use clarion::domain::callback::CallbackKey;
use clarion::domain::claim::CallUpdate;
use clarion::domain::outcome::Outcome;
use clarion::store::Database;
use jiff::SignedDuration;

use super::{
    LEASE, account, back, call, claim, dialling, ended, forget_calls, new_call, node, now, pass,
};
use crate::store_contract::{order, with_account};
use crate::support::owed::{self, Claiming};
use crate::support::{self};

contract! {
    a_call_goes_through_its_states_and_ends_once,
    a_call_goes_back_to_the_queue_only_while_nothing_has_rung,
    every_leg_is_known_by_its_dialog_and_counts_for_its_try,
    a_running_call_is_cancelled_by_name,
    what_an_end_owes_is_due_at_once_whatever_the_clock_of_its_node_says,
    what_ends_after_its_day_was_closed_is_billed_on_the_first_open_day,
    old_calls_are_forgotten_but_not_what_is_still_owed,
    what_waits_for_weeks_does_not_hide_what_is_old,
}

async fn a_call_goes_through_its_states_and_ends_once(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let call = call("8613800000001");
    store.accept_call(order(call.clone())).await.unwrap();
    let claimed = claim(&store, &node(1), 1).await.remove(0);
    assert_eq!(claimed.call.called, call.called);
    assert_eq!(claimed.call.prompt, call.prompt);
    let state = async || {
        let progress = store.call_progress(&account(), &call.sid).await.unwrap();
        progress.unwrap().state
    };
    assert_eq!(state().await, CallState::Claimed);
    let dialog = "{}".to_owned();
    for step in [
        dialling(1, "first", now),
        dialling(2, "second", now),
        CallUpdate::Ringing {
            at: now,
            dialog: Some(dialog.clone()),
        },
        CallUpdate::Answered {
            at: now,
            dialog: Some(dialog),
        },
    ] {
        let wanted = step.state();
        assert!(
            store
                .advance_call(&call.sid, &claimed.lease, step.into())
                .await
                .unwrap()
        );
        assert_eq!(state().await, wanted);
    }
    let back = CallUpdate::Ringing {
        at: now,
        dialog: None,
    };
    assert!(
        !store
            .advance_call(&call.sid, &claimed.lease, back.into())
            .await
            .unwrap()
    );
    assert!(store.end_call(ended(&claimed, now)).await.unwrap());
    assert!(!store.end_call(ended(&claimed, now)).await.unwrap());
    let progress = store
        .call_progress(&account(), &call.sid)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (progress.state, progress.outcome),
        (CallState::Ended, Some(Outcome::Talked))
    );
    assert_eq!(progress.seconds(), 2);
}

async fn a_call_goes_back_to_the_queue_only_while_nothing_has_rung(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let call = call("8613800000001");
    store.accept_call(order(call.clone())).await.unwrap();
    let claimed = claim(&store, &node(1), 1).await.remove(0);
    let dial = dialling(1, "first", now);
    assert!(
        store
            .advance_call(&call.sid, &claimed.lease, dial.clone().into())
            .await
            .unwrap()
    );
    let later = now + SignedDuration::from_secs(10);
    let pause = SignedDuration::from_secs(10);
    assert!(store.requeue_call(&claimed, back(pause, 3)).await.unwrap());
    assert!(claim(&store, &node(1), 1).await.is_empty(), "not due yet");
    pass(&database, pause).await;
    let again = claim(&store, &node(1), 1).await.remove(0);
    assert_eq!(again.tries, 3, "trunks that could not be reached count too");
    assert!(
        store
            .advance_call(&call.sid, &again.lease, dial.into())
            .await
            .unwrap()
    );
    let ring = CallUpdate::Ringing {
        at: later,
        dialog: Some("{}".to_owned()),
    };
    assert!(
        store
            .advance_call(&call.sid, &again.lease, ring.into())
            .await
            .unwrap()
    );
    assert!(!store.requeue_call(&again, back(pause, 1)).await.unwrap());
}

async fn every_leg_is_known_by_its_dialog_and_counts_for_its_try(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let call = call("8613800000001");
    store.accept_call(order(call.clone())).await.unwrap();
    let claimed = claim(&store, &node(1), 1).await.remove(0);
    let advance = async |update: CallUpdate| {
        let advanced = store.advance_call(&call.sid, &claimed.lease, update.into());
        assert!(advanced.await.unwrap());
    };
    advance(dialling(1, "first", now)).await;
    advance(dialling(1, "first", now)).await;
    advance(CallUpdate::Ringing {
        at: now,
        dialog: Some("{}".to_owned()),
    })
    .await;
    // It rang, and whoever rang has sent us elsewhere.
    advance(dialling(1, "elsewhere", now)).await;
    let (abandoned, node) = ([call.sid.clone()], node(1));
    let taken = store.take_orphaned_calls(&node, LEASE, &abandoned, 1);
    let orphan = taken.await.unwrap().remove(0);
    assert_eq!(orphan.state, CallState::Ringing, "what has rung stays so");
    assert_eq!(orphan.dialog.unwrap(), "{\"trunk\":\"elsewhere\"}");
    assert_eq!(orphan.claimed.tries, 1, "three legs of one try");
}

async fn old_calls_are_forgotten_but_not_what_is_still_owed(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let silent = NewCall {
        resp_url: None,
        ..call("8613800000001")
    };
    let (owing, alive) = (call("8613800000002"), call("8613800000003"));
    for call in [&silent, &owing, &alive] {
        store.accept_call(order(call.clone())).await.unwrap();
    }
    for claimed in claim(&store, &node(1), 2).await {
        assert!(store.end_call(ended(&claimed, now)).await.unwrap());
    }
    let later = now + SignedDuration::from_hours(1);
    assert_eq!(forget_calls(&*store, now).await, 0, "too early");
    assert_eq!(forget_calls(&*store, later).await, 1);
    let is_there = async |sid: &CallSid| store.call_record(sid).await.unwrap().is_some();
    assert!(!is_there(&silent.sid).await);
    assert!(is_there(&owing.sid).await && is_there(&alive.sid).await);
    support::settle_callback(&database, &owing.sid).await;
    assert_eq!(forget_calls(&*store, later).await, 1);
    let key = CallbackKey::of_end(owing.sid);
    assert!(store.callback(&key).await.unwrap().is_none());
    assert!(is_there(&alive.sid).await, "it has not ended");
}

async fn what_waits_for_weeks_does_not_hide_what_is_old(database: Database) {
    let store = with_account(&database).await;
    let silent = |number: u32| NewCall {
        resp_url: None,
        ..call(&format!("86138000{number:05}"))
    };
    let mut patient = Vec::new();
    for number in 0..7 {
        let call = silent(number);
        store.accept_call(order(call.clone())).await.unwrap();
        patient.push(call.sid);
    }
    let (old, young) = (silent(8), silent(9));
    for call in [&old, &young] {
        store.accept_call(order((*call).clone())).await.unwrap();
    }
    let (before, end) = (now() + SignedDuration::from_hours(1), now());
    for claimed in claim(&store, &node(1), 10).await {
        if claimed.call.sid == old.sid {
            assert!(store.end_call(ended(&claimed, end)).await.unwrap());
        }
    }
    let (mut after, mut forgotten) = (None, Vec::new());
    loop {
        let step = store.forget_calls(before, after, 3).await.unwrap();
        forgotten.push(step.forgotten);
        after = step.stopped_at;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(forgotten.iter().sum::<u64>(), 1, "{forgotten:?}");
    assert!(forgotten.len() <= 4, "no more than there is: {forgotten:?}");
    let is_there = async |sid: &CallSid| store.call_record(sid).await.unwrap().is_some();
    assert!(!is_there(&old.sid).await && is_there(&young.sid).await);
    // Where everything is young, one look is enough.
    let long_ago = end - SignedDuration::from_hours(24 * 365 * 20);
    let step = store.forget_calls(long_ago, None, 3).await.unwrap();
    assert_eq!((step.forgotten, step.stopped_at), (0, None));
}

async fn what_an_end_owes_is_due_at_once_whatever_the_clock_of_its_node_says(database: Database) {
    let store = with_account(&database).await;
    let right = support::clock().now();
    for hours in [-2, 2] {
        let call = call("8613800000001");
        store.accept_call(order(call.clone())).await.unwrap();
        let claimed = claim(&store, &node(1), 1).await.remove(0);
        let end = ended(&claimed, right + SignedDuration::from_hours(hours));
        assert!(store.end_call(end).await.unwrap());
        let (found, _) = owed::claim(&*store, &Claiming::default()).await;
        assert_eq!(found.len(), 1, "{hours} h");
        assert_eq!(found[0].lease.key.call, call.sid);
        assert!(found[0].lag < SignedDuration::from_mins(10));
    }
}

async fn a_running_call_is_cancelled_by_name(database: Database) {
    let store = with_account(&database).await;
    let call = call("8613800000001");
    store.accept_call(order(call.clone())).await.unwrap();
    claim(&store, &node(1), 1).await;
    assert!(store.cancelled_calls(&node(1)).await.unwrap().is_empty());
    assert_eq!(
        store.cancel_call(&call.sid).await.unwrap(),
        Some(CallState::Claimed)
    );
    let cancelled = store.cancelled_calls(&node(1)).await.unwrap();
    assert_eq!(cancelled.len(), 1);
    assert_eq!(
        (&cancelled[0].sid, cancelled[0].before_answer),
        (&call.sid, false)
    );
    assert!(store.cancelled_calls(&node(2)).await.unwrap().is_empty());
    assert_eq!(store.cancel_call(&new_call().sid).await.unwrap(), None);
}

async fn what_ends_after_its_day_was_closed_is_billed_on_the_first_open_day(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let call = call("8613800000001");
    store.accept_call(order(call.clone())).await.unwrap();
    let claimed = claim(&store, &node(1), 1).await.remove(0);
    support::close_day(&database, "2026-11-15").await;
    assert!(store.end_call(ended(&claimed, now)).await.unwrap());
    assert_eq!(support::bill_day(&database, &call.sid).await, "2026-11-16");
}

/// On PostgreSQL: with hardly anything left on the lease nothing is sent any more.
#[tokio::test]
async fn a_call_whose_lease_is_nearly_over_is_not_dialled() {
    let database = support::postgres::empty().await;
    let store = with_account(&database).await;
    let now = now();
    store
        .accept_call(order(call("8613800000001")))
        .await
        .unwrap();
    let claimed = claim(&store, &node(1), 1).await.remove(0);
    pass(&database, LEASE - SignedDuration::from_millis(300)).await;
    let dialling = dialling(1, "first", now);
    let advanced = store.advance_call(&claimed.call.sid, &claimed.lease, dialling.into());
    assert!(!advanced.await.unwrap());
}
