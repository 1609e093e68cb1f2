//! Numbers that cannot be reached now: each gives its turn to the next one of its notice that can.

use clarion::dispatch::drained_switch;
use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;
use jiff::SignedDuration;
use phone::test_phone::Script;

use super::{HELLO, TIMES, told};
use crate::calls::stage::{self, Stage, field, on_postgres};
use crate::support::telephone::Telephone;
use crate::support::{self, eventually};

const PAUSE: SignedDuration = SignedDuration::from_secs(3000);

/// One trunk for numbers of 138, and another one for those of 139.
fn trunks(telephone: &Telephone) -> String {
    let trunk = |name: &str, prefix: &str| {
        let trunk = telephone.wide_trunk(name, "");
        trunk.replace("prefixes = [\"\"]", &format!("prefixes = [\"{prefix}\"]"))
    };
    format!("{}{}", trunk("east", "86138"), trunk("west", "86139"))
}

impl Stage {
    async fn is_held_back(&self, sid: &CallSid) {
        let held = format!(
            "SELECT CAST(count(*) AS TEXT) FROM call_queue WHERE call_sid = '{sid}' AND pass_at IS NOT NULL"
        );
        eventually("it is held back", async || {
            support::text_of(&self.server.database, &held).await == "1"
        })
        .await;
    }

    async fn switch(&self, trunk: &str, value: Option<&str>) {
        let (store, now) = (&self.server.store, self.server.clock.now());
        let switch = drained_switch(trunk);
        store.set_switch(&switch, value, now).await.unwrap();
    }
}

async fn is_refused_by_every_trunk(database: &str) {
    let telephone = Telephone::start(Script::of_number).await;
    let stage = Stage::on(&trunks(&telephone), &format!("{database}{TIMES}")).await;
    // It has a try left, and the trunk does not carry calls now.
    let fields = format!(
        "{HELLO},\"redialTimes\":\"1\",\"redialInterval\":\"3000\",\"validTime\":\"86400\",\"backupTo\":\"13900000005\""
    );
    let sid = stage.call("13800000007", &fields).await;
    stage.is_held_back(&sid).await;
    assert!(stage.attempts(&sid).await.is_empty(), "it goes on trying");
    stage.let_time_pass(PAUSE).await;
    let report = stage.report_of(&sid).await;
    let said = ["attempts", "result", "ended"].map(|name| field(&report, name));
    assert_eq!(said, ["2", "talked", "talked"]);
    let attempts = stage.attempts(&sid).await;
    assert_eq!(
        told(&attempts),
        [
            ("8613800000007", Outcome::TrunkFailure, false),
            ("8613900000005", Outcome::Talked, true),
        ]
    );
    assert_eq!(stage.lines(&sid).await.len(), 2);
    let dialled = telephone.dialled();
    let reached = dialled.iter().filter(|one| one.number.ends_with("0005"));
    assert_eq!(reached.count(), 1, "who was reached is called once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_every_trunk_refuses_gives_its_turn_to_one_that_can_be_reached() {
    is_refused_by_every_trunk("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_every_trunk_refuses_gives_its_turn_to_one_that_can_be_reached_on_postgres() {
    is_refused_by_every_trunk(&on_postgres().await).await;
}

async fn has_no_trunk_for_a_while(database: &str) {
    let telephone = Telephone::start(Script::of_number).await;
    let (trunks, more) = (trunks(&telephone), format!("{database}{TIMES}"));
    let mut stage = Stage::on(&trunks, &more).await;
    stage.server.take_server().stop().await;
    stage.switch("east", Some("on")).await;
    stage.server.restart(&stage::settings(&more, &trunks)).await;
    let fields =
        |backup: &str| format!("{HELLO},\"redialInterval\":\"10\",\"backupTo\":\"{backup}\"");
    let lost = stage.call("13800000002", &fields("13900000005")).await;
    // Nobody of this one can be reached.
    let waiting = stage.call("13800010005", &fields("13800020005")).await;
    let report = stage.report_of(&lost).await;
    let said = ["attempts", "result", "ended"].map(|name| field(&report, name));
    assert_eq!(said, ["1", "talked", "talked"], "it was no attempt");
    assert_eq!(
        told(&stage.attempts(&lost).await),
        [("8613900000005", Outcome::Talked, true)]
    );
    stage.is_held_back(&waiting).await;
    assert_eq!(stage.record(&waiting).await.state, CallState::Queued);
    stage.switch("east", None).await;
    let report = stage.report_of(&waiting).await;
    assert_eq!(field(&report, "ended"), "talked");
    assert_eq!(
        told(&stage.attempts(&waiting).await),
        [("8613800010005", Outcome::Talked, true)]
    );
    let numbers: Vec<_> = telephone
        .dialled()
        .into_iter()
        .map(|one| one.number)
        .collect();
    assert_eq!(numbers, ["+8613900000005", "+8613800010005"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_for_which_no_trunk_can_be_used_gives_its_turn_to_one_that_can_be_reached() {
    has_no_trunk_for_a_while("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_for_which_no_trunk_can_be_used_gives_its_turn_to_one_that_can_be_reached_on_postgres()
 {
    has_no_trunk_for_a_while(&on_postgres().await).await;
}

async fn has_had_its_calls(database: &str) {
    let settings = format!("{database}[dispatch]\nring_seconds = 1\ncallee_per_day = 1\n");
    let stage = Stage::new(&settings).await;
    let first = stage.call("13800000002", HELLO).await;
    stage.report_of(&first).await;
    let fields = format!(
        "{HELLO},\"redialInterval\":\"3000\",\"validTime\":\"200000\",\"backupTo\":\"13800000005\""
    );
    let sid = stage.call("13800000002", &fields).await;
    stage.is_held_back(&sid).await;
    assert!(stage.attempts(&sid).await.is_empty());
    stage.let_time_pass(PAUSE).await;
    let report = stage.report_of(&sid).await;
    let said = ["attempts", "result", "ended"].map(|name| field(&report, name));
    assert_eq!(said, ["1", "talked", "talked"]);
    let attempts = stage.attempts(&sid).await;
    assert_eq!(told(&attempts), [("8613800000005", Outcome::Talked, true)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_has_had_its_calls_loses_its_turn() {
    has_had_its_calls("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_has_had_its_calls_loses_its_turn_on_postgres() {
    has_had_its_calls(&on_postgres().await).await;
}
