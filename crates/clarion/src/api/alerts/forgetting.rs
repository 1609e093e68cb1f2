//! Incidents that nobody has closed and of which nothing was heard for a long time are forgotten. They count as closed long before.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use supervisor::Watch;

use crate::clock::Clock;
use crate::store::Store;

const PAUSE: Duration = Duration::from_secs(600);
/// Longer than any intake keeps an incident open.
const KEPT: SignedDuration = SignedDuration::from_hours(31 * 24);
const MOST: u32 = 1000;

pub async fn keep_forgetting(store: Arc<dyn Store>, clock: Clock, watch: Watch) {
    loop {
        watch.heartbeat();
        match store.forget_incidents(clock.now() - KEPT, MOST).await {
            Ok(0) => {}
            // There may be more.
            Ok(forgotten) if forgotten >= u64::from(MOST) => continue,
            Ok(forgotten) => tracing::debug!(forgotten, "incidents are too old to be kept"),
            Err(error) => tracing::warn!(%error, "old incidents could not be forgotten"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
