//! Which trunk a call goes over, and when another one is tried: only while nothing has rung.

use std::time::Duration;

use clarion::clock::Clock;
use clarion::domain::account::Permissions;
use clarion::domain::leg::HungUpBy;
use clarion::domain::outcome::Outcome;
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use phone::test_phone::{Script, Then};

use super::stage::{Customer, Stage, field};
use crate::support::eventually;
use crate::support::telephone::Telephone;

const HELLO: &str = "\"mediaTxt\":\"hello\"";

/// Two trunks, the first of which is tried first.
struct Fork {
    stage: Stage,
    first: Telephone,
    second: Telephone,
}

impl Fork {
    async fn new(first: Script, second: Script) -> Self {
        let (first, second) = (Telephone::that(first).await, Telephone::that(second).await);
        let trunks = first.wide_trunk("first", "priority = 1")
            + &second.wide_trunk("second", "priority = 2");
        Self {
            stage: Stage::on(&trunks, "").await,
            first,
            second,
        }
    }

    fn rang(&self) -> (usize, usize) {
        (self.first.dialled().len(), self.second.dialled().len())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_that_answers_503_gives_the_call_to_the_next() {
    for code in [500, 503, 504] {
        let fork = Fork::new(
            Script::refuse(code),
            Script::hang_up_after(Duration::from_millis(300)),
        )
        .await;
        let sid = fork.stage.call("13800000001", HELLO).await;
        let body = fork.stage.report_of(&sid).await;
        assert_eq!(field(&body, "state"), "0", "{code}");
        assert_eq!(fork.rang(), (1, 1), "{code}");
        let record = fork.stage.record(&sid).await;
        assert_eq!((record.trunk.as_deref(), record.tries), (Some("second"), 2));
        let legs = fork.stage.legs(&sid).await;
        let legs: Vec<_> = legs
            .iter()
            .map(|leg| (leg.trunk.as_str(), leg.sip_code, leg.hung_up_by))
            .collect();
        let refused = ("first", Some(code), HungUpBy::Nobody);
        assert_eq!(legs, [refused, ("second", Some(200), HungUpBy::Them)]);
        // A new call to the peer, and still the same to whoever looks for it.
        let heard = fork.second.has_heard(&sid).await;
        assert_eq!(heard.call_id, format!("{sid}-2@clarion"));
        assert!(heard.answered);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_legs_of_every_round_are_kept() {
    let telephone = Telephone::that(Script::refuse(503)).await;
    let trunk = telephone.wide_trunk("overloaded", "");
    let stage = Stage::on(&trunk, "[dispatch]\nretry_seconds = 1\n").await;
    let sid = stage.call("13800000001", HELLO).await;
    eventually("two rounds are stored", async || {
        stage.legs(&sid).await.len() >= 2
    })
    .await;
    for leg in stage.legs(&sid).await {
        assert_eq!(
            (leg.trunk.as_str(), leg.sip_code),
            ("overloaded", Some(503))
        );
        assert!(leg.sent_at <= leg.ended_at && leg.answered_at.is_none());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_that_says_nothing_gives_the_call_to_the_next() {
    // Somebody listens there, and never answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let telephone = Telephone::that(Script::hang_up_after(Duration::from_millis(300))).await;
    let trunks = format!(
        "[[trunk]]\nname = \"silent\"\nhost = \"{}\"\nbind = \"127.0.0.1:0\"\noptions_seconds = 0\nchannels = 5\ncalls_per_second = 5\nprefixes = [\"\"]\npriority = 1\n{}",
        silent.local_addr().unwrap(),
        telephone.wide_trunk("second", "priority = 2")
    );
    let stage = Stage::on(&trunks, "").await;
    let sid = stage.call("13800000001", HELLO).await;
    let body = stage.report_of(&sid).await;
    assert_eq!(field(&body, "state"), "0");
    assert_eq!(telephone.dialled().len(), 1);
    let record = stage.record(&sid).await;
    assert_eq!((record.trunk.as_deref(), record.tries), (Some("second"), 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_rings_again_after_busy_or_declined() {
    for (code, outcome) in [
        (486, Outcome::Busy),
        (600, Outcome::Busy),
        (603, Outcome::Declined),
        (480, Outcome::NotAnswered),
    ] {
        let fork = Fork::new(Script::refuse(code), Script::answer()).await;
        let sid = fork.stage.call("13800000001", HELLO).await;
        let body = fork.stage.report_of(&sid).await;
        assert_eq!(field(&body, "state"), "1", "{code}");
        // Reported means ended: whoever has not rung by now never will.
        assert_eq!(fork.rang(), (1, 0), "{code}");
        let record = fork.stage.record(&sid).await;
        assert_eq!(
            (record.outcome, record.sip_code, record.tries),
            (Some(outcome), Some(code), 1)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_else_rings_once_it_has_rung() {
    let rings_and_fails = Script {
        then: Then::Refuse {
            after: Duration::from_millis(200),
            code: 503,
        },
        ..Script::answer()
    };
    let fork = Fork::new(rings_and_fails, Script::answer()).await;
    let sid = fork.stage.call("13800000001", HELLO).await;
    let body = fork.stage.report_of(&sid).await;
    assert_eq!(field(&body, "state"), "2");
    assert_eq!(fork.rang(), (1, 0));
    let record = fork.stage.record(&sid).await;
    assert_eq!(
        (record.outcome, record.sip_code),
        (Some(Outcome::TrunkFailure), Some(503))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_keeps_its_hours_and_its_callers() {
    let talks = || Telephone::that(Script::hang_up_after(Duration::from_millis(100)));
    let (first, second, third) = (talks().await, talks().await, talks().await);
    // It opens in the hour after the next, whatever time it is, and stays open for two.
    let zone = TimeZone::get("Asia/Shanghai").unwrap();
    let hour = Clock::new(zone).wall().hour();
    let hours = format!("{:02}00-{:02}00", (hour + 2) % 24, (hour + 4) % 24);
    let trunks = first.wide_trunk("first", &format!("priority = 1\nhours = \"{hours}\""))
        + &second.wide_trunk("second", "priority = 2\ncallers = [\"86400\"]")
        + &third.wide_trunk("third", "priority = 3");
    let stage = Stage::on(&trunks, "").await;
    let trunk_of = async |number: &str| {
        let sid = stage.call(number, HELLO).await;
        stage.report_of(&sid).await;
        stage.record(&sid).await.trunk.unwrap()
    };
    assert_eq!(trunk_of("13800000001").await, "third", "no number is shown");
    stage.server.clock.shift(SignedDuration::from_mins(150));
    eventually("it has opened", async || {
        trunk_of("13800000001").await == "first"
    })
    .await;
    assert_eq!(
        (second.dialled().len(), third.dialled().is_empty()),
        (0, false)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_for_some_callers_carries_their_calls_and_no_others() {
    let talks = || Telephone::that(Script::hang_up_after(Duration::from_millis(100)));
    let (some, all) = (talks().await, talks().await);
    let trunks = some.wide_trunk("some", "priority = 1\ncallers = [\"86400\", \"8610\"]")
        + &all.wide_trunk("all", "priority = 2");
    let stage = Stage::on(&trunks, "").await;
    let mut customer = Customer::another(&stage, 1, |account| {
        account.display_numbers = vec!["+86*".parse().unwrap()];
        account.permissions = Permissions {
            custom_display_number: true,
            ..Permissions::default()
        };
    })
    .await;
    for (caller, trunk) in [
        ("4001234567", "some"),
        ("+861088886666", "some"),
        ("+8613811111111", "all"),
        ("+8640", "all"),
        ("", "all"),
    ] {
        let extra = format!("{HELLO},\"displayNum\":\"{caller}\"");
        let sid = customer.call("13800000001", &extra).await;
        assert_eq!(field(&stage.report_of(&sid).await, "state"), "0");
        let legs = stage.legs(&sid).await;
        let used: Vec<_> = legs.iter().map(|leg| leg.trunk.as_str()).collect();
        assert_eq!(used, [trunk], "{caller}");
    }
    assert_eq!((some.dialled().len(), all.dialled().len()), (2, 3));
}
