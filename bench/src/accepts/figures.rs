//! What one round has measured.

use std::fmt;

use super::load;
use super::raw::Raw;
use crate::latency::{Spread, millis};

#[derive(Debug)]
pub struct Figures {
    pub raw: Raw,
    pub at_full_load: load::LoadOutcome,
    pub at_half_load: load::LoadOutcome,
}

impl Figures {
    pub fn share_of_raw(&self) -> f64 {
        self.at_full_load.rate / self.raw.rate
    }

    /// The quiet seconds of that measurement that had the fewest.
    pub fn quiet(&self) -> usize {
        self.raw
            .quiet
            .min(self.at_full_load.quiet)
            .min(self.at_half_load.quiet)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "raw {:.0}/s (worst commit {:.1} ms), HTTPS {} = {:.0} % of raw; at half load {}; at least {} s each were quiet",
            self.raw.rate,
            millis(self.raw.worst),
            self.at_full_load,
            self.share_of_raw() * 100.0,
            self.at_half_load,
            self.quiet(),
        )
    }
}

impl fmt::Display for load::LoadOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0}/s in batches of {:.0}, p50/p99/max {}, worst commit {:.1} ms",
            self.rate,
            self.batch,
            self.latency,
            millis(self.worst_commit),
        )?;
        if self.longest_log > 0.0 {
            write!(
                f,
                ", log up to {:.0} MiB",
                self.longest_log / f64::from(1 << 20)
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, max] = [self.p50, self.p99, self.max].map(millis);
        write!(f, "{p50:.1}/{p99:.1}/{max:.0} ms")
    }
}
