//! What the layer under command line and console promises: a call is made again, callbacks are sent again together, and what there is to see is counted once for
//! all who look.

use std::sync::Arc;

use clarion::domain::audit::{Actor, AuditFilter};
use clarion::domain::call_record::CallFilter;
use clarion::management::settings::Settings;
use serde_json::Value;

use crate::support::child::{Caller, ChildServer, Installation};
use crate::support::receiver::{Receiver, ok};
use crate::support::{self, APP, SID, TestServer, eventually, postgres};

const SETTINGS: &str = "[callbacks]\nallowed_networks = [\"127.0.0.0/8\"]\npoll_seconds = 1\n[[trunk]]\nname = \"lab\"\nloopback = true\nchannels = 20\ncalls_per_second = 50\nprefixes = [\"\"]\n";

/// A server whose only trunk leads to the telephone inside it, and whoever is told how calls end.
struct Desk {
    site: Installation,
    server: ChildServer,
    receiver: Receiver,
}

impl Desk {
    async fn open(postgres: Option<String>) -> Self {
        let site = Installation::with_settings(postgres, SETTINGS).await;
        Self {
            server: site.start().await,
            site,
            receiver: Receiver::start(vec![ok()]).await,
        }
    }

    async fn place(&self, fields: &str) -> String {
        let mut caller = Caller::connect(&self.server.client).await.unwrap();
        let url = self.receiver.url();
        let fields = format!("{fields},\"respUrl\":\"{url}\"");
        caller.place(&fields).await.unwrap()
    }

    async fn json(&self, arguments: &[&str]) -> Value {
        let text = self.site.says(&[arguments, &["--json"]].concat()).await;
        serde_json::from_str(&text).unwrap()
    }

    async fn refuses(&self, arguments: &[&str]) -> String {
        let output = self.site.clarion(arguments).await;
        assert!(!output.status.success(), "{arguments:?} succeeded");
        String::from_utf8(output.stderr).unwrap()
    }

    async fn becomes(&self, sid: &str, name: &str, value: &str) -> Value {
        let mut shown = Value::Null;
        eventually(value, async || {
            shown = self.json(&["call", "show", sid]).await;
            shown[name] == value
        })
        .await;
        shown
    }

    /// The callback of a call has been delivered so often.
    async fn is_told(&self, sid: &str, times: usize) {
        eventually("the receiver is told", async || {
            // It is not owed before the call has ended.
            let said = self
                .site
                .clarion(&["callback", "show", sid, "--json"])
                .await;
            let shown: Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
            let history = shown["history"].as_array().map(Vec::len);
            shown["state"] == "delivered" && history == Some(times)
        })
        .await;
    }
}

async fn a_call_is_made_again(postgres: Option<String>) {
    let desk = Desk::open(postgres).await;
    let fields = "\"to\":\"13800000002\",\"mediaTxt\":\"hello\",\"userData\":\"order 7\",\"redialTimes\":\"1\",\
        \"redialInterval\":\"10\",\"backupTo\":\"13800000004\",\"redialOn\":\"noanswer\"";
    let first = desk.place(fields).await;
    desk.becomes(&first, "outcome", "declined").await;
    let again = desk.json(&["call", "again", &first]).await;
    let again = again["callSid"].as_str().unwrap();
    assert_ne!(again, first);
    let shown = desk.becomes(again, "outcome", "declined").await;
    let before = desk.json(&["call", "show", &first]).await;
    for same in ["to", "accountSid", "appId", "caller"] {
        assert_eq!(shown[same], before[same], "{same}");
    }
    for same in ["numbers", "redialTimes", "redialOn"] {
        assert_eq!(shown["notice"][same], before["notice"][same], "{same}");
    }
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 2);
    // The application hears of it, by the callSid of the new call and with its own data.
    desk.is_told(again, 1).await;
    let received = desk.receiver.received();
    let told = received.iter().find(|one| one.body.contains(again));
    assert!(told.unwrap().body.contains("order 7"));
    let audit = desk.site.says(&["audit", "call again"]).await;
    assert_eq!(audit.lines().count(), 1, "{audit}");
    assert!(audit.contains(&format!("call again {first}")), "{audit}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_made_again_on_sqlite() {
    a_call_is_made_again(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_made_again_on_postgres() {
    a_call_is_made_again(Some(postgres::empty_database().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_made_again_only_where_a_request_would_be_accepted() {
    let desk = Desk::open(None).await;
    let busy = desk
        .place("\"to\":\"13800000002\",\"mediaTxt\":\"hello\"")
        .await;
    let ringing = desk
        .place("\"to\":\"13800000003\",\"mediaTxt\":\"hello\"")
        .await;
    desk.becomes(&busy, "outcome", "busy").await;
    let mut caller = Caller::connect(&desk.server.client).await.unwrap();
    let body = format!("{{\"appId\":\"{APP}\",\"to\":\"13800000002\",\"verifyCode\":\"4711\"}}");
    let answer = caller.operation("Calls/VoiceVerify", &body).await.unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let verified = answer["VoiceVerify"]["callSid"]
        .as_str()
        .unwrap()
        .to_owned();
    desk.becomes(&verified, "outcome", "busy").await;

    let again = |sid: &str| {
        ["call", "again"]
            .map(str::to_owned)
            .into_iter()
            .chain([sid.to_owned()])
            .collect::<Vec<_>>()
    };
    let refused = async |sid: &str| {
        let words = again(sid);
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        desk.refuses(&words).await
    };
    assert!(refused(&ringing).await.contains("has not ended yet"));
    assert!(
        refused(&verified)
            .await
            .contains("was erased when the call ended")
    );
    assert!(refused(&"2".repeat(32)).await.contains("there is no call"));
    desk.site
        .says(&["rate", "set", "--account", SID, "*", "0.1"])
        .await;
    for (change, back, said) in [
        (
            vec!["call", "bar", "13800000002"],
            vec!["call", "unbar", "13800000002"],
            "does not want to be called",
        ),
        (
            vec!["do-not-call", "add", "--account", SID, "13800000002"],
            vec!["do-not-call", "remove", "--account", SID, "13800000002"],
            "do-not-call list of the account",
        ),
        (
            vec!["account", "suspend", SID],
            vec!["account", "set", SID, "--state", "active"],
            "suspended",
        ),
        (
            vec!["account", "set", SID, "--balance", "0"],
            vec!["account", "set", SID, "--balance", "none"],
            "balance",
        ),
        (
            vec!["app", "set", APP, "--state", "disabled"],
            vec!["app", "set", APP, "--state", "active"],
            "disabled",
        ),
    ] {
        desk.site.says(&change).await;
        let refusal = refused(&busy).await;
        assert!(refusal.contains(said), "{change:?}: {refusal}");
        desk.site.says(&back).await;
    }
    // Nothing was accepted, and each refusal is noted.
    let calls = desk.json(&["call", "list"]).await;
    assert_eq!(calls.as_array().unwrap().len(), 3);
    let trail = desk.json(&["audit", "call again"]).await;
    let failed = trail
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["failure"].is_string());
    assert_eq!(failed.count(), 8);
    let again = desk.json(&["call", "again", &busy]).await;
    desk.becomes(again["callSid"].as_str().unwrap(), "outcome", "busy")
        .await;
}

async fn what_a_receiver_has_missed_is_sent_again(postgres: Option<String>) {
    let desk = Desk::open(postgres).await;
    let mut calls = Vec::new();
    for _ in 0..2 {
        calls.push(
            desk.place("\"to\":\"13800000002\",\"mediaTxt\":\"hello\"")
                .await,
        );
    }
    for sid in &calls {
        desk.is_told(sid, 1).await;
    }
    support::execute(&desk.site.database, "UPDATE callbacks SET state = 3").await;
    let host = desk.json(&["callback", "show", &calls[0]]).await["host"]
        .as_str()
        .unwrap()
        .to_owned();
    let replay = async |since: &str, options: &[&str]| {
        let command = ["callback", "replay", "--since", since];
        desk.json(&[&command[..], options].concat()).await["replayed"].clone()
    };
    let long_ago = "2020-01-01T00:00:00Z";
    assert_eq!(replay("2099-01-01T00:00:00Z", &["--host", &host]).await, 0);
    assert_eq!(replay(long_ago, &["--host", "elsewhere:80"]).await, 0);
    assert_eq!(replay(long_ago, &["--host", &host, "--app", APP]).await, 2);
    for sid in &calls {
        desk.is_told(sid, 2).await;
    }
    // What was delivered is sent again only where that is asked for.
    assert_eq!(replay(long_ago, &["--app", APP]).await, 0);
    assert_eq!(replay(long_ago, &["--app", APP, "--delivered"]).await, 2);
    for sid in &calls {
        desk.is_told(sid, 3).await;
    }
    let everything = ["callback", "replay", "--since", long_ago];
    assert!(
        desk.refuses(&everything)
            .await
            .contains("name an application or a receiver")
    );
    let audit = desk.site.says(&["audit", "callback replay"]).await;
    assert!(audit.contains("--delivered"), "{audit}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_receiver_has_missed_is_sent_again_on_sqlite() {
    what_a_receiver_has_missed_is_sent_again(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_receiver_has_missed_is_sent_again_on_postgres() {
    what_a_receiver_has_missed_is_sent_again(Some(postgres::empty_database().await)).await;
}

/// An operator of the console acts within the server, and is noted by name, in the words of the command line.
#[tokio::test]
async fn an_operator_within_the_server_is_noted_in_the_words_of_the_command_line() {
    let mut server = TestServer::start().await;
    let running = server.take_server();
    let operator = Actor {
        operator: Some("li".to_owned()),
        address: Some("192.0.2.7".to_owned()),
        ..Actor::default()
    };
    let management = running.management(operator.clone());
    let sid = SID.parse().unwrap();
    let change = Settings::from_texts([("calls-per-second", "10"), ("name", "A B")]).unwrap();
    management.set_account(&sid, change).await.unwrap();
    let token = "a".repeat(32).parse().unwrap();
    management.rotate_token(&sid, Some(token)).await.unwrap();
    management.drain_trunk("nowhere").await.unwrap_err();
    management.calls(CallFilter::default()).await.unwrap();
    let trail = management.changes(AuditFilter {
        limit: 10,
        ..AuditFilter::default()
    });
    let trail = trail.await.unwrap();
    assert!(trail.iter().all(|line| line.entry.actor == operator));
    let told: Vec<_> = trail
        .iter()
        .rev()
        .map(|line| (line.entry.detail.as_str(), line.entry.failure.is_some()))
        .collect();
    assert_eq!(
        told,
        [
            (
                format!("account set {SID} --name \"A B\" --calls-per-second 10").as_str(),
                false
            ),
            (
                format!("account rotate-token {SID} --token (hidden)").as_str(),
                false
            ),
            ("trunk drain nowhere", false),
            ("trunk drain nowhere", true),
        ]
    );
    running.stop().await;
}

#[tokio::test]
async fn what_there_is_to_see_is_counted_once_for_all_who_look() {
    let mut server = TestServer::start_with(
        SETTINGS
            .split_once("[[trunk]]")
            .map(|(_, trunk)| format!("[[trunk]]{trunk}"))
            .unwrap()
            .as_str(),
    )
    .await;
    let running = server.take_server();
    let management = running.management(Actor::default());
    let (first, second) = tokio::join!(management.overview(), management.overview());
    let (first, second) = (first.unwrap(), second.unwrap());
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!((first.queue.waiting, first.is_stopped), (0, false));
    assert!(first.nodes.iter().any(|node| node.is_alive));
    management.stop_all().await.unwrap();
    eventually("it is counted anew", async || {
        management.overview().await.unwrap().is_stopped
    })
    .await;
    let here = management.node_use().await.unwrap();
    assert_eq!(
        (
            here.trunks.len(),
            here.trunks[0].name.as_str(),
            here.trunks[0].channels
        ),
        (1, "lab", 20)
    );
    assert!(here.disks.iter().any(|disk| disk.bytes.is_some()));
    running.stop().await;
}
