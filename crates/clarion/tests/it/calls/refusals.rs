//! What becomes of calls that trunks refuse, by the trunk's policy.

use std::time::Duration;

use clarion::domain::do_not_call::DoNotCallSource;
use clarion::domain::outcome::Outcome;
use jiff::{SignedDuration, Timestamp};
use phone::test_phone::Script;

use super::stage::{Customer, Stage, field};
use crate::support::sip_peer::SipPeer;
use crate::support::telephone::Telephone;
use crate::support::{SID, eventually};

const HELLO: &str = "\"mediaTxt\":\"hello\"";

/// A telephone that refuses with the code that the number ends in; every other number answers and hangs up soon.
async fn refusing() -> Telephone {
    Telephone::start(
        |number| match number[number.len() - 3..].parse::<u16>().unwrap() {
            code @ 300..=699 => Script::refuse(code),
            _ => Script::hang_up_after(Duration::from_millis(200)),
        },
    )
    .await
}

/// A carrier that says 402 for its customer, never for a callee, is left alone for an hour.
const DOWN_AT_402: &str = "responses = [{ code = 402, then = \"trunk-down\" }]\npause_seconds = 3600\nlongest_pause_seconds = 3600";

/// Who answers whatever the number.
async fn answering() -> Telephone {
    Telephone::that(Script::hang_up_after(Duration::from_millis(200))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_of_the_trunk_leaves_the_call_to_another() {
    let (first, second) = (refusing().await, answering().await);
    let codes = [300, 400, 401, 402, 403, 408, 429, 488, 501, 503, 580, 606];
    let refusing = codes.map(|code| {
        let more = format!("priority = 1\nprefixes = [\"861380{code}\"]");
        let trunk = first.wide_trunk(&format!("refuses-{code}"), &more);
        trunk.replacen("prefixes = [\"\"]\n", "", 1)
    });
    let trunks = refusing.concat() + &second.wide_trunk("second", "priority = 2");
    let stage = Stage::on(&trunks, "").await;
    for code in codes {
        let sid = stage.call(&format!("1380{code}0{code}"), HELLO).await;
        let body = stage.report_of(&sid).await;
        assert_eq!(field(&body, "state"), "0", "{code}");
        let record = stage.record(&sid).await;
        assert_eq!(record.trunk.as_deref(), Some("second"), "{code}");
        assert_eq!(stage.legs(&sid).await[0].sip_code, Some(code), "{code}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_no_trunk_carries_is_over_at_once_and_one_that_may_be_carried_later_waits() {
    let telephone = refusing().await;
    let trunk = telephone.wide_trunk("only", "");
    let more = "[dispatch]\nretry_seconds = 1\n[calls]\nexpire_seconds = 4\n";
    let stage = Stage::on(&trunk, more).await;
    let refused = stage.call("13800000403", HELLO).await;
    let waits = stage.call("13800000503", HELLO).await;
    assert_eq!(field(&stage.report_of(&refused).await, "state"), "2");
    let record = stage.record(&refused).await;
    assert_eq!(
        (record.outcome, record.sip_code, record.tries),
        (Some(Outcome::TrunkFailure), Some(403), 1)
    );
    assert_eq!(field(&stage.report_of(&waits).await, "state"), "2");
    let record = stage.record(&waits).await;
    assert_eq!(
        (record.outcome, record.sip_code),
        (Some(Outcome::Expired), Some(503))
    );
    let legs = stage.legs(&waits).await.len();
    assert!(legs > 1, "{legs}");
    let reason = record.reason.unwrap();
    let wanted = format!("dialled {legs} times in vain; the last trunk, only, said: 503 ");
    assert!(reason.starts_with(&wanted), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_has_rules_of_its_own() {
    let (first, second) = (refusing().await, answering().await);
    let rules = "priority = 1\ncarrier = \"wholesale\"\nresponses = [\
         { code = 603, phrase = \"decline\", then = \"next-trunk\" }, { code = \"480-499\", then = \"declined\" }]";
    let trunks = first.wide_trunk("first", rules) + &second.wide_trunk("second", "priority = 2");
    let stage = Stage::on(&trunks, "").await;
    for (code, outcome) in [
        (603, Outcome::Talked),
        (404, Outcome::Talked),
        (486, Outcome::Declined),
    ] {
        let sid = stage.call(&format!("13800000{code}"), HELLO).await;
        stage.report_of(&sid).await;
        assert_eq!(stage.outcome(&sid).await, Some(outcome), "{code}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_that_says_that_it_is_down_gets_no_calls_for_a_while() {
    let (first, second) = (refusing().await, answering().await);
    let trunks = first.wide_trunk("first", &format!("priority = 1\n{DOWN_AT_402}"))
        + &second.wide_trunk("second", "priority = 2");
    let stage = Stage::on(&trunks, "").await;
    for number in ["13800000402", "13800000001", "13800000002"] {
        let sid = stage.call(number, HELLO).await;
        assert_eq!(field(&stage.report_of(&sid).await, "state"), "0");
    }
    assert_eq!(first.dialled().len(), 1, "only the one that it refused");
    assert_eq!(second.dialled().len(), 3);
}

/// Channels of the trunk on which one customer calls bad numbers and another one good ones.
const CHANNELS: usize = 20;

/// A call of whom the numbers are right.
struct GoodCall {
    /// From the accept to the INVITE.
    waited: Duration,
    /// Bad numbers that were dialled in between.
    in_its_way: usize,
}

/// A thousand numbers that one customer should not have called, and another customer's that are right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_numbers_of_one_customer_do_not_delay_another() {
    let (without, none) = good_calls(0).await;
    let (with, refused) = good_calls(1000).await;
    let [without, with_median] = [(&without, none), (&with, refused)].map(|(calls, refused)| {
        let mut waits: Vec<_> = calls.iter().map(|call| call.waited).collect();
        waits.sort();
        let (middle, longest) = (waits[waits.len() / 2], waits[waits.len() - 1]);
        println!("beside {refused} refused numbers: {middle:?} (median), {longest:?} at most");
        middle
    });
    assert!((20..=1000).contains(&refused), "{refused} were refused");
    // A call that has to wait for a trial waits for a second.
    let limit = 3 * without + Duration::from_millis(500);
    assert!(with_median < limit, "{with_median:?}, not {limit:?}");
    let mut in_the_way: Vec<_> = with.iter().map(|call| call.in_its_way).collect();
    in_the_way.sort_unstable();
    println!("bad numbers that were dialled while a good one waited: {in_the_way:?}");
    // Those that have a channel when it is accepted, and whatever the machine does meanwhile as many more.
    assert!(in_the_way[in_the_way.len() / 2] <= CHANNELS);
    assert!(in_the_way[in_the_way.len() - 1] <= 3 * CHANNELS);
}

/// Twenty calls to good numbers, each after the end of the one before, while a neighbour waits with so many that are refused. With how many
/// of those were refused meanwhile.
async fn good_calls(bad_numbers: usize) -> (Vec<GoodCall>, usize) {
    let telephone = refusing().await;
    let more = format!("channels = {CHANNELS}\ncalls_per_second = 200\n");
    let trunk = telephone.trunk("only", &more);
    let stage = Stage::on(&trunk, "[dispatch]\nretry_seconds = 600\n").await;
    let mut bad = Customer::another(&stage, 1, |_| ()).await;
    let mut good = Customer::another(&stage, 2, |_| ()).await;
    for number in 0..bad_numbers {
        bad.call(&format!("1380{number:04}503"), HELLO).await;
    }
    let bad_ones = || {
        let dialled = telephone.dialled().into_iter();
        dialled.filter(|it| it.number.ends_with("503")).count()
    };
    eventually("its calls go one by one", async || {
        bad_ones() >= bad_numbers.min(20)
    })
    .await;
    let mut calls = Vec::new();
    for number in 0..20 {
        let before = telephone.dialled().len();
        let callee = format!("1391{number:04}001");
        let sid = good.call(&callee, HELLO).await;
        assert_eq!(field(&stage.report_of(&sid).await, "state"), "0");
        let record = stage.record(&sid).await;
        let dialled = record.dialled_at.unwrap();
        let since = telephone.dialled().split_off(before);
        let place = since.iter().position(|it| it.number.ends_with(&callee));
        calls.push(GoodCall {
            waited: dialled.duration_since(record.accepted_at).unsigned_abs(),
            in_its_way: place.unwrap(),
        });
    }
    (calls, bad_ones())
}

/// Numbers to which a trunk says 100 and no more, and another customer's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_that_a_trunk_tries_in_vain_do_not_stop_it() {
    let peer = SipPeer::start(|method| match method {
        "INVITE" => Some((100, String::new())),
        _ => Some((200, String::new())),
    })
    .await;
    let more =
        "timeouts = 2\nprogress_seconds = 1\npause_seconds = 3600\nlongest_pause_seconds = 3600";
    let trunk = trunk_over("tries", &[&peer], more);
    let stage = Stage::on(&trunk, "[dispatch]\nretry_seconds = 600\n").await;
    let mut bad = Customer::another(&stage, 1, |_| ()).await;
    let mut good = Customer::another(&stage, 2, |_| ()).await;
    let mut given_up = Vec::new();
    for number in 0..3 {
        given_up.push(bad.call(&format!("1380000000{number}"), HELLO).await);
    }
    for sid in &given_up {
        eventually("it waits again", async || stage.legs(sid).await.len() == 1).await;
    }
    good.call("13900000001", HELLO).await;
    eventually("the trunk gets it", async || {
        let requests = peer.requests.lock().unwrap();
        requests
            .iter()
            .any(|it| it.starts_with("INVITE") && it.contains("13900000001"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_is_not_down_because_somebody_whom_it_redirects_to_is() {
    let target = saying(402, "").await;
    let at = target.address;
    let redirects = move |method: &str| {
        let contact = format!("Contact: <sip:+8613800000009@{at}>");
        (method == "INVITE").then_some((302, contact))
    };
    let peer = SipPeer::start(redirects).await;
    let more = format!("follow_redirects = true\n{DOWN_AT_402}");
    let trunk = trunk_over("redirects", &[&peer], &more);
    let stage = Stage::on(&trunk, "[dispatch]\nretry_seconds = 600\n").await;
    for number in ["13800000001", "13800000002"] {
        let sid = stage.call(number, HELLO).await;
        eventually("both were tried", async || {
            stage.legs(&sid).await.len() == 2
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_that_asks_to_wait_is_not_asked_before() {
    let busy = |method: &str| {
        let retry = "Retry-After: 3 (too many calls);duration=60".to_owned();
        (method == "INVITE").then_some((503, retry))
    };
    let peer = SipPeer::start(busy).await;
    let trunk = format!(
        "[[trunk]]\nname = \"busy\"\nhost = \"{}\"\nbind = \"127.0.0.1:0\"\noptions_seconds = 0\nchannels = 5\ncalls_per_second = 50\nprefixes = [\"\"]\n",
        peer.address
    );
    let stage = Stage::on(&trunk, "[dispatch]\nretry_seconds = 1\n").await;
    let sid = stage.call("13800000001", HELLO).await;
    eventually("two rounds are stored", async || {
        stage.legs(&sid).await.len() >= 2
    })
    .await;
    let legs = stage.legs(&sid).await;
    let waited = legs[1].sent_at.duration_since(legs[0].ended_at);
    assert!(waited >= SignedDuration::from_secs(3), "{waited}");
}

/// A peer that answers every INVITE so.
async fn saying(code: u16, header: &'static str) -> SipPeer {
    let answer = move |method: &str| (method == "INVITE").then(|| (code, header.to_owned()));
    SipPeer::start(answer).await
}

/// A trunk over peers that are asked nothing.
fn trunk_over(name: &str, peers: &[&SipPeer], more: &str) -> String {
    let more_hosts = peers[1..].iter().map(|peer| peer.address.to_string());
    let more_hosts: Vec<_> = more_hosts.collect();
    format!(
        "[[trunk]]\nname = \"{name}\"\nhost = \"{}\"\nhosts = {more_hosts:?}\nbind = \"127.0.0.1:0\"\noptions_seconds = 0\nchannels = 5\ncalls_per_second = 50\nprefixes = [\"\"]\n{more}\n",
        peers[0].address
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_that_asks_to_wait_is_not_asked_before_where_another_one_is_down() {
    let (down, busy) = (saying(402, "").await, saying(503, "Retry-After: 3").await);
    let is_down = format!("priority = 1\n{DOWN_AT_402}");
    let trunks =
        trunk_over("down", &[&down], &is_down) + &trunk_over("busy", &[&busy], "priority = 2");
    let stage = Stage::on(&trunks, "[dispatch]\nretry_seconds = 1\n").await;
    // It finds out that the first is down.
    let sid = stage.call("13800000001", HELLO).await;
    eventually("both were tried", async || {
        stage.legs(&sid).await.len() >= 2
    })
    .await;
    let sid = stage.call("13800000002", HELLO).await;
    eventually("the second twice", async || {
        stage.legs(&sid).await.len() >= 2
    })
    .await;
    let legs = stage.legs(&sid).await;
    assert_eq!([&*legs[0].trunk, &*legs[1].trunk], ["busy"; 2]);
    let waited = legs[1].sent_at.duration_since(legs[0].ended_at);
    assert!(waited >= SignedDuration::from_secs(3), "{waited}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rules_of_a_trunk_count_for_each_of_its_hosts() {
    let (first, second) = (saying(503, "").await, saying(486, "").await);
    let rule = "responses = [{ code = 503, then = \"not-answered\" }]";
    for (more, outcome, hosts) in [(rule, Outcome::NotAnswered, 1), ("", Outcome::Busy, 2)] {
        let trunk = trunk_over("hosts", &[&first, &second], more);
        let stage = Stage::on(&trunk, "").await;
        let sid = stage.call("13800000001", HELLO).await;
        stage.report_of(&sid).await;
        assert_eq!(stage.outcome(&sid).await, Some(outcome));
        assert_eq!(stage.legs(&sid).await.len(), hosts);
    }
}

/// A trunk that redirects to a number at its own address.
async fn redirecting(number: &'static str) -> (SipPeer, String) {
    let contact = move |method: &str| {
        let contact = format!("Contact: <sip:{number}@127.0.0.1:9>");
        (method == "INVITE").then_some((302, contact))
    };
    let peer = SipPeer::start(contact).await;
    let trunk = format!(
        "[[trunk]]\nname = \"redirects\"\nhost = \"{}\"\nbind = \"127.0.0.1:0\"\noptions_seconds = 0\nchannels = 5\ncalls_per_second = 50\nprefixes = [\"86\"]\nfollow_redirects = true\n",
        peer.address
    );
    (peer, trunk)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_to_a_number_that_is_not_called_ends_the_call_and_says_why() {
    for (number, said) in [
        ("+8616800000", "it leads to a number that is not called"),
        (
            "+442071234567",
            "it leads to a number that this trunk does not carry",
        ),
        ("alice", "it leads to no telephone number"),
    ] {
        let (_peer, trunk) = redirecting(number).await;
        let stage = Stage::on(&trunk, "").await;
        let sid = stage.call("13800000001", HELLO).await;
        assert_eq!(field(&stage.report_of(&sid).await, "state"), "2");
        let record = stage.record(&sid).await;
        assert_eq!(record.outcome, Some(Outcome::TrunkFailure));
        let reason = record.reason.unwrap();
        assert!(reason.contains(said), "{reason}");
        assert_eq!(stage.legs(&sid).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_does_not_lead_to_a_number_that_its_account_does_not_call() {
    let (peer, trunk) = redirecting("+8613800000009").await;
    let stage = Stage::on(&trunk, "").await;
    let numbers = vec!["8613800000009".to_owned()];
    let account = SID.parse().unwrap();
    let source = DoNotCallSource::Operator;
    let added =
        (stage.server.store).add_do_not_call(&account, numbers, source, Timestamp::UNIX_EPOCH);
    added.await.unwrap();
    let sid = stage.call("13800000001", HELLO).await;
    assert_eq!(field(&stage.report_of(&sid).await, "state"), "2");
    let reason = stage.record(&sid).await.reason.unwrap();
    assert!(reason.contains("on the do-not-call list"), "{reason}");
    assert_eq!(stage.legs(&sid).await.len(), 1);
    drop(peer);
}
