//! Notices where two nodes share a database: what one begins the other may go on with, and a request that both get is one notice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use clarion::domain::call::CallSid;
use jiff::tz::TimeZone;
use phone::test_phone::{Script, Then};
use supervisor::Supervisor;
use tokio::process::Command;
use tokio::sync::{Barrier, Semaphore};
use tokio::task::JoinSet;

use super::{billed, times_in};
use crate::calls::stage::{field, settings};
use crate::support::child::{Caller, ChildServer, Installation};
use crate::support::receiver::{Receiver, ok};
use crate::support::telephone::Telephone;
use crate::support::{ZONE, bills, eventually_within, postgres};

/// Two cores may need their time for what is asked here.
const PATIENCE: Duration = Duration::from_secs(120);
/// It rings for so long before somebody answers.
const RINGS: Duration = Duration::from_secs(3);
/// Requests of one name, each on a connection of its own.
const AT_ONCE: usize = 1000;
/// Connections that are made beside each other: each handshake has ten seconds.
const HANDSHAKES: usize = 16;
/// Those of another name, which do not agree about what they want.
const DISAGREEING: usize = 40;

struct Pair {
    first: Installation,
    _second: Installation,
    nodes: [ChildServer; 2],
    telephone: Telephone,
}

impl Pair {
    async fn start() -> Self {
        let telephone = Telephone::start(script).await;
        let trunk = telephone.trunk("telephone", "channels = 200\ncalls_per_second = 500");
        let settings = settings(
            "[dispatch]\nring_seconds = 6\n[limits]\nrequests_per_second = 100000\n",
            &trunk,
        );
        let url = postgres::empty_database().await;
        let first = Installation::with_settings(Some(url), &settings).await;
        let second = first.another_node(&settings);
        let nodes = [
            first.start_by(patient_with_clients).await,
            second.start_by(patient_with_clients).await,
        ];
        Self {
            first,
            _second: second,
            nodes,
            telephone,
        }
    }
}

/// A client that is connected says nothing until all are.
fn patient_with_clients(serve: &mut Command) -> &mut Command {
    serve.env("CLARION_HTTP__HEAD_SECONDS", "600")
}

/// Whoever presses the key has heard it ring for a while: the ringing is an event of its own.
fn script(number: &str) -> Script {
    let script = Script::of_number(number);
    if number.ends_with("0002") {
        // Whether the word of its ringing comes before that of its end would be chance.
        return Script {
            ring: None,
            ..script
        };
    }
    match script.then {
        Then::Answer { hang_up, keys, .. } if number.ends_with("0012") => Script {
            then: Then::Answer {
                after: RINGS,
                hang_up,
                keys,
            },
            ..script
        },
        _ => script,
    }
}

/// What is asked by these clients, each of them once and all at the same time, in turns at one node and the other.
async fn ask_at_once(pair: &Pair, asked: Vec<String>) -> Vec<Result<String, String>> {
    let together = Arc::new(Barrier::new(asked.len()));
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES));
    let mut clients = JoinSet::new();
    for (place, fields) in asked.into_iter().enumerate() {
        let client = pair.nodes[place % 2].client.clone();
        let (together, handshakes) = (Arc::clone(&together), Arc::clone(&handshakes));
        clients.spawn(async move {
            let handshake = handshakes.acquire().await.unwrap();
            let mut caller = Caller::connect(&client).await.unwrap();
            drop(handshake);
            together.wait().await;
            (place, caller.try_to_place(&fields).await.unwrap())
        });
    }
    let mut answers = clients.join_all().await;
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// The one callSid that was given. Some may be told that too much was asked for; nobody is told of another call.
fn only_sid<'a>(answers: impl Iterator<Item = &'a Result<String, String>> + Clone) -> String {
    let given: BTreeSet<_> = answers
        .clone()
        .filter_map(|one| one.as_ref().ok())
        .collect();
    assert_eq!(given.len(), 1, "one callSid: {given:?}");
    let refused: BTreeSet<_> = answers.filter_map(|one| one.as_ref().err()).collect();
    assert!(refused.iter().all(|code| *code == "111111"), "{refused:?}");
    given.into_iter().next().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_requests_of_one_name_are_one_notice() {
    let pair = Pair::start().await;
    let receiver = Receiver::start(vec![ok()]).await;
    let fields = format!(
        "\"to\":\"13800000002\",\"mediaTxt\":\"hello\",\"backupTo\":\"13800000005\",\"requestId\":\"alarm 7\",\"respUrl\":\"{}\"",
        receiver.url()
    );
    let answers = ask_at_once(&pair, vec![fields.clone(); AT_ONCE]).await;
    assert_eq!(answers.len(), AT_ONCE);
    let sid = only_sid(answers.iter());
    // Both nodes know what was asked for by this name.
    let other = fields.replace("13800000005", "13800000006");
    let answers = ask_at_once(&pair, vec![other; 2]).await;
    assert!(
        answers.iter().all(|one| *one == Err("190010".to_owned())),
        "{answers:?}"
    );
    eventually_within(PATIENCE, "it is reported", async || {
        !receiver.received().is_empty()
    })
    .await;
    let report = receiver.received().remove(0).body;
    assert_eq!(field(&report, "callSid"), sid.as_str());
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

/// Two wishes under one name, at the same time and at both nodes: one of them is a notice, the other is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_belongs_to_the_first_of_two_wishes_at_whichever_node() {
    let pair = Pair::start().await;
    let wish = |place: usize| {
        // Each wish is asked for at both nodes.
        let times = if (place / 2).is_multiple_of(2) {
            "1"
        } else {
            "2"
        };
        format!(
            "\"to\":\"13800000005\",\"mediaTxt\":\"hello\",\"redialTimes\":\"{times}\",\"requestId\":\"alarm 8\""
        )
    };
    let answers = ask_at_once(&pair, (0..DISAGREEING).map(wish).collect()).await;
    let first = answers.iter().position(Result::is_ok).unwrap();
    let is_of_first = |place: &usize| place / 2 % 2 == first / 2 % 2;
    let (same, other): (Vec<_>, Vec<_>) = (0..DISAGREEING).partition(|place| is_of_first(place));
    only_sid(same.iter().map(|place| &answers[*place]));
    for place in other {
        let refused = answers[place].as_ref().unwrap_err();
        assert!(
            ["190010", "111111"].contains(&refused.as_str()),
            "{refused}"
        );
    }
    for place in 0..4 {
        let again = ask_at_once(&pair, vec![wish(place); 2]).await;
        let is_known = again.iter().all(|one| match one {
            Ok(sid) => is_of_first(&place) && Ok(sid) == answers[first].as_ref(),
            Err(code) => !is_of_first(&place) && code == "190010",
        });
        assert!(is_known, "{place}: {again:?}");
    }
}

/// Busy, then no answer, then confirmed by the second person after the first: every event, to the letter but for its time.
fn expected_events(sid: &str, confirmed: &str) -> Vec<String> {
    let steps = expected_steps(confirmed);
    let steps = steps.iter().enumerate().map(|(place, step)| {
        let (event, about) = step.split_once(' ').unwrap();
        let seq = place + 1;
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><request><action>CallState</action><callSid>{sid}</callSid><seq>{seq}</seq>\
             <event>{event}</event>{about}<time></time></request>"
        )
    });
    steps.collect()
}

/// An event without its time, and that.
fn timeless(body: &str) -> (String, String) {
    let time = field(body, "time").to_owned();
    assert!(
        time.len() == 14 && time.bytes().all(|byte| byte.is_ascii_digit()),
        "{body}"
    );
    (
        body.replacen(&format!("<time>{time}</time>"), "<time></time>", 1),
        time,
    )
}

fn expected_steps(confirmed: &str) -> Vec<String> {
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
        format!("ringing {second}"),
        format!("hangup {second}<result>not-answered</result>"),
        format!("escalated {third}"),
        format!("dialling {third}"),
        format!("ringing {third}"),
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
        let (events, times): (Vec<_>, Vec<_>) = bodies.iter().map(|body| timeless(body)).unzip();
        assert_eq!(events, expected_events(sid, &placed[sid]));
        assert!(times.is_sorted(), "{sid}: {times:?}");
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
