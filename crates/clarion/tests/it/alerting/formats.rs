//! What the tools themselves send, byte for byte (`tests/fixtures/alerts`), and what becomes of it.

use std::process::Command;

use clarion::domain::intake::IntakeFormat;
use serde_json::Value;

use super::{Intake, accepted, answered, said};
use crate::support::TestServer;

const GRAFANA: &str = include_str!("../../fixtures/alerts/grafana-webhook.json");
const SMSEAGLE: &str = include_str!("../../fixtures/alerts/uptime-kuma-smseagle.http");
const MEDIA_TYPE: &str = include_str!("../../../../../packaging/zabbix/media_clarion.yaml");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_payload_of_grafanas_own_tests_calls_and_its_resolved_one_ends_it() {
    let server = TestServer::start().await;
    let settings = [("to", "13800000001"), ("language", "en")];
    let intake = Intake::add(&server, "grafana", IntakeFormat::Grafana, &settings).await;
    let told = intake.send(GRAFANA).await;
    assert_eq!(told.result(), "called");
    assert_eq!(told.body["incidents"][0]["key"], "alertname");
    assert_eq!(said(&server, &told.call()).await, "Alert. alert1.");
    let over = GRAFANA.replace("\"status\": \"firing\"", "\"status\": \"resolved\"");
    assert_eq!(intake.send(&over).await.result(), "resolved");
}

/// The request of uptime-kuma's SMSEagle provider, as axios writes it, with the token of the intake.
fn smseagle(intake: &Intake<'_>, text: &str) -> String {
    let (head, body) = SMSEAGLE.split_once("\r\n\r\n").unwrap();
    let body = body.replace("[Web shop] [🔴 Down] timeout of 48000ms exceeded", text);
    let head = head.replace("TOKEN", &intake.token);
    let head = head.replace("LENGTH", &body.len().to_string());
    format!("{head}\r\n\r\n{body}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uptime_kumas_smseagle_provider_calls_each_number_until_the_monitor_is_up() {
    let server = TestServer::start().await;
    let settings = [("allow-numbers", "+86138*")];
    let intake = Intake::add(&server, "kuma", IntakeFormat::SmsEagle, &settings).await;
    let send =
        async |text: &str| answered(&server.send_raw(smseagle(&intake, text).as_bytes()).await);
    let down = "[Web shop] [🔴 Down] timeout of 48000ms exceeded";
    let told = send(down).await;
    assert_eq!(told.status, 200, "{told:?}");
    let entries = told.body.as_array().unwrap();
    assert_eq!(entries.len(), 2, "one for each number");
    for (entry, number) in entries.iter().zip(["13800000001", "13800000002"]) {
        assert_eq!(entry["status"], "queued");
        assert_eq!(entry["number"], number);
        let call = entry["id"].as_str().unwrap().parse().unwrap();
        let text = said(&server, &call).await;
        assert_eq!(text, "Web shop is down, timeout of 48000ms exceeded");
        assert_eq!(accepted(&server, &call).await.called, number);
    }
    let again = send(down).await;
    assert_eq!(
        again.body[0]["id"], entries[0]["id"],
        "nobody is called twice"
    );
    let up = send("[Web shop] [✅ Up] 200 - OK").await;
    assert!(
        up.body
            .as_array()
            .unwrap()
            .iter()
            .all(|entry| entry["status"] == "queued")
    );
    let second = send(down).await;
    assert_ne!(second.body[0]["id"], entries[0]["id"], "a second outage");
    // One number that may not be called does not hinder the other.
    // The provider's other message type has a route of its own, and names a voice.
    let advanced = smseagle(&intake, "[Mail] [🔴 Down] no route");
    let advanced = advanced.replace("/calls/tts ", "/calls/tts_advanced ");
    let told = answered(&server.send_raw(advanced.as_bytes()).await);
    assert_eq!(told.body.as_array().unwrap().len(), 2, "{told:?}");
    let mixed = smseagle(&intake, "x").replace("13800000002", "13900000002");
    let mixed = answered(&server.send_raw(mixed.as_bytes()).await);
    assert_eq!(mixed.body[0]["status"], "queued");
    assert_eq!(mixed.body[1]["status"], "error");
    let wrong = smseagle(&intake, "x").replace(&intake.token, &"0".repeat(64));
    let wrong = answered(&server.send_raw(wrong.as_bytes()).await);
    assert_eq!((wrong.status, wrong.code()), (401, "190012"));
}

/// The script of the media type, indented as the file has it.
fn script() -> String {
    let (_, script) = MEDIA_TYPE.split_once("      script: |\n").unwrap();
    let lines = script.lines();
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with("        "));
    lines
        .map(|line| format!("{}\n", line.get(8..).unwrap_or_default()))
        .collect()
}

/// Runs the script as Zabbix does, with what its macros mean, and returns the request that it makes.
fn sent_by_zabbix(values: &Value) -> (String, Value, String) {
    let program = format!(
        "const sent = {{ headers: [] }};
         class HttpRequest {{
           addHeader(header) {{ sent.headers.push(header); }}
           post(url, body) {{ sent.url = url; sent.body = body; return '{{}}'; }}
           getStatus() {{ return 200; }}
         }}
         const Zabbix = {{ log() {{}} }};
         (function (value) {{ {} }})(process.argv[1]);
         console.log(JSON.stringify(sent));",
        script()
    );
    let output = Command::new("node")
        .args(["-e", &program, &values.to_string()])
        .output()
        .expect("node is there: run `make setup`");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let sent: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (
        text(&sent["url"]),
        sent["headers"].clone(),
        text(&sent["body"]),
    )
}

/// The parameters of the media type with these values.
fn parameters(values: &[(&str, &str)]) -> Value {
    let names = MEDIA_TYPE
        .lines()
        .filter_map(|line| line.strip_prefix("          name: "));
    let value = |name: &str| {
        let found = values.iter().find(|(known, _)| *known == name);
        found.map_or("", |(_, value)| value).to_owned()
    };
    names
        .map(|name| (name.to_owned(), Value::from(value(name))))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_media_type_for_zabbix_brings_a_problem_and_its_recovery() {
    let server = TestServer::start().await;
    let settings = [
        ("to", "13800000001"),
        ("allow-numbers", "+8613800000002"),
        ("language", "en"),
    ];
    let intake = Intake::add(&server, "zabbix", IntakeFormat::Zabbix, &settings).await;
    let problem = [
        ("event_date", "2026.11.18"),
        ("event_time", "03:05:07"),
        ("event_id", "4711"),
        ("event_name", "Zabbix agent is not available (for 3m)"),
        ("event_opdata", "*UNKNOWN*, 5 %"),
        ("event_severity", "Average"),
        ("event_update_status", "0"),
        ("event_value", "1"),
        ("host_name", "web-3"),
        ("intake_url", "https://clarion.example/intake/zabbix"),
        ("intake_token", intake.token.as_str()),
        ("to", "-"),
    ];
    let (url, headers, body) = sent_by_zabbix(&parameters(&problem));
    assert_eq!(url, "https://clarion.example/intake/zabbix");
    assert_eq!(
        headers[1],
        format!("Authorization: Bearer {}", intake.token)
    );
    assert!(!body.contains(&intake.token), "{body}");
    let told = intake.send(&body).await;
    assert_eq!(told.result(), "called");
    let text = said(&server, &told.call()).await;
    assert!(
        text.starts_with("Warning. Zabbix agent is not available (for 3m), 5 %, on web-3, since "),
        "{text}"
    );
    let with = |changes: &[(&str, &str)]| {
        let mut values = problem.to_vec();
        for &(name, value) in changes {
            values.retain(|(known, _)| *known != name);
            values.push((name, value));
        }
        sent_by_zabbix(&parameters(&values)).2
    };
    let update = intake.send(&with(&[("event_update_status", "1")])).await;
    assert_eq!(update.result(), "nothing", "somebody has written about it");
    let other = with(&[("event_id", "4712"), ("to", "13800000002")]);
    let other = intake.send(&other).await;
    assert_eq!(accepted(&server, &other.call()).await.called, "13800000002");
    // Zabbix sends the same event to each user: each is called, and each is told that it is over.
    let second = intake.send(&with(&[("to", "13800000002")])).await;
    assert_eq!(second.result(), "called");
    let over = intake.send(&with(&[("event_value", "0")])).await;
    assert_eq!((over.result(), over.call()), ("resolved", told.call()));
    let over = with(&[("event_value", "0"), ("to", "13800000002")]);
    let over = intake.send(&over).await;
    assert_eq!((over.result(), over.call()), ("resolved", second.call()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uptime_kumas_webhook_calls_for_down_and_ends_with_up() {
    let server = TestServer::start().await;
    let settings = [
        ("to", "13800000001"),
        ("to-label", "oncall"),
        ("allow-numbers", "+86138*"),
    ];
    let intake = Intake::add(&server, "kuma", IntakeFormat::UptimeKuma, &settings).await;
    let report = |status: u8, tags: &str| {
        format!(
            r#"{{"heartbeat":{{"monitorID":7,"status":{status},"time":"2026-11-18 03:05:07.527","msg":"connect ECONNREFUSED 192.0.2.7:443","important":true,"duration":60}},"monitor":{{"id":7,"name":"Mail","hostname":null,"url":"https://mail.example.com","tags":[{tags}]}},"msg":"x"}}"#
        )
    };
    assert_eq!(
        intake.send(&report(2, "")).await.result(),
        "nothing",
        "pending"
    );
    let down = intake.send(&report(0, "")).await;
    assert_eq!(down.result(), "called");
    let text = said(&server, &down.call()).await;
    assert!(
        text.starts_with(
            "Alert. Mail is down, connect ECONNREFUSED 192.0.2.7:443, on mail.example.com, since "
        ),
        "{text}"
    );
    assert_eq!(intake.send(&report(1, "")).await.result(), "resolved");
    let tag = r#"{"tag_id":1,"name":"oncall","value":"13800000009","color":"red"}"#;
    let named = intake.send(&report(0, tag)).await;
    assert_eq!(accepted(&server, &named.call()).await.called, "13800000009");
    // Somebody tries the notification.
    let trial = r#"{"heartbeat":null,"monitor":null,"msg":"Clarion Testing"}"#;
    assert_eq!(intake.send(trial).await.result(), "called");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_json_form_takes_fields_of_a_notice_and_names_what_it_does_not_know() {
    let server = TestServer::start().await;
    let settings = [("to", "13800000001"), ("redial-times", "1")];
    let intake = Intake::json(&server, &settings).await;
    let body = r#"{"text":"It burns.","redialTimes":3,"priority":"2","severity":"critical"}"#;
    let call = accepted(&server, &intake.send(body).await.call()).await;
    let notice = call.notice.unwrap();
    assert_eq!(notice.plan.redials, 3);
    assert_eq!(notice.keys.as_ref().unwrap().confirm, ['1']);
    for (body, code, word) in [
        ("{", "110141", "JSON"),
        ("[]", "110141", "JSON"),
        ("{}", "108023", "text is required"),
        (r#"{"text":["x"]}"#, "108023", "text must be a text"),
        (r#"{"text":"x","respUrl":"http://h"}"#, "108023", "respUrl"),
        (r#"{"text":"x","backupTo":"119"}"#, "108023", "backupTo"),
        (
            r#"{"text":"x","redialTimes":"99"}"#,
            "108023",
            "redialTimes must be",
        ),
        (
            r#"{"text":"x","to":"13900000001"}"#,
            "108035",
            "allow-numbers",
        ),
        (r#"{"text":"x","to":"@nobody"}"#, "108023", "@nobody"),
    ] {
        let told = intake.send(body).await;
        assert!((400..500).contains(&told.status), "{body}: {told:?}");
        assert_eq!(told.code(), code, "{body}");
        assert!(told.message().contains(word), "{body}: {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_of_a_list_are_called_in_their_turns() {
    let server = TestServer::start().await;
    let now = server.clock.now();
    let night = crate::support::call_list("night", &["13800000002=Li", "13800000003"], now);
    server.store.add_list(night).await.unwrap();
    let intake = Intake::json(&server, &[("to", "@night,13800000004")]).await;
    let call = accepted(&server, &intake.fire("oven").await.call()).await;
    assert_eq!(call.called, "13800000002", "the first of the list");
    let notice = call.notice.unwrap();
    assert_eq!(notice.numbers.len(), 2);
    assert_eq!(notice.lists[0].name.as_str(), "night");
    let named = intake.send(r#"{"text":"x","to":"night"}"#).await;
    assert_eq!(accepted(&server, &named.call()).await.called, "13800000002");
}
