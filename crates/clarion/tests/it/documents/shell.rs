//! The shell blocks of a document, run as its reader would: one after the other in one shell, in a folder of their own, with a real server.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::process::Command;

use super::blocks::{Block, blocks, documents};
use super::root;
use crate::support::{free_port, postgres};

/// What a page other than the README may count on: its reader has followed the README.
const AFTER_THE_README: &str = r#"
cat > clarion.toml <<'END'
[[trunk]]
name = "try"
loopback = true
channels = 10
calls_per_second = 5
prefixes = ["86"]
record = "heard"
END
export ACCOUNT_SID=0123456789abcdef0123456789abcdef AUTH_TOKEN=fedcba98765432100123456789abcdef APP_ID=aaaabbbbccccddddeeeeffff00001111
clarion account add --sid "$ACCOUNT_SID" --token "$AUTH_TOKEN" --name "My shop" --bill-download on
clarion app add --account "$ACCOUNT_SID" --app-id "$APP_ID"
export BASE_URL=https://localhost:8883 CA_FILE=clarion-data/tls/ca.pem
clarion serve > serve.log 2>&1 &
until curl --silent --insecure --output answered https://localhost:8883/healthz; do sleep 0.1; done
"#;

/// For whole documents, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(600);

/// One shell for a whole document; what block N says goes to the file N.
fn script(blocks: &[&Block]) -> String {
    let mut script = "set -euo pipefail\n".to_owned();
    if blocks[0].document != "README.md" {
        script += &format!("{{ {AFTER_THE_README} }} > prepared\n");
    }
    for (number, block) in blocks.iter().enumerate() {
        let text = &block.text;
        script += &match (block.language.as_str(), block.file()) {
            (_, Some(name)) => format!("cat > '{name}' <<'END OF FILE'\n{text}END OF FILE\n"),
            ("sh", _) if block.stays_running() => format!(
                "{{ {text} }} > {number} 2>&1 &\nuntil curl --silent --insecure --output answered https://localhost:8883/healthz; do sleep 0.1; done\n"
            ),
            ("sh", _) => format!("echo '@ {}' >&2\n{{ {text} }} > {number}\n", block.place()),
            ("python", _) => format!(
                "echo '@ {}' >&2\npython3 - > {number} <<'END OF FILE'\n{text}END OF FILE\n",
                block.place()
            ),
            _ => String::new(),
        };
    }
    script
}

/// Runs a document's blocks in one shell, and compares the answers that it shows with those that came.
async fn run(blocks: Vec<Block>) {
    let run: Vec<_> = blocks.iter().filter(|block| block.is_run()).collect();
    if !run.iter().any(|block| block.is_program()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("examples"), folder.path().join("examples")).unwrap();
    // The port that the documents name may be in use here; this one is not.
    let port = free_port().to_string();
    let console = free_port().to_string();
    let script = script(&run)
        .replace("8883", &port)
        .replace("8884", &console);
    std::fs::write(folder.path().join("blocks.sh"), &script).unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_clarion")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    // An empty PostgreSQL database, for those who load something into one.
    let database = if script.contains("$DATABASE_URL") {
        postgres::empty_database().await
    } else {
        String::new()
    };
    let mut shell = Command::new("bash")
        .arg("blocks.sh")
        .current_dir(folder.path())
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("CLARION_HTTP__LISTEN", format!("[\"127.0.0.1:{port}\"]"))
        .env(
            "CLARION_CONSOLE__LISTEN",
            format!("[\"127.0.0.1:{console}\"]"),
        )
        .env("CLARION_BILLS__GRACE_SECONDS", "0")
        .env("CLARION_LOG__FILTER", "error")
        .env("DATABASE_URL", database)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.path().join("errors")).unwrap())
        .process_group(0)
        .spawn()
        .unwrap();
    let group = Group(Pid::from_raw(shell.id().unwrap().try_into().unwrap()).unwrap());
    let ended = tokio::time::timeout(PATIENCE, shell.wait()).await;
    drop(group);
    let errors = std::fs::read_to_string(folder.path().join("errors")).unwrap();
    let succeeded = matches!(ended, Ok(Ok(status)) if status.success());
    assert!(
        succeeded,
        "{}: {ended:?}, in the block named last:\n{errors}",
        run[0].document
    );
    for (number, pair) in run.windows(2).enumerate() {
        if pair[0].language == "sh" && is_answer(pair[1]) {
            let said = std::fs::read_to_string(folder.path().join(number.to_string())).unwrap();
            let said = said.trim().lines().last().unwrap_or_default();
            assert_eq!(
                shape(said),
                shape(pair[1].text.trim()),
                "{} shows another answer than the one that came: {said}",
                pair[1].place()
            );
        }
    }
}

/// The shell and the server that it has started, which would go on otherwise.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

fn is_answer(block: &Block) -> bool {
    matches!(block.language.as_str(), "json" | "xml") && block.file().is_none()
}

/// The names in an answer, in order, and what stands in statusCode: everything but what is different every time.
fn shape(answer: &str) -> Vec<String> {
    match serde_json::from_str::<Value>(answer) {
        Ok(value) => {
            let mut names = Vec::new();
            collect_names(&value, &mut names);
            names
        }
        Err(_) => answer
            .split('<')
            .map(|part| match part.strip_prefix("statusCode>") {
                Some(_) => part.to_owned(),
                None => part.split_inclusive('>').next().unwrap_or("").to_owned(),
            })
            .collect(),
    }
}

fn collect_names(value: &Value, names: &mut Vec<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        names.push(match name.as_str() {
            "statusCode" => format!("{name} {value}"),
            _ => name.clone(),
        });
        collect_names(value, names);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_shell_block_runs_and_answers_what_is_written_below_it() {
    let mut running = tokio::task::JoinSet::new();
    // The translation has the same blocks: another test sees to that.
    for (name, text) in documents() {
        if name != "README.zh-CN.md" {
            running.spawn(run(blocks(&name, &text)));
        }
    }
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}
