//! When a day begins and ends, and what closing it does, by a clock that the tests move.

use std::sync::Arc;

use clarion::billing::Billing;
use clarion::billing::close::{CloseStep, Closer};
use clarion::billing::import;
use clarion::billing::stream::{BillFormat, BillStream};
use clarion::clock::Clock;
use clarion::config::Config;
use clarion::domain::bill::{BillOf, csv};
use clarion::domain::claim::NodeId;
use clarion::domain::outcome::Outcome;
use clarion::store::Store;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use supervisor::Supervisor;
use tempfile::TempDir;

use crate::store_contract::order;
use crate::support::bills::{at, bill_of, call, claim, day, ended, line_of, money, record};
use crate::support::{APP, account, application};

/// Bills without a server: what `serve` does, step by step.
struct Office {
    store: Arc<dyn Store>,
    billing: Arc<Billing>,
    closer: Closer,
    clock: Clock,
    folder: TempDir,
}

impl Office {
    async fn open(zone: &str, settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("data_dir = {:?}\n{settings}", folder.path());
        let config = Config::from_parts(&text, &[]).unwrap();
        let store = config.database.open(&Supervisor::new()).await.unwrap();
        store.add_account(account()).await.unwrap();
        store.add_application(application()).await.unwrap();
        let clock = Clock::new(TimeZone::get(zone).unwrap());
        let billing = Billing::open(&config, Arc::clone(&store), clock.clone()).unwrap();
        let billing = Arc::new(billing);
        let closer = Closer::new(Arc::clone(&billing), NodeId::new([1; 8]));
        Self {
            store,
            billing,
            closer,
            clock,
            folder,
        }
    }

    fn set_time(&self, time: &str) {
        // The shift is in whole milliseconds, and never too short.
        let shift = at(time).duration_since(self.clock.now());
        self.clock.shift(shift + SignedDuration::from_millis(1));
    }

    /// A record by its end, as another service would bring it.
    async fn bring(&self, id: &str, end: &str) -> usize {
        let file = format!(
            "orderid,type,appId,caller,called,start,end,fee\n{id},14,{APP},4001,13800000000,{end},{end},0.05\n"
        );
        let report = import::import(&*self.store, &file, &self.clock, false).await;
        report.unwrap().added
    }

    async fn lines_on(&self, on: Date) -> Vec<String> {
        let of = BillOf {
            day: on,
            ..bill_of("2026-01-01")
        };
        let file = self.billing.file(&of, None).await.unwrap();
        let path = self.folder.path().join("bills").join(&file.object);
        let text = std::fs::read_to_string(path).unwrap();
        let rows = csv::read(&text).unwrap();
        rows.into_iter()
            .skip(1)
            .map(|(_, cells)| cells[0].clone())
            .collect()
    }
}

#[tokio::test]
async fn a_day_begins_and_ends_to_the_second() {
    let mut office = Office::open("Asia/Shanghai", "").await;
    office.set_time("2028-02-29T20:00:00+08:00");
    for (id, end) in [
        ("last-of-28", "2028-02-28T23:59:59.999+08:00"),
        ("first-of-29", "2028-02-29 00:00:00"),
        ("last-of-29", "2028-02-29 23:59:59"),
        ("first-of-march", "2028-03-01 00:00:00"),
    ] {
        assert_eq!(office.bring(id, end).await, 1);
    }
    office.set_time("2028-03-01T00:04:59+08:00");
    assert_eq!(
        office.closer.step().await.unwrap(),
        CloseStep::Closed(1),
        "the 28th only"
    );
    office.set_time("2028-03-01T00:05:00+08:00");
    assert_eq!(office.closer.step().await.unwrap(), CloseStep::Closed(1));
    assert_eq!(office.closer.step().await.unwrap(), CloseStep::Nothing);
    assert_eq!(office.lines_on(day("2028-02-28")).await, ["last-of-28"]);
    assert_eq!(
        office.lines_on(day("2028-02-29")).await,
        ["first-of-29", "last-of-29"]
    );
    assert_eq!(
        office.store.first_open_day().await.unwrap(),
        day("2028-03-01")
    );
}

/// A record every half hour: as many as the day has half hours.
#[tokio::test]
async fn days_of_23_and_25_hours_have_all_their_lines() {
    for (date, hours) in [("2026-03-29", 23), ("2026-10-25", 25), ("2026-11-15", 24)] {
        let mut office = Office::open("Europe/Berlin", "").await;
        let begins: Timestamp = day(date).in_tz("Europe/Berlin").unwrap().timestamp();
        for half in -1..=hours * 2 {
            let moment = begins + SignedDuration::from_mins(i64::from(half) * 30);
            assert_eq!(
                office.bring(&format!("r{half}"), &moment.to_string()).await,
                1
            );
        }
        let after =
            begins + SignedDuration::from_hours(i64::from(hours)) + SignedDuration::from_mins(5);
        office.set_time(&after.to_string());
        assert_eq!(
            office.closer.step().await.unwrap(),
            CloseStep::Closed(2),
            "{date} and the day before"
        );
        assert_eq!(
            office.lines_on(day(date)).await.len(),
            usize::try_from(hours).unwrap() * 2,
            "{date}"
        );
    }
}

#[tokio::test]
async fn a_call_over_midnight_belongs_to_the_day_in_which_it_ended() {
    let mut office = Office::open("Asia/Shanghai", "").await;
    let store = Arc::clone(&office.store);
    let late = call("8613800000001", at("2026-11-15T23:58:00+08:00"));
    store.accept_call(order(late.clone())).await.unwrap();
    let claimed = claim(&*store, 1).await.remove(0);
    let end = ended(
        &claimed,
        Some(120),
        Outcome::Talked,
        at("2026-11-16T00:01:00+08:00"),
    );
    assert!(store.end_call(end).await.unwrap());
    office.set_time("2026-11-16T00:10:00+08:00");
    assert_eq!(office.closer.step().await.unwrap(), CloseStep::Nothing);
    office.set_time("2026-11-17T00:10:00+08:00");
    assert_eq!(office.closer.step().await.unwrap(), CloseStep::Closed(1));
    assert_eq!(
        office.lines_on(day("2026-11-16")).await,
        [late.sid.to_string()]
    );
}

#[tokio::test]
async fn a_clock_that_jumps_loses_no_line_and_closes_no_year() {
    let mut office = Office::open("Asia/Shanghai", "").await;
    office.set_time("2026-11-15T12:00:00+08:00");
    assert_eq!(office.bring("morning", "2026-11-15 11:00:00").await, 1);
    // A year ahead for a moment: today is closed early, and nothing after it.
    office.set_time("2027-11-15T12:00:00+08:00");
    assert_eq!(office.closer.step().await.unwrap(), CloseStep::Closed(1));
    assert_eq!(
        office.store.first_open_day().await.unwrap(),
        day("2026-11-16")
    );
    office.set_time("2026-11-15T12:01:00+08:00");
    let store = Arc::clone(&office.store);
    let afternoon = call("8613800000001", at("2026-11-15T12:00:00+08:00"));
    store.accept_call(order(afternoon.clone())).await.unwrap();
    let ends = at("2026-11-15T12:30:00+08:00");
    let claimed = claim(&*store, 1).await.remove(0);
    assert!(
        store
            .end_call(ended(&claimed, Some(1), Outcome::Talked, ends))
            .await
            .unwrap()
    );
    line_of(&*store, afternoon.sid.as_str(), ends).await;
    office.set_time("2026-11-17T01:00:00+08:00");
    assert_eq!(office.closer.step().await.unwrap(), CloseStep::Closed(1));
    assert_eq!(office.lines_on(day("2026-11-15")).await, ["morning"]);
    assert_eq!(
        office.lines_on(day("2026-11-16")).await,
        [afternoon.sid.to_string()]
    );
    // Back by two days: what was closed stays as it is, and its lease binds nobody.
    office.set_time("2026-11-15T01:00:00+08:00");
    assert_eq!(office.closer.step().await.unwrap(), CloseStep::Nothing);
    assert_eq!(
        office.bring("again", "2026-11-15 00:30:00").await,
        0,
        "closed"
    );
}

#[tokio::test]
async fn what_is_beyond_its_retention_goes_and_the_rest_stays() {
    let mut office = Office::open("Asia/Shanghai", "[bills]\nretention_days = 10").await;
    office.set_time("2026-11-02T12:00:00+08:00");
    assert_eq!(office.bring("old", "2026-11-01 11:00:00").await, 1);
    assert_eq!(office.bring("young", "2026-11-02 11:00:00").await, 1);
    office.set_time("2026-11-03T12:00:00+08:00");
    assert_eq!(office.closer.step().await.unwrap(), CloseStep::Closed(2));
    let sweep = async || {
        clarion::billing::retention::sweep(&office.billing)
            .await
            .unwrap()
    };
    office.set_time("2026-11-11T23:00:00+08:00");
    assert_eq!(sweep().await, 0);
    office.set_time("2026-11-12T00:00:00+08:00");
    assert_eq!(sweep().await, 1);
    let file = |on: &str| office.folder.path().join(format!("bills/{on}/{APP}.csv"));
    assert!(!file("2026-11-01").exists() && file("2026-11-02").exists());
    assert_eq!(
        office.store.bills_of_day(day("2026-11-01")).await.unwrap(),
        []
    );
}

/// After a long night: nothing that was never billed is forgotten.
#[tokio::test]
async fn what_is_not_closed_yet_is_not_forgotten_however_old_it_is() {
    let mut office = Office::open("Asia/Shanghai", "[bills]\nretention_days = 10").await;
    office.set_time("2026-11-02T12:00:00+08:00");
    assert_eq!(office.bring("old", "2026-11-01 11:00:00").await, 1);
    office.set_time("2026-12-24T12:00:00+08:00");
    let sweep = async |office: &Office| {
        clarion::billing::retention::sweep(&office.billing)
            .await
            .unwrap()
    };
    assert_eq!(sweep(&office).await, 0);
    assert_eq!(office.closer.step().await.unwrap(), CloseStep::Closed(1));
    assert_eq!(office.lines_on(day("2026-11-01")).await, ["old"]);
    assert_eq!(sweep(&office).await, 1);
    let folder = office.folder.path().join("bills");
    let left = std::fs::read_dir(folder).unwrap().count();
    assert_eq!(left, 0, "the folder of the day is gone, too");
    assert_eq!(office.store.closed_days().await.unwrap(), []);
}

#[tokio::test]
async fn a_duty_that_was_left_is_free_for_the_next_at_once() {
    let office = Office::open("Asia/Shanghai", "").await;
    office.set_time("2026-11-16T12:00:00+08:00");
    for (on, node) in [("2026-11-13", 1), ("2026-11-14", 2), ("2026-11-15", 3)] {
        let node = NodeId::new([node; 8]);
        let closed = office.billing.close_now(day(on), &node).await.unwrap();
        assert_eq!(closed, [day(on)]);
    }
}

/// Every moment between two steps of closing at which the process may have died, one after the other.
#[tokio::test]
async fn whatever_an_interrupted_night_has_left_the_next_look_makes_one_right_file_of_it() {
    let mut office = Office::open("Asia/Shanghai", "").await;
    office.set_time("2026-11-15T12:00:00+08:00");
    assert_eq!(office.bring("one", "2026-11-15 11:00:00").await, 1);
    office.set_time("2026-11-16T12:00:00+08:00");
    let db = rusqlite::Connection::open(office.folder.path().join("clarion.db")).unwrap();
    let folder = office.folder.path().join("bills/2026-11-15");
    let file = folder.join(format!("{APP}.csv"));
    let half = folder.join(format!("{APP}.csv#1"));
    let mut right = None;
    for (what, undo) in [
        ("closed, and nothing written", "DELETE FROM bill_files"),
        ("half a file aside", "DELETE FROM bill_files"),
        ("the file, and no record of it", "DELETE FROM bill_files"),
        ("the record, and the day not filed", "SELECT 1"),
    ] {
        office.closer = Closer::new(Arc::clone(&office.billing), NodeId::new([2; 8]));
        assert_eq!(
            office.closer.step().await.unwrap(),
            CloseStep::Closed(1),
            "{what}"
        );
        let written = std::fs::read_to_string(&file).unwrap();
        assert_eq!(right.get_or_insert(written.clone()), &written, "{what}");
        let files = office.store.bill_files(day("2026-11-15")).await.unwrap();
        assert_eq!(files.len(), 1, "{what}");
        assert!(
            office
                .billing
                .verify(day("2026-11-15"))
                .await
                .unwrap()
                .is_good()
        );
        // As it was in the middle of the next one.
        db.execute_batch("UPDATE bill_days SET filed_at = NULL")
            .unwrap();
        db.execute_batch(undo).unwrap();
        match what {
            "closed, and nothing written" => std::fs::remove_file(&file).unwrap(),
            "half a file aside" => std::fs::write(&half, &written[..50]).unwrap(),
            _ => {}
        }
    }
    // What is left aside is swept up when nobody can be writing it any more.
    let sweep = async || {
        clarion::billing::retention::sweep(&office.billing)
            .await
            .unwrap()
    };
    let touched = |moment: Timestamp| {
        let half = std::fs::File::options().write(true).open(&half).unwrap();
        half.set_modified(moment.into()).unwrap();
    };
    touched(office.clock.now() - SignedDuration::from_hours(23));
    sweep().await;
    assert!(half.exists());
    touched(office.clock.now() - SignedDuration::from_hours(25));
    sweep().await;
    assert!(!half.exists() && file.exists());
}

#[tokio::test]
async fn a_record_from_far_ahead_is_a_typing_error() {
    let office = Office::open("Asia/Shanghai", "").await;
    office.set_time("2026-11-15T12:00:00+08:00");
    assert_eq!(office.bring("typed", "2062-11-15 11:00:00").await, 0);
    assert_eq!(office.bring("zone", "2026-11-16 03:00:00").await, 1);
}

#[tokio::test]
async fn what_was_altered_is_found() {
    let mut office = Office::open("Asia/Shanghai", "").await;
    office.set_time("2026-11-15T12:00:00+08:00");
    assert_eq!(office.bring("one", "2026-11-15 11:00:00").await, 1);
    office.set_time("2026-11-16T12:00:00+08:00");
    office.closer.step().await.unwrap();
    let verify = async || office.billing.verify(day("2026-11-15")).await.unwrap();
    let good = verify().await;
    assert!(good.is_good(), "{good:?}");
    assert_eq!((good.totals.lines, good.totals.fee), (1, money("0.05")));
    let file = office
        .folder
        .path()
        .join(format!("bills/2026-11-15/{APP}.csv"));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("0.05", "0.06")).unwrap();
    assert!(!verify().await.is_good(), "the file");
    std::fs::write(&file, text).unwrap();
    let db = rusqlite::Connection::open(office.folder.path().join("clarion.db")).unwrap();
    db.execute("UPDATE bill_lines SET fee = 1", []).unwrap();
    assert!(!verify().await.is_good(), "the lines");
    db.execute("UPDATE bill_lines SET fee = 50000", []).unwrap();
    assert!(verify().await.is_good());
    db.execute(
        "INSERT INTO calls (call_sid, account_sid, app_id, accepted_at, called, number, prompt, outcome, ended_at) \
         VALUES ('261115100000x', '', '', 0, '', '', '', 0, ?)",
        [at("2026-11-15T10:00:00+08:00").as_millisecond()],
    )
    .unwrap();
    let missing = verify().await;
    assert_eq!((missing.calls.calls, missing.calls.without_line), (1, 1));
    assert!(!missing.is_good(), "a call without a line");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_bill_adds_up_to_the_fees_of_its_lines_and_importing_again_changes_nothing(
        fees in proptest::collection::vec(0i64..5_000_000_000, 0..40), split in 0usize..40,
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let office = Office::open("Asia/Shanghai", "").await;
            let records: Vec<_> = fees.iter().enumerate().map(|(number, fee)| {
                let fee = clarion::domain::money::Money::from_millionths(*fee);
                record(&format!("r{number}"), at("2026-11-15T12:00:00+08:00"), fee)
            }).collect();
            // A part of it first, then all, then all again.
            let part = records[..split.min(records.len())].to_vec();
            let first = office.store.import_records(part, false).await.unwrap().added;
            let rest = office.store.import_records(records.clone(), false).await.unwrap();
            assert_eq!((first + rest.added, rest.known), (records.len(), first));
            let again = office.store.import_records(records.clone(), false).await.unwrap();
            assert_eq!((again.added, again.known), (0, records.len()));
            let zone = office.clock.zone().clone();
            let stream = BillStream::new(
                Arc::clone(&office.store), bill_of("2026-11-15"), zone, BillFormat::Csv, None,
            );
            let written = stream.recount().await.unwrap();
            assert_eq!(written.totals.lines, fees.len() as u64);
            assert_eq!(written.totals.fee.millionths(), fees.iter().sum::<i64>());
        });
    }
}
