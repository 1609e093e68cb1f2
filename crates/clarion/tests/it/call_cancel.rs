//! `CallCancel`: an application takes a call back, in every state of the call and by every type.

use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;
use phone::test_phone::Script;

use crate::calls::stage::{Customer, Stage, on_postgres};
use crate::support::telephone::Telephone;
use crate::support::{APP, SID, TestServer, eventually, status_code};

async fn cancel(server: &TestServer, sid: &str, more: &str) -> String {
    let body = format!("{{\"appId\":\"{APP}\",\"callSid\":\"{sid}\"{more}}}");
    server.ask("Calls/CallCancel", "json", Some(&body)).await
}

fn cancelled(sid: &CallSid, state: char) -> String {
    format!(
        "{{\"statusCode\":\"000000\",\"CallCancel\":{{\"callSid\":\"{sid}\",\"state\":\"{state}\"}}}}"
    )
}

async fn a_call_that_waits_is_taken_back(settings: &str) {
    let stage = Stage::on(
        "[[trunk]]\nname = \"full\"\nloopback = true\nchannels = 0\nprefixes = [\"\"]\n",
        settings,
    )
    .await;
    for (place, (kind, state)) in [
        ("", '3'),
        (",\"type\":\"0\"", '3'),
        (",\"type\":\"1\"", '3'),
        (",\"type\":2", '3'),
    ]
    .into_iter()
    .enumerate()
    {
        let sid = stage
            .call(&format!("1380000000{place}"), "\"mediaTxt\":\"x\"")
            .await;
        assert_eq!(
            cancel(&stage.server, sid.as_str(), kind).await,
            cancelled(&sid, state)
        );
        let report = stage.report_of(&sid).await;
        assert!(report.contains("<state>1</state>"), "{report}");
        assert_eq!(stage.outcome(&sid).await, Some(Outcome::Cancelled));
        let again = cancel(&stage.server, sid.as_str(), kind).await;
        assert_eq!(status_code(&again), "190011", "{again}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_waits_is_taken_back_on_sqlite() {
    a_call_that_waits_is_taken_back("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_waits_is_taken_back_on_postgresql() {
    a_call_that_waits_is_taken_back(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_rings_is_cancelled() {
    let telephone = Telephone::that(Script::never_answer()).await;
    let stage = Stage::on(&telephone.wide_trunk("telephone", ""), "").await;
    let sid = stage.call("13800000001", "\"mediaTxt\":\"x\"").await;
    stage.is_in(&sid, CallState::Ringing).await;
    assert_eq!(
        cancel(&stage.server, sid.as_str(), ",\"type\":\"1\"").await,
        cancelled(&sid, '4')
    );
    let report = stage.report_of(&sid).await;
    assert!(report.contains("<state>1</state>"), "{report}");
    assert_eq!(stage.outcome(&sid).await, Some(Outcome::Cancelled));
}

async fn a_talk_is_ended_by_type_0_only(settings: &str) {
    let telephone = Telephone::that(Script::answer()).await;
    let stage = Stage::on(&telephone.wide_trunk("telephone", ""), settings).await;
    let long = "很长的一句话。".repeat(40);
    let sid = stage
        .call("13800000001", &format!("\"mediaTxt\":\"{long}\""))
        .await;
    stage.is_in(&sid, CallState::Answered).await;
    for kind in ["1", "2"] {
        let answer = cancel(
            &stage.server,
            sid.as_str(),
            &format!(",\"type\":\"{kind}\""),
        )
        .await;
        assert_eq!(status_code(&answer), "190011", "{answer}");
        assert!(answer.contains("answered"), "{answer}");
    }
    assert_eq!(
        cancel(&stage.server, sid.as_str(), "").await,
        cancelled(&sid, '5')
    );
    let report = stage.report_of(&sid).await;
    // It was answered, and is billed for what was talked.
    assert!(report.contains("<state>0</state>"), "{report}");
    let seconds = stage.bill_line(&sid).await.seconds;
    assert!((1..30).contains(&seconds), "{seconds}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_talk_is_ended_by_type_0_only_on_sqlite() {
    a_talk_is_ended_by_type_0_only("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_talk_is_ended_by_type_0_only_on_postgresql() {
    a_talk_is_ended_by_type_0_only(&on_postgres().await).await;
}

/// The mark was set while it rang, and then somebody answered: the talk goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_who_answers_before_the_cancelling_is_not_cut_off() {
    let stage = Stage::new("").await;
    let server = &stage.server;
    let sid = stage
        .call("13800000001", "\"mediaTxt\":\"您好，这是一句话。\"")
        .await;
    stage.is_in(&sid, CallState::Answered).await;
    let mark = format!(
        "UPDATE call_queue SET cancelled = 1, cancel_before_answer = 1 WHERE call_sid = '{sid}'"
    );
    crate::support::execute(&server.database, &mark).await;
    stage.report_of(&sid).await;
    let legs = stage.legs(&sid).await;
    let played = legs[0].media.packets_sent;
    assert!(played > 100, "{played}");
    assert_eq!(stage.outcome(&sid).await, Some(Outcome::Talked));
}

/// The condition of the application does not bind the operator.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operator_ends_a_talk_that_its_application_would_have_ended_before() {
    let stage = Stage::new("").await;
    let (server, long) = (&stage.server, "很长的一句话。".repeat(40));
    for (place, whole_account) in [(1, false), (4, true)] {
        let number = format!("1380000001{place}");
        let text = format!("\"mediaTxt\":\"{long}\"");
        let sid = stage.call(&number, &text).await;
        stage.is_in(&sid, CallState::Answered).await;
        let mark = format!(
            "UPDATE call_queue SET cancelled = 1, cancel_before_answer = 1 WHERE call_sid = '{sid}'"
        );
        crate::support::execute(&server.database, &mark).await;
        if whole_account {
            assert_eq!(
                server
                    .store
                    .cancel_calls_of(&SID.parse().unwrap())
                    .await
                    .unwrap(),
                1
            );
        } else {
            let state = server.store.cancel_call(&sid).await.unwrap();
            assert_eq!(state, Some(CallState::Answered));
        }
        stage.report_of(&sid).await;
        assert!(stage.bill_line(&sid).await.seconds < 30);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_a_call_of_the_account_is_unknown() {
    let stage = Stage::on("", "").await;
    let server = &stage.server;
    let mut other = Customer::another(&stage, 7, |_| {}).await;
    let foreign = other.call("13800000001", "\"mediaTxt\":\"x\"").await;
    let nobody = "26111502350900001000000000000000";
    for sid in [foreign.as_str(), nobody, "x", "' OR 1=1 --"] {
        let answer = cancel(server, sid, "").await;
        assert_eq!(status_code(&answer), "190006", "{sid}: {answer}");
    }
    eventually("the other's call waits", async || {
        stage.record(&foreign).await.state == CallState::Queued
    })
    .await;
    for (body, code, words) in [
        (format!("{{\"appId\":\"{APP}\"}}"), "108023", "callSid"),
        (format!("{{\"callSid\":\"{nobody}\"}}"), "111169", "appId"),
        (
            format!("{{\"appId\":\"{APP}\",\"callSid\":\"{nobody}\",\"type\":\"3\"}}"),
            "108023",
            "type",
        ),
    ] {
        let answer = server.ask("Calls/CallCancel", "json", Some(&body)).await;
        assert_eq!(status_code(&answer), code, "{answer}");
        assert!(answer.contains(words), "{answer}");
    }
}

/// Where the vendor's client libraries send it, with the main account's id and token.
#[tokio::test]
async fn it_is_served_below_sub_accounts_too() {
    let server = TestServer::start().await;
    let sid = crate::support::call_sid(
        &server
            .call_json("\"to\":\"13800000001\",\"mediaTxt\":\"x\"")
            .await,
    );
    let signature = server.sign();
    let body = format!(
        "<CallCancel><appId>{APP}</appId><callSid>{sid}</callSid><type>0</type></CallCancel>"
    );
    let request = format!(
        "POST /2013-12-26/SubAccounts/{SID}/Calls/CallCancel?sig={} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: {}\r\n\
         Accept: application/xml\r\nContent-Type: application/xml\r\nContent-Length: {}\r\n\r\n{body}",
        signature.sig,
        signature.authorization,
        body.len()
    );
    let answer = server.send_raw(request.as_bytes()).await;
    let wanted = format!(
        "<statusCode>000000</statusCode><CallCancel><callSid>{sid}</callSid><state>3</state></CallCancel></Response>"
    );
    assert!(answer.ends_with(&wanted), "{answer}");
}
