//! WAV files of every kind, and voices to test with.

use std::sync::Arc;
use std::time::Duration;

use sound::renderer::Piece;
use sound::speech::{Espeak, Speaker, SpeechEngine};
use sound::text::{Language, phrases};
use sound::wav::{Wav, WavLimits};
use sound::{EncodedAudio, Utterance, VoiceChoice, VoiceOptions};

/// A file that a test describes and then writes. Every field may be wrong on purpose.
#[derive(Debug, Clone)]
pub struct File {
    pub tag: u16,
    pub bits: u16,
    pub channels: u16,
    pub rate: u32,
    pub extensible: bool,
    pub chunks_before: Vec<u8>,
    pub chunks_behind: Vec<u8>,
    pub riff_length: Option<u32>,
    pub data_length: Option<u32>,
    pub block_align: Option<u16>,
}

impl File {
    pub fn new(tag: u16, bits: u16, channels: u16, rate: u32) -> Self {
        Self {
            tag,
            bits,
            channels,
            rate,
            extensible: false,
            chunks_before: Vec::new(),
            chunks_behind: Vec::new(),
            riff_length: None,
            data_length: None,
            block_align: None,
        }
    }

    pub fn pcm16(rate: u32) -> Self {
        Self::new(1, 16, 1, rate)
    }

    /// The file with these samples in every channel.
    pub fn with(&self, samples: &[f64]) -> Vec<u8> {
        let mut data = Vec::new();
        for sample in samples {
            for _ in 0..self.channels {
                self.write(*sample, &mut data);
            }
        }
        self.with_bytes(&data)
    }

    pub fn with_bytes(&self, data: &[u8]) -> Vec<u8> {
        let width = self.bits.div_ceil(8) * self.channels;
        let mut format = Vec::new();
        let tag = if self.extensible { 0xfffe } else { self.tag };
        format.extend(tag.to_le_bytes());
        format.extend(self.channels.to_le_bytes());
        format.extend(self.rate.to_le_bytes());
        format.extend((self.rate * u32::from(width)).to_le_bytes());
        format.extend(self.block_align.unwrap_or(width).to_le_bytes());
        format.extend(self.bits.to_le_bytes());
        if self.extensible {
            format.extend(22_u16.to_le_bytes());
            format.extend(self.bits.to_le_bytes());
            format.extend(3_u32.to_le_bytes());
            format.extend(self.tag.to_le_bytes());
            format.extend(b"\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71");
        }
        let mut body = b"WAVE".to_vec();
        body.extend(&self.chunks_before);
        body.extend(chunk(*b"fmt ", &format));
        body.extend(b"data");
        let length = u32::try_from(data.len()).unwrap();
        body.extend(self.data_length.unwrap_or(length).to_le_bytes());
        body.extend(data);
        if data.len() % 2 == 1 && !self.chunks_behind.is_empty() {
            body.push(0);
        }
        body.extend(&self.chunks_behind);
        let length = u32::try_from(body.len()).unwrap();
        let mut file = b"RIFF".to_vec();
        file.extend(self.riff_length.unwrap_or(length).to_le_bytes());
        file.extend(body);
        file
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "samples are within full scale"
    )]
    fn write(&self, sample: f64, out: &mut Vec<u8>) {
        let whole = |bits: i32| (sample * 2_f64.powi(bits - 1)).round() as i64;
        let sixteen = || (sample * 32767.0).round() as i16;
        match (self.tag, self.bits) {
            (1, 8) => out.push((whole(8).min(127) + 128) as u8),
            (1, 16) => out.extend(whole(16).min(32767).to_le_bytes()[..2].iter()),
            (1, 24) => out.extend(whole(24).min(8_388_607).to_le_bytes()[..3].iter()),
            (1, 32) => out.extend(whole(32).min(2_147_483_647).to_le_bytes()[..4].iter()),
            (3, 32) => out.extend((sample as f32).to_le_bytes()),
            (3, 64) => out.extend(sample.to_le_bytes()),
            (6, _) => out.push(g711::Codec::Pcma.encode(sixteen())),
            (7, _) => out.push(g711::Codec::Pcmu.encode(sixteen())),
            other => panic!("the zoo has no {other:?}"),
        }
    }
}

pub fn chunk(id: [u8; 4], bytes: &[u8]) -> Vec<u8> {
    let mut chunk = id.to_vec();
    chunk.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
    chunk.extend(bytes);
    if bytes.len() % 2 == 1 {
        chunk.push(0);
    }
    chunk
}

pub fn sine(frequency: f64, rate: u32, seconds: f64, strength: f64) -> Vec<f64> {
    let turn = std::f64::consts::TAU * frequency / f64::from(rate);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds of a test"
    )]
    let count = (seconds * f64::from(rate)).round() as usize;
    (0..count)
        .map(|at| strength * (turn * at as f64).sin())
        .collect()
}

pub fn played(bytes: &[u8]) -> Vec<f32> {
    Wav::read(bytes, &WavLimits::default())
        .unwrap()
        .for_the_line()
}

pub fn embedded() -> Speaker {
    only(Arc::new(Espeak::default()))
}

/// One engine, and no other voice.
pub fn only(engine: Arc<dyn SpeechEngine>) -> Speaker {
    Speaker::new(Vec::new(), engine, Duration::from_secs(60))
}

pub fn speech(text: &str, options: VoiceOptions) -> Utterance {
    Utterance {
        text: text.into(),
        options,
    }
}

/// The same as a piece of a prompt, whoever speaks it.
pub fn spoken(text: &str, options: VoiceOptions) -> Piece {
    Piece::Speech {
        speech: speech(text, options),
        choice: VoiceChoice::default(),
    }
}

/// What somebody at the other end of the line hears.
pub fn heard(text: &str, options: VoiceOptions) -> Vec<f32> {
    let choice = VoiceChoice::default();
    let spoken = embedded().speak(&speech(text, options), &choice).unwrap();
    let sound = EncodedAudio::encode(&sound::level::to_whole(&spoken.samples));
    super::measure::floats(&sound.decode())[..spoken.samples.len()].to_vec()
}

/// A text as it is read, with what the English voice says in brackets.
pub fn read_out(text: &str) -> String {
    let said = phrases(text)
        .into_iter()
        .map(|phrase| match phrase.language {
            Language::Chinese => phrase.text,
            Language::English => format!("[{}]", phrase.text),
        });
    said.collect()
}
