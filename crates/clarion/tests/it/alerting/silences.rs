//! A callee who presses the key that the intake names silences the group in Alertmanager: told before, made once, through the outbox.

use clarion::domain::callback::{CallbackKey, CallbackState};
use clarion::domain::intake::IntakeFormat;
use clarion::domain::intake::change::IntakeChange;
use clarion::management::settings::Settings;
use serde_json::Value;

use super::{Intake, accepted};
use crate::calls::stage::{Stage, on_postgres};
use crate::support::receiver::{Receiver, answer};
use crate::support::{self, TestServer, eventually};

const GROUP: &str = r#"{"version":"4","groupKey":"g","status":"firing","groupLabels":{"alertname":"Down","cluster":"a \"b\""},"alerts":[{"status":"firing","labels":{"alertname":"Down","instance":"h1"},"annotations":{"summary":"it is down"}}]}"#;

async fn a_silence_is_made(database: &str) {
    let stage = Stage::new(&format!("{database}[dispatch]\nring_seconds = 1\n")).await;
    // The first request fails: it is tried again.
    let unavailable = answer(503, "retry-after: 0\r\n", "");
    let made = answer(200, "", r#"{"silenceID":"8b3f"}"#);
    let alertmanager = Receiver::start(vec![unavailable, made]).await;
    let url = alertmanager.url();
    let url = url.split('/').take(3).collect::<Vec<_>>().join("/");
    let settings = [
        ("to", "13800000012"),
        ("silence-key", "1"),
        ("silence-url", url.as_str()),
        ("silence-minutes", "30"),
        ("confirm-dtmf", "2"),
    ];
    let intake = Intake::add(&stage.server, "prod", IntakeFormat::Alertmanager, &settings).await;
    let call = intake.send(GROUP).await.call();
    let notice = accepted(&stage.server, &call).await.notice.unwrap();
    assert_eq!(notice.keys.as_ref().unwrap().confirm, ['2', '1']);
    let received = alertmanager.has_received(2).await;
    for request in &received {
        assert!(
            request.head.starts_with("POST /api/v2/silences "),
            "{request:?}"
        );
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.body, received[0].body);
    }
    let body: Value = serde_json::from_str(&received[0].body).unwrap();
    let matcher = |name: &str, value: &str| serde_json::json!({ "name": name, "value": value, "isRegex": false, "isEqual": true });
    assert_eq!(
        body["matchers"],
        serde_json::json!([matcher("alertname", "Down"), matcher("cluster", "a \"b\"")])
    );
    let moment = |name: &str| {
        body[name]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap()
    };
    let lasts = moment("endsAt").duration_since(moment("startsAt"));
    assert_eq!(lasts.as_mins(), 30);
    assert_eq!(body["createdBy"], "clarion, intake prod");
    let comment = body["comment"].as_str().unwrap();
    assert!(
        comment.contains("****0012") && !comment.contains("13800000012"),
        "{comment}"
    );
    let key = CallbackKey::of_silence(call);
    eventually("the silence is settled", async || {
        let owed = stage.server.store.callback(&key).await.unwrap();
        owed.unwrap().0.state == CallbackState::Delivered
    })
    .await;
    // It counts as it was offered, whatever the intake says by now.
    let none = [("silence-key", "none"), ("silence-url", "none")];
    let change = IntakeChange::from_texts(none).unwrap();
    let management = stage.server.management();
    let name = "prod".parse().unwrap();
    management.set_intake(&name, change).await.unwrap();
    assert_eq!(intake.send(GROUP).await.result(), "known");
    for table in ["calls", "attempts"] {
        let past = format!("UPDATE {table} SET ended_at = ended_at - {}", 31 * 60_000);
        support::execute(&stage.server.database, &past).await;
    }
    assert_eq!(intake.send(GROUP).await.result(), "called");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trial_silences_nothing_and_silences_are_off_until_they_are_wanted() {
    let server = TestServer::start().await;
    let plain = Intake::add(
        &server,
        "plain",
        IntakeFormat::Alertmanager,
        &[("to", "13800000012")],
    )
    .await;
    let notice = accepted(&server, &plain.send(GROUP).await.call())
        .await
        .notice;
    assert_eq!(notice.unwrap().silence, None);
    let settings = [
        ("to", "13800000012"),
        ("silence-key", "9"),
        ("silence-url", "http://127.0.0.1:9"),
    ];
    Intake::add(&server, "prod", IntakeFormat::Alertmanager, &settings).await;
    let management = server.management();
    let name = "prod".parse().unwrap();
    let tried = management.test_intake(&name, Some(GROUP.as_bytes())).await;
    let call = tried.unwrap().remove(0).notice.unwrap().call.unwrap();
    let notice = accepted(&server, &call).await.notice.unwrap();
    assert_eq!(notice.silence, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_presses_the_key_silences_exactly_the_group() {
    a_silence_is_made("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_presses_the_key_silences_exactly_the_group_on_postgres() {
    a_silence_is_made(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_key_confirms_and_silences_nothing() {
    let stage = Stage::new("").await;
    let alertmanager = Receiver::start(vec![answer(200, "", "{}")]).await;
    let url = alertmanager.url();
    let report = stage.receiver.url();
    let settings = [
        ("to", "13800000012"),
        ("silence-key", "2"),
        ("silence-url", url.as_str()),
        ("resp-url", report.as_str()),
    ];
    let intake = Intake::add(&stage.server, "prod", IntakeFormat::Alertmanager, &settings).await;
    let call = intake.send(GROUP).await.call();
    let report = stage.report_of(&call).await;
    assert!(report.contains("<dtmf>1</dtmf>"), "{report}");
    let key = CallbackKey::of_silence(call);
    assert_eq!(stage.server.store.callback(&key).await.unwrap(), None);
    // A group without labels cannot be told from others: nobody is offered to silence it.
    let bare = GROUP.replace(
        r#""groupLabels":{"alertname":"Down","cluster":"a \"b\""}"#,
        r#""groupLabels":{}"#,
    );
    let bare = bare.replace(r#""groupKey":"g""#, r#""groupKey":"h""#);
    let call = intake.send(&bare).await.call();
    let notice = accepted(&stage.server, &call).await.notice.unwrap();
    assert_eq!(notice.silence, None);
    assert_eq!(notice.keys.as_ref().unwrap().confirm, ['1']);
}
