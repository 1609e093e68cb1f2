//! The verbs of the store that applications and operators ask and switch with.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::domain::account::AccountSid;
use crate::domain::attempt::CallHistory;
use crate::domain::call::{CallProgress, CallSid};
use crate::domain::call_record::CallRecord;
use crate::domain::call_state::CallState;

/// A number was barred, or is not any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BarredChange {
    pub revision: i64,
    pub digits: String,
    pub is_barred: bool,
}

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
    /// The number of the last change of them.
    async fn barred_revision(&self) -> Result<i64, StoreError>;
    /// What was changed after that one, in its order.
    async fn barred_changes(&self, after: i64) -> Result<Vec<BarredChange>, StoreError>;
    /// Its application wants the call ended; `before_answer`: only if nobody has answered. How far it has come, if it is one of this account, has
    /// not ended, and may be cancelled so.
    async fn cancel_call_of(
        &self,
        account: &AccountSid,
        sid: &CallSid,
        before_answer: bool,
    ) -> Result<Option<CallState>, StoreError>;
    /// The operator wants all calls of an account ended that have not ended. How many they are.
    async fn cancel_calls_of(&self, account: &AccountSid) -> Result<u64, StoreError>;
    /// The schema that the oldest of all living nodes was made for.
    fn oldest_node(&self) -> usize;
}
