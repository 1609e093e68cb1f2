//! Every single latency of a measurement, and the few numbers that people ask for.

use std::time::{Duration, Instant};

use crate::others::InterferenceMonitor;

/// The middle one of some figures that were measured equally often.
pub fn median<T>(rounds: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    let mut values: Vec<_> = rounds.iter().map(figure).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Kept one by one: a minute of full load is a few million numbers, and then no quantile is an estimate.
#[derive(Debug, Default)]
pub struct Latencies(Vec<Duration>);

/// Median, high quantiles and the worst.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spread {
    pub p50: Duration,
    pub p95: Duration,
    pub p99: Duration,
    pub p999: Duration,
    pub max: Duration,
}

impl Latencies {
    pub fn add(&mut self, latency: Duration) {
        self.0.push(latency);
    }

    pub fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn sum(&self) -> Duration {
        self.0.iter().sum()
    }

    pub fn spread(mut self) -> Spread {
        self.0.sort_unstable();
        let at = |per_mille: usize| {
            let place = (self.0.len() * per_mille).div_ceil(1000).saturating_sub(1);
            self.0.get(place).copied().unwrap_or_default()
        };
        Spread {
            p50: at(500),
            p95: at(950),
            p99: at(990),
            p999: at(999),
            max: at(1000),
        }
    }
}

/// Latencies second by second, so that those seconds can be told apart in which others disturbed the machine.
#[derive(Debug)]
pub struct Seconds {
    start: Instant,
    slices: Vec<Latencies>,
}

impl Seconds {
    pub fn new(start: Instant, seconds: u64) -> Self {
        Self {
            start,
            slices: (0..seconds).map(|_| Latencies::default()).collect(),
        }
    }

    /// What lies outside the measured time is not counted.
    pub fn add(&mut self, at: Instant, latency: Duration) {
        let second = at
            .checked_duration_since(self.start)
            .map(|time| time.as_secs());
        let slice = second.and_then(|second| self.slices.get_mut(usize::try_from(second).ok()?));
        if let Some(slice) = slice {
            slice.add(latency);
        }
    }

    pub fn append(&mut self, others: Self) {
        for (slice, other) in self.slices.iter_mut().zip(others.slices) {
            slice.append(other);
        }
    }

    /// The quiet seconds alone; all of them where none was quiet.
    pub fn judge(self, watch: InterferenceMonitor) -> Judged {
        let quiet = watch.quiet_seconds();
        let number = quiet.iter().filter(|quiet| **quiet).count();
        let mut judged = Judged {
            latencies: Latencies::default(),
            seconds: if number == 0 { quiet.len() } else { number },
            quiet: number,
        };
        for (slice, quiet) in self.slices.into_iter().zip(quiet) {
            if quiet || number == 0 {
                judged.latencies.append(slice);
            }
        }
        judged
    }
}

/// What counts of a measurement.
#[derive(Debug)]
pub struct Judged {
    pub latencies: Latencies,
    /// How many seconds that is.
    pub seconds: usize,
    /// How many seconds were quiet.
    pub quiet: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_values_and_nothing_in_between() {
        let mut latencies = Latencies::default();
        (1..=2000)
            .rev()
            .for_each(|ms| latencies.add(Duration::from_millis(ms)));
        let spread = latencies.spread();
        let quantiles = [spread.p50, spread.p95, spread.p99, spread.p999, spread.max];
        let millis = quantiles.map(|time| time.as_millis());
        assert_eq!(millis, [1000, 1900, 1980, 1998, 2000]);
        assert_eq!(Latencies::default().spread().max, Duration::ZERO);
    }
}
