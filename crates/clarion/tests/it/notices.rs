//! Notices through the front door: number after number and try after try, until somebody knows or the plan is at its end.

mod cancelling;
mod endings;
pub mod events;
mod fields;
mod hours;
mod keys;
mod lists;
mod machines;
mod money;
mod plans;
mod redials;
mod two_nodes;
mod unreachable;

use clarion::domain::attempt::Attempt;
use clarion::domain::bill::BillLine;
use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;
use jiff::SignedDuration;
use jiff::tz::TimeZone;

use crate::audio_files::{upload, wav};
use crate::calls::stage::{Stage, field, on_postgres};
use crate::support::{self, bills, eventually};

const HELLO: &str = "\"mediaTxt\":\"hello\",\"userData\":\"u\"";
const TIMES: &str = "[dispatch]\nring_seconds = 1\nretry_seconds = 1\n";

impl Stage {
    async fn attempts(&self, sid: &CallSid) -> Vec<Attempt> {
        self.server.store.call_history(sid).await.unwrap().attempts
    }

    /// The bill lines of all its attempts.
    async fn lines(&self, sid: &CallSid) -> Vec<BillLine> {
        let mut lines = Vec::new();
        for attempt in self.attempts(sid).await {
            let id = attempt.number.order_id(sid);
            lines.push(bills::line_of(&*self.server.store, &id, attempt.ended_at).await);
        }
        lines
    }

    /// This number is not called from now on.
    async fn bar(&self, number: &str) {
        let (store, now) = (&self.server.store, self.server.clock.now());
        let digits = format!("86{number}");
        store.bar_number(&digits, true, now).await.unwrap();
        // The list is read every second.
        eventually("the number is barred", async || {
            let fields = format!("\"to\":\"{number}\",\"mediaTxt\":\"x\"");
            support::status_code(&self.server.call_json(&fields).await) == "108035"
        })
        .await;
    }

    /// What waits for its turn need not wait any longer.
    async fn let_time_pass(&self, time: SignedDuration) {
        let millis = time.as_millis();
        let sooner = format!(
            "UPDATE call_queue SET due_at = due_at - {millis}, held_since = held_since - {millis}, pass_at = pass_at - {millis}"
        );
        support::execute(&self.server.database, &sooner).await;
    }
}

/// Tried again so often, after long pauses.
fn redialled(times: u32) -> String {
    format!(
        "{HELLO},\"redialTimes\":\"{times}\",\"redialInterval\":\"3000\",\"validTime\":\"86400\""
    )
}

/// Number, outcome, and whether somebody answered.
fn told(attempts: &[Attempt]) -> Vec<(&str, Outcome, bool)> {
    let one = |attempt: &Attempt| (attempt.outcome, attempt.answered_at.is_some());
    attempts
        .iter()
        .map(|attempt| {
            let (outcome, is_answered) = one(attempt);
            (attempt.to.digits(), outcome, is_answered)
        })
        .collect()
}

/// Order id, number and outcome of bill lines.
fn billed(lines: &[BillLine]) -> Vec<(&str, &str, &str)> {
    lines
        .iter()
        .map(|line| {
            (
                line.order_id.as_str(),
                line.called.as_str(),
                line.outcome.as_str(),
            )
        })
        .collect()
}

/// The times and the duration of an attempt, as a callback says them.
fn times(stage: &Stage, line: &BillLine) -> String {
    times_in(stage.server.clock.zone(), line)
}

fn times_in(zone: &TimeZone, line: &BillLine) -> String {
    let time = |time: jiff::Timestamp| time.to_zoned(zone.clone()).strftime("%Y%m%d%H%M%S");
    format!(
        "<starttime>{}</starttime><endtime>{}</endtime><duration>{}</duration>",
        time(line.answered_at.unwrap()),
        time(line.ended_at),
        line.seconds
    )
}

async fn busy_then_silent_then_somebody(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let sid = stage
        .call(
            "13800000002",
            &format!("{HELLO},\"backupTo\":\"13800000003; +8613800000005;13800000002\""),
        )
        .await;
    let report = stage.report_of(&sid).await;
    let attempts = stage.attempts(&sid).await;
    assert_eq!(
        told(&attempts),
        [
            ("8613800000002", Outcome::Busy, false),
            ("8613800000003", Outcome::NotAnswered, false),
            ("8613800000005", Outcome::Talked, true),
        ]
    );
    let lines = stage.lines(&sid).await;
    let (second, third) = (format!("{sid}-2"), format!("{sid}-3"));
    assert_eq!(
        billed(&lines),
        [
            (sid.as_str(), "13800000002", "busy"),
            (&second, "13800000003", "not-answered"),
            (&third, "+8613800000005", "talked"),
        ]
    );
    // To the letter, with the times of the attempt that decided.
    assert_eq!(
        report,
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><request><action>SellingCall</action><number>13800000002</number>\
             <callSid>{sid}</callSid><state>0</state>{}\
             <userData>u</userData><attempts>3</attempts><confirm>0</confirm><result>talked</result><ended>talked</ended></request>",
            times(&stage, &lines[2]),
        )
    );
    assert_eq!(stage.receiver.received().len(), 1, "one report a notice");
    assert_eq!(stage.outcome(&sid).await, Some(Outcome::Talked));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_called_in_turn_until_somebody_answers() {
    busy_then_silent_then_somebody("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_called_in_turn_until_somebody_answers_on_postgres() {
    busy_then_silent_then_somebody(&on_postgres().await).await;
}

async fn tries_again_after_a_pause(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let fields = format!(
        "{HELLO},\"redialTimes\":\"2\",\"redialInterval\":\"3000;6000\",\"validTime\":\"86400\""
    );
    let sid = stage.call("13800000002", &fields).await;
    for (tried, pause) in [(1, 3000), (2, 6000)] {
        eventually("an attempt is over", async || {
            let is_queued = stage.record(&sid).await.state == CallState::Queued;
            is_queued && stage.attempts(&sid).await.len() == tried
        })
        .await;
        let record = stage.record(&sid).await;
        let waits = record
            .due_at
            .unwrap()
            .duration_since(stage.attempts(&sid).await[tried - 1].ended_at);
        let pause = SignedDuration::from_secs(pause);
        assert!(
            waits > pause - SignedDuration::from_secs(60)
                && waits < pause + SignedDuration::from_secs(60),
            "{waits}"
        );
        assert!(stage.receiver.received().is_empty(), "it is not over");
        stage.let_time_pass(pause).await;
    }
    let report = stage.report_of(&sid).await;
    assert_eq!(field(&report, "state"), "1");
    assert_eq!(field(&report, "attempts"), "3");
    assert_eq!(field(&report, "result"), "busy");
    assert_eq!(field(&report, "ended"), "exhausted");
    let orders: Vec<_> = stage
        .lines(&sid)
        .await
        .into_iter()
        .map(|line| line.order_id)
        .collect();
    assert_eq!(
        orders,
        [sid.to_string(), format!("{sid}-2"), format!("{sid}-3")]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_is_tried_again_after_its_pause() {
    tries_again_after_a_pause("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_is_tried_again_after_its_pause_on_postgres() {
    tries_again_after_a_pause(&on_postgres().await).await;
}

async fn loses_its_turn_where_it_is_busy_with_another_call(database: &str) {
    let stage = Stage::new(&format!("{database}[dispatch]\nring_seconds = 60\n")).await;
    let other = stage.call("13800000003", HELLO).await;
    stage.is_in(&other, CallState::Ringing).await;
    let fields = format!("{HELLO},\"redialInterval\":\"3000\",\"backupTo\":\"13800000005\"");
    let sid = stage.call("13800000003", &fields).await;
    let parked = format!(
        "SELECT CAST(count(*) AS TEXT) FROM call_queue WHERE call_sid = '{sid}' AND pass_at IS NOT NULL"
    );
    eventually("it is held back", async || {
        support::text_of(&stage.server.database, &parked).await == "1"
    })
    .await;
    assert!(stage.attempts(&sid).await.is_empty());
    stage.let_time_pass(SignedDuration::from_secs(3000)).await;
    let report = stage.report_of(&sid).await;
    let said = ["attempts", "result", "ended"].map(|name| field(&report, name));
    assert_eq!(said, ["1", "talked", "talked"]);
    let attempts = stage.attempts(&sid).await;
    assert_eq!(told(&attempts), [("8613800000005", Outcome::Talked, true)]);
    let lines = stage.lines(&sid).await;
    assert_eq!(lines[0].order_id, sid.as_str(), "its first line");
    assert_eq!(stage.record(&other).await.state, CallState::Ringing);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_busy_with_another_call_of_ours_loses_its_turn() {
    loses_its_turn_where_it_is_busy_with_another_call("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_busy_with_another_call_of_ours_loses_its_turn_on_postgres() {
    loses_its_turn_where_it_is_busy_with_another_call(&on_postgres().await).await;
}

async fn is_cancelled_between_attempts(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let fields = format!(
        "{HELLO},\"redialTimes\":\"5\",\"redialInterval\":\"3000\",\"validTime\":\"86400\""
    );
    let sid = stage.call("13800000002", &fields).await;
    eventually("an attempt is over", async || {
        stage.attempts(&sid).await.len() == 1
    })
    .await;
    let state = stage.server.store.cancel_call(&sid).await.unwrap();
    assert_eq!(state, Some(CallState::Queued));
    let report = stage.report_of(&sid).await;
    assert_eq!(
        (field(&report, "state"), field(&report, "attempts")),
        ("1", "1")
    );
    assert_eq!(
        (field(&report, "result"), field(&report, "ended")),
        ("busy", "cancelled")
    );
    assert_eq!(
        stage.lines(&sid).await.len(),
        1,
        "what was not dialled is not billed"
    );
    let ended_at = stage.record(&sid).await.ended_at;
    let last = stage.attempts(&sid).await[0].ended_at;
    assert!(ended_at > Some(last), "it ended when it was cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_is_cancelled_between_two_attempts() {
    is_cancelled_between_attempts("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_is_cancelled_between_two_attempts_on_postgres() {
    is_cancelled_between_attempts(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_was_barred_meanwhile_makes_way_for_the_next() {
    let stage = Stage::new(TIMES).await;
    let fields = format!(
        "{HELLO},\"redialTimes\":\"1\",\"redialInterval\":\"3000\",\"validTime\":\"86400\",\"backupTo\":\"13800000005\""
    );
    let sid = stage.call("13800000002", &fields).await;
    eventually("an attempt is over", async || {
        stage.attempts(&sid).await.len() == 1
    })
    .await;
    stage.bar("13800000002").await;
    stage.let_time_pass(SignedDuration::from_secs(3000)).await;
    let report = stage.report_of(&sid).await;
    assert_eq!(
        (field(&report, "attempts"), field(&report, "result")),
        ("2", "talked")
    );
    let attempts = stage.attempts(&sid).await;
    assert_eq!(
        told(&attempts),
        [
            ("8613800000002", Outcome::Busy, false),
            ("8613800000005", Outcome::Talked, true),
        ]
    );
}

async fn is_barred_within_its_turn(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let fields = format!(
        "{HELLO},\"redialTimes\":\"2\",\"redialInterval\":\"3000\",\"backupAfter\":\"2\",\"validTime\":\"86400\",\"backupTo\":\"13800010002;13800000005\""
    );
    let sid = stage.call("13800000002", &fields).await;
    for tried in [1, 3] {
        eventually("its next try waits", async || {
            let is_queued = stage.record(&sid).await.state == CallState::Queued;
            is_queued && stage.attempts(&sid).await.len() == tried
        })
        .await;
        if tried == 3 {
            stage.bar("13800010002").await;
        }
        stage.let_time_pass(SignedDuration::from_secs(3000)).await;
    }
    let report = stage.report_of(&sid).await;
    assert_eq!(field(&report, "ended"), "talked");
    let (first, second) = ("8613800000002", "8613800010002");
    let busy = |to| (to, Outcome::Busy, false);
    assert_eq!(
        told(&stage.attempts(&sid).await),
        [
            busy(first),
            busy(first),
            busy(second),
            ("8613800000005", Outcome::Talked, true),
        ],
        "the first has a try left, and it is not its turn"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_turn_of_a_number_that_is_barred_goes_to_the_one_after_it() {
    is_barred_within_its_turn("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_turn_of_a_number_that_is_barred_goes_to_the_one_after_it_on_postgres() {
    is_barred_within_its_turn(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_result_of_a_notice_tells_its_attempts() {
    let stage = Stage::new(TIMES).await;
    let fields = format!("{HELLO},\"backupTo\":\"13800000003\"");
    let sid = stage.call("13800000002", &fields).await;
    stage.report_of(&sid).await;
    let question = format!("CallResult?callsid={sid}");
    let answer = stage.server.ask(&question, "xml", None).await;
    assert!(
        answer.contains("<state>1</state><callTime>0</callTime><duration>0</duration><attempts>2</attempts><confirm>0</confirm>"),
        "{answer}"
    );
}

async fn is_cancelled_while_it_rings(database: &str) {
    let stage = Stage::new(&format!("{database}[dispatch]\nring_seconds = 60\n")).await;
    for fields in [format!("{HELLO},\"priority\":\"4\""), redialled(2)] {
        let sid = stage.call("13800000003", &fields).await;
        stage.is_in(&sid, CallState::Ringing).await;
        let state = stage.server.store.cancel_call(&sid).await.unwrap();
        assert_eq!(state, Some(CallState::Ringing));
        let report = stage.report_of(&sid).await;
        let told = ["state", "attempts", "result", "ended"].map(|name| field(&report, name));
        assert_eq!(told, ["1", "1", "cancelled", "cancelled"]);
        assert_eq!(stage.lines(&sid).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_is_cancelled_while_it_rings() {
    is_cancelled_while_it_rings("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_is_cancelled_while_it_rings_on_postgres() {
    is_cancelled_while_it_rings(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_said_to_one_is_not_tried_with_another() {
    let stage = Stage::new(TIMES).await;
    upload(&stage.server, "a.wav", &wav(1000)).await;
    spoil(&stage.server.folder.path().join("data/voices"));
    let fields = "\"mediaName\":\"a.wav\",\"backupTo\":\"13800000005\",\"redialTimes\":\"3\"";
    let sid = stage.call("13800000001", fields).await;
    let report = stage.report_of(&sid).await;
    let told = ["state", "attempts", "result", "ended"].map(|name| field(&report, name));
    assert_eq!(told, ["2", "0", "prompt-failed", "exhausted"]);
    assert_eq!(
        stage.lines(&sid).await.len(),
        1,
        "a notice that was never dialled has its line"
    );
}

/// Every file below it is no sound any more.
fn spoil(folder: &std::path::Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            spoil(&path);
        } else {
            std::fs::write(path, "no sound").unwrap();
        }
    }
}
