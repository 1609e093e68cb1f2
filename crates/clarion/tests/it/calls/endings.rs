//! Calls that are ended by somebody else than their two sides: the operator, a suspended account, a server that is told to stop.

use clarion::dispatch::STOP_ALL;
use clarion::domain::account::{AccountChange, AccountState};
use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;
use phone::ending::Side;
use phone::test_phone::{HeardCall, Script};
use rustix::process::{Pid, Signal, kill_process};
use supervisor::Supervisor;

use super::stage::{self, Stage, field, on_postgres};
use crate::support::child::{Caller, ChildServer, Installation};
use crate::support::receiver::{Receiver, ok};
use crate::support::telephone::Telephone;
use crate::support::{PATIENCE, SID, WAITING_TRUNK, eventually};

const HELLO: &str = "\"mediaTxt\":\"hello\"";
const TUNE: &str = "\"mediaName\":\"ccp_marketingcall.wav\"";

/// What is played for `TUNE`.
fn tune() -> Vec<u8> {
    let tune = sound::level::to_whole(&sound::background::test_tune());
    g711::EncodedAudio::encode(&tune)
        .bytes(g711::Codec::Pcma)
        .to_vec()
}

/// The message was not heard to its end.
fn assert_cut_short(heard: &HeardCall) {
    let (sound, whole) = (heard.sound().len(), 4000 + tune().len());
    assert!(sound < whole, "{sound} of {whole} bytes");
}

async fn cancel_while_it_rings(database: &str) {
    let telephone = Telephone::that(Script::never_answer()).await;
    let stage = Stage::on(&telephone.wide_trunk("telephone", ""), database).await;
    let sid = stage.call("13800000001", HELLO).await;
    stage.is_in(&sid, CallState::Ringing).await;
    let state = stage.server.store.cancel_call(&sid).await.unwrap();
    assert_eq!(state, Some(CallState::Ringing));
    let report = stage.report_of(&sid).await;
    assert_eq!(
        (field(&report, "state"), field(&report, "duration")),
        ("1", "0")
    );
    assert_eq!(stage.outcome(&sid).await, Some(Outcome::Cancelled));
    let heard = telephone.has_heard(&sid).await;
    assert!(!heard.answered);
    // What has ended cannot be cancelled any more.
    assert_eq!(stage.server.store.cancel_call(&sid).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ringing_call_that_is_cancelled_stops_ringing() {
    cancel_while_it_rings("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ringing_call_that_is_cancelled_stops_ringing_on_postgres() {
    cancel_while_it_rings(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_playing_call_that_is_cancelled_is_hung_up_and_was_talked() {
    let telephone = Telephone::that(Script::answer()).await;
    let stage = Stage::on(&telephone.wide_trunk("telephone", ""), "").await;
    let sid = stage.call("13800000001", TUNE).await;
    stage.is_in(&sid, CallState::Answered).await;
    let state = stage.server.store.cancel_call(&sid).await.unwrap();
    assert_eq!(state, Some(CallState::Answered));
    let report = stage.report_of(&sid).await;
    assert_eq!(field(&report, "state"), "0");
    let heard = telephone.has_heard(&sid).await;
    assert_eq!(heard.hung_up_by, Some(Side::Them));
    assert_cut_short(&heard);
    let line = stage.bill_line(&sid).await;
    assert_eq!(line.outcome, "talked");
    assert!(line.seconds >= 1, "{line:?}");
}

async fn suspend_an_account(database: &str) {
    let stage = Stage::on(WAITING_TRUNK, database).await;
    let mut other = stage::Customer::another(&stage, 1, |_| {}).await;
    let first = stage.call("13800000001", HELLO).await;
    let second = stage.call("13800000002", HELLO).await;
    let others = other.call("13800000003", HELLO).await;
    let change = AccountChange {
        state: Some(AccountState::Suspended),
        ..AccountChange::default()
    };
    stage.server.change_account(change).await;
    for sid in [&first, &second] {
        let report = stage.report_of(sid).await;
        assert_eq!(
            (field(&report, "state"), field(&report, "duration")),
            ("1", "0")
        );
        assert_eq!(stage.outcome(sid).await, Some(Outcome::Cancelled));
        assert_eq!(stage.record(sid).await.tries, 0);
    }
    assert_eq!(stage.record(&others).await.state, CallState::Queued);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_waiting_calls_of_a_suspended_account_end() {
    suspend_an_account("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_waiting_calls_of_a_suspended_account_end_on_postgres() {
    suspend_an_account(&on_postgres().await).await;
}

/// The next number would be called at once.
async fn suspend_an_account_with_a_notice(database: &str) {
    let telephone = Telephone::that(Script::answer()).await;
    let stage = Stage::on(&telephone.wide_trunk("telephone", ""), database).await;
    let fields = "\"mediaTxt\":\"x\",\"confirmDtmf\":\"1\",\"waitDtmfTime\":\"1\",\"backupTo\":\"13800000002;13800000003\"";
    let sid = stage.call("13800000001", fields).await;
    stage.is_in(&sid, CallState::Answered).await;
    let change = AccountChange {
        state: Some(AccountState::Suspended),
        ..AccountChange::default()
    };
    stage.server.change_account(change).await;
    let report = stage.report_of(&sid).await;
    assert_eq!(field(&report, "attempts"), "1", "{report}");
    assert_eq!(field(&report, "ended"), "cancelled", "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_of_a_suspended_account_calls_nobody_else() {
    suspend_an_account_with_a_notice("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_of_a_suspended_account_calls_nobody_else_on_postgres() {
    suspend_an_account_with_a_notice(&on_postgres().await).await;
}

async fn suspend_an_account_that_talks(database: &str) {
    let telephone = Telephone::that(Script::answer()).await;
    let stage = Stage::on(&telephone.wide_trunk("telephone", ""), database).await;
    let mut other = stage::Customer::another(&stage, 1, |_| {}).await;
    let talks = stage.call("13800000001", TUNE).await;
    let others = other.call("13800000002", TUNE).await;
    stage.is_in(&talks, CallState::Answered).await;
    stage.is_in(&others, CallState::Answered).await;
    let change = AccountChange {
        state: Some(AccountState::Suspended),
        ..AccountChange::default()
    };
    stage.server.change_account(change).await;
    let store = &stage.server.store;
    let account = SID.parse().unwrap();
    assert_eq!(store.cancel_calls_of(&account).await.unwrap(), 1);
    assert_eq!(store.cancel_calls_of(&account).await.unwrap(), 0);
    let report = stage.report_of(&talks).await;
    assert_eq!(field(&report, "state"), "0");
    let heard = telephone.has_heard(&talks).await;
    assert_eq!(heard.hung_up_by, Some(Side::Them));
    assert_cut_short(&heard);
    assert_eq!(stage.bill_line(&talks).await.outcome, "talked");
    // The other customer's call is heard to its end.
    let heard = telephone.has_heard(&others).await;
    assert!(heard.sound().len() >= tune().len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_talks_of_a_suspended_account_end_where_the_operator_says_so() {
    suspend_an_account_that_talks("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_talks_of_a_suspended_account_end_where_the_operator_says_so_on_postgres() {
    suspend_an_account_that_talks(&on_postgres().await).await;
}

async fn bar_a_number_whose_call_waits(database: &str) {
    let stage = Stage::prepared(database, async |store, clock| {
        let stop = store.set_switch(STOP_ALL, Some("on"), clock.now());
        stop.await.unwrap();
    })
    .await;
    let (store, now) = (&stage.server.store, stage.server.clock.now());
    let barred = stage.call("13800000001", HELLO).await;
    let other = stage.call("13800000011", HELLO).await;
    assert!(store.bar_number("8613800000001", true, now).await.unwrap());
    eventually("the server knows of it", async || {
        let again = stage
            .server
            .call_json("\"to\":\"13800000001\",\"mediaTxt\":\"x\"");
        again.await.contains("108035")
    })
    .await;
    store.set_switch(STOP_ALL, None, now).await.unwrap();
    let report = stage.report_of(&barred).await;
    assert_eq!(field(&report, "state"), "1");
    let record = stage.record(&barred).await;
    assert_eq!(
        (record.outcome, record.tries),
        (Some(Outcome::Cancelled), 0)
    );
    let reason = record.reason.unwrap_or_default();
    assert!(reason.contains("barred while the call waited"), "{reason}");
    // The other number is called.
    assert_eq!(field(&stage.report_of(&other).await, "state"), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_barred_while_its_call_waits_is_not_dialled() {
    bar_a_number_whose_call_waits("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_barred_while_its_call_waits_is_not_dialled_on_postgres() {
    bar_a_number_whose_call_waits(&on_postgres().await).await;
}

/// The real program beside a telephone, told to stop while it is at work.
struct Shift {
    telephone: Telephone,
    receiver: Receiver,
    installation: Installation,
}

impl Shift {
    async fn new(stop_seconds: u32) -> Self {
        let telephone = Telephone::start(Script::of_number).await;
        let more = format!("[dispatch]\nstop_seconds = {stop_seconds}");
        let settings = stage::settings(&more, &telephone.wide_trunk("telephone", ""));
        Self {
            installation: Installation::with_settings(None, &settings).await,
            receiver: Receiver::start(vec![ok()]).await,
            telephone,
        }
    }

    async fn call(&self, caller: &mut Caller, number: &str, prompt: &str) -> CallSid {
        let url = self.receiver.url();
        let fields = format!("\"to\":\"{number}\",\"respUrl\":\"{url}\",{prompt}");
        caller.place(&fields).await.unwrap().parse().unwrap()
    }

    async fn has_come_to(&self, sid: &CallSid, state: CallState) {
        let store = self
            .installation
            .database
            .open(&Supervisor::new())
            .await
            .unwrap();
        eventually(&format!("{state:?}"), async || {
            stage::record(&*store, sid).await.state == state
        })
        .await;
        store.close().await;
    }
}

fn tell_to_stop(server: &ChildServer) {
    let id = server.process.id().unwrap().cast_signed();
    kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_lets_calls_finish_hangs_up_the_last_and_leaves_the_rest_queued() {
    let shift = Shift::new(11).await;
    let mut server = shift.installation.start().await;
    let mut caller = Caller::connect(&server.client).await.unwrap();
    let playing = shift.call(&mut caller, "13800000001", TUNE).await;
    let ringing = shift.call(&mut caller, "13800000003", HELLO).await;
    shift.has_come_to(&playing, CallState::Answered).await;
    shift.has_come_to(&ringing, CallState::Ringing).await;
    // The same callee again: it waits for the one that rings.
    let waiting = shift.call(&mut caller, "13800000003", HELLO).await;
    drop(caller);
    tell_to_stop(&server);
    eventually("nothing new is accepted", async || {
        server.client.connect().await.is_err()
    })
    .await;
    // The message is played to its end.
    let heard = shift.telephone.has_heard(&playing).await;
    let (tune, sound) = (tune(), heard.sound());
    assert!(sound.len() >= 4000 + tune.len(), "{}", sound.len());
    assert_eq!(&sound[4000..][..tune.len()], &tune[..]);
    // The one that nobody answers is given up when its time is over.
    assert!(!shift.telephone.has_heard(&ringing).await.answered);
    let status = tokio::time::timeout(PATIENCE, server.process.wait())
        .await
        .expect("it stops")
        .unwrap();
    assert!(status.success(), "{status}");
    shift.has_come_to(&playing, CallState::Ended).await;
    shift.has_come_to(&ringing, CallState::Ended).await;
    shift.has_come_to(&waiting, CallState::Queued).await;
    assert_eq!(shift.telephone.dialled().len(), 2);

    // The next life goes on where this one stopped, and nothing is reported twice.
    let next = shift.installation.start().await;
    shift.has_come_to(&waiting, CallState::Ringing).await;
    for (sid, state) in [(&playing, "0"), (&ringing, "1")] {
        let report = stage::report_of(&shift.receiver, sid).await;
        assert_eq!(field(&report, "state"), state);
    }
    assert_eq!(shift.receiver.received().len(), 2);
    assert_eq!(shift.telephone.dialled().len(), 3);
    drop(next);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_not_wait_hangs_up_what_is_playing() {
    let shift = Shift::new(0).await;
    let mut server = shift.installation.start().await;
    let mut caller = Caller::connect(&server.client).await.unwrap();
    let playing = shift.call(&mut caller, "13800000001", TUNE).await;
    shift.has_come_to(&playing, CallState::Answered).await;
    drop(caller);
    tell_to_stop(&server);
    let heard = shift.telephone.has_heard(&playing).await;
    assert_eq!(heard.hung_up_by, Some(Side::Them));
    assert_cut_short(&heard);
    let status = tokio::time::timeout(PATIENCE, server.process.wait())
        .await
        .expect("it stops")
        .unwrap();
    assert!(status.success(), "{status}");
    shift.has_come_to(&playing, CallState::Ended).await;
    let store = shift
        .installation
        .database
        .open(&Supervisor::new())
        .await
        .unwrap();
    let record = stage::record(&*store, &playing).await;
    assert_eq!(record.outcome, Some(Outcome::Talked));
    store.close().await;
}
