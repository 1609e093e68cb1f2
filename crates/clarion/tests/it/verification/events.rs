//! Those who watch a code are told each step and never the code.

use super::{FULL_TRUNK, placed, stored_prompt, verify};
use crate::calls::stage::{Stage, on_postgres};
use crate::notices::events::{steps, told};
use crate::support::receiver::{Receiver, ok};
use crate::support::{APP, execute, status_code, text_of};

/// It has letters: digits alone may occur in times and ids.
const CODE: &str = "\"to\":\"13800000005\",\"verifyCode\":\"Q7X4\"";
const TIMES: &str = "[dispatch]\nring_seconds = 1\nretry_seconds = 1\n";

async fn a_code_is_watched(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let watcher = Receiver::start(vec![ok()]).await;
    let watched = format!("{CODE},\"callStateUrl\":\"{}\"", watcher.url());
    let sid = placed(&stage, &watched).await;
    let bodies = told(&watcher).await;
    let to = "<attempt>1</attempt><number>13800000005</number>";
    assert_eq!(
        steps(&bodies),
        [
            "queued ".to_owned(),
            format!("dialling {to}"),
            format!("answered {to}"),
            format!("hangup {to}<result>talked</result>"),
            "ended <result>talked</result>".to_owned(),
        ]
    );
    let shows_code = |body: &String| body.to_uppercase().contains("Q7X4");
    assert!(!bodies.iter().any(shows_code), "{bodies:?}");
    let seconds = stage.bill_line(&sid).await.seconds;
    assert_eq!(
        stage.report_of(&sid).await,
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Request><action>VoiceCode</action><number>13800000005</number><callSid>{sid}</callSid>\
             <state>0</state><duration>{seconds}</duration></Request>"
        ),
        "it is no notice"
    );
    assert_eq!(stored_prompt(&stage, &sid).await, r#"{"plays":1}"#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_says_a_code_is_watched_on_sqlite() {
    a_code_is_watched("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_says_a_code_is_watched_on_postgresql() {
    a_code_is_watched(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_event_alone_may_be_wanted() {
    let stage = Stage::new(TIMES).await;
    let watcher = Receiver::start(vec![ok()]).await;
    let watched = format!(
        "{CODE},\"callStateUrl\":\"{}\",\"callStatePush\":\"1\"",
        watcher.url()
    );
    placed(&stage, &watched).await;
    let bodies = told(&watcher).await;
    assert_eq!(steps(&bodies), ["ended <result>talked</result>"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_cannot_be_used_means_no_events() {
    let stage = Stage::new(TIMES).await;
    let sid = placed(
        &stage,
        &format!("{CODE},\"callStateUrl\":\"ftp://example.com\""),
    )
    .await;
    let report = stage.report_of(&sid).await;
    assert!(report.contains("<state>0</state>"), "{report}");
    let owed = format!("SELECT CAST(COUNT(*) AS TEXT) FROM callbacks WHERE call_sid = '{sid}'");
    let owed = text_of(&stage.server.database, &owed).await;
    assert_eq!(owed, "1", "the final callback and nothing else");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_address_for_events_is_another_request() {
    let stage = Stage::on(FULL_TRUNK, "").await;
    let ask = async |url: &str| {
        let more = format!("\"requestId\":\"7\",\"callStateUrl\":\"{url}\"");
        verify(&stage.server, &format!("{CODE},{more}")).await
    };
    let first = ask("http://a.example/").await;
    assert_eq!(status_code(&first), "000000", "{first}");
    assert_eq!(ask("http://a.example/").await, first);
    let other = ask("http://b.example/").await;
    assert_eq!(status_code(&other), "190010", "{other}");
}

async fn a_code_that_was_never_dialled_is_told_to_be_over(database: &str) {
    // Nothing is dialled here.
    let stage = Stage::on(FULL_TRUNK, &format!("{database}{TIMES}")).await;
    for outcome in ["cancelled", "expired"] {
        let watcher = Receiver::start(vec![ok()]).await;
        let watched = format!("{CODE},\"callStateUrl\":\"{}\"", watcher.url());
        let sid = placed(&stage, &watched).await;
        if outcome == "cancelled" {
            let body = format!("{{\"appId\":\"{APP}\",\"callSid\":\"{sid}\"}}");
            let cancelled = stage.server.ask("Calls/CallCancel", "json", Some(&body));
            assert_eq!(status_code(&cancelled.await), "000000");
        } else {
            let expire = format!("UPDATE call_queue SET expires_at = 1 WHERE call_sid = '{sid}'");
            execute(&stage.server.database, &expire).await;
        }
        let ended = format!("ended <result>{outcome}</result>");
        assert_eq!(steps(&told(&watcher).await), ["queued ".to_owned(), ended]);
        assert_eq!(stored_prompt(&stage, &sid).await, r#"{"plays":1}"#);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_that_was_never_dialled_is_told_to_be_over_on_sqlite() {
    a_code_that_was_never_dialled_is_told_to_be_over("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_that_was_never_dialled_is_told_to_be_over_on_postgresql() {
    a_code_that_was_never_dialled_is_told_to_be_over(&on_postgres().await).await;
}
