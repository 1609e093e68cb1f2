//! Callbacks: which are owed, what became of them, and sending them again.

use super::change::Change;
use super::{Management, ManagementError};
use crate::domain::callback::{Callback, CallbackAttempt, CallbackKey};
use crate::store::CallbackFilter;

impl Management {
    /// Those of the newest calls first.
    pub async fn callbacks(
        &self,
        filter: CallbackFilter,
    ) -> Result<Vec<Callback>, ManagementError> {
        Ok(self.store.callbacks(filter).await?)
    }

    /// A callback with its attempts, the oldest first.
    pub async fn callback(
        &self,
        key: &CallbackKey,
    ) -> Result<(Callback, Vec<CallbackAttempt>), ManagementError> {
        let found = self.store.callback(key).await?;
        found.ok_or_else(|| ManagementError::missing(format!("callback of call {key}")))
    }

    /// Sends a callback again, whatever its state.
    pub async fn replay_callback(&self, key: &CallbackKey) -> Result<(), ManagementError> {
        let change = Change::new("callback replay").on(key);
        self.noted(change, self.store.replay_callback(key)).await
    }
}
