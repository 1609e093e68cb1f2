//! Checks what other users of the machine can read: the data folder, the folders of recordings, and secrets in the settings and in files of their own. And that nobody else
//! can change the library that the natural voice loads.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::finding::{CheckSubject, Finding};
use crate::config::Config;
use crate::domain::wording::{Wording, wording};
use crate::private_files::EVERYBODY;

/// Of everybody.
const WRITE: u32 = 0o002;

/// Checks that others can neither read a folder, which holds tokens, numbers, prompts and bills, nor write to it.
pub fn folder(what: &Wording, folder: &Path) -> Option<Finding> {
    let mode = open_to_everybody(folder)?;
    let place = folder.display();
    let found = wording!(
        "{what}: {place} is open to every user of this machine (mode {mode:o})",
        "{what}：本机所有用户都可以访问 {place}（权限 {mode:o}）"; what
    );
    let remedy = wording!("chmod 700 {place}", "执行 chmod 700 {place}");
    Some(Finding::problem(CheckSubject::Privacy, found, remedy))
}

/// Checks the file of the settings, if there is one.
pub fn settings(config: &Config, file: Option<&Path>) -> Option<Finding> {
    let secrets = config.secrets();
    let file = file.filter(|_| !secrets.is_empty())?;
    let (place, held) = (file.display(), Wording::list(&secrets));
    let Some(mode) = open_to_everybody(file) else {
        let found = wording!(
            "{place} holds secrets ({held}), and others cannot read it",
            "{place} 含有密码（{held}），其他用户无法读取"; held
        );
        return Some(Finding::ok(CheckSubject::Privacy, found));
    };
    Some(Finding::problem(
        CheckSubject::Privacy,
        wording!(
            "every user of this machine can read the secrets in {place} ({held}; mode {mode:o})",
            "本机所有用户都可以读取 {place} 中的密码（{held}；权限 {mode:o}）"; held
        ),
        wording!(
            "chmod 640 {place}, or put them into files of their own (password_file, passfile)",
            "执行 chmod 640 {place}，或把密码放到单独的文件中（password_file、passfile）"
        ),
    ))
}

/// Checks the files of secrets that the settings name, and the folders with sound that may hold spoken codes.
pub fn named_places(config: &Config) -> Vec<Finding> {
    let secret = |(what, file): (Wording, &Path)| {
        let mode = open_to_everybody(file)?;
        let place = file.display();
        Some(Finding::problem(
            CheckSubject::Privacy,
            wording!(
                "every user of this machine can read the secret in {place} ({what}; mode {mode:o})",
                "本机所有用户都可以读取 {place} 中的密钥（{what}；权限 {mode:o}）"; what
            ),
            wording!("chmod 600 {place}", "执行 chmod 600 {place}"),
        ))
    };
    let secrets = config.secret_files().into_iter().filter_map(secret);
    let recordings = config.trunks.iter().filter_map(|trunk| {
        let record = trunk.loopback.as_ref()?.record.as_deref()?;
        let name = trunk.name();
        folder(
            &wording!("record of trunk {name}", "中继 {name} 的 record"),
            record,
        )
    });
    let natural = changeable(&config.speech.natural_folder);
    secrets.chain(recordings).chain(natural).collect()
}

/// A shared library of this folder is loaded: whoever can write to it, or to a file of it, can do what the server can.
fn changeable(natural_folder: &Path) -> Option<Finding> {
    let files = std::fs::read_dir(natural_folder).into_iter().flatten();
    let files = files.flatten().map(|file| file.path());
    let mut places = std::iter::once(natural_folder.to_owned()).chain(files);
    let (place, mode) = places.find_map(|place| {
        let mode = open_to_everybody(&place)?;
        (mode & WRITE != 0).then_some((place, mode))
    })?;
    let place = place.display();
    Some(Finding::problem(
        CheckSubject::Privacy,
        wording!(
            "speech.natural_folder: every user of this machine can change {place}, and what it holds is executed (mode {mode:o})",
            "speech.natural_folder：本机所有用户都可以修改 {place}，而其中的程序会被执行（权限 {mode:o}）"
        ),
        wording!(
            "chmod o-w {place}, and see that nobody has changed it (clarion voice install natural)",
            "执行 chmod o-w {place}，并确认内容未被改动（clarion voice install natural）"
        ),
    ))
}

fn open_to_everybody(path: &Path) -> Option<u32> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & EVERYBODY != 0).then_some(mode)
}
