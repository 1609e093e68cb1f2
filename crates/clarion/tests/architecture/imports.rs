//! The invariants of ARCHITECTURE.md, kept by machine: imports point one way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::workspace::{packages, sources};

/// For each module, the modules that it uses, each with a file that does.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// The module of the crate that a file belongs to.
pub fn module_of(file: &Path) -> &str {
    let first = file.components().next().unwrap().as_os_str();
    first.to_str().unwrap().trim_end_matches(".rs")
}

/// The modules of the crate that a text names: `crate::module` and `crate::{module, module::item}`.
fn named_modules(text: &str) -> Vec<&str> {
    let code = text.lines().filter(|line| !line.trim().starts_with("//"));
    let uses = code.flat_map(|line| line.split("crate::").skip(1));
    uses.flat_map(|rest| match rest.strip_prefix('{') {
        Some(group) => group.split('}').next().unwrap().split(',').collect(),
        None => vec![rest],
    })
    .map(|path| {
        let path = path.trim();
        let end = path.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &path[..end.unwrap_or(path.len())]
    })
    .filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
    .collect()
}

fn graph(sources: &[(PathBuf, String)]) -> Graph {
    let mut graph = Graph::new();
    for (file, text) in sources {
        let module = module_of(file);
        if matches!(module, "lib" | "main") {
            continue;
        }
        let uses = graph.entry(module.to_owned()).or_default();
        for used in named_modules(text) {
            if used != module {
                let file = file.display().to_string();
                uses.entry(used.to_owned()).or_insert(file);
            }
        }
    }
    graph
}

/// `super` at the top of a module is the crate itself, where the graph would not see what is used.
#[test]
fn other_modules_are_named_from_the_crate() {
    for package in packages() {
        for (file, text) in package.sources {
            let depth = file.components().count();
            let is_root = depth == 1 || (depth == 2 && file.ends_with("mod.rs"));
            let way_up = if is_root { "super::" } else { "super::super::" };
            let leaves = |line: &str| {
                let line = line.strip_prefix("pub ").unwrap_or(line);
                line.starts_with(&format!("use {way_up}"))
            };
            assert!(
                depth > 2 || !text.lines().any(leaves),
                "{} of {}: write crate:: instead",
                file.display(),
                package.name
            );
        }
    }
}

#[test]
fn imports_point_one_way() {
    let graph = graph(&sources());
    for (module, uses) in &graph {
        let mut allowed: Vec<&str> = uses.keys().map(String::as_str).collect();
        match module.as_str() {
            // The rules and the sources of time and chance know nothing else of ours.
            "domain" | "clock" | "random" => allowed.clear(),
            // Settings are values of the domain and of the crates below.
            "config" => allowed.retain(|used| *used == "domain"),
            // Only the command line sits above the server.
            "cli" => {}
            _ => allowed.retain(|used| !["cli", "server"].contains(used)),
        }
        for (used, file) in uses {
            assert!(allowed.contains(&used.as_str()), "{file} uses {used}");
        }
    }
}

#[test]
fn only_the_store_talks_to_a_database_and_only_config_reads_the_environment() {
    for (file, text) in sources() {
        let module = module_of(&file);
        let driver = text.contains("rusqlite::") || text.contains("tokio_postgres::");
        assert!(module == "store" || !driver, "{}", file.display());
        assert!(
            module == "config" || !text.contains("env::var"),
            "{}",
            file.display()
        );
    }
}

/// A statement that went around the session would have no deadline. Outside it, the driver's name stands for values only.
#[test]
fn every_statement_on_postgresql_goes_through_a_session() {
    let values = ["types", "Row"];
    for (file, text) in sources() {
        if file.starts_with("store/postgres/session") {
            continue;
        }
        for rest in text.split("tokio_postgres::").skip(1) {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let item = &rest[..end.unwrap_or(rest.len())];
            assert!(
                values.contains(&item),
                "{} uses tokio_postgres::{item}",
                file.display()
            );
        }
    }
}
