//! Checks what other users of the machine can read: the data folder, and secrets in the settings.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::finding::Finding;
use crate::config::Config;
use crate::private_files::EVERYBODY;

/// Checks that others can neither read a folder, which holds tokens, numbers, prompts and bills, nor write to it.
pub fn folder(what: &str, folder: &Path) -> Option<Finding> {
    let mode = open_to_everybody(folder)?;
    let place = folder.display();
    let found = format!("{what}: {place} is open to every user of this machine (mode {mode:o})");
    Some(Finding::problem(
        "privacy",
        found,
        format!("chmod 700 {place}"),
    ))
}

/// Checks the file of the settings, if there is one.
pub fn settings(config: &Config, file: Option<&Path>) -> Option<Finding> {
    let secrets = config.secrets();
    let file = file.filter(|_| !secrets.is_empty())?;
    let (place, held) = (file.display(), secrets.join(", "));
    let Some(mode) = open_to_everybody(file) else {
        let found = format!("{place} holds secrets ({held}), and others cannot read it");
        return Some(Finding::ok("privacy", found));
    };
    Some(Finding::problem(
        "privacy",
        format!(
            "every user of this machine can read the secrets in {place} ({held}; mode {mode:o})"
        ),
        format!("chmod 640 {place}, or put them into files of their own (password_file, passfile)"),
    ))
}

fn open_to_everybody(path: &Path) -> Option<u32> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & EVERYBODY != 0).then_some(mode)
}
