//! What comes from those who mean harm, or have made a mistake: it is refused with a sentence and counted, and costs nobody else anything.

use std::time::Duration;

use clarion::api::auth::SAME_TIME;
use clarion::domain::call::CallSid;
use clarion::domain::intake::IntakeFormat;
use clarion::domain::intake::change::IntakeChange;
use clarion::management::settings::Settings;
use clarion::management::{ManagementError, NewIntake};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::{Intake, accepted, answered, counted, post, posting, said};
use crate::support::{self, PATIENCE, TestServer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_token_is_refused_like_an_unknown_intake_and_counted() {
    let server = TestServer::start().await;
    let intake = Intake::json(&server, &[("to", "13800000001")]).await;
    let series = "clarion_intake_refused_total{code=\"190012\"}";
    let before = counted(&server, series).await;
    let (body, right) = (r#"{"text":"x"}"#, intake.token.clone());
    let bearer = |token: &str| format!("authorization: Bearer {token}\r\n");
    let wrong = "0".repeat(64);
    let requests = [
        ("/intake/shop".to_owned(), bearer(&wrong)),
        ("/intake/shop".to_owned(), String::new()),
        (
            "/intake/shop".to_owned(),
            format!("authorization: Basic {right}\r\n"),
        ),
        ("/intake/nobody".to_owned(), bearer(&right)),
        ("/intake/a%20b".to_owned(), bearer(&right)),
        (format!("/intake/shop?token={wrong}"), String::new()),
        // That is the door of another format.
        (
            "/api/v2/calls/tts".to_owned(),
            format!("access-token: {right}\r\n"),
        ),
    ];
    for (path, headers) in &requests {
        let request = posting(path, headers, body);
        let (answer, time) = server.door().shortest_answer(&request).await;
        let told = answered(&answer);
        assert_eq!(
            (told.status, told.code()),
            (401, "190012"),
            "{path} {headers}"
        );
        assert!(time >= SAME_TIME, "{path} {headers}: after {time:?}");
        assert_eq!(told.message(), "the intake or its token is not valid");
    }
    let after = counted(&server, series).await;
    assert!(after - before >= requests.len() as f64, "{before} {after}");
    let query = format!("/intake/shop?token={right}");
    assert_eq!(post(&server, &query, "", body).await.result(), "called");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_stored_as_a_hash_and_can_be_replaced() {
    let server = TestServer::start().await;
    let intake = Intake::json(&server, &[("to", "13800000001")]).await;
    let stored = "SELECT token_hash FROM intakes";
    let stored = support::text_of(&server.database, stored).await;
    assert_eq!(stored.len(), 64);
    assert_ne!(stored, intake.token);
    let name = "shop".parse().unwrap();
    let rotated = server.management().rotate_intake_token(&name).await;
    let (_, new) = rotated.unwrap();
    assert_eq!(intake.fire("oven").await.code(), "190012");
    let headers = format!("authorization: bearer {}\r\n", new.reveal());
    let told = post(&server, "/intake/shop", &headers, r#"{"text":"x"}"#).await;
    assert_eq!(told.result(), "called");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_whose_request_panics_comes_again() {
    let server = TestServer::start().await;
    let intake = Intake::json(&server, &[("to", "13800000001")]).await;
    assert!(server.supervisor().request_panic("request"));
    let told = intake.fire("oven").await;
    assert_eq!((told.status, told.code()), (503, "111000"));
    assert_eq!(intake.fire("oven").await.result(), "called");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_intake_has_the_limits_of_its_account_and_refusals_are_counted() {
    let server = TestServer::start_with("[limits]\nrequests_per_second = 1\n").await;
    let intake = Intake::json(&server, &[("to", "13800000001")]).await;
    let series = "clarion_intake_refused_total{code=\"111111\"}";
    let before = counted(&server, series).await;
    let alerts = (0..20).map(|_| intake.fire("oven"));
    let told = futures_util::future::join_all(alerts).await;
    let refused = told.iter().filter(|told| told.status == 503);
    assert!(refused.clone().all(|told| told.code() == "111111"));
    let after = counted(&server, series).await;
    assert!(refused.count() > 0 && after > before, "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn networks_of_an_intake_let_nobody_else_in() {
    let server = TestServer::start().await;
    let settings = [("to", "13800000001"), ("networks", "192.0.2.0/24")];
    let intake = Intake::json(&server, &settings).await;
    let told = intake.fire("oven").await;
    assert_eq!((told.status, told.code()), (403, "111115"));
    assert!(told.message().contains("networks"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_ten_megabytes_is_refused_and_the_answer_is_seen() {
    let server = TestServer::start().await;
    let intake = Intake::json(&server, &[("to", "13800000001")]).await;
    let body = format!(r#"{{"text":"{}"}}"#, "x".repeat(10 << 20));
    let of = |code: &str| format!("clarion_intake_refused_total{{code=\"{code}\"}}");
    let before = counted(&server, &of("110062")).await;
    let told = intake.send(&body).await;
    assert_eq!((told.status, told.code()), (413, "110062"));
    assert!(counted(&server, &of("110062")).await > before);
    // Also from who has no token.
    let told = post(&server, "/intake/shop", "", &body).await;
    assert_eq!((told.status, told.code()), (401, "190012"));
    let deep = format!(
        r#"{{"text":{}1{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    // However deep it is, what is no text is passed over.
    let before = counted(&server, &of("108023")).await;
    let told = intake.send(&deep).await;
    assert_eq!((told.status, told.code()), (422, "108023"));
    assert!(counted(&server, &of("108023")).await > before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_thousand_alerts_three_are_said_and_the_rest_is_counted() {
    let server = TestServer::start().await;
    let settings = [
        ("to", "13800000001"),
        ("language", "en"),
        ("new-alerts-call", "on"),
    ];
    let intake = Intake::add(&server, "prod", IntakeFormat::Alertmanager, &settings).await;
    let alert = |number: usize| {
        format!(
            r#"{{"status":"firing","labels":{{"alertname":"Down","instance":"h{number}"}},"annotations":{{"summary":"it is down"}},"startsAt":"2026-11-18T03:05:07Z","fingerprint":"{number:016x}"}}"#
        )
    };
    let alerts: Vec<_> = (0..10_000).map(alert).collect();
    let body = format!(
        r#"{{"version":"4","groupKey":"{{}}:{{}}","truncatedAlerts":5,"status":"firing","groupLabels":{{}},"alerts":[{}]}}"#,
        alerts.join(",")
    );
    let told = intake.send(&body).await;
    assert_eq!(told.result(), "called");
    let text = said(&server, &told.call()).await;
    assert!(
        text.contains("on h2,") && !text.contains("on h3,"),
        "{text}"
    );
    assert!(text.ends_with(" And 10002 more."), "{text}");
    assert_eq!(intake.send(&body).await.result(), "known");
}

/// A long alert of which the end does not come.
async fn dripping(server: &TestServer, intake: &Intake<'_>) -> TlsStream<TcpStream> {
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\nexpect: 100-continue\r\ncontent-length: 1000000\r\n\r\n{{",
        intake.path, intake.token
    );
    let mut stream = server.door().tls(&[]).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_alerts_of_an_account_are_taken_two_at_a_time_and_short_ones_at_once() {
    let seconds = 2 * PATIENCE.as_secs();
    let settings = format!(
        "[http]\nbody_seconds = {seconds}\n[audio_files]\nupload_grace_seconds = {seconds}\n"
    );
    let server = TestServer::start_with(&settings).await;
    let intake = Intake::json(&server, &[("to", "13800000001")]).await;
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push((dripping(&server, &intake).await, false));
    }
    // The server reads the body of whoever has a place, and says so.
    let mut read = async || {
        for (stream, is_read) in &mut streams {
            let mut bytes = [0; 100];
            let moment = Duration::from_millis(1);
            if let Ok(Ok(1..)) = timeout(moment, stream.read(&mut bytes)).await {
                *is_read = true;
            }
        }
        streams.iter().filter(|(_, is_read)| *is_read).count()
    };
    support::eventually("two of them are read", async || read().await == 2).await;
    assert_eq!(intake.fire("oven").await.result(), "called");
    assert_eq!(read().await, 2, "the others wait");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_that_drips_is_refused_with_the_rule() {
    let settings =
        "[audio_files]\nupload_grace_seconds = 1\nmin_upload_bytes_per_second = 100000\n";
    let server = TestServer::start_with(settings).await;
    let intake = Intake::json(&server, &[("to", "13800000001")]).await;
    let mut stream = dripping(&server, &intake).await;
    let answer = support::raw::read_to_close(&mut stream).await;
    let answer = answer.replace("HTTP/1.1 100 Continue\r\n\r\n", "");
    let told = answered(&answer);
    assert_eq!((told.status, told.code()), (400, "110141"), "{told:?}");
    let rule = "after 1 seconds, at least 100000 bytes a second";
    assert!(told.message().contains(rule), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_for_which_there_is_no_room_opens_no_incident_and_comes_again() {
    let server = TestServer::start_with("min_free_mb = 17179869184\n").await;
    let intake = Intake::json(&server, &[("to", "13800000001")]).await;
    let told = intake.fire("oven").await;
    assert_eq!((told.status, told.code()), (503, "190014"), "{told:?}");
    let name = "shop".parse().unwrap();
    let open = server.store.open_incidents(&name, 9).await.unwrap();
    assert!(open.is_empty(), "{open:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_incident_beyond_ten_thousand_open_ones_is_refused_and_comes_again() {
    let server = TestServer::start().await;
    let intake = Intake::json(&server, &[("to", "13800000001")]).await;
    let now = server.clock.now().as_millisecond();
    let fill = format!(
        "INSERT INTO incidents (intake, incident_key, id, notices, fingerprints, opened_at, seen_at) \
         WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000) \
         SELECT 'shop', 'k' || n, 'i' || n, 0, '[]', {now}, {now} FROM numbers"
    );
    support::execute(&server.database, &fill).await;
    assert_eq!(intake.fire("oven").await.result(), "called");
    let told = intake.fire("fridge").await;
    assert_eq!((told.status, told.code()), (503, "111111"), "{told:?}");
    assert!(told.message().contains("10000 open incidents"), "{told:?}");
    assert_eq!(intake.fire("oven").await.result(), "known");
    assert_eq!(intake.resolve("oven").await.result(), "resolved");
    assert_eq!(intake.fire("fridge").await.result(), "called");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_outside_the_allow_list_calls_the_intakes_own_people_and_is_counted() {
    let server = TestServer::start().await;
    let settings = [
        ("to", "13800000001"),
        ("to-label", "oncall"),
        ("allow-numbers", "+8613800000002"),
    ];
    let intake = Intake::add(&server, "prod", IntakeFormat::Alertmanager, &settings).await;
    let group = |key: &str, label: &str| {
        format!(
            r#"{{"version":"4","groupKey":"{key}","status":"firing","alerts":[{{"status":"firing","labels":{{"alertname":"Down","oncall":"{label}"}},"annotations":{{"summary":"down"}}}}]}}"#
        )
    };
    let allowed = intake.send(&group("a", "13800000002")).await;
    assert_eq!(
        accepted(&server, &allowed.call()).await.called,
        "13800000002"
    );
    let series = "clarion_intake_refused_total{code=\"108035\"}";
    let before = counted(&server, series).await;
    for (place, label) in [
        "13900000001",
        "+4412345678901",
        "119",
        "@nobody",
        "no body!",
    ]
    .iter()
    .enumerate()
    {
        let told = intake.send(&group(&format!("b{place}"), label)).await;
        let call = accepted(&server, &told.call()).await;
        assert_eq!(call.called, "13800000001", "{label}");
        let notice = call.notice.unwrap();
        assert_eq!(
            (notice.numbers.len(), notice.lists.len()),
            (1, 0),
            "{label}"
        );
    }
    assert!(counted(&server, series).await > before);
}

/// Alertmanager's group with a label that says whom to call.
fn labelled(key: &str, labels: &[&str]) -> String {
    let alert = |label: &&str| {
        format!(
            r#"{{"status":"firing","labels":{{"alertname":"Down","oncall":"{label}"}},"annotations":{{"summary":"down"}}}}"#
        )
    };
    let alerts: Vec<_> = labels.iter().map(alert).collect();
    format!(
        r#"{{"version":"4","groupKey":"{key}","status":"firing","alerts":[{}]}}"#,
        alerts.join(",")
    )
}

async fn callees(server: &TestServer, call: &CallSid) -> Vec<String> {
    let notice = accepted(server, call).await.notice.unwrap();
    notice.numbers.iter().map(|to| to.called.clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_may_not_be_called_keeps_no_alert_from_being_heard() {
    let settings = "[numbers]\npermitted = [\"+86120\"]\nforbidden = [\"+8613800009*\"]\n";
    let server = TestServer::start_with(settings).await;
    let settings = [
        ("to", "13800000001,13800000002"),
        ("to-label", "oncall"),
        ("allow-numbers", "+86*"),
    ];
    let intake = Intake::add(&server, "prod", IntakeFormat::Alertmanager, &settings).await;
    // All teams that the alerts of a group name are called.
    let teams = ["13800000003", "13800000004", "13800000003"];
    let told = intake.send(&labelled("a", &teams)).await;
    let named = callees(&server, &told.call()).await;
    assert_eq!(named, ["13800000003", "13800000004"]);
    // A label names an emergency number, one that the platform does not call, and one that wants no calls of the account.
    let account = support::SID.parse().unwrap();
    let management = server.management();
    let unwanted = ["13800000005".to_owned()];
    let added = management.add_do_not_call(&account, &unwanted).await;
    added.unwrap();
    for label in ["120", "13800009001", "13800000005"] {
        let told = intake.send(&labelled(label, &[label])).await;
        let own = callees(&server, &told.call()).await;
        assert_eq!(own, ["13800000001", "13800000002"], "{label}");
    }
    // One of the intake's own people is barred: the other is called.
    management.bar_number("13800000001").await.unwrap();
    support::eventually("the bar is known", async || {
        let told = intake.send(&labelled(&clarion::random::id(), &[""])).await;
        callees(&server, &told.call()).await == ["13800000002"]
    })
    .await;
    // In a body, an emergency number is refused, even one that requests may name, and a mistyped one is not taken for a list.
    let json = Intake::json(&server, &[("to", "13800000002"), ("allow-numbers", "+86*")]).await;
    for number in ["120", "138000000012345678"] {
        let body = format!(r#"{{"text":"x","to":"{number}","redialTimes":"0"}}"#);
        let told = json.send(&body).await;
        assert_eq!(told.status, 422, "{told:?}");
        assert!(!told.message().contains(number), "{told:?}");
    }
}

/// What is refused when it is saved.
async fn refused(server: &TestServer, settings: &[(&str, &str)]) -> String {
    let new = NewIntake {
        name: "wrong".parse().unwrap(),
        app: support::app_id(),
        format: IntakeFormat::Alertmanager,
        settings: IntakeChange::from_texts(settings.iter().copied()).unwrap(),
    };
    let error: ManagementError = server.management().add_intake(new).await.unwrap_err();
    assert!(error.is_refusal(), "{error}");
    error.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_fail_at_night_is_refused_when_it_is_saved() {
    let server = TestServer::start().await;
    let to = ("to", "13800000001");
    let endless = "{% for a in text or alerts[0].what %}{% for b in alerts[0].what %}{% for c in alerts[0].what %}{% for d in alerts[0].what %}{{ a }}{% endfor %}{% endfor %}{% endfor %}{% endfor %}";
    for (settings, word) in [
        (vec![], "name somebody"),
        (vec![("to", "1380000")], "to"),
        (vec![("to", "119")], "to"),
        (vec![("to", "@nobody")], "@nobody"),
        (vec![to, ("text", "{{ unclosed")], "text"),
        (vec![to, ("text", "{{ what | frobnicate }}")], "frobnicate"),
        (vec![to, ("text", "{% set a = 1 %}x")], "set"),
        (
            vec![
                to,
                (
                    "text",
                    "{% for a in ['xx'] %}{% for a in [a ~ a] %}{{ a }}{% endfor %}{% endfor %}",
                ),
            ],
            "text",
        ),
        (vec![to, ("text", "{{ '' }}")], "no text"),
        (vec![to, ("text", endless)], "fuel"),
        (vec![to, ("redial-times", "99")], "redialTimes"),
        (vec![to, ("confirm-dtmf", "x")], "confirmDtmf"),
        (vec![to, ("resp-url", "ftp://h")], "respUrl"),
        (vec![to, ("silence-key", "2")], "silence-url"),
        (
            vec![to, ("silence-key", "0"), ("silence-url", "http://h")],
            "replayDtmf",
        ),
    ] {
        let said = refused(&server, &settings).await;
        assert!(said.contains(word), "{settings:?}: {said}");
    }
    // Also where alerts will say who is called.
    let named = [("allow-numbers", "+86*"), ("redial-times", "99")];
    assert!(refused(&server, &named).await.contains("redialTimes"));
    assert!(server.management().intakes().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_that_loops_all_the_same_is_replaced_by_a_plain_sentence() {
    let server = TestServer::start().await;
    // It is short for the sample, and endless for a long alert.
    let template = "{% if count and text | length > 100 %}{% for a in text %}{% for b in text %}{% for c in text %}{% endfor %}{% endfor %}{% endfor %}{% endif %}It burns.";
    let settings = [("to", "13800000001"), ("text", template)];
    let intake = Intake::json(&server, &settings).await;
    let body = format!(r#"{{"text":"{}"}}"#, "burning ".repeat(200));
    let told = intake.send(&body).await;
    assert_eq!(told.result(), "called");
    let text = said(&server, &told.call()).await;
    assert!(text.starts_with("Alert of shop: burning burning"), "{text}");
}
