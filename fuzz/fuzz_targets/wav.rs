//! Any bytes as a WAV file: refused with a reason, or played within full scale and as long as the file says.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sound::resample::resampled_length;
use sound::wav::{Wav, WavLimits};

/// Short, so that every input is quick; the rules are the same.
const LIMITS: WavLimits = WavLimits {
    bytes: 70_000,
    seconds: 10,
};

fuzz_target!(|bytes: &[u8]| {
    match Wav::read(bytes, &LIMITS) {
        Err(reason) => assert!(!reason.to_string().is_empty()),
        Ok(wav) => {
            let mut beginning = [0.0; 500];
            assert_eq!(wav.mono(0, &mut beginning), wav.frames().min(500));
            // Rates that have little in common with ours need long filters: the same code, but slow.
            if !wav.format().rate.is_multiple_of(25) {
                return;
            }
            let samples = wav.for_the_line();
            let rate = wav.format().rate as usize;
            assert_eq!(samples.len(), resampled_length(wav.frames(), rate, 8000));
            assert!(samples.iter().all(|sample| sample.abs() <= 0.951));
        }
    }
});
