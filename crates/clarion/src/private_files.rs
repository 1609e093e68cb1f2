//! Folders and files that nobody but the user of the server may read: they hold tokens, numbers, prompts with spoken codes, and bills.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::Context;
use rustix::fs::Mode;

const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;
/// What others have of a file, the group included.
const OTHERS: u32 = 0o077;

/// What everybody has who is neither the owner nor of the group.
pub const EVERYBODY: u32 = 0o007;

/// From now on, what this process makes is its user's alone, whoever has started it.
pub fn keep_others_out() {
    rustix::process::umask(Mode::from_raw_mode(OTHERS));
}

/// Makes a folder of the server's own, and those above it where they are missing. One that exists and is this user's is closed to everybody; a group
/// that its operator has let in stays.
pub fn folder(path: &Path) -> anyhow::Result<()> {
    made(path)?;
    let metadata = path.metadata().with_context(|| cannot_make(path))?;
    if metadata.uid() == rustix::process::geteuid().as_raw() {
        close(path)?;
    }
    Ok(())
}

/// Closes what exists to everybody; a group that its operator has let in stays.
pub fn close(path: &Path) -> anyhow::Result<()> {
    let Ok(metadata) = path.metadata() else {
        return Ok(());
    };
    let mode = metadata.mode() & 0o7777;
    if mode & EVERYBODY == 0 {
        return Ok(());
    }
    let closed = std::fs::set_permissions(path, Permissions::from_mode(mode & !EVERYBODY));
    closed.with_context(|| {
        let place = path.display();
        format!("cannot close {place} to the other users of this machine (mode {mode:o}): run chmod o-rwx {place}")
    })
}

/// As `folder`, but leaves one that exists as it is: its operator may have let a group in.
pub fn data_folder(path: &Path) -> anyhow::Result<()> {
    made(path)
}

fn made(path: &Path) -> anyhow::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(FOLDER);
    builder.create(path).with_context(|| cannot_make(path))
}

fn cannot_make(path: &Path) -> String {
    format!("cannot make the folder {}", path.display())
}

/// Opens a file to be written, or makes it. One that exists and is this user's is closed to others.
pub fn file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(FILE);
    let file = options.open(path)?;
    if file.metadata()?.uid() == rustix::process::geteuid().as_raw() {
        file.set_permissions(Permissions::from_mode(FILE))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn folders_and_files_are_made_and_made_private() {
        let place = tempfile::tempdir().unwrap();
        let (new, old) = (place.path().join("a/b"), place.path().join("old"));
        folder(&new).unwrap();
        assert_eq!((mode(&new), mode(new.parent().unwrap())), (FOLDER, FOLDER));
        std::fs::create_dir(&old).unwrap();
        std::fs::set_permissions(&old, Permissions::from_mode(0o755)).unwrap();
        data_folder(&old).unwrap();
        assert_eq!(mode(&old), 0o755);
        folder(&old).unwrap();
        assert_eq!(mode(&old), 0o750);
        close(&place.path().join("missing")).unwrap();
        // Nobody changes the modes of these, not even root.
        let refused = close(Path::new("/proc/self/stat")).unwrap_err();
        assert!(refused.to_string().contains("chmod o-rwx"), "{refused}");
        let lock = place.path().join("lock");
        std::fs::write(&lock, "kept").unwrap();
        std::fs::set_permissions(&lock, Permissions::from_mode(0o644)).unwrap();
        file(&lock).unwrap();
        assert_eq!(mode(&lock), FILE);
        assert_eq!(std::fs::read(&lock).unwrap(), b"kept");
    }
}
