//! Notices where two nodes share a database: what one begins the other may go on with, and a request that both get is one notice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use clarion::domain::call::CallSid;
use jiff::tz::TimeZone;
use phone::test_phone::Script;
use supervisor::Supervisor;
use tokio::task::JoinSet;

use super::events::steps;
use super::{billed, times_in};
use crate::calls::stage::{field, settings};
use crate::support::child::{Caller, ChildServer, Installation};
use crate::support::receiver::{Receiver, ok};
use crate::support::telephone::Telephone;
use crate::support::{ZONE, bills, eventually_within, postgres};

/// Two cores may need their time for what is asked here.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);
const CONNECTIONS: usize = 20;
const EACH: usize = 25;

struct Pair {
    first: Installation,
    _second: Installation,
    nodes: [ChildServer; 2],
    telephone: Telephone,
}

impl Pair {
    async fn start() -> Self {
        let telephone = Telephone::start(Script::of_number).await;
        let trunk = telephone.trunk("telephone", "channels = 200\ncalls_per_second = 500");
        let settings = settings(
            "[dispatch]\nring_seconds = 1\n[limits]\nrequests_per_second = 100000\n",
            &trunk,
        );
        let url = postgres::empty_database().await;
        let first = Installation::with_settings(Some(url), &settings).await;
        let second = first.another_node(&settings);
        let nodes = [first.start().await, second.start().await];
        Self {
            first,
            _second: second,
            nodes,
            telephone,
        }
    }
}

/// Some may be told that too much was asked for; nobody is told of another call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_requests_of_one_name_are_one_notice() {
    let pair = Pair::start().await;
    let receiver = Receiver::start(vec![ok()]).await;
    let fields = Arc::new(format!(
        "\"to\":\"13800000002\",\"mediaTxt\":\"hello\",\"backupTo\":\"13800000005\",\"requestId\":\"alarm 7\",\"respUrl\":\"{}\"",
        receiver.url()
    ));
    let mut clients = JoinSet::new();
    for connection in 0..2 * CONNECTIONS {
        let client = pair.nodes[connection % 2].client.clone();
        let fields = Arc::clone(&fields);
        clients.spawn(async move {
            let mut caller = Caller::connect(&client).await.unwrap();
            let mut answers = Vec::new();
            for _ in 0..EACH {
                answers.push(caller.try_to_place(&fields).await.unwrap());
            }
            answers
        });
    }
    let answers: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
    assert_eq!(answers.len(), 1000);
    let given: BTreeSet<_> = answers.iter().filter_map(|one| one.as_ref().ok()).collect();
    assert_eq!(given.len(), 1, "one callSid: {given:?}");
    let refused: BTreeSet<_> = answers
        .iter()
        .filter_map(|one| one.as_ref().err())
        .collect();
    assert!(refused.iter().all(|code| *code == "111111"), "{refused:?}");
    let sid = given.first().unwrap().as_str();
    eventually_within(PATIENCE, "it is reported", async || {
        !receiver.received().is_empty()
    })
    .await;
    let report = receiver.received().remove(0).body;
    assert_eq!(field(&report, "callSid"), sid);
    assert_eq!(
        (field(&report, "attempts"), field(&report, "result")),
        ("2", "talked")
    );
    let numbers: Vec<_> = pair
        .telephone
        .dialled()
        .into_iter()
        .map(|one| one.number)
        .collect();
    assert_eq!(
        numbers,
        ["+8613800000002", "+8613800000005"],
        "each dialled once"
    );
    let store = pair.first.database.open(&Supervisor::new()).await.unwrap();
    assert_eq!(store.queue_depth().await.unwrap().0, 0);
    store.close().await;
}

/// Busy, then no answer, then confirmed by the second person after the first.
fn expected_steps(queued: &str, confirmed: &str) -> Vec<String> {
    assert_eq!(field(queued, "event"), "queued");
    let stem = confirmed.strip_suffix("0012").unwrap();
    let about =
        |attempt, suffix| format!("<attempt>{attempt}</attempt><number>{stem}{suffix}</number>");
    let (first, second, third) = (about(1, "0002"), about(2, "0003"), about(3, "0012"));
    vec![
        "queued ".to_owned(),
        format!("dialling {first}"),
        format!("hangup {first}<result>busy</result>"),
        format!("escalated {second}"),
        format!("dialling {second}"),
        format!("hangup {second}<result>not-answered</result>"),
        format!("escalated {third}"),
        format!("dialling {third}"),
        format!("answered {third}"),
        format!("key {third}<dtmf>1</dtmf>"),
        format!("hangup {third}<result>confirmed</result>"),
        "ended <result>confirmed</result>".to_owned(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_node_begins_the_other_may_go_on_with() {
    const NOTICES: usize = 12;
    let pair = Pair::start().await;
    let (receiver, watcher) = (
        Receiver::start(vec![ok()]).await,
        Receiver::start(vec![ok()]).await,
    );
    let mut callers = Vec::new();
    for node in &pair.nodes {
        callers.push(Caller::connect(&node.client).await.unwrap());
    }
    let mut placed = BTreeMap::new();
    for place in 0..NOTICES {
        let number = |suffix: &str| format!("138{place:04}{suffix}");
        let fields = format!(
            "\"to\":\"{}\",\"backupTo\":\"{};{}\",\"mediaTxt\":\"The water rises. Please leave the house now.\",\
             \"confirmDtmf\":\"1\",\"respUrl\":\"{}\",\"callStateUrl\":\"{}\"",
            number("0002"),
            number("0003"),
            number("0012"),
            receiver.url(),
            watcher.url()
        );
        let sid = callers[place % 2].place(&fields).await.unwrap();
        placed.insert(sid, number("0012"));
    }
    eventually_within(PATIENCE, "all are reported and told", async || {
        let told = watcher.received();
        let ended = told
            .iter()
            .filter(|one| field(&one.body, "event") == "ended");
        receiver.received().len() >= NOTICES && ended.count() >= NOTICES
    })
    .await;
    let reports = receiver.received();
    assert_eq!(reports.len(), NOTICES, "one each");
    for report in reports {
        let told = ["attempts", "confirm", "dtmf", "result", "ended"];
        assert_eq!(
            told.map(|name| field(&report.body, name)),
            ["3", "1", "1", "confirmed", "confirmed"]
        );
        let sid = field(&report.body, "callSid");
        assert_eq!(field(&report.body, "confirmNumber"), placed[sid]);
    }
    let dialled = pair.telephone.dialled();
    let numbers: BTreeSet<_> = dialled.iter().map(|one| one.number.as_str()).collect();
    assert_eq!((dialled.len(), numbers.len()), (3 * NOTICES, 3 * NOTICES));
    for sid in placed.keys() {
        let told = watcher.received().into_iter();
        let of_call = told.filter(|one| field(&one.body, "callSid") == sid);
        let bodies: Vec<_> = of_call.map(|one| one.body).collect();
        let seqs = bodies.iter().map(|body| field(body, "seq").parse::<u32>());
        let seqs: Vec<_> = seqs.map(Result::unwrap).collect();
        assert!(seqs.is_sorted_by(|one, next| one < next), "{sid}: {seqs:?}");
        assert_eq!(steps(&bodies), expected_steps(&bodies[0], &placed[sid]));
    }
    let store = pair.first.database.open(&Supervisor::new()).await.unwrap();
    for (sid, confirmed) in &placed {
        let sid: CallSid = sid.parse().unwrap();
        let attempts = store.call_history(&sid).await.unwrap().attempts;
        let mut lines = Vec::new();
        for attempt in &attempts {
            let id = attempt.number.order_id(&sid);
            lines.push(bills::line_of(&*store, &id, attempt.ended_at).await);
        }
        let stem = confirmed.strip_suffix("0012").unwrap();
        let (first, second) = (format!("{stem}0002"), format!("{stem}0003"));
        let ids = [2, 3].map(|number| format!("{sid}-{number}"));
        assert_eq!(
            billed(&lines),
            [
                (sid.as_str(), first.as_str(), "busy"),
                (&ids[0], &second, "not-answered"),
                (&ids[1], confirmed, "confirmed"),
            ]
        );
        let of_call = |body: &&String| field(body, "callSid") == sid.as_str();
        let bodies: Vec<_> = receiver
            .received()
            .into_iter()
            .map(|one| one.body)
            .collect();
        let report = bodies.iter().find(of_call).unwrap();
        let times = times_in(&TimeZone::get(ZONE).unwrap(), &lines[2]);
        assert_eq!(
            *report,
            format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?><request><action>SellingCall</action><number>{first}</number>\
                 <callSid>{sid}</callSid><state>0</state>{times}<attempts>3</attempts><confirm>1</confirm>\
                 <confirmNumber>{confirmed}</confirmNumber><dtmf>1</dtmf><result>confirmed</result><ended>confirmed</ended></request>"
            )
        );
    }
    store.close().await;
}
