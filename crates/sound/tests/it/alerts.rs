//! Alerts as they are read out: fifty that public rule sets of Prometheus, and other tools, are written for, each with the reading that was listened to.
//! `UPDATE_READINGS=1` writes the file anew; whoever does so looks at each line that has changed.

use std::path::Path;

use sound::text::{Language, phrases};

/// English phrases in brackets.
fn said(text: &str) -> String {
    let said = phrases(text)
        .into_iter()
        .map(|phrase| match phrase.language {
            Language::Chinese => phrase.text,
            Language::English => format!("[{}]", phrase.text),
        });
    said.collect()
}

#[test]
fn alerts_are_read_as_people_say_them() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/alerts.txt");
    let file = std::fs::read_to_string(&path).unwrap();
    let pairs: Vec<_> = file
        .split("\n\n")
        .filter(|pair| !pair.trim().is_empty())
        .collect();
    assert_eq!(pairs.len(), 50);
    let texts = pairs.iter().map(|pair| pair.lines().next().unwrap());
    if std::env::var("UPDATE_READINGS").is_ok() {
        let written: Vec<_> = texts
            .map(|text| format!("{text}\n{}\n", said(text)))
            .collect();
        std::fs::write(&path, written.join("\n")).unwrap();
        return;
    }
    for pair in &pairs {
        let (text, reading) = pair.trim().split_once('\n').unwrap();
        assert_eq!(said(text), reading, "{text}");
    }
}
