//! The fmt chunk: how the samples are written.

use super::AudioError;

const MAX_CHANNELS: u16 = 32;
const LOWEST_RATE: u32 = 2_000;
const HIGHEST_RATE: u32 = 384_000;

const PCM: u16 = 1;
const FLOAT: u16 = 3;
const A_LAW: u16 = 6;
const MU_LAW: u16 = 7;
const EXTENSIBLE: u16 = 0xfffe;
/// What follows the format tag in the GUIDs of WAVE_FORMAT_EXTENSIBLE.
const GUID_TAIL: [u8; 14] = *b"\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Unsigned8,
    Signed16,
    Signed24,
    Signed32,
    Float32,
    Float64,
    ALaw,
    MuLaw,
}

impl Encoding {
    /// Bytes of one sample.
    pub fn width(self) -> usize {
        match self {
            Encoding::Unsigned8 | Encoding::ALaw | Encoding::MuLaw => 1,
            Encoding::Signed16 => 2,
            Encoding::Signed24 => 3,
            Encoding::Signed32 | Encoding::Float32 => 4,
            Encoding::Float64 => 8,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WavFormat {
    pub encoding: Encoding,
    pub channels: u16,
    pub rate: u32,
}

impl WavFormat {
    /// Bytes of one sample of every channel. Byte rate and block size in the file are not read: they follow from the rest, and
    /// programs get them wrong.
    pub fn frame_bytes(self) -> usize {
        self.encoding.width() * usize::from(self.channels)
    }

    pub(super) fn read(chunk: &[u8]) -> Result<Self, AudioError> {
        let Some((head, extension)) = chunk.split_first_chunk::<16>() else {
            return Err(AudioError::NoFormat);
        };
        let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let (mut tag, channels, bits) = (half(0), half(2), half(14));
        let rate = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        if tag == EXTENSIBLE {
            tag = extended_tag(extension)?;
        }
        let encoding = encoding(tag, bits)?;
        if !(1..=MAX_CHANNELS).contains(&channels) {
            return Err(AudioError::Channels {
                channels,
                limit: MAX_CHANNELS,
            });
        }
        if !(LOWEST_RATE..=HIGHEST_RATE).contains(&rate) {
            return Err(AudioError::Rate {
                rate,
                least: LOWEST_RATE,
                limit: HIGHEST_RATE,
            });
        }
        Ok(Self {
            encoding,
            channels,
            rate,
        })
    }
}

/// The tag proper is the beginning of a GUID, behind the extension's length, the valid bits and the channel mask.
fn extended_tag(extension: &[u8]) -> Result<u16, AudioError> {
    match extension.get(8..24) {
        Some([a, b, tail @ ..]) if *tail == GUID_TAIL => Ok(u16::from_le_bytes([*a, *b])),
        Some(_) => Err(AudioError::Encoding {
            name: "of a private kind",
            tag: EXTENSIBLE,
        }),
        None => Err(AudioError::NoFormat),
    }
}

/// Bits that are no whole bytes stand at the upper end of their container, so the container is what is read.
fn encoding(tag: u16, bits: u16) -> Result<Encoding, AudioError> {
    Ok(match (tag, bits) {
        (PCM, 1..=8) => Encoding::Unsigned8,
        (PCM, 9..=16) => Encoding::Signed16,
        (PCM, 17..=24) => Encoding::Signed24,
        (PCM, 25..=32) => Encoding::Signed32,
        (FLOAT, 32) => Encoding::Float32,
        (FLOAT, 64) => Encoding::Float64,
        // Some programs leave out the bits of a format that has only one width.
        (A_LAW, 8 | 0) => Encoding::ALaw,
        (MU_LAW, 8 | 0) => Encoding::MuLaw,
        (PCM | FLOAT | A_LAW | MU_LAW, bits) => return Err(AudioError::Bits { bits }),
        (tag, _) => {
            return Err(AudioError::Encoding {
                name: name(tag),
                tag,
            });
        }
    })
}

fn name(tag: u16) -> &'static str {
    match tag {
        0x0002 => "Microsoft ADPCM",
        0x0011 => "IMA ADPCM",
        0x0031 => "GSM 6.10",
        0x0040 | 0x0041 | 0x0045 => "G.721 or G.726",
        0x0050 => "MPEG",
        0x0055 => "MP3",
        0x0083 => "G.729",
        0x00ff | 0x1600 | 0x1610 => "AAC",
        0x0160..=0x0163 => "Windows Media",
        0x028f => "G.722",
        _ => "of a kind we do not know",
    }
}
