//! What a notice costs: each attempt by itself.

use clarion::domain::account::AccountChange;
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
