//! `[callbacks]`: how callbacks are delivered and retried.

use std::path::PathBuf;
use std::time::Duration;

use hyper::header::HeaderValue;
use ipnet::IpNet;
use jiff::SignedDuration;

use super::section::{Mistake, Section};
use super::values::parse_network;
use crate::domain::callback::{PlaceLimits, RetrySchedule};

/// A month, which is longer than anyone waits.
const LONGEST_WAIT: u32 = 2_678_400;
/// Time that is left of a lease after the slowest delivery, for recording it.
const MARGIN: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct CallbacksConfig {
    pub concurrency: u32,
    pub places: PlaceLimits,
    pub time_limit: Duration,
    pub schedule: RetrySchedule,
    pub allowed_networks: Vec<IpNet>,
    pub ca_file: Option<PathBuf>,
    pub user_agent: HeaderValue,
    pub lease: SignedDuration,
    pub poll: Duration,
    pub stop_time: Duration,
}

impl CallbacksConfig {
    pub(super) fn read(section: &mut Section) -> Result<Self, Mistake> {
        let time_limit = section.seconds("time_limit_seconds", 1..=10_000)?;
        let lease = section.signed_seconds("lease_seconds", 0..=LONGEST_WAIT)?;
        if lease.unsigned_abs() < time_limit + MARGIN {
            let rule = "must be at least 2 more than callbacks.time_limit_seconds";
            return Err(section.mistake("lease_seconds", rule));
        }
        Ok(Self {
            concurrency: section.number("concurrency", 1..=10_000)?,
            places: PlaceLimits {
                per_account: section.number("per_account", 1..=10_000)?,
                per_receiver: section.number("per_host", 1..=10_000)?,
                per_address: section.number("per_address", 1..=10_000)?,
            },
            time_limit,
            schedule: schedule(section)?,
            allowed_networks: section.list("allowed_networks", parse_network)?,
            ca_file: section.path_or_none("ca_file")?,
            user_agent: section.parsed_by("user_agent", |text| {
                HeaderValue::from_str(text).map_err(|_| "cannot be sent in a header")
            })?,
            lease,
            poll: section.seconds("poll_seconds", 1..=10_000)?,
            stop_time: section.seconds("stop_seconds", 0..=LONGEST_WAIT)?,
        })
    }
}

fn schedule(section: &mut Section) -> Result<RetrySchedule, Mistake> {
    let waits = section.fractions("retry_seconds", 0.0..=f64::from(LONGEST_WAIT))?;
    Ok(RetrySchedule {
        waits: waits
            .into_iter()
            .map(SignedDuration::from_secs_f64)
            .collect(),
        jitter: section.fraction("jitter", 0.0..=1.0)?,
        longest_asked: section.signed_seconds("max_retry_after_seconds", 0..=LONGEST_WAIT)?,
    })
}
