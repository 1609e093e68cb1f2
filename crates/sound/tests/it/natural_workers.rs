//! The processes of the natural voice, with a stand-in that speaks their language: they are shared, bounded, ended when they hang and started again
//! when they are gone.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sound::VoiceOptions;
use sound::speech::{NaturalEngine, NaturalWorkers, SpeakingTime, SpeechEngine, SpeechError};
use sound::wav::mono_16_bit;

use super::support::speech;

/// Answers each text with a sound, unless the text says otherwise, and notes when it is started.
const STAND_IN: &str = r#"
import json, struct, sys, time
started, wav = sys.argv[1], open(sys.argv[2], "rb").read()
open(started, "a").write("x")
read, write = sys.stdin.buffer, sys.stdout.buffer
while head := read.read(4):
    text = json.loads(read.read(struct.unpack("<I", head)[0]))["text"]
    if text == "die":
        sys.exit("out of memory")
    if text == "hang":
        time.sleep(60)
    if text == "pause":
        open(started.replace("started", "paused"), "w").write("x")
        time.sleep(2)
    if text == "nonsense":
        write.write(b"\xff" * 100)
    kind, answer = (1, b"no such speaker") if text == "fail" else (0, wav)
    write.write(struct.pack("<BI", kind, len(answer)) + answer)
    write.flush()
"#;

fn engine(folder: &Path, limit: usize) -> NaturalEngine {
    let (script, wav) = (folder.join("stand-in.py"), folder.join("tone.wav"));
    std::fs::write(&script, STAND_IN).unwrap();
    let wave = |at: i16| if at / 30 % 2 == 0 { 8000 } else { -8000 };
    let tone: Vec<_> = (0..24_000).map(wave).collect();
    std::fs::write(&wav, mono_16_bit(&tone, 24_000)).unwrap();
    let arguments = [script, folder.join("started"), wav].map(OsString::from);
    let workers = NaturalWorkers::new("python3".into(), arguments.into(), limit);
    NaturalEngine {
        workers: Arc::new(workers),
        speaker: "anna".into(),
        time: Duration::from_secs(60),
        version: "1".into(),
    }
}

fn say(engine: &NaturalEngine, text: &str, time: Duration) -> Result<usize, SpeechError> {
    let speech = speech(text, VoiceOptions::default());
    let spoken = engine.speak(&speech, &mut SpeakingTime::new(time));
    spoken.map(|samples| samples.len())
}

const MINUTE: Duration = Duration::from_secs(60);

fn started(folder: &Path) -> usize {
    let noted = std::fs::read_to_string(folder.join("started"));
    noted.unwrap_or_default().len()
}

#[test]
fn a_process_speaks_one_text_after_the_other_and_is_started_again_when_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), 1);
    for _ in 0..3 {
        assert_eq!(say(&engine, "hello", MINUTE), Ok(8000));
    }
    let failed = say(&engine, "fail", MINUTE).unwrap_err();
    assert!(failed.to_string().ends_with("no such speaker"), "{failed}");
    assert_eq!(say(&engine, "hello", MINUTE), Ok(8000));
    assert_eq!(started(folder.path()), 1, "saying no is no reason to go");
    let died = say(&engine, "die", MINUTE).unwrap_err().to_string();
    assert!(died.contains("its process ended: out of memory"), "{died}");
    assert_eq!(say(&engine, "hello", MINUTE), Ok(8000));
    assert!(say(&engine, "nonsense", MINUTE).is_err());
    assert_eq!(say(&engine, "hello", MINUTE), Ok(8000));
    assert_eq!(started(folder.path()), 3);
}

#[test]
fn a_process_that_hangs_is_ended_at_the_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), 1);
    assert_eq!(say(&engine, "hello", MINUTE), Ok(8000));
    let slow = say(&engine, "hang", Duration::from_secs(1));
    assert!(matches!(slow, Err(SpeechError::TooSlow { .. })), "{slow:?}");
    assert_eq!(say(&engine, "hello", MINUTE), Ok(8000));
    assert_eq!(started(folder.path()), 2);
}

#[test]
fn who_would_wait_for_longer_than_a_text_may_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), 1);
    let long = "word ".repeat(2000);
    let busy = say(&engine, &long, Duration::from_secs(10));
    assert!(matches!(busy, Err(SpeechError::Busy { .. })), "{busy:?}");
    assert_eq!(started(folder.path()), 0, "nothing was begun for it");
}

#[test]
fn a_bad_hour_is_forgotten_and_a_turn_that_comes_too_late_costs_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), 1);
    assert_eq!(say(&engine, "hello", MINUTE), Ok(8000));
    // It hangs several times, and is thought to be slow after that.
    for _ in 0..3 {
        say(&engine, "hang", Duration::from_secs(1)).unwrap_err();
        assert_eq!(say(&engine, "hello", MINUTE), Ok(8000));
    }
    let text = "word ".repeat(20);
    let ten = Duration::from_secs(10);
    let tries = (0..50).position(|_| say(&engine, &text, ten) == Ok(8000));
    assert!(tries.is_some_and(|tries| tries > 0), "{tries:?}");
    let before = started(folder.path());
    // While one speaks, another waits whose time is nearly over then.
    std::thread::scope(|scope| {
        scope.spawn(|| say(&engine, "pause", MINUTE));
        while !folder.path().join("paused").exists() {
            std::thread::yield_now();
        }
        let late = say(&engine, "hello", Duration::from_millis(2100));
        assert!(matches!(late, Err(SpeechError::Busy { .. })), "{late:?}");
    });
    assert_eq!(started(folder.path()), before);
}

#[test]
fn there_are_never_more_processes_than_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), 2);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(say(&engine, "hello", MINUTE), Ok(8000)));
        }
    });
    assert!((1..=2).contains(&started(folder.path())));
}
