//! Every leg that was sent is stored by the commit that ends its call or puts it back, and every end is one attempt.

use std::sync::Arc;
use std::time::Duration;

use clarion::domain::attempt::{Attempt, AttemptNumber, CallHistory};
use clarion::domain::call::NewCall;
use clarion::domain::claim::{ClaimedCall, Requeue};
use clarion::domain::ended_call::EndedCall;
use clarion::domain::hearing::{AnsweredBy, HeardTone, Hearing};
use clarion::domain::leg::{HangUpReason, HungUpBy, Leg, LegKey, LegMedia};
use clarion::domain::notice::Notice;
use clarion::domain::notice::ending::{NoticeEnd, NoticeEnding};
use clarion::domain::notice::machine::MachineDetection;
use clarion::domain::outcome::Outcome;
use clarion::store::{Database, Store};
use jiff::SignedDuration;

use super::{account, call, claim, ended, forget_calls, node, now};
use crate::store_contract::{order, with_account};
use crate::support;

contract! {
    legs_of_every_round_are_stored_in_order_with_the_end,
    an_end_that_is_not_ours_stores_nothing,
    an_attempt_that_was_never_dialled_has_no_leg,
    who_answered_is_stored_with_the_attempt_and_with_the_notice,
    a_forgotten_call_takes_its_attempts_and_legs_along,
}

/// A leg that was refused.
fn refused(trunk: &str, code: u16) -> Leg {
    Leg {
        trunk: trunk.to_owned(),
        address: "192.0.2.7:5060".parse().unwrap(),
        transport: Some("udp".to_owned()),
        sent_at: now(),
        rang_at: None,
        answered_at: None,
        ended_at: now() + SignedDuration::from_millis(40),
        sip_code: Some(code),
        q850_cause: Some(41),
        phrase: Some("Temporary failure 临时".to_owned()),
        hung_up_by: HungUpBy::Us,
        hang_up_reason: Some(HangUpReason::NoProgress),
        keys: Vec::new(),
        heard: None,
        media: LegMedia::default(),
    }
}

fn key(key: char, after: u64) -> LegKey {
    LegKey {
        key,
        after: Duration::from_millis(after),
    }
}

/// A leg that was answered, with sound.
fn answered() -> Leg {
    Leg {
        address: "[2001:db8::7]:5061".parse().unwrap(),
        transport: Some("tls".to_owned()),
        rang_at: Some(now() + SignedDuration::from_millis(100)),
        answered_at: Some(now() + SignedDuration::from_millis(900)),
        q850_cause: None,
        phrase: None,
        hung_up_by: HungUpBy::Them,
        hang_up_reason: None,
        keys: vec![key('1', 2340), key('#', 0)],
        heard: Some(Hearing {
            answered_by: Some(AnsweredBy::Machine),
            tone: Some(HeardTone::Fax),
            after: Duration::from_millis(1840),
        }),
        media: LegMedia {
            codec: Some("PCMA".to_owned()),
            address: Some("[2001:db8::7]:20000".parse().unwrap()),
            to_play: Duration::from_secs(12),
            played: Duration::from_millis(9_980),
            packets_sent: 500,
            packets_late: 3,
            packets_received: 480,
            packets_lost: 20,
            jitter: Duration::from_micros(1_250),
            worst_jitter: Duration::from_millis(30),
            round_trip: Some(Duration::from_micros(84_300)),
            peer_lost: Some(-2),
        },
        ..refused("second", 200)
    }
}

/// A leg whose process is gone, and its trunk too.
fn lost() -> Leg {
    Leg {
        transport: None,
        sip_code: None,
        q850_cause: None,
        phrase: None,
        hung_up_by: HungUpBy::Unknown,
        hang_up_reason: None,
        ..refused("gone", 0)
    }
}

async fn put_back(store: &dyn Store, claimed: &ClaimedCall, legs: Vec<Leg>) -> bool {
    let requeue = Requeue {
        pause: SignedDuration::ZERO,
        tries: 1,
        legs,
        is_held_back: false,
    };
    store.requeue_call(claimed, requeue).await.unwrap()
}

async fn history(store: &dyn Store, claimed: &ClaimedCall) -> CallHistory {
    store.call_history(&claimed.call.sid).await.unwrap()
}

fn legs_of(history: &CallHistory) -> Vec<(u16, u32, Leg)> {
    let legs = history.legs.iter();
    legs.map(|one| (one.attempt.number(), one.number, one.leg.clone()))
        .collect()
}

async fn legs_of_every_round_are_stored_in_order_with_the_end(database: Database) {
    let store = with_account(&database).await;
    let call = call("8613800000001");
    store.accept_call(order(call.clone())).await.unwrap();
    let first = claim(&store, &node(1), 1).await.remove(0);
    assert_eq!(first.attempt, AttemptNumber::FIRST);
    assert!(
        put_back(
            &*store,
            &first,
            vec![refused("first", 503), refused("second", 500)]
        )
        .await
    );
    let second = claim(&store, &node(1), 1).await.remove(0);
    assert!(put_back(&*store, &second, vec![]).await);
    let third = claim(&store, &node(1), 1).await.remove(0);
    assert!(put_back(&*store, &third, vec![lost()]).await);
    let stored = history(&*store, &first).await;
    let before = vec![
        (1, 1, refused("first", 503)),
        (1, 2, refused("second", 500)),
        (1, 3, lost()),
    ];
    assert_eq!(legs_of(&stored), before);
    assert_eq!(stored.attempts, [], "it has not ended");
    assert!(
        !put_back(&*store, &first, vec![refused("late", 500)]).await,
        "whoever has lost the call stores nothing"
    );

    let last = claim(&store, &node(1), 1).await.remove(0);
    let end = EndedCall {
        legs: vec![refused("first", 503), answered()],
        ..ended(&last, now())
    };
    assert!(store.end_call(end.clone()).await.unwrap());
    let stored = history(&*store, &first).await;
    let after = [(1, 4, refused("first", 503)), (1, 5, answered())];
    assert_eq!(legs_of(&stored), [before, after.to_vec()].concat());
    let attempt = Attempt {
        choice: None,
        answered_by: None,
        voice: Some("anna".to_owned()),
        number: AttemptNumber::FIRST,
        to: call.number,
        outcome: Outcome::Talked,
        dialled_at: end.dialled_at,
        answered_at: end.answered_at,
        ended_at: end.ended_at,
    };
    assert_eq!(stored.attempts, [attempt]);
    let line = support::bills::line_of(&*store, last.call.sid.as_str(), end.ended_at).await;
    assert_eq!(line.call_sid.as_deref(), Some(last.call.sid.as_str()));
}

async fn who_answered_is_stored_with_the_attempt_and_with_the_notice(database: Database) {
    let store = with_account(&database).await;
    let notice = Notice {
        machine: Some(MachineDetection::HangUp),
        ..Notice::single()
    };
    let call = NewCall {
        notice: Some(Arc::new(notice)),
        ..call("8613800000001")
    };
    store.accept_call(order(call)).await.unwrap();
    let claimed = claim(&store, &node(1), 1).await.remove(0);
    let end = EndedCall {
        legs: vec![answered()],
        outcome: Outcome::Machine,
        notice: Some(NoticeEnd {
            ending: NoticeEnding::Exhausted,
            outcome: Outcome::Machine,
            attempts: 1,
            confirmed: None,
            answered_by: Some(AnsweredBy::Machine),
            dialled_at: Some(now()),
            answered_at: Some(now()),
            ended_at: now(),
        }),
        ..ended(&claimed, now())
    };
    assert!(store.end_call(end).await.unwrap());
    let stored = history(&*store, &claimed).await;
    let machine = Some(AnsweredBy::Machine);
    assert_eq!(stored.attempts[0].answered_by, machine);
    assert_eq!(stored.legs[0].leg, answered());
    let progress = store.call_progress(&account(), &claimed.call.sid).await;
    let progress = progress.unwrap().unwrap();
    assert_eq!(progress.outcome, Some(Outcome::Machine));
    assert_eq!(progress.notice.unwrap().answered_by, machine);
}

async fn an_end_that_is_not_ours_stores_nothing(database: Database) {
    let store = with_account(&database).await;
    store
        .accept_call(order(call("8613800000001")))
        .await
        .unwrap();
    let old = claim(&store, &node(1), 1).await.remove(0);
    assert!(put_back(&*store, &old, vec![]).await);
    let new = claim(&store, &node(1), 1).await.remove(0);
    let end = |claimed: &ClaimedCall, leg| EndedCall {
        legs: vec![leg],
        ..ended(claimed, now())
    };
    assert!(!store.end_call(end(&old, lost())).await.unwrap());
    assert_eq!(history(&*store, &old).await, CallHistory::default());
    assert!(store.end_call(end(&new, answered())).await.unwrap());
    assert!(
        !store.end_call(end(&new, lost())).await.unwrap(),
        "it ends once"
    );
    let stored = history(&*store, &new).await;
    assert_eq!(legs_of(&stored), [(1, 1, answered())]);
    assert_eq!(stored.attempts.len(), 1);
}

async fn an_attempt_that_was_never_dialled_has_no_leg(database: Database) {
    let store = with_account(&database).await;
    store
        .accept_call(order(call("8613800000001")))
        .await
        .unwrap();
    let claimed = claim(&store, &node(1), 1).await.remove(0);
    let expired = EndedCall {
        outcome: Outcome::Expired,
        dialled_at: None,
        answered_at: None,
        ..ended(&claimed, now())
    };
    assert!(store.end_call(expired).await.unwrap());
    let stored = history(&*store, &claimed).await;
    assert_eq!(stored.legs, []);
    let attempt = &stored.attempts[0];
    assert_eq!(
        (attempt.outcome, attempt.dialled_at),
        (Outcome::Expired, None)
    );
}

async fn a_forgotten_call_takes_its_attempts_and_legs_along(database: Database) {
    let store = with_account(&database).await;
    for number in ["8613800000001", "8613800000002"] {
        store.accept_call(order(call(number))).await.unwrap();
    }
    let claimed = claim(&store, &node(1), 2).await;
    for (claimed, seconds) in claimed.iter().zip([0, 3600]) {
        let at = now() + SignedDuration::from_secs(seconds);
        let end = EndedCall {
            legs: vec![answered()],
            callback: None,
            ..ended(claimed, at)
        };
        assert!(store.end_call(end).await.unwrap());
    }
    let between = now() + SignedDuration::from_secs(600);
    assert_eq!(forget_calls(&*store, between).await, 1);
    assert_eq!(history(&*store, &claimed[0]).await, CallHistory::default());
    let kept = history(&*store, &claimed[1]).await;
    assert_eq!((kept.attempts.len(), kept.legs.len()), (1, 1));
}
