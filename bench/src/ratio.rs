//! What pairs of figures say: the median of their ratios, an interval for it, and a verdict. Nothing here measures anything.
//!
//! The interval is that of the sign test: it lies between two of the measured ratios and assumes nothing about how they are spread, so that
//! a round which somebody disturbed moves it by a rank at most. Everything is computed on logarithms: exchanging both sides
//! inverts every number.

use std::fmt;

/// The chance that the interval misses the true median, at most.
const ERROR: f64 = 0.05;

/// One figure of both sides, measured one right after the other. Less is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FigurePair {
    pub base: f64,
    pub new: f64,
}

/// How the new side compares with the base in one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Median of new/base.
    pub ratio: f64,
    /// Missing where there are too few pairs for one.
    pub interval: Option<(f64, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpeedVerdict {
    NotSlower,
    Slower,
    Inconclusive,
}

impl Comparison {
    /// `None` without a pair that has a ratio: both figures above zero.
    pub fn of(pairs: &[FigurePair]) -> Option<Self> {
        let measured = |figure: f64| figure.is_finite() && figure > 0.0;
        let mut logs: Vec<f64> = pairs
            .iter()
            .filter(|pair| measured(pair.base) && measured(pair.new))
            .map(|pair| pair.new.ln() - pair.base.ln())
            .collect();
        logs.sort_by(f64::total_cmp);
        let (low, high) = (logs.len().checked_sub(1)? / 2, logs.len() / 2);
        let interval =
            rank(logs.len()).map(|rank| (logs[rank - 1].exp(), logs[logs.len() - rank].exp()));
        Some(Self {
            ratio: f64::midpoint(logs[low], logs[high]).exp(),
            interval,
        })
    }

    /// `tolerance` is what still counts as equal: 0.03 for three percent. Slower is what is surely above 1 and not surely within the tolerance.
    pub fn verdict(self, tolerance: f64) -> SpeedVerdict {
        match self.interval {
            Some((_, high)) if high <= 1.0 + tolerance => SpeedVerdict::NotSlower,
            Some((low, _)) if low > 1.0 => SpeedVerdict::Slower,
            _ => SpeedVerdict::Inconclusive,
        }
    }
}

impl fmt::Display for SpeedVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSlower => "not slower",
            Self::Slower => "**slower**",
            Self::Inconclusive => "inconclusive",
        })
    }
}

/// The interval goes from the value of this rank, counted from one, to the same rank from above. Six values are the fewest that have one.
fn rank(values: usize) -> Option<usize> {
    let mut below = 0.0;
    // The chance that exactly so many of the values lie below their median.
    let mut exactly = 0.5_f64.powi(i32::try_from(values).ok()?);
    let mut rank = 0;
    while rank < values {
        below += exactly;
        if 2.0 * below > ERROR {
            break;
        }
        exactly *= (values - rank) as f64 / (rank + 1) as f64;
        rank += 1;
    }
    (rank > 0).then_some(rank)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::SpeedVerdict::{Inconclusive, NotSlower, Slower};
    use super::*;

    fn compare(ratios: &[f64]) -> Comparison {
        let pairs: Vec<_> = ratios
            .iter()
            .map(|new| FigurePair {
                base: 1.0,
                new: *new,
            })
            .collect();
        Comparison::of(&pairs).unwrap()
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9 * right.abs()
    }

    #[test]
    fn ranks_are_those_of_the_sign_test() {
        for (values, wanted) in [
            (0, None),
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (12, Some(3)),
            (15, Some(4)),
            (20, Some(6)),
        ] {
            assert_eq!(rank(values), wanted, "{values} values");
        }
    }

    #[test]
    fn a_verdict_needs_enough_rounds_that_agree() {
        for (name, ratios, ratio, verdict) in [
            ("equal", vec![1.0; 7], 1.0, NotSlower),
            (
                "faster",
                vec![0.7, 0.8, 0.75, 0.72, 0.9, 0.81, 0.74],
                0.75,
                NotSlower,
            ),
            (
                "slower within the tolerance",
                vec![1.01, 1.02, 1.02, 1.01, 1.02, 1.01, 1.02],
                1.02,
                NotSlower,
            ),
            (
                "slower",
                vec![1.1, 1.2, 1.15, 1.04, 1.3, 1.12, 1.2],
                1.15,
                Slower,
            ),
            (
                "slower by little, but surely",
                vec![1.01, 1.04, 1.02, 1.05, 1.02, 1.03, 1.01],
                1.02,
                Slower,
            ),
            (
                "scattered",
                vec![0.8, 1.2, 1.0, 0.9, 1.1, 1.05, 0.95],
                1.0,
                Inconclusive,
            ),
            ("too few rounds", vec![1.0; 5], 1.0, Inconclusive),
            (
                "one disturbed round of seven",
                vec![1.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0],
                1.0,
                Inconclusive,
            ),
            (
                "one disturbed round of nine",
                vec![1.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0],
                1.0,
                NotSlower,
            ),
        ] {
            let comparison = compare(&ratios);
            assert!(close(comparison.ratio, ratio), "{name}: {comparison:?}");
            assert_eq!(comparison.verdict(0.03), verdict, "{name}: {comparison:?}");
        }
    }

    #[test]
    fn what_was_not_measured_has_no_ratio() {
        let pair = |base, new| FigurePair { base, new };
        assert_eq!(Comparison::of(&[]), None);
        assert_eq!(Comparison::of(&[pair(0.0, 1.0), pair(1.0, f64::NAN)]), None);
    }

    fn figures() -> impl Strategy<Value = Vec<(f64, f64)>> {
        prop::collection::vec((1e-3..1e3_f64, 1e-3..1e3_f64), 1..30)
    }

    proptest! {
        #[test]
        fn exchanging_the_sides_inverts_everything(figures in figures()) {
            let pairs = |swap: bool| -> Vec<FigurePair> {
                let pair = |&(base, new): &(f64, f64)| {
                    let (base, new) = if swap { (new, base) } else { (base, new) };
                    FigurePair { base, new }
                };
                figures.iter().map(pair).collect()
            };
            let (here, there) = (Comparison::of(&pairs(false)).unwrap(), Comparison::of(&pairs(true)).unwrap());
            prop_assert!(close(here.ratio, 1.0 / there.ratio));
            match (here.interval, there.interval) {
                (Some((low, high)), Some((other_low, other_high))) => {
                    prop_assert!(close(low, 1.0 / other_high) && close(high, 1.0 / other_low));
                    prop_assert!(low <= here.ratio * (1.0 + 1e-9) && here.ratio <= high * (1.0 + 1e-9));
                }
                (None, None) => prop_assert!(figures.len() < 6),
                _ => prop_assert!(false, "an interval on one side alone"),
            }
            let both = [here.verdict(0.03), there.verdict(0.03)];
            prop_assert!(both != [Slower, Slower]);
        }
    }
}
