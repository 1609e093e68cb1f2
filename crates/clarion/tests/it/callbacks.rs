//! The delivery of callbacks by a running server, against real receivers that behave and misbehave.

mod guard;
mod lives;
mod turns;

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clarion::domain::account::{ApplicationChange, CallbackSecret};
use clarion::domain::callback::{Callback, CallbackAttempt, CallbackState};
use clarion::store::CallbackFilter;
use hmac::{Hmac, KeyInit, Mac};
use jiff::SignedDuration;
use sha2::Sha256;
use tokio::net::TcpSocket;
use tokio::process::Command;

use crate::support::owed::{call, key, owe, owed_to, pass};
use crate::support::receiver::{Manner, Received, Receiver, answer, ok};
use crate::support::{TestServer, eventually, postgres};

/// Receivers of the tests are on this machine, and nobody waits for hours.
const SETTINGS: &str = "[callbacks]\nallowed_networks = [\"127.0.0.0/8\"]\nretry_seconds = [0.05, 0.05, 0.05]\njitter = 0.0\n\
    time_limit_seconds = 1\npoll_seconds = 1\nstop_seconds = 1\n";

fn verdicts(attempts: &[CallbackAttempt]) -> Vec<&'static str> {
    attempts
        .iter()
        .map(|attempt| attempt.verdict.as_str())
        .collect()
}

/// One callback to a receiver with these manners; its attempts when it has come to `state`.
async fn outcome(manners: Vec<Manner>, state: CallbackState) -> Vec<CallbackAttempt> {
    let (server, receiver) = (
        TestServer::start_with(SETTINGS).await,
        Receiver::start(manners).await,
    );
    server.owe(&[receiver.url()]).await;
    server.callback_is(1, state).await
}

#[tokio::test]
async fn a_callback_is_posted_as_documented_and_recorded() {
    let (server, receiver) = (
        TestServer::start_with(SETTINGS).await,
        Receiver::start(vec![ok()]).await,
    );
    let ended_at = "2026-11-14T18:35:39Z".parse().unwrap();
    let began = server.clock.now().as_second();
    owe(
        &server.database,
        vec![owed_to(&receiver.url(), 1, ended_at)],
    )
    .await;
    server.deliver_callbacks();
    let attempts = server.callback_is(1, CallbackState::Delivered).await;
    assert_eq!(verdicts(&attempts), ["delivered"]);
    assert_eq!(attempts[0].status, Some(200));
    let answer = "<Response><statuscode>000000</statuscode></Response>";
    assert_eq!(attempts[0].answer.as_deref(), Some(answer));

    let received = receiver.received();
    assert_eq!(received.len(), 1);
    let line = received[0].head.lines().next();
    assert_eq!(line, Some("POST /cb?a=1&token=secret HTTP/1.1"));
    let header = |name| received[0].header(name);
    assert_eq!(header("host"), Some(receiver.address.to_string().as_str()));
    assert_eq!(header("content-type"), Some("text/plain"));
    assert_eq!(header("user-agent"), Some("Clarion"));
    assert_eq!(
        header("webhook-id"),
        Some(format!("msg_{}", call(1)).as_str())
    );
    assert_eq!(header("webhook-signature"), None, "no secret, no signature");
    let at: i64 = header("webhook-timestamp").unwrap().parse().unwrap();
    assert!((began..=server.clock.now().as_second()).contains(&at));
    assert_eq!(
        received[0].body,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><request><action>SellingCall</action><number>13800000000</number>\
         <callSid>00000000000000000000000000000001</callSid><state>0</state><starttime>20261115023509</starttime>\
         <endtime>20261115023539</endtime><duration>30</duration><userData>订单 &lt;&amp;&gt;\"7</userData></request>"
    );
}

/// What arrives when the application has this secret.
async fn signed_delivery(secret: CallbackSecret) -> Received {
    let server = TestServer::start_with(SETTINGS).await;
    let receiver = Receiver::start(vec![ok()]).await;
    let change = ApplicationChange {
        callback_secret: Some(Some(secret)),
        ..ApplicationChange::default()
    };
    server.change_application(change).await;
    server.owe(&[receiver.url()]).await;
    receiver.has_received(1).await.remove(0)
}

#[tokio::test]
async fn a_callback_is_signed_when_the_application_has_a_secret() {
    let received = signed_delivery(CallbackSecret::from_key(&[42; 32])).await;
    let header = |name| received.header(name).unwrap();
    // As a receiver computes it, with nothing of ours.
    let signed = format!(
        "{}.{}.{}",
        header("webhook-id"),
        header("webhook-timestamp"),
        received.body
    );
    let mut mac = Hmac::<Sha256>::new_from_slice(&[42; 32]).unwrap();
    mac.update(signed.as_bytes());
    let wanted = format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(header("webhook-signature"), wanted);
}

#[tokio::test]
async fn the_receivers_guide_verifies_a_real_delivery() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/callbacks.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let example = guide.split("```python\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let secret = CallbackSecret::from_key(&[42; 32]);
    let received = signed_delivery(secret.clone()).await;
    let secret = secret.reveal();
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let headers = names.map(|name| format!("{name:?}: {:?}", received.header(name).unwrap()));
    let headers = headers.join(", ");
    let forged = received.body.replace("<state>0", "<state>1");
    for (body, wanted) in [(received.body.clone(), "True"), (forged, "False")] {
        let ask = format!("print(is_genuine({secret:?}, {{{headers}}}, {body:?}.encode()))");
        let mut python = Command::new("python3");
        let output = python.arg("-c").arg(format!("{example}\n{ask}")).output();
        let output = output.await.unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            said.trim(),
            wanted,
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[tokio::test]
async fn a_failing_receiver_is_tried_again_with_the_same_webhook_id() {
    for database in [None, Some(postgres::empty_database().await)] {
        let setting = database.map_or_else(String::new, |url| format!("database = {url:?}\n"));
        let server = TestServer::start_with(&format!("{setting}{SETTINGS}")).await;
        let receiver = Receiver::start(vec![answer(500, "", "no"), Manner::Reset, ok()]).await;
        server.owe(&[receiver.url()]).await;
        let attempts = server.callback_is(1, CallbackState::Delivered).await;
        assert_eq!(verdicts(&attempts), ["bad-status", "broken", "delivered"]);
        assert_eq!(attempts[0].answer.as_deref(), Some("no"));
        assert_eq!((attempts[0].status, attempts[1].status), (Some(500), None));
        let received = receiver.received();
        let ids: Vec<_> = received
            .iter()
            .map(|request| request.header("webhook-id"))
            .collect();
        assert_eq!(ids, [Some(format!("msg_{}", call(1)).as_str()); 3]);
        assert_eq!(received[0].body, received[2].body);
        server.stop().await;
    }
}

#[tokio::test]
async fn what_keeps_failing_is_given_up_visibly() {
    let attempts = outcome(vec![answer(404, "", "")], CallbackState::GivenUp).await;
    assert_eq!(verdicts(&attempts), ["bad-status"; 4]);
    assert_eq!(attempts[3].error.as_deref(), Some("HTTP status 404"));
}

#[tokio::test]
async fn a_receiver_that_does_not_answer_in_time_is_tried_again() {
    let head = "HTTP/1.1 200 OK\r\nx: ".to_owned();
    let manners = vec![Manner::Hang, Manner::Drip(head, b'x'), ok()];
    let attempts = outcome(manners, CallbackState::Delivered).await;
    assert_eq!(verdicts(&attempts), ["timed-out", "timed-out", "delivered"]);
    assert!(attempts[0].milliseconds >= 1000);
}

#[tokio::test]
async fn a_receiver_that_is_not_there_is_tried_again() {
    let server = TestServer::start_with(SETTINGS).await;
    // A port that is taken, and where nobody listens.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let gone = format!("http://{}/", socket.local_addr().unwrap());
    let nowhere = "http://does-not-exist.invalid/".to_owned();
    server.owe(&[gone, nowhere]).await;
    for number in [1, 2] {
        let attempts = server.callback_is(number, CallbackState::GivenUp).await;
        // Looking up a name may take longer than we wait where there is no name server.
        let silent = |attempt: &CallbackAttempt| !attempt.verdict.is_answer();
        assert!(
            attempts.len() == 4 && attempts.iter().all(silent),
            "{attempts:?}"
        );
    }
}

#[tokio::test]
async fn what_is_not_http_or_too_long_is_a_broken_answer() {
    let endless_head = Manner::Flood("HTTP/1.1 200 OK\r\nx: ".to_owned());
    let manners = vec![
        Manner::Say("SMTP ready\r\n".into()),
        Manner::Say(String::new()),
        endless_head,
        ok(),
    ];
    let attempts = outcome(manners, CallbackState::Delivered).await;
    assert_eq!(
        verdicts(&attempts),
        ["broken", "broken", "broken", "delivered"]
    );
}

/// Some provisional answers are usual; a receiver that sends nothing else is given up after 128 KiB, long before its time is over.
#[tokio::test]
async fn provisional_answers_without_end_are_a_broken_answer() {
    let few = format!(
        "{}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 103 X\r\nlink: x\r\n\r\n".repeat(20)
    );
    let manners = vec![
        Manner::Repeat("HTTP/1.1 100 Continue\r\n\r\n".to_owned()),
        Manner::Say(few),
    ];
    let attempts = outcome(manners, CallbackState::Delivered).await;
    assert_eq!(verdicts(&attempts), ["broken", "delivered"]);
    let said = attempts[0].error.as_deref().unwrap_or_default();
    assert!(said.contains("goes on sending before it answers"), "{said}");
}

#[tokio::test]
async fn the_status_counts_however_the_body_drips_breaks_off_or_never_ends() {
    for manner in [
        Manner::Drip(
            "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n".into(),
            b'x',
        ),
        Manner::Flood("HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n".into()),
        Manner::Flood("HTTP/1.1 200 OK\r\n\r\n".into()),
        Manner::Say("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nok".into()),
        Manner::Say("HTTP/1.1 204 No Content\r\n\r\n".into()),
        answer(200, "", "<Response><statuscode>000000"),
        answer(200, "", "\0\u{1b}[2J<<<&&&>"),
        answer(202, "content-encoding: gzip\r\n", "x"),
    ] {
        let attempts = outcome(vec![manner.clone()], CallbackState::Delivered).await;
        assert_eq!(verdicts(&attempts), ["delivered"], "{manner:?}");
        let kept = attempts[0].answer.as_deref().unwrap_or_default();
        assert!(
            kept.len() <= 600 && !kept.contains(['\0', '\u{1b}']),
            "{}",
            kept.len()
        );
    }
}

#[tokio::test]
async fn a_statuscode_that_says_no_is_tried_again() {
    let xml = answer(200, "", "<Response><statuscode>111</statuscode></Response>");
    let json = answer(200, "", "{\"statuscode\":\"111\"}");
    let attempts = outcome(vec![xml, json, ok()], CallbackState::Delivered).await;
    assert_eq!(verdicts(&attempts), ["refused", "refused", "delivered"]);
    assert_eq!(attempts[0].error.as_deref(), Some("statuscode 111"));
}

/// From the begin of an attempt, by the server's clock, to the next one, by the store's, which may be milliseconds apart.
fn seconds_until_due(callback: &Callback, attempt: &CallbackAttempt) -> i64 {
    let due = callback.due_at.expect("it waits");
    let wait = due.duration_since(attempt.started_at) + SignedDuration::from_millis(50);
    wait.as_secs()
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let date = "retry-after: Fri, 01 Jan 2100 00:00:00 GMT\r\n";
    let manners = vec![
        answer(429, "retry-after: 100\r\n", ""),
        answer(503, date, ""),
        ok(),
    ];
    let (server, receiver) = (
        TestServer::start_with(SETTINGS).await,
        Receiver::start(manners).await,
    );
    server.owe(&[receiver.url()]).await;
    for (count, wait) in [(1, 100), (2, 86_400)] {
        eventually("an attempt", async || {
            server.callback(1).await.1.len() == count
        })
        .await;
        let (callback, attempts) = server.callback(1).await;
        let due = seconds_until_due(&callback, &attempts[count - 1]);
        assert!((wait..wait + 60).contains(&due), "{due}");
        pass(&server.database, SignedDuration::from_secs(wait + 60)).await;
        server.deliver_callbacks();
    }
    server.callback_is(1, CallbackState::Delivered).await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Receiver::start(vec![ok()]).await;
    let headers = format!("location: {}\r\n", elsewhere.url());
    let manners = [301, 302, 307].map(|status| answer(status, &headers, ""));
    let attempts = outcome(manners.to_vec(), CallbackState::GivenUp).await;
    assert_eq!(verdicts(&attempts), ["bad-status"; 4]);
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn a_certificate_must_be_trusted_and_may_be_trusted_by_the_operator() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start_tls(vec![ok()], folder.path()).await;
    let plain = Receiver::start(vec![ok()]).await;
    let urls = [
        format!("https://localhost:{}/cb", receiver.address.port()),
        format!("https://{}/not-its-name", receiver.address),
        format!("https://{}/speaks-no-tls", plain.address),
    ];
    let server = TestServer::start_with(SETTINGS).await;
    server.owe(&urls).await;
    for number in [1, 2] {
        let attempts = server.callback_is(number, CallbackState::GivenUp).await;
        assert_eq!(verdicts(&attempts), ["tls-failed"; 4]);
    }
    let attempts = server.callback_is(3, CallbackState::GivenUp).await;
    assert_eq!(
        verdicts(&attempts),
        ["timed-out"; 4],
        "it waits for a request"
    );
    assert_eq!(receiver.received().len() + plain.received().len(), 0);

    let trusting = format!(
        "{SETTINGS}ca_file = {:?}\n",
        receiver.certificate.as_ref().unwrap()
    );
    let server = TestServer::start_with(&trusting).await;
    server.owe(&urls).await;
    let attempts = server.callback_is(1, CallbackState::Delivered).await;
    assert_eq!(verdicts(&attempts), ["delivered"]);
    server.callback_is(2, CallbackState::GivenUp).await;
}

#[tokio::test]
async fn dead_receivers_do_not_delay_others() {
    let small = "concurrency = 6\nper_host = 2\ntime_limit_seconds = 15\n";
    let settings = SETTINGS.replace("time_limit_seconds = 1\n", small);
    let server = TestServer::start_with(&settings).await;
    let (dead, alive) = (
        Receiver::start(vec![Manner::Hang]).await,
        Receiver::start(vec![ok()]).await,
    );
    server.owe(&vec![dead.url(); 300]).await;
    eventually("the dead one has all it gets", async || {
        dead.connections() == 2
    })
    .await;
    let owed = (1001..=1100).map(|number| owed_to(&alive.url(), number, server.clock.now()));
    owe(&server.database, owed.collect()).await;
    server.deliver_callbacks();
    alive.has_received(100).await;
    assert_eq!(dead.connections(), 2);
}

#[tokio::test]
async fn no_more_are_under_way_than_allowed_in_all() {
    let settings = SETTINGS.replace(
        "time_limit_seconds = 1\n",
        "concurrency = 3\nper_host = 2\ntime_limit_seconds = 15\n",
    );
    let server = TestServer::start_with(&settings).await;
    let (first, second) = (
        Receiver::start(vec![Manner::Hang]).await,
        Receiver::start(vec![Manner::Hang]).await,
    );
    let urls = [vec![first.url(); 5], vec![second.url(); 5]].concat();
    server.owe(&urls).await;
    eventually("all places are taken", async || {
        first.connections() + second.connections() == 3
    })
    .await;
    server.deliver_callbacks();
    let under_way = CallbackFilter {
        state: Some(CallbackState::Delivering),
        limit: 10,
        ..CallbackFilter::default()
    };
    let found = server.store.callbacks(under_way).await.unwrap();
    assert_eq!(found.callbacks.len(), 3);
    assert!(first.connections() > 0 && second.connections() > 0);
}

#[tokio::test]
async fn the_whole_schedule_takes_its_time_and_a_replay_begins_again() {
    let settings = SETTINGS.replace("retry_seconds = [0.05, 0.05, 0.05]\n", "");
    let mut manners = vec![answer(500, "", ""); 10];
    manners.push(ok());
    let (server, receiver) = (
        TestServer::start_with(&settings).await,
        Receiver::start(manners).await,
    );
    server.owe(&[receiver.url()]).await;
    for (count, wait) in (1..).zip([5, 30, 120, 600, 1800, 7200, 18_000, 36_000, 86_400]) {
        eventually("an attempt", async || {
            server.callback(1).await.1.len() == count
        })
        .await;
        let (callback, attempts) = server.callback(1).await;
        // Counted from the end of the attempt, which a busy machine may take its time for.
        let after = seconds_until_due(&callback, &attempts[count - 1]);
        let longest = wait + 20;
        assert!((wait..longest).contains(&after), "attempt {count}: {after}");
        pass(&server.database, SignedDuration::from_secs(longest)).await;
        server.deliver_callbacks();
    }
    let attempts = server.callback_is(1, CallbackState::GivenUp).await;
    assert_eq!(verdicts(&attempts), ["bad-status"; 10]);

    server.store.replay_callback(&key(1)).await.unwrap();
    server.deliver_callbacks();
    let attempts = server.callback_is(1, CallbackState::Delivered).await;
    assert_eq!(attempts.len(), 11);
    let received = receiver.received();
    assert_eq!(
        received[10].header("webhook-id"),
        received[0].header("webhook-id")
    );
}
