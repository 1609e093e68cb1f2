//! The invariants of ARCHITECTURE.md, kept by machine: which part may use which.

use std::path::{Path, PathBuf};

/// Each part, and the parts of ours that it may use. `domain` uses nothing of ours; only `server` sees all; only `cli` sits above it.
const MAY_USE: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("clock", &[]),
    ("random", &[]),
    ("config", &["domain", "store"]),
    ("telemetry", &["config", "domain"]),
    ("store", &["domain", "telemetry"]),
    ("voices", &["domain", "store", "config"]),
    ("billing", &["domain", "store", "clock", "random", "config"]),
    (
        "api",
        &[
            "billing", "domain", "store", "voices", "clock", "random", "config",
        ],
    ),
    (
        "callbacks",
        &["domain", "store", "clock", "random", "config"],
    ),
    (
        "dispatch",
        &["domain", "store", "voices", "clock", "random", "config"],
    ),
    ("http", &["api", "config"]),
    ("client", &["domain"]),
    (
        "server",
        &[
            "api",
            "billing",
            "callbacks",
            "clock",
            "config",
            "dispatch",
            "domain",
            "http",
            "random",
            "store",
            "telemetry",
            "voices",
        ],
    ),
    (
        "cli",
        &[
            "api",
            "billing",
            "callbacks",
            "client",
            "clock",
            "config",
            "dispatch",
            "domain",
            "http",
            "random",
            "server",
            "store",
            "telemetry",
            "voices",
        ],
    ),
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

fn part_of(file: &Path, source: &Path) -> String {
    let first = file
        .strip_prefix(source)
        .unwrap()
        .components()
        .next()
        .unwrap();
    first
        .as_os_str()
        .to_str()
        .unwrap()
        .trim_end_matches(".rs")
        .to_owned()
}

/// The parts that a file names by `crate::part`.
fn used_parts(text: &str) -> impl Iterator<Item = &str> {
    text.split("crate::").skip(1).filter_map(|rest| {
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        Some(&rest[..end]).filter(|name| !name.is_empty())
    })
}

#[test]
fn imports_point_one_way() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in sources(&source) {
        let part = part_of(&file, &source);
        if matches!(part.as_str(), "lib" | "main") {
            continue;
        }
        let (_, allowed) = MAY_USE
            .iter()
            .find(|(name, _)| *name == part)
            .unwrap_or_else(|| panic!("{part} is not in the table"));
        let text = std::fs::read_to_string(&file).unwrap();
        for used in used_parts(&text) {
            assert!(
                used == part || allowed.contains(&used),
                "{} uses {used}",
                file.display()
            );
        }
    }
}

#[test]
fn only_the_store_knows_which_database_it_is_and_only_config_reads_the_environment() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in sources(&source) {
        let text = std::fs::read_to_string(&file).unwrap();
        let part = part_of(&file, &source);
        if part != "store" {
            assert!(
                !text.contains("rusqlite") && !text.contains("tokio_postgres"),
                "{}",
                file.display()
            );
        }
        if part != "config" {
            assert!(!text.contains("env::var"), "{}", file.display());
        }
    }
}
