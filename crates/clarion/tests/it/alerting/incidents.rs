//! Which alert calls: the first of an incident, a repeat only where nobody knows, and none after its end.

use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::intake::IntakeFormat;

use super::{Intake, said};
use crate::calls::stage::{Stage, field, on_postgres};
use crate::support::{self, TestServer, eventually};

const TIMES: &str = "[dispatch]\nring_seconds = 30\nretry_seconds = 1\n";

/// With the address that is told how each notice ended.
async fn intake<'a>(stage: &'a Stage, to: &str, more: &[(&str, &str)]) -> Intake<'a> {
    let url = stage.receiver.url();
    let mut settings = vec![
        ("to", to),
        ("resp-url", url.as_str()),
        ("wait-dtmf-time", "1"),
    ];
    settings.extend(more);
    Intake::json(&stage.server, &settings).await
}

async fn ended(stage: &Stage, call: &CallSid) -> String {
    field(&stage.report_of(call).await, "ended").to_owned()
}

async fn a_hundred_times(server: &TestServer) {
    let intake = Intake::json(server, &[("to", "13800000001")]).await;
    let alerts = (0..100).map(|_| intake.fire("oven"));
    let told = futures_util::future::join_all(alerts).await;
    let called = told.iter().filter(|told| told.status == 200);
    let results: Vec<_> = called.map(super::Told::result).collect();
    let count = |wanted: &str| results.iter().filter(|result| **result == wanted).count();
    assert_eq!(count("called"), 1, "{results:?}");
    assert_eq!(count("known"), results.len() - 1);
    // Beyond the limits of the account, a tool is asked to come again.
    assert!(told.iter().all(|told| [200, 503].contains(&told.status)));
    let (waiting, _) = server.store.queue_depth().await.unwrap();
    assert_eq!(waiting, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_group_a_hundred_times_a_second_is_one_notice() {
    a_hundred_times(&TestServer::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_group_a_hundred_times_a_second_is_one_notice_on_postgres() {
    a_hundred_times(&TestServer::start_with(&on_postgres().await).await).await;
}

async fn repeats_and_a_second_outage(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let intake = intake(&stage, "13800000012", &[]).await;
    let first = intake.fire("oven").await;
    assert_eq!(first.result(), "called");
    assert_eq!(intake.fire("oven").await.result(), "known", "it rings");
    assert_eq!(ended(&stage, &first.call()).await, "confirmed");
    let report = stage.report_of(&first.call()).await;
    assert_eq!(field(&report, "confirmNumber"), "13800000012");
    assert!(report.contains("\"key\":\"oven\""), "{report}");
    let again = intake.fire("oven").await;
    assert_eq!((again.result(), again.call()), ("known", first.call()));
    assert_eq!(intake.fire("fridge").await.result(), "called");
    // It is over, and comes again.
    assert_eq!(intake.resolve("oven").await.result(), "resolved");
    assert_eq!(intake.resolve("oven").await.result(), "nothing");
    let second = intake.fire("oven").await;
    assert_eq!(second.result(), "called");
    assert_ne!(second.call(), first.call());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_who_has_confirmed_hears_of_it_again_only_after_its_end() {
    repeats_and_a_second_outage("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_who_has_confirmed_hears_of_it_again_only_after_its_end_on_postgres() {
    repeats_and_a_second_outage(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_rings_again_where_nobody_has_confirmed() {
    let stage = Stage::new(TIMES).await;
    // One is busy, and the other declines.
    let intake = intake(
        &stage,
        "13800000002,13800000004",
        &[("redial-times", "none")],
    )
    .await;
    let first = intake.fire("oven").await;
    assert_eq!(ended(&stage, &first.call()).await, "exhausted");
    let second = intake.fire("oven").await;
    assert_eq!(second.result(), "called");
    assert_ne!(second.call(), first.call());
    assert_eq!(ended(&stage, &second.call()).await, "exhausted");
}

async fn what_is_over_rings_nobody(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let intake = intake(&stage, "13800000003,13800000012", &[]).await;
    // It rings, and is hung up; the second person is not called.
    let ringing = intake.fire("rings").await.call();
    stage.is_in(&ringing, CallState::Ringing).await;
    assert_eq!(intake.resolve("rings").await.result(), "resolved");
    let report = stage.report_of(&ringing).await;
    let said = ["state", "attempts", "result", "ended"].map(|name| field(&report, name).to_owned());
    assert_eq!(said, ["1", "1", "cancelled", "resolved"]);
    // It waits, because the line is busy.
    let change = [("to", "13800000002"), ("redial-interval", "600")];
    change_to(&stage, &change).await;
    let waiting = intake.fire("waits").await.call();
    eventually("the first attempt is over", async || {
        let history = stage.server.store.call_history(&waiting).await.unwrap();
        history.attempts.len() == 1
    })
    .await;
    intake.resolve("waits").await;
    assert_eq!(ended(&stage, &waiting).await, "resolved");
    // Somebody listens: they hear it to its end, and are not called again.
    change_to(&stage, &[("to", "13800000001"), ("redial-interval", "10")]).await;
    let talking = intake.fire("talks").await.call();
    stage.is_in(&talking, CallState::Answered).await;
    intake.resolve("talks").await;
    let report = stage.report_of(&talking).await;
    let said = ["attempts", "result", "ended"].map(|name| field(&report, name).to_owned());
    assert_eq!(said, ["1", "unconfirmed", "resolved"]);
}

async fn change_to(stage: &Stage, settings: &[(&str, &str)]) {
    use clarion::domain::intake::change::IntakeChange;
    use clarion::management::settings::Settings;
    let change = IntakeChange::from_texts(settings.iter().copied()).unwrap();
    let management = stage.server.management();
    let name = "shop".parse().unwrap();
    management.set_intake(&name, change).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_over_rings_nobody_and_cuts_nobody_off() {
    what_is_over_rings_nobody("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_over_rings_nobody_and_cuts_nobody_off_on_postgres() {
    what_is_over_rings_nobody(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_that_joins_calls_again_where_the_intake_says_so() {
    let server = TestServer::start().await;
    let group = |alerts: &[&str]| {
        let alert = |print: &&str| {
            format!(
                r#"{{"status":"firing","labels":{{"alertname":"Down","instance":"{print}"}},"annotations":{{"summary":"{print} is down"}},"fingerprint":"{print}"}}"#
            )
        };
        let alerts: Vec<_> = alerts.iter().map(alert).collect();
        format!(
            r#"{{"version":"4","groupKey":"g","status":"firing","alerts":[{}]}}"#,
            alerts.join(",")
        )
    };
    for (name, joins, wanted) in [("quiet", "off", "known"), ("loud", "on", "called")] {
        let settings = [("to", "13800000001"), ("new-alerts-call", joins)];
        let intake = Intake::add(&server, name, IntakeFormat::Alertmanager, &settings).await;
        let first = intake.send(&group(&["a", "b"])).await;
        assert_eq!(first.result(), "called");
        assert_eq!(intake.send(&group(&["b"])).await.result(), "known");
        let joined = intake.send(&group(&["b", "c"])).await;
        assert_eq!(joined.result(), wanted, "{name}");
        if joins == "on" {
            // The notice that runs gives way to the one that tells of all.
            assert!(said(&server, &joined.call()).await.contains("c is down"));
            let query = format!(
                "SELECT CAST(resolved AS TEXT) FROM call_queue WHERE call_sid = '{}'",
                first.call()
            );
            assert_eq!(support::text_of(&server.database, &query).await, "1");
            let same = intake.send(&group(&["c"])).await;
            assert_eq!((same.result(), same.call()), ("known", joined.call()));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incident_of_which_nothing_is_heard_is_closed() {
    let server = TestServer::start().await;
    let settings = [("to", "13800000001"), ("close-after", "30")];
    let intake = Intake::json(&server, &settings).await;
    let first = intake.fire("oven").await;
    let past = |minutes: u32| {
        let millis = minutes * 60_000;
        format!("UPDATE incidents SET seen_at = seen_at - {millis}")
    };
    support::execute(&server.database, &past(29)).await;
    assert_eq!(intake.fire("oven").await.result(), "known");
    support::execute(&server.database, &past(31)).await;
    let second = intake.fire("oven").await;
    assert_eq!(second.result(), "called");
    assert_ne!(second.call(), first.call());
}

async fn nothing_is_lost_in_a_crash(database: &str) {
    let server = TestServer::start_with(database).await;
    let intake = Intake::json(&server, &[("to", "13800000001")]).await;
    let first = intake.fire("oven").await;
    // The call was accepted, and the server died before it could write that down.
    let lost = "UPDATE incidents SET notices = 0, call_sid = NULL, fingerprints = '[]'";
    support::execute(&server.database, lost).await;
    let again = intake.fire("oven").await;
    assert_eq!((again.result(), again.call()), ("known", first.call()));
    support::execute(&server.database, lost).await;
    let over = intake.resolve("oven").await;
    assert_eq!((over.result(), over.call()), ("resolved", first.call()));
    eventually("its notice is over", async || {
        let record = server.store.call_record(&first.call()).await;
        record.unwrap().unwrap().state == CallState::Ended
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_that_a_crash_left_unnoted_is_found_again() {
    nothing_is_lost_in_a_crash("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_that_a_crash_left_unnoted_is_found_again_on_postgres() {
    nothing_is_lost_in_a_crash(&on_postgres().await).await;
}
