//! Whole calls through the front door: HTTPS in, a telephone that hears, a callback out.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;

use crate::support::receiver::{Receiver, ok};
use crate::support::{SID, TestServer, call_sid, eventually};

/// A trunk that leads to the telephone in the server, which records what it hears.
fn settings(more: &str, record: &str) -> String {
    format!(
        "{more}\n[callbacks]\nallowed_networks = [\"127.0.0.0/8\"]\n[[trunk]]\nname = \"loopback\"\nloopback = true\nchannels = 50\ncalls_per_second = 200\nprefixes = [\"\"]\nrecord = {record:?}\n"
    )
}

struct Stage {
    server: TestServer,
    receiver: Receiver,
    heard: tempfile::TempDir,
    reported: AtomicUsize,
}

impl Stage {
    async fn new(more: &str) -> Self {
        let heard = tempfile::tempdir().unwrap();
        let receiver = Receiver::start(vec![ok()]).await;
        let record = heard.path().to_str().unwrap();
        let server = TestServer::start_with(&settings(more, record)).await;
        Self {
            server,
            receiver,
            heard,
            reported: AtomicUsize::new(0),
        }
    }

    /// Places a call and gives its callSid.
    async fn call(&self, number: &str, extra: &str) -> CallSid {
        let url = self.receiver.url();
        let fields = format!(
            "\"to\":\"{number}\",\"respUrl\":\"{url}\",\"userData\":\"<&>\\\"数据\",{extra}"
        );
        let answer = self.server.call_json(&fields).await;
        call_sid(&answer).parse().unwrap()
    }

    /// The body of the next callback, when it has come.
    async fn report(&self) -> String {
        let place = self.reported.fetch_add(1, Ordering::Relaxed);
        let received = self.receiver.has_received(place + 1).await;
        received[place].body.clone()
    }

    /// What the callee heard, as a WAV file.
    async fn heard(&self, sid: &CallSid) -> Vec<u8> {
        let path: PathBuf = self.heard.path().join(format!("{sid}.wav"));
        eventually("a recording", async || path.exists()).await;
        std::fs::read(path).unwrap()
    }

    async fn outcome(&self, sid: &CallSid) -> Option<Outcome> {
        let progress = self
            .server
            .store
            .call_progress(&SID.parse().unwrap(), sid)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(progress.state, CallState::Ended);
        progress.outcome
    }
}

fn field<'a>(body: &'a str, name: &str) -> &'a str {
    let open = format!("<{name}>");
    let rest = body
        .split(&open)
        .nth(1)
        .unwrap_or_else(|| panic!("no {name} in {body}"));
    rest.split("</").next().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_is_spoken_reported_and_billed() {
    let stage = Stage::new("").await;
    let sid = stage
        .call(
            "13800000001",
            "\"mediaTxt\":\"您好 hello\",\"playTimes\":\"2\"",
        )
        .await;
    let body = stage.report().await;
    assert_eq!(field(&body, "callSid"), sid.as_str());
    assert_eq!(
        (field(&body, "state"), field(&body, "number")),
        ("0", "13800000001")
    );
    assert_eq!(field(&body, "userData"), "&lt;&amp;&gt;\"数据");
    let duration: u32 = field(&body, "duration").parse().unwrap();
    assert!((2..30).contains(&duration), "{duration}");
    assert_eq!(stage.outcome(&sid).await, Some(Outcome::Talked));
    let heard = stage.heard(&sid).await;
    assert!(heard.len() > 16_000, "{} bytes", heard.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_to_fail_is_reported() {
    let stage = Stage::new("[dispatch]\nring_seconds = 1\nretry_seconds = 1").await;
    for (number, state, outcome) in [
        ("13800000002", "1", Outcome::Busy),
        ("13800000003", "1", Outcome::NotAnswered),
        ("13800000004", "1", Outcome::Declined),
        ("13800000005", "0", Outcome::Talked),
        ("13800000008", "2", Outcome::InvalidNumber),
    ] {
        let sid = stage.call(number, "\"mediaTxt\":\"hello\"").await;
        let body = stage.report().await;
        assert_eq!(
            (field(&body, "callSid"), field(&body, "state")),
            (sid.as_str(), state),
            "{number}"
        );
        assert_eq!(stage.outcome(&sid).await, Some(outcome));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_no_trunk_carries_waits_and_expires() {
    let stage = Stage::new("[calls]\nexpire_seconds = 2\n[dispatch]\nretry_seconds = 1").await;
    let sid = stage.call("13800000007", "\"mediaTxt\":\"hello\"").await;
    let body = stage.report().await;
    assert_eq!(field(&body, "state"), "2");
    assert_eq!(stage.outcome(&sid).await, Some(Outcome::Expired));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_no_trunk_covers_is_refused() {
    let server = TestServer::start_with(
        "[[trunk]]\nname = \"a\"\nhost = \"127.0.0.1:9\"\noptions_seconds = 0\nprefixes = [\"44\"]\n",
    )
    .await;
    let answer = server
        .call_json("\"to\":\"13800000001\",\"mediaTxt\":\"hello\"")
        .await;
    assert!(answer.contains("190007"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_call_is_cancelled_by_the_operator() {
    let stage = Stage::new("").await;
    // Two calls to one callee: the second waits for the first.
    let first = stage.call("13800000003", "\"mediaTxt\":\"hello\"").await;
    let second = stage.call("13800000003", "\"mediaTxt\":\"hello\"").await;
    assert!(
        stage
            .server
            .store
            .cancel_call(&second)
            .await
            .unwrap()
            .is_some()
    );
    let body = stage.report().await;
    assert_eq!(
        (field(&body, "callSid"), field(&body, "state")),
        (second.as_str(), "1")
    );
    assert!(
        stage
            .server
            .store
            .cancel_call(&first)
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(field(&stage.report().await, "callSid"), first.as_str());
    assert_eq!(stage.outcome(&first).await, Some(Outcome::Cancelled));
}
