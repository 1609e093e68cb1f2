//! Command line and console use one layer: neither asks the database by itself, nor has a statement of its own.

use std::path::Path;

use crate::imports::module_of;
use crate::workspace::sources;

/// What may stand above `management`.
const ABOVE: [&str; 2] = ["cli", "console"];
/// What they may name of the store: values that go into a verb of the layer or come out of it.
const VALUES: [&str; 11] = [
    "BilledAccount",
    "CallbackFilter",
    "Database",
    "DatabaseRoute",
    "Inspection",
    "QueueOverview",
    "ReplayFrom",
    "Replayed",
    "SeenNode",
    "WaitingAccount",
    "WaitingReceiver",
];
/// How statements begin.
const STATEMENTS: [&str; 5] = [
    "SELECT ",
    "INSERT INTO ",
    "UPDATE ",
    "DELETE FROM ",
    "WITH ",
];

/// The names after `crate::store::`, with or without braces.
fn named(text: &str) -> Vec<&str> {
    let uses = text.split("crate::store::").skip(1);
    uses.flat_map(|rest| match rest.strip_prefix('{') {
        Some(group) => group.split('}').next().unwrap().split(',').collect(),
        None => vec![rest],
    })
    .map(|name| {
        let name = name.trim();
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &name[..end.unwrap_or(name.len())]
    })
    .filter(|name| !name.is_empty())
    .collect()
}

fn mistakes(file: &Path, text: &str) -> Vec<String> {
    if !ABOVE.contains(&module_of(file)) {
        return Vec::new();
    }
    let file = file.display();
    let strangers = named(text)
        .into_iter()
        .filter(|name| !VALUES.contains(name));
    let strangers = strangers.map(|name| format!("{file} uses the store's {name}"));
    let statements = STATEMENTS.into_iter().filter(|beginning| {
        let literal = format!("\"{beginning}");
        text.contains(&literal)
    });
    let statements = statements.map(|beginning| format!("{file} has a statement: {beginning}"));
    strangers.chain(statements).collect()
}

#[test]
fn only_the_layer_of_verbs_asks_the_database_for_command_line_and_console() {
    let found: Vec<_> = sources()
        .iter()
        .flat_map(|(file, text)| mistakes(file, text))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn what_goes_around_the_layer_is_found() {
    let text = "use crate::store::{Database, Store};\nconst X: &str = \"SELECT 1\";\n";
    assert_eq!(
        mistakes(Path::new("console/calls.rs"), text),
        [
            "console/calls.rs uses the store's Store",
            "console/calls.rs has a statement: SELECT "
        ]
    );
    assert!(mistakes(Path::new("api/mod.rs"), text).is_empty());
}
