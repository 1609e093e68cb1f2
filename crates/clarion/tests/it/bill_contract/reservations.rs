//! What is set aside for a call of an account with a balance or a limit.

use std::sync::Arc;

use clarion::domain::bill::rating::Shortage;
use clarion::domain::outcome::Outcome;
use clarion::domain::request_key::Accepted;
use clarion::store::Database;
use tokio::task::JoinSet;

use super::{NUMBER, account, funds, limit, now, rate};
use crate::store_contract::order;
use crate::store_contract::with_account;
use crate::support::bills::{bill_of, call, claim, ended, line_of, money};

contract! {
    a_limit_is_never_overrun_however_many_ask_at_once,
    a_limit_holds_at_every_moment_of_a_busy_hour,
    a_reservation_is_tightened_and_tells_the_longest_talk,
    a_rate_that_changes_during_a_call_does_not_change_what_was_reserved,
}

/// Fifty calls at once out of money for twelve and a half.
async fn a_limit_is_never_overrun_however_many_ask_at_once(database: Database) {
    let store = with_account(&database).await;
    store
        .set_rate(&account(), rate("*", 60, "0.4", "0"))
        .await
        .unwrap();
    for (balance, spending_limit, shortage) in [
        (Some("5"), None, Shortage::Balance),
        (None, Some("5"), Shortage::SpendingLimit),
    ] {
        let before = funds(&*store).await;
        let top = spending_limit.map(|limit| money(limit).plus(before.spent).to_string());
        limit(&*store, balance, top.as_deref()).await;
        let mut asking = JoinSet::new();
        for number in 0..50 {
            let store = Arc::clone(&store);
            asking.spawn(async move {
                let call = call(&format!("861380000{number:04}"), now());
                store
                    .accept_call_within_limits(order(call), 60)
                    .await
                    .unwrap()
            });
        }
        let answers = asking.join_all().await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 12);
        assert!(answers.iter().all(|answer| *answer
            != Err(match shortage {
                Shortage::Balance => Shortage::SpendingLimit,
                Shortage::SpendingLimit => Shortage::Balance,
            })));
        assert_eq!(funds(&*store).await.reserved, money("4.80"));
        // All of them talk, each for longer than was paid for; they end at once.
        let mut ending = JoinSet::new();
        for claimed in claim(&*store, 100).await {
            let store = Arc::clone(&store);
            ending.spawn(async move {
                let end = ended(&claimed, Some(61), Outcome::Talked, now());
                assert!(store.end_call(end).await.unwrap());
            });
        }
        ending.join_all().await;
        let after = funds(&*store).await;
        assert_eq!(after.reserved, money("0"));
        assert_eq!(after.spent, before.spent.plus(money("4.80")));
        assert_eq!(after.balance, balance.map(|_| money("0.20")));
        let refused = store
            .accept_call_within_limits(order(call(NUMBER, now())), 60)
            .await;
        assert_eq!(refused.unwrap(), Err(shortage));
    }
    let lines = store
        .bill_lines(&bill_of("2026-11-15"), None, 100)
        .await
        .unwrap();
    let fees = lines
        .iter()
        .fold(money("0"), |sum, line| sum.plus(line.fee));
    assert_eq!((lines.len(), fees), (24, funds(&*store).await.spent));
}

/// Many ask, tighten and end at once, by chance, while somebody looks on.
async fn a_limit_holds_at_every_moment_of_a_busy_hour(database: Database) {
    let store = with_account(&database).await;
    let rate = rate("*", 60, "0.7", "0.1");
    store.set_rate(&account(), rate).await.unwrap();
    limit(&*store, Some("40"), Some("30")).await;
    let mut busy = JoinSet::new();
    for asker in 0..6 {
        let store = Arc::clone(&store);
        busy.spawn(async move {
            for round in 0..15 {
                let call = call(&format!("86138{asker:04}{round:04}"), now());
                let [random, talk] = clarion::random::bytes();
                let longest = u32::from(random) * 4 + 1;
                let _ = store
                    .accept_call_within_limits(order(call), longest)
                    .await
                    .unwrap();
                for claimed in claim(&*store, 2).await {
                    let (sid, lease) = (&claimed.call.sid, &claimed.lease);
                    let tight = u32::from(talk) * 2 + 1;
                    store.tighten_reservation(sid, lease, tight).await.unwrap();
                    let talked = (talk % 3 > 0).then(|| i64::from(talk) * 3);
                    let outcome = talked.map_or(Outcome::Busy, |_| Outcome::Talked);
                    let end = ended(&claimed, talked, outcome, now());
                    assert!(store.end_call(end).await.unwrap());
                }
            }
        });
    }
    let mut looks = 0;
    while !busy.is_empty() {
        let now_has = funds(&*store).await;
        assert!(
            now_has.spent.plus(now_has.reserved) <= money("30"),
            "{now_has:?}"
        );
        assert!(now_has.reserved >= money("0"), "{now_has:?}");
        assert_eq!(now_has.balance, Some(money("40").minus(now_has.spent)));
        looks += 1;
        while let Some(done) = busy.try_join_next() {
            done.unwrap();
        }
    }
    for claimed in claim(&*store, 100).await {
        let end = ended(&claimed, None, Outcome::Expired, now());
        store.end_call(end).await.unwrap();
    }
    let after = funds(&*store).await;
    let lines = store
        .bill_lines(&bill_of("2026-11-15"), None, 1000)
        .await
        .unwrap();
    let fees = lines
        .iter()
        .fold(money("0"), |sum, line| sum.plus(line.fee));
    assert_eq!((after.reserved, after.spent), (money("0"), fees));
    println!("{} calls, {fees} spent, {looks} looks", lines.len());
}

async fn a_reservation_is_tightened_and_tells_the_longest_talk(database: Database) {
    let store = with_account(&database).await;
    store
        .set_rate(&account(), rate("*", 60, "1", "0"))
        .await
        .unwrap();
    limit(&*store, Some("7.5"), None).await;
    let accepted = call(NUMBER, now());
    for _ in 0..2 {
        // The second time changes nothing.
        let again = store
            .accept_call_within_limits(order(accepted.clone()), 600)
            .await;
        assert_eq!(again.unwrap(), Ok(Accepted::New));
        assert_eq!(
            funds(&*store).await.reserved,
            money("7"),
            "what can be paid, in units"
        );
    }
    let claimed = claim(&*store, 1).await.remove(0);
    let mut stranger = claimed.lease.clone();
    stranger.fence += 1;
    let sid = &accepted.sid;
    let tighten = async |lease, longest| {
        store
            .tighten_reservation(sid, lease, longest)
            .await
            .unwrap()
    };
    assert_eq!(tighten(&stranger, 61).await, Some(420));
    assert_eq!(tighten(&claimed.lease, 61).await, Some(120));
    assert_eq!(
        tighten(&claimed.lease, 600).await,
        Some(120),
        "never more again"
    );
    assert_eq!(funds(&*store).await.reserved, money("2"));
    let end = ended(&claimed, Some(30), Outcome::Talked, now());
    assert!(store.end_call(end).await.unwrap());
    let after = funds(&*store).await;
    assert_eq!(
        (after.reserved, after.balance),
        (money("0"), Some(money("6.5")))
    );
    limit(&*store, None, None).await;
    let free = call(NUMBER, now());
    store.accept_call(order(free.clone())).await.unwrap();
    let claimed = claim(&*store, 1).await.remove(0);
    let none = store
        .tighten_reservation(&free.sid, &claimed.lease, 10)
        .await;
    assert_eq!(none.unwrap(), None, "an account without limits");
}

async fn a_rate_that_changes_during_a_call_does_not_change_what_was_reserved(database: Database) {
    let store = with_account(&database).await;
    store
        .set_rate(&account(), rate("*", 60, "1", "0"))
        .await
        .unwrap();
    limit(&*store, Some("1"), None).await;
    let call = call(NUMBER, now());
    let accepted = store
        .accept_call_within_limits(order(call.clone()), 60)
        .await;
    assert_eq!(accepted.unwrap(), Ok(Accepted::New));
    store
        .set_rate(&account(), rate("*", 60, "100", "0"))
        .await
        .unwrap();
    let claimed = claim(&*store, 1).await.remove(0);
    let end = ended(&claimed, Some(60), Outcome::Talked, now());
    assert!(store.end_call(end).await.unwrap());
    assert_eq!(funds(&*store).await.balance, Some(money("0")));
    assert_eq!(
        line_of(&*store, call.sid.as_str(), now()).await.fee,
        money("1")
    );
}
