//! G.711, the one form in which sound goes over the line: encoded once, in whole frames of 20 ms, shared by every call that plays it.
//!
//! `sound` makes it, `phone` sends it, and neither knows the other.

use std::sync::Arc;

/// Samples a second.
pub const RATE: u32 = 8000;
/// Milliseconds of sound in a packet.
pub const FRAME_MILLIS: u32 = 20;
/// Samples, and so bytes of G.711, in a packet.
pub const FRAME_BYTES: usize = 160;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    Pcma,
    Pcmu,
}

impl Codec {
    pub const ALL: [Codec; 2] = [Codec::Pcma, Codec::Pcmu];

    /// Static payload types of RFC 3551.
    pub fn payload_type(self) -> u8 {
        match self {
            Codec::Pcma => 8,
            Codec::Pcmu => 0,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Codec::Pcma => "PCMA",
            Codec::Pcmu => "PCMU",
        }
    }

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|codec| codec.name().eq_ignore_ascii_case(name))
    }

    /// The byte that is silence.
    pub fn silence(self) -> u8 {
        match self {
            Codec::Pcma => 0xd5,
            Codec::Pcmu => 0xff,
        }
    }

    pub fn encode(self, sample: i16) -> u8 {
        match self {
            Codec::Pcma => audio_codec_algorithms::encode_alaw(sample),
            Codec::Pcmu => audio_codec_algorithms::encode_ulaw(sample),
        }
    }

    pub fn decode(self, byte: u8) -> i16 {
        match self {
            Codec::Pcma => audio_codec_algorithms::decode_alaw(byte),
            Codec::Pcmu => audio_codec_algorithms::decode_ulaw(byte),
        }
    }
}

/// Sound that is ready to be sent, in every codec that a callee may choose. Cloning shares the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedAudio {
    pcma: Arc<[u8]>,
    pcmu: Arc<[u8]>,
}

impl EncodedAudio {
    /// Encodes 8 kHz samples. The last frame is filled up with silence, so that a frame is always whole.
    pub fn encode(samples: &[i16]) -> Self {
        let encoded = |codec: Codec| {
            let mut bytes: Vec<u8> = samples.iter().map(|sample| codec.encode(*sample)).collect();
            bytes.resize(bytes.len().next_multiple_of(FRAME_BYTES), codec.silence());
            Arc::from(bytes)
        };
        Self {
            pcma: encoded(Codec::Pcma),
            pcmu: encoded(Codec::Pcmu),
        }
    }

    /// Takes back what was encoded before, without a copy. `None` unless both are whole frames of the same length.
    pub fn from_parts(pcma: Arc<[u8]>, pcmu: Arc<[u8]>) -> Option<Self> {
        let fits = pcma.len() == pcmu.len() && pcma.len().is_multiple_of(FRAME_BYTES);
        fits.then_some(Self { pcma, pcmu })
    }

    pub fn bytes(&self, codec: Codec) -> &Arc<[u8]> {
        match codec {
            Codec::Pcma => &self.pcma,
            Codec::Pcmu => &self.pcmu,
        }
    }

    pub fn frames(&self) -> usize {
        self.pcma.len() / FRAME_BYTES
    }

    pub fn seconds(&self) -> f64 {
        self.pcma.len() as f64 / f64::from(RATE)
    }

    /// The bytes that it holds in memory.
    pub fn size(&self) -> usize {
        self.pcma.len() + self.pcmu.len()
    }

    /// The samples again, as the callee hears them.
    pub fn decode(&self) -> Vec<i16> {
        let decode = |byte: &u8| Codec::Pcma.decode(*byte);
        self.pcma.iter().map(decode).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_silent_byte_is_silence() {
        for codec in Codec::ALL {
            assert!(codec.decode(codec.silence()).abs() <= 8, "{codec:?}");
        }
    }

    #[test]
    fn what_was_encoded_elsewhere_is_shared_or_refused() {
        let bytes: Arc<[u8]> = vec![0; 320].into();
        let sound = EncodedAudio::from_parts(bytes.clone(), bytes.clone()).unwrap();
        assert!(Arc::ptr_eq(sound.bytes(Codec::Pcmu), &bytes));
        assert!(EncodedAudio::from_parts(bytes, vec![0; 160].into()).is_none());
        assert!(EncodedAudio::from_parts(vec![0; 1].into(), vec![0; 1].into()).is_none());
    }

    #[test]
    fn a_sound_is_whole_frames() {
        let sound = EncodedAudio::encode(&[1000; 161]);
        assert_eq!(sound.frames(), 2);
        for codec in Codec::ALL {
            assert_eq!(sound.bytes(codec)[161], codec.silence());
        }
    }
}
