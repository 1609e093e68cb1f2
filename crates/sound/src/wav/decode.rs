//! Bytes to samples.

use g711::Codec;

use super::{Encoding, WavFormat};

/// Float samples may exceed full scale, and the level is corrected later. Samples beyond this limit come from broken files.
const LOUDEST: f32 = 16.0;

pub(super) fn mono(data: &[u8], format: WavFormat, out: &mut [f32]) -> usize {
    let mut mix = |sample: &dyn Fn(&[u8]) -> f32| mix(data, format, out, sample);
    match format.encoding {
        Encoding::Unsigned8 => mix(&|b| (f32::from(b[0]) - 128.0) / 128.0),
        Encoding::Signed16 => mix(&|b| f32::from(i16::from_le_bytes([b[0], b[1]])) / 32768.0),
        Encoding::Signed24 => mix(&|b| whole([0, b[0], b[1], b[2]])),
        Encoding::Signed32 => mix(&|b| whole([b[0], b[1], b[2], b[3]])),
        Encoding::Float32 => mix(&|b| sane(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))),
        Encoding::Float64 => mix(&|b| {
            let bytes = [b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]];
            sane(narrow(f64::from_le_bytes(bytes)))
        }),
        Encoding::ALaw => mix(&|b| f32::from(Codec::Pcma.decode(b[0])) / 32768.0),
        Encoding::MuLaw => mix(&|b| f32::from(Codec::Pcmu.decode(b[0])) / 32768.0),
    }
}

/// Writes the mean of the channels. Returns how many frames there were.
fn mix(data: &[u8], format: WavFormat, out: &mut [f32], sample: &dyn Fn(&[u8]) -> f32) -> usize {
    let share = 1.0 / f32::from(format.channels);
    let width = format.encoding.width();
    let frames = data.chunks_exact(format.frame_bytes());
    let mut count = 0;
    for (frame, out) in frames.zip(out) {
        *out = frame.chunks_exact(width).map(sample).sum::<f32>() * share;
        count += 1;
    }
    count
}

fn whole(bytes: [u8; 4]) -> f32 {
    i32::from_le_bytes(bytes) as f32 / 2_147_483_648.0
}

fn sane(sample: f32) -> f32 {
    if sample.is_finite() {
        sample.clamp(-LOUDEST, LOUDEST)
    } else {
        0.0
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a sample needs no more than 24 bits"
)]
fn narrow(sample: f64) -> f32 {
    sample as f32
}
