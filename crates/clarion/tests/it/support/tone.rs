//! Tones in what a callee hears.

use g711::Codec;
use phone::test_phone::HeardCall;

/// The samples of a WAV file with 16 bits a sample.
pub fn of_wav(wav: &[u8]) -> Vec<f64> {
    let samples = wav[44..].chunks_exact(2);
    samples
        .map(|pair| f64::from(i16::from_le_bytes([pair[0], pair[1]])))
        .collect()
}

/// The samples that a telephone has heard.
pub fn of_call(heard: &HeardCall) -> Vec<f64> {
    let codec = heard.codec.unwrap_or(Codec::Pcma);
    let sound = heard.sound();
    sound
        .iter()
        .map(|byte| f64::from(codec.decode(*byte)))
        .collect()
}

/// How strong a tone is, per sample.
pub fn power(samples: &[f64], pitch: f64) -> f64 {
    let (mut real, mut imaginary) = (0.0, 0.0);
    let step = std::f64::consts::TAU * pitch / 8000.0;
    let mut turn = 0.0_f64;
    for sample in samples {
        real += sample * turn.cos();
        imaginary += sample * turn.sin();
        turn += step;
    }
    let length = samples.len() as f64;
    (real * real + imaginary * imaginary) / (length * length)
}

/// Whether nothing but this tone is heard for a tenth of a second, somewhere.
pub fn is_heard(samples: &[f64], pitch: f64) -> bool {
    samples.chunks_exact(800).any(|window| {
        let all = window.iter().map(|sample| sample * sample).sum::<f64>() / 800.0;
        // A pure tone has a quarter of its square amplitude here, and a half there.
        all > 1e5 && power(window, pitch) > 0.4 * all
    })
}
