//! Numbers that are never called, as they were a moment ago: an operator's change takes effect within a second or two, and a request costs no read.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use supervisor::Watch;
use tokio::time::Instant;

use crate::store::{Store, StoreError};

const INTERVAL: Duration = Duration::from_secs(1);
/// All of them are read again after this time, in case a program that writes no changes has changed them.
const WHOLE: Duration = Duration::from_secs(600);

#[derive(Debug, Default)]
pub struct BarredNumbers {
    digits: RwLock<HashSet<String>>,
    /// Of the last change that is known.
    revision: Mutex<i64>,
}

impl BarredNumbers {
    /// All of them, as they are now.
    pub async fn open(store: &dyn Store) -> Result<Self, StoreError> {
        let barred = Self::default();
        barred.read_all(store).await?;
        Ok(barred)
    }

    pub fn contains(&self, digits: &str) -> bool {
        let known = self.digits.read().unwrap_or_else(PoisonError::into_inner);
        known.contains(digits)
    }

    /// Reads what has changed, for as long as the server runs.
    pub async fn keep_reading(&self, store: &dyn Store, watch: Watch) {
        let mut whole_at = Instant::now() + WHOLE;
        loop {
            tokio::time::sleep(INTERVAL).await;
            watch.heartbeat();
            let is_whole = Instant::now() >= whole_at;
            let read = if is_whole {
                self.read_all(store).await
            } else {
                self.read_changes(store).await
            };
            match read {
                Ok(()) if is_whole => whole_at = Instant::now() + WHOLE,
                Ok(()) => {}
                Err(error) => tracing::error!(%error, "the barred numbers could not be read"),
            }
        }
    }

    async fn read_all(&self, store: &dyn Store) -> Result<(), StoreError> {
        // A change between the two reads is read again, which changes nothing.
        let revision = store.barred_revision().await?;
        let numbers = store.barred_numbers().await?.into_iter().collect();
        *self.digits.write().unwrap_or_else(PoisonError::into_inner) = numbers;
        self.set_revision(revision);
        Ok(())
    }

    async fn read_changes(&self, store: &dyn Store) -> Result<(), StoreError> {
        let known = *self.revision.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = store.barred_changes(known).await?;
        let Some(last) = changes.last().map(|change| change.revision) else {
            return Ok(());
        };
        let mut numbers = self.digits.write().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            if change.is_barred {
                numbers.insert(change.digits);
            } else {
                numbers.remove(&change.digits);
            }
        }
        self.set_revision(last);
        Ok(())
    }

    fn set_revision(&self, revision: i64) {
        *self.revision.lock().unwrap_or_else(PoisonError::into_inner) = revision;
    }
}
