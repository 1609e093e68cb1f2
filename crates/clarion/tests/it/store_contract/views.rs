//! What every store promises operators who look: lists by index, page after page, searches that tell how far they came, and what there is at this moment.

use std::sync::Arc;

use clarion::domain::account::{Account, AccountSid, AppId, Application};
use clarion::domain::bill::{BillFile, BillOf, Totals};
use clarion::domain::call::{CallSid, NewCall};
use clarion::domain::call_record::{CallFilter, CallLife, CallPage, CallSearch};
use clarion::domain::call_state::CallState;
use clarion::domain::callback::{CallbackAttempt, DeliveryResult, EndedAttempt, NextDelivery};
use clarion::domain::claim::NodeId;
use clarion::domain::money::Money;
use clarion::domain::outcome::Outcome;
use clarion::domain::phone_number::PhoneNumber;
use clarion::store::{Database, Store, WantedOwed};
use jiff::{SignedDuration, Timestamp};

use super::{call, order, with_account};
use crate::support::owed::{self, Claiming, owe, owed_to};
use crate::support::{self, APP, SID, account, app_id, application, eventually};

contract! {
    calls_are_listed_by_account_application_and_number_page_by_page,
    calls_are_listed_from_a_time_to_another,
    a_search_finds_what_no_index_answers,
    a_search_stops_after_some_thousands_and_goes_on_from_there,
    calls_are_counted_from_a_moment_on,
    the_queue_is_told_by_account_and_state,
    receivers_are_told_with_what_they_answered_last,
    closed_days_are_told_by_account,
}

const OTHER_APP: &str = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";
const OTHER_ACCOUNT: &str = "dddddddddddddddddddddddddddddddd";
const APP_OF_OTHER: &str = "cccccccccccccccccccccccccccccccc";

fn sid(number: u128) -> CallSid {
    call(number).sid
}

/// Two accounts, the first with two applications.
async fn with_customers(database: &Database) -> Arc<dyn Store> {
    let store = with_account(database).await;
    let other = Account {
        sid: OTHER_ACCOUNT.parse().unwrap(),
        ..account()
    };
    store.add_account(other).await.unwrap();
    for (id, account) in [(OTHER_APP, SID), (APP_OF_OTHER, OTHER_ACCOUNT)] {
        let other = Application {
            id: id.parse().unwrap(),
            account: account.parse().unwrap(),
            ..application()
        };
        store.add_application(other).await.unwrap();
    }
    store
}

fn call_of(number: u128, account: &str, app: &str, to: &str) -> NewCall {
    NewCall {
        account: account.parse().unwrap(),
        app: app.parse().unwrap(),
        number: PhoneNumber::from_stored(to.to_owned(), None),
        callee: to.to_owned(),
        ..call(number)
    }
}

async fn accept(store: &dyn Store, calls: impl IntoIterator<Item = NewCall>) {
    for call in calls {
        store.accept_call(order(call)).await.unwrap();
    }
}

fn filter() -> CallFilter {
    CallFilter {
        limit: 3,
        ..CallFilter::default()
    }
}

fn sids(page: &CallPage) -> Vec<CallSid> {
    page.calls.iter().map(|call| call.sid.clone()).collect()
}

/// All pages of a list.
async fn all(store: &dyn Store, mut filter: CallFilter) -> Vec<CallSid> {
    let mut found = Vec::new();
    loop {
        let page = store.list_calls(filter.clone()).await.unwrap();
        assert!(page.calls.len() <= filter.limit as usize);
        found.extend(sids(&page));
        match page.next {
            Some(next) => filter.before = Some(next),
            None => return found,
        }
    }
}

async fn calls_are_listed_by_account_application_and_number_page_by_page(database: Database) {
    let store = with_customers(&database).await;
    let mine = (1..=10).map(|number| {
        let app = if number % 2 == 0 { OTHER_APP } else { APP };
        call_of(number, SID, app, &format!("86138{:08}", number % 5))
    });
    accept(&*store, mine).await;
    let theirs =
        (11..=12).map(|number| call_of(number, OTHER_ACCOUNT, APP_OF_OTHER, "8613900000000"));
    accept(&*store, theirs).await;
    let account: AccountSid = SID.parse().unwrap();
    let (other_app, of_other): (AppId, AppId) =
        (OTHER_APP.parse().unwrap(), APP_OF_OTHER.parse().unwrap());

    let newest_first = |numbers: &[u128]| numbers.iter().map(|one| sid(*one)).collect::<Vec<_>>();
    let everything: Vec<_> = (1..=12).rev().collect();
    assert_eq!(all(&*store, filter()).await, newest_first(&everything));
    let of_account = CallFilter {
        account: Some(account.clone()),
        ..filter()
    };
    assert_eq!(
        all(&*store, of_account.clone()).await,
        newest_first(&everything[2..])
    );
    let of_app = CallFilter {
        app: Some(other_app),
        ..filter()
    };
    assert_eq!(
        all(&*store, of_app.clone()).await,
        newest_first(&[10, 8, 6, 4, 2])
    );
    let to_number = CallFilter {
        number: Some("8613800000002".to_owned()),
        ..filter()
    };
    assert_eq!(all(&*store, to_number.clone()).await, newest_first(&[7, 2]));
    // Two questions at once.
    let both = CallFilter {
        app: of_app.app.clone(),
        ..to_number
    };
    assert_eq!(all(&*store, both).await, newest_first(&[2]));
    let not_theirs = CallFilter {
        app: Some(of_other),
        ..of_account.clone()
    };
    assert!(all(&*store, not_theirs).await.is_empty());
    // Those that have ended are listed, and are not alive.
    let ended = "UPDATE calls SET outcome = 0, ended_at = 5 WHERE call_sid < '0000000000000000000000000000000a'; \
        DELETE FROM call_queue WHERE call_sid < '0000000000000000000000000000000a'";
    support::execute(&database, ended).await;
    let alive = CallFilter {
        life: CallLife::Alive,
        ..filter()
    };
    assert_eq!(
        all(&*store, alive.clone()).await,
        newest_first(&[12, 11, 10])
    );
    // One of them is in the hands of a node, however many newer ones wait.
    let held = "UPDATE call_queue SET node = 'one', state = 3 WHERE call_sid = '0000000000000000000000000000000b'";
    support::execute(&database, held).await;
    let running = CallFilter {
        life: CallLife::Running,
        limit: 1,
        ..filter()
    };
    assert_eq!(all(&*store, running).await, newest_first(&[11]));
    let mine_alive = CallFilter {
        account: Some(account),
        ..alive
    };
    assert_eq!(all(&*store, mine_alive).await, newest_first(&[10]));
    assert_eq!(
        all(&*store, of_account).await,
        newest_first(&everything[2..])
    );
    // Nothing of a page that is full says that the search was cut.
    let page = store.list_calls(filter()).await.unwrap();
    assert_eq!((page.next, page.searched_until), (Some(sid(10)), None));
}

async fn calls_are_listed_from_a_time_to_another(database: Database) {
    let store = with_customers(&database).await;
    let zone = jiff::tz::TimeZone::get(support::ZONE).unwrap();
    let moment: Timestamp = "2026-11-15T02:35:09Z".parse().unwrap();
    let at = |seconds: i64| (moment + SignedDuration::from_secs(seconds)).to_zoned(zone.clone());
    let made = |seconds: i64| CallSid::new(&at(seconds), [9; 8]);
    for seconds in 0..5 {
        let mut call = call(1);
        call.sid = made(seconds);
        call.app = if seconds % 2 == 0 { APP } else { OTHER_APP }
            .parse()
            .unwrap();
        store.accept_call(order(call)).await.unwrap();
    }
    for account in [None, Some(SID.parse().unwrap())] {
        let between = CallFilter {
            account,
            from: Some(CallSid::first_at(&at(1))),
            before: Some(CallSid::first_at(&at(4))),
            ..filter()
        };
        assert_eq!(
            all(&*store, between).await,
            [made(3), made(2), made(1)],
            "the first moment counts, the last does not"
        );
    }
}

async fn a_search_finds_what_no_index_answers(database: Database) {
    let store = with_customers(&database).await;
    accept(&*store, (1..=4).map(call)).await;
    let changes = format!(
        "UPDATE calls SET outcome = 2, trunk = 'north', ended_at = 5 WHERE call_sid IN ('{}', '{}'); \
         UPDATE calls SET caller = '8610', user_data = 'order 100%_7' WHERE call_sid = '{}'; \
         DELETE FROM call_queue WHERE call_sid IN ('{}', '{}')",
        sid(1),
        sid(3),
        sid(3),
        sid(1),
        sid(3)
    );
    support::execute(&database, &changes).await;
    let found = async |search: CallSearch| {
        let page = store.list_calls(CallFilter { search, ..filter() }).await;
        let page = page.unwrap();
        assert_eq!(page.searched_until, None);
        sids(&page)
    };
    let any = CallSearch::default;
    for (search, wanted) in [
        (
            CallSearch {
                outcome: Some(Outcome::Busy),
                ..any()
            },
            vec![sid(3), sid(1)],
        ),
        (
            CallSearch {
                outcome: Some(Outcome::Declined),
                ..any()
            },
            vec![],
        ),
        (
            CallSearch {
                state: Some(CallState::Queued),
                ..any()
            },
            vec![sid(4), sid(2)],
        ),
        (
            CallSearch {
                state: Some(CallState::Ended),
                ..any()
            },
            vec![sid(3), sid(1)],
        ),
        (
            CallSearch {
                trunk: Some("north".into()),
                ..any()
            },
            vec![sid(3), sid(1)],
        ),
        (
            CallSearch {
                caller: Some("8610".into()),
                ..any()
            },
            vec![sid(3)],
        ),
        (
            CallSearch {
                user_data: Some("100%_".into()),
                ..any()
            },
            vec![sid(3)],
        ),
        (
            CallSearch {
                user_data: Some("数据".into()),
                ..any()
            },
            vec![sid(4), sid(2), sid(1)],
        ),
        (
            CallSearch {
                user_data: Some("1000_".into()),
                ..any()
            },
            vec![],
        ),
        (
            CallSearch {
                trunk: Some("north".into()),
                user_data: Some("数据".into()),
                ..any()
            },
            vec![sid(1)],
        ),
    ] {
        assert_eq!(found(search.clone()).await, wanted, "{search:?}");
    }
}

async fn a_search_stops_after_some_thousands_and_goes_on_from_there(database: Database) {
    let store = with_customers(&database).await;
    let mut accepting = tokio::task::JoinSet::new();
    for number in 1..=5_100 {
        let store = Arc::clone(&store);
        accepting.spawn(async move { store.accept_call(order(call(number))).await });
    }
    while let Some(result) = accepting.join_next().await {
        result.unwrap().unwrap();
    }
    let change = format!(
        "UPDATE calls SET trunk = 'north' WHERE call_sid = '{}'",
        sid(7)
    );
    support::execute(&database, &change).await;
    let mut search = filter();
    search.search.trunk = Some("north".to_owned());
    for account in [None, Some(SID.parse().unwrap())] {
        search.account = account;
        search.before = None;
        let first = store.list_calls(search.clone()).await.unwrap();
        assert!(first.calls.is_empty());
        assert!(first.searched_until.is_some() && first.next == first.searched_until);
        assert_eq!(all(&*store, search.clone()).await, [sid(7)]);
    }
}

async fn calls_are_counted_from_a_moment_on(database: Database) {
    let store = with_customers(&database).await;
    accept(&*store, (1..=5).map(call)).await;
    for (after, wanted) in [(0, 5), (3, 2), (5, 0)] {
        let counted = store.accepted_since(&sid(after)).await.unwrap();
        assert_eq!(counted, wanted, "after {after}");
    }
}

async fn the_queue_is_told_by_account_and_state(database: Database) {
    let store = with_customers(&database).await;
    let to = |number: u128| format!("86138{number:08}");
    let mine = (2..=4).map(|number| call_of(number, SID, APP, &to(number)));
    accept(&*store, mine).await;
    accept(&*store, [call_of(1, OTHER_ACCOUNT, APP_OF_OTHER, &to(1))]).await;
    let node = NodeId::new([7; 8]);
    let now: Timestamp = "2026-11-15T02:36:00Z".parse().unwrap();
    let lease = SignedDuration::from_secs(30);
    store.heartbeat(&node, now, lease).await.unwrap();
    let claim = clarion::domain::claim::Claim {
        node: node.clone(),
        shares: vec![clarion::domain::claim::LaneShare {
            account: SID.parse().unwrap(),
            lane: super::lane(),
            calls: 1,
        }],
        limits: std::collections::HashMap::new(),
        caps: clarion::domain::claim::CalleeCaps::default(),
    };
    assert_eq!(store.claim_calls(claim).await.unwrap().len(), 1);

    // One has been due for long. Of the others one waits for a later time, and one for its callee.
    let change = format!(
        "UPDATE call_queue SET due_at = due_at - 600000 WHERE account_sid = '{OTHER_ACCOUNT}'; \
         UPDATE call_queue SET due_at = due_at + 3600000 WHERE call_sid = '{}'; \
         UPDATE call_queue SET due_at = due_at - 7200000, parked = 1 WHERE call_sid = '{}'",
        sid(3),
        sid(4)
    );
    support::execute(&database, &change).await;
    let queue = store.queue_overview().await.unwrap();
    assert_eq!((queue.waiting, queue.due), (3, 1));
    let is_due_for_long = |due_for: Option<SignedDuration>| {
        due_for.is_some_and(|time| (10..60).contains(&time.as_mins()))
    };
    assert!(is_due_for_long(queue.due_for), "{queue:?}");
    let (waiting, due_for) = store.queue_depth().await.unwrap();
    assert!(waiting == 3 && is_due_for_long(due_for), "{due_for:?}");
    assert_eq!(queue.running, [(CallState::Claimed, 1)]);
    let accounts: Vec<_> = queue
        .accounts
        .iter()
        .map(|one| (one.account.as_str(), one.waiting, one.due))
        .collect();
    assert_eq!(accounts, [(SID, 2, 0), (OTHER_ACCOUNT, 1, 1)]);
    let due_for = [SID, OTHER_ACCOUNT].map(|sid| {
        let mut accounts = queue.accounts.iter();
        accounts
            .find(|one| one.account.as_str() == sid)
            .unwrap()
            .due_for
    });
    assert!(due_for[0].is_none() && is_due_for_long(due_for[1]));
    let later = format!(
        "UPDATE call_queue SET due_at = due_at + 3600000 WHERE call_sid = '{}'",
        sid(1)
    );
    support::execute(&database, &later).await;
    assert_eq!(store.queue_overview().await.unwrap().due_for, None);
    assert_eq!(store.queue_depth().await.unwrap(), (3, None));
    let nodes = store.nodes().await.unwrap();
    let [seen] = &nodes[..] else {
        panic!("{nodes:?}");
    };
    assert!(seen.is_alive && seen.schema > 0, "{seen:?}");
    assert_eq!((&*seen.name, &seen.concerns), (node.as_str(), &None));
    let told = store.tell_concerns(&node, "[\"no_trunk\"]".to_owned());
    assert!(told.await.unwrap());
    let seen = store.nodes().await.unwrap();
    assert_eq!(seen[0].concerns.as_deref(), Some("[\"no_trunk\"]"));
    let stranger = NodeId::new([9; 8]);
    let told = store.tell_concerns(&stranger, String::new());
    assert!(!told.await.unwrap(), "no heartbeat of it is there");
    support::execute(&database, "UPDATE nodes SET lease_until = 1").await;
    assert!(!store.nodes().await.unwrap()[0].is_alive);
}

async fn receivers_are_told_with_what_they_answered_last(database: Database) {
    let store = with_account(&database).await;
    let now: Timestamp = "2026-11-15T02:35:09Z".parse().unwrap();
    let owed = ["http://a/x", "http://a/y", "http://b/"];
    let owed = (1..)
        .zip(owed)
        .map(|(number, url)| owed_to(url, number, now));
    owe(&database, owed.collect()).await;
    let wanted = |receivers| WantedOwed {
        receivers,
        given_up_since: "0".repeat(32).parse().unwrap(),
        given_up_limit: 10,
    };
    let owed = store.owed_callbacks(wanted(10)).await.unwrap();
    assert_eq!((owed.waiting, owed.given_up), (3, 0));
    assert_eq!(owed.oldest_owed_at, Some(now));
    let receivers = owed.receivers;
    let told: Vec<_> = receivers
        .iter()
        .map(|one| (one.host.as_str(), one.waiting, one.failures))
        .collect();
    assert_eq!(told, [("a:80", 2, 0), ("b:80", 1, 0)]);
    assert!(receivers.iter().all(|one| one.last_attempt.is_none()));
    assert_eq!(receivers[0].oldest_owed_at, now);

    let attempt = CallbackAttempt {
        started_at: now,
        milliseconds: 12,
        verdict: DeliveryResult::BadStatus,
        status: Some(503),
        error: Some("HTTP status 503".into()),
        answer: None,
    };
    let claiming = Claiming {
        without: "a:80",
        per_receiver: 1,
        ..Claiming::default()
    };
    let (claimed, _) = owed::claim(&*store, &claiming).await;
    let ended = claimed.iter().map(|callback| EndedAttempt {
        lease: callback.lease.clone(),
        attempt: attempt.clone(),
        ended_at: now,
        next: NextDelivery::RetryAfter(SignedDuration::from_secs(60)),
    });
    let recorded = store.record_attempts(ended.collect()).await.unwrap();
    assert_eq!(recorded.len(), 1);
    // Who fails comes first, though more waits for somebody else; and what waits is counted for all.
    let owed = store.owed_callbacks(wanted(1)).await.unwrap();
    assert_eq!(owed.waiting, 3);
    let [failing] = &owed.receivers[..] else {
        panic!("{owed:?}");
    };
    assert_eq!((failing.host.as_str(), failing.failures), ("b:80", 1));
    assert_eq!(failing.last_attempt, Some(attempt));
}

async fn closed_days_are_told_by_account(database: Database) {
    let store = with_customers(&database).await;
    let made_at: Timestamp = "2026-11-16T02:35:09Z".parse().unwrap();
    let file = |day: &str, account: &str, app: &str, keywords: &str, fee: i64| BillFile {
        id: format!("{day}{app}{keywords}"),
        of: BillOf {
            account: account.parse().unwrap(),
            app: app.parse().unwrap(),
            day: day.parse().unwrap(),
        },
        keywords: keywords.to_owned(),
        object: "object".to_owned(),
        bytes: 1,
        totals: Totals {
            lines: 2,
            fee: Money::from_millionths(fee),
        },
        sha256: "0".to_owned(),
        made_at,
        expires_at: None,
    };
    for file in [
        file("2026-11-14", SID, APP, "", 1),
        file("2026-11-15", SID, APP, "", 10),
        file("2026-11-15", SID, APP, "a", 5),
        file("2026-11-15", SID, OTHER_APP, "", 20),
        file("2026-11-15", OTHER_ACCOUNT, APP_OF_OTHER, "", 7),
        file("2026-11-16", SID, APP, "", 3),
    ] {
        store.record_bill_file(file).await.unwrap();
    }
    let day = |day: &str| day.parse().unwrap();
    let billed = store.billed_accounts(day("2026-11-14"), day("2026-11-15"));
    let billed = billed.await.unwrap();
    for one in &billed {
        let account = store.account(&one.account).await.unwrap().unwrap();
        assert_eq!(one.name.as_deref(), Some(&*account.name));
    }
    let told: Vec<_> = billed
        .iter()
        .map(|one| {
            let (lines, fee) = (one.totals.lines, one.totals.fee.millionths());
            (
                one.day.to_string(),
                one.account.as_str(),
                lines,
                fee,
                one.files,
            )
        })
        .collect();
    let row = |day: &str, account: &'static str, lines, fee, files| {
        (day.to_owned(), account, lines, fee, files)
    };
    assert_eq!(
        told,
        [
            row("2026-11-15", SID, 4, 30, 2),
            row("2026-11-15", OTHER_ACCOUNT, 2, 7, 1),
            row("2026-11-14", SID, 2, 1, 1),
        ]
    );
    let days = store.billed_days().await.unwrap();
    let told: Vec<_> = days
        .iter()
        .map(|one| {
            let (lines, fee) = (one.totals.lines, one.totals.fee.millionths());
            (one.day.to_string(), lines, fee, one.files)
        })
        .collect();
    let row = |day: &str, lines, fee, files| (day.to_owned(), lines, fee, files);
    // Other days are told too: this list has no ends.
    for wanted in [row("2026-11-15", 6, 37, 3), row("2026-11-14", 2, 1, 1)] {
        assert!(told.contains(&wanted), "{told:?}");
    }
}

/// PostgreSQL would walk through all calls for those of an application that has none, where it takes it for one of a few busy ones.
#[tokio::test]
async fn the_calls_of_an_idle_application_are_found_without_reading_those_of_others() {
    let url = support::postgres::empty_database().await;
    let database = Database::parse(&url).unwrap();
    let store = with_customers(&database).await;
    let fill = format!(
        "INSERT INTO calls (call_sid, account_sid, app_id, accepted_at, called, number, prompt) \
         SELECT lpad(n::text, 32, '0'), '{SID}', '{APP}', 0, '1', '86138' || n, '{{\"plays\":1}}' FROM generate_series(1, 20000) AS n; \
         ANALYZE calls"
    );
    support::execute(&database, &fill).await;
    let db = support::postgres::connect(&url).await;
    for asked in [
        CallFilter {
            app: Some(OTHER_APP.parse().unwrap()),
            ..filter()
        },
        CallFilter {
            number: Some("8613999999999".to_owned()),
            ..filter()
        },
        CallFilter {
            account: Some(OTHER_ACCOUNT.parse().unwrap()),
            ..filter()
        },
        CallFilter {
            app: Some(app_id()),
            ..filter()
        },
    ] {
        let page = store.list_calls(asked).await.unwrap();
        assert!(page.calls.len() <= 3);
    }
    // By each index: how often it was asked, and how many rows it gave. The figures are told after a while, by whoever has read.
    let told = async |column: &str, index: &str| {
        let asked = format!(
            "SELECT coalesce(sum({column}), 0)::bigint FROM pg_stat_user_indexes WHERE relname = 'calls' AND indexrelname LIKE '{index}'"
        );
        let row = db.query_one(&asked, &[]).await.unwrap();
        row.get::<_, i64>(0)
    };
    eventually("what was read is told", async || {
        store.first_open_day().await.unwrap();
        told("idx_scan", "calls_by_app").await >= 3
            && told("idx_scan", "calls_by_number").await >= 1
    })
    .await;
    let rows = told("idx_tup_read", "%").await;
    assert!(rows < 100, "{rows} rows were read for four pages of three");
    let scanned =
        "SELECT coalesce(seq_tup_read, 0) FROM pg_stat_user_tables WHERE relname = 'calls'";
    let row = db.query_one(scanned, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 0, "no scan of all calls");
}
