//! Requests a second and at once, per account; calls at once, per application; calls a day, per callee.

use std::time::{Duration, Instant};

use clarion::domain::account::{AccountChange, ApplicationChange};
use clarion::domain::call_record::{CallFilter, CallRecord};
use tokio::io::AsyncWriteExt;

use crate::calls::stage::on_postgres;
use crate::support::raw::read_answer;
use crate::support::{SID, TestServer, eventually, status_code};

#[tokio::test]
async fn requests_beyond_an_accounts_limits_are_refused() {
    let server =
        TestServer::start_with("[limits]\nrequests_per_second = 5\nrequests_at_once = 1000\n")
            .await;
    // The bucket holds five.
    for _ in 0..5 {
        let answer = server.ask("AccountInfo", "json", None).await;
        assert_eq!(status_code(&answer), "000000", "{answer}");
    }
    // Five a second drip in. Of many at once some are too many, however long a request takes.
    eventually("some are refused", async || {
        let many = (0..20).map(|_| server.ask("AccountInfo", "json", None));
        let answers = futures_util::future::join_all(many).await;
        answers.iter().any(|answer| status_code(answer) == "111111")
    })
    .await;
    // The account's own limit takes the place of the platform's.
    let own = AccountChange {
        requests_per_second: Some(Some(100_000)),
        ..AccountChange::default()
    };
    server.change_account(own).await;
    eventually(
        "twenty at once are within the account's own limit",
        async || {
            let mut good = true;
            for _ in 0..20 {
                good &= status_code(&server.ask("AccountInfo", "json", None).await) == "000000";
            }
            good
        },
    )
    .await;
}

#[tokio::test]
async fn a_request_under_way_takes_a_place_until_it_is_answered() {
    let server =
        TestServer::start_with("[limits]\nrequests_per_second = 1000\nrequests_at_once = 1\n")
            .await;
    let signature = server.sign();
    // Its head has arrived, its body has not: it is under way.
    let head = format!(
        "POST /2013-12-26/Accounts/{SID}/Calls/LandingCalls?sig={} HTTP/1.1\r\nHost: h\r\nAuthorization: {}\r\nContent-Length: 2\r\n\r\n",
        signature.sig, signature.authorization
    );
    let mut slow = server.door().tls(&[]).await;
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.flush().await.unwrap();
    eventually("the place is taken", async || {
        status_code(&server.ask("AccountInfo", "json", None).await) == "111111"
    })
    .await;
    slow.write_all(b"{}").await.unwrap();
    assert_eq!(status_code(&read_answer(&mut slow).await), "111169");
    eventually("the place is free again", async || {
        status_code(&server.ask("AccountInfo", "json", None).await) == "000000"
    })
    .await;
}

/// Whoever asks again as soon as he is refused would take the processor from others.
#[tokio::test]
async fn a_request_beyond_the_limits_is_refused_after_a_second() {
    let server =
        TestServer::start_with("[limits]\nrequests_per_second = 1\nrequests_at_once = 1000\n")
            .await;
    eventually("one is refused, a second after it was sent", async || {
        let sent = Instant::now();
        let answer = server.ask("AccountInfo", "json", None).await;
        let is_refused = status_code(&answer) == "111111";
        assert!(!is_refused || sent.elapsed() >= Duration::from_secs(1));
        is_refused
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_wrong_signatures_is_answered_slowly() {
    let server = TestServer::start().await;
    let mut liar = server.credentials();
    liar.token = "f".repeat(32).parse().unwrap();
    let signature = liar.sign(&server.clock.wall());
    let client = server.client();
    let lie = async || {
        let mut connection = client.connect().await.unwrap();
        let sent = Instant::now();
        let answer = connection
            .operation(&liar, &signature, "AccountInfo", "application/json", None)
            .await
            .unwrap();
        assert_eq!(status_code(&answer), "111109");
        sent.elapsed()
    };
    let began = Instant::now();
    let times = futures_util::future::join_all((0..200).map(|_| lie())).await;
    // Fifty, and fifty more for every second that it has taken.
    let at_once = 50.0 + 50.0 * began.elapsed().as_secs_f64();
    let quick = times.iter().filter(|time| **time < Duration::from_secs(1));
    assert!(quick.count() as f64 <= at_once);
}

#[tokio::test]
async fn one_accounts_limit_is_not_anothers() {
    let server =
        TestServer::start_with("[limits]\nrequests_per_second = 1\nrequests_at_once = 1000\n")
            .await;
    let mut other = crate::support::account();
    other.sid = "f".repeat(32).parse().unwrap();
    server.store.add_account(other.clone()).await.unwrap();
    eventually("the first account's limit", async || {
        status_code(&server.ask("AccountInfo", "json", None).await) == "111111"
    })
    .await;
    let credentials = clarion::client::ApiCredentials {
        sid: other.sid,
        token: other.auth_token,
    };
    let signature = credentials.sign(&server.clock.wall());
    let mut connection = server.client().connect().await.unwrap();
    let answer = connection
        .operation(
            &credentials,
            &signature,
            "AccountInfo",
            "application/json",
            None,
        )
        .await
        .unwrap();
    assert_eq!(status_code(&answer), "000000");
}

/// Calls lead to the telephone in the server.
async fn calling(database: &str, dispatch: &str) -> TestServer {
    TestServer::start_with(&format!(
        "{database}[dispatch]\n{dispatch}[[trunk]]\nname = \"loopback\"\nloopback = true\nchannels = 50\ncalls_per_second = 200\nprefixes = [\"\"]\n"
    ))
    .await
}

/// All calls, when so many have ended.
async fn ended(server: &TestServer, count: usize) -> Vec<CallRecord> {
    let all = CallFilter {
        limit: 100,
        ..CallFilter::default()
    };
    let mut records = Vec::new();
    eventually("they have ended", async || {
        records = server.store.list_calls(all.clone()).await.unwrap().calls;
        records
            .iter()
            .filter(|call| call.ended_at.is_some())
            .count()
            == count
    })
    .await;
    records
}

async fn call_one_callee_until_the_day_is_full(database: &str) {
    let server = calling(database, "callee_per_day = 2\n").await;
    let fields = "<to>13800000002</to><mediaTxt>x</mediaTxt>";
    for count in 1..=2 {
        assert_eq!(status_code(&server.call_xml(fields).await), "000000");
        ended(&server, count).await;
    }
    let answer = server.call_xml(fields).await;
    assert_eq!(status_code(&answer), "190004");
    assert!(answer.contains("2 calls of the day"), "{answer}");
    // Nor by another spelling, nor behind an extension.
    for to in ["+8613800000002", "8613800000002", "13800000002-12"] {
        let fields = format!("<to>{to}</to><mediaTxt>x</mediaTxt>");
        let answer = server.call_xml(&fields).await;
        assert_eq!(status_code(&answer), "190004", "{to}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_who_has_had_the_calls_of_the_day_is_not_called_again() {
    call_one_callee_until_the_day_is_full("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_who_has_had_the_calls_of_the_day_is_not_called_again_on_postgres() {
    call_one_callee_until_the_day_is_full(&on_postgres().await).await;
}

async fn call_by_nine_extensions(database: &str) {
    let settings = "callee_per_day = 1\n[numbers]\nswitchboards = [\"+861052823298\"]\nswitchboard_lines = 3\n";
    let server = calling(database, settings).await;
    let mut accepted = 0;
    for extension in 0..9 {
        let fields = format!("<to>010-52823298-{extension}</to><mediaTxt>x</mediaTxt>");
        if status_code(&server.call_xml(&fields).await) == "000000" {
            accepted += 1;
            ended(&server, accepted).await;
        }
    }
    assert_eq!(accepted, 3, "one for each line");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extensions_are_no_way_around_the_cap_of_a_number_unless_it_is_a_switchboard() {
    call_by_nine_extensions("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extensions_are_no_way_around_the_cap_of_a_switchboard_on_postgres() {
    call_by_nine_extensions(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_has_limits_of_its_own() {
    let server = calling("", "ring_seconds = 1\n").await;
    let change = ApplicationChange {
        calls_at_once: Some(Some(1)),
        ..ApplicationChange::default()
    };
    server
        .store
        .change_application(&crate::support::app_id(), change)
        .await
        .unwrap();
    for number in 0..3 {
        let fields = format!("<to>138{number}0000003</to><mediaTxt>x</mediaTxt>");
        assert_eq!(status_code(&server.call_xml(&fields).await), "000000");
    }
    let mut calls = ended(&server, 3).await;
    calls.sort_by_key(|call| call.dialled_at);
    for pair in calls.windows(2) {
        assert!(
            pair[0].ended_at <= pair[1].dialled_at,
            "one after the other: {pair:?}"
        );
    }
}
