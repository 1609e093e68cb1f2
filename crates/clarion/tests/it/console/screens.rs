//! What the screens show and do: lists page by page, a call that is watched to its end, what an admin changes.

use std::time::{Duration, Instant};

use clarion::domain::audit::{Actor, AuditEntry, AuditFilter};
use clarion::domain::call_state::CallState;
use http_body_util::BodyExt;
use jiff::{SignedDuration, Timestamp};
use phone::test_phone::Script;

use super::add_operators;
use super::visitor::Visitor;
use crate::calls::stage::Stage;
use crate::notices::events::told;
use crate::support::receiver::{Receiver, ok};
use crate::support::telephone::Telephone;
use crate::support::{PATIENCE, SID, TestServer, call_sid, eventually, execute, postgres};

#[tokio::test]
async fn calls_are_listed_page_by_page_and_filtered_by_the_address() {
    let server = TestServer::start_prepared("", async |store, clock| {
        add_operators(store, clock).await;
    })
    .await;
    let mut sids = Vec::new();
    for number in 0..60 {
        let fields = format!("\"to\":\"138000000{number:02}\",\"mediaTxt\":\"x\"");
        sids.push(call_sid(&server.call_json(&fields).await));
    }
    sids.sort_by(|one, other| other.cmp(one));
    let mut viewer = Visitor::signed_in(&server, "viewer").await;
    let listed = |body: &str| {
        let links = body.split("href=\"/calls/").skip(1);
        let sids = links.filter_map(|rest| rest.split('"').next());
        sids.map(str::to_owned).collect::<Vec<_>>()
    };
    let filter = format!("account={SID}&which=alive");
    let first = viewer.get(&format!("/calls?{filter}")).await.body;
    assert_eq!(listed(&first), sids[..50]);
    let next = format!("/calls?{filter}&before={}", sids[49]);
    assert!(first.contains(&next.replace('&', "&#38;")));
    let second = viewer.get(&next).await.body;
    assert_eq!(listed(&second), sids[50..]);
    assert!(!second.contains("rel=\"next\""));
    let other = "f".repeat(32);
    let nothing = viewer.get(&format!("/calls?account={other}")).await.body;
    assert!(listed(&nothing).is_empty() && nothing.contains("No calls here."));
    let wrong = viewer.get("/calls?account=x").await.body;
    assert!(wrong.contains("An account sid has 32 letters or digits."));
    // Whoever has a callSid is led to its call.
    let found = viewer.get(&format!("/calls?sid={}", sids[7])).await;
    assert!(found.leads_to(&format!("/calls/{}", sids[7])));
    assert_eq!(viewer.get("/calls/x").await.status, 404);
    assert_eq!(viewer.get(&format!("/calls/{other}")).await.status, 404);
}

#[tokio::test]
async fn the_audit_trail_is_read_page_by_page_and_by_who_it_was() {
    let server = TestServer::start_prepared("", async |store, clock| {
        add_operators(store, clock).await;
        for number in 0..103 {
            let who = if number < 2 { "wang" } else { "li" };
            let entry = AuditEntry {
                at: clock.now(),
                actor: Actor {
                    operator: Some(who.to_owned()),
                    ..Actor::default()
                },
                action: "call bar".to_owned(),
                detail: format!("call bar <{number}>"),
                failure: None,
            };
            store.note_change(entry).await.unwrap();
        }
    })
    .await;
    let mut viewer = Visitor::signed_in(&server, "viewer").await;
    let first = viewer.get("/audit?about=bar&by=li").await.body;
    assert_eq!(first.matches("call bar &#60;").count(), 100);
    let (_, older) = first.split_once("rel=\"next\" href=\"").unwrap();
    let (older, _) = older.split_once('"').unwrap();
    let second = viewer.get(&older.replace("&#38;", "&")).await.body;
    assert!(second.contains("call bar &#60;2&#62;") && !second.contains("rel=\"next\""));
    assert_eq!(
        second.matches("call bar &#60;").count(),
        1,
        "wang's are left out"
    );
    let nobody = viewer.get("/audit?by=nobody").await.body;
    assert!(nobody.contains("Nothing was changed that fits."));
}

#[tokio::test]
async fn a_call_is_watched_to_its_end_and_tells_its_story() {
    let telephone = Telephone::that(Script::answer()).await;
    let trunks = telephone.wide_trunk("provider", "");
    let stage = Stage::on(&trunks, "").await;
    add_operators(&*stage.server.store, &stage.server.clock).await;
    let mut viewer = Visitor::signed_in(&stage.server, "viewer").await;
    let sid = stage.call("13800000000", "\"mediaTxt\":\"x\"").await;
    let path = format!("/events/calls/{sid}");
    let answer = viewer.send("GET", &path, &[], "").await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut body = answer.into_body();
    let mut told = String::new();
    let all = async {
        while let Some(frame) = body.frame().await {
            told.push_str(&String::from_utf8_lossy(frame.unwrap().data_ref().unwrap()));
        }
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap();
    let last = told.split("event: ").last().unwrap();
    assert!(last.starts_with("last\n"), "the stream ends with the call");
    for wanted in [
        "accepted",
        "dialled",
        "answered",
        "hung up",
        "ended",
        "callback delivered",
    ] {
        let step = format!("<strong>{wanted}</strong>");
        assert!(last.contains(&step), "{wanted}: {last}");
    }
    assert!(last.contains("+8613800000000 over provider"));
    let page = viewer.get(&format!("/calls/{sid}")).await.body;
    for wanted in ["INVITE", "200 OK", "BYE", "PCMA", "127.0.0.1"] {
        assert!(page.contains(wanted), "{wanted}");
    }
    assert!(page.contains("<details id=\"message-1\">"), "messages open");
    // A query of the receiver's address may be a secret.
    assert!(page.contains("/cb") && !page.contains("token=secret"));
    viewer.language = "zh";
    let page = viewer.get(&format!("/calls/{sid}")).await.body;
    for wanted in [
        "受理请求",
        "发起呼叫",
        "接听",
        "回调已送达",
        "话单",
        "已接通",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
}

/// While somebody talks, packets leave all the time, and so every look at the first page sees something else.
#[tokio::test]
async fn a_live_page_is_told_once_a_second_and_only_while_its_operator_is_signed_in() {
    let telephone = Telephone::that(Script::answer()).await;
    let stage = Stage::on(&telephone.wide_trunk("provider", ""), "").await;
    add_operators(&*stage.server.store, &stage.server.clock).await;
    let mut viewer = Visitor::signed_in(&stage.server, "viewer").await;
    let long = "one two three four five six seven eight nine ten ".repeat(20);
    let sid = stage
        .call("13800000000", &format!("\"mediaTxt\":\"{long}\""))
        .await;
    stage.is_in(&sid, CallState::Answered).await;
    let mut body = viewer.send("GET", "/events/now", &[], "").await.into_body();
    let mut next = async || {
        let frame = tokio::time::timeout(PATIENCE, body.frame())
            .await
            .unwrap()?;
        Some(String::from_utf8_lossy(frame.unwrap().data_ref().unwrap()).into_owned())
    };
    let began = Instant::now();
    for told in 0..4 {
        assert!(next().await.is_some(), "{told}");
    }
    // The first comes at once.
    assert!(
        began.elapsed() >= Duration::from_millis(2900),
        "{:?}",
        began.elapsed()
    );
    let token = viewer.token().await;
    viewer.post("/sign-out", &[("token", &token)]).await;
    while next().await.is_some() {}
}

#[tokio::test]
async fn a_live_page_says_when_it_cannot_be_looked_at_and_goes_on_afterwards() {
    let database = postgres::empty_database().await;
    for settings in [String::new(), format!("database = {database:?}\n")] {
        let server = TestServer::start_prepared(&settings, async |store, clock| {
            add_operators(store, clock).await;
        })
        .await;
        let told = server
            .call_json("\"to\":\"13800000000\",\"mediaTxt\":\"x\"")
            .await;
        let path = format!("/events/calls/{}", call_sid(&told));
        let viewer = Visitor::signed_in(&server, "viewer").await;
        let mut body = viewer.send("GET", &path, &[], "").await.into_body();
        // Heartbeats say nothing about what is seen.
        let mut next = async || loop {
            let frame = tokio::time::timeout(PATIENCE, body.frame()).await.unwrap();
            let frame = frame.unwrap().unwrap();
            let told = String::from_utf8_lossy(frame.data_ref().unwrap()).into_owned();
            if !told.starts_with("event: heartbeat") {
                return told;
            }
        };
        let seen = next().await;
        assert!(seen.starts_with("event: message\n"), "{seen}");
        execute(&server.database, "ALTER TABLE bill_lines RENAME TO gone").await;
        assert_eq!(next().await, "event: stale\ndata: yes\n\n");
        execute(&server.database, "ALTER TABLE gone RENAME TO bill_lines").await;
        let again = next().await;
        assert!(again.starts_with("event: message\n"), "{again}");
    }
}

#[tokio::test]
async fn a_step_of_another_day_has_its_date() {
    let server = TestServer::start_prepared("", async |store, clock| {
        add_operators(store, clock).await;
    })
    .await;
    let told = server
        .call_json("\"to\":\"13800000000\",\"mediaTxt\":\"x\"")
        .await;
    let sid = call_sid(&told);
    server.clock.shift(SignedDuration::from_hours(25));
    let mut admin = Visitor::signed_in(&server, "admin").await;
    let token = admin.token().await;
    let path = format!("/calls/{sid}");
    admin
        .post(&format!("{path}/cancel"), &[("token", &token)])
        .await;
    let sid = sid.parse().unwrap();
    let record = async || server.store.call_record(&sid).await.unwrap().unwrap();
    eventually("the call is over", async || {
        record().await.ended_at.is_some()
    })
    .await;
    let record = record().await;
    let day = |time: Timestamp| time.to_zoned(server.clock.zone().clone()).date();
    let (accepted, ended) = (day(record.accepted_at), day(record.ended_at.unwrap()));
    assert_ne!(accepted, ended);
    let page = admin.get(&path).await.body;
    for day in [accepted, ended] {
        assert!(page.contains(&format!("title=\"{day} ")), "{day}: {page}");
    }
    let line = |day| format!("<time datetime=\"{day}\">{day}</time>");
    assert!(page.contains(&line(ended)) && !page.contains(&line(accepted)));
}

#[tokio::test]
async fn events_are_on_the_page_of_their_call_and_are_sent_again() {
    let telephone = Telephone::that(Script::answer()).await;
    let stage = Stage::on(&telephone.wide_trunk("provider", ""), "").await;
    add_operators(&*stage.server.store, &stage.server.clock).await;
    let mut admin = Visitor::signed_in(&stage.server, "admin").await;
    let watcher = Receiver::start(vec![ok()]).await;
    let watched = format!("\"mediaTxt\":\"x\",\"callStateUrl\":\"{}\"", watcher.url());
    let sid = stage.call("13800000000", &watched).await;
    let sent = told(&watcher).await.len();
    let path = format!("/calls/{sid}");
    let page = admin.get(&path).await.body;
    let events = page.split("id=\"events\"").nth(1).unwrap();
    let events = events.split("</table>").next().unwrap();
    for wanted in ["queued", "dialling", "answered", "hangup", "ended"] {
        assert!(
            events.contains(&format!(">{wanted}</td>")),
            "{wanted}: {events}"
        );
    }
    let key = events.split("name=\"key\" value=\"").nth(1).unwrap();
    let key = key.split('"').next().unwrap();
    let token = admin.token().await;
    let fields = [("token", &*token), ("key", key), ("back", "call")];
    let again = admin.post("/callbacks/resend", &fields).await;
    assert!(
        again.leads_to(&format!("{path}?done=resent")),
        "{}",
        again.body
    );
    let received = watcher.has_received(sent + 1).await;
    assert!(received[sent].body.contains("<action>CallState</action>"));
}

#[tokio::test]
async fn an_admin_cancels_a_call_and_sends_a_callback_again_and_both_are_noted() {
    let telephone = Telephone::that(Script::answer()).await;
    let stage = Stage::on(&telephone.wide_trunk("provider", ""), "").await;
    add_operators(&*stage.server.store, &stage.server.clock).await;
    let mut admin = Visitor::signed_in(&stage.server, "admin").await;
    let token = admin.token().await;
    let talked = stage.call("13800000000", "\"mediaTxt\":\"x\"").await;
    stage.report_of(&talked).await;
    eventually("the callback is delivered", async || {
        let page = admin.get(&format!("/calls/{talked}")).await.body;
        page.contains("callback delivered")
    })
    .await;
    let path = format!("/calls/{talked}/callback");
    let answer = admin.post(&path, &[("token", &token)]).await;
    assert!(answer.leads_to(&format!("/calls/{talked}?done=resent")));
    let received = stage.receiver.has_received(2).await;
    assert_eq!(received[0].body, received[1].body);
    let path = format!("/calls/{talked}/cancel");
    let answer = admin.post(&path, &[("token", &token)]).await;
    assert!(answer.leads_to(&format!("/calls/{talked}?done=over")));
    let page = admin.get(&format!("/calls/{talked}?done=over")).await.body;
    assert!(page.contains("The call had ended already."));
    let filter = AuditFilter {
        limit: 9,
        ..AuditFilter::default()
    };
    let noted = stage.server.store.changes(filter).await.unwrap();
    let lines: Vec<_> = noted
        .iter()
        .map(|line| (line.entry.action.as_str(), line.entry.failure.is_some()))
        .collect();
    let wanted = [
        ("call cancel", true),
        ("call cancel", false),
        ("callback replay", false),
    ];
    assert_eq!(lines, wanted);
    for entry in noted.iter().map(|line| &line.entry) {
        assert_eq!(entry.actor.operator.as_deref(), Some("admin"));
        assert_eq!(entry.actor.address.as_deref(), Some("127.0.0.1"));
        assert!(entry.detail.contains(talked.as_str()));
    }
    let page = admin.get("/audit").await.body;
    assert!(page.contains(&format!("call cancel {talked}")));
}

#[tokio::test]
async fn what_needs_a_hand_is_said_first() {
    let server = TestServer::start_prepared("", async |store, clock| {
        add_operators(store, clock).await;
        let on = Some("on");
        store.set_switch("stop-all", on, clock.now()).await.unwrap();
        store
            .set_switch("drained:waiting", on, clock.now())
            .await
            .unwrap();
    })
    .await;
    server
        .call_json("\"to\":\"13800000000\",\"mediaTxt\":\"x\"")
        .await;
    let mut viewer = Visitor::signed_in(&server, "viewer").await;
    eventually("the switches are seen", async || {
        let page = viewer.get("/").await.body;
        page.contains("Dialling is stopped.")
            && page.contains("Trunk waiting carries no calls: drained.")
    })
    .await;
    let earlier = "UPDATE call_queue SET due_at = due_at - 600000";
    execute(&server.database, earlier).await;
    eventually("the call has been due for long", async || {
        let page = viewer.get("/").await.body;
        page.contains("A call has been due for 10 min and is not dialled yet.")
    })
    .await;
    viewer.language = "zh";
    let page = viewer.get("/").await.body;
    assert!(page.contains("已停止外呼") && page.contains("有呼叫已到拨打时间 10 分钟，仍未拨出"));
}
