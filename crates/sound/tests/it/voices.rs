//! Voices by name: who speaks, who stands in, and what a speech server may do wrong.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sound::speech::{
    Espeak, HttpEngine, NamedVoice, NativeOptions, RequestForm, Speaker, SpeakingTime,
    SpeechEngine, SpeechError, TextForm, VoiceLanguages, VoiceObserver, VoiceOutcome,
};
use sound::wav::{WavLimits, mono_16_bit};
use sound::{RATE, Utterance, VoiceChoice, VoiceOptions};

use super::measure::{median, pitch_contour};
use super::support::{File, sine, speech};

/// Says a tone for any text, and notes what it was given.
#[derive(Debug)]
struct Tone {
    native: NativeOptions,
    given: Mutex<Vec<String>>,
}

impl Tone {
    fn new(native: NativeOptions) -> Arc<Self> {
        let given = Mutex::default();
        Arc::new(Self { native, given })
    }
}

impl SpeechEngine for Tone {
    fn identity(&self) -> String {
        "tone".into()
    }

    fn native(&self) -> NativeOptions {
        self.native
    }

    fn speak(&self, speech: &Utterance, _: &mut SpeakingTime<'_>) -> Result<Vec<f32>, SpeechError> {
        self.given.lock().unwrap().push(speech.text.clone());
        Ok(overtones(120.0))
    }
}

/// A second of something like a voice.
#[expect(clippy::cast_possible_truncation, reason = "samples need no more bits")]
fn overtones(hertz: f64) -> Vec<f32> {
    let parts = [(1.0, 0.2), (2.0, 0.1), (3.0, 0.05)];
    let waves = parts.map(|(times, strength)| sine(hertz * times, RATE, 1.0, strength));
    let sum = |at: usize| waves.iter().map(|wave| wave[at]).sum::<f64>() as f32;
    (0..waves[0].len()).map(sum).collect()
}

fn voice(name: &str, languages: VoiceLanguages, is_remote: bool) -> NamedVoice {
    let mut voice = NamedVoice::new(name, Tone::new(NativeOptions::ALL));
    voice.languages = languages;
    voice.is_remote = is_remote;
    voice.is_own = !is_remote;
    voice
}

fn failing(name: &str, is_remote: bool) -> NamedVoice {
    let transport = |_: &str, _: String, _: usize, _: Duration| Err("not now".to_owned());
    let mut voice = NamedVoice::new(name, Arc::new(server(transport)));
    voice.is_remote = is_remote;
    voice.is_own = !is_remote;
    voice
}

fn server(
    transport: impl Fn(&str, String, usize, Duration) -> Result<Vec<u8>, String> + Send + Sync + 'static,
) -> HttpEngine {
    HttpEngine {
        url: "https://voice.example/v1/audio/speech".into(),
        form: RequestForm::OpenAi {
            model: "m".into(),
            speaker: "anna".into(),
            has_speed: true,
        },
        transport: Arc::new(transport),
        time: Duration::from_secs(60),
        limits: WavLimits::default(),
        version: String::new(),
    }
}

fn speaker(voices: Vec<NamedVoice>) -> Speaker {
    Speaker::new(voices, Arc::new(Espeak::default()), Duration::from_secs(60))
}

fn by_name(name: &str) -> VoiceChoice {
    VoiceChoice {
        name: Some(name.into()),
        is_private: false,
    }
}

fn who(speaker: &Speaker, text: &str, choice: &VoiceChoice) -> String {
    let spoken = speaker.speak(&speech(text, VoiceOptions::default()), choice);
    spoken.unwrap().voice.to_string()
}

#[test]
fn the_voice_that_was_asked_for_speaks_and_otherwise_the_first_of_the_language() {
    let speaker = speaker(vec![
        voice("english", VoiceLanguages::English, false),
        voice("chinese", VoiceLanguages::Chinese, false),
        voice("both", VoiceLanguages::Both, false),
    ]);
    let anyone = VoiceChoice::default();
    for (text, choice, expected) in [
        ("hello", &anyone, "english"),
        ("您好", &anyone, "chinese"),
        ("您好 hello", &anyone, "chinese"),
        ("123", &anyone, "english"),
        ("…", &anyone, "espeak"),
        ("hello", &by_name("both"), "both"),
        ("hello", &by_name("chinese"), "chinese"),
        ("您好", &by_name("english"), "chinese"),
        ("hello", &by_name("nobody"), "english"),
        ("hello", &by_name("espeak"), "espeak"),
    ] {
        assert_eq!(who(&speaker, text, choice), expected, "{text} {choice:?}");
        assert_eq!(&*speaker.first_voice(text, choice), expected);
    }
}

#[test]
fn from_a_voice_on_this_machine_none_goes_to_one_elsewhere() {
    let here = VoiceLanguages::Both;
    let speaker = speaker(vec![
        failing("far", true),
        failing("near", false),
        voice("farther", here, true),
        voice("last", here, false),
    ]);
    let private = VoiceChoice {
        name: Some("far".into()),
        is_private: true,
    };
    for choice in [&VoiceChoice::default(), &by_name("near"), &private] {
        assert_eq!(who(&speaker, "hello", choice), "last", "{choice:?}");
    }
    assert_eq!(who(&speaker, "hello", &by_name("farther")), "farther");
    assert_eq!(&*speaker.first_voice("hello", &private), "near");
    let only_far = self::speaker(vec![voice("far", here, true)]);
    assert_eq!(who(&only_far, "hello", &private), "espeak");
}

#[test]
fn whoever_wants_a_voice_of_this_machine_that_cannot_speak_gets_none_elsewhere() {
    let both = VoiceLanguages::Both;
    let speaker = speaker(vec![
        voice("far", both, true),
        NamedVoice::absent("missing", both),
        voice("english", VoiceLanguages::English, false),
        voice("farther", both, true),
    ]);
    for (text, choice, expected) in [
        ("hello", by_name("missing"), "english"),
        ("您好", by_name("missing"), "espeak"),
        ("您好", by_name("english"), "espeak"),
        ("您好", by_name("removed since"), "espeak"),
        ("您好", by_name("farther"), "farther"),
        ("您好", VoiceChoice::default(), "far"),
    ] {
        assert_eq!(who(&speaker, text, &choice), expected, "{text} {choice:?}");
    }
    // Whoever is behind one that is not installed is not asked either, if it is elsewhere.
    let first = self::speaker(vec![
        NamedVoice::absent("missing", both),
        voice("far", both, true),
    ]);
    assert_eq!(who(&first, "hello", &VoiceChoice::default()), "espeak");
}

#[test]
fn what_is_private_is_told_to_no_program_of_others() {
    let mut program = voice("program", VoiceLanguages::Both, false);
    program.is_own = false;
    let speaker = speaker(vec![program, voice("own", VoiceLanguages::Both, false)]);
    let private = VoiceChoice {
        name: None,
        is_private: true,
    };
    assert_eq!(who(&speaker, "hello", &private), "own");
    assert_eq!(who(&speaker, "hello", &VoiceChoice::default()), "program");
}

#[test]
fn a_voice_is_given_words_or_the_text_as_it_is_written() {
    for (form, given) in [
        (TextForm::Words, "您的code是幺二三四"),
        (TextForm::AsWritten, "您的code是1234"),
    ] {
        let engine = Tone::new(NativeOptions::ALL);
        let mut voice = NamedVoice::new("tone", engine.clone());
        voice.text_form = form;
        who(
            &speaker(vec![voice]),
            "您的code是1234",
            &VoiceChoice::default(),
        );
        assert_eq!(*engine.given.lock().unwrap(), [given]);
    }
}

#[test]
fn speed_and_pitch_are_made_where_a_voice_has_none() {
    let options = VoiceOptions {
        speed: 250,
        pitch: 300,
        ..VoiceOptions::default()
    };
    let made = |native| {
        let speaker = speaker(vec![NamedVoice::new("tone", Tone::new(native))]);
        let spoken = speaker.speak(&speech("hello", options), &VoiceChoice::default());
        let samples = spoken.unwrap().samples;
        let pitches = pitch_contour(&samples).into_iter().map(|(_, hertz)| hertz);
        (samples.len() as f64, median(pitches.collect()))
    };
    let (length, pitch) = made(NativeOptions::ALL);
    assert!((length / 8000.0 - 1.0).abs() < 0.02 && (pitch / 120.0 - 1.0).abs() < 0.05);
    let (shorter, same) = made(NativeOptions {
        speed: false,
        pitch: true,
    });
    let tempo = f64::from(options.tempo());
    assert!((shorter * tempo / length - 1.0).abs() < 0.02, "{shorter}");
    assert!((same / pitch - 1.0).abs() < 0.05, "{same}");
    let (as_long, higher) = made(NativeOptions {
        speed: true,
        pitch: false,
    });
    let factor = f64::from(options.pitch_factor());
    assert!((as_long / length - 1.0).abs() < 0.02, "{as_long}");
    assert!((higher / pitch / factor - 1.0).abs() < 0.06, "{higher}");
}

#[test]
fn a_speech_server_gets_what_its_protocol_names() {
    let seen = Arc::new(Mutex::new(serde_json::Value::Null));
    let noted = Arc::clone(&seen);
    let engine = server(move |_, json, _, _| {
        *noted.lock().unwrap() = serde_json::from_str(&json).unwrap();
        Ok(wav(&[]))
    });
    let options = VoiceOptions {
        speed: 100,
        pitch: 7,
        ..VoiceOptions::default()
    };
    let ask = |engine: &HttpEngine| {
        let mut time = SpeakingTime::new(Duration::from_secs(60));
        engine.speak(&speech("hello", options), &mut time).unwrap();
        seen.lock().unwrap().clone()
    };
    assert_eq!(
        ask(&engine),
        serde_json::json!({
            "model": "m", "input": "hello", "voice": "anna", "response_format": "wav", "speed": 1.15
        })
    );
    let without_speed = HttpEngine {
        form: RequestForm::OpenAi {
            model: "m".into(),
            speaker: "anna".into(),
            has_speed: false,
        },
        ..engine.clone()
    };
    assert_eq!(ask(&without_speed).get("speed"), None);
    assert!(!without_speed.native().speed && engine.native().speed);
    assert_ne!(without_speed.identity(), engine.identity());
}

/// A second of sound with lengths as a server writes them, without as many bytes at its end.
fn wav(changes: &[(&str, u32)]) -> Vec<u8> {
    let mut file = File::pcm16(24_000);
    let mut cut = 0;
    for (what, value) in changes {
        match *what {
            "riff" => file.riff_length = Some(*value),
            "data" => file.data_length = Some(*value),
            "cut" => cut = *value as usize,
            other => panic!("{other}"),
        }
    }
    let bytes = file.with(&sine(200.0, 24_000, 1.0, 0.5));
    bytes[..bytes.len() - cut].to_vec()
}

#[test]
fn lengths_that_a_stream_cannot_know_are_accepted_and_a_sound_that_breaks_off_is_not() {
    let answers = |bytes: Vec<u8>| {
        let engine = server(move |_, _, _, _| Ok(bytes.clone()));
        let mut time = SpeakingTime::new(Duration::from_secs(60));
        engine.speak(&speech("hello", VoiceOptions::default()), &mut time)
    };
    for length in [u32::MAX, 2_000_000_000, 0x7fff_ffff, 0] {
        let streamed = answers(wav(&[("riff", length), ("data", length)]));
        assert_eq!(streamed.unwrap().len(), 8000, "{length}");
    }
    let cut = answers(wav(&[("cut", 20_000)])).unwrap_err();
    assert!(cut.to_string().contains("breaks off"), "{cut}");
    let huge = mono_16_bit(&vec![8000; 8000 * 60], 8000);
    let huge = answers(huge).unwrap_err();
    assert!(huge.to_string().contains("at most 20 s"), "{huge}");
}

#[derive(Debug, Default)]
struct Counted(Mutex<Vec<(String, VoiceOutcome, u64)>>);

impl VoiceObserver for Counted {
    fn record(&self, voice: &str, outcome: VoiceOutcome, characters: u64, _: Duration) {
        let noted = (voice.to_owned(), outcome, characters);
        self.0.lock().unwrap().push(noted);
    }
}

#[test]
fn whatever_a_speech_server_does_the_text_is_spoken_and_the_voice_rests_after_failures() {
    type Answer = fn(Duration) -> Result<Vec<u8>, String>;
    let wrong: [(&str, Answer); 5] = [
        ("slow", |time| {
            let (_server, answer) = std::sync::mpsc::channel::<()>();
            let waited = answer.recv_timeout(time);
            Err(format!("no answer in time: {waited:?}"))
        }),
        ("wrong", |_| Ok(b"{\"error\":\"no such model\"}".to_vec())),
        ("cut off", |_| Ok(wav(&[("cut", 30_000)]))),
        ("huge", |_| Ok(vec![0; WavLimits::default().bytes + 1])),
        ("silent", |_| Ok(mono_16_bit(&vec![0; 24_000], 24_000))),
    ];
    for (name, answer) in wrong {
        let engine = HttpEngine {
            time: Duration::from_millis(100),
            ..server(move |_, _, _, time| answer(time))
        };
        let counted = Arc::new(Counted::default());
        let speaker =
            speaker(vec![NamedVoice::new(name, Arc::new(engine))]).observed_by(counted.clone());
        let begun = Instant::now();
        for text in ["one", "two", "three", "four"] {
            let spoken = speaker.speak(
                &speech(text, VoiceOptions::default()),
                &VoiceChoice::default(),
            );
            let spoken = spoken.unwrap();
            assert_eq!(
                (&*spoken.voice, spoken.is_fallback),
                ("espeak", true),
                "{name}"
            );
            assert!(spoken.samples.len() > 1000, "{name}");
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{name}");
        let counted = counted.0.lock().unwrap();
        let outcomes: Vec<_> = counted.iter().filter(|(voice, ..)| voice == name).collect();
        let failed = outcomes
            .iter()
            .filter(|(_, outcome, _)| *outcome == VoiceOutcome::Failed);
        assert_eq!(failed.count(), 3, "{name}: {counted:?}");
        let passed = (name.to_owned(), VoiceOutcome::Passed, 4);
        assert_eq!(outcomes.last(), Some(&&passed), "{name}");
    }
}

#[test]
fn a_voice_speaks_no_more_characters_a_day_than_it_may() {
    let mut voice = voice("paid", VoiceLanguages::Both, true);
    voice.limits.characters_per_day = Some(12);
    let speaker = speaker(vec![voice]);
    let anyone = VoiceChoice::default();
    assert_eq!(who(&speaker, "hello", &anyone), "paid");
    assert_eq!(who(&speaker, "world", &anyone), "paid");
    assert_eq!(who(&speaker, "again", &anyone), "espeak");
    assert_eq!(
        who(&speaker, "me", &anyone),
        "paid",
        "there is room for two"
    );
}
