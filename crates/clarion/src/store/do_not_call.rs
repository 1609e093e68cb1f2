//! The verbs of the store that are about the do-not-call lists of accounts.
//!
//! Whether an account has such a list at all is read with the account, which requests and dispatch remember for half a second: an account without one costs
//! nothing. Where there is one, its numbers are looked up by the primary key. They are not kept in memory as barred numbers are: a callee's key then counts
//! at once on every node, a million numbers cost no memory, and whoever writes one in a commit of their own need not wait for a turn in a row of revisions.

use std::collections::HashSet;

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::domain::account::AccountSid;
use crate::domain::do_not_call::{DoNotCallEntry, DoNotCallSource};

#[async_trait]
pub trait DoNotCallBook: Send + Sync {
    /// Adds numbers in one commit. A number that was there stays as it was. How many are new.
    async fn add_do_not_call(
        &self,
        account: &AccountSid,
        numbers: Vec<String>,
        source: DoNotCallSource,
        now: Timestamp,
    ) -> Result<u64, StoreError>;
    /// False if the number was not on the list.
    async fn remove_do_not_call(
        &self,
        account: &AccountSid,
        digits: &str,
    ) -> Result<bool, StoreError>;
    /// Those of these numbers that are on the list.
    async fn on_do_not_call(
        &self,
        account: &AccountSid,
        digits: &[&str],
    ) -> Result<HashSet<String>, StoreError>;
    async fn do_not_call_entry(
        &self,
        account: &AccountSid,
        digits: &str,
    ) -> Result<Option<DoNotCallEntry>, StoreError>;
    /// A page of the list in the order of the digits, after these. The first page comes after the empty text.
    async fn do_not_call_page(
        &self,
        account: &AccountSid,
        after: &str,
        limit: u32,
    ) -> Result<Vec<DoNotCallEntry>, StoreError>;
}
