//! The verbs of the store that are about accounts and their applications.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::account::{
    Account, AccountChange, AccountSid, AppId, Application, ApplicationChange,
};

#[async_trait]
pub trait AccountBook: Send + Sync {
    async fn add_account(&self, account: Account) -> Result<(), StoreError>;
    async fn account(&self, sid: &AccountSid) -> Result<Option<Account>, StoreError>;
    async fn accounts(&self) -> Result<Vec<Account>, StoreError>;
    /// Applies the change to what is stored, and returns the account as it is now.
    async fn change_account(
        &self,
        sid: &AccountSid,
        change: AccountChange,
    ) -> Result<Account, StoreError>;
    async fn add_application(&self, application: Application) -> Result<(), StoreError>;
    async fn application(&self, id: &AppId) -> Result<Option<Application>, StoreError>;
    /// Those of an account, or all there are.
    async fn applications(
        &self,
        account: Option<&AccountSid>,
    ) -> Result<Vec<Application>, StoreError>;
    async fn change_application(
        &self,
        id: &AppId,
        change: ApplicationChange,
    ) -> Result<Application, StoreError>;
}
