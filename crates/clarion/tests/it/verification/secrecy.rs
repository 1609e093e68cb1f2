//! The code is nowhere but in the record of a call that has not ended, and on the line.

use std::path::Path;

use clarion::domain::call_state::CallState;

use super::verify;
use crate::support::child::{Caller, Installation};
use crate::support::receiver::{Receiver, ok};
use crate::support::{APP, call_sid, eventually};

/// Digits that nothing else on the disk has.
const CODE: &str = "Q7X4K9Z2";

/// Every file below a folder that contains the code.
fn files_with_the_code(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with_the_code(&path));
            continue;
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        let spellings = [CODE.to_owned(), CODE.to_lowercase()];
        let has = |code: &String| {
            bytes
                .windows(code.len())
                .any(|part| part == code.as_bytes())
        };
        if spellings.iter().any(has) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// With a voice behind HTTP, a log in every detail, a SIP trace and a cache on disk. The row is longer than a page.
async fn the_code_is_in_no_log_trace_cache_or_request_to_a_voice(postgres: Option<String>) {
    let (voice, receiver) = (
        Receiver::start(vec![ok()]).await,
        Receiver::start(vec![ok()]).await,
    );
    let settings = format!(
        "[speech]\nurl = {:?}\n[callbacks]\nallowed_networks = [\"127.0.0.0/8\"]\n[media]\nbind = \"127.0.0.1\"\n\
         [[trunk]]\nname = \"loopback\"\nloopback = true\nchannels = 5\ncalls_per_second = 5\nprefixes = [\"\"]\n",
        voice.url()
    );
    let installation = Installation::with_settings(postgres, &settings).await;
    let log = installation.folder.path().join("log");
    let file = std::fs::File::create(&log).unwrap();
    let filter = [
        (
            "CLARION_LOG__FILTER",
            "trace,rsipstack=trace,tokio_postgres=trace",
        ),
        ("CLARION_LOG__SIP_TRACE_MB", "4"),
    ];
    let mut server = installation
        .start_by(|serve| serve.stderr(file).envs(filter))
        .await;
    let body = format!(
        "{{\"appId\":\"{APP}\",\"to\":\"13800000001\",\"verifyCode\":\"{}\",\"respUrl\":\"{}\",\"requestId\":\"a\",\"userData\":\"{}\"}}",
        CODE.to_lowercase(),
        receiver.url(),
        "x".repeat(4096),
    );
    let mut caller = Caller::connect(&server.client).await.unwrap();
    let answer = caller.operation("Calls/VoiceVerify", &body).await.unwrap();
    let sid = call_sid(&answer);
    let reports = receiver.has_received(1).await;
    assert!(reports[0].body.contains(&sid), "{}", reports[0].body);
    assert!(!reports[0].body.contains(CODE), "{}", reports[0].body);
    // Not even the sentence before the code, which is no secret.
    let asked = voice.received();
    assert!(asked.is_empty(), "{asked:?}");
    let shown = installation.says(&["call", "show", &sid, "--json"]).await;
    assert!(shown.contains(&sid) && !shown.contains(CODE), "{shown}");
    // A server that stops in good order folds the log of the database into it.
    let process = server.process.id().unwrap();
    let process = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert!(server.process.wait().await.unwrap().success());
    assert!(std::fs::read_to_string(&log).unwrap().contains(&sid));
    assert_eq!(
        files_with_the_code(installation.folder.path()),
        Vec::<String>::new()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_code_is_nowhere_on_sqlite() {
    the_code_is_in_no_log_trace_cache_or_request_to_a_voice(None).await;
}

/// Where the database keeps it is not ours to look at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_code_is_nowhere_beside_postgresql() {
    let database = crate::support::postgres::empty_database().await;
    the_code_is_in_no_log_trace_cache_or_request_to_a_voice(Some(database)).await;
}

/// A code that is still to be called is in the database: it must survive a crash.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_that_waits_is_kept() {
    let server = crate::support::TestServer::start().await;
    let answer = verify(
        &server,
        &format!("\"to\":\"13800000001\",\"verifyCode\":\"{CODE}\""),
    )
    .await;
    let sid = call_sid(&answer).parse().unwrap();
    eventually("it waits", async || {
        let record = server.store.call_record(&sid).await.unwrap().unwrap();
        record.state == CallState::Queued
    })
    .await;
    assert!(!files_with_the_code(&server.folder.path().join("data")).is_empty());
}
