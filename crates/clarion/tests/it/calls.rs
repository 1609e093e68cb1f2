//! Whole calls through the front door: HTTPS in, a telephone that hears, a callback out.

mod callers;
mod endings;
mod heard;
mod limits;
mod outcomes;
mod prompts;
mod refusals;
mod reports;
mod routes;
mod secure;
mod sipp;
pub mod stage;
mod turns;
mod vanished;
mod voices;

use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;

use self::stage::{Stage, field};
use crate::support::{TestServer, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_is_spoken_reported_and_billed() {
    let stage = Stage::new("").await;
    let sid = stage
        .call(
            "13800000001",
            "\"mediaTxt\":\"您好 hello\",\"playTimes\":\"2\",\"userData\":\"<&>\\\"数据\"",
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
    let heard = stage.recording(&sid).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_trunk_is_tried_where_the_first_cannot_be_reached() {
    let stage = Stage::new(
        "[[trunk]]\nname = \"dead\"\nhost = \"127.0.0.1:1\"\ntransport = \"tcp\"\noptions_seconds = 0\nchannels = 5\ncalls_per_second = 5\nprefixes = [\"\"]\npriority = 1\n",
    )
    .await;
    let sid = stage.call("13800000002", "\"mediaTxt\":\"hello\"").await;
    assert_eq!(field(&stage.report().await, "state"), "1");
    let record = stage.server.store.call_record(&sid).await.unwrap().unwrap();
    assert_eq!(
        (record.trunk.as_deref(), record.tries),
        (Some("loopback"), 2)
    );
    assert_eq!(
        (record.sip_code, record.outcome),
        (Some(486), Some(Outcome::Busy))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operator_stops_all_dialling_and_lets_it_go_on() {
    let stage = Stage::new("").await;
    let now = stage.server.clock.now();
    let store = &stage.server.store;
    store
        .set_switch(clarion::dispatch::STOP_ALL, Some("on"), now)
        .await
        .unwrap();
    // The switch is honoured within a second or two: calls placed after that stay queued.
    let mut waiting = None;
    eventually("nothing is dialled any more", async || {
        let sid = stage.call("13800000004", "\"mediaTxt\":\"hello\"").await;
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let record = store.call_record(&sid).await.unwrap().unwrap();
        waiting = Some(sid);
        record.state == CallState::Queued && record.tries == 0
    })
    .await;
    store
        .set_switch(clarion::dispatch::STOP_ALL, None, now)
        .await
        .unwrap();
    let sid = waiting.unwrap();
    eventually("it is dialled after all", async || {
        let record = store.call_record(&sid).await.unwrap().unwrap();
        record.outcome == Some(Outcome::Declined)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_does_not_want_to_be_called_is_refused() {
    let stage = Stage::new("").await;
    let now = stage.server.clock.now();
    let barred = stage.server.store.bar_number("8613800000004", true, now);
    assert!(barred.await.unwrap());
    eventually("the number is refused", async || {
        let answer = stage
            .server
            .call_json("\"to\":\"+8613800000004\",\"mediaTxt\":\"hello\"")
            .await;
        answer.contains("108035")
    })
    .await;
}
