//! A listener nobody here wrote: the recogniser of the Python package pocketsphinx. Tests of other crates use it by its path.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sound::resample::resample;

pub struct Grammar {
    /// What may be said, in JSGF.
    pub rule: String,
    /// The listener is used to our English voice and to the telephone (`adapt.py`).
    pub is_adapted: bool,
}

/// What it understood of each of these sounds, 8 kHz.
pub fn understood(grammar: &Grammar, sounds: &[Vec<f32>]) -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let scripts = crates.join("sound/tests/listener");
    let python = crates.join("../target/listener/bin/python");
    assert!(
        python.exists(),
        "the Python package pocketsphinx is missing: run `make setup`"
    );
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("said.gram");
    let rule = &grammar.rule;
    let text = format!("#JSGF V1.0;\ngrammar heard;\npublic <said> = {rule};\n");
    std::fs::write(&rules, text).unwrap();
    let files: Vec<PathBuf> = sounds
        .iter()
        .enumerate()
        .map(|(number, sound)| {
            let file = folder.path().join(format!("{number}.raw"));
            std::fs::write(&file, at_16_khz(sound)).unwrap();
            file
        })
        .collect();
    // Two listeners, each with half of it.
    let listeners: Vec<_> = files
        .chunks(files.len().div_ceil(2))
        .map(|half| {
            let mut command = Command::new(&python);
            command.arg(scripts.join("listen.py"));
            if grammar.is_adapted {
                command.arg("--adapted").arg(scripts.join("telephone.mllr"));
            }
            command
                .arg(&rules)
                .args(half)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let mut understood = Vec::new();
    for listener in listeners {
        let output = listener.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        let lines = String::from_utf8(output.stdout).unwrap();
        understood.extend(lines.lines().map(str::to_owned));
    }
    understood
}

/// What a recogniser expects: 16 kHz, half a second before and behind, and the faint noise of a real line. It was trained on
/// recordings of rooms and takes the absolute silence between our words for something else.
fn at_16_khz(samples: &[f32]) -> Vec<u8> {
    let mut padded = [&[0.0; 4000], samples, &[0.0; 4000]].concat();
    let mut state = 1_u32;
    for sample in &mut padded {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *sample += (state as f32 / u32::MAX as f32 - 0.5) * 0.003;
    }
    let wide = resample(8000, 16_000, padded.len(), &mut |first, out| {
        let rest = &padded[first.min(padded.len())..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        count
    });
    let whole = sound::level::to_whole(&wide);
    whole
        .iter()
        .flat_map(|sample| sample.to_le_bytes())
        .collect()
}
