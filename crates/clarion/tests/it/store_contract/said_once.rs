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

/// How much of the code is inside a literal that begins here, after its quote.
fn literal_length(code: &str) -> usize {
    let mut escaped = false;
    let end = code.find(|letter| {
        let closes = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        closes
    });
    end.unwrap_or(code.len())
}

/// How much of the code stands before the parenthesis that closes what is open here.
fn call_length(code: &str) -> usize {
    let (mut at, mut open) = (0, 1);
    while let Some(found) = code[at..].find(['"', '(', ')']) {
        at += found;
        match code.as_bytes()[at] {
            b'"' => at += 1 + literal_length(&code[at + 1..]),
            b'(' => open += 1,
            _ => open -= 1,
        }
        if open == 0 {
            return at;
        }
        at += 1;
    }
    code.len()
}

/// The statements of one file: what is given to the macros, and other literals that begin like a statement.
fn statements_of(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap();
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect();
    let beginnings = ["sqlite!(", "postgres!(", "statement!(", "\""];
    let mut found = Vec::new();
    let mut rest = code.as_str();
    loop {
        let next = beginnings
            .iter()
            .filter_map(|word| rest.find(word).map(|place| (place, *word)))
            .min();
        let Some((place, word)) = next else {
            return found;
        };
        rest = &rest[place + word.len()..];
        let length = if word == "\"" {
            literal_length(rest)
        } else {
            call_length(rest)
        };
        let text = &rest[..length];
        let verbs = ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH ", "LOCK "];
        if word != "\"" || verbs.iter().any(|verb| text.starts_with(verb)) {
            found.push(alike(text));
        }
        rest = &rest[(length + 1).min(rest.len())..];
    }
}

/// Without line ends, and with values that all look alike.
fn alike(statement: &str) -> String {
    let joined = statement.replace("\\\n", " ");
    let words: Vec<_> = joined.split_whitespace().collect();
    let mut alike = String::new();
    let text = words.join(" ");
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let value = matches!(letter, '?' | '$');
        alike.push(if value { '$' } else { letter });
        while value && letters.next_if(char::is_ascii_digit).is_some() {}
    }
    alike
}

fn statements(folder: &str) -> HashMap<String, PathBuf> {
    let files = sources(&store().join(folder)).into_iter();
    files
        .flat_map(|file| {
            let text = std::fs::read_to_string(&file).unwrap();
            let found = statements_of(&text).into_iter();
            found.map(move |statement| (statement, file.clone()))
        })
        .collect()
}

#[test]
fn no_statement_is_said_in_both_dialects() {
    let (sqlite, postgres) = (statements("sqlite"), statements("postgres"));
    assert!(sqlite.len() > 20 && postgres.len() > 20);
    println!(
        "{} in SQLite alone, {} in PostgreSQL alone, {} shared",
        sqlite.len(),
        postgres.len(),
        statements("statements").len()
    );
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
