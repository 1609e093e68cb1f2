//! A public type name exists once in the workspace, so that whoever reads it knows what is meant. Types of tests do not count.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::workspace::packages;

/// Every source file of every crate, without its tests.
fn sources() -> Vec<(String, String)> {
    let of_all = packages().into_iter().flat_map(|package| {
        let name = package.name;
        let named =
            move |(file, text): (PathBuf, String)| (format!("{name}/src/{}", file.display()), text);
        package.sources.into_iter().map(named)
    });
    of_all.collect()
}

/// The type that a line of source makes public, to whomever.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(restricted) => restricted.split_once(')')?.1,
        None => rest,
    };
    let mut words = rest.strip_prefix(' ')?.split_whitespace();
    let kind = words.find(|word| *word != "unsafe")?;
    if !["struct", "enum", "trait", "type", "union"].contains(&kind) {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    // A macro has a placeholder there.
    Some(&name[..end.unwrap_or(name.len())]).filter(|name| !name.is_empty())
}

/// Each name that exists more than once, with all its places.
fn doubled(sources: &[(String, String)]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (file, text) in sources {
        for (number, line) in text.lines().enumerate() {
            if let Some(name) = public_type(line) {
                let place = format!("{file}:{}", number + 1);
                places.entry(name).or_default().push(place);
            }
        }
    }
    let several = places.into_iter().filter(|(_, places)| places.len() > 1);
    several
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect()
}

#[test]
fn a_public_type_name_exists_once_in_the_workspace() {
    let sources = sources();
    let types = sources.iter().flat_map(|(_, text)| text.lines());
    let types = types.filter_map(public_type).count();
    assert!(types > 200, "only {types} public types were found");
    let doubled = doubled(&sources);
    assert!(
        doubled.is_empty(),
        "these names have several meanings:\n{}",
        doubled.join("\n")
    );
}

#[test]
fn a_name_that_exists_twice_is_shown_with_both_places() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let sources = [
        file("a.rs", "pub struct Step;\nstruct Own;\npub fn Own() {}\n"),
        file(
            "b.rs",
            "\n    pub(crate) enum Step<T> {}\npub struct Steps(u8);\n",
        ),
        file(
            "c.rs",
            "type Own = u8;\npub unsafe trait Other: Send {}\npub struct $name;\npub struct $name;\n",
        ),
    ];
    assert_eq!(doubled(&sources), ["Step: a.rs:1, b.rs:2"]);
}
