//! What the callee hears, byte for byte, beside what it should be. The expectation is made here from the parts of `sound`, or by hand: nothing of
//! what puts a prompt together in the server takes part in it.

use std::sync::Arc;

use clarion::domain::call::CallSid;
use g711::Codec;
use phone::ending::Side;
use phone::test_phone::{HeardCall, Script};
use sound::speech::{Espeak, Speaker};
use sound::wav::{Wav, WavLimits, mono_16_bit};
use sound::{EncodedAudio, Utterance, VoiceChoice, VoiceOptions, level, telephone};

use super::stage::Stage;
use crate::audio_files::upload;
use crate::support::telephone::Telephone;
use crate::support::{PATIENCE, status_code};

const FRAME: usize = 160;
const LEAD_IN_MS: usize = 500;
const LEAD_OUT_MS: usize = 300;

/// What is sent, in A-law.
struct Expected(Vec<u8>);

impl Expected {
    fn silence(millis: usize) -> Self {
        Self(vec![Codec::Pcma.silence(); millis * 8])
    }

    fn then(mut self, sound: &[u8]) -> Self {
        self.0.extend_from_slice(sound);
        self
    }

    fn pause(self, millis: usize) -> Self {
        self.then(&Self::silence(millis).0)
    }

    /// All of it, to the last frame; where it differs is said by frame, because nobody reads ten thousand bytes.
    fn is(self, heard: &HeardCall) {
        let expected = self.pause(LEAD_OUT_MS).0;
        assert_eq!(heard.codec, Some(Codec::Pcma));
        assert_eq!((heard.lost(), heard.hung_up_by), (0, Some(Side::Them)));
        let sound = heard.sound();
        let frames = |bytes: &[u8]| bytes.chunks(FRAME).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let (sound, expected) = (frames(&sound), frames(&expected));
        let wrong: Vec<usize> = (0..sound.len().max(expected.len()))
            .filter(|frame| sound.get(*frame) != expected.get(*frame))
            .collect();
        assert!(
            wrong.is_empty(),
            "{} frames were heard where {} are expected; {} differ, the first ones {:?}",
            sound.len(),
            expected.len(),
            wrong.len(),
            &wrong[..wrong.len().min(5)]
        );
    }
}

fn spoken(text: &str, voice: VoiceOptions) -> Vec<u8> {
    let speaker = Speaker::new(Vec::new(), Arc::new(Espeak::default()), PATIENCE);
    let speech = Utterance {
        text: text.to_owned(),
        options: voice,
    };
    encoded(
        &speaker
            .speak(&speech, &VoiceChoice::default())
            .unwrap()
            .samples,
    )
}

fn played(wav: &[u8]) -> Vec<u8> {
    let wav = Wav::read(wav, &WavLimits::default()).unwrap();
    encoded(&telephone::mastered(wav.for_the_line(), level::SPEECH_DB))
}

fn encoded(samples: &[f32]) -> Vec<u8> {
    EncodedAudio::encode(&level::to_whole(samples))
        .bytes(Codec::Pcma)
        .to_vec()
}

/// No two places of it sound alike.
fn sweep(samples: i32, step: i32) -> Vec<i16> {
    let sample = |at: i32| i16::try_from(at * at / 7 * step % 16_000 - 8_000).unwrap();
    (0..samples).map(sample).collect()
}

struct Hall {
    stage: Stage,
    telephone: Telephone,
}

impl Hall {
    async fn new() -> Self {
        let telephone = Telephone::that(Script::answer()).await;
        let stage = Stage::on(&telephone.wide_trunk("telephone", ""), "").await;
        Self { stage, telephone }
    }

    async fn upload(&self, name: &str, wav: &[u8]) {
        let answer = upload(&self.stage.server, name, wav).await;
        assert_eq!(status_code(&answer), "000000", "{answer}");
    }

    async fn heard(&self, number: &str, extra: &str) -> HeardCall {
        let sid: CallSid = self.stage.call(number, extra).await;
        self.telephone.has_heard(&sid).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_files_are_heard_one_after_the_other() {
    let hall = Hall::new().await;
    // One as the line has it, the other at another rate and not of whole frames.
    let first = mono_16_bit(&sweep(40 * 160, 3), 8000);
    let second = mono_16_bit(&sweep(12_345, 5), 22_050);
    hall.upload("first.wav", &first).await;
    hall.upload("second.wav", &second).await;
    let heard = hall
        .heard("13800000001", "\"mediaName\":\"first.wav;second.wav\"")
        .await;
    Expected::silence(LEAD_IN_MS)
        .then(&played(&first))
        .then(&played(&second))
        .is(&heard);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_is_heard_in_the_voice_that_was_asked_for() {
    let hall = Hall::new().await;
    let heard = hall
        .heard(
            "13800000001",
            "\"mediaTxt\":\"您好 hello\",\"txtSpeed\":\"200\",\"txtVolume\":\"-6\",\"txtPitch\":\"-150\"",
        )
        .await;
    let voice = VoiceOptions {
        speed: 200,
        volume: -6,
        pitch: -150,
        background: 0,
    };
    let expected = spoken("您好 hello", voice);
    assert_ne!(expected, spoken("您好 hello", VoiceOptions::default()));
    Expected::silence(LEAD_IN_MS).then(&expected).is(&heard);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_play_mode_1_the_text_over_its_background_comes_first_and_then_the_files() {
    let hall = Hall::new().await;
    let (first, second) = (
        mono_16_bit(&sweep(3_000, 2), 16_000),
        mono_16_bit(&sweep(2_400, 7), 8000),
    );
    hall.upload("a.wav", &first).await;
    hall.upload("b.wav", &second).await;
    let heard = hall
        .heard(
            "13800000001",
            "\"mediaTxt\":\"hello\",\"mediaName\":\"b.wav;a.wav\",\"playMode\":\"1\",\"txtBgsound\":\"3\"",
        )
        .await;
    let over = |background| {
        let voice = VoiceOptions {
            background,
            ..VoiceOptions::default()
        };
        spoken("hello", voice)
    };
    assert!(over(3).len() > over(0).len(), "the background is heard");
    Expected::silence(LEAD_IN_MS)
        .then(&over(3))
        .then(&played(&second))
        .then(&played(&first))
        .is(&heard);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_play_mode_the_files_are_heard_and_the_text_is_not() {
    let hall = Hall::new().await;
    let file = mono_16_bit(&sweep(1_600, 9), 8000);
    hall.upload("a.wav", &file).await;
    let heard = hall
        .heard(
            "13800000001",
            "\"mediaTxt\":\"hello\",\"mediaName\":\"a.wav\"",
        )
        .await;
    Expected::silence(LEAD_IN_MS)
        .then(&played(&file))
        .is(&heard);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_plays_are_parted_by_a_second_of_silence() {
    let hall = Hall::new().await;
    let file = mono_16_bit(&sweep(2_000, 4), 8000);
    hall.upload("a.wav", &file).await;
    let heard = hall
        .heard(
            "13800000001",
            "\"mediaTxt\":\"hi\",\"mediaName\":\"a.wav\",\"playMode\":\"1\",\"playTimes\":\"3\"",
        )
        .await;
    let whole = [spoken("hi", VoiceOptions::default()), played(&file)].concat();
    Expected::silence(LEAD_IN_MS)
        .then(&whole)
        .pause(1000)
        .then(&whole)
        .pause(1000)
        .then(&whole)
        .is(&heard);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_is_dialled_before_the_sound_is_heard() {
    let hall = Hall::new().await;
    let file = mono_16_bit(&sweep(3_200, 6), 8000);
    hall.upload("a.wav", &file).await;
    let heard = hall
        .heard("01052823298-3627", "\"mediaName\":\"a.wav\"")
        .await;
    assert_eq!(heard.keys, "3627");
    // The trunk is given the number; the extension is for whoever answers there.
    assert_eq!(heard.number, "+861052823298");
    let sound = heard.sound();
    let first_word = sound
        .iter()
        .position(|byte| *byte != Codec::Pcma.silence())
        .expect("something is heard")
        / FRAME
        * FRAME;
    let prompt = played(&file);
    assert_eq!(&sound[first_word..][..prompt.len()], &prompt);
    assert_eq!(sound.len(), first_word + prompt.len() + LEAD_OUT_MS * 8);
    // Where keys are pressed no packets of sound are sent. All of these places lie between the two waits, before the first word.
    let waits = (LEAD_IN_MS + 1500) * 8;
    let start = heard.packets[0].timestamp;
    let mut pressed = 0;
    for pair in heard.packets.windows(2) {
        let gap = pair[1].timestamp.wrapping_sub(pair[0].timestamp) as usize;
        if gap > FRAME {
            pressed += 1;
            let at = pair[0].timestamp.wrapping_sub(start) as usize + FRAME;
            assert!(at >= waits, "a key {at} samples after the answer");
            assert!(at + gap <= first_word - 1500 * 8, "a key at {at}");
        }
    }
    assert_eq!(pressed, 4, "gaps for four keys");
}
