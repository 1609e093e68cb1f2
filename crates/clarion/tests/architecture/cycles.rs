//! No modules use each other in a circle: in every folder, those beside each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::workspace::packages;

/// For each module of a folder, those beside it that it uses, each with a file that does.
type Graph = BTreeMap<String, BTreeMap<String, String>>;
/// A module by the names on the way to it.
type Way = Vec<String>;

/// The module that a file is.
fn way_of(file: &Path) -> Way {
    let names = file.components().map(|part| {
        let part = part.as_os_str().to_str().unwrap();
        part.trim_end_matches(".rs").to_owned()
    });
    let mut way: Way = names.collect();
    if way
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        way.pop();
    }
    way
}

/// The code of a module, without its comments and its tests.
fn code(text: &str) -> String {
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = product
        .lines()
        .filter(|line| !line.trim().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// All paths that a text names from the crate, from its own module or from one above, with groups written out.
fn named_paths(code: &str) -> Vec<Way> {
    let mut paths = Vec::new();
    for beginning in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(beginning) {
            // In `super::super::x` the first `super` tells all.
            let before = &code[..at];
            let goes_on = before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            if !goes_on {
                expand(&code[at..], &mut Way::new(), &mut paths);
            }
        }
    }
    paths
}

/// Reads one path, or a group of them, and returns what follows.
fn expand<'a>(text: &'a str, before: &mut Way, paths: &mut Vec<Way>) -> &'a str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    let (name, mut rest) = text.split_at(end.unwrap_or(text.len()));
    before.push(name.to_owned());
    match rest.strip_prefix("::") {
        Some(group) if group.starts_with('{') => {
            rest = &group[1..];
            loop {
                rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
                if rest.is_empty() || rest.starts_with('}') {
                    rest = rest.get(1..).unwrap_or_default();
                    break;
                }
                let left = rest.len();
                rest = expand(rest, before, paths);
                if let Some(renamed) = rest.strip_prefix(" as ") {
                    let end = renamed.find([',', '}']).unwrap_or(renamed.len());
                    rest = &renamed[end..];
                }
                // What is no path ends the group.
                if rest.len() == left {
                    break;
                }
            }
        }
        Some(more) if more.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
            rest = expand(more, before, paths);
        }
        _ => paths.push(before.clone()),
    }
    before.pop();
    rest
}

/// Where a path leads that a module names: the names from the crate on.
fn resolved(path: &[String], module: &[String]) -> Way {
    let mut base = module.to_vec();
    let mut names = path;
    while let Some((first, rest)) = names.split_first() {
        match first.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                base.pop();
            }
            _ => break,
        }
        names = rest;
    }
    base.extend(names.iter().cloned());
    base
}

/// For each folder (or module with modules in it), who uses whom there.
fn graphs(sources: &[(PathBuf, String)]) -> BTreeMap<Way, Graph> {
    let ways: BTreeSet<Way> = sources.iter().map(|(file, _)| way_of(file)).collect();
    let is_test = |way: &Way| way.last().is_some_and(|last| last.ends_with("tests"));
    let mut graphs: BTreeMap<Way, Graph> = BTreeMap::new();
    for (file, text) in sources {
        let module = way_of(file);
        if module.iter().any(|name| name == "tests" || name == "bin") || is_test(&module) {
            continue;
        }
        for path in named_paths(&code(text)) {
            let mut used = resolved(&path, &module);
            while !used.is_empty() && !ways.contains(&used) {
                used.pop();
            }
            let common = module
                .iter()
                .zip(&used)
                .take_while(|(one, other)| one == other);
            let common = common.count();
            // Who uses what is above or below itself uses none beside it.
            if common < module.len() && common < used.len() {
                let graph = graphs.entry(module[..common].to_vec()).or_default();
                graph.entry(used[common].clone()).or_default();
                let uses = graph.entry(module[common].clone()).or_default();
                let file = file.display().to_string();
                uses.entry(used[common].clone()).or_insert(file);
            }
        }
    }
    graphs
}

/// A cycle as the way from a module back to itself, each step with the file that takes it.
fn cycle(graph: &Graph) -> Option<String> {
    fn walk<'a>(graph: &'a Graph, way: &mut Vec<&'a str>, done: &mut Vec<&'a str>) -> bool {
        let last = *way.last().unwrap();
        for used in graph[last].keys() {
            let again = way.contains(&used.as_str());
            if !again && done.contains(&used.as_str()) {
                continue;
            }
            way.push(used);
            if again || walk(graph, way, done) {
                return true;
            }
            way.pop();
        }
        done.push(last);
        false
    }
    let mut done = Vec::new();
    for module in graph.keys() {
        let mut way = vec![module.as_str()];
        if done.contains(&module.as_str()) || !walk(graph, &mut way, &mut done) {
            continue;
        }
        let end = way.last().unwrap();
        let begin = way.iter().position(|module| module == end).unwrap();
        let way = &way[begin..];
        let steps = way.windows(2).map(|step| {
            let file = &graph[step[0]][step[1]];
            format!("\n  {file} uses {}", step[1])
        });
        return Some(format!("{}{}", way.join(" → "), steps.collect::<String>()));
    }
    None
}

fn cycles(sources: &[(PathBuf, String)]) -> Vec<String> {
    let graphs = graphs(sources);
    graphs.values().filter_map(cycle).collect()
}

#[test]
fn no_modules_use_each_other_in_a_circle() {
    let cycles = packages().into_iter().flat_map(|package| {
        let cycles = cycles(&package.sources).into_iter();
        let named = cycles.map(|cycle| format!("{}: {cycle}", package.name));
        named.collect::<Vec<_>>()
    });
    let cycles: Vec<_> = cycles.collect();
    let cycles = cycles.join("\n");
    assert!(
        cycles.is_empty(),
        "modules use each other in a circle:\n{cycles}"
    );
}

#[test]
fn a_cycle_is_found_and_shown_in_every_folder() {
    let source = |file: &str, text: &str| (PathBuf::from(file), text.to_owned());
    let mut sources = vec![
        source("config/mod.rs", "use crate::store::Database;\n"),
        source(
            "store/mod.rs",
            "// crate::config is not meant\nmod files;\nuse crate::{domain::Call, telemetry};\n",
        ),
        source("telemetry.rs", "use crate::config::LogConfig;\n"),
        source("api/mod.rs", "use crate::store::Store;\n"),
        source("domain/mod.rs", "pub use self::call::Call;\n"),
        source(
            "domain/call.rs",
            "use super::{bill::{Bill, Line as BillLine}, money::Money};\nuse super::Domain;\n",
        ),
        source("domain/bill.rs", "fn f() { crate::domain::money::sum() }\n"),
        source(
            "domain/money.rs",
            "#[cfg(test)]\nmod tests {\n    use crate::domain::call::Call;\n}\n",
        ),
    ];
    assert_eq!(
        cycles(&sources),
        [
            "store → telemetry → config → store\n  store/mod.rs uses telemetry\n  telemetry.rs uses config\n  config/mod.rs uses store"
        ]
    );
    sources.remove(0);
    assert!(cycles(&sources).is_empty());
    sources.push(source(
        "domain/money/coin.rs",
        "use super::super::call::Call;\n",
    ));
    assert_eq!(
        cycles(&sources),
        [
            "bill → money → call → bill\n  domain/bill.rs uses money\n  domain/money/coin.rs uses call\n  domain/call.rs uses bill"
        ]
    );
}
