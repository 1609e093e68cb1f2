//! What limits a notification limits a code as well, and the hours of its account limit it more.

use clarion::domain::account::AccountChange;
use clarion::domain::money::Money;
use jiff::SignedDuration;

use super::verify;
use crate::support::{self, TestServer, eventually, status_code};

const CODE: &str = "\"verifyCode\":\"1234\"";
const RATES: &str = "[rates]\ndefault = [{ prefix = \"*\", unit_seconds = 60, price = \"0.12\", unanswered = \"0.10\" }]\n";
/// Only numbers of China are carried, and each is called once a day.
const TRUNK: &str = "[dispatch]\ncallee_per_day = 1\n[[trunk]]\nname = \"loopback\"\nloopback = true\nchannels = 5\ncalls_per_second = 50\nprefixes = [\"86\"]\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_limits_a_notification_limits_a_code() {
    let none = Some(Money::ZERO);
    for (to, balance, spending_limit, code, words) in [
        (
            "13800000002",
            None,
            None,
            "190004",
            "to: this number has had its 1 calls of the day",
        ),
        ("13800000001", none, None, "111142", "balance"),
        ("13800000001", None, none, "190005", "spending limit"),
        ("+12125550123", None, None, "190007", "no route"),
    ] {
        let server = TestServer::start_prepared(&format!("{RATES}{TRUNK}"), async |store, _| {
            let change = AccountChange {
                balance: Some(balance),
                spending_limit: Some(spending_limit),
                ..AccountChange::default()
            };
            let sid = support::SID.parse().unwrap();
            store.change_account(&sid, change).await.unwrap();
        })
        .await;
        if code == "190004" {
            let had = verify(&server, &format!("\"to\":\"{to}\",{CODE}")).await;
            let had = support::call_sid(&had).parse().unwrap();
            eventually("its call of the day is over", async || {
                let record = server.store.call_record(&had).await.unwrap();
                record.unwrap().ended_at.is_some()
            })
            .await;
        }
        let before = server.store.queue_depth().await.unwrap().0;
        let answer = verify(&server, &format!("\"to\":\"{to}\",{CODE}")).await;
        assert_eq!(status_code(&answer), code, "{answer}");
        assert!(answer.contains(words), "{answer}");
        assert_eq!(server.store.queue_depth().await.unwrap().0, before);
    }
}

/// It would be worth nothing when they open. `api/request_times.rs` has the seconds around that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_refused_while_the_hours_of_its_account_are_closed_for_long() {
    let server = TestServer::start_prepared("", async |store, clock| {
        let now = clock.wall();
        let at = |hours| {
            let time = now.checked_add(SignedDuration::from_hours(hours)).unwrap();
            time.strftime("%H%M").to_string()
        };
        let hours = format!("{}-{}", at(2), at(4)).parse().unwrap();
        let change = AccountChange {
            call_hours: Some(Some(hours)),
            ..AccountChange::default()
        };
        let sid = support::SID.parse().unwrap();
        store.change_account(&sid, change).await.unwrap();
    })
    .await;
    let to = "\"to\":\"13800000001\"";
    let answer = verify(&server, &format!("{to},{CODE}")).await;
    assert_eq!(
        answer,
        "{\"statusCode\":\"108023\",\"statusMsg\":\"to: the call hours of the account stay closed for longer than a code is valid, which is 120 seconds\"}"
    );
    assert_eq!(server.store.queue_depth().await.unwrap().0, 0);
    let notification = server.call_json(&format!("{to},\"mediaTxt\":\"x\"")).await;
    assert_eq!(status_code(&notification), "000000", "it waits for them");
}
