//! Runs commands of docs/operating.md as they stand there.

use std::path::Path;

use tokio::process::Command;

/// The commands of one block of the document, with our places instead of its own.
pub fn documented(block: &str, places: &[(&str, &str)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating.md");
    let text = std::fs::read_to_string(path).unwrap();
    let after = text.split(&format!("<!-- {block} -->\n```")).nth(1);
    let after = after.and_then(|after| after.split_once('\n'));
    let (_, commands) = after.unwrap_or_else(|| panic!("no block {block}"));
    let mut commands = commands.split("```").next().unwrap().to_owned();
    for (theirs, ours) in places {
        assert!(commands.contains(theirs), "{block} does not name {theirs}");
        commands = commands.replace(theirs, ours);
    }
    commands
}

pub async fn sh(commands: &str) {
    let output = Command::new("bash")
        .args(["-euc", commands])
        .output()
        .await
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{commands}\n{error}");
}
