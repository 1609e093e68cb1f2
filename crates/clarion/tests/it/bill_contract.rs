//! What every store promises about money: rates, reservations, days that stay closed. One suite, run on SQLite and on PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clarion::domain::account::{AccountChange, AccountSid};
use clarion::domain::bill::rating::{Charge, Funds, Rate, Shortage};
use clarion::domain::bill::{BillFile, Totals};
use clarion::domain::claim::NodeId;
use clarion::domain::outcome::Outcome;
use clarion::store::bills::BillToken;
use clarion::store::{Database, Store};
use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;

use crate::store_contract::with_account;
use crate::support::bills::{
    add_records, at, bill_of, call, claim, day, ended, line_of, money, record, talk,
};
use crate::support::{self, SID};

contract! {
    the_longest_prefix_counts_and_the_accounts_own_rate_before_the_platforms,
    a_call_costs_what_its_rate_says_with_and_without_a_reservation,
    a_limit_is_never_overrun_however_many_ask_at_once,
    a_limit_holds_at_every_moment_of_a_busy_hour,
    a_reservation_is_tightened_and_tells_the_longest_talk,
    a_rate_that_changes_during_a_call_does_not_change_what_was_reserved,
    importing_is_idempotent_and_all_or_nothing,
    what_is_closed_never_changes_whatever_ends_meanwhile,
    a_day_is_closed_in_the_middle_of_a_storm,
    closing_a_day_closes_those_before_it_and_they_owe_their_files,
    lines_are_read_page_by_page_in_their_order,
    a_duty_is_done_by_one_node_until_its_lease_ends,
    a_token_opens_its_file_until_it_expires,
    what_has_had_its_time_is_forgotten,
}

const NUMBER: &str = "8613800000000";

fn now() -> Timestamp {
    at("2026-11-15T12:00:00+08:00")
}

fn account() -> AccountSid {
    SID.parse().unwrap()
}

fn rate(prefix: &str, unit_seconds: u32, price: &str, unanswered: &str) -> Rate {
    Rate {
        prefix: prefix.parse().unwrap(),
        unit_seconds,
        price: money(price),
        unanswered: money(unanswered),
    }
}

async fn limit(store: &dyn Store, balance: Option<&str>, spending_limit: Option<&str>) {
    let change = AccountChange {
        balance: Some(balance.map(money)),
        spending_limit: Some(spending_limit.map(money)),
        ..AccountChange::default()
    };
    store.change_account(&account(), change).await.unwrap();
}

async fn funds(store: &dyn Store) -> Funds {
    store.funds(&account()).await.unwrap().unwrap()
}

async fn the_longest_prefix_counts_and_the_accounts_own_rate_before_the_platforms(
    database: Database,
) {
    let store = with_account(&database).await;
    let fee = async |digits: &str| talk(&*store, digits, 61, now()).await.fee.to_string();
    assert_eq!(fee(NUMBER).await, "0.00", "without a rate");
    let defaults = vec![rate("*", 60, "1", "0"), rate("+86138", 60, "2", "0")];
    store.set_default_rates(defaults.clone()).await.unwrap();
    assert_eq!(fee(NUMBER).await, "4.00");
    assert_eq!(fee("8613900000000").await, "2.00");
    for own in [
        rate("+86", 1, "0.001", "0"),
        rate("+861380", 30, "0.1", "0"),
    ] {
        store.set_rate(&account(), own).await.unwrap();
    }
    assert_eq!(fee(NUMBER).await, "0.30");
    assert_eq!(fee("8613900000000").await, "0.061");
    assert_eq!(fee("14155550100").await, "2.00", "the platform's");
    assert_eq!(store.rates(Some(&account())).await.unwrap().len(), 2);
    assert_eq!(store.rates(None).await.unwrap(), defaults);
    let prefix = "+861380".parse().unwrap();
    assert!(store.remove_rate(&account(), &prefix).await.unwrap());
    assert!(!store.remove_rate(&account(), &prefix).await.unwrap());
    assert_eq!(fee(NUMBER).await, "0.061");
}

async fn a_call_costs_what_its_rate_says_with_and_without_a_reservation(database: Database) {
    let store = with_account(&database).await;
    for rate in [
        rate("*", 60, "0.055", "0"),
        rate("*", 1, "0.000001", "0.01"),
        rate("*", 7, "0", "0.02"),
    ] {
        store.set_rate(&account(), rate.clone()).await.unwrap();
        for limited in [false, true] {
            limit(&*store, limited.then_some("1000"), None).await;
            for (talk, outcome) in [
                (Some(0), Outcome::Talked),
                (Some(1), Outcome::Talked),
                (Some(60), Outcome::Talked),
                (Some(61), Outcome::Interrupted),
                (None, Outcome::Busy),
                (None, Outcome::Expired),
            ] {
                let call = call(NUMBER, now());
                let sid = call.sid.clone();
                if limited {
                    let accepted = store.accept_call_within_limits(call, 600).await.unwrap();
                    assert_eq!(accepted, Ok(()));
                } else {
                    store.accept_call(call).await.unwrap();
                }
                let claimed = claim(&*store, now(), 1).await.remove(0);
                let end = ended(&claimed, talk, outcome, now());
                assert!(store.end_call(end).await.unwrap());
                let line = line_of(&*store, sid.as_str(), now()).await;
                let seconds = u32::try_from(talk.unwrap_or(0)).unwrap();
                let wanted = rate.charge(talk.is_some(), seconds, outcome);
                let charge = Charge {
                    units: line.units,
                    rate: line.rate,
                    fee: line.fee,
                };
                assert_eq!(charge, wanted, "{rate:?} {talk:?} {outcome:?} {limited}");
            }
        }
    }
    assert_eq!(funds(&*store).await.reserved, money("0"));
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
                store.accept_call_within_limits(call, 60).await.unwrap()
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
        for claimed in claim(&*store, now(), 100).await {
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
            .accept_call_within_limits(call(NUMBER, now()), 60)
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
                    .accept_call_within_limits(call, longest)
                    .await
                    .unwrap();
                for claimed in claim(&*store, now(), 2).await {
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
    for claimed in claim(&*store, now(), 100).await {
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
        let again = store.accept_call_within_limits(accepted.clone(), 600).await;
        assert_eq!(again.unwrap(), Ok(()));
        assert_eq!(
            funds(&*store).await.reserved,
            money("7"),
            "what can be paid, in units"
        );
    }
    let claimed = claim(&*store, now(), 1).await.remove(0);
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
    store.accept_call(free.clone()).await.unwrap();
    let claimed = claim(&*store, now(), 1).await.remove(0);
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
    let accepted = store.accept_call_within_limits(call.clone(), 60).await;
    assert_eq!(accepted.unwrap(), Ok(()));
    store
        .set_rate(&account(), rate("*", 60, "100", "0"))
        .await
        .unwrap();
    let claimed = claim(&*store, now(), 1).await.remove(0);
    let end = ended(&claimed, Some(60), Outcome::Talked, now());
    assert!(store.end_call(end).await.unwrap());
    assert_eq!(funds(&*store).await.balance, Some(money("0")));
    assert_eq!(
        line_of(&*store, call.sid.as_str(), now()).await.fee,
        money("1")
    );
}

async fn importing_is_idempotent_and_all_or_nothing(database: Database) {
    let store = with_account(&database).await;
    let import = async |records, late| store.import_records(records, late).await.unwrap();
    let (first, second) = (
        record("a", now(), money("1")),
        record("b", now(), money("2")),
    );
    let both = vec![first.clone(), second.clone()];
    assert_eq!(import(both.clone(), false).await.added, 2);
    let again = import(both, false).await;
    assert_eq!((again.added, again.known), (0, 2));

    let fields = async |records, late| {
        let refused = import(records, late).await.refused;
        refused
            .into_iter()
            .map(|(place, fault)| (place, fault.field))
            .collect::<Vec<_>>()
    };
    let mut foreign = record("c", now(), money("1"));
    foreign.record.app = "f".repeat(32).parse().unwrap();
    let good = record("d", now(), money("1"));
    assert_eq!(
        fields(vec![good.clone(), foreign], false).await,
        [(1, "appId")]
    );
    let changed = record("a", now(), money("3"));
    assert_eq!(fields(vec![changed], false).await, [(0, "orderid")]);
    let waiting = call(NUMBER, now());
    store.accept_call(waiting.clone()).await.unwrap();
    let ours = record(waiting.sid.as_str(), now(), money("1"));
    assert_eq!(fields(vec![ours], false).await, [(0, "orderid")]);
    let lines = async |on| {
        store
            .bill_lines(&bill_of(on), None, 100)
            .await
            .unwrap()
            .len()
    };
    assert_eq!(
        lines("2026-11-15").await,
        2,
        "nothing of a file with a refused record"
    );

    store.close_day(day("2026-11-15"), now()).await.unwrap();
    assert_eq!(fields(vec![good.clone()], false).await, [(0, "end")]);
    assert_eq!(import(vec![good.clone()], true).await.added, 1);
    assert_eq!(import(vec![good], true).await.known, 1);
    assert_eq!(
        (lines("2026-11-15").await, lines("2026-11-16").await),
        (2, 1)
    );
}

/// Calls end and records come while the day is closed. What is in it when closing returns is all that ever is.
async fn what_is_closed_never_changes_whatever_ends_meanwhile(database: Database) {
    let store = with_account(&database).await;
    for number in 0..40 {
        let call = call(&format!("861380000{number:04}"), now());
        store.accept_call(call).await.unwrap();
    }
    let mut ending = JoinSet::new();
    for (number, claimed) in claim(&*store, now(), 200).await.into_iter().enumerate() {
        let store = Arc::clone(&store);
        ending.spawn(async move {
            let end = ended(&claimed, Some(1), Outcome::Talked, now());
            assert!(store.end_call(end).await.unwrap());
            let record = record(&format!("r{number}"), now(), money("1"));
            let imported = store.import_records(vec![record], true).await.unwrap();
            assert_eq!(imported.added, 1);
        });
    }
    let lines = async |on| store.bill_lines(&bill_of(on), None, 1000).await.unwrap();
    support::eventually("some have ended", async || {
        lines("2026-11-15").await.len() > 8
    })
    .await;
    store.close_day(day("2026-11-15"), now()).await.unwrap();
    let closed = lines("2026-11-15").await;
    ending.join_all().await;
    assert_eq!(lines("2026-11-15").await, closed);
    let later = lines("2026-11-16").await.len();
    assert_eq!(closed.len() + later, 80);
    assert_eq!(store.first_open_day().await.unwrap(), day("2026-11-16"));
    store.close_day(day("2026-11-14"), now()).await.unwrap();
    assert_eq!(
        store.first_open_day().await.unwrap(),
        day("2026-11-16"),
        "never back"
    );
    println!(
        "{} lines before the closing, {later} after it",
        closed.len()
    );
}

/// Somebody is always adding a line. Closing gets its turn all the same.
async fn a_day_is_closed_in_the_middle_of_a_storm(database: Database) {
    let store = with_account(&database).await;
    let calm = Arc::new(AtomicBool::new(false));
    let mut storm = JoinSet::new();
    for asker in 0..6 {
        let (store, calm) = (Arc::clone(&store), Arc::clone(&calm));
        storm.spawn(async move {
            let mut added = 0;
            while !calm.load(Ordering::Relaxed) {
                let call = call(&format!("86138{asker:04}{added:04}"), now());
                store.accept_call(call).await.unwrap();
                for claimed in claim(&*store, now(), 1).await {
                    let end = ended(&claimed, Some(1), Outcome::Talked, now());
                    assert!(store.end_call(end).await.unwrap());
                    added += 1;
                }
            }
            added
        });
    }
    let lines = async |on| {
        let lines = store.bill_lines(&bill_of(on), None, 100_000).await;
        lines.unwrap().len()
    };
    support::eventually("the storm", async || lines("2026-11-15").await > 20).await;
    let closing = store.close_day(day("2026-11-15"), now());
    let closed = tokio::time::timeout(support::PATIENCE, closing).await;
    closed.expect("its turn comes").unwrap();
    let before = lines("2026-11-15").await;
    support::eventually("lines after it", async || lines("2026-11-16").await > 20).await;
    calm.store(true, Ordering::Relaxed);
    let added: usize = storm.join_all().await.into_iter().sum();
    assert_eq!(lines("2026-11-15").await, before);
    assert_eq!(before + lines("2026-11-16").await, added);
}

/// As a client does who asks for yesterday's bill before the server has made up the nights that it missed.
async fn closing_a_day_closes_those_before_it_and_they_owe_their_files(database: Database) {
    let store = with_account(&database).await;
    for hours in [24 * 5, 24 * 4, 24, 0] {
        let moment = now() - SignedDuration::from_hours(hours);
        let record = record(&format!("r{hours}"), moment, money("1"));
        store.import_records(vec![record], false).await.unwrap();
    }
    store.close_day(day("2026-11-10"), now()).await.unwrap();
    store.close_day(day("2026-11-14"), now()).await.unwrap();
    let closed = store.closed_days().await.unwrap();
    let days: Vec<_> = closed.iter().map(|closed| closed.day.to_string()).collect();
    assert_eq!(days, ["2026-11-10", "2026-11-11", "2026-11-14"]);
    assert!(closed.iter().all(|closed| closed.filed_at.is_none()));
    assert_eq!(store.first_open_day().await.unwrap(), day("2026-11-15"));
    // Days without lines are closed when somebody asks for them.
    store.close_day(day("2026-11-13"), now()).await.unwrap();
    assert_eq!(store.closed_days().await.unwrap().len(), 4);
    store
        .forget_bills(day("2026-11-14"), now(), 10)
        .await
        .unwrap();
    let kept = store.closed_days().await.unwrap();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

async fn lines_are_read_page_by_page_in_their_order(database: Database) {
    let store = with_account(&database).await;
    // Ten records end in the same millisecond: then the id decides.
    for number in [5, 3, 9, 1, 7, 2, 8, 4, 6, 0] {
        let same = record(&format!("same-{number}"), now(), money("1"));
        store.import_records(vec![same], false).await.unwrap();
    }
    add_records(&*store, now() + SignedDuration::from_millis(1), 25).await;
    let of = bill_of("2026-11-15");
    let all = store.bill_lines(&of, None, 100).await.unwrap();
    assert_eq!(all.len(), 35);
    assert!(all.windows(2).all(|pair| pair[0].place() < pair[1].place()));
    let mut paged = Vec::new();
    loop {
        let after = paged.last().map(clarion::domain::bill::BillLine::place);
        let page = store.bill_lines(&of, after, 4).await.unwrap();
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, all);
    assert_eq!(store.bills_of_day(of.day).await.unwrap(), [of]);
    assert_eq!(
        store.next_day_with_lines(day("2026-01-01")).await.unwrap(),
        Some(day("2026-11-15"))
    );
    assert_eq!(
        store.next_day_with_lines(day("2026-11-16")).await.unwrap(),
        None
    );
}

async fn a_duty_is_done_by_one_node_until_its_lease_ends(database: Database) {
    let store = with_account(&database).await;
    let (one, other) = (NodeId::new([1; 8]), NodeId::new([2; 8]));
    let take = async |node: &NodeId, seconds: i64| {
        let until = now() + SignedDuration::from_secs(seconds);
        store
            .take_duty("close-day", node, now(), until)
            .await
            .unwrap()
    };
    assert!(take(&one, 60).await);
    assert!(take(&one, 60).await, "kept");
    assert!(!take(&other, 60).await);
    store.leave_duty("close-day", &other).await.unwrap();
    assert!(!take(&other, 60).await, "only its holder leaves it");
    store.leave_duty("close-day", &one).await.unwrap();
    assert!(take(&other, 0).await);
    assert!(take(&one, 60).await, "the lease has ended");
}

fn file(id: &str, on: &str, keywords: &str) -> BillFile {
    BillFile {
        id: id.repeat(32),
        of: bill_of(on),
        keywords: keywords.to_owned(),
        object: format!("{on}/{id}.csv"),
        bytes: 1,
        totals: Totals::default(),
        sha256: "0".repeat(64),
        made_at: now(),
        expires_at: (!keywords.is_empty()).then(|| now() + SignedDuration::from_hours(1)),
    }
}

fn token(hash: &str, file: &BillFile, hours: i64) -> BillToken {
    BillToken {
        hash: hash.to_owned(),
        file_id: file.id.clone(),
        account: file.of.account.clone(),
        expires_at: now() + SignedDuration::from_hours(hours),
    }
}

async fn a_token_opens_its_file_until_it_expires(database: Database) {
    let store = with_account(&database).await;
    let whole = store
        .record_bill_file(file("a", "2026-11-14", ""))
        .await
        .unwrap();
    let second = store
        .record_bill_file(file("b", "2026-11-14", ""))
        .await
        .unwrap();
    assert_eq!(second, whole, "the first one stays");
    assert_eq!(
        store.bill_file(&whole.of, "").await.unwrap(),
        Some(whole.clone())
    );
    assert!(store.add_bill_token(token("h", &whole, 24)).await.unwrap());
    assert!(
        !store
            .add_bill_token(token("x", &file("c", "2026-11-14", ""), 24))
            .await
            .unwrap()
    );
    let opens = async |hash: &str, hours| {
        let later = now() + SignedDuration::from_hours(hours);
        store
            .file_of_token(hash, later)
            .await
            .unwrap()
            .map(|file| file.id)
    };
    assert_eq!(opens("h", 23).await, Some(whole.id.clone()));
    assert_eq!(opens("h", 24).await, None);
    assert_eq!(opens("x", 0).await, None);
    let mut stranger = token("s", &whole, 24);
    stranger.account = "f".repeat(32).parse().unwrap();
    store.add_bill_token(stranger).await.unwrap();
    assert_eq!(opens("s", 0).await, None, "of another account");
}

async fn what_has_had_its_time_is_forgotten(database: Database) {
    let store = with_account(&database).await;
    add_records(&*store, now(), 25).await;
    let old = store
        .record_bill_file(file("a", "2026-11-15", ""))
        .await
        .unwrap();
    let filtered = store
        .record_bill_file(file("b", "2026-11-16", "x"))
        .await
        .unwrap();
    store.add_bill_token(token("h", &old, 24)).await.unwrap();
    store
        .add_bill_token(token("f", &filtered, 24))
        .await
        .unwrap();
    let forget = async |before: &str, hours| {
        let later = now() + SignedDuration::from_hours(hours);
        let step = store.forget_bills(day(before), later, 10).await.unwrap();
        (
            step.lines,
            step.files
                .into_iter()
                .map(|file| file.id)
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(
        forget("2026-11-15", 23).await,
        (0, vec![]),
        "the token keeps its file"
    );
    assert_eq!(forget("2026-11-15", 24).await, (0, vec![filtered.id]));
    assert_eq!(forget("2026-11-16", 24).await, (10, vec![old.id]));
    assert_eq!(forget("2026-11-16", 24).await, (10, vec![]));
    assert_eq!(forget("2026-11-16", 24).await, (5, vec![]));
    assert_eq!(forget("2026-11-16", 24).await, (0, vec![]));
}
