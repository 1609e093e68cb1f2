//! When a notice is dialled: not before its time, and in its hours.

use clarion::domain::account::AccountChange;
use clarion::domain::call_state::CallState;
use jiff::SignedDuration;
use phone::test_phone::Script;

use super::{HELLO, TIMES, redialled};
use crate::calls::stage::{self, Stage, field, on_postgres};
use crate::support::telephone::Telephone;
use crate::support::{self, eventually};

async fn begins_at_its_time(database: &str) {
    let stage = Stage::new(database).await;
    let now = stage.server.clock.wall();
    let start = now.checked_add(SignedDuration::from_hours(3)).unwrap();
    let written = start.strftime("%Y%m%d%H%M%S").to_string();
    let later = stage
        .call(
            "13800000001",
            &format!("{HELLO},\"startTime\":\"{written}\""),
        )
        .await;
    let waits = stage
        .record(&later)
        .await
        .due_at
        .unwrap()
        .duration_since(now.timestamp());
    let hours = waits.as_secs() / 60;
    assert!((170..=190).contains(&hours), "{waits}");
    // A window that opens an hour from now, for one hour, on every day.
    let opens = now.checked_add(SignedDuration::from_hours(1)).unwrap();
    let closes = now.checked_add(SignedDuration::from_hours(2)).unwrap();
    let window = format!("{}-{}", opens.strftime("%H%M"), closes.strftime("%H%M"));
    let sid = stage
        .call(
            "13800000001",
            &format!("{HELLO},\"callWindow\":\"{window}\""),
        )
        .await;
    let waits = stage
        .record(&sid)
        .await
        .due_at
        .unwrap()
        .duration_since(now.timestamp());
    let minutes = waits.as_secs() / 60;
    assert!((50..=130).contains(&minutes), "{waits}");
    assert_eq!(stage.record(&sid).await.state, CallState::Queued);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_begins_at_its_time_and_in_its_hours() {
    begins_at_its_time("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_begins_at_its_time_and_in_its_hours_on_postgres() {
    begins_at_its_time(&on_postgres().await).await;
}

/// Hours that are closed now, and open within a day.
fn closed_now(now: &jiff::Zoned) -> String {
    let at = |hours| {
        let time = now.checked_add(SignedDuration::from_hours(hours)).unwrap();
        time.strftime("%H%M").to_string()
    };
    format!("{}-{}", at(2), at(4))
}

async fn waits_for_the_hours_of_its_account(database: &str) {
    let stage = Stage::prepared(&format!("{database}{TIMES}"), async |store, clock| {
        let change = AccountChange {
            call_hours: Some(Some(closed_now(&clock.wall()).parse().unwrap())),
            ..AccountChange::default()
        };
        let sid = support::SID.parse().unwrap();
        store.change_account(&sid, change).await.unwrap();
    })
    .await;
    // A request of today waits for the hours too, and so does an urgent one without the right.
    let plain = stage.call("13800000005", HELLO).await;
    let urgent = format!("{HELLO},\"priority\":\"1\"");
    let without_right = stage.call("13800000005", &urgent).await;
    let now = stage.server.clock.now();
    for sid in [&plain, &without_right] {
        let record = stage.record(sid).await;
        let waits = record.due_at.unwrap().duration_since(now);
        assert!(waits > SignedDuration::from_mins(90), "{waits}");
        assert_eq!(record.state, CallState::Queued);
    }
    let allow = AccountChange {
        urgent_outside_hours: Some(true),
        ..AccountChange::default()
    };
    stage.server.change_account(allow).await;
    // What is known of an account is a second old at most.
    let made = std::cell::RefCell::new(None);
    eventually("an urgent call is due", async || {
        let sid = stage.call("13800000005", &urgent).await;
        let due_at = stage.record(&sid).await.due_at;
        let is_due =
            due_at.is_none_or(|due| due.duration_since(now) < SignedDuration::from_mins(30));
        made.replace(Some(sid));
        is_due
    })
    .await;
    let made = made.take().unwrap();
    let report = stage.report_of(&made).await;
    assert_eq!(
        (field(&report, "state"), field(&report, "ended")),
        ("0", "talked")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_an_account_wait_for_its_hours_unless_they_are_urgent_and_may_be_made() {
    waits_for_the_hours_of_its_account("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_an_account_wait_for_its_hours_unless_they_are_urgent_and_may_be_made_on_postgres()
{
    waits_for_the_hours_of_its_account(&on_postgres().await).await;
}

/// It was due in its window. What is changed here stands for hours that go by.
async fn is_due_when_its_window_is_closed(database: &str) {
    let telephone = Telephone::start(Script::of_number).await;
    let (trunk, more) = (
        telephone.wide_trunk("telephone", ""),
        format!("{database}{TIMES}"),
    );
    let mut stage = Stage::on(&trunk, &more).await;
    let now = stage.server.clock.wall();
    let at = |hours| {
        let time = now.checked_add(SignedDuration::from_hours(hours)).unwrap();
        time.strftime("%H%M").to_string()
    };
    let open = format!("{}-{}", at(-2), at(2));
    let fields = format!("{},\"callWindow\":\"{open}\"", redialled(1));
    let sid = stage.call("13800000002", &fields).await;
    eventually("an attempt is over", async || {
        stage.attempts(&sid).await.len() == 1
    })
    .await;
    stage.server.take_server().stop().await;
    let stored = format!("SELECT notice FROM calls WHERE call_sid = '{sid}'");
    let notice = support::text_of(&stage.server.database, &stored).await;
    assert!(notice.contains(&open), "{notice}");
    let closed = format!(
        "UPDATE calls SET notice = replace(notice, '{open}', '{}') WHERE call_sid = '{sid}'",
        closed_now(&now)
    );
    support::execute(&stage.server.database, &closed).await;
    stage.let_time_pass(SignedDuration::from_secs(3000)).await;
    stage.server.restart(&stage::settings(&more, &trunk)).await;
    eventually("it is put back", async || {
        let due_at = stage.record(&sid).await.due_at.unwrap();
        let waits = due_at.duration_since(stage.server.clock.now());
        waits > SignedDuration::from_mins(30)
    })
    .await;
    assert_eq!(telephone.dialled().len(), 1, "its window is closed");
    assert_eq!(stage.attempts(&sid).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_window_of_a_request_is_looked_at_again_before_it_is_dialled() {
    is_due_when_its_window_is_closed("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_window_of_a_request_is_looked_at_again_before_it_is_dialled_on_postgres() {
    is_due_when_its_window_is_closed(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hours_that_closed_while_a_call_waited_are_respected() {
    let telephone = Telephone::start(Script::of_number).await;
    let trunk = telephone.wide_trunk("telephone", "");
    let mut stage = Stage::on(&trunk, TIMES).await;
    let sid = stage.call("13800000002", &redialled(1)).await;
    eventually("an attempt is over", async || {
        stage.attempts(&sid).await.len() == 1
    })
    .await;
    stage.server.take_server().stop().await;
    let change = AccountChange {
        call_hours: Some(Some(
            closed_now(&stage.server.clock.wall()).parse().unwrap(),
        )),
        ..AccountChange::default()
    };
    stage.server.change_account(change).await;
    stage.let_time_pass(SignedDuration::from_secs(3000)).await;
    stage.server.restart(&stage::settings(TIMES, &trunk)).await;
    eventually("it is put back", async || {
        let due_at = stage.record(&sid).await.due_at.unwrap();
        let waits = due_at.duration_since(stage.server.clock.now());
        waits > SignedDuration::from_mins(30)
    })
    .await;
    assert_eq!(
        telephone.dialled().len(),
        1,
        "nothing is dialled outside the hours"
    );
}
