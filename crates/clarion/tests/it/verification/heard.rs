//! What the callee hears of a code: a recogniser nobody here wrote understands the English digits, and every character, in either language, stands in
//! its place.

use std::sync::Arc;

use g711::Codec;
use phone::test_phone::{HeardCall, Script};
use sound::Utterance;
use sound::speech::{Espeak, Speaker};
use sound::spelled::SpelledCharacter;
use sound::text::Language;
use sound::{VoiceChoice, VoiceOptions};

use super::placed;
use crate::calls::stage::Stage;
use crate::listener::{Grammar, understood};
use crate::support::PATIENCE;
use crate::support::telephone::Telephone;

/// Nothing is said before the code.
const CODE_ALONE: &str = "[calls]\ncode_introduction_zh = \"\"\ncode_introduction_en = \"\"\n";
/// Of a code.
const LENGTH: usize = 6;
const DIGITS: [&str; 10] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
];

struct Room {
    stage: Stage,
    telephone: Telephone,
}

impl Room {
    async fn new() -> Self {
        let telephone = Telephone::that(Script::answer()).await;
        let stage = Stage::on(&telephone.wide_trunk("telephone", ""), CODE_ALONE).await;
        Self { stage, telephone }
    }

    async fn heard(&self, number: usize, code: &str, lang: &str) -> HeardCall {
        let fields = format!(
            "\"to\":\"138000000{number:02}\",\"verifyCode\":\"{code}\",\"lang\":\"{lang}\""
        );
        let sid = placed(&self.stage, &fields).await;
        self.telephone.has_heard(&sid).await
    }
}

fn samples(heard: &HeardCall) -> Vec<f32> {
    assert_eq!((heard.codec, heard.lost()), (Some(Codec::Pcma), 0));
    let sound = heard.sound();
    let decoded = sound.iter().map(|byte| Codec::Pcma.decode(*byte));
    decoded.map(|sample| f32::from(sample) / 32_768.0).collect()
}

/// Twenty codes of six digits, in which every digit stands several times.
fn codes() -> Vec<String> {
    let mut state = 7_u32;
    let mut digit = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_digit((state >> 16) % 10, 10).unwrap()
    };
    let codes = (0..20).map(|_| (0..LENGTH).map(|_| digit()).collect());
    codes.collect()
}

fn in_words(code: &str) -> String {
    let names = code.bytes().map(|digit| DIGITS[usize::from(digit - b'0')]);
    names.collect::<Vec<_>>().join(" ")
}

/// Any of a million codes might be said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recogniser_understands_every_digit_of_twenty_english_codes() {
    let room = Room::new().await;
    let codes = codes();
    let calls = codes.iter().enumerate();
    let heard = calls.map(|(number, code)| room.heard(number, code, "en"));
    let heard = futures_util::future::join_all(heard).await;
    let sounds: Vec<_> = heard.iter().map(samples).collect();
    let digit = format!("({})", DIGITS.join(" | "));
    let grammar = Grammar {
        rule: vec![digit; LENGTH].join(" "),
        is_adapted: true,
    };
    let understood = tokio::task::spawn_blocking(move || understood(&grammar, &sounds));
    let said: Vec<_> = codes.iter().map(|code| in_words(code)).collect();
    assert_eq!(understood.await.unwrap(), said);
}

/// A character as this machine says it, without the pause behind it.
fn rendered(character: char, language: Language) -> Vec<f32> {
    let speaker = Speaker::new(Vec::new(), Arc::new(Espeak::default()), PATIENCE);
    let speech = Utterance {
        text: SpelledCharacter::new(character, language)
            .unwrap()
            .name()
            .to_owned(),
        options: VoiceOptions {
            speed: -150,
            ..VoiceOptions::default()
        },
    };
    speaker
        .speak(&speech, &VoiceChoice::default())
        .unwrap()
        .samples
}

/// How much two sounds are alike, from -1 to 1.
fn likeness(one: &[f32], other: &[f32]) -> f32 {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let weight = (product(one, one) * product(other, other)).sqrt();
    if weight > 0.0 {
        product(one, other) / weight
    } else {
        0.0
    }
}

/// Samples before the first character, and between two of them.
const LEAD_IN: usize = 8 * 500;
const PAUSE: usize = 8 * 600;
/// Sounds begin with a packet.
const PACKET: usize = 160;

/// Whether these characters are heard, each where the one before it and its pause have ended.
fn is_heard(sound: &[f32], code: &str, language: Language) -> Result<(), String> {
    let mut from = LEAD_IN;
    for character in code.chars() {
        let wanted = rendered(character, language);
        let likeness_at = |place: usize| {
            let part = sound.get(place..place + wanted.len());
            (part.map_or(0.0, |part| likeness(part, &wanted)), place)
        };
        let places = from - PACKET..from + PACKET;
        let best = places.map(likeness_at).max_by(|a, b| a.0.total_cmp(&b.0));
        let (likeness, place) = best.unwrap_or_default();
        if likeness < 0.9 {
            return Err(format!("{character}: {likeness:.2}"));
        }
        let behind = place + wanted.len();
        let pause = &sound[behind + PACKET..behind + PAUSE - PACKET];
        let loudest = pause
            .iter()
            .fold(0.0, |most: f32, sample| most.max(sample.abs()));
        if loudest > 0.01 {
            return Err(format!("{character}: no pause behind it"));
        }
        from = behind + PAUSE;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_character_stands_in_its_place_and_a_wrong_order_is_noticed() {
    let room = Room::new().await;
    let codes = [
        ("01234567", "zh", Language::Chinese),
        ("89ABCDEF", "zh", Language::Chinese),
        ("GHIJKLMN", "en", Language::English),
        ("OPQRSTUV", "en", Language::English),
        ("WXYZ", "zh", Language::Chinese),
        ("01234567", "en", Language::English),
        ("8989", "en", Language::English),
    ];
    let calls = codes.into_iter().enumerate();
    let heard = calls.map(|(number, (code, lang, _))| room.heard(number, code, lang));
    let heard = futures_util::future::join_all(heard).await;
    for ((code, _, language), heard) in codes.into_iter().zip(&heard) {
        let heard = samples(heard);
        is_heard(&heard, code, language).unwrap();
        let (first, rest) = code.split_at(1);
        let (second, rest) = rest.split_at(1);
        let swapped = format!("{second}{first}{rest}");
        assert!(is_heard(&heard, &swapped, language).is_err(), "{swapped}");
    }
}
