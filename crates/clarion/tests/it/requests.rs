//! A request that is repeated: `requestId` and the header `Idempotency-Key`.

use crate::support::{APP, SID, TestServer, status_code};

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
