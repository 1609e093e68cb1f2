//! The verbs of the store that are about lists of numbers that accounts keep.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::account::AccountSid;
use crate::domain::call_list::{CallList, ListName};

#[async_trait]
pub trait ListBook: Send + Sync {
    /// A new list of an account that there is.
    async fn add_list(&self, list: CallList) -> Result<(), StoreError>;
    /// The numbers of a list that there is become these.
    async fn set_list(&self, list: CallList) -> Result<(), StoreError>;
    async fn remove_list(&self, account: &AccountSid, name: &ListName) -> Result<(), StoreError>;
    /// By their names.
    async fn lists(&self, account: &AccountSid) -> Result<Vec<CallList>, StoreError>;
    /// Those of these names that there are.
    async fn lists_named(
        &self,
        account: &AccountSid,
        names: &[ListName],
    ) -> Result<Vec<CallList>, StoreError>;
}
