//! A long day is read by the index and in its order, whatever the database believes about it.

use clarion::domain::bill::BillLine;
use clarion::store::Database;

use crate::store_contract::with_account;
use crate::support::bills::{add_records, at, bill_of};
use crate::support::{eventually, postgres};

const LINES: usize = 12_000;
const PAGE: u32 = 1000;

/// PostgreSQL plans by what it knows of a table, and remembers the plan. Made while there are hardly any lines, it would read and sort them
/// all; on the evening of a long day that would be done for every page.
#[tokio::test]
async fn a_day_that_was_planned_for_when_it_was_empty_is_read_once() {
    let url = postgres::empty_database().await;
    let store = with_account(&Database::parse(&url).unwrap()).await;
    let db = postgres::connect(&url).await;
    // It has looked once, and does not look again until the day is over.
    for look in [
        "VACUUM ANALYZE bill_lines",
        "ALTER TABLE bill_lines SET (autovacuum_enabled = off)",
    ] {
        db.batch_execute(look).await.unwrap();
    }
    let of = bill_of("2026-11-15");
    for _ in 0..10 {
        assert_eq!(store.bill_lines(&of, None, PAGE).await.unwrap(), []);
    }
    add_records(&*store, at("2026-11-15T12:00:00+08:00"), LINES).await;
    let (mut after, mut lines) = (None, 0);
    loop {
        let page = store.bill_lines(&of, after, PAGE).await.unwrap();
        lines += page.len();
        after = page.last().map(BillLine::place);
        if page.is_empty() {
            break;
        }
    }
    assert_eq!(lines, LINES);
    // One by one without the index, and by it.
    let read = async || {
        let asked = "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'bill_lines'";
        let row = db.query_one(asked, &[]).await.unwrap();
        [0, 1].map(|column| usize::try_from(row.get::<_, i64>(column)).unwrap())
    };
    // The figures are told after a while, by whoever has read.
    eventually("what was read is told", async || {
        store.first_open_day().await.unwrap();
        read().await.iter().sum::<usize>() >= LINES
    })
    .await;
    let [without, by_index] = read().await;
    assert_eq!(without, 0);
    assert!(by_index < 2 * LINES, "{by_index} for {LINES} lines");
}
