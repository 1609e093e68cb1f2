//! Bill lines: how they come in and how they are read.

use clarion::store::Database;
use jiff::SignedDuration;

use super::{NUMBER, now};
use crate::store_contract::order;
use crate::store_contract::with_account;
use crate::support::bills::{add_records, bill_of, call, day, money, record};

contract! {
    importing_is_idempotent_and_all_or_nothing,
    lines_are_read_page_by_page_in_their_order,
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
    store.accept_call(order(waiting.clone())).await.unwrap();
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
