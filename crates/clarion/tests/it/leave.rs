//! An INVITE leaves only by leave: what it takes to end its leg is durable before, and the lease still holds.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clarion::domain::call::CallSid;
use clarion::domain::call_record::CallFilter;
use clarion::domain::leg::HungUpBy;
use clarion::domain::outcome::Outcome;
use clarion::store::Database;
use phone::test_phone::Script;
use rustix::process::{Pid, Signal, kill_process};
use supervisor::Supervisor;

use crate::calls::stage::record;
use crate::support::child::{Caller, ChildServer, Installation};
use crate::support::telephone::Telephone;
use crate::support::{eventually, eventually_within, execute, postgres};

const FIRST: &str = "13800000001";
const SECOND: &str = "13800000002";
/// Much longer than a lease, and much shorter than a telephone rings by itself.
const STOPS_WITHIN: Duration = Duration::from_secs(40);

/// The settings of a node; with no channels it takes over what others leave behind, and dials nothing.
fn settings(trunk: &str) -> String {
    format!("[dispatch]\nlease_seconds = 3\nring_seconds = 120\nlead_in_ms = 100\n{trunk}")
}

fn pid(server: &ChildServer) -> Pid {
    let id = server.process.id().expect("it is running");
    Pid::from_raw(id.cast_signed()).unwrap()
}

/// Stops all threads of the process, and waits until they stand still.
async fn stop(server: &ChildServer) {
    let pid = pid(server);
    kill_process(pid, Signal::STOP).unwrap();
    let threads = format!("/proc/{}/task", pid.as_raw_nonzero());
    let stands_still = |status: String| status.contains("State:\tT");
    eventually("the process stands still", async || {
        let mut threads = std::fs::read_dir(&threads).unwrap();
        threads.all(|thread| {
            let status = std::fs::read_to_string(thread.unwrap().path().join("status"));
            status.is_ok_and(stands_still)
        })
    })
    .await;
}

async fn try_to_place(server: &ChildServer, number: &str) -> anyhow::Result<String> {
    let mut caller = Caller::connect(&server.client).await?;
    let fields = format!("\"to\":\"{number}\",\"mediaTxt\":\"x\"");
    caller.place(&fields).await
}

async fn place(server: &ChildServer, number: &str) -> CallSid {
    let sid = try_to_place(server, number).await.unwrap();
    sid.parse().unwrap()
}

async fn is_interrupted(installation: &Installation, sid: &CallSid) {
    let store = installation
        .database
        .open(&Supervisor::new())
        .await
        .unwrap();
    eventually("the call was interrupted", async || {
        record(&*store, sid).await.outcome == Some(Outcome::Interrupted)
    })
    .await;
    // What was committed of its leg is all that is known.
    let legs = store.call_history(sid).await.unwrap().legs;
    let leg = &legs.last().expect("a leg").leg;
    assert_eq!((leg.trunk.as_str(), leg.sip_code), ("provider", None));
    assert_eq!(leg.hung_up_by, HungUpBy::Unknown, "{legs:?}");
    store.close().await;
}

async fn only_call(installation: &Installation) -> CallSid {
    let store = installation
        .database
        .open(&Supervisor::new())
        .await
        .unwrap();
    let filter = CallFilter {
        limit: 2,
        ..CallFilter::default()
    };
    let mut calls = store.list_calls(filter).await.unwrap().calls;
    store.close().await;
    assert_eq!(calls.len(), 1);
    calls.remove(0).sid
}

/// Commits that say that a call is dialled wait for a lock, which the test holds.
const DIALLING_WAITS: &str = "CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS \
       'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END'; \
     CREATE TRIGGER dialling_waits BEFORE UPDATE ON call_queue FOR EACH ROW WHEN (OLD.state = 1 AND NEW.state = 2) \
       EXECUTE FUNCTION wait_for_test()";
const WAITING: &str = "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database \
     WHERE locktype = 'advisory' AND classid = 0 AND objid = 7 AND NOT granted AND datname = current_database()";

/// The node is stopped while its commit is under way, and goes on when another node has ended the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stalls_for_longer_than_its_lease_does_not_dial() {
    let telephone = Telephone::that(Script::answer()).await;
    let url = postgres::empty_database().await;
    let dials = settings(&telephone.wide_trunk("provider", ""));
    let first = Installation::with_settings(Some(url.clone()), &dials).await;
    let second = first.another_node(&settings(&telephone.trunk("provider", "")));
    let database = postgres::connect(&url).await;
    database.batch_execute(DIALLING_WAITS).await.unwrap();
    let lock = database.query("SELECT pg_advisory_lock(7)", &[]);
    lock.await.unwrap();
    let mut stalled = first.start().await;
    let surviving = second.start().await;

    let sid = place(&stalled, FIRST).await;
    eventually("the commit waits", async || {
        let waiting = database.query_one(WAITING, &[]).await.unwrap();
        waiting.get::<_, i64>(0) == 1
    })
    .await;
    stop(&stalled).await;
    let unlock = database.query("SELECT pg_advisory_unlock(7)", &[]);
    unlock.await.unwrap();
    is_interrupted(&first, &sid).await;

    kill_process(pid(&stalled), Signal::CONT).unwrap();
    // It dials again, so it is awake, and has done what it was about to do.
    let awake = place(&surviving, SECOND).await;
    telephone.has_heard(&awake).await;
    kill_process(pid(&stalled), Signal::TERM).unwrap();
    stalled.process.wait().await.unwrap();
    let dialled: Vec<_> = telephone
        .dialled()
        .into_iter()
        .map(|call| call.number)
        .collect();
    assert!(
        !dialled.iter().any(|number| number.ends_with(FIRST)),
        "{dialled:?}"
    );
}

/// Nothing more is written about a call that is dialled and has not rung: what is needed must have been written before.
async fn nothing_more_is_written(installation: &Installation) {
    let refuse = match &installation.database {
        Database::Sqlite(_) => {
            "CREATE TRIGGER nothing_more BEFORE UPDATE ON call_queue WHEN OLD.state = 2 AND NEW.state = 2 AND OLD.node = NEW.node \
             BEGIN SELECT RAISE(ABORT, 'nothing more'); END"
        }
        Database::Postgres(_) => {
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''nothing more''; END'; \
             CREATE TRIGGER nothing_more BEFORE UPDATE OF dialog ON call_queue FOR EACH ROW \
               WHEN (OLD.state = 2 AND NEW.state = 2 AND OLD.node = NEW.node) EXECUTE FUNCTION refuse()"
        }
    };
    execute(&installation.database, refuse).await;
}

/// A telephone that kills its caller in the moment in which the INVITE arrives, and then rings.
async fn deadly_telephone() -> (Telephone, Arc<OnceLock<Pid>>) {
    let caller = Arc::new(OnceLock::new());
    let victim = Arc::clone(&caller);
    let telephone = Telephone::start(move |_| {
        kill_process(*victim.get().unwrap(), Signal::KILL).unwrap();
        Script::never_answer()
    })
    .await;
    (telephone, caller)
}

async fn stops_ringing(telephone: &Telephone, installation: &Installation) {
    let sid = only_call(installation).await;
    eventually_within(STOPS_WITHIN, "it stops ringing", async || {
        let heard = telephone.heard();
        heard
            .iter()
            .any(|call| call.call_id.starts_with(sid.as_str()))
    })
    .await;
    is_interrupted(installation, &sid).await;
    assert_eq!(telephone.dialled().len(), 1, "nobody twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_telephone_stops_ringing_when_its_caller_dies_right_after_the_invite_on_sqlite() {
    let (telephone, caller) = deadly_telephone().await;
    let dials = settings(&telephone.wide_trunk("provider", ""));
    let installation = Installation::with_settings(None, &dials).await;
    nothing_more_is_written(&installation).await;
    let mut dies = installation.start().await;
    caller.set(pid(&dies)).unwrap();
    // It may be dead before it has answered.
    let _ = try_to_place(&dies, FIRST).await;
    dies.process.wait().await.unwrap();
    let next_life = installation.start().await;
    stops_ringing(&telephone, &installation).await;
    drop(next_life);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_telephone_stops_ringing_when_its_caller_dies_right_after_the_invite_on_postgres() {
    let (telephone, caller) = deadly_telephone().await;
    let dials = settings(&telephone.wide_trunk("provider", ""));
    let first = Installation::with_settings(Some(postgres::empty_database().await), &dials).await;
    nothing_more_is_written(&first).await;
    let second = first.another_node(&settings(&telephone.trunk("provider", "")));
    let dies = first.start().await;
    let surviving = second.start().await;
    caller.set(pid(&dies)).unwrap();
    // It may be dead before it has answered.
    let _ = try_to_place(&dies, FIRST).await;
    stops_ringing(&telephone, &first).await;
    drop(surviving);
}
