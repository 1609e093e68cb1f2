//! What callees say by keys: written once, told once, never forgotten.

use std::sync::Arc;

use clarion::domain::call::NewCall;
use clarion::domain::callback::{
    CallbackKey, EventAttempt, EventWish, OwedEvent, RespUrl, StateEvent,
};
use clarion::domain::claim::{CallUpdate, ClaimedCall, WatchedUpdate};
use clarion::domain::do_not_call::DoNotCallSource;
use clarion::domain::ended_call::EndedCall;
use clarion::domain::notice::Notice;
use clarion::domain::notice::ending::{Confirmation, NoticeEnd, NoticeEnding};
use clarion::domain::notice::keys::CalleeChoice;
use clarion::domain::outcome::Outcome;
use clarion::store::{Database, Store};
use jiff::tz::TimeZone;

use super::{account, call, claim, dialling, ended, node, now};
use crate::store_contract::{order, with_account};

contract! {
    a_choice_is_written_once_and_told_once,
    whoever_wants_no_more_calls_is_on_the_list_with_the_key_and_with_the_end,
    a_confirmation_is_found_by_whoever_takes_the_call_over,
    a_notice_that_was_cancelled_ends_so_unless_somebody_had_confirmed,
}

fn watched(number: &str) -> NewCall {
    NewCall {
        notice: Some(Arc::new(Notice::single())),
        events: Some(EventWish {
            url: RespUrl::from_stored("http://example.com/events".to_owned()),
            only_last: false,
        }),
        ..call(number)
    }
}

/// A notice that somebody has answered.
async fn answered(store: &Arc<dyn Store>, number: &str) -> ClaimedCall {
    store.accept_call(order(watched(number))).await.unwrap();
    let claimed = claim(store, &node(1), 1).await.remove(0);
    let answered = CallUpdate::Answered {
        at: now(),
        dialog: None,
    };
    for update in [dialling(1, "first", now()), answered] {
        advance(store, &claimed, update.into()).await;
    }
    claimed
}

async fn advance(store: &Arc<dyn Store>, claimed: &ClaimedCall, step: WatchedUpdate) {
    let advanced = store.advance_call(&claimed.call.sid, &claimed.lease, step);
    assert!(advanced.await.unwrap());
}

fn chosen(claimed: &ClaimedCall, choice: CalleeChoice) -> WatchedUpdate {
    let about = EventAttempt {
        attempt: 1,
        called: &claimed.call.called,
    };
    let key = StateEvent::Key('1');
    WatchedUpdate {
        update: CallUpdate::Chosen { at: now(), choice },
        event: OwedEvent::new(&claimed.call, key, Some(about), now(), &TimeZone::UTC),
    }
}

fn over(claimed: &ClaimedCall, ending: NoticeEnding, choice: Option<CalleeChoice>) -> EndedCall {
    let outcome = choice.map_or(Outcome::Unconfirmed, CalleeChoice::outcome);
    let key = choice.and_then(CalleeChoice::confirming_key);
    EndedCall {
        outcome,
        choice,
        notice: Some(NoticeEnd {
            ending,
            outcome,
            attempts: 1,
            confirmed: key.map(|key| Confirmation {
                called: claimed.call.called.clone(),
                key,
            }),
            answered_by: None,
            dialled_at: Some(now()),
            answered_at: Some(now()),
            ended_at: now(),
        }),
        ..ended(claimed, now())
    }
}

async fn a_choice_is_written_once_and_told_once(database: Database) {
    let store = with_account(&database).await;
    let claimed = answered(&store, "8613800000001").await;
    // The answer to the first may have been lost: it is sent again.
    for choice in [
        CalleeChoice::Confirmed('1'),
        CalleeChoice::Confirmed('1'),
        CalleeChoice::Stopped,
    ] {
        advance(&store, &claimed, chosen(&claimed, choice)).await;
    }
    let event = async |seq| {
        let key = CallbackKey {
            call: claimed.call.sid.clone(),
            seq,
        };
        store.callback(&key).await.unwrap()
    };
    let (first, _) = event(1).await.unwrap();
    assert!(
        first
            .body
            .contains("<seq>1</seq><event>key</event><attempt>1</attempt>")
    );
    assert_eq!(event(2).await, None, "once");
    let choice = CalleeChoice::Confirmed('1');
    let end = over(&claimed, NoticeEnding::Confirmed, Some(choice));
    assert!(store.end_call(end).await.unwrap());
    let history = store.call_history(&claimed.call.sid).await.unwrap();
    assert_eq!(history.attempts[0].choice, Some(choice), "the first counts");
    let progress = store.call_progress(&account(), &claimed.call.sid).await;
    let notice = progress.unwrap().unwrap().notice.unwrap();
    assert_eq!(notice.confirmed.unwrap().key, '1');
}

async fn whoever_wants_no_more_calls_is_on_the_list_with_the_key_and_with_the_end(
    database: Database,
) {
    let store = with_account(&database).await;
    let listed = async |number: &str| {
        let entry = store.do_not_call_entry(&account(), number).await.unwrap();
        entry.map(|entry| entry.source)
    };
    let by_key = answered(&store, "8613800000001").await;
    assert_eq!(listed("8613800000001").await, None);
    advance(&store, &by_key, chosen(&by_key, CalleeChoice::Stopped)).await;
    let source = DoNotCallSource::Callee(by_key.call.sid.clone());
    assert_eq!(listed("8613800000001").await, Some(source));
    // The key itself could not be written.
    let by_end = answered(&store, "8613800000002").await;
    let end = over(
        &by_end,
        NoticeEnding::Exhausted,
        Some(CalleeChoice::Stopped),
    );
    assert!(store.end_call(end).await.unwrap());
    let source = DoNotCallSource::Callee(by_end.call.sid.clone());
    assert_eq!(listed("8613800000002").await, Some(source));
    assert_eq!(listed("8613800000003").await, None);
}

async fn a_confirmation_is_found_by_whoever_takes_the_call_over(database: Database) {
    let store = with_account(&database).await;
    let claimed = answered(&store, "8613800000001").await;
    let choice = CalleeChoice::Confirmed('1');
    advance(&store, &claimed, chosen(&claimed, choice)).await;
    let abandoned = [claimed.call.sid.clone()];
    let node = node(1);
    let orphans = store.take_orphaned_calls(&node, super::LEASE, &abandoned, 10);
    let orphans = orphans.await.unwrap();
    assert_eq!(orphans.len(), 1);
    assert_eq!(orphans[0].choice, Some(choice));
}

async fn a_notice_that_was_cancelled_ends_so_unless_somebody_had_confirmed(database: Database) {
    let store = with_account(&database).await;
    for (number, choice, wanted) in [
        ("8613800000001", None, NoticeEnding::Cancelled),
        (
            "8613800000002",
            Some(CalleeChoice::Confirmed('1')),
            NoticeEnding::Confirmed,
        ),
    ] {
        let claimed = answered(&store, number).await;
        let ending = match choice {
            Some(_) => NoticeEnding::Confirmed,
            None => NoticeEnding::Exhausted,
        };
        let mut end = over(&claimed, ending, choice);
        if choice.is_none() {
            let cancelled = over(&claimed, NoticeEnding::Cancelled, None);
            end.if_cancelled = Some(Box::new(clarion::domain::ended_call::NoticeOver {
                end: cancelled.notice.unwrap(),
                callback: cancelled.callback,
                events: Vec::new(),
            }));
        }
        store.cancel_call(&claimed.call.sid).await.unwrap();
        assert!(store.end_call(end).await.unwrap());
        let progress = store.call_progress(&account(), &claimed.call.sid).await;
        let notice = progress.unwrap().unwrap().notice.unwrap();
        assert_eq!(notice.ending, Some(wanted), "{number}");
    }
}
