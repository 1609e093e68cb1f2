//! Ears: level, frequency, fundamental, length.

use std::f64::consts::TAU;

pub const RATE: f64 = 8000.0;

pub fn floats(samples: &[i16]) -> Vec<f32> {
    samples
        .iter()
        .map(|sample| f32::from(*sample) / 32768.0)
        .collect()
}

pub fn db(ratio: f64) -> f64 {
    20.0 * ratio.max(1e-12).log10()
}

/// How much of a signal is one sine (whatever its phase), and how much is not: their levels in dB, the second against the first.
pub fn noise_against_tone(samples: &[f32], frequency: f64, rate: f64) -> f64 {
    let (mut sine, mut cosine, mut ss, mut cc, mut sc) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (at, sample) in samples.iter().enumerate() {
        let (s, c) = (TAU * frequency * at as f64 / rate).sin_cos();
        sine += f64::from(*sample) * s;
        cosine += f64::from(*sample) * c;
        ss += s * s;
        cc += c * c;
        sc += s * c;
    }
    let determinant = ss * cc - sc * sc;
    let a = (sine * cc - cosine * sc) / determinant;
    let b = (cosine * ss - sine * sc) / determinant;
    let (mut tone, mut rest) = (0.0, 0.0);
    for (at, sample) in samples.iter().enumerate() {
        let (s, c) = (TAU * frequency * at as f64 / rate).sin_cos();
        let fitted = a * s + b * c;
        tone += fitted * fitted;
        rest += (f64::from(*sample) - fitted).powi(2);
    }
    db((rest / tone).sqrt())
}

pub fn rms(samples: &[f32]) -> f64 {
    let energy: f64 = samples
        .iter()
        .map(|sample| f64::from(*sample).powi(2))
        .sum();
    (energy / samples.len().max(1) as f64).sqrt()
}

/// 35 ms.
const WINDOW: usize = 280;
/// 40 to 400 Hz.
const LAGS: std::ops::RangeInclusive<usize> = 20..=200;

/// The fundamental at each 10 ms where there is one, by autocorrelation, with the second it stands at.
pub fn pitch_contour(samples: &[f32]) -> Vec<(f64, f64)> {
    let samples = &without_formants(samples);
    let loudest = samples.chunks(320).map(rms).fold(0.0, f64::max);
    let starts = (0..samples.len().saturating_sub(WINDOW + LAGS.end())).step_by(80);
    let heard = starts.filter(|start| rms(&samples[*start..*start + WINDOW]) > loudest * 0.1);
    heard
        .filter_map(|start| Some((start as f64 / RATE, fundamental(&samples[start..])?)))
        .collect()
}

/// Two simple low-passes at 150 Hz: what is left is the fundamental, which can be followed even where it moves quickly.
fn without_formants(samples: &[f32]) -> Vec<f32> {
    let (mut once, mut twice) = (0.0, 0.0);
    let pass = |sample: &f32| {
        once += 0.11 * (sample - once);
        twice += 0.11 * (once - twice);
        twice
    };
    samples.iter().map(pass).collect()
}

/// The shortest time after which the sound is nearly as similar to itself as it ever is: a multiple of the period is as similar.
fn fundamental(samples: &[f32]) -> Option<f64> {
    let similarity = |lag: usize| {
        let (mut product, mut a, mut b) = (0.0, 0.0, 0.0);
        for (x, y) in samples[..WINDOW].iter().zip(&samples[lag..]) {
            product += f64::from(x * y);
            a += f64::from(x * x);
            b += f64::from(y * y);
        }
        product / (a * b).sqrt().max(1e-12)
    };
    let values: Vec<f64> = LAGS.map(similarity).collect();
    let best = values.iter().copied().fold(0.0, f64::max);
    let peaks = (1..values.len() - 1)
        .filter(|at| values[at - 1] <= values[*at] && values[at + 1] <= values[*at]);
    let first = peaks.into_iter().find(|at| values[*at] > best - 0.1)?;
    (best > 0.5).then(|| RATE / (first + LAGS.start()) as f64)
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

pub fn median_pitch(samples: &[f32]) -> f64 {
    median(
        pitch_contour(samples)
            .into_iter()
            .map(|(_, hertz)| hertz)
            .collect(),
    )
}
