//! A listener nobody here wrote: the recogniser of the Python package pocketsphinx, given a grammar of sentences, must pick the one that
//! was said, after the telephone codec.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sound::Voice;
use sound::background::NAMES;
use sound::resample::resample;

use super::support::heard;

const SENTENCES: [&str; 24] = [
    "your order has been shipped",
    "your order has been cancelled",
    "your package will arrive tomorrow",
    "your package will arrive on friday",
    "your verification code is three five seven nine",
    "your verification code is three one seven nine",
    "your payment was received thank you",
    "your payment could not be processed",
    "the meeting starts at ten in the morning",
    "the meeting starts at two in the afternoon",
    "please call us back as soon as possible",
    "please press one to confirm your appointment",
    "please press two to speak with an agent",
    "the doctor will see you on monday",
    "the school is closed because of the storm",
    "the server in the data center is down",
    "the water supply will be interrupted tonight",
    "your flight to london has been delayed",
    "your flight to paris is now boarding",
    "your account balance is two hundred dollars",
    "your subscription will expire next month",
    "the temperature in the warehouse is too high",
    "someone is waiting at the front door",
    "this is a test of the emergency system",
];

/// Speeds at which everything is understood: what `docs/sound.md` calls the useful range.
const USEFUL_SPEEDS: [i16; 4] = [-500, -250, 100, 200];

struct Said {
    what: String,
    sentence: &'static str,
    voice: Voice,
}

#[test]
fn a_recogniser_understands_every_sentence_after_the_codec() {
    let mut said = Vec::new();
    let mut say = |what: String, sentence, voice| {
        said.push(Said {
            what,
            sentence,
            voice,
        });
    };
    for sentence in SENTENCES {
        say("natural".into(), sentence, Voice::default());
    }
    // Each of the others with a part of the sentences, so that the whole is quick.
    for (turn, speed) in USEFUL_SPEEDS.into_iter().enumerate() {
        for sentence in SENTENCES.into_iter().skip(turn).step_by(6) {
            say(
                format!("speed {speed}"),
                sentence,
                Voice {
                    speed,
                    ..Voice::default()
                },
            );
        }
    }
    for (number, name) in (1_u8..).zip(NAMES) {
        for sentence in SENTENCES.into_iter().skip(usize::from(number)).step_by(8) {
            say(
                name.into(),
                sentence,
                Voice {
                    background: number,
                    ..Voice::default()
                },
            );
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let understood = listen(folder.path(), &said);
    let wrong: Vec<String> = said
        .iter()
        .zip(&understood)
        .filter(|(said, understood)| said.sentence != understood.as_str())
        .map(|(said, understood)| {
            format!("{}: {:?} for {:?}", said.what, understood, said.sentence)
        })
        .collect();
    assert_eq!(understood.len(), said.len());
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        said.len(),
        wrong.join("\n")
    );
}

fn listen(folder: &Path, said: &[Said]) -> Vec<String> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/listener/bin/python");
    assert!(
        python.exists(),
        "the Python package pocketsphinx is missing: run `make setup`"
    );
    let grammar = folder.join("sentences.gram");
    let rules = format!(
        "#JSGF V1.0;\ngrammar sentences;\npublic <sentence> = {};\n",
        SENTENCES.join(" | ")
    );
    std::fs::write(&grammar, rules).unwrap();
    let files: Vec<PathBuf> = said
        .iter()
        .enumerate()
        .map(|(number, said)| {
            let file = folder.join(format!("{number}.raw"));
            std::fs::write(&file, at_16_khz(&heard(said.sentence, said.voice))).unwrap();
            file
        })
        .collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/listen.py");
    // Two listeners, each with half of it.
    let listeners: Vec<_> = files
        .chunks(files.len().div_ceil(2))
        .map(|half| {
            let mut command = Command::new(&python);
            command
                .arg(&script)
                .arg(&grammar)
                .args(half)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let mut understood = Vec::new();
    for listener in listeners {
        let output = listener.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        understood.extend(
            String::from_utf8(output.stdout)
                .unwrap()
                .lines()
                .map(str::to_owned),
        );
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
