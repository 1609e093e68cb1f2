//! Keeps the session of a call refreshed where that was agreed on (RFC 4028).

use std::pin::Pin;

use tokio::time::Instant;

use crate::signalling::{Refreshed, Refresher, SessionTimer};

pub(super) struct SessionRefresh {
    timer: Option<SessionTimer>,
    refresher: Refresher,
    /// What we agreed on, for a refresh that has to say it again.
    description: String,
    since: Instant,
    refreshing: Option<Pin<Box<dyn Future<Output = Refreshed> + Send>>>,
}

impl SessionRefresh {
    pub fn new(timer: Option<SessionTimer>, refresher: Refresher, description: String) -> Self {
        Self {
            timer,
            refresher,
            description,
            since: Instant::now(),
            refreshing: None,
        }
    }

    /// The peer has refreshed it, and perhaps changed what was agreed on.
    pub fn refreshed_by_peer(&mut self, description: String) {
        self.since = Instant::now();
        self.description = description;
    }

    /// The last refresh, or the answer before any.
    pub fn last(&self) -> std::time::Instant {
        self.since.into_std()
    }

    /// True while an offer of ours is under way.
    pub fn offers(&self) -> bool {
        self.refreshing.is_some() && self.refresher.offers()
    }

    /// Refreshes when it is due; comes back when the peer is gone. May be dropped and asked again at any time.
    pub async fn peer_gone(&mut self) {
        let Some(timer) = self.timer else {
            return std::future::pending().await;
        };
        loop {
            if let Some(refreshing) = &mut self.refreshing {
                let refreshed = refreshing.await;
                self.refreshing = None;
                if refreshed == Refreshed::Gone {
                    return;
                }
                self.since = Instant::now();
            }
            tokio::time::sleep_until(self.since + timer.due()).await;
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
