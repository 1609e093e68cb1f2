//! WAV files as people have them. Length fields are hints: what counts is which bytes are there.
//!
//! A reader of our own, because the usual ones refuse what we are asked to play: headers of programs that wrote into a pipe, files cut
//! short by a broken upload, chunks without their padding byte. Nothing is copied: the samples are read out of the caller's bytes.

mod chunks;
mod decode;
mod format;
mod write;

pub use format::{Encoding, WavFormat};
pub use write::mono_16_bit;

use chunks::{Chunk, RiffChunks};

/// The limits of a file. Bytes are judged before anything is read, seconds before anything is decoded.
#[derive(Debug, Clone, Copy)]
pub struct WavLimits {
    pub bytes: usize,
    pub seconds: u32,
}

impl Default for WavLimits {
    fn default() -> Self {
        Self {
            bytes: 20_000_000,
            seconds: 1800,
        }
    }
}

/// Why a file cannot be played: what it is, and which rule that breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AudioError {
    #[error("the file is empty")]
    Empty,
    #[error("the file has {bytes} bytes; at most {limit} are taken")]
    TooLarge { bytes: usize, limit: usize },
    #[error("this is {kind}; a voice file must be WAV")]
    NotWav { kind: &'static str },
    #[error("the WAV file has no complete fmt chunk before its samples")]
    NoFormat,
    #[error(
        "the samples are {name} (format tag {tag:#06x}); a voice file must be PCM, float, A-law or µ-law"
    )]
    Encoding { name: &'static str, tag: u16 },
    #[error("{bits} bits a sample; PCM may have 8 to 32, float 32 or 64, A-law and µ-law 8")]
    Bits { bits: u16 },
    #[error("{channels} channels; a voice file has 1 to {limit}")]
    Channels { channels: u16, limit: u16 },
    #[error("{rate} samples a second; a voice file has {least} to {limit}")]
    Rate { rate: u32, least: u32, limit: u32 },
    #[error("the WAV file has no data chunk")]
    NoData,
    #[error("the data chunk holds not one whole sample")]
    NoSamples,
    #[error("the sound lasts {seconds} s; at most {limit} s are played")]
    TooLong { seconds: u64, limit: u32 },
}

/// A WAV file whose every field has been judged: reading its samples cannot fail.
#[derive(Debug, Clone, Copy)]
pub struct Wav<'a> {
    format: WavFormat,
    data: &'a [u8],
    is_cut: bool,
}

impl<'a> Wav<'a> {
    pub fn read(bytes: &'a [u8], limits: &WavLimits) -> Result<Self, AudioError> {
        if bytes.is_empty() {
            return Err(AudioError::Empty);
        }
        if bytes.len() > limits.bytes {
            return Err(AudioError::TooLarge {
                bytes: bytes.len(),
                limit: limits.bytes,
            });
        }
        let (format, chunk) = find_samples(RiffChunks::of(bytes)?)?;
        let data = chunk.bytes;
        let data = &data[..data.len() - data.len() % format.frame_bytes()];
        // A program that writes into a pipe does not know the length, and promises more than anybody has.
        let is_cut = chunk.is_cut() && chunk.promised <= limits.bytes;
        if data.is_empty() {
            return Err(AudioError::NoSamples);
        }
        let wav = Self {
            format,
            data,
            is_cut,
        };
        let seconds = (wav.frames() as u64).div_ceil(u64::from(format.rate));
        if seconds > u64::from(limits.seconds) {
            return Err(AudioError::TooLong {
                seconds,
                limit: limits.seconds,
            });
        }
        Ok(wav)
    }

    /// Whether a file tells how long it is, and is. One that was written into a pipe does not.
    pub fn is_whole(bytes: &[u8]) -> bool {
        let found = RiffChunks::of(bytes).and_then(find_samples);
        found.is_ok_and(|(_, chunk)| chunk.promised > 0 && !chunk.is_cut())
    }

    /// Whether the file ends before its samples do.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub fn format(&self) -> WavFormat {
        self.format
    }

    /// Samples of each channel.
    pub fn frames(&self) -> usize {
        self.data.len() / self.format.frame_bytes()
    }

    /// Fills `out` with frames from `first` on, mixed to one channel, where full scale is 1. Returns how many there were.
    pub fn mono(&self, first: usize, out: &mut [f32]) -> usize {
        let width = self.format.frame_bytes();
        let rest = self.data.get(first.saturating_mul(width)..);
        decode::mono(rest.unwrap_or_default(), self.format, out)
    }

    /// The whole sound as the line needs it: one channel, 8 kHz, nothing clipped.
    pub fn for_the_line(&self) -> Vec<f32> {
        let mut samples = crate::resample::resample(
            self.format.rate,
            crate::RATE,
            self.frames(),
            &mut |first, out| self.mono(first, out),
        );
        crate::level::fit(&mut samples);
        samples
    }
}

/// The format must stand before the samples. Of several fmt or data chunks the first counts.
fn find_samples(chunks: RiffChunks<'_>) -> Result<(WavFormat, Chunk<'_>), AudioError> {
    let mut format = None;
    for chunk in chunks {
        match (&chunk.id, format) {
            (b"fmt ", None) if chunk.is_cut() => return Err(AudioError::NoFormat),
            (b"fmt ", None) => format = Some(WavFormat::read(chunk.bytes)?),
            (b"data", Some(format)) => return Ok((format, chunk)),
            (b"data", None) => return Err(AudioError::NoFormat),
            _ => {}
        }
    }
    Err(match format {
        Some(_) => AudioError::NoData,
        None => AudioError::NoFormat,
    })
}
