//! Voices by configuration: they speak, they fail, they hang, and the embedded voice stands in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sound::speech::{
    CommandEngine, Espeak, HttpEngine, NamedVoice, RequestForm, Speaker, SpeakingTime,
    SpeechEngine, SpeechError, VoiceChoice,
};
use sound::wav::{WavLimits, mono_16_bit};
use sound::{Utterance, VoiceOptions};

use super::support::speech;

fn shell(script: &str) -> CommandEngine {
    CommandEngine {
        program: "sh".into(),
        arguments: vec!["-c".into(), script.into()],
        time: Duration::from_secs(60),
        limits: WavLimits::default(),
        version: String::new(),
    }
}

fn tone() -> Vec<u8> {
    let wave = |at: u32| {
        if (at / 8).is_multiple_of(2) {
            8000
        } else {
            -8000
        }
    };
    mono_16_bit(&(0..16_000).map(wave).collect::<Vec<_>>(), 16_000)
}

fn in_a_minute() -> SpeakingTime<'static> {
    SpeakingTime::new(Duration::from_secs(60))
}

/// With the embedded voice behind them.
fn falling_back(voices: Vec<NamedVoice>) -> Speaker {
    let embedded = Arc::new(Espeak::default());
    Speaker::new(voices, embedded, Duration::from_secs(60))
}

fn hello() -> Utterance {
    speech("hello", VoiceOptions::default())
}

#[test]
fn an_external_command_gets_the_text_and_the_options_and_answers_with_wav() {
    let folder = tempfile::tempdir().unwrap();
    let (wav, said) = (folder.path().join("tone.wav"), folder.path().join("said"));
    std::fs::write(&wav, tone()).unwrap();
    let script = format!(
        "{{ cat; echo \" $VOICE_SPEED $VOICE_PITCH\"; }} > {}; cat {}",
        said.display(),
        wav.display()
    );
    let voice = VoiceOptions {
        speed: 100,
        pitch: -200,
        ..VoiceOptions::default()
    };
    let text = "-v 'x'; `rm`; $(y) <b>&\"";
    let samples = shell(&script)
        .speak(&speech(text, voice), &mut in_a_minute())
        .unwrap();
    assert_eq!(samples.len(), 8000);
    assert_eq!(
        std::fs::read_to_string(&said).unwrap(),
        format!("{text} 100 -200\n")
    );
}

#[test]
fn a_command_sees_nothing_of_our_environment() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let _ = shell(&format!("cat >/dev/null; env > {}", seen.display()))
        .speak(&hello(), &mut in_a_minute());
    let seen = std::fs::read_to_string(&seen).unwrap();
    assert!(!seen.contains("CARGO"), "{seen}");
}

#[test]
fn a_command_that_hangs_is_ended_with_all_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = format!("sleep 60 & echo $! > {}; wait", file.display());
    let engine = CommandEngine {
        // Long enough for a shell to start on a busy machine.
        time: Duration::from_secs(2),
        ..shell(&script)
    };
    let failed = engine.speak(&hello(), &mut in_a_minute()).unwrap_err();
    assert!(matches!(failed, SpeechError::TooSlow { .. }), "{failed}");
    let child = std::fs::read_to_string(&file).unwrap();
    let stat = format!("/proc/{}/stat", child.trim());
    let until = Instant::now() + Duration::from_secs(30);
    // Gone, or dead and waiting for somebody to notice.
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < until, "the grandchild is still there");
        std::thread::yield_now();
    }
}

#[test]
fn a_command_that_fails_or_talks_too_much_is_said_to_have_done_so() {
    let failed = shell("cat >/dev/null; echo no voice today >&2; exit 3")
        .speak(&hello(), &mut in_a_minute())
        .unwrap_err();
    assert_eq!(
        failed.to_string(),
        "sh failed: exit status: 3, no voice today"
    );
    let failed = shell("cat >/dev/null; echo not sound")
        .speak(&hello(), &mut in_a_minute())
        .unwrap_err();
    assert_eq!(
        failed.to_string(),
        "what sh sent cannot be played: this is not a sound file we know; a voice file must be WAV"
    );
    let endless = CommandEngine {
        limits: WavLimits {
            bytes: 100_000,
            seconds: 10,
        },
        ..shell("cat /dev/zero")
    };
    assert_eq!(
        endless
            .speak(&hello(), &mut in_a_minute())
            .unwrap_err()
            .to_string(),
        "sh sent more than 100000 bytes"
    );
    let missing = CommandEngine {
        program: "/no/such/voice".into(),
        ..shell("")
    };
    assert!(matches!(
        missing.speak(&hello(), &mut in_a_minute()),
        Err(SpeechError::NotStarted { .. })
    ));
    // One that never reads its input does not hold anybody up either.
    let deaf = shell("exec 0<&-; echo x");
    assert!(matches!(
        deaf.speak(
            &speech(&"long ".repeat(100_000), VoiceOptions::default()),
            &mut in_a_minute()
        ),
        Err(SpeechError::NotWav { .. })
    ));
}

#[test]
fn an_http_voice_gets_json_and_answers_with_wav() {
    let seen = Arc::new(std::sync::Mutex::new(String::new()));
    let noted = Arc::clone(&seen);
    let engine = HttpEngine {
        url: "http://voice.example/speak".into(),
        form: RequestForm::Json,
        transport: Arc::new(move |url: &str, json: String, limit: usize, _: Duration| {
            *noted.lock().unwrap() = format!("{url} {limit} {json}");
            Ok(tone())
        }),
        time: Duration::from_secs(1),
        limits: WavLimits::default(),
        version: "2".into(),
    };
    let voice = VoiceOptions {
        speed: 5,
        pitch: 7,
        ..VoiceOptions::default()
    };
    assert_eq!(
        engine
            .speak(&speech("say \"this\"", voice), &mut in_a_minute())
            .unwrap()
            .len(),
        8000
    );
    let seen = seen.lock().unwrap().clone();
    let (to, json) = seen.split_at(seen.find('{').unwrap());
    assert_eq!(to, "http://voice.example/speak 20000000 ");
    // The order of the keys depends on how the JSON library was built.
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(json).unwrap(),
        serde_json::json!({"pitch": 7, "speed": 5, "text": "say \"this\""})
    );
    assert_ne!(
        engine.identity(),
        HttpEngine {
            version: "3".into(),
            ..engine.clone()
        }
        .identity()
    );
}

#[derive(Debug)]
struct Flaky {
    asked: AtomicU32,
    fails: u32,
}

impl SpeechEngine for Flaky {
    fn identity(&self) -> String {
        "flaky".into()
    }

    fn speak(&self, _: &Utterance, _: &mut SpeakingTime<'_>) -> Result<Vec<f32>, SpeechError> {
        if self.asked.fetch_add(1, Ordering::Relaxed) < self.fails {
            return Err(SpeechError::Failed {
                who: "flaky".into(),
                reason: "not now".into(),
            });
        }
        Ok(vec![0.1; 800])
    }
}

#[test]
fn a_voice_that_fails_is_asked_again_and_then_the_embedded_one_stands_in() {
    let speaker = |fails| {
        let engine = Arc::new(Flaky {
            asked: AtomicU32::new(0),
            fails,
        });
        let mut better = NamedVoice::new("better", engine.clone());
        better.limits.tries = 3;
        (engine, falling_back(vec![better]))
    };
    let (engine, twice) = speaker(2);
    let spoken = twice.speak(&hello(), &VoiceChoice::default()).unwrap();
    assert!(!spoken.is_fallback && spoken.samples.len() == 800);
    assert_eq!(engine.asked.load(Ordering::Relaxed), 3);
    let (engine, always) = speaker(99);
    let spoken = always.speak(&hello(), &VoiceChoice::default()).unwrap();
    assert!(spoken.is_fallback && spoken.samples.len() > 1000);
    assert_eq!(engine.asked.load(Ordering::Relaxed), 3);
    assert_eq!(&*spoken.voice, "espeak");
    let identity = always.identity("hello", &VoiceChoice::default());
    assert!(identity.starts_with("flaky"), "{identity}");
}

#[test]
fn one_deadline_holds_for_a_whole_text_however_many_phrases_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (program, started, wav) = (path("slow"), path("started"), path("tone.wav"));
    std::fs::write(&wav, tone()).unwrap();
    // Sixty phrases take six seconds at least.
    let script = format!(
        "#!/bin/sh\necho x >> {}\nsleep 0.1\nexec cat {}\n",
        started.display(),
        wav.display()
    );
    // Another program writes it: one that this process writes is busy as long as another test starts a child that has inherited it.
    let writing = ["-c", "printf '%s\\n' \"$1\" > \"$0\"; chmod 700 \"$0\""];
    let mut shell = std::process::Command::new("sh");
    shell.args(writing).arg(&program).arg(script);
    assert!(shell.status().unwrap().success());
    let engine = Espeak {
        program: program.to_str().unwrap().to_owned(),
        time: Duration::from_secs(1),
        ..Espeak::default()
    };
    let text = speech(&"中国 and ".repeat(30), VoiceOptions::default());
    assert_eq!(engine.calls(&text).len(), 60);
    let (short, long) = (Duration::from_secs(1), Duration::from_secs(60));
    // The limit of the engine or that of the whole, whichever ends first.
    for (time, whole) in [(short, long), (long, short)] {
        let engine = Espeak {
            time,
            ..engine.clone()
        };
        let failed = engine.speak(&text, &mut SpeakingTime::new(whole));
        assert!(
            matches!(failed, Err(SpeechError::TooSlow { .. })),
            "{failed:?}"
        );
        let begun = std::fs::read_to_string(&started).unwrap_or_default();
        let begun = begun.lines().count();
        assert!(begun < 20, "{begun} phrases were begun");
        let _ = std::fs::remove_file(&started);
    }
}

#[test]
fn a_text_that_changes_language_a_thousand_times_starts_the_program_a_bounded_number_of_times() {
    let calls = |text: &str| {
        Espeak::default()
            .calls(&speech(text, VoiceOptions::default()))
            .len()
    };
    let (thousand, two_thousand) = (calls(&"a中".repeat(500)), calls(&"a中".repeat(1000)));
    assert!(
        thousand <= 70 && two_thousand <= 80,
        "{thousand} and {two_thousand}"
    );
}

#[test]
fn a_voice_that_hangs_leaves_time_for_the_embedded_one() {
    let embedded = Arc::new(Flaky {
        asked: AtomicU32::new(0),
        fails: 0,
    });
    let mut hanging = NamedVoice::new("hanging", Arc::new(shell("exec sleep 60")));
    hanging.limits.tries = 1000;
    let speaker = Speaker::new(vec![hanging], embedded.clone(), Duration::from_secs(1));
    let spoken = speaker.speak(&hello(), &VoiceChoice::default()).unwrap();
    assert!(spoken.is_fallback);
    assert_eq!(embedded.asked.load(Ordering::Relaxed), 1);
}
