//! Whether a trunk is there: asked by OPTIONS, and known from its registration where it wants one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use supervisor::Watch;
use tokio::task::JoinSet;

use super::Trunk;

/// A trunk that is down is asked again after this time, whatever the usual interval is.
const RETRY: Duration = Duration::from_secs(5);
/// One lost packet is no reason to give a trunk up, or one of its addresses.
pub(super) const MISSES_ALLOWED: u32 = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Nothing is known yet.
    Unknown,
    Up,
    Down {
        why: String,
    },
}

impl Health {
    /// Worth a try: a trunk of which nothing is known yet is tried too.
    pub fn usable(&self) -> bool {
        !matches!(self, Health::Down { .. })
    }
}

/// Who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HealthSource {
    Registration,
    Options,
}

/// What each source says. One that says that the trunk is down is believed: a registrar may answer for a trunk that carries no calls, and the
/// other way round.
#[derive(Debug, Clone)]
pub(super) struct KnownHealth {
    registration: Health,
    options: Health,
}

impl Default for KnownHealth {
    fn default() -> Self {
        Self {
            registration: Health::Unknown,
            options: Health::Unknown,
        }
    }
}

impl KnownHealth {
    pub fn set(&mut self, source: HealthSource, health: Health) {
        match source {
            HealthSource::Registration => self.registration = health,
            HealthSource::Options => self.options = health,
        }
    }

    pub fn options_say_up(&self) -> bool {
        self.options == Health::Up
    }

    pub fn all(&self) -> Health {
        match (&self.registration, &self.options) {
            (down @ Health::Down { .. }, _) | (_, down @ Health::Down { .. }) => down.clone(),
            (Health::Unknown, Health::Unknown) => Health::Unknown,
            _ => Health::Up,
        }
    }
}

/// Turns the results of checks into the health of a trunk and the pause before the next check.
pub(super) struct Checks {
    source: HealthSource,
    misses: u32,
    pause: Duration,
    longest_pause: Duration,
}

impl Checks {
    /// The pause after a failed check doubles up to this.
    pub fn new(source: HealthSource, longest_pause: Duration) -> Self {
        Self {
            source,
            misses: 0,
            pause: RETRY,
            longest_pause,
        }
    }

    /// Takes the result of a check: the usual time until the next one, or what is wrong. Returns the time until the next check.
    pub fn judge(&mut self, trunk: &Trunk, checked: Result<Duration, String>) -> Duration {
        match checked {
            Ok(next) => {
                self.misses = 0;
                self.pause = RETRY;
                trunk.note_health(self.source, Health::Up);
                next
            }
            Err(why) => {
                trunk.expire_addresses();
                self.misses += 1;
                if self.misses >= MISSES_ALLOWED {
                    trunk.note_health(self.source, Health::Down { why });
                }
                let pause = self.pause;
                self.pause = (self.pause * 2).min(self.longest_pause);
                // Not all clients of a trunk that comes back shall come back in the same moment.
                pause.mul_f64(0.75 + rand::random::<f64>() / 4.0)
            }
        }
    }
}

/// Sends OPTIONS time and again, until the trunk is stopped.
pub(super) async fn check_health(trunk: Arc<Trunk>, interval: Duration, watch: Watch) {
    let mut checks = Checks::new(HealthSource::Options, RETRY);
    // Some of those that we register with never answer OPTIONS: their silence counts only after they have answered once.
    let mut has_answered = trunk.config.register.is_none();
    while let Some(checked) = trunk.unless_stopped(Box::pin(ask(&trunk, interval))).await {
        watch.heartbeat();
        has_answered |= checked.is_ok();
        let next = if has_answered {
            checks.judge(&trunk, checked)
        } else {
            interval
        };
        if trunk
            .unless_stopped(tokio::time::sleep(next))
            .await
            .is_none()
        {
            break;
        }
    }
    watch.release();
}

/// Pings the connections to the trunk time and again, until the trunk is stopped.
pub(super) async fn keep_alive(trunk: Arc<Trunk>, interval: Duration, watch: Watch) {
    while (trunk.unless_stopped(tokio::time::sleep(interval)).await).is_some() {
        watch.heartbeat();
        let Ok(addresses) = trunk.usable_addresses().await else {
            continue;
        };
        let mut pings = JoinSet::new();
        for address in addresses {
            let trunk = Arc::clone(&trunk);
            pings.spawn(async move {
                if let Err(error) = trunk.signalling().keep_alive(address).await {
                    tracing::debug!(trunk = trunk.config.name, %address, %error, "the connection cannot be kept alive");
                }
            });
        }
        pings.join_all().await;
    }
    watch.release();
}

/// Asks every address. Returns the time until the next check, or what is wrong with the last of them if none is there.
async fn ask(trunk: &Arc<Trunk>, interval: Duration) -> Result<Duration, String> {
    let mut asking = JoinSet::new();
    for address in trunk.addresses().await? {
        let trunk = Arc::clone(trunk);
        asking.spawn(async move {
            let asked = Instant::now();
            let answered = ask_at(&trunk, address).await;
            trunk.note_answer(address, &answered);
            // It may be the connection alone that is dead.
            if answered.is_err() && trunk.has_fallen_silent(address) {
                trunk.signalling().close_if_silent(address, asked).await;
            }
            answered
        });
    }
    let (mut there, mut why) = (false, None);
    while let Some(asked) = asking.join_next().await {
        match asked.map_err(|error| error.to_string()).flatten() {
            Ok(()) => there = true,
            Err(reason) => why = Some(reason),
        }
    }
    match why {
        None => Ok(interval),
        Some(_) if there => Ok(interval.min(RETRY)),
        Some(why) => Err(why),
    }
}

async fn ask_at(trunk: &Trunk, address: SocketAddr) -> Result<(), String> {
    let target = trunk.request_address("", address);
    match trunk.signalling().ping(&target, address).await {
        // Overloaded or shutting down. Any other code comes from a trunk that is there, even if it does not like OPTIONS.
        Ok(Some(503)) => Err(format!("{address} answers 503")),
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(format!("{address} does not answer")),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trunk_is_down_when_one_source_says_so_and_up_when_one_says_so_and_none_denies_it() {
        let down = |why: &str| Health::Down {
            why: why.to_owned(),
        };
        let mut known = KnownHealth::default();
        assert_eq!(known.all(), Health::Unknown);
        known.set(HealthSource::Registration, Health::Up);
        assert_eq!(known.all(), Health::Up);
        known.set(HealthSource::Options, down("silent"));
        assert_eq!(known.all(), down("silent"));
        known.set(HealthSource::Registration, Health::Unknown);
        assert_eq!(known.all(), down("silent"));
        known.set(HealthSource::Options, Health::Up);
        assert_eq!(known.all(), Health::Up);
        known.set(HealthSource::Registration, down("refused"));
        assert_eq!(known.all(), down("refused"));
    }
}
