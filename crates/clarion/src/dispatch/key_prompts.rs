//! What asks a callee for a key, and what they hear when it is understood: words of the request or of the platform, or a tone.

use std::f32::consts::TAU;
use std::time::Duration;

use g711::EncodedAudio;
use phone::media::stream::PlaybackItem;

use crate::config::{KeySentences, PlatformSentences};
use crate::domain::call::NewCall;
use crate::domain::notice::keys::NoticeKeys;
use crate::domain::notice::silence::NoticeSilence;
use crate::domain::prompt::{CodeLanguage, Prompt, Speech};

const SAMPLES_A_SECOND: u16 = 8000;
/// Loud enough to be heard, and far from the loudest.
const LOUDNESS: f32 = 8000.0;
/// A tone that begins or ends at once is heard as a click.
const FADE: usize = 80;

/// Pitch and length of each tone that asks for a key, and of those that say that it was understood.
const QUESTION: &[(f32, Duration)] = &[(600.0, Duration::from_millis(300))];
const THANKS: &[(f32, Duration)] = &[
    (660.0, Duration::from_millis(150)),
    (880.0, Duration::from_millis(250)),
];

#[derive(Debug)]
pub struct KeyPrompts {
    sentences: PlatformSentences,
    question_tone: EncodedAudio,
    thanks_tone: EncodedAudio,
}

/// Words, and the tone that is heard where there are none or where they cannot be spoken.
#[derive(Debug)]
pub struct KeyPrompt<'a> {
    pub words: Option<Prompt>,
    pub tone: &'a EncodedAudio,
}

impl KeyPrompt<'_> {
    pub fn tone(&self) -> Vec<PlaybackItem> {
        vec![PlaybackItem::Sound(self.tone.clone())]
    }
}

impl KeyPrompts {
    pub fn new(sentences: &PlatformSentences) -> Self {
        Self {
            sentences: sentences.clone(),
            question_tone: tones(QUESTION),
            thanks_tone: tones(THANKS),
        }
    }

    /// The request's own question, or the platform's.
    pub fn question(&self, call: &NewCall, keys: &NoticeKeys) -> KeyPrompt<'_> {
        let (language, sentences) = self.sentences_for(call);
        let silence = call
            .notice
            .as_deref()
            .and_then(|notice| notice.silence.as_ref());
        let platforms = || said(&question(language, sentences, keys, silence), call);
        KeyPrompt {
            words: keys.question.clone().or_else(platforms),
            tone: &self.question_tone,
        }
    }

    pub fn thanks(&self, call: &NewCall) -> KeyPrompt<'_> {
        let (_, sentences) = self.sentences_for(call);
        KeyPrompt {
            words: said(&sentences.thanks, call),
            tone: &self.thanks_tone,
        }
    }

    /// In the language of the call's text.
    fn sentences_for(&self, call: &NewCall) -> (CodeLanguage, &KeySentences) {
        let text = call.prompt.speech.as_ref();
        let language = text.map_or(self.sentences.language, |speech| {
            CodeLanguage::of_text(&speech.text)
        });
        (language, self.sentences.of_keys(language))
    }
}

fn said(text: &str, call: &NewCall) -> Option<Prompt> {
    if text.trim().is_empty() {
        return None;
    }
    let message = call.prompt.speech.as_ref();
    let mut speech = Speech::beside(message, text);
    let of_keys = call.keys().and_then(|keys| keys.voice.clone());
    speech.voice = speech.voice.or(of_keys);
    Some(Prompt::spoken(speech))
}

/// A sentence for each kind of key that may be pressed.
fn question(
    language: CodeLanguage,
    sentences: &KeySentences,
    keys: &NoticeKeys,
    silence: Option<&NoticeSilence>,
) -> String {
    let (or, space) = match language {
        CodeLanguage::Chinese => ("或", ""),
        CodeLanguage::English => (" or ", " "),
    };
    let asked = |sentence: &str, keys: &[char]| {
        let names: Vec<_> = keys.iter().map(|key| key_name(*key, language)).collect();
        (!keys.is_empty()).then(|| sentence.replace("{key}", &names.join(or)))
    };
    // What the key of a silence does is said in a sentence of its own.
    let mut confirm = keys.confirm.clone();
    confirm.retain(|key| silence.is_none_or(|silence| silence.key != *key));
    let silenced = silence.and_then(|silence| {
        let minutes = silence.minutes.to_string();
        let sentence = sentences.silence.replace("{minutes}", &minutes);
        asked(&sentence, &[silence.key])
    });
    let question = [
        asked(&sentences.confirm, &confirm),
        silenced,
        asked(&sentences.replay, keys.replay.as_slice()),
        asked(&sentences.stop, keys.stop.as_slice()),
    ];
    let question: Vec<_> = question.into_iter().flatten().collect();
    question.join(space)
}

fn key_name(key: char, language: CodeLanguage) -> String {
    let name = match (key, language) {
        ('*', CodeLanguage::Chinese) => "星号键",
        ('#', CodeLanguage::Chinese) => "井号键",
        ('*', CodeLanguage::English) => "the star key",
        ('#', CodeLanguage::English) => "the hash key",
        (digit, _) => return digit.to_string(),
    };
    name.to_owned()
}

fn tones(tones: &[(f32, Duration)]) -> EncodedAudio {
    let samples: Vec<i16> = tones
        .iter()
        .flat_map(|(pitch, length)| tone(*pitch, *length))
        .collect();
    EncodedAudio::encode(&samples)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "no sample is louder than the loudness"
)]
fn tone(pitch: f32, length: Duration) -> Vec<i16> {
    let count = usize::from(SAMPLES_A_SECOND) * length.as_millis() as usize / 1000;
    let mut samples = Vec::with_capacity(count);
    let step = TAU * pitch / f32::from(SAMPLES_A_SECOND);
    let mut phase = 0.0_f32;
    for place in 0..count {
        let from_edge = place.min(count - 1 - place).min(FADE);
        let gain = LOUDNESS * from_edge as f32 / FADE as f32;
        samples.push((phase.sin() * gain) as i16);
        phase = (phase + step) % TAU;
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences() -> KeySentences {
        KeySentences {
            confirm: "Press {key} to confirm.".to_owned(),
            replay: "Press {key} to hear it again.".to_owned(),
            stop: String::new(),
            silence: "Press {key} for {minutes} minutes of silence.".to_owned(),
            thanks: "Thank you.".to_owned(),
        }
    }

    fn keys(confirm: &str, replay: Option<char>) -> NoticeKeys {
        NoticeKeys {
            confirm: confirm.chars().collect(),
            replay,
            stop: None,
            wait: 10,
            question: None,
            voice: None,
        }
    }

    #[test]
    fn the_question_names_every_key_that_may_be_pressed() {
        let asked = |keys: &NoticeKeys| question(CodeLanguage::English, &sentences(), keys, None);
        assert_eq!(asked(&keys("1", None)), "Press 1 to confirm.");
        assert_eq!(
            asked(&keys("1#", Some('*'))),
            "Press 1 or the hash key to confirm. Press the star key to hear it again."
        );
        let chinese = KeySentences {
            confirm: "确认请按{key}。".to_owned(),
            replay: "重听请按{key}。".to_owned(),
            ..sentences()
        };
        assert_eq!(
            question(
                CodeLanguage::Chinese,
                &chinese,
                &keys("12", Some('#')),
                None
            ),
            "确认请按1或2。重听请按井号键。"
        );
        let silence = NoticeSilence {
            key: '2',
            url: "http://alerts.example".to_owned(),
            minutes: 30,
            labels: std::collections::BTreeMap::new(),
            author: String::new(),
        };
        assert_eq!(
            question(
                CodeLanguage::English,
                &sentences(),
                &keys("12", None),
                Some(&silence)
            ),
            "Press 1 to confirm. Press 2 for 30 minutes of silence."
        );
    }

    #[test]
    fn tones_are_heard_and_have_no_clicks() {
        let samples = tone(600.0, Duration::from_millis(300));
        assert_eq!(samples.len(), 2400);
        assert_eq!((samples[0], samples[2399]), (0, 0));
        let loudest = samples.iter().map(|sample| sample.unsigned_abs()).max();
        assert!((7900..=8000).contains(&loudest.unwrap()));
        let crossings = samples
            .windows(2)
            .filter(|pair| pair[0] < 0 && pair[1] >= 0);
        assert!((178..=181).contains(&crossings.count()), "600 a second");
    }
}
