//! Ears: level, frequency, fundamental, length.

use std::f64::consts::TAU;

pub const RATE: f64 = 8000.0;

pub fn floats(samples: &[i16]) -> Vec<f32> {
    samples.iter().map(|sample| f32::from(*sample) / 32768.0).collect()
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
    let energy: f64 = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum();
    (energy / samples.len().max(1) as f64).sqrt()
}

/// The fundamental of each 40 ms that has one, by autocorrelation, with the second it stands at.
pub fn pitch_contour(samples: &[f32]) -> Vec<(f64, f64)> {
    let loudest = samples.chunks(320).map(rms).fold(0.0, f64::max);
    let frames = (0..samples.len().saturating_sub(640)).step_by(80);
    frames
        .filter_map(|start| {
            let frame = &samples[start..start + 640];
            if rms(&frame[160..480]) < loudest * 0.1 {
                return None;
            }
            Some((start as f64 / RATE, fundamental(frame)?))
        })
        .collect()
}

/// Between 50 and 400 Hz, where the frame repeats itself clearly.
fn fundamental(frame: &[f32]) -> Option<f64> {
    let similarity = |lag: usize| {
        let (mut product, mut a, mut b) = (0.0, 0.0, 0.0);
        for (x, y) in frame.iter().zip(&frame[lag..]) {
            product += f64::from(x * y);
            a += f64::from(x * x);
            b += f64::from(y * y);
        }
        product / (a * b).sqrt().max(1e-12)
    };
    let values: Vec<f64> = (20..=160).map(similarity).collect();
    let best = values.iter().copied().fold(0.0, f64::max);
    if best < 0.6 {
        return None;
    }
    // The shortest lag that is nearly as good, at its peak: a multiple of the period is as similar as the period.
    let first = values
        .iter()
        .enumerate()
        .position(|(at, value)| {
            let is_peak = (at == 0 || values[at - 1] <= *value)
                && values.get(at + 1).is_none_or(|next| next <= value);
            is_peak && *value > best - 0.1
        })?;
    Some(RATE / (first + 20) as f64)
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

pub fn median_pitch(samples: &[f32]) -> f64 {
    median(pitch_contour(samples).into_iter().map(|(_, hertz)| hertz).collect())
}
