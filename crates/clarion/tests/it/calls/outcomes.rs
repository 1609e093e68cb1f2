//! Every row of the outcome table, brought about from the outside: what the application is told, and what stands in the bill.

use std::time::Duration;

use clarion::domain::bill::BillLine;
use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;
use phone::ending::Side;
use phone::test_phone::{Script, Then};
use supervisor::Supervisor;

use super::stage::{self, Stage, field, on_postgres};
use crate::support::bills::money;
use crate::support::child::{Caller, Installation};
use crate::support::receiver::{Receiver, ok};
use crate::support::telephone::Telephone;
use crate::support::{WAITING_TRUNK, eventually};

const HELLO: &str = "\"mediaTxt\":\"hello\",\"userData\":\"u\"";
/// A talk costs 0.12 a minute, and somebody who is called in vain a cent.
const RATES: &str = "[rates]\ndefault = [{ prefix = \"*\", unit_seconds = 60, price = \"0.12\", unanswered = \"0.01\" }]\n";

/// What is expected of a call: state of the callback, seconds of talk, units and fee.
struct Expected {
    outcome: Outcome,
    state: &'static str,
    seconds: std::ops::RangeInclusive<u32>,
    units: u32,
    fee: &'static str,
}

impl Expected {
    fn new(outcome: Outcome, state: &'static str, units: u32, fee: &'static str) -> Self {
        Self {
            outcome,
            state,
            seconds: 0..=0,
            units,
            fee,
        }
    }

    /// In the report and in the bill.
    fn is(&self, sid: &CallSid, report: &str, line: &BillLine) {
        let word = self.outcome.as_str();
        assert_eq!(field(report, "state"), self.state, "{word}: {report}");
        assert_eq!(field(report, "callSid"), sid.as_str());
        assert_eq!(line.outcome, word);
        assert!(self.seconds.contains(&line.seconds), "{word}: {line:?}");
        assert_eq!(
            field(report, "duration"),
            line.seconds.to_string(),
            "{word}"
        );
        assert_eq!(
            (line.units, line.fee),
            (self.units, money(self.fee)),
            "{word}"
        );
        assert_eq!(line.answered_at.is_some(), line.seconds > 0, "{word}");
        assert_eq!(
            (line.order_id.as_str(), line.call_sid.as_deref()),
            (sid.as_str(), Some(sid.as_str()))
        );
        assert_eq!(line.user_data.as_deref(), Some("u"), "{word}");
    }
}

/// The numbers of the documents, and one that the trunk forbids.
fn somebody(number: &str) -> Script {
    if number.ends_with("0403") {
        Script::refuse(403)
    } else {
        Script::of_number(number)
    }
}

async fn end_in_every_way(database: &str) {
    let telephone = Telephone::start(somebody).await;
    let settings = format!(
        "{database}{RATES}[calls]\nexpire_seconds = 9\n[dispatch]\nring_seconds = 2\nretry_seconds = 1\nlongest_retry_seconds = 2"
    );
    let stage = Stage::on(&telephone.wide_trunk("telephone", ""), &settings).await;
    let mut calls = Vec::new();
    for (number, expected) in [
        (
            "13800000005",
            Expected {
                // A second, and what it takes to hang up: anything within the one minute that is paid for.
                seconds: 1..=60,
                ..Expected::new(Outcome::Talked, "0", 1, "0.12")
            },
        ),
        (
            "13800000003",
            Expected::new(Outcome::NotAnswered, "1", 1, "0.01"),
        ),
        ("13800000002", Expected::new(Outcome::Busy, "1", 1, "0.01")),
        (
            "13800000004",
            Expected::new(Outcome::Declined, "1", 1, "0.01"),
        ),
        (
            "13800000008",
            Expected::new(Outcome::InvalidNumber, "2", 0, "0"),
        ),
        (
            "13800000403",
            Expected::new(Outcome::TrunkFailure, "2", 0, "0"),
        ),
        ("13800000007", Expected::new(Outcome::Expired, "2", 0, "0")),
    ] {
        calls.push((stage.call(number, HELLO).await, expected));
    }
    // The same callee is not called twice at once: this one waits, and is cancelled.
    let waiting = stage.call("13800000003", HELLO).await;
    let cancelled = stage.server.store.cancel_call(&waiting).await.unwrap();
    assert_eq!(cancelled, Some(CallState::Queued));
    calls.push((waiting, Expected::new(Outcome::Cancelled, "1", 0, "0")));
    for (sid, expected) in calls {
        let report = stage.report_of(&sid).await;
        assert_eq!(stage.outcome(&sid).await, Some(expected.outcome));
        expected.is(&sid, &report, &stage.bill_line(&sid).await);
    }
    let reports = stage.receiver.received().len();
    assert_eq!(reports, 8, "one report a call");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_to_end_is_reported_and_billed_as_the_table_says() {
    end_in_every_way("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_to_end_is_reported_and_billed_as_the_table_says_on_postgres() {
    end_in_every_way(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_lost_its_route_while_it_waited_is_reported_as_failed() {
    let mut stage = Stage::on(WAITING_TRUNK, RATES).await;
    let sid = stage.call("13800000001", HELLO).await;
    stage.server.take_server().stop().await;
    let elsewhere = Telephone::that(Script::answer()).await;
    let trunk = elsewhere
        .wide_trunk("elsewhere", "")
        .replace("prefixes = [\"\"]", "prefixes = [\"44\"]");
    stage.server.restart(&stage::settings(RATES, &trunk)).await;
    let report = stage.report_of(&sid).await;
    Expected::new(Outcome::NoRoute, "2", 0, "0").is(&sid, &report, &stage.bill_line(&sid).await);
    assert_eq!(elsewhere.dialled().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_server_is_lost_is_hung_up_reported_and_billed_as_far_as_it_is_known() {
    let telephone = Telephone::that(Script {
        then: Then::Answer {
            after: Duration::from_millis(200),
            hang_up: None,
            keys: String::new(),
        },
        ..Script::answer()
    })
    .await;
    let receiver = Receiver::start(vec![ok()]).await;
    let settings = stage::settings(RATES, &telephone.wide_trunk("telephone", ""));
    let settings = settings.replace("[media]", "[dispatch]\nlease_seconds = 2\n[media]");
    let installation = Installation::with_settings(None, &settings).await;
    let mut first_life = installation.start().await;
    let mut caller = Caller::connect(&first_life.client).await.unwrap();
    let fields = format!(
        "\"to\":\"13800000001\",\"respUrl\":\"{}\",\"mediaName\":\"ccp_marketingcall.wav\",\"userData\":\"u\"",
        receiver.url()
    );
    let sid: CallSid = caller.place(&fields).await.unwrap().parse().unwrap();
    let store = installation
        .database
        .open(&Supervisor::new())
        .await
        .unwrap();
    eventually("it talks, and that is known", async || {
        stage::record(&*store, &sid).await.state == CallState::Answered
    })
    .await;
    first_life.process.kill().await.unwrap();
    let second_life = installation.start().await;
    let report = stage::report_of(&receiver, &sid).await;
    let expected = Expected {
        // Up to the last sign of life, which may have come before a whole second of talk.
        seconds: 0..=60,
        ..Expected::new(Outcome::Interrupted, "2", 1, "0.12")
    };
    let line = stage::bill_line(&*store, &sid).await;
    assert_eq!(field(&report, "duration"), line.seconds.to_string());
    assert_eq!(
        (line.outcome.as_str(), line.units, line.fee),
        (
            expected.outcome.as_str(),
            expected.units,
            money(expected.fee)
        )
    );
    assert!(expected.seconds.contains(&line.seconds) && line.answered_at.is_some());
    assert_eq!(field(&report, "state"), expected.state);
    // Nobody is left with a dead line, and nobody is called again.
    let heard = telephone.has_heard(&sid).await;
    assert_eq!(heard.hung_up_by, Some(Side::Them));
    eventually("no leg is up", async || telephone.open().0 == 0).await;
    assert_eq!(telephone.dialled().len(), 1);
    store.close().await;
    drop(second_life);
}
