//! What callees say by keys: written once, told once, never forgotten.

use std::sync::Arc;

use clarion::domain::call::NewCall;
use clarion::domain::callback::{
    CallbackKey, EventAttempt, EventSubscription, OwedEvent, RespUrl, StateEvent,
};
use clarion::domain::claim::{CallUpdate, ClaimedCall, WatchedUpdate};
use clarion::domain::do_not_call::DoNotCallSource;
use clarion::domain::ended_call::{CalledOff, EndedCall, NoticeOver};
use clarion::domain::notice::Notice;
use clarion::domain::notice::ending::{Confirmation, NoticeEnd, NoticeEnding};
use clarion::domain::notice::keys::CalleeChoice;
use clarion::domain::notice::silence::NoticeSilence;
use clarion::domain::outcome::Outcome;
use clarion::store::{Database, Store};
use jiff::tz::TimeZone;

use super::{account, call, claim, dialling, ended, node, now};
use crate::store_contract::{order, with_account};

contract! {
    a_choice_is_written_once_and_told_once,
    whoever_wants_no_more_calls_is_on_the_list_with_the_key_and_with_the_end,
    a_confirmation_is_found_by_whoever_takes_the_call_over,
    a_notice_that_was_called_off_ends_so_unless_somebody_had_confirmed,
    of_a_cancellation_and_a_confirmation_the_first_counts,
    a_silence_is_owed_with_the_confirmation_and_no_event_is_taken_for_it,
}

fn watched(number: &str) -> NewCall {
    NewCall {
        notice: Some(Arc::new(Notice::single())),
        events: Some(EventSubscription {
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

/// How a notice ends that was called off.
fn called_off(claimed: &ClaimedCall) -> CalledOff {
    let ended_as = |ending| {
        let ended = over(claimed, ending, None);
        NoticeOver {
            end: ended.notice.unwrap(),
            callback: ended.callback,
            events: Vec::new(),
        }
    };
    CalledOff {
        cancelled: ended_as(NoticeEnding::Cancelled),
        resolved: ended_as(NoticeEnding::Resolved),
    }
}

async fn a_notice_that_was_called_off_ends_so_unless_somebody_had_confirmed(database: Database) {
    let store = with_account(&database).await;
    let confirmed = Some(CalleeChoice::Confirmed('1'));
    for (number, is_resolved, choice, wanted) in [
        ("8613800000001", false, None, NoticeEnding::Cancelled),
        ("8613800000002", false, confirmed, NoticeEnding::Confirmed),
        ("8613800000003", true, None, NoticeEnding::Resolved),
        ("8613800000004", true, confirmed, NoticeEnding::Confirmed),
    ] {
        let claimed = answered(&store, number).await;
        let ending = match choice {
            Some(_) => NoticeEnding::Confirmed,
            None => NoticeEnding::Exhausted,
        };
        let mut end = over(&claimed, ending, choice);
        if choice.is_none() {
            end.if_called_off = Some(Box::new(called_off(&claimed)));
        }
        let sid = &claimed.call.sid;
        let state = if is_resolved {
            store.resolve_call(sid).await
        } else {
            store.cancel_call(sid).await
        };
        assert!(state.unwrap().is_some());
        // Nobody who talks is hung up on because it is over.
        let hung_up = store.cancelled_calls(&node(1)).await.unwrap();
        assert_eq!(hung_up.is_empty(), is_resolved);
        assert!(store.end_call(end).await.unwrap());
        let progress = store.call_progress(&account(), &claimed.call.sid).await;
        let notice = progress.unwrap().unwrap().notice.unwrap();
        assert_eq!(notice.ending, Some(wanted), "{number}");
    }
}

async fn of_a_cancellation_and_a_confirmation_the_first_counts(database: Database) {
    let store = with_account(&database).await;
    let choose = async |claimed: &ClaimedCall, choice| {
        let step = chosen(claimed, choice);
        let advanced = store.advance_call(&claimed.call.sid, &claimed.lease, step);
        advanced.await.unwrap()
    };
    let cancel = async |claimed: &ClaimedCall| {
        let account = account();
        let cancelled = store.cancel_call_of(&account, &claimed.call.sid, false);
        cancelled.await.unwrap().is_some()
    };
    let confirmed = CalleeChoice::Confirmed('1');
    let first_cancelled = answered(&store, "8613800000001").await;
    assert!(cancel(&first_cancelled).await);
    assert!(!choose(&first_cancelled, confirmed).await);
    let sid = &first_cancelled.call.sid;
    let node = node(1);
    let abandoned = [sid.clone()];
    let orphans = store.take_orphaned_calls(&node, super::LEASE, &abandoned, 10);
    assert_eq!(orphans.await.unwrap()[0].choice, None);
    let first_confirmed = answered(&store, "8613800000002").await;
    assert!(choose(&first_confirmed, confirmed).await);
    assert!(!cancel(&first_confirmed).await);
    // Whoever wants no more calls is heard at any time, and a notice goes on after that.
    let stopped = answered(&store, "8613800000003").await;
    assert!(cancel(&stopped).await);
    assert!(choose(&stopped, CalleeChoice::Stopped).await);
    assert!(cancel(&stopped).await);
    // What it is about is over: they talk to the end.
    let resolved = answered(&store, "8613800000004").await;
    store.resolve_call(&resolved.call.sid).await.unwrap();
    assert!(choose(&resolved, confirmed).await);
}

async fn a_silence_is_owed_with_the_confirmation_and_no_event_is_taken_for_it(database: Database) {
    let store = with_account(&database).await;
    for (number, key, is_owed) in [("8613800000001", '9', true), ("8613800000002", '1', false)] {
        let mut claimed = answered(&store, number).await;
        let mut notice = claimed.call.notice.as_deref().cloned().unwrap();
        notice.silence = Some(NoticeSilence {
            key: '9',
            url: "http://alerts.example:9093/api/v2/silences".to_owned(),
            minutes: 30,
            labels: [("alertname".to_owned(), "Down".to_owned())].into(),
            author: "clarion".to_owned(),
        });
        claimed.call.notice = Some(Arc::new(notice));
        let choice = CalleeChoice::Confirmed(key);
        let end = over(&claimed, NoticeEnding::Confirmed, Some(choice));
        assert!(store.end_call(end).await.unwrap());
        let sid = &claimed.call.sid;
        let silence = CallbackKey::of_silence(sid.clone());
        let owed = store.callback(&silence).await.unwrap();
        assert_eq!(owed.is_some(), is_owed, "{number}");
        if let Some((owed, _)) = owed {
            assert!(owed.body.contains("\"alertname\""), "{}", owed.body);
            // Events of the call are numbered as if it were not there.
            let event = clarion::domain::callback::OwedCallback::of_state(
                sid.clone(),
                claimed.call.app.clone(),
                RespUrl::parse("http://watch.example/").unwrap(),
                true,
                now(),
            );
            assert!(store.owe_event(event).await.unwrap());
            let all = store.callbacks_of(sid, 10).await.unwrap();
            let last = all.last().unwrap();
            assert_eq!(last.key, silence, "the final one first");
            assert!(all.iter().any(|owed| owed.key.is_event()));
        }
    }
}
