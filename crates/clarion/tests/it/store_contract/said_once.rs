//! What both databases say in the same words is said once, in `store/statements`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

fn store() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store")
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// The text of every literal, with lines joined as the compiler joins them.
fn literals(source: &str) -> Vec<String> {
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect();
    let mut found = Vec::new();
    let mut rest = code.as_str();
    while let Some(start) = rest.find('"') {
        let text = &rest[start + 1..];
        let mut escaped = false;
        let end = text.find(|letter| {
            let closes = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            closes
        });
        let Some(end) = end else { break };
        found.push(
            text[..end]
                .replace("\\\n", " ")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
        );
        rest = &text[end + 1..];
    }
    found
}

/// Statements and the long parts of them, with values that all look alike.
fn statements(folder: &str) -> HashMap<String, PathBuf> {
    let mut found = HashMap::new();
    for file in sources(&store().join(folder)) {
        for literal in literals(&std::fs::read_to_string(&file).unwrap()) {
            let words = [
                "SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "FROM", "WHERE",
            ];
            if !words.iter().any(|word| literal.contains(word)) {
                continue;
            }
            let mut alike = String::new();
            let mut letters = literal.chars().peekable();
            while let Some(letter) = letters.next() {
                alike.push(if letter == '?' { '$' } else { letter });
                while matches!(letter, '?' | '$') && letters.next_if(char::is_ascii_digit).is_some()
                {
                }
            }
            found.insert(alike, file.clone());
        }
    }
    found
}

#[test]
fn no_statement_is_said_in_both_dialects() {
    let (sqlite, postgres) = (statements("sqlite"), statements("postgres"));
    assert!(sqlite.len() > 20 && postgres.len() > 20);
    for (statement, file) in &sqlite {
        if let Some(other) = postgres.get(statement) {
            panic!(
                "{} and {} both say: {statement}",
                file.display(),
                other.display()
            );
        }
    }
}

#[test]
fn each_dialect_uses_its_own_words_and_states_have_names() {
    for (folder, foreign) in [("sqlite", ".postgres"), ("postgres", ".sqlite")] {
        for file in sources(&store().join(folder)) {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(!text.contains(foreign), "{}", file.display());
        }
    }
    for folder in ["sqlite", "postgres", "statements"] {
        for (statement, file) in statements(folder) {
            for (place, _) in statement.match_indices("state ") {
                let value = statement[place..]
                    .trim_start_matches("state ")
                    .trim_start_matches(['=', '<', '>', ' ']);
                assert!(
                    !value.starts_with(|first: char| first.is_ascii_digit()),
                    "{}: a state by its number: {statement}",
                    file.display()
                );
            }
        }
    }
}
