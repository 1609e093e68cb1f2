//! What these tests read: the sources of every crate of the workspace. Modules of tests are left out: what a test reaches for is no part of
//! the design.

use std::path::{Path, PathBuf};

/// A crate: its name, and its source files as paths below its `src`, with their text.
pub struct Package {
    pub name: String,
    pub sources: Vec<(PathBuf, String)>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every crate of the workspace, in the order of their names.
pub fn packages() -> Vec<Package> {
    let mut folders = vec![root().join("bench")];
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    folders.extend(crates.map(|entry| entry.unwrap().path()));
    folders.sort();
    folders.iter().map(|folder| package(folder)).collect()
}

/// The sources of the server.
pub fn sources() -> Vec<(PathBuf, String)> {
    package(Path::new(env!("CARGO_MANIFEST_DIR"))).sources
}

fn package(folder: &Path) -> Package {
    let source = folder.join("src");
    let (mut folders, mut sources) = (vec![source.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let file = path.strip_prefix(&source).unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if file.extension().is_some_and(|ending| ending == "rs") && !is_test(&file) {
                let text = std::fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                sources.push((file, text.to_owned()));
            }
        }
    }
    sources.sort();
    let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
    Package { name, sources }
}

/// A `tests.rs`, or a file in a folder `tests`.
fn is_test(path: &Path) -> bool {
    path.with_extension("").iter().any(|part| part == "tests")
}

/// Whoever adds a crate to the workspace has it read by these tests.
#[test]
fn every_crate_of_the_workspace_is_read() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest
        .lines()
        .find(|line| line.starts_with("members"))
        .unwrap();
    let members = members
        .split('"')
        .skip(1)
        .step_by(2)
        .map(|path| path.rsplit('/').next().unwrap());
    let mut members: Vec<_> = members.collect();
    members.sort_unstable();
    let packages = packages();
    let mut read: Vec<_> = packages.iter().map(|one| one.name.as_str()).collect();
    read.sort_unstable();
    assert_eq!(read, members);
    assert!(packages.iter().all(|one| !one.sources.is_empty()));
}
