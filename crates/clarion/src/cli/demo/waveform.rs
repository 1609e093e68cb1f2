//! A sound as a small picture in the terminal.

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns the samples of a WAV file that the telephone has written: 8 kHz, 16 bit, one channel.
pub fn samples(wav: &[u8]) -> Vec<i16> {
    wav.get(44..)
        .unwrap_or_default()
        .chunks_exact(2)
        .map(|pair| i16::from_le_bytes([pair[0], pair[1]]))
        .collect()
}

/// Draws the sound in this number of columns. The height of a column is its loudness.
pub fn picture(samples: &[i16], columns: usize) -> String {
    let each = samples.len().div_ceil(columns).max(1);
    samples
        .chunks(each)
        .map(|piece| {
            let energy: f64 = piece.iter().map(|sample| f64::from(*sample).powi(2)).sum();
            #[expect(clippy::cast_precision_loss, reason = "a picture")]
            let loudness = (energy / piece.len() as f64).sqrt();
            // From 48 dB below full scale to 6 dB below it.
            let height = ((loudness.max(1.0) / 32768.0).log10() * 20.0 + 48.0) / 42.0;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "clamped to the eight steps"
            )]
            let step = (height.clamp(0.0, 0.999) * 8.0) as usize;
            STEPS[step]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loud_is_high_and_silence_is_low() {
        let mut sound = vec![0; 800];
        sound.extend(vec![20_000; 800]);
        sound.extend(vec![300; 800]);
        let drawn: Vec<char> = picture(&sound, 3).chars().collect();
        assert_eq!((drawn[0], drawn[1]), ('▁', '█'));
        assert!(drawn[2] > '▁' && drawn[2] < '█');
        assert_eq!(picture(&[], 10), "");
    }
}
