//! Converts to another sample rate: frequencies that the lower rate cannot hold are filtered out, the length in time stays the same, and
//! nothing is delayed.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Resampler, WindowFunction};

/// Samples of the lower rate that the filter spans. At 8 kHz this is 128 ms: it passes 3.9 kHz and holds back 4 kHz.
const SPAN: usize = 1024;

/// Reads `frames` samples piece by piece (`read` fills a buffer from a place on) and hands out all of them at the other rate. What is
/// held in memory beside the result is a few spans of the filter.
pub fn resample(
    from: u32,
    to: u32,
    frames: usize,
    read: &mut dyn FnMut(usize, &mut [f32]) -> usize,
) -> Vec<f32> {
    if from == to {
        let mut samples = vec![0.0; frames];
        read(0, &mut samples);
        return samples;
    }
    let (from, to) = (from as usize, to as usize);
    let wanted = resampled_length(frames, from, to);
    let span = span(from, to);
    let window = WindowFunction::BlackmanHarris2;
    let mut resampler = Fft::<f32>::new_custom(from, to, span, 1, 1, window, FixedSync::Both)
        .expect("rates and span are not zero");
    let delay = resampler.output_delay();
    let mut piece = vec![0.0; resampler.input_frames_next()];
    let mut made = vec![0.0; resampler.output_frames_next()];
    let mut samples = Vec::with_capacity(delay + wanted + made.len());
    let mut at = 0;
    while samples.len() < delay + wanted {
        let count = read(at, &mut piece);
        // Behind the end there is silence, which pushes out what the filter still holds.
        piece[count..].fill(0.0);
        at += count;
        let (input, output) = (piece.len(), made.len());
        let input = InterleavedSlice::new(&piece, 1, input).expect("as long as it is");
        let mut output = InterleavedSlice::new_mut(&mut made, 1, output).expect("as long as it is");
        resampler
            .process_into_buffer(&input, &mut output, None)
            .expect("both buffers have the sizes it asked for");
        samples.extend_from_slice(&made);
    }
    samples.drain(..delay);
    samples.truncate(wanted);
    samples
}

/// Samples of the input that the filter spans: whole periods in which both rates meet, and an even number of them, or the middle of the
/// filter would lie between two samples and the sound arrive half a sample late.
fn span(from: usize, to: usize) -> usize {
    let period = from / greatest_common_divisor(from, to);
    let wanted = (SPAN * from).div_ceil(to.min(from));
    wanted.div_ceil(period).next_multiple_of(2) * period
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

/// As long in time as before, to the nearest sample.
pub fn resampled_length(frames: usize, from: usize, to: usize) -> usize {
    let exact = (frames as u64 * to as u64 + from as u64 / 2) / from as u64;
    usize::try_from(exact).unwrap_or(usize::MAX).max(1)
}
