//! Numbers that are never called, as they were a moment ago: an operator's change takes effect soon, and a request costs no read.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use supervisor::Watch;

use crate::store::Store;

const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub struct BarredNumbers {
    digits: RwLock<HashSet<String>>,
}

impl BarredNumbers {
    pub fn contains(&self, digits: &str) -> bool {
        let known = self.digits.read().unwrap_or_else(PoisonError::into_inner);
        known.contains(digits)
    }

    /// Reads the list for as long as the server runs.
    pub async fn keep_reading(&self, store: &dyn Store, watch: Watch) {
        loop {
            watch.beat();
            match store.barred_numbers().await {
                Ok(numbers) => {
                    let mut known = self.digits.write().unwrap_or_else(PoisonError::into_inner);
                    *known = numbers.into_iter().collect();
                }
                Err(error) => tracing::error!(%error, "the barred numbers could not be read"),
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}
