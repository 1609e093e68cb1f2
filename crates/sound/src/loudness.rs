//! How loud a sound is to whoever listens on a telephone: the integrated loudness of EBU R128 (ITU-R BS.1770), of what the line carries.

use crate::RATE;
use crate::filter::{Filter, run_all};

/// The sound is judged in blocks of 400 ms, every 100 ms.
const STEP: usize = RATE as usize / 10;
const STEPS_A_BLOCK: usize = 4;
/// Blocks that are weaker do not count: silence, and pauses, which are so much weaker than the rest.
const SILENCE: f64 = -70.0;
const PAUSE: f64 = -10.0;
/// A sine of 997 Hz and full scale has -3.01.
const OFFSET: f64 = -0.691;

/// How a head and ears change what they hear (BS.1770): a shelf, and less of the lowest.
fn weighting() -> [Filter; 2] {
    let factor = 10_f64.powf(3.999_843_853_973_347 / 20.0);
    let middle = factor.powf(0.499_666_774_154_541_6);
    [
        Filter::high_shelf(
            1_681.974_450_955_533,
            0.707_175_236_955_419_6,
            factor,
            middle,
        ),
        Filter::high_pass(38.135_470_876_024_44, 0.500_327_037_323_877_3),
    ]
}

/// In LUFS; `None` for what nobody hears.
pub fn integrated(samples: &[f32]) -> Option<f32> {
    let [low, high] = Filter::telephone_band();
    let [shelf, rumble] = weighting();
    let mut filters = [low, high, shelf, rumble];
    let energy = |step: &[f32]| -> f64 {
        let heard = step
            .iter()
            .map(|sample| run_all(&mut filters, f64::from(*sample)));
        heard.map(|sample| sample * sample).sum()
    };
    let steps: Vec<f64> = samples.chunks(STEP).map(energy).collect();
    let blocks: Vec<f64> = if samples.len() < STEP * STEPS_A_BLOCK {
        // What is shorter than a block is one.
        vec![steps.iter().sum::<f64>() / samples.len().max(1) as f64]
    } else {
        let whole = &steps[..samples.len() / STEP];
        let block = |steps: &[f64]| steps.iter().sum::<f64>() / (STEP * STEPS_A_BLOCK) as f64;
        whole.windows(STEPS_A_BLOCK).map(block).collect()
    };
    let heard = mean_above(&blocks, SILENCE)?;
    let spoken = mean_above(&blocks, loudness(heard) + PAUSE)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a level needs no more than 24 bits"
    )]
    let loudness = loudness(spoken) as f32;
    Some(loudness)
}

fn loudness(energy: f64) -> f64 {
    OFFSET + 10.0 * energy.log10()
}

/// The mean of the blocks that are louder than this, if there are some.
fn mean_above(blocks: &[f64], limit: f64) -> Option<f64> {
    let louder = blocks
        .iter()
        .copied()
        .filter(|block| loudness(*block) > limit);
    let louder: Vec<f64> = louder.collect();
    (!louder.is_empty()).then(|| louder.iter().sum::<f64>() / louder.len() as f64)
}

#[cfg(test)]
mod tests {
    use std::f32::consts::TAU;

    use super::*;
    use crate::level;

    fn sine(hertz: f32, seconds: f32, decibels: f32) -> Vec<f32> {
        let turn = |place: usize| (place as f32 * hertz / RATE as f32).fract() * TAU;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "some seconds"
        )]
        let count = (seconds * RATE as f32) as usize;
        let gain = level::from_db(decibels);
        (0..count).map(|place| turn(place).sin() * gain).collect()
    }

    fn measured(samples: &[f32]) -> f32 {
        integrated(samples).unwrap()
    }

    #[test]
    fn a_tone_of_the_standard_has_the_loudness_of_the_standard() {
        // EBU Tech 3341, cases 1 and 2, in one channel.
        for (decibels, expected) in [(0.0, -3.01), (-20.0, -23.01), (-30.0, -33.01)] {
            let loudness = measured(&sine(997.0, 5.0, decibels));
            assert!((loudness - expected).abs() < 0.3, "{decibels}: {loudness}");
        }
    }

    #[test]
    fn pauses_and_what_is_much_softer_do_not_count() {
        let tone = sine(997.0, 5.0, -20.0);
        let alone = measured(&tone);
        let paused = [vec![0.0; 16_000], tone.clone(), vec![0.0; 40_000]].concat();
        // Blocks that begin or end within the tone count as they are.
        assert!((measured(&paused) - alone).abs() < 0.5);
        let soft = sine(997.0, 5.0, -50.0);
        let both = [soft.clone(), tone, soft].concat();
        assert!((measured(&both) - alone).abs() < 0.5);
    }

    #[test]
    fn what_the_line_does_not_carry_is_not_loud() {
        let middle = measured(&sine(1000.0, 2.0, -20.0));
        assert!(measured(&sine(60.0, 2.0, -20.0)) < middle - 20.0);
        assert!(
            measured(&sine(2500.0, 2.0, -20.0)) > middle,
            "ears hear it better"
        );
    }

    #[test]
    fn silence_has_none_and_a_moment_has_one() {
        assert_eq!(integrated(&[]), None);
        assert_eq!(integrated(&vec![0.0; 8000]), None);
        assert_eq!(integrated(&sine(997.0, 2.0, -80.0)), None);
        let moment = measured(&sine(997.0, 0.2, -20.0));
        assert!((moment - -23.0).abs() < 0.6, "{moment}");
    }
}
