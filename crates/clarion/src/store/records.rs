//! The verbs of the store that applications and operators ask and switch with.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::domain::account::AccountSid;
use crate::domain::attempt::CallHistory;
use crate::domain::call::{CallProgress, CallSid};
use crate::domain::claim::{CallFilter, CallRecord};

#[async_trait]
pub trait Records: Send + Sync {
    async fn call_progress(
        &self,
        account: &AccountSid,
        sid: &CallSid,
    ) -> Result<Option<CallProgress>, StoreError>;
    /// Its attempts that have ended, and its legs.
    async fn call_history(&self, sid: &CallSid) -> Result<CallHistory, StoreError>;
    async fn call_record(&self, sid: &CallSid) -> Result<Option<CallRecord>, StoreError>;
    /// The newest first.
    async fn list_calls(&self, filter: CallFilter) -> Result<Vec<CallRecord>, StoreError>;
    /// `None` puts the switch back to where it was.
    async fn set_switch(
        &self,
        name: &str,
        value: Option<&str>,
        now: Timestamp,
    ) -> Result<(), StoreError>;
    async fn switches(&self) -> Result<Vec<(String, String)>, StoreError>;
    /// Whether a number may be called; false if that was so before.
    async fn bar_number(
        &self,
        digits: &str,
        barred: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError>;
    async fn barred_numbers(&self) -> Result<Vec<String>, StoreError>;
}
