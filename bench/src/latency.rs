//! Every single latency of a measurement, and the few numbers that people ask for.

use std::time::Duration;

/// Kept one by one: a minute of full load is a few million numbers, and then no quantile is an estimate.
#[derive(Debug, Default)]
pub struct Latencies(Vec<Duration>);

/// Median, 99th percentile and the worst.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spread {
    pub p50: Duration,
    pub p99: Duration,
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

    pub fn spread(mut self) -> Spread {
        self.0.sort_unstable();
        let at = |percent: usize| {
            let place = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
            self.0.get(place).copied().unwrap_or_default()
        };
        Spread {
            p50: at(50),
            p99: at(99),
            max: at(100),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_values_and_nothing_in_between() {
        let mut latencies = Latencies::default();
        (1..=200)
            .rev()
            .for_each(|ms| latencies.add(Duration::from_millis(ms)));
        let spread = latencies.spread();
        let millis = [spread.p50, spread.p99, spread.max].map(|time| time.as_millis());
        assert_eq!(millis, [100, 198, 200]);
        assert_eq!(Latencies::default().spread().max, Duration::ZERO);
    }
}
