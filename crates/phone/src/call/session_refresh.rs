//! Keeps the session of a call refreshed where that was agreed on (RFC 4028).

use std::pin::Pin;
use std::time::Duration;

use tokio::time::Instant;

use crate::signalling::{Refreshed, Refresher, SessionTimer};

pub(super) struct SessionRefresh {
    clock: RefreshClock,
    refresher: Refresher,
    /// What we agreed on, for a refresh that has to say it again.
    description: String,
    refreshing: Option<Pin<Box<dyn Future<Output = Refreshed> + Send>>>,
}

/// When there is something to do.
#[derive(Debug)]
struct RefreshClock {
    timer: Option<SessionTimer>,
    since: Instant,
    /// A refresh that the peer could not take is repeated then.
    again: Option<Instant>,
}

impl RefreshClock {
    fn new(timer: Option<SessionTimer>, since: Instant) -> Self {
        Self {
            timer,
            since,
            again: None,
        }
    }

    /// What is agreed on by a change counts from then on. A peer that was to refresh and asks for nothing more does so no more.
    fn refreshed_by_peer(&mut self, timer: Option<SessionTimer>, now: Instant) {
        let kept = self.timer.filter(|known| known.ours);
        *self = Self::new(timer.or(kept), now);
    }

    fn refreshed_by_us(&mut self, timer: Option<SessionTimer>, now: Instant) {
        *self = Self::new(timer.or(self.timer), now);
    }

    fn due(&self) -> Option<(SessionTimer, Instant)> {
        let timer = self.timer?;
        Some((timer, self.again.unwrap_or(self.since + timer.due())))
    }
}

impl SessionRefresh {
    pub fn new(timer: Option<SessionTimer>, refresher: Refresher, description: String) -> Self {
        Self {
            clock: RefreshClock::new(timer, Instant::now()),
            refresher,
            description,
            refreshing: None,
        }
    }

    /// The peer has refreshed it, and perhaps changed what was agreed on.
    pub fn refreshed_by_peer(&mut self, description: String, timer: Option<SessionTimer>) {
        self.clock.refreshed_by_peer(timer, Instant::now());
        self.description = description;
    }

    /// The last refresh, or the answer before any.
    pub fn last(&self) -> std::time::Instant {
        self.clock.since.into_std()
    }

    /// True while an offer of ours is under way.
    pub fn offers(&self) -> bool {
        self.refreshing.is_some() && self.refresher.offers()
    }

    /// Refreshes when it is due; comes back when the peer is gone. May be dropped and asked again at any time.
    pub async fn peer_gone(&mut self) {
        loop {
            if let Some(refreshing) = &mut self.refreshing {
                let refreshed = refreshing.await;
                self.refreshing = None;
                let now = Instant::now();
                match refreshed {
                    Refreshed::Gone => return,
                    Refreshed::Yes(timer) => self.clock.refreshed_by_us(timer, now),
                    // Neither side shall meet the other one's next try (RFC 3261 section 14.1).
                    Refreshed::Later => {
                        let pause = 2.0 + 2.0 * rand::random::<f64>();
                        self.clock.again = Some(now + Duration::from_secs_f64(pause));
                    }
                }
            }
            let Some((timer, due)) = self.clock.due() else {
                return std::future::pending().await;
            };
            tokio::time::sleep_until(due).await;
            if !timer.ours {
                return;
            }
            let (refresher, description) = (self.refresher.clone(), self.description.clone());
            self.refreshing = Some(Box::pin(async move {
                refresher.refresh(timer, description).await
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(seconds: u64, ours: bool) -> SessionTimer {
        SessionTimer {
            interval: Duration::from_secs(seconds),
            ours,
        }
    }

    #[test]
    fn a_session_timer_that_begins_or_changes_in_mid_call_counts_from_then_on() {
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        let mut clock = RefreshClock::new(None, now);
        assert_eq!(clock.due(), None);
        clock.refreshed_by_peer(Some(timer(600, true)), later(10));
        assert_eq!(clock.due(), Some((timer(600, true), later(310))));
        clock.again = Some(later(313));
        assert_eq!(clock.due(), Some((timer(600, true), later(313))));
        clock.refreshed_by_us(None, later(320));
        assert_eq!(clock.due(), Some((timer(600, true), later(620))));
        clock.refreshed_by_peer(None, later(400));
        assert_eq!(clock.due(), Some((timer(600, true), later(700))));
        clock.refreshed_by_us(Some(timer(90, false)), later(500));
        assert_eq!(clock.due(), Some((timer(90, false), later(560))));
        clock.refreshed_by_peer(None, later(520));
        assert_eq!(clock.due(), None, "it promises no more refreshes");
    }
}
