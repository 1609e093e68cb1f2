//! Filters of second order, by the bilinear transform of their analogue forms.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use crate::RATE;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter {
    forward: [f64; 3],
    backward: [f64; 2],
    state: [f64; 2],
}

/// The frequency as the transform sees it.
fn warped(frequency: f64) -> f64 {
    (PI * frequency / f64::from(RATE)).tan()
}

impl Filter {
    /// The polynomials in falling powers of the analogue frequency, which is 1 at `frequency`.
    fn new(frequency: f64, above: [f64; 3], below: [f64; 3]) -> Self {
        let k = warped(frequency);
        let discrete = |[square, linear, constant]: [f64; 3]| {
            let (linear, constant) = (linear * k, constant * k * k);
            [
                square + linear + constant,
                2.0 * (constant - square),
                square - linear + constant,
            ]
        };
        let (forward, backward) = (discrete(above), discrete(below));
        Self {
            forward: forward.map(|value| value / backward[0]),
            backward: [backward[1] / backward[0], backward[2] / backward[0]],
            state: [0.0; 2],
        }
    }

    /// Nothing below this frequency; `quality` says how sharply, and 0.707 is as flat as it can be.
    pub fn high_pass(frequency: f64, quality: f64) -> Self {
        Self::new(frequency, [1.0, 0.0, 0.0], [1.0, 1.0 / quality, 1.0])
    }

    pub fn low_pass(frequency: f64, quality: f64) -> Self {
        Self::new(frequency, [0.0, 0.0, 1.0], [1.0, 1.0 / quality, 1.0])
    }

    /// So many times as loud above this frequency; `middle` is the factor at it.
    pub fn high_shelf(frequency: f64, quality: f64, factor: f64, middle: f64) -> Self {
        let above = [factor, middle / quality, 1.0];
        Self::new(frequency, above, [1.0, 1.0 / quality, 1.0])
    }

    /// What a telephone passes on, 300 to 3400 Hz.
    pub fn telephone_band() -> [Self; 2] {
        [
            Self::high_pass(300.0, FRAC_1_SQRT_2),
            Self::low_pass(3400.0, FRAC_1_SQRT_2),
        ]
    }

    pub fn run(&mut self, sample: f64) -> f64 {
        let [b0, b1, b2] = self.forward;
        let [a1, a2] = self.backward;
        let out = b0 * sample + self.state[0];
        self.state[0] = b1 * sample - a1 * out + self.state[1];
        self.state[1] = b2 * sample - a2 * out;
        out
    }
}

/// One after the other.
pub(crate) fn run_all(filters: &mut [Filter], sample: f64) -> f64 {
    filters
        .iter_mut()
        .fold(sample, |sample, filter| filter.run(sample))
}
