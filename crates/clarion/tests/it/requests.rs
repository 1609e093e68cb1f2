//! A request that is repeated: `requestId` and the header `Idempotency-Key`.

use clarion::domain::account::AccountChange;

use crate::calls::stage::on_postgres;
use crate::support::bills::money;
use crate::support::{APP, SID, TestServer, eventually, execute, status_code};

async fn send(server: &TestServer, headers: &str, body: &str) -> String {
    let signature = server.sign();
    let request = format!(
        "POST /2013-12-26/Accounts/{SID}/Calls/LandingCalls?sig={} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: {}\r\n\
         Accept: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        signature.sig,
        signature.authorization,
        body.len()
    );
    server.send_raw(request.as_bytes()).await
}

fn json(text: &str, more: &str) -> String {
    format!(r#"{{"appId":"{APP}","to":"13800000000","mediaTxt":"{text}"{more}}}"#)
}

fn answered(answer: &str) -> &str {
    answer.split("\r\n\r\n").nth(1).unwrap()
}

fn is_replay(answer: &str) -> bool {
    answer.to_lowercase().contains("idempotent-replayed: true")
}

#[tokio::test]
async fn the_same_request_again_gets_the_same_answer_and_makes_nothing_new() {
    let server = TestServer::start().await;
    let first = send(&server, "", &json("hi", r#","requestId":"order 7""#)).await;
    assert_eq!(status_code(&first), "000000", "{first}");
    assert!(!is_replay(&first));
    let again = send(&server, "", &json("hi", r#","requestId":"order 7""#)).await;
    assert!(is_replay(&again), "{again}");
    assert_eq!(answered(&again), answered(&first));
    // The same fields in another form, and the name in the other place.
    let xml = format!(
        "<LandingCall><appId>{APP}</appId><to>+8613800000000</to><mediaTxt>hi</mediaTxt><playTimes>1</playTimes></LandingCall>"
    );
    let header = "Idempotency-Key: order 7\r\nContent-Type: application/xml\r\n";
    let again = send(&server, header, &xml).await;
    assert_eq!(answered(&again), answered(&first), "{again}");
    assert_eq!(server.store.queue_depth().await.unwrap().0, 1);
}

#[tokio::test]
async fn a_name_that_was_used_for_another_request_is_refused() {
    let server = TestServer::start().await;
    send(&server, "", &json("hi", r#","requestId":"7""#)).await;
    let other = send(&server, "", &json("ho", r#","requestId":"7""#)).await;
    assert_eq!(status_code(&other), "190010", "{other}");
    let both = json("hi", r#","requestId":"7""#);
    let both = send(&server, "Idempotency-Key: 8\r\n", &both).await;
    assert_eq!(status_code(&both), "108023", "{both}");
    assert!(both.contains("requestId"), "{both}");
    let long = json("hi", &format!(r#","requestId":"{}""#, "x".repeat(65)));
    let long = send(&server, "", &long).await;
    assert_eq!(status_code(&long), "108023", "{long}");
    // What was refused is not remembered.
    let bad = send(
        &server,
        "",
        &json("hi", r#","requestId":"9","playTimes":"7""#),
    )
    .await;
    assert_eq!(status_code(&bad), "108036", "{bad}");
    let good = send(&server, "", &json("hi", r#","requestId":"9""#)).await;
    assert_eq!(status_code(&good), "000000", "{good}");
    assert_eq!(server.store.queue_depth().await.unwrap().0, 2);
}

#[tokio::test]
async fn of_many_requests_of_one_name_at_once_one_makes_a_call() {
    let server = TestServer::start().await;
    let body = json("hi", r#","requestId":"7""#);
    let many = (0..20).map(|_| send(&server, "", &body));
    let answers = futures_util::future::join_all(many).await;
    assert!(
        answers
            .iter()
            .all(|answer| answered(answer) == answered(&answers[0]))
    );
    assert_eq!(
        answers.iter().filter(|answer| !is_replay(answer)).count(),
        1
    );
    assert_eq!(server.store.queue_depth().await.unwrap().0, 1);
}

/// The first takes the last money; the others are no less its repetition for that.
async fn money_for_one_call(database: &str) {
    let rates = "[rates]\ndefault = [{ prefix = \"*\", unit_seconds = 60, price = \"0.10\", unanswered = \"0\" }]\n";
    let server = TestServer::start_prepared(&format!("{database}{rates}"), async |store, _| {
        let change = AccountChange {
            balance: Some(Some(money("0.10"))),
            ..AccountChange::default()
        };
        store
            .change_account(&SID.parse().unwrap(), change)
            .await
            .unwrap();
    })
    .await;
    let body = json("hi", r#","requestId":"7","maxCallTime":"60""#);
    let many = (0..40).map(|_| send(&server, "", &body));
    let answers = futures_util::future::join_all(many).await;
    for answer in &answers {
        assert_eq!(answered(answer), answered(&answers[0]));
    }
    assert_eq!(status_code(&answers[0]), "000000");
    let other = send(&server, "", &json("hi", r#","requestId":"8""#)).await;
    assert_eq!(status_code(&other), "111142", "{other}");
    assert_eq!(server.store.queue_depth().await.unwrap().0, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_requests_of_one_name_one_is_paid_with_the_last_money() {
    money_for_one_call("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_requests_of_one_name_one_is_paid_with_the_last_money_on_postgres() {
    money_for_one_call(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_kept_until_two_days_after_the_end() {
    let server = TestServer::start().await;
    let ask = async |name: &str| {
        let body = json("hi", &format!(r#","requestId":"{name}""#));
        send(&server, "", &body).await
    };
    for name in ["47 hours", "49 hours"] {
        let sid = crate::support::call_sid(&ask(name).await);
        server
            .store
            .cancel_call(&sid.parse().unwrap())
            .await
            .unwrap();
        eventually("it is over", async || {
            let record = server.store.call_record(&sid.parse().unwrap()).await;
            record.unwrap().unwrap().ended_at.is_some()
        })
        .await;
        let hours: i64 = name[..2].parse().unwrap();
        let ended = format!(
            "UPDATE calls SET ended_at = ended_at - {} WHERE call_sid = '{sid}'",
            hours * 3_600_000
        );
        execute(&server.database, &ended).await;
    }
    eventually("the older name means a new call", async || {
        let answer = ask("49 hours").await;
        status_code(&answer) == "000000" && !is_replay(&answer)
    })
    .await;
    assert!(is_replay(&ask("47 hours").await));
}

#[tokio::test]
async fn a_repetition_stays_one_when_another_number_is_shown_by_default() {
    let with_default = |number: &str| format!("[numbers]\ndefault_caller = \"{number}\"\n");
    let mut server = TestServer::start_with(&with_default("4001234567")).await;
    let body = json("hi", r#","requestId":"7""#);
    let first = send(&server, "", &body).await;
    assert_eq!(status_code(&first), "000000", "{first}");
    server.take_server().stop().await;
    server.restart(&with_default("4007654321")).await;
    let again = send(&server, "", &body).await;
    assert_eq!(answered(&again), answered(&first), "{again}");
    // What the request itself wants to show is a part of it.
    let other = json("hi", r#","requestId":"7","displayNum":"4007654321""#);
    let other = send(&server, "", &other).await;
    assert_eq!(status_code(&other), "190010", "{other}");
}
