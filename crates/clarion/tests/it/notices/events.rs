//! What those who watch a notice are told: every step in its order, in the commit that it is about.

use jiff::SignedDuration;

use super::{HELLO, TIMES};
use crate::calls::stage::{Stage, field, on_postgres};
use crate::support::eventually;
use crate::support::receiver::{Manner, Receiver, ok};

/// The bodies that have come, when the last of them says that it is over.
pub async fn told(watcher: &Receiver) -> Vec<String> {
    let bodies = || {
        let received = watcher.received().into_iter();
        received.map(|one| one.body).collect::<Vec<_>>()
    };
    eventually("a call is told to be over", async || {
        bodies().iter().any(|body| field(body, "event") == "ended")
    })
    .await;
    bodies()
}

/// Event, and whatever it says besides its time. Ringing may be told with what follows at once.
pub fn steps(bodies: &[String]) -> Vec<String> {
    let steps = bodies.iter().map(|body| {
        let after = body.split("</seq>").nth(1).unwrap();
        let step = after.split("<time>").next().unwrap();
        step.replace("</event>", " ").replace("<event>", "")
    });
    steps.filter(|step| !step.starts_with("ringing")).collect()
}

async fn every_step_is_told(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let watcher = Receiver::start(vec![ok()]).await;
    let fields = format!(
        "{HELLO},\"confirmDtmf\":\"1\",\"redialTimes\":\"1\",\"redialInterval\":\"3000\",\"validTime\":\"86400\",\
         \"backupTo\":\"13800000012\",\"callStateUrl\":\"{}\"",
        watcher.url()
    );
    let sid = stage.call("13800000002", &fields).await;
    eventually("an attempt is over", async || {
        stage.attempts(&sid).await.len() == 1
    })
    .await;
    stage.let_time_pass(SignedDuration::from_secs(3000)).await;
    let bodies = told(&watcher).await;
    let busy = |attempt| {
        let to = format!("<attempt>{attempt}</attempt><number>13800000002</number>");
        [
            format!("dialling {to}"),
            format!("hangup {to}<result>busy</result>"),
        ]
    };
    let third = "<attempt>3</attempt><number>13800000012</number>";
    let mut expected = vec!["queued ".to_owned()];
    expected.extend(busy(1));
    expected.push("waiting <attempt>2</attempt><number>13800000002</number>".to_owned());
    expected.extend(busy(2));
    expected.extend([
        format!("escalated {third}"),
        format!("dialling {third}"),
        format!("answered {third}"),
        format!("key {third}<dtmf>1</dtmf>"),
        format!("hangup {third}<result>confirmed</result>"),
        "ended <result>confirmed</result>".to_owned(),
    ]);
    assert_eq!(steps(&bodies), expected);
    let seqs: Vec<u32> = bodies
        .iter()
        .map(|body| field(body, "seq").parse().unwrap())
        .collect();
    assert_eq!(
        seqs,
        (1..=u32::try_from(seqs.len()).unwrap()).collect::<Vec<_>>()
    );
    let last = bodies.last().unwrap();
    let ended_at = stage.attempts(&sid).await[2].ended_at;
    let zone = stage.server.clock.zone().clone();
    assert_eq!(
        *last,
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><request><action>CallState</action><callSid>{sid}</callSid><seq>{}</seq>\
             <event>ended</event><result>confirmed</result><time>{}</time><userData>u</userData></request>",
            seqs.len(),
            ended_at.to_zoned(zone).strftime("%Y%m%d%H%M%S"),
        )
    );
    let ids = watcher.received().into_iter();
    let ids: Vec<_> = ids
        .map(|one| one.header("webhook-id").unwrap().to_owned())
        .collect();
    let wanted: Vec<_> = seqs.iter().map(|seq| format!("msg_{sid}_{seq}")).collect();
    assert_eq!(ids, wanted, "each has an id of its own");
    let report = stage.report_of(&sid).await;
    assert_eq!(field(&report, "ended"), "confirmed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_step_of_a_notice_is_told_in_order() {
    every_step_is_told("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_step_of_a_notice_is_told_in_order_on_postgres() {
    every_step_is_told(&on_postgres().await).await;
}

async fn only_the_last_is_told(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let watcher = Receiver::start(vec![ok()]).await;
    let fields = format!(
        "{HELLO},\"callStateUrl\":\"{}\",\"callStatePush\":\"1\"",
        watcher.url()
    );
    let sid = stage.call("13800000005", &fields).await;
    let bodies = told(&watcher).await;
    assert_eq!(steps(&bodies), ["ended <result>talked</result>"]);
    assert_eq!(field(&bodies[0], "seq"), "1");
    assert_eq!(field(&stage.report_of(&sid).await, "ended"), "talked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_may_want_the_last_event_only() {
    only_the_last_is_told("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_may_want_the_last_event_only_on_postgres() {
    only_the_last_is_told(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_cannot_be_used_leaves_a_request_as_it_was() {
    let stage = Stage::new(TIMES).await;
    let fields = format!("{HELLO},\"callStateUrl\":\"ftp://example.com\",\"callStatePush\":\"7\"");
    let sid = stage.call("13800000005", &fields).await;
    let report = stage.report_of(&sid).await;
    assert!(
        report.ends_with("<userData>u</userData></request>"),
        "{report}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wish_that_is_not_known_means_every_event() {
    let stage = Stage::new(TIMES).await;
    let watcher = Receiver::start(vec![ok()]).await;
    let fields = format!(
        "{HELLO},\"callStateUrl\":\"{}\",\"callStatePush\":\"7\"",
        watcher.url()
    );
    stage.call("13800000005", &fields).await;
    let bodies = told(&watcher).await;
    assert_eq!(field(&bodies[0], "event"), "queued");
    assert!(bodies.len() > 3, "{bodies:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_final_callback_does_not_wait_for_events() {
    let stage = Stage::new(TIMES).await;
    let watcher = Receiver::start(vec![Manner::Hang]).await;
    let fields = format!("{HELLO},\"callStateUrl\":\"{}\"", watcher.url());
    let sid = stage.call("13800000005", &fields).await;
    let report = stage.report_of(&sid).await;
    assert_eq!(field(&report, "result"), "talked");
}
