//! A database that goes away: nobody is promised what is not durable, and nothing durable is denied.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;
use phone::test_phone::Script;
use tokio_postgres::NoTls;

use crate::support::child::{Caller, Installation};
use crate::support::proxy::{Fault, Proxy};
use crate::support::telephone::Telephone;
use crate::support::{TestServer, call_sid, eventually, postgres, status_code};

async fn on_postgres() -> (TestServer, String) {
    let database = postgres::empty_database().await;
    (
        TestServer::start_with(&format!("database = {database:?}\n")).await,
        database,
    )
}

/// A connection to the cluster beside the test's database, for doing harm from there.
async fn administrator(database: &str) -> (tokio_postgres::Client, String) {
    let mut url = url::Url::parse(database).unwrap();
    let name = url.path().trim_start_matches('/').to_owned();
    url.set_path("postgres");
    let (client, connection) = tokio_postgres::connect(url.as_str(), NoTls).await.unwrap();
    tokio::spawn(connection);
    (client, name)
}

#[tokio::test]
async fn a_database_that_is_gone_is_told_as_unknown_error_and_nothing_is_accepted() {
    let (server, database) = on_postgres().await;
    let call = "<to>13800000000</to><mediaTxt>x</mediaTxt>";
    call_sid(&server.call_xml(call).await);
    let (administrator, name) = administrator(&database).await;
    administrator
        .batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)"))
        .await
        .unwrap();
    assert_eq!(status_code(&server.call_xml(call).await), "111000");
    eventually("the readiness probe says so", async || {
        server
            .client()
            .connect()
            .await
            .unwrap()
            .get("/readyz")
            .await
            .unwrap()
            .0
            == 503
    })
    .await;
    assert_eq!(
        server
            .client()
            .connect()
            .await
            .unwrap()
            .get("/healthz")
            .await
            .unwrap()
            .0,
        200
    );
}

#[tokio::test]
async fn connections_cut_during_commits_cost_no_call_and_double_none() {
    let (server, database) = on_postgres().await;
    let (administrator, name) = administrator(&database).await;
    let done = Arc::new(AtomicBool::new(false));
    let cut = Arc::new(tokio::sync::Notify::new());
    let cutting = tokio::spawn({
        let (done, due) = (Arc::clone(&done), Arc::clone(&cut));
        async move {
            let mut cuts = 0_i64;
            // By the number of requests, not by the clock: then a busy machine does not see more of them in a request's time.
            while !done.load(Ordering::Relaxed) {
                due.notified().await;
                let rows = administrator
                    .query(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1",
                        &[&name],
                    )
                    .await
                    .unwrap();
                cuts += i64::try_from(rows.len()).unwrap();
            }
            cuts
        }
    });
    let mut accepted = std::collections::HashSet::new();
    let mut connection = server.client().connect().await.unwrap();
    let body = format!(
        "{{\"appId\":\"{}\",\"to\":\"13800000000\",\"mediaTxt\":\"x\"}}",
        crate::support::APP
    );
    for number in 0..150 {
        if number % 10 == 5 {
            cut.notify_one();
        }
        let answer = connection
            .operation(
                &server.credentials(),
                &server.sign(),
                "Calls/LandingCalls",
                "application/json",
                Some(body.clone()),
            )
            .await
            .unwrap();
        // The account may have to be read anew at a bad moment; what matters is that "accepted" is true.
        if status_code(&answer) == "000000" {
            accepted.insert(call_sid(&answer));
        }
    }
    done.store(true, Ordering::Relaxed);
    cut.notify_one();
    assert!(cutting.await.unwrap() > 3, "connections were really cut");
    assert!(
        accepted.len() > 100,
        "{} of 150 were accepted",
        accepted.len()
    );
    let (client, connection) = tokio_postgres::connect(&database, NoTls).await.unwrap();
    tokio::spawn(connection);
    let rows = client
        .query(
            "SELECT call_sid FROM calls JOIN call_queue USING (call_sid)",
            &[],
        )
        .await
        .unwrap();
    let stored: std::collections::HashSet<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(stored.len(), rows.len());
    assert!(accepted.is_subset(&stored), "an accepted call is missing");
}

/// A server whose calls lead to its own telephone, with leases that are soon over.
async fn calling() -> (TestServer, String) {
    let database = postgres::empty_database().await;
    let settings = format!(
        "database = {database:?}\n[dispatch]\nlease_seconds = 2\n[[trunk]]\nname = \"loopback\"\nloopback = true\nchannels = 50\ncalls_per_second = 200\nprefixes = [\"\"]\n"
    );
    (TestServer::start_with(&settings).await, database)
}

async fn outcomes(server: &TestServer, sids: &[CallSid]) -> Vec<Option<Outcome>> {
    let mut outcomes = Vec::new();
    for sid in sids {
        let record = server.store.call_record(sid).await.unwrap().unwrap();
        outcomes.push(record.outcome);
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_go_on_while_the_database_is_away_for_longer_than_a_lease() {
    let (server, database) = calling().await;
    let (administrator, name) = administrator(&database).await;
    let mut sids: Vec<CallSid> = Vec::new();
    for number in 0..5 {
        let fields = format!(
            "<to>1380000020{number}</to><mediaName>ccp_marketingcall.wav</mediaName><playTimes>2</playTimes>"
        );
        sids.push(call_sid(&server.call_xml(&fields).await).parse().unwrap());
    }
    eventually("everybody listens", async || {
        let mut talking = 0;
        for sid in &sids {
            let record = server.store.call_record(sid).await.unwrap().unwrap();
            talking += u32::from(record.state == CallState::Answered);
        }
        talking == 5
    })
    .await;
    let away = format!(
        "ALTER DATABASE {name} ALLOW_CONNECTIONS false; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    );
    administrator.batch_execute(&away).await.unwrap();
    let since = std::time::Instant::now();
    eventually("longer than a lease", async || {
        since.elapsed() > Duration::from_millis(2500)
    })
    .await;
    let back = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true");
    administrator.batch_execute(&back).await.unwrap();
    eventually("all have ended", async || {
        outcomes(&server, &sids).await.iter().all(Option::is_some)
    })
    .await;
    assert_eq!(
        outcomes(&server, &sids).await,
        [Some(Outcome::Talked); 5],
        "nobody was interrupted"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_ends_though_connections_are_cut_all_the_time() {
    let (server, database) = calling().await;
    let (administrator, name) = administrator(&database).await;
    let mut sids: Vec<CallSid> = Vec::new();
    for number in 0..40 {
        // Half of them are busy, the others hang up after a second.
        let last = if number % 2 == 0 { 2 } else { 5 };
        let fields =
            format!("<to>138{number:04}000{last}</to><mediaName>ccp_marketingcall.wav</mediaName>");
        // A connection that was cut may be found out by this very request: then nothing was accepted, and it is tried again.
        let mut answer = String::new();
        eventually("it is accepted", async || {
            answer = server.call_xml(&fields).await;
            status_code(&answer) == "000000"
        })
        .await;
        sids.push(call_sid(&answer).parse().unwrap());
        if number % 3 == 0 {
            let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1";
            administrator.query(cut, &[&name]).await.unwrap();
        }
    }
    eventually("all have ended", async || {
        let mut left = 0;
        for sid in &sids {
            match server.store.call_record(sid).await {
                Ok(Some(record)) => left += usize::from(record.outcome.is_none()),
                _ => return false,
            }
        }
        left == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_the_database_does_not_take_keeps_no_other_call() {
    let database = postgres::empty_database().await;
    let settings = format!("database = {database:?}\n[dispatch]\nlease_seconds = 2\n");
    let server = TestServer::start_with(&settings).await;
    let place = async |number: &str| -> CallSid {
        let fields = format!("<to>{number}</to><mediaTxt>x</mediaTxt>");
        call_sid(&server.call_xml(&fields).await).parse().unwrap()
    };
    let refused = place("13800000001").await;
    let client = postgres::connect(&database).await;
    let refuse = format!(
        "CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$ LANGUAGE plpgsql; \
         CREATE TRIGGER refused BEFORE UPDATE ON calls FOR EACH ROW WHEN (NEW.call_sid = '{refused}') EXECUTE FUNCTION refuse()"
    );
    client.batch_execute(&refuse).await.unwrap();
    server.store.cancel_call(&refused).await.unwrap();
    let has_ended = async |sid: &CallSid| {
        let record = server.store.call_record(sid).await.unwrap().unwrap();
        record.outcome == Some(Outcome::Cancelled)
    };
    // One after the other, so that each is met by a server that has tried the refused one before.
    for number in ["13800000002", "13800000003"] {
        let other = place(number).await;
        server.store.cancel_call(&other).await.unwrap();
        eventually("the other one has ended", async || has_ended(&other).await).await;
    }
    assert!(!has_ended(&refused).await);
    let allow = "DROP TRIGGER refused ON calls";
    client.batch_execute(allow).await.unwrap();
    eventually("it is tried again", async || has_ended(&refused).await).await;
}

/// Until the answer is written, another process could only cancel the call, which ends no call that is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_the_database_does_not_take_is_written_while_the_call_lasts() {
    let (server, database) = calling().await;
    let client = postgres::connect(&database).await;
    // A sequence counts what is refused too.
    let refuse_twice = "CREATE SEQUENCE answers; \
         CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN \
           IF nextval('answers') <= 2 THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$ LANGUAGE plpgsql; \
         CREATE TRIGGER refused BEFORE UPDATE OF answered_at ON call_queue FOR EACH ROW \
           WHEN (NEW.answered_at IS NOT NULL) EXECUTE FUNCTION refuse()";
    client.batch_execute(refuse_twice).await.unwrap();
    let text = "long enough ".repeat(30);
    let fields = format!("<to>13800000000</to><mediaTxt>{text}</mediaTxt>");
    let sid: CallSid = call_sid(&server.call_xml(&fields).await).parse().unwrap();
    let account = server.credentials().sid;
    eventually("the answer is written", async || {
        let progress = server.store.call_progress(&account, &sid).await.unwrap();
        let state = progress.unwrap().state;
        assert_ne!(state, CallState::Ended, "the call lasts");
        state == CallState::Answered
    })
    .await;
    let tries = client.query_one("SELECT last_value FROM answers", &[]);
    assert_eq!(tries.await.unwrap().get::<_, i64>(0), 3);
    server.store.cancel_call(&sid).await.unwrap();
}

/// Nobody who has picked up waits for a database, and nobody stays on a line that no process knows of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leg_that_was_answered_while_the_database_was_silent_is_hung_up_by_the_next_life() {
    answered_in_silence(None).await;
}

/// The answer does not wait for the commit of the ringing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leg_that_rang_and_was_answered_while_the_database_was_silent_is_hung_up_by_the_next_life()
 {
    answered_in_silence(Some(Duration::from_millis(500))).await;
}

async fn answered_in_silence(ring: Option<Duration>) {
    let silence = Duration::from_secs(1);
    let telephone = Telephone::that(Script {
        ring,
        ..Script::answer_after(silence)
    })
    .await;
    let settings = format!(
        "[dispatch]\nlead_in_ms = 100\n{}",
        telephone.wide_trunk("telephone", "")
    );
    let database = postgres::empty_database().await;
    let proxy = Proxy::before(&database).await;
    let installation = Installation::with_settings(Some(proxy.url(&database)), &settings).await;
    let mut server = installation.start().await;
    let mut caller = Caller::connect(&server.client).await.unwrap();
    let long = "\"to\":\"13800000001\",\"mediaName\":\"ccp_marketingcall.wav\",\"playTimes\":\"3\"";
    caller.place(long).await.unwrap();
    eventually("it is dialled", async || !telephone.dialled().is_empty()).await;
    proxy.all(Fault::Stall);
    eventually("it is answered, and the answer is noted", async || {
        let notes = std::fs::read(installation.folder.path().join("answers"));
        telephone.open() == (1, 0) && notes.is_ok_and(|notes| notes[..4] != [0; 4])
    })
    .await;
    server.process.kill().await.unwrap();
    assert_eq!(telephone.open().0, 1, "it is still up");
    proxy.all(Fault::Pass);
    let _server = installation.start().await;
    eventually("it is hung up", async || telephone.open().0 == 0).await;
}
