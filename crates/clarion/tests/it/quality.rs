//! A machine that does not keep up with its calls takes no more of them.

use std::time::Duration;

use phone::test_phone::Script;
use rustix::process::{Pid, Signal, kill_process};
use tokio::task::JoinHandle;

use crate::support::child::{Caller, ChildServer, Installation};
use crate::support::eventually;
use crate::support::telephone::Telephone;

const CALLS: usize = 10;
/// For longer than a packet may be late, again and again: nearly every packet of that time is.
const STANDS_STILL: Duration = Duration::from_millis(80);
const GOES_ON: Duration = Duration::from_millis(20);

/// As on a machine that gives the process too little time, until it is aborted.
fn starve(server: &ChildServer) -> JoinHandle<()> {
    let id = server.process.id().unwrap().cast_signed();
    let pid = Pid::from_raw(id).unwrap();
    tokio::spawn(async move {
        loop {
            kill_process(pid, Signal::STOP).unwrap();
            tokio::time::sleep(STANDS_STILL).await;
            kill_process(pid, Signal::CONT).unwrap();
            tokio::time::sleep(GOES_ON).await;
        }
    })
}

async fn readiness(server: &ChildServer) -> (u16, String) {
    let mut connection = server.client.connect().await.unwrap();
    connection.get("/readyz").await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_packets_leave_late_claims_no_calls_until_they_leave_in_time() {
    let telephone = Telephone::that(Script::answer()).await;
    let settings = telephone.wide_trunk("telephone", "");
    let installation = Installation::with_settings(None, &settings).await;
    let server = installation.start().await;
    let mut caller = Caller::connect(&server.client).await.unwrap();
    // They are over before our patience is, whatever the machine does then.
    let text = "a message that goes on and on ".repeat(20);
    for number in 0..CALLS {
        let fields = format!("\"to\":\"1380000000{number}\",\"mediaTxt\":\"{text}\"");
        caller.place(&fields).await.unwrap();
    }
    eventually("all of them play", async || {
        server.metric("clarion_calls{state=\"answered\"}").await == Some(CALLS as f64)
    })
    .await;
    let starved = starve(&server);
    eventually("the node says that it does not keep up", async || {
        let (status, body) = readiness(&server).await;
        status == 503 && body.contains("of the packets leave more than 20 ms late")
    })
    .await;
    let held = "clarion_claims_held{reason=\"quality\"}";
    assert_eq!(server.metric(held).await, Some(1.0));
    let dialled = telephone.dialled().len();
    caller
        .place("\"to\":\"13811111111\",\"mediaTxt\":\"x\"")
        .await
        .unwrap();
    eventually("it waits", async || {
        server.metric("clarion_queue_calls").await == Some(1.0)
    })
    .await;
    assert_eq!(telephone.dialled().len(), dialled, "nobody is dialled");
    starved.abort();
    let _ = starved.await;
    let id = server.process.id().unwrap().cast_signed();
    kill_process(Pid::from_raw(id).unwrap(), Signal::CONT).unwrap();
    eventually("it is dialled", async || {
        telephone.dialled().len() == dialled + 1
    })
    .await;
    // A busy machine may be late again; when the calls are over nothing is.
    eventually("it is ready", async || readiness(&server).await.0 == 200).await;
}
