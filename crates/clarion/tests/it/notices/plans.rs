//! What a plan says, to its end: whose turn it is, how long it rings, what is urgent, and when nobody is called any more.

use clarion::domain::account::AccountChange;
use clarion::domain::call_state::CallState;
use clarion::domain::notice::plan::MAX_ATTEMPTS;
use clarion::domain::outcome::Outcome;
use jiff::SignedDuration;
use phone::test_phone::Script;

use super::events::told as events_told;
use super::{HELLO, TIMES, redialled, told};
use crate::calls::stage::{self, Stage, field, on_postgres};
use crate::support::receiver::{Receiver, ok};
use crate::support::telephone::Telephone;
use crate::support::{self, eventually, status_code};

const PAUSE: SignedDuration = SignedDuration::from_secs(3000);

async fn has_turns_of_one_try(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let fields = format!(
        "{HELLO},\"redialTimes\":\"1\",\"redialInterval\":\"3000\",\"validTime\":\"86400\",\"backupAfter\":\"1\",\
         \"backupTo\":\"13800010002\""
    );
    let sid = stage.call("13800000002", &fields).await;
    for tried in 2..=3 {
        eventually("an attempt is over", async || {
            let is_queued = stage.record(&sid).await.state == CallState::Queued;
            is_queued && stage.attempts(&sid).await.len() == tried
        })
        .await;
        stage.let_time_pass(PAUSE).await;
    }
    let report = stage.report_of(&sid).await;
    let said = ["attempts", "result", "ended"].map(|name| field(&report, name));
    assert_eq!(said, ["4", "busy", "exhausted"]);
    let (first, second) = ("8613800000002", "8613800010002");
    let expected = [first, second, first, second].map(|to| (to, Outcome::Busy, false));
    assert_eq!(told(&stage.attempts(&sid).await), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_backup_after_the_first_begins_again_when_all_have_had_their_turn() {
    has_turns_of_one_try("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_backup_after_the_first_begins_again_when_all_have_had_their_turn_on_postgres() {
    has_turns_of_one_try(&on_postgres().await).await;
}

/// The settings would let it ring for longer than a test waits for anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_rings_for_as_long_as_the_request_says_and_its_ringing_is_told() {
    let stage = Stage::new("[dispatch]\nring_seconds = 600\n").await;
    let watcher = Receiver::start(vec![ok()]).await;
    let fields = format!(
        "{HELLO},\"ringTime\":\"10\",\"callStateUrl\":\"{}\"",
        watcher.url()
    );
    let sid = stage.call("13800000003", &fields).await;
    let bodies = events_told(&watcher).await;
    let events: Vec<_> = bodies.iter().map(|body| field(body, "event")).collect();
    assert_eq!(events, ["queued", "dialling", "ringing", "hangup", "ended"]);
    assert!(
        bodies[2].contains("<attempt>1</attempt><number>13800000003</number>"),
        "{}",
        bodies[2]
    );
    let attempts = stage.attempts(&sid).await;
    assert_eq!(
        told(&attempts),
        [("8613800000003", Outcome::NotAnswered, false)]
    );
    let rang = attempts[0]
        .ended_at
        .duration_since(attempts[0].dialled_at.unwrap());
    assert!(rang >= SignedDuration::from_secs(10), "{rang}");
}

/// Six numbers, each to be tried eleven times, in turn.
async fn ends_after_fifty_attempts(database: &str) {
    const NUMBERS: usize = 6;
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let numbers: Vec<_> = (1..=NUMBERS)
        .map(|place| format!("138{place:04}0002"))
        .collect();
    let fields = format!(
        "{},\"backupAfter\":\"1\",\"backupTo\":\"{}\"",
        redialled(10),
        numbers[1..].join(";")
    );
    let sid = stage.call(&numbers[0], &fields).await;
    for turn in 1..=MAX_ATTEMPTS / NUMBERS {
        eventually("a turn is over", async || {
            stage.attempts(&sid).await.len() == turn * NUMBERS
        })
        .await;
        // Each number waits for its own pause: let it have begun before.
        let millis = PAUSE.as_millis();
        let before = format!(
            "UPDATE attempts SET dialled_at = dialled_at - {millis}, ended_at = ended_at - {millis}"
        );
        support::execute(&stage.server.database, &before).await;
        stage.let_time_pass(PAUSE).await;
    }
    let report = stage.report_of(&sid).await;
    let said = ["attempts", "result", "ended"].map(|name| field(&report, name));
    assert_eq!(said, ["50", "busy", "exhausted"]);
    let attempts = stage.attempts(&sid).await;
    let turns = numbers.iter().cycle().take(MAX_ATTEMPTS);
    let expected: Vec<_> = turns.map(|number| format!("86{number}")).collect();
    let called = attempts.iter().map(|attempt| attempt.to.digits());
    assert!(
        called.eq(expected.iter().map(String::as_str)),
        "{attempts:?}"
    );
    assert_eq!(
        stage.lines(&sid).await.len(),
        MAX_ATTEMPTS,
        "each has its line"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_ends_after_fifty_attempts() {
    ends_after_fifty_attempts("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_ends_after_fifty_attempts_on_postgres() {
    ends_after_fifty_attempts(&on_postgres().await).await;
}

async fn expires_between_attempts(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let expire = async || {
        let later = "UPDATE call_queue SET expires_at = expires_at - 7200000";
        support::execute(&stage.server.database, later).await;
    };
    // Half the time that the settings give.
    let fields =
        format!("{HELLO},\"redialTimes\":\"3\",\"redialInterval\":\"6000\",\"validTime\":\"7200\"");
    let sid = stage.call("13800000002", &fields).await;
    eventually("an attempt is over", async || {
        stage.attempts(&sid).await.len() == 1
    })
    .await;
    expire().await;
    let report = stage.report_of(&sid).await;
    let said = ["state", "attempts", "result", "ended"].map(|name| field(&report, name));
    assert_eq!(said, ["1", "1", "busy", "expired"]);

    let fields = "\"mediaTxt\":\"The water rises. Please leave the house at once, and take the children with you.\",\"validTime\":\"7200\"";
    let sid = stage.call("13800000001", fields).await;
    stage.is_in(&sid, CallState::Answered).await;
    expire().await;
    let report = stage.report_of(&sid).await;
    let said = ["state", "attempts", "result", "ended"].map(|name| field(&report, name));
    assert_eq!(said, ["0", "1", "talked", "talked"]);
    let leg = stage.legs(&sid).await.remove(0);
    assert_eq!(leg.media.played, leg.media.to_play, "to its end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_expires_between_two_attempts_and_no_talk_is_cut() {
    expires_between_attempts("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_expires_between_two_attempts_and_no_talk_is_cut_on_postgres() {
    expires_between_attempts(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_more_urgent_is_dialled_first() {
    let telephone = Telephone::start(Script::of_number).await;
    let trunk = telephone.trunk("telephone", "channels = 1\ncalls_per_second = 200");
    let stage = Stage::on(&trunk, "[dispatch]\nring_seconds = 600\n").await;
    let before = stage.call("13800000003", HELLO).await;
    stage.is_in(&before, CallState::Ringing).await;
    let mut waiting = Vec::new();
    for priority in [9, 5, 1, 7] {
        let fields = format!("{HELLO},\"priority\":\"{priority}\"");
        let to = format!("1380{priority:03}0002");
        waiting.push(stage.call(&to, &fields).await);
    }
    stage.server.store.cancel_call(&before).await.unwrap();
    for sid in &waiting {
        stage.report_of(sid).await;
    }
    let dialled = telephone.dialled();
    let numbers: Vec<_> = dialled[1..].iter().map(|one| one.number.as_str()).collect();
    let expected = [1, 5, 7, 9].map(|priority| format!("+861380{priority:03}0002"));
    assert_eq!(numbers, expected);
}

async fn is_refused_where_every_number_is_spent(database: &str) {
    let stage = Stage::new(&format!("{database}[dispatch]\ncallee_per_day = 1\n")).await;
    let (to, backup) = ("13800000002", "13800010002");
    let first = stage.call(to, HELLO).await;
    stage.report_of(&first).await;
    let fields =
        format!("\"to\":\"{to}\",{HELLO},\"backupTo\":\"{backup}\",\"redialInterval\":\"3000\"");
    let answer = stage.server.call_json(&fields).await;
    assert_eq!(status_code(&answer), "000000", "one of them is free");
    let sid = support::call_sid(&answer).parse().unwrap();
    stage.server.store.cancel_call(&sid).await.unwrap();
    let second = stage.call(backup, HELLO).await;
    stage.report_of(&second).await;
    let answer = stage.server.call_json(&fields).await;
    assert_eq!(status_code(&answer), "190004", "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_is_refused_only_where_every_number_of_it_is_spent() {
    is_refused_where_every_number_is_spent("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_is_refused_only_where_every_number_of_it_is_spent_on_postgres() {
    is_refused_where_every_number_is_spent(&on_postgres().await).await;
}

async fn never_meets_the_hours(database: &str) {
    let stage = Stage::prepared(database, async |store, _| {
        let change = AccountChange {
            call_hours: Some(Some("1-5 0800-1200".parse().unwrap())),
            ..AccountChange::default()
        };
        let sid = support::SID.parse().unwrap();
        store.change_account(&sid, change).await.unwrap();
    })
    .await;
    for (window, code) in [
        ("6-7 0800-1200", "108023"),
        ("1-5 1300-1800", "108023"),
        ("5-6 1100-1800", "000000"),
    ] {
        let fields = format!("\"to\":\"13800000001\",{HELLO},\"callWindow\":\"{window}\"");
        let answer = stage.server.call_json(&fields).await;
        assert_eq!(status_code(&answer), code, "{window}: {answer}");
        assert!(
            code == "000000" || answer.contains("callWindow"),
            "{answer}"
        );
    }
    assert_eq!(stage.server.store.queue_depth().await.unwrap().0, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_that_never_meets_the_hours_of_the_account_is_refused() {
    never_meets_the_hours("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_that_never_meets_the_hours_of_the_account_is_refused_on_postgres() {
    never_meets_the_hours(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_the_settings_forbid_meanwhile_is_not_dialled() {
    let telephone = Telephone::start(Script::of_number).await;
    let trunk = telephone.wide_trunk("telephone", "");
    let mut stage = Stage::on(&trunk, TIMES).await;
    let start = stage.server.clock.wall();
    let start = start.checked_add(PAUSE).unwrap().strftime("%Y%m%d%H%M%S");
    let fields = format!("{HELLO},\"startTime\":\"{start}\",\"backupTo\":\"13800000005\"");
    let first = stage.call("13800000002", &fields).await;
    // An emergency number that the operator has permitted is not called again.
    let again = format!(
        "{HELLO},\"redialTimes\":\"2\",\"redialInterval\":\"3000\",\"validTime\":\"86400\""
    );
    let emergency = stage.call("13800010002", &again).await;
    eventually("an attempt is over", async || {
        stage.attempts(&emergency).await.len() == 1
    })
    .await;
    stage.server.take_server().stop().await;
    stage.let_time_pass(PAUSE).await;
    let settings = "[numbers]\nforbidden = [\"+8613800000002\"]\nemergency = [\"13800010002\"]\npermitted = [\"+8613800010002\"]\n";
    let settings = stage::settings(&format!("{settings}{TIMES}"), &trunk);
    stage.server.restart(&settings).await;
    let report = stage.report_of(&first).await;
    let said = ["attempts", "result", "ended"].map(|name| field(&report, name));
    assert_eq!(said, ["1", "talked", "talked"]);
    let report = stage.report_of(&emergency).await;
    let said = ["attempts", "result", "ended"].map(|name| field(&report, name));
    assert_eq!(said, ["1", "busy", "exhausted"]);
    let dialled = telephone.dialled();
    let numbers: Vec<_> = dialled.iter().map(|one| one.number.as_str()).collect();
    assert_eq!(numbers, ["+8613800010002", "+8613800000005"]);
}
