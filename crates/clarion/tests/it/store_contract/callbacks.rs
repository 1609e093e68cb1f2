//! What every store promises about callbacks: leases with a fence, attempts and what follows from them, replay.

use std::sync::Arc;

use clarion::domain::account::{ApplicationChange, CallbackSecret};
use clarion::domain::callback::{
    CallbackAttempt, CallbackState, ClaimedCallback, DeliveryResult, EndedAttempt, NextDelivery,
};
use clarion::store::{CallbackFilter, Database, ReplayFrom, ReplayStep, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use super::order;
use super::with_account;
use crate::support::owed::{self, Claiming, call, key, owe, owed_to, pass};
use crate::support::{self, app_id};

contract! {
    an_owed_callback_is_claimed_once_with_everything_that_a_delivery_needs,
    owing_the_same_again_changes_nothing,
    each_host_gets_what_it_has_room_for_and_the_next_due_time_is_told,
    many_claims_at_once_never_give_one_callback_twice,
    attempts_are_recorded_with_what_follows_from_them,
    a_lost_lease_records_nothing,
    released_and_lost_callbacks_are_due_again,
    a_replay_starts_the_schedule_again_and_keeps_the_attempts,
    many_callbacks_are_replayed_a_step_at_a_time,
    lists_are_filtered_and_paged,
    a_search_looks_at_some_thousands_and_goes_on_from_there,
    those_few_that_wait_are_found_at_once,
    the_backlog_is_what_has_not_been_delivered,
}

fn now() -> Timestamp {
    "2026-11-15T02:35:09Z".parse().unwrap()
}

fn after(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

fn by(node: &'static str) -> Claiming {
    Claiming {
        node,
        ..Claiming::default()
    }
}

async fn owing(database: &Database, urls: &[&str]) -> Arc<dyn Store> {
    let store = with_account(database).await;
    let owed = (1..).zip(urls);
    let owed = owed.map(|(number, url)| owed_to(url, number, now()));
    owe(database, owed.collect()).await;
    store
}

async fn claimed(store: &dyn Store, claiming: Claiming) -> Vec<ClaimedCallback> {
    owed::claim(store, &claiming).await.0
}

fn ended(callback: &ClaimedCallback, verdict: DeliveryResult, next: NextDelivery) -> EndedAttempt {
    EndedAttempt {
        lease: callback.lease.clone(),
        attempt: CallbackAttempt {
            started_at: now(),
            milliseconds: 12,
            verdict,
            status: Some(503),
            error: Some("HTTP status 503".into()),
            answer: Some("答 <\u{fffd}>".into()),
        },
        ended_at: after(1),
        next,
    }
}

/// The limit, less the time that the test has taken.
fn assert_is_in_a(seconds: i64, wait: Option<SignedDuration>) {
    let (wait, limit) = (
        wait.expect("a next one"),
        SignedDuration::from_secs(seconds),
    );
    assert!(wait > SignedDuration::ZERO && wait <= limit, "{wait}");
}

async fn an_owed_callback_is_claimed_once_with_everything_that_a_delivery_needs(
    database: Database,
) {
    let store = owing(&database, &["http://h/cb?a=1"]).await;
    let secret = CallbackSecret::from_key(&[7; 32]);
    let change = ApplicationChange {
        callback_secret: Some(Some(secret.clone())),
        ..ApplicationChange::default()
    };
    store.change_application(&app_id(), change).await.unwrap();
    let found = claimed(&*store, by("n")).await;
    let owed = owed_to("http://h/cb?a=1", 1, now());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].lease.key, owed.key);
    assert_eq!((&found[0].body, &found[0].url), (&owed.body, &owed.url));
    assert_eq!(found[0].webhook_id, owed.webhook_id);
    assert_eq!((found[0].attempts, found[0].failures), (0, 0));
    assert_eq!(
        (found[0].time_left, &found[0].secret),
        (None, &Some(secret))
    );
    assert!(
        (0..60).contains(&found[0].lag.as_secs()),
        "{:?}",
        found[0].lag
    );
    assert_eq!(claimed(&*store, by("n")).await, []);
    assert_eq!(claimed(&*store, by("other")).await, []);
    let (callback, attempts) = store.callback(&key(1)).await.unwrap().unwrap();
    assert_eq!(callback.state, CallbackState::Delivering);
    assert_eq!(attempts, []);
}

async fn owing_the_same_again_changes_nothing(database: Database) {
    let store = owing(&database, &["http://h/"]).await;
    let found = claimed(&*store, by("n")).await;
    let delivered = ended(
        &found[0],
        DeliveryResult::Delivered,
        NextDelivery::Delivered,
    );
    store.record_attempts(vec![delivered]).await.unwrap();
    owe(&database, vec![owed_to("http://h/", 1, now())]).await;
    assert_eq!(claimed(&*store, by("n")).await, []);
}

async fn each_host_gets_what_it_has_room_for_and_the_next_due_time_is_told(database: Database) {
    let urls = [
        "http://a/",
        "http://a/",
        "http://a/",
        "http://b/",
        "http://c:81/",
    ];
    let store = owing(&database, &urls).await;
    owe(&database, vec![owed_to("http://d/", 9, now())]).await;
    let later = format!(
        "UPDATE callbacks SET due_at = due_at + 60000 WHERE call_sid = '{}'",
        call(9)
    );
    support::execute(&database, &later).await;
    let mut small = by("n");
    small.per_receiver = 2;
    small.without = "c:81";
    let (found, next_due) = owed::claim(&*store, &small).await;
    let mut hosts: Vec<_> = found.iter().map(|found| found.url.host()).collect();
    hosts.sort();
    assert_eq!(hosts, ["a:80", "a:80", "b:80"]);
    assert_is_in_a(60, next_due);
    small.without = "a:80";
    small.receivers = 1;
    let found = claimed(&*store, small.clone()).await;
    assert_eq!(found[0].url.host(), "c:81");
    let found = claimed(&*store, small.clone()).await;
    assert_eq!(found, [], "only a host without room is left");
    pass(&database, SignedDuration::from_secs(60)).await;
    let found = claimed(&*store, small).await;
    assert_eq!(found[0].url.host(), "d:80");
}

async fn many_claims_at_once_never_give_one_callback_twice(database: Database) {
    let urls = ["http://a/", "http://b/"].repeat(100);
    let store = owing(&database, &urls).await;
    let other = super::open(&database).await;
    let mut claiming = tokio::task::JoinSet::new();
    for number in 0..20_u32 {
        let store = Arc::clone(if number % 2 == 0 { &store } else { &other });
        claiming.spawn(async move { claimed(&*store, by("n")).await });
    }
    let mut seen = std::collections::HashSet::new();
    while let Some(found) = claiming.join_next().await {
        for callback in found.unwrap() {
            assert!(seen.insert(callback.lease.key.clone()));
        }
    }
    while seen.len() < 200 {
        let found = claimed(&*store, by("n")).await;
        assert!(!found.is_empty(), "{} of 200", seen.len());
        seen.extend(found.into_iter().map(|callback| callback.lease.key));
    }
}

async fn attempts_are_recorded_with_what_follows_from_them(database: Database) {
    let store = owing(&database, &["http://a/", "http://b/"]).await;
    let found = claimed(&*store, by("n")).await;
    let later = NextDelivery::RetryAfter(SignedDuration::from_secs(30));
    let attempts: Vec<_> = found
        .iter()
        .map(|callback| ended(callback, DeliveryResult::BadStatus, later))
        .collect();
    let mut recorded = store.record_attempts(attempts.clone()).await.unwrap();
    recorded.sort();
    assert_eq!(recorded, [key(1), key(2)]);
    let (found_now, next_due) = owed::claim(&*store, &by("n")).await;
    assert_eq!(found_now, []);
    assert_is_in_a(30, next_due);

    pass(&database, SignedDuration::from_secs(30)).await;
    let found = claimed(&*store, by("n")).await;
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].attempts, found[0].failures), (1, 1));
    let follows = [NextDelivery::Delivered, NextDelivery::GivenUp];
    let verdicts = [DeliveryResult::Delivered, DeliveryResult::Blocked];
    let last = found.iter().zip(verdicts).zip(follows);
    let last = last.map(|((callback, verdict), next)| ended(callback, verdict, next));
    store.record_attempts(last.collect()).await.unwrap();
    for (callback, next) in found.iter().zip(follows) {
        let sid = &callback.lease.key;
        let (stored, history) = store.callback(sid).await.unwrap().unwrap();
        assert_eq!((stored.state, stored.attempts), (next.state(), 2));
        assert_eq!((stored.due_at, stored.finished_at), (None, Some(after(1))));
        assert_eq!(history[0], attempts[0].attempt);
        assert_eq!(history.len(), 2);
    }
}

async fn a_lost_lease_records_nothing(database: Database) {
    let store = owing(&database, &["http://a/"]).await;
    let stale = claimed(&*store, by("n")).await;
    store
        .release_callbacks(vec![stale[0].lease.clone()])
        .await
        .unwrap();
    let current = claimed(&*store, by("other")).await;
    assert!(current[0].lease.fence > stale[0].lease.fence);
    let late = ended(
        &stale[0],
        DeliveryResult::Delivered,
        NextDelivery::Delivered,
    );
    assert_eq!(store.record_attempts(vec![late]).await.unwrap(), []);
    store
        .release_callbacks(vec![stale[0].lease.clone()])
        .await
        .unwrap();
    let (callback, attempts) = store.callback(&key(1)).await.unwrap().unwrap();
    assert_eq!(callback.state, CallbackState::Delivering);
    assert_eq!(attempts, []);
    let delivered = ended(
        &current[0],
        DeliveryResult::Delivered,
        NextDelivery::Delivered,
    );
    let twice = store
        .record_attempts(vec![delivered.clone()])
        .await
        .unwrap();
    assert_eq!(twice, [key(1)]);
    assert_eq!(store.record_attempts(vec![delivered]).await.unwrap(), []);
}

async fn released_and_lost_callbacks_are_due_again(database: Database) {
    let store = owing(&database, &["http://a/"]).await;
    let mut short = by("lost");
    short.lease = SignedDuration::from_millis(-1);
    assert_eq!(claimed(&*store, short).await.len(), 1);
    assert_eq!(store.reclaim_callbacks("n").await.unwrap(), 1);
    assert_eq!(store.reclaim_callbacks("n").await.unwrap(), 0);
    let found = claimed(&*store, by("n")).await;
    assert_eq!((found.len(), found[0].attempts), (1, 0));
    // Neither our own nor one whose time has not come.
    assert_eq!(store.reclaim_callbacks("n").await.unwrap(), 0);
    store
        .release_callbacks(vec![found[0].lease.clone()])
        .await
        .unwrap();
    assert_eq!(claimed(&*store, by("n")).await.len(), 1);
}

async fn a_replay_starts_the_schedule_again_and_keeps_the_attempts(database: Database) {
    let store = owing(&database, &["http://a/"]).await;
    let found = claimed(&*store, by("n")).await;
    let busy = store.replay_callback(&key(1)).await;
    assert!(matches!(busy, Err(StoreError::Conflict(_))), "{busy:?}");
    let given_up = ended(&found[0], DeliveryResult::TimedOut, NextDelivery::GivenUp);
    store.record_attempts(vec![given_up]).await.unwrap();
    store.replay_callback(&key(1)).await.unwrap();
    let found = claimed(&*store, by("n")).await;
    assert_eq!((found[0].attempts, found[0].failures), (1, 0));
    let delivered = ended(
        &found[0],
        DeliveryResult::Delivered,
        NextDelivery::Delivered,
    );
    store.record_attempts(vec![delivered]).await.unwrap();
    let (_, attempts) = store.callback(&key(1)).await.unwrap().unwrap();
    let verdicts: Vec<_> = attempts.iter().map(|attempt| attempt.verdict).collect();
    assert_eq!(
        verdicts,
        [DeliveryResult::TimedOut, DeliveryResult::Delivered]
    );
    let missing = store.replay_callback(&key(2)).await;
    assert!(matches!(missing, Err(StoreError::Missing(_))));
    assert_eq!(store.callback(&key(2)).await.unwrap(), None);
}

async fn many_callbacks_are_replayed_a_step_at_a_time(database: Database) {
    let urls = [
        "http://a/",
        "http://b/",
        "http://a/",
        "http://a/",
        "http://a/",
        "http://a/",
    ];
    let store = owing(&database, &urls).await;
    // The sixth waits; an event of the first was given up too.
    owe(&database, vec![owed::event_to("http://a/", 1, 1)]).await;
    let given_up = format!(
        "UPDATE callbacks SET state = 3, due_at = NULL, finished_at = 1, failures = 4 WHERE call_sid <= '{}'; \
         UPDATE callbacks SET state = 2, due_at = NULL, finished_at = 1 WHERE call_sid = '{}'",
        call(4),
        call(5)
    );
    support::execute(&database, &given_up).await;
    let mut step = ReplayStep {
        from: ReplayFrom::GivenUp,
        app: Some(app_id()),
        host: Some("a:80".to_owned()),
        after: call(0),
        limit: 3,
    };
    let first = store.replay_callbacks(step.clone()).await.unwrap();
    assert_eq!((first.count, &first.next), (2, &Some(call(3))));
    step.after = first.next.unwrap();
    let second = store.replay_callbacks(step.clone()).await.unwrap();
    assert_eq!((second.count, second.next), (1, None));
    let states = async || {
        let mut states = Vec::new();
        for number in 1..=6 {
            let (callback, _) = store.callback(&key(number)).await.unwrap().unwrap();
            states.push(callback.state);
        }
        states
    };
    let (waiting, given_up) = (CallbackState::Waiting, CallbackState::GivenUp);
    let delivered = CallbackState::Delivered;
    let wanted = [waiting, given_up, waiting, waiting, delivered, waiting];
    assert_eq!(states().await, wanted);
    let event = store.callback(&owed::event_to("http://a/", 1, 1).key).await;
    assert_eq!(event.unwrap().unwrap().0.state, given_up, "events are not");
    // Nobody else's, and not what was not asked for.
    step.after = call(0);
    step.app = Some("f".repeat(32).parse().unwrap());
    assert_eq!(store.replay_callbacks(step.clone()).await.unwrap().count, 0);
    (step.app, step.host) = (None, None);
    step.from = ReplayFrom::Delivered;
    let last = store.replay_callbacks(step).await.unwrap();
    assert_eq!((last.count, last.next), (1, None));
    let found = claimed(&*store, by("n")).await;
    assert_eq!(found.len(), 5);
    assert!(found.iter().all(|callback| callback.failures == 0));
}

async fn lists_are_filtered_and_paged(database: Database) {
    let store = owing(&database, &["http://a/", "http://b/", "http://a/"]).await;
    store.accept_call(order(super::call(3))).await.unwrap();
    let mut only_b = by("n");
    only_b.without = "a:80";
    let found = claimed(&*store, only_b).await;
    let given_up = ended(&found[0], DeliveryResult::Blocked, NextDelivery::GivenUp);
    store.record_attempts(vec![given_up]).await.unwrap();
    let numbers = async |filter: CallbackFilter| {
        let found = store.callbacks(filter).await.unwrap();
        let sids = found.callbacks.iter();
        let sids = sids.map(|callback| callback.key.to_string());
        sids.map(|sid| sid.trim_start_matches('0').to_owned())
            .collect::<Vec<_>>()
    };
    let all = CallbackFilter {
        limit: 100,
        ..CallbackFilter::default()
    };
    assert_eq!(numbers(all.clone()).await, ["3", "2", "1"]);
    for (state, wanted) in [
        (CallbackState::Waiting, vec!["3", "1"]),
        (CallbackState::GivenUp, vec!["2"]),
        (CallbackState::Delivering, vec![]),
        (CallbackState::Delivered, vec![]),
    ] {
        let filter = CallbackFilter {
            state: Some(state),
            ..all.clone()
        };
        assert_eq!(numbers(filter).await, wanted);
    }
    let filter = CallbackFilter {
        host: Some("a:80".into()),
        app: Some(app_id()),
        before: Some(key(3)),
        ..all.clone()
    };
    assert_eq!(numbers(filter).await, ["1"]);
    let filter = CallbackFilter {
        limit: 2,
        ..all.clone()
    };
    assert_eq!(numbers(filter).await, ["3", "2"]);
    let filter = CallbackFilter {
        app: Some("f".repeat(32).parse().unwrap()),
        ..all.clone()
    };
    assert_eq!(numbers(filter).await, [""; 0]);
    // The number is the call's, and prints itself masked.
    let found = store.callbacks(all).await.unwrap().callbacks;
    let shown = found[0].number.as_ref().unwrap().to_string();
    assert!(!shown.contains("13800000000"), "{shown}");
    assert_eq!(found[1].number, None);
}

/// So many of the oldest callbacks of `many` are to this receiver, superseded.
const RARE: u32 = 3;

/// More callbacks than one search looks at, all delivered, but for some of the oldest.
async fn many(database: &Database) -> Arc<dyn Store> {
    let store = with_account(database).await;
    let receiver = |number| {
        if number <= RARE {
            "http://rare/"
        } else {
            "http://h/"
        }
    };
    let owed = (1..=5_100).map(|number| owed_to(receiver(number), number, now()));
    owe(database, owed.collect()).await;
    for change in [
        "UPDATE callbacks SET state = 2, due_at = NULL",
        "UPDATE callbacks SET state = 4, app_id = 'ffffffffffffffffffffffffffffffff' WHERE host = 'rare:80'",
    ] {
        support::execute(database, change).await;
    }
    store
}

async fn a_search_looks_at_some_thousands_and_goes_on_from_there(database: Database) {
    let store = many(&database).await;
    let page = CallbackFilter {
        limit: 2,
        ..CallbackFilter::default()
    };
    for wanted in [
        CallbackFilter {
            host: Some("rare:80".into()),
            ..page.clone()
        },
        CallbackFilter {
            app: Some("f".repeat(32).parse().unwrap()),
            ..page.clone()
        },
        CallbackFilter {
            state: Some(CallbackState::Superseded),
            ..page.clone()
        },
    ] {
        let first = store.callbacks(wanted.clone()).await.unwrap();
        assert!(first.callbacks.is_empty(), "{wanted:?}");
        assert_eq!(first.searched_until, Some(key(101)), "{wanted:?}");
        assert_eq!(first.next, first.searched_until);
        let mut wanted = CallbackFilter {
            before: first.next,
            ..wanted
        };
        let full = store.callbacks(wanted.clone()).await.unwrap();
        let keys: Vec<_> = full.callbacks.into_iter().map(|one| one.key).collect();
        assert_eq!((keys, full.searched_until), (vec![key(3), key(2)], None));
        wanted.before = full.next;
        let last = store.callbacks(wanted).await.unwrap();
        assert_eq!(last.callbacks.len(), 1);
        assert_eq!((last.next, last.searched_until), (None, None));
    }
    // What asks for nothing in particular has its page.
    let newest = store.callbacks(page.clone()).await.unwrap();
    assert_eq!(
        (newest.next, newest.searched_until),
        (Some(key(5_099)), None)
    );
}

async fn those_few_that_wait_are_found_at_once(database: Database) {
    let store = many(&database).await;
    let waits = "UPDATE callbacks SET state = 0, due_at = owed_at WHERE host = 'rare:80'";
    support::execute(&database, waits).await;
    let wanted = CallbackFilter {
        state: Some(CallbackState::Waiting),
        host: Some("rare:80".into()),
        limit: 2,
        ..CallbackFilter::default()
    };
    for host in [None, wanted.host.clone()] {
        let wanted = CallbackFilter {
            host,
            ..wanted.clone()
        };
        let page = store.callbacks(wanted.clone()).await.unwrap();
        assert_eq!(
            (page.next.clone(), page.searched_until),
            (Some(key(2)), None)
        );
        let before = CallbackFilter {
            before: page.next,
            ..wanted
        };
        let page = store.callbacks(before).await.unwrap();
        assert_eq!((page.callbacks[0].key.clone(), page.next), (key(1), None));
    }
    // Where too many wait, the newest are looked at as in any other search.
    let waits = "UPDATE callbacks SET state = 0, due_at = owed_at";
    support::execute(&database, waits).await;
    let of_all = CallbackFilter {
        host: None,
        ..wanted.clone()
    };
    let newest = store.callbacks(of_all).await.unwrap();
    assert_eq!(
        (newest.next, newest.searched_until),
        (Some(key(5_099)), None)
    );
    let of_rare = store.callbacks(wanted).await.unwrap();
    assert_eq!((of_rare.callbacks.len(), of_rare.searched_until), (2, None));
}

async fn the_backlog_is_what_has_not_been_delivered(database: Database) {
    let store = owing(&database, &["http://a/", "http://b/"]).await;
    owe(&database, vec![owed_to("http://c/", 9, after(-60))]).await;
    let backlog = store.callback_backlog().await.unwrap();
    assert_eq!(
        (backlog.waiting, backlog.oldest_owed_at),
        (3, Some(after(-60)))
    );
    let found = claimed(&*store, by("n")).await;
    assert_eq!(store.callback_backlog().await.unwrap(), backlog);
    let delivered = found
        .iter()
        .map(|callback| ended(callback, DeliveryResult::Delivered, NextDelivery::Delivered));
    store.record_attempts(delivered.collect()).await.unwrap();
    let backlog = store.callback_backlog().await.unwrap();
    assert_eq!((backlog.waiting, backlog.oldest_owed_at), (0, None));
}
