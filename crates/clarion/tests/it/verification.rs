//! Calls that say a code (`VoiceVerify`): what clients send and get, what is heard, reported and billed, and that the code stays a secret.

mod endings;
mod events;
mod fields;
mod heard;
mod limits;
mod secrecy;

use clarion::domain::call::CallSid;
use clarion::domain::outcome::Outcome;

use crate::calls::stage::{Stage, on_postgres};
use crate::support::{APP, TestServer, call_sid, execute, status_code};

/// Nothing is dialled over it.
const FULL_TRUNK: &str =
    "[[trunk]]\nname = \"full\"\nloopback = true\nchannels = 0\nprefixes = [\"\"]\n";

/// The answer to a request with these fields, in JSON.
async fn verify(server: &TestServer, fields: &str) -> String {
    let body = format!("{{\"appId\":\"{APP}\",{fields}}}");
    server.ask("Calls/VoiceVerify", "json", Some(&body)).await
}

/// Places such a call, which is reported to the stage's receiver.
async fn placed(stage: &Stage, fields: &str) -> CallSid {
    let url = stage.receiver.url();
    let answer = verify(&stage.server, &format!("\"respUrl\":\"{url}\",{fields}")).await;
    assert_eq!(status_code(&answer), "000000", "{answer}");
    call_sid(&answer).parse().unwrap()
}

/// The prompt as the record has it.
async fn stored_prompt(stage: &Stage, sid: &CallSid) -> String {
    let query = format!("SELECT prompt FROM calls WHERE call_sid = '{sid}'");
    crate::support::text_of(&stage.server.database, &query).await
}

async fn a_code_is_called_reported_billed_and_forgotten(settings: &str) {
    let stage = Stage::new(settings).await;
    let sid = placed(
        &stage,
        "\"to\":\"13800000001\",\"verifyCode\":\"Ab37\",\"userData\":\"x\",\"requestId\":\"7\"",
    )
    .await;
    let report = stage.report_of(&sid).await;
    let line = stage.bill_line(&sid).await;
    assert_eq!(
        report,
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Request><action>VoiceCode</action><number>13800000001</number><callSid>{sid}</callSid>\
             <state>0</state><duration>{}</duration><userData>x</userData></Request>",
            line.seconds
        )
    );
    assert_eq!(line.order_id, sid.as_str());
    assert_eq!(stage.outcome(&sid).await, Some(Outcome::Talked));
    is_forgotten(&stage, &sid).await;
    let digest = "SELECT digest FROM request_keys WHERE request_id = '7'";
    let digest = crate::support::text_of(&stage.server.database, digest).await;
    assert_eq!(digest.len(), 64, "the digest of a code tells the code");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_called_reported_billed_and_forgotten_on_sqlite() {
    a_code_is_called_reported_billed_and_forgotten("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_called_reported_billed_and_forgotten_on_postgresql() {
    a_code_is_called_reported_billed_and_forgotten(&on_postgres().await).await;
}

async fn is_forgotten(stage: &Stage, sid: &CallSid) {
    assert_eq!(stored_prompt(stage, sid).await, r#"{"plays":1}"#);
    assert_eq!(stage.bill_line(sid).await.call_type.code(), 13);
}

/// By default it waits for two minutes, a notification for an hour.
#[tokio::test]
async fn a_code_is_not_dialled_when_it_is_worth_nothing_any_more() {
    let server = TestServer::start().await;
    let answer = verify(&server, "\"to\":\"13800000001\",\"verifyCode\":\"1234\"").await;
    let (code, call) = (
        call_sid(&answer),
        server
            .call_json("\"to\":\"13800000002\",\"mediaTxt\":\"x\"")
            .await,
    );
    let wait = async |sid: &str| {
        let query = format!(
            "SELECT CAST(expires_at - due_at AS TEXT) FROM call_queue WHERE call_sid = '{sid}'"
        );
        crate::support::text_of(&server.database, &query).await
    };
    assert_eq!(wait(&code).await, "120000");
    assert_eq!(wait(&call_sid(&call)).await, "3600000");
}

#[tokio::test]
async fn the_same_request_again_is_the_same_call_and_another_code_is_another_request() {
    let server = TestServer::start().await;
    let ask =
        async |fields: &str| verify(&server, &format!("\"to\":\"13800000001\",{fields}")).await;
    let first = ask("\"verifyCode\":\"ab12\",\"requestId\":\"7\"").await;
    assert_eq!(status_code(&first), "000000", "{first}");
    assert_eq!(
        ask("\"verifyCode\":\"AB12\",\"requestId\":\"7\"").await,
        first
    );
    for other in [
        "\"verifyCode\":\"ab13\"",
        "\"verifyCode\":\"ab12\",\"lang\":\"en\"",
        "\"verifyCode\":\"ab12\",\"playTimes\":\"2\"",
        "\"playVerifyCode\":\"ccp_marketingcall.wav\"",
    ] {
        let answer = ask(&format!("{other},\"requestId\":\"7\"")).await;
        assert_eq!(status_code(&answer), "190010", "{other}: {answer}");
    }
    let landing = server
        .call_json("\"to\":\"13800000001\",\"mediaTxt\":\"x\",\"requestId\":\"7\"")
        .await;
    assert_eq!(status_code(&landing), "190010", "{landing}");
    assert_eq!(server.store.queue_depth().await.unwrap().0, 1);
}

/// It would take the call, and say nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_a_node_of_an_earlier_version_codes_are_not_offered() {
    let server = TestServer::start_with(&on_postgres().await).await;
    let fields = "\"to\":\"13800000001\",\"verifyCode\":\"1234\"";
    crate::support::eventually("the first heartbeat", async || {
        status_code(&verify(&server, fields).await) == "000000"
    })
    .await;
    let join = "INSERT INTO nodes (node, steady_since, heartbeat_at, lease_until, schema_version) VALUES \
        ('earlier', 0, 0, 9000000000000, 14)";
    execute(&server.database, join).await;
    let refused = "\"statusCode\":\"190008\",\"statusMsg\":\"VoiceVerify is not offered while a server of an earlier version is running\"";
    crate::support::eventually("it is refused", async || {
        verify(&server, fields).await.contains(refused)
    })
    .await;
    execute(&server.database, "DELETE FROM nodes WHERE node = 'earlier'").await;
    crate::support::eventually("it is offered again", async || {
        status_code(&verify(&server, fields).await) == "000000"
    })
    .await;
}
