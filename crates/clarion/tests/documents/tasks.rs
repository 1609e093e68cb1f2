//! The table of tasks names what the supervisor knows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::root;

/// How a task or thread is handed to the supervisor. The first argument is its name.
const DOORS: [&str; 4] = [
    "supervisor.restart(",
    "supervisor.require(",
    "supervisor.restart_thread(",
    "supervisor.require_thread(",
];
/// Names that are no literal where the task is started, by how they are written there.
const WRITTEN_OTHERWISE: [(&str, &[&str]); 4] = [
    ("listeners::NAME", &["sip-listener"]),
    ("NAME", &["sip-listener"]),
    ("name", &["store-progress", "store-ends"]),
    (
        "&name",
        &[
            "registration:NAME",
            "trunk-health:NAME",
            "trunk-keepalive:NAME",
        ],
    ),
];

fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, names);
        } else if !path.ends_with("tests.rs") && !path.to_string_lossy().contains("/tests/") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            // A chain may begin a new line at each dot.
            let code: String = code.split_whitespace().collect();
            for rest in DOORS.iter().flat_map(|door| code.split(door).skip(1)) {
                let name = rest.split(',').next().unwrap();
                if let Some(literal) = name.strip_prefix('"') {
                    names.insert(literal.trim_end_matches('"').to_owned());
                    continue;
                }
                let known = WRITTEN_OTHERWISE.iter().find(|known| known.0 == name);
                let (_, known) = known.unwrap_or_else(|| panic!("{}: {name}", path.display()));
                names.extend(known.iter().map(|name| (*name).to_owned()));
            }
        }
    }
}

#[test]
fn the_table_of_tasks_names_every_task() {
    let mut started = BTreeSet::new();
    for name in ["clarion", "phone", "sound"] {
        collect(&root().join("crates").join(name).join("src"), &mut started);
    }
    let text = fs::read_to_string(root().join("docs/operating.md")).unwrap();
    let section = text.split("\n### Tasks\n").nth(1).unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
    let names = rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2));
    let told: BTreeSet<String> = names.map(str::to_owned).collect();
    assert_eq!(told, started);
}
