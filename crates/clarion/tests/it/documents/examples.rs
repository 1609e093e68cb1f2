//! Every block in the documents is run or checked, as a reader would: shell in a folder of its own with a real server, settings by the
//! parser of the settings, answers by their shape. CONTRIBUTING.md says which comments before a block change that.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use clarion::config::Config;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::process::Command;

use super::blocks::{Block, blocks, documents, prose};
use super::root;
use crate::support::postgres;

/// Blocks that nobody runs. Whoever adds one gives its reason beside the block and here.
const NOT_RUN: &[(&str, &str)] = &[
    (
        "README.md",
        "`make test` is what runs these blocks, and the demonstration has a test of its own",
    ),
    (
        "README.md",
        "a build for use takes minutes; these blocks are run with the build that is tested",
    ),
];

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
const PATIENCE: Duration = Duration::from_secs(180);

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
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let script = script(&run).replace("8883", &port);
    std::fs::write(folder.path().join("blocks.sh"), &script).unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_clarion")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    // An empty PostgreSQL database, for those who load something into one.
    let database = match script.contains("$DATABASE_URL") {
        true => postgres::empty_database().await,
        false => String::new(),
    };
    let mut shell = Command::new("bash")
        .arg("blocks.sh")
        .current_dir(folder.path())
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("CLARION_HTTP__LISTEN", format!("[\"127.0.0.1:{port}\"]"))
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

#[test]
fn every_block_is_of_a_kind_that_something_checks() {
    for (name, text) in documents() {
        let blocks = blocks(&name, &text);
        for (number, block) in blocks.iter().enumerate() {
            let place = block.place();
            if let Some(test) = block.run_by() {
                assert!(is_a_test(test), "{place}: there is no test {test}");
            }
            if !block.is_run() || block.file().is_some() {
                continue;
            }
            let before = number.checked_sub(1).map(|place| &blocks[place]);
            let answers = before.is_some_and(|before| before.language == "sh");
            match block.language.as_str() {
                "sh" | "python" | "toml" => {}
                // PrometheusAlert's settings, which the tests of clients follow.
                "ini" => assert!(name.starts_with("README."), "{place}"),
                // Read as a bill by the test of its document.
                "csv" => assert_eq!(name, "docs/bills.md", "{place}"),
                "json" | "xml" => assert!(answers, "{place}: no shell block answers this"),
                "" => assert!(
                    !block.text.lines().any(looks_like_a_command),
                    "{place}: commands stand in blocks marked sh"
                ),
                other => panic!("{place}: nobody knows how to check {other}"),
            }
        }
    }
}

/// A name such as `backup::a_copy_is_whole`.
fn is_a_test(name: &str) -> bool {
    let (path, name) = name.rsplit_once("::").unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let file = file.join(path.replace("::", "/")).with_extension("rs");
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.contains(&format!("fn {name}("))
}

fn looks_like_a_command(line: &str) -> bool {
    let beginnings = ["$ ", "clarion ", "curl ", "make ", "cargo ", "sudo "];
    beginnings.iter().any(|word| line.starts_with(word))
}

#[test]
fn blocks_that_are_not_run_are_few_and_have_a_reason() {
    let mut found = Vec::new();
    for (name, text) in documents() {
        for block in blocks(&name, &text) {
            if let Some(reason) = block.reason_not_to_run()
                && name != "README.zh-CN.md"
            {
                found.push((name.clone(), reason.to_owned()));
            }
        }
    }
    let known = NOT_RUN.iter();
    let known: Vec<_> = known
        .map(|(name, reason)| ((*name).to_owned(), (*reason).to_owned()))
        .collect();
    assert_eq!(found, known);
}

#[test]
fn every_block_of_settings_is_accepted() {
    let mut seen = 0;
    for (name, text) in documents() {
        for block in blocks(&name, &text) {
            if block.language == "toml" {
                let read = Config::from_parts(&block.text, &[]);
                assert!(read.is_ok(), "{}: {:#}", block.place(), read.unwrap_err());
                seen += 1;
            }
        }
    }
    assert!(seen >= 3, "{seen}");
}

#[test]
fn the_readme_and_its_translation_have_the_same_blocks() {
    let read = |name: &str| {
        let text = std::fs::read_to_string(root().join(name)).unwrap();
        let blocks = blocks(name, &text).into_iter();
        let said = blocks.map(|block| (block.language, without_comments(&block.text)));
        said.collect::<Vec<_>>()
    };
    assert_eq!(read("README.md"), read("README.zh-CN.md"));
}

/// Comments are translated; commands and settings are not.
fn without_comments(text: &str) -> String {
    let line = |line: &str| match line.split_once("  # ") {
        Some((command, _)) => command.trim_end().to_owned(),
        None if line.starts_with("# ") => String::new(),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Commands in sentences and tables: they exist, and so do their options.
#[tokio::test]
async fn every_command_that_a_sentence_names_exists_with_its_options() {
    let mut commands = BTreeSet::new();
    for (_, text) in documents() {
        for span in prose(&text).split('`').skip(1).step_by(2) {
            if let Some(command) = span.strip_prefix("clarion ") {
                commands.insert(command.replace('\\', ""));
            }
        }
    }
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        for words in alternatives(&command) {
            let help = Command::new(env!("CARGO_BIN_EXE_clarion"))
                .args(&words)
                .arg("--help")
                .output()
                .await
                .unwrap();
            let text = String::from_utf8(help.stdout).unwrap();
            assert!(help.status.success(), "there is no `clarion {command}`");
            for option in command.split([' ', '[', ']', '=']) {
                if option.starts_with("--") {
                    assert!(
                        text.contains(option),
                        "`clarion {command}` has no {option}:\n{text}"
                    );
                }
            }
        }
    }
}

/// The subcommands that a command names: `bill close|list DAY` is `bill close` and `bill list`.
fn alternatives(command: &str) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = vec![vec![]];
    for word in command.split(' ').take(2) {
        let is_name = |c: char| c.is_ascii_lowercase() || c == '-' || c == '|';
        if word.starts_with('-') || !word.chars().all(is_name) {
            break;
        }
        let longer = found.iter().flat_map(|words| {
            let choices = word.split('|');
            choices.map(|choice| [words.clone(), vec![choice.to_owned()]].concat())
        });
        found = longer.collect();
    }
    found
}

#[test]
fn every_target_that_a_document_names_is_in_the_makefile() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    for (name, text) in documents() {
        for span in text.split('`').skip(1) {
            if let Some(target) = span.strip_prefix("make ") {
                let target = target.split([' ', '\n']).next().unwrap();
                let known = makefile.contains(&format!("\n{target}:"));
                assert!(known, "{name} names `make {target}`");
            }
        }
    }
}

#[tokio::test]
async fn what_make_demo_runs_works() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    assert!(makefile.contains("target/debug/clarion demo"), "{makefile}");
    let shown = Command::new(env!("CARGO_BIN_EXE_clarion"))
        .arg("demo")
        .output()
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.status.success(), "{text}");
}
