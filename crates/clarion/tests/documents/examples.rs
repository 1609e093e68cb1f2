//! Every block in the documents is of a kind that something checks: shell is run (`it/documents/shell.rs`), settings are read by the parser of the settings,
//! commands in sentences exist. CONTRIBUTING.md says which comments before a block change that.

use std::collections::BTreeSet;
use std::path::Path;

use clarion::config::Config;
use tokio::process::Command;

use super::blocks::{blocks, documents};
use super::{prose, root};

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
    (
        "docs/operating.md",
        "it installs; the tests of packaging run the script into a folder",
    ),
    ("docs/operating.md", "it needs an installed service"),
];

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
                // A real nginx is started with it (it/proxies.rs).
                "nginx" => assert_eq!(name, "docs/operating.md", "{place}"),
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

/// What it shows is judged by `it/demo.rs`.
#[test]
fn make_demo_runs_the_demonstration() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    assert!(makefile.contains("target/debug/clarion demo"), "{makefile}");
}
