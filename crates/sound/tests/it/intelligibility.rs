//! A listener nobody here wrote: the recogniser of the Python package pocketsphinx, given a grammar of sentences, must pick the one that
//! was said, after the telephone codec.

use sound::VoiceOptions;
use sound::background::NAMES;

use super::listener::{Grammar, understood};
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
    voice: VoiceOptions,
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
        say("natural".into(), sentence, VoiceOptions::default());
    }
    // Each of the others with a part of the sentences, so that the whole is quick.
    for (turn, speed) in USEFUL_SPEEDS.into_iter().enumerate() {
        for sentence in SENTENCES.into_iter().skip(turn).step_by(6) {
            say(
                format!("speed {speed}"),
                sentence,
                VoiceOptions {
                    speed,
                    ..VoiceOptions::default()
                },
            );
        }
    }
    for (number, name) in (1_u8..).zip(NAMES) {
        for sentence in SENTENCES.into_iter().skip(usize::from(number)).step_by(8) {
            say(
                name.into(),
                sentence,
                VoiceOptions {
                    background: number,
                    ..VoiceOptions::default()
                },
            );
        }
    }
    let sounds: Vec<_> = said
        .iter()
        .map(|said| heard(said.sentence, said.voice))
        .collect();
    let grammar = Grammar {
        rule: SENTENCES.join(" | "),
        is_adapted: false,
    };
    let understood = understood(&grammar, &sounds);
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
