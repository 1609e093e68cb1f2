//! What a notice costs: each attempt by itself.

use clarion::domain::account::AccountChange;
use clarion::domain::bill::csv;
use clarion::domain::call_state::CallState;
use jiff::SignedDuration;

use super::{TIMES, redialled};
use crate::calls::stage::{Stage, field, on_postgres};
use crate::support::bills::money;
use crate::support::{self, eventually};

/// A talk costs 0.12 a minute, and somebody who is called in vain 0.10.
const RATES: &str = "[rates]\ndefault = [{ prefix = \"*\", unit_seconds = 60, price = \"0.12\", unanswered = \"0.10\" }]\n";

async fn one_attempt_is_paid_at_a_time(database: &str) {
    let balance = |amount| AccountChange {
        balance: Some(Some(money(amount))),
        ..AccountChange::default()
    };
    let stage = Stage::prepared(&format!("{database}{RATES}{TIMES}"), async |store, _| {
        let sid = support::SID.parse().unwrap();
        store.change_account(&sid, balance("0.35")).await.unwrap();
    })
    .await;
    let funds = async || {
        let sid = support::SID.parse().unwrap();
        let funds = stage.server.store.funds(&sid).await.unwrap().unwrap();
        (funds.balance.unwrap(), funds.reserved)
    };
    let fields = format!("{},\"maxCallTime\":\"60\"", redialled(9));
    let sid = stage.call("13800000002", &fields).await;
    for (tried, left) in [(1, "0.25"), (2, "0.15")] {
        eventually("an attempt is over", async || {
            stage.attempts(&sid).await.len() == tried
        })
        .await;
        assert_eq!(
            funds().await,
            (money(left), money("0.12")),
            "the next one is reserved"
        );
        stage.let_time_pass(SignedDuration::from_secs(3000)).await;
    }
    let report = stage.report_of(&sid).await;
    assert_eq!(
        (field(&report, "state"), field(&report, "attempts")),
        ("2", "3")
    );
    assert_eq!(
        (field(&report, "result"), field(&report, "ended")),
        ("busy", "unpaid")
    );
    assert_eq!(funds().await, (money("0.05"), money("0")));
    let fees: Vec<_> = stage
        .lines(&sid)
        .await
        .into_iter()
        .map(|line| line.fee)
        .collect();
    assert_eq!(fees, [money("0.10"); 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_attempt_is_paid_by_itself_until_the_money_is_gone() {
    one_attempt_is_paid_at_a_time("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_attempt_is_paid_by_itself_until_the_money_is_gone_on_postgres() {
    one_attempt_is_paid_at_a_time(&on_postgres().await).await;
}

async fn says_all_or_nothing(database: &str) {
    let rates = "[rates]\ndefault = [{ prefix = \"*\", unit_seconds = 1, price = \"0.01\", unanswered = \"0\" }]\n";
    let stage = Stage::prepared(&format!("{database}{rates}{TIMES}"), async |store, _| {
        let sid = support::SID.parse().unwrap();
        let change = AccountChange {
            balance: Some(Some(money("0.03"))),
            ..AccountChange::default()
        };
        store.change_account(&sid, change).await.unwrap();
    })
    .await;
    let text = "\"mediaTxt\":\"The water rises. Please leave the house at once, and take the children with you.\"";
    let fields = format!("{text},\"priority\":\"4\",\"backupTo\":\"13800000005\"");
    let sid = stage.call("13800000001", &fields).await;
    let report = stage.report_of(&sid).await;
    let said = ["state", "attempts", "ended"].map(|name| field(&report, name));
    assert_eq!(said, ["2", "0", "unpaid"]);
    assert!(stage.legs(&sid).await.is_empty(), "nobody was called");
    let lines = stage.lines(&sid).await;
    assert_eq!((lines.len(), lines[0].fee), (1, money("0")));
    let account = support::SID.parse().unwrap();
    let funds = stage.server.store.funds(&account).await.unwrap().unwrap();
    assert_eq!(
        (funds.balance, funds.reserved),
        (Some(money("0.03")), money("0"))
    );
    // So long as it may talk at all it is paid, and a simple call says what it can.
    let short = format!("{text},\"priority\":\"4\",\"maxCallTime\":\"1\"");
    let sid = stage.call("13800000001", &short).await;
    assert_eq!(field(&stage.report_of(&sid).await, "ended"), "talked");
    let sid = stage.call("13800000001", text).await;
    assert_eq!(field(&stage.report_of(&sid).await, "state"), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_whose_message_cannot_be_paid_says_nothing() {
    says_all_or_nothing("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_whose_message_cannot_be_paid_says_nothing_on_postgres() {
    says_all_or_nothing(&on_postgres().await).await;
}

/// Its first attempt is over before midnight, its second after it.
async fn is_billed_on_two_days(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    stage.server.permit_bills().await;
    let billed = async || {
        let fetched = stage
            .server
            .get(&stage.server.bill("").await.target())
            .await;
        let rows = csv::read(fetched.text()).unwrap();
        let ids = rows.into_iter().skip(1).map(|(_, row)| row[0].clone());
        ids.collect::<Vec<_>>()
    };
    stage.server.set_time("2026-11-15T23:30:00+08:00");
    let sid = stage.call("13800000002", &redialled(1)).await;
    eventually("the first attempt is over", async || {
        let is_queued = stage.record(&sid).await.state == CallState::Queued;
        is_queued && stage.attempts(&sid).await.len() == 1
    })
    .await;
    let question = format!("CallResult?callsid={sid}");
    let answer = stage.server.ask(&question, "xml", None).await;
    for part in ["<state>3</state>", "<attempts>1</attempts>"] {
        assert!(answer.contains(part), "{part} is not in {answer}");
    }
    stage.server.set_time("2026-11-16T00:10:00+08:00");
    assert_eq!(billed().await, [sid.to_string()]);
    stage.let_time_pass(SignedDuration::from_secs(3000)).await;
    let report = stage.report_of(&sid).await;
    assert_eq!(field(&report, "attempts"), "2");
    stage.server.set_time("2026-11-17T00:10:00+08:00");
    assert_eq!(billed().await, [format!("{sid}-2")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_of_two_days_are_on_two_bills() {
    is_billed_on_two_days("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_of_two_days_are_on_two_bills_on_postgres() {
    is_billed_on_two_days(&on_postgres().await).await;
}
