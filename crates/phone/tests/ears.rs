//! Who answers and what the network says, on a corpus that is made here: greetings of persons and of machines in two languages, spoken by espeak-ng in many voices, and
//! tones of several networks; loud and soft, with noise, through G.711. All of it is synthetic.
//!
//! `EARS_ROUNDS=40 EARS_HOURS=8 cargo test --package phone --test ears -- --nocapture` (`make ears`) is the long form.

mod corpus;

use std::collections::BTreeMap;
use std::time::Duration;

use g711::EncodedAudio;
use phone::media::ears::{Answerer, EarReport, Ears, LineTone};
use phone::test_phone::LineSound;
use sound::speech::{Espeak, SpeakingTime, SpeechEngine};
use sound::{RATE, Utterance, VoiceOptions, level};

use crate::corpus::Random;

/// The quick run: so many calls of each kind, and six minutes of speech.
const SHORT_ROUNDS: usize = 12;
const SHORT_HOURS: f64 = 0.1;
/// Whoever is not known to be a machine after this time counts as a human (`LONGEST_CHECK`).
const CHECK_SECONDS: usize = 4;

const ENGLISH_VOICES: [&str; 4] = ["en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp"];
const CHINESE_VOICE: &str = "cmn-latn-pinyin";
/// For a greeting.
const PATIENCE: Duration = Duration::from_secs(60);
const SPEAKERS: [&str; 12] = [
    "", "+m1", "+m3", "+m5", "+m7", "+f1", "+f2", "+f3", "+f4", "+f5", "+Annie", "+grandma",
];

const PERSONS: [&str; 10] = [
    "Hello?",
    "Yes?",
    "Hello, who is there?",
    "Hi, it's Tom.",
    "Good morning.",
    "喂？",
    "喂，你好。",
    "你好，哪位？",
    "您好。",
    "喂，请讲。",
];
const MACHINES: [&str; 8] = [
    "Hello, you have reached the voice mail of Susan Miller. I cannot take your call at the moment. Please leave a message after the tone.",
    "Hi, this is John. I am not at home right now. Leave your name and number and I will call you back.",
    "The person you are calling is not available. At the tone, please record your message. When you have finished, you may hang up.",
    "You have reached five five five one two three four. Please leave a message.",
    "您好，我现在不方便接听电话，请在提示音后留言，我会尽快给您回电。",
    "您好，您所拨打的用户暂时无法接听，请在滴声之后留言，录音结束请挂机。",
    "你好，这里是王先生的语音信箱，请留下您的姓名和电话号码，谢谢。",
    "对不起，您拨打的电话已启用来电助手，请在提示音后留下您的信息。",
];
/// What is said at a desk: as long as a machine's greeting, and no machine. It shows where this way of telling them apart ends.
const DESKS: [&str; 4] = [
    "Good morning, Miller and Sons, this is Mary speaking, how can I help you?",
    "Hello, customer service of the water works, what can I do for you?",
    "您好，这里是客户服务中心，请问有什么可以帮您？",
    "你好，市场部，我是小李，请问您找哪一位？",
];

impl Random {
    /// Between these.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.below(10_000) as f64 / 10_000.0
    }

    /// So much, up or down.
    fn within(&mut self, most: u8) -> i16 {
        let step = self.below(2 * usize::from(most) + 1);
        i16::try_from(step).unwrap() - i16::from(most)
    }
}

/// Somebody says this: samples of 8 kHz, its active level being 1. By our own engine: espeak-ng alone spells most Chinese characters in English.
fn speech(random: &mut Random, text: &str) -> Vec<f32> {
    let speaker = random.of(&SPEAKERS);
    let engine = Espeak {
        english_voice: format!("{}{speaker}", random.of(&ENGLISH_VOICES)),
        chinese_voice: format!("{CHINESE_VOICE}{speaker}"),
        ..Espeak::default()
    };
    let utterance = Utterance {
        text: text.to_owned(),
        options: VoiceOptions {
            speed: random.within(150),
            pitch: random.within(200),
            ..VoiceOptions::default()
        },
    };
    let mut time = SpeakingTime::new(PATIENCE);
    let mut samples = engine
        .speak(&utterance, &mut time)
        .expect("espeak-ng is installed: scripts/setup");
    let loudness = level::active_rms(&samples);
    level::scale(&mut samples, 1.0 / loudness.max(1e-3));
    samples
}

/// A line: sounds one after the other, with a noise over all of them.
#[derive(Default)]
struct Line(Vec<f32>);

impl Line {
    fn silence(mut self, seconds: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "some seconds"
        )]
        let samples = (seconds * f64::from(RATE)) as usize;
        self.0.resize(self.0.len() + samples, 0.0);
        self
    }

    /// So loud, in decibels of full scale.
    fn says(mut self, speech: &[f32], decibels: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a level")]
        let gain = level::from_db(decibels as f32);
        self.0.extend(speech.iter().map(|sample| sample * gain));
        self
    }

    fn sounds(mut self, sound: &LineSound) -> Self {
        let samples = sound.samples();
        self.0
            .extend(samples.iter().map(|sample| f32::from(*sample) / 32_768.0));
        self
    }

    /// As the other end receives it.
    fn received(mut self, random: &mut Random, noise_decibels: f64) -> Vec<i16> {
        #[expect(clippy::cast_possible_truncation, reason = "a level")]
        let noise = level::from_db(noise_decibels as f32);
        for sample in &mut self.0 {
            // The sum of twelve even numbers is nearly normal.
            let sum: f64 = (0..12).map(|_| random.between(-0.5, 0.5)).sum();
            #[expect(clippy::cast_possible_truncation, reason = "a sample")]
            let sum = sum as f32;
            *sample += sum * noise;
        }
        EncodedAudio::encode(&level::to_whole(&self.0)).decode()
    }
}

/// What the ears know of the first seconds, and what they know in the end.
fn heard(samples: &[i16]) -> (EarReport, EarReport) {
    let mut ears = Ears::default();
    let mut first = EarReport::default();
    for (place, sample) in samples.iter().enumerate() {
        ears.hear(*sample);
        if place == CHECK_SECONDS * RATE as usize {
            first = ears.report();
        }
    }
    let last = ears.report();
    if samples.len() <= CHECK_SECONDS * RATE as usize {
        first = last;
    }
    (first, last)
}

/// What a call comes to, in a word.
fn verdict(report: &EarReport) -> &'static str {
    match (report.tone, report.answerer) {
        (Some(LineTone::Busy), _) => "busy",
        (Some(LineTone::Congestion), _) => "congestion",
        (Some(LineTone::Dial), _) => "dial tone",
        (Some(LineTone::Special), _) => "SIT",
        (Some(LineTone::Fax), _) => "fax",
        (Some(LineTone::Announcement), _) => "announcement",
        (None, Some(Answerer::Machine)) => "machine",
        (None, Some(Answerer::Human | Answerer::Unknown) | None) => "human",
    }
}

/// What was said of each kind of call.
#[derive(Default)]
struct Confusion(BTreeMap<&'static str, BTreeMap<&'static str, usize>>);

impl Confusion {
    fn record(&mut self, kind: &'static str, said: &'static str) {
        *self.0.entry(kind).or_default().entry(said).or_default() += 1;
    }

    fn right(&self, kind: &str, said: &str) -> f64 {
        let row = &self.0[kind];
        let all: usize = row.values().sum();
        row.get(said).copied().unwrap_or(0) as f64 / all as f64
    }

    fn print(&self) {
        for (kind, row) in &self.0 {
            let all: usize = row.values().sum();
            let said: Vec<_> = row
                .iter()
                .map(|(said, count)| format!("{said} {count}"))
                .collect();
            println!("{kind:<34} of {all:>5}: {}", said.join(", "));
        }
    }
}

fn rounds() -> usize {
    let rounds = std::env::var("EARS_ROUNDS").ok();
    let rounds = rounds.and_then(|rounds| rounds.parse().ok());
    rounds.unwrap_or(SHORT_ROUNDS)
}

#[test]
fn persons_and_machines_are_told_apart() {
    let mut random = Random(2027);
    let mut confusion = Confusion::default();
    let (mut beeps, mut early, mut machines) = (0, 0, 0);
    for _ in 0..rounds() {
        for (kind, texts) in [
            ("a person", &PERSONS[..]),
            ("a machine", &MACHINES[..]),
            ("somebody at a desk", &DESKS[..]),
        ] {
            let text = random.of(texts);
            let voice = speech(&mut random, text);
            let loud = random.between(-36.0, -14.0);
            let noise = loud - random.between(15.0, 45.0);
            let delay = random.between(0.05, 1.5);
            let line = Line::default().silence(delay).says(&voice, loud);
            if kind != "a machine" {
                let samples = line.silence(4.0).received(&mut random, noise);
                confusion.record(kind, verdict(&heard(&samples).0));
                continue;
            }
            let greeting = line.silence(random.between(0.2, 1.2));
            let before = greeting.0.len();
            let hertz = random.of(&[440.0, 800.0, 1000.0, 1400.0, 2000.0]);
            let millis = 200 + random.below(700);
            let beep = LineSound::default().tone(&[hertz], millis);
            let samples = greeting
                .sounds(&beep)
                .silence(1.5)
                .received(&mut random, noise);
            let (first, last) = heard(&samples);
            confusion.record(kind, verdict(&first));
            if first.answerer == Some(Answerer::Machine) {
                machines += 1;
                beeps += usize::from(last.takes_message);
                early += usize::from(heard(&samples[..before]).1.takes_message);
            }
        }
    }
    confusion.print();
    println!(
        "of {machines} machines: the beep was heard of {beeps}, and something else as a beep of {early}"
    );
    assert!(confusion.right("a person", "human") >= 0.95);
    assert!(confusion.right("a machine", "machine") >= 0.95);
    assert!(beeps * 100 >= machines * 95);
    assert!(early * 100 <= machines * 5);
}

#[test]
fn tones_of_networks_are_known_within_their_tolerance() {
    let mut random = Random(450);
    let mut confusion = Confusion::default();
    for _ in 0..rounds() {
        for (kind, hertz, tolerance, tone, pause) in [
            ("busy 450 Hz 350/350 (China)", &[450.0][..], 25.0, 350, 350),
            (
                "congestion 450 Hz 700/700 (China)",
                &[450.0],
                25.0,
                700,
                700,
            ),
            ("busy 425 Hz 500/500", &[425.0], 15.0, 500, 500),
            ("congestion 425 Hz 250/250", &[425.0], 15.0, 250, 250),
            ("busy 480+620 Hz 500/500", &[480.0, 620.0], 5.0, 500, 500),
            ("busy 400 Hz 375/375", &[400.0], 20.0, 375, 375),
        ] {
            let error = random.between(-tolerance, tolerance);
            let hertz: Vec<f64> = hertz.iter().map(|hertz| hertz + error).collect();
            // Tones and pauses are longer or shorter than they should be.
            let slower = random.between(0.92, 1.08);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "some milliseconds"
            )]
            let millis = |millis: usize| (millis as f64 * slower) as usize;
            let begins = random.below(millis(tone));
            let sound = LineSound::default()
                .tone(&hertz, begins)
                .silence(millis(pause))
                .rhythm(&hertz, millis(tone), millis(pause), 3);
            let level = random.between(-22.0, 2.0);
            let line = Line::default().sounds(&sound.louder(level)).silence(0.5);
            // The tones have -14 dB of full scale, or -17 where they are two.
            let noise = -17.0 + level - random.between(15.0, 40.0);
            let samples = line.received(&mut random, noise);
            confusion.record(kind, verdict(&heard(&samples).1));
        }
    }
    confusion.print();
    for (kind, row) in &confusion.0 {
        let said = kind.split(' ').next().unwrap();
        assert!(confusion.right(kind, said) >= 0.95, "{kind}: {row:?}");
    }
}

/// `EARS_HOURS` asks for more speech. Nothing of it is a tone of the network, and nothing a beep.
#[test]
fn no_speech_is_heard_as_a_tone() {
    let hours = std::env::var("EARS_HOURS").ok();
    let hours = hours.and_then(|hours| hours.parse().ok());
    let hours: f64 = hours.unwrap_or(SHORT_HOURS);
    let mut random = Random(4733);
    let (mut seconds, mut tones, mut beeps, mut texts) = (0.0, 0, 0, 0);
    while seconds < hours * 3600.0 {
        let parts: Vec<_> = (0..6).map(|_| random.of(&MACHINES)).collect();
        let is_english = random.below(2) == 0;
        let text: Vec<_> = parts
            .into_iter()
            .filter(|text| text.is_ascii() == is_english)
            .collect();
        if text.is_empty() {
            continue;
        }
        let voice = speech(&mut random, &text.join(" "));
        let loud = random.between(-36.0, -14.0);
        let samples = Line::default()
            .says(&voice, loud)
            .received(&mut random, loud - 30.0);
        seconds += samples.len() as f64 / f64::from(RATE);
        texts += 1;
        let (_, last) = heard(&samples);
        tones += usize::from(last.tone.is_some());
        beeps += usize::from(last.takes_message);
    }
    println!(
        "{:.2} hours of speech in {texts} texts: {tones} tones of a network, {beeps} beeps",
        seconds / 3600.0
    );
    assert_eq!(tones, 0);
    assert!(beeps * 100 <= texts * 5, "{beeps} of {texts}");
}
