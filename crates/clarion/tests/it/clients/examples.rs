//! The clients in `examples/clients`, each in its language as a user would write it: they place a call, wait for its end, and fetch the bill.

use std::path::{Path, PathBuf};
use std::process::Output;

use clarion::domain::account::AccountChange;
use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;
use jiff::SignedDuration;
use supervisor::Supervisor;
use tokio::process::Command;

use crate::support::bills::{money, record};
use crate::support::child::{ChildServer, Installation};
use crate::support::owed::now;
use crate::support::{APP, SID, TOKEN};

/// A telephone in the server, and yesterday's bill due since midnight.
const SETTINGS: &str = "[bills]\ngrace_seconds = 0\n[[trunk]]\nname = \"try\"\nloopback = true\nchannels = 10\ncalls_per_second = 10\nprefixes = [\"86\"]\n";

/// The real program, with one record on yesterday's bill.
async fn serve() -> (Installation, ChildServer) {
    let installation = Installation::with_settings(None, SETTINGS).await;
    let store = installation
        .database
        .open(&Supervisor::new())
        .await
        .unwrap();
    let permit = AccountChange {
        bill_download: Some(true),
        ..AccountChange::default()
    };
    let sid = SID.parse().unwrap();
    store.change_account(&sid, permit).await.unwrap();
    // Yesterday's, and today's in case that midnight passes before it is asked for.
    let brought = [24, 0].map(|hours| {
        let ended = now() - SignedDuration::from_hours(hours);
        record(&format!("sms-{hours}"), ended, money("0.05"))
    });
    let imported = store.import_records(brought.to_vec(), false).await.unwrap();
    assert_eq!(imported.added, 2, "{imported:?}");
    store.close().await;
    let server = installation.start().await;
    (installation, server)
}

async fn run(server: &ChildServer, folder: &Path, program: &[&str], number: &str) -> Output {
    let mut command = command(server, folder, program, number);
    command.env("CA_FILE", &server.door.ca);
    output(command).await
}

async fn output(mut command: Command) -> Output {
    let output = command.output().await;
    output.unwrap_or_else(|error| panic!("{command:?}: {error}; run `make setup`"))
}

/// Without the CA file, so that the server is not trusted.
fn command(server: &ChildServer, folder: &Path, program: &[&str], number: &str) -> Command {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/clients");
    let (interpreter, file) = (program[0], examples.join(program[1]));
    let port = server.door.address.port();
    let mut command = Command::new(interpreter);
    command
        .arg(file)
        .arg(number)
        .current_dir(folder)
        .env("BASE_URL", format!("https://localhost:{port}"))
        .env("ACCOUNT_SID", SID)
        .env("AUTH_TOKEN", TOKEN)
        .env("APP_ID", APP);
    command
}

/// What a client printed: `callSid …`, `state … duration …`, `bill …`.
fn printed(output: &Output) -> Vec<Vec<String>> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    text.lines().map(words).collect()
}

async fn a_client_works(program: &[&str]) {
    let (installation, server) = serve().await;
    let folder = tempfile::tempdir().unwrap();
    let bill: PathBuf = folder.path().join("bill.csv");
    let store = installation
        .database
        .open(&Supervisor::new())
        .await
        .unwrap();
    for (calls, number, state, outcome) in [
        (1, "13800000001", "0", Outcome::Talked),
        (2, "13800000002", "1", Outcome::Busy),
    ] {
        let lines = printed(&run(&server, folder.path(), program, number).await);
        assert_eq!(
            [&lines[0][0], &lines[1][0], &lines[1][1]],
            ["callSid", "state", state],
            "{lines:?}"
        );
        let call = store.call_record(&lines[0][1].parse().unwrap()).await;
        let call = call.unwrap().expect("a call that has arrived");
        assert_eq!(call.number.digits(), format!("86{number}"));
        assert_eq!(
            (call.state, call.outcome),
            (CallState::Ended, Some(outcome))
        );
        let text = std::fs::read_to_string(&bill).unwrap();
        let lines = text.matches("\r\n").count();
        // After midnight, the calls before it are on it too.
        let expected = if text.contains("sms-24,") {
            2..=2
        } else {
            2..=2 + calls
        };
        assert!(expected.contains(&lines), "{text}");
        assert!(
            text.contains("\r\nsms-24,2,") || text.contains("\r\nsms-0,2,"),
            "{text}"
        );
        std::fs::remove_file(&bill).unwrap();
    }
    let refused = run(&server, folder.path(), program, "110").await;
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    assert!(message.contains("108035"), "{message}");
    let untrusting = output(command(&server, folder.path(), program, "13800000001")).await;
    assert!(
        !untrusting.status.success() && untrusting.stdout.is_empty(),
        "it does not verify: {untrusting:?}"
    );
    store.close().await;
}

#[tokio::test]
async fn bash_and_curl() {
    a_client_works(&["bash", "call.sh"]).await;
}

#[tokio::test]
async fn python() {
    a_client_works(&["python3", "call.py"]).await;
}

#[tokio::test]
async fn php() {
    a_client_works(&["php", "call.php"]).await;
}

#[tokio::test]
async fn node() {
    a_client_works(&["node", "call.mjs"]).await;
}

#[tokio::test]
async fn java() {
    a_client_works(&["java", "Call.java"]).await;
}

#[tokio::test]
async fn a_code_is_said_by_bash_and_curl() {
    let (_installation, server) = serve().await;
    let folder = tempfile::tempdir().unwrap();
    let say = async |number: &str, code: &str| {
        let mut command = command(&server, folder.path(), &["bash", "verify.sh"], number);
        command.arg(code).env("CA_FILE", &server.door.ca);
        output(command).await
    };
    let lines = printed(&say("13800000001", "7Q42").await);
    assert_eq!(
        [&lines[0][0], &lines[1][0], &lines[1][1]],
        ["callSid", "state", "0"]
    );
    let refused = say("13800000001", "12").await;
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("108034"));
}

#[test]
fn every_example_is_run_by_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/clients");
    let tests = include_str!("examples.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            tests.contains(&format!("\"{name}\"]")),
            "nobody runs {name}"
        );
    }
}
