//! The do-not-call list of an account, through the front door: what is on it is neither accepted nor dialled.

use clarion::dispatch::STOP_ALL;
use clarion::domain::do_not_call::DoNotCallSource;
use clarion::domain::outcome::Outcome;
use clarion::store::Store;

use crate::calls::stage::{Customer, Stage, field, on_postgres};
use crate::support::{APP, SID, TestServer, eventually, status_code};

const HELLO: &str = "\"mediaTxt\":\"hello\"";

async fn put_on_it(store: &dyn Store, numbers: &[&str]) {
    let numbers = numbers.iter().map(ToString::to_string).collect();
    let (account, source) = (SID.parse().unwrap(), DoNotCallSource::Operator);
    let added = store.add_do_not_call(&account, numbers, source, jiff::Timestamp::UNIX_EPOCH);
    added.await.unwrap();
}

/// What an account is allowed to do is remembered for a moment.
async fn is_refused(server: &TestServer, number: &str) {
    eventually("the number is refused", async || {
        let fields = format!("\"to\":\"{number}\",{HELLO}");
        status_code(&server.call_json(&fields).await) == "108035"
    })
    .await;
}

async fn is_not_accepted(database: &str) {
    let stage = Stage::new(database).await;
    let (server, store) = (&stage.server, &*stage.server.store);
    let fields = |to: &str, more: &str| format!("\"to\":\"{to}\",{HELLO}{more}");
    let accepted = server.call_json(&fields("13800000001", "")).await;
    assert_eq!(status_code(&accepted), "000000");
    put_on_it(store, &["8613800000001", "8613800000002"]).await;
    is_refused(server, "13800000001").await;
    let alone = "to: this number is on the do-not-call list of the account";
    let all = "to: this number and all of backupTo are on the do-not-call list";
    for (to, more, sentence) in [
        ("+8613800000001", "", alone),
        ("13800000001-77", "", alone),
        ("13800000001", ",\"redialTimes\":\"3\"", alone),
        ("13800000001", ",\"backupTo\":\"13800000002\"", all),
    ] {
        let answer = server.call_json(&fields(to, more)).await;
        assert_eq!(status_code(&answer), "108035", "{to}{more}: {answer}");
        assert!(answer.contains(sentence), "{to}{more}: {answer}");
    }
    let code = format!("{{\"appId\":\"{APP}\",\"to\":\"13800000001\",\"verifyCode\":\"123456\"}}");
    let answer = server.ask("Calls/VoiceVerify", "json", Some(&code)).await;
    assert_eq!(status_code(&answer), "108035", "{answer}");
    // It is the list of this account alone.
    let mut other = Customer::another(&stage, 7, |_| {}).await;
    let sid = other.call("13800000001", HELLO).await;
    assert_eq!(field(&stage.report_of(&sid).await, "state"), "0");
    // Whoever is taken off it may be called again.
    let account = SID.parse().unwrap();
    let removed = store.remove_do_not_call(&account, "8613800000001");
    assert!(removed.await.unwrap());
    let again = server.call_json(&fields("13800000001", "")).await;
    assert_eq!(status_code(&again), "000000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_on_the_list_is_not_accepted() {
    is_not_accepted("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_on_the_list_is_not_accepted_on_postgres() {
    is_not_accepted(&on_postgres().await).await;
}

async fn is_added_while_its_call_waits(database: &str) {
    let stage = Stage::prepared(database, async |store, clock| {
        let stop = store.set_switch(STOP_ALL, Some("on"), clock.now());
        stop.await.unwrap();
    })
    .await;
    let (store, now) = (&*stage.server.store, stage.server.clock.now());
    let simple = stage.call("13800000001", HELLO).await;
    let backed = format!("{HELLO},\"backupTo\":\"13800010001;13800000005\"");
    let notice = stage.call("13800000001", &backed).await;
    let other = stage.call("13800000011", HELLO).await;
    put_on_it(store, &["8613800000001", "8613800010001"]).await;
    is_refused(&stage.server, "13800000001").await;
    store.set_switch(STOP_ALL, None, now).await.unwrap();
    assert_eq!(field(&stage.report_of(&simple).await, "state"), "1");
    let record = stage.record(&simple).await;
    assert_eq!(
        (record.outcome, record.tries),
        (Some(Outcome::Cancelled), 0)
    );
    let reason = record.reason.unwrap_or_default();
    assert!(reason.contains("do-not-call list"), "{reason}");
    // A notice goes on with the number that is not on the list.
    let report = stage.report_of(&notice).await;
    let told = ["attempts", "result", "ended"].map(|name| field(&report, name));
    assert_eq!(told, ["1", "talked", "talked"]);
    let history = store.call_history(&notice).await.unwrap();
    assert_eq!(history.attempts[0].to.digits(), "8613800000005");
    assert_eq!(field(&stage.report_of(&other).await, "state"), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_added_while_its_call_waits_is_not_dialled() {
    is_added_while_its_call_waits("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_added_while_its_call_waits_is_not_dialled_on_postgres() {
    is_added_while_its_call_waits(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_on_the_list_makes_way_for_the_others_of_its_request() {
    let stage = Stage::new("[dispatch]\nring_seconds = 1\n").await;
    put_on_it(&*stage.server.store, &["8613800000001", "8613800010001"]).await;
    is_refused(&stage.server, "13800000001").await;
    for (to, backups) in [
        ("13800000001", "13800000005"),
        ("13800000002", "13800010001;13800000005"),
    ] {
        let fields = format!("{HELLO},\"backupTo\":\"{backups}\"");
        let sid = stage.call(to, &fields).await;
        assert_eq!(field(&stage.report_of(&sid).await, "ended"), "talked");
        let history = stage.server.store.call_history(&sid).await.unwrap();
        let last = history.attempts.last().unwrap();
        assert_eq!(last.to.digits(), "8613800000005");
        let was_called = |digits: &str| {
            let mut attempts = history.attempts.iter();
            attempts.any(|attempt| attempt.to.digits() == digits)
        };
        assert!(!was_called("8613800000001") && !was_called("8613800010001"));
    }
}
