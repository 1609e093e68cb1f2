//! A sound as it goes over the line: G.711 in both laws, whole frames, shared.

use std::sync::Arc;

use audio_codec_algorithms::{encode_alaw, encode_ulaw};

use crate::RATE;

/// Bytes of a frame of 20 ms.
pub const FRAME_BYTES: usize = 160;
const SILENCE_A: u8 = 0xd5;
const SILENCE_MU: u8 = 0xff;

/// Cloning shares the bytes, and so does whoever takes them out to put them on the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedAudio {
    pcma: Arc<[u8]>,
    pcmu: Arc<[u8]>,
}

impl EncodedAudio {
    /// Encodes 8 kHz samples, full scale being 1. The last frame is filled up with silence, so that a frame is always whole.
    pub fn encode(samples: &[i16]) -> Self {
        let whole = samples.len().next_multiple_of(FRAME_BYTES);
        let with = |law: fn(i16) -> u8, silence: u8| {
            let mut bytes = Vec::with_capacity(whole);
            bytes.extend(samples.iter().map(|sample| law(*sample)));
            bytes.resize(whole, silence);
            Arc::from(bytes)
        };
        Self {
            pcma: with(encode_alaw, SILENCE_A),
            pcmu: with(encode_ulaw, SILENCE_MU),
        }
    }

    /// Takes back what was encoded before. None where the two do not belong together.
    pub fn from_parts(pcma: Arc<[u8]>, pcmu: Arc<[u8]>) -> Option<Self> {
        let fits = pcma.len() == pcmu.len() && pcma.len().is_multiple_of(FRAME_BYTES);
        fits.then_some(Self { pcma, pcmu })
    }

    pub fn pcma(&self) -> &Arc<[u8]> {
        &self.pcma
    }

    pub fn pcmu(&self) -> &Arc<[u8]> {
        &self.pcmu
    }

    pub fn frames(&self) -> usize {
        self.pcma.len() / FRAME_BYTES
    }

    pub fn seconds(&self) -> f64 {
        self.pcma.len() as f64 / f64::from(RATE)
    }

    /// What this holds in memory.
    pub fn bytes(&self) -> usize {
        self.pcma.len() + self.pcmu.len()
    }

    /// The samples again, as somebody at the other end of the line hears them.
    pub fn heard(&self) -> Vec<i16> {
        let decode = |byte: &u8| audio_codec_algorithms::decode_alaw(*byte);
        self.pcma.iter().map(decode).collect()
    }
}
