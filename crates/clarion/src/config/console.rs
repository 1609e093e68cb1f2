//! `[console]`: where operators connect with a browser, and how long they stay signed in.

use std::net::SocketAddr;
use std::time::Duration;

use jiff::SignedDuration;

use super::section::{Mistake, Section};

/// A year, which is longer than anyone stays signed in.
const LONGEST_MINUTES: u32 = 525_600;
/// Who may fail more often than this may as well not be locked out.
const MAX_FAILURES: u32 = 1000;

#[derive(Debug, Clone)]
pub struct ConsoleConfig {
    /// None: there is no console.
    pub listen: Vec<SocketAddr>,
    pub plain: bool,
    /// A sign-in that is not used for this long has expired.
    pub idle: SignedDuration,
    /// And so has one that is older than this.
    pub longest: SignedDuration,
    pub failures_of_name: u32,
    pub failures_of_address: u32,
    pub lock_time: Duration,
}

impl ConsoleConfig {
    pub(super) fn read(section: &mut Section) -> Result<Self, Mistake> {
        let listen: Vec<SocketAddr> = section.list("listen", |text| {
            text.parse().map_err(|_| {
                format!("`{text}` is not an address with a port such as 127.0.0.1:8884")
            })
        })?;
        let plain = section.flag("plain")?;
        if plain && listen.iter().any(|address| !address.ip().is_loopback()) {
            let rule = "passwords are not sent in clear: listen on a loopback address such as 127.0.0.1:8884 only";
            return Err(section.mistake("plain", rule));
        }
        Ok(Self {
            listen,
            plain,
            idle: minutes(section, "idle_minutes")?,
            longest: minutes(section, "longest_minutes")?,
            failures_of_name: section.number("failures_of_name", 1..=MAX_FAILURES)?,
            failures_of_address: section.number("failures_of_address", 1..=MAX_FAILURES)?,
            lock_time: section.seconds("lock_seconds", 1..=LONGEST_MINUTES)?,
        })
    }
}

fn minutes(section: &mut Section, key: &str) -> Result<SignedDuration, Mistake> {
    let minutes = section.number(key, 1..=LONGEST_MINUTES)?;
    Ok(SignedDuration::from_mins(minutes.into()))
}
