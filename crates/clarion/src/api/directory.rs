//! Accounts and applications as requests need them: read from the store, remembered for a moment.
//!
//! The moment is short enough that an operator's change is honoured within a second, and long enough that a busy account costs two
//! reads a second instead of ten thousand.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;

use crate::domain::account::{Account, AccountSid, AppId, Application};
use crate::domain::status_code::{Refusal, StatusCode};
use crate::store::{Store, StoreError};

const MOMENT: Duration = Duration::from_millis(500);
const MOST: u64 = 10_000;

#[derive(Debug)]
pub struct Directory {
    store: Arc<dyn Store>,
    accounts: Cache<AccountSid, Arc<Account>>,
    applications: Cache<AppId, Arc<Application>>,
}

impl Directory {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            accounts: Cache::builder()
                .max_capacity(MOST)
                .time_to_live(MOMENT)
                .build(),
            applications: Cache::builder()
                .max_capacity(MOST)
                .time_to_live(MOMENT)
                .build(),
        }
    }

    /// The account if it was read a moment ago. Only accounts that have shown the right token are remembered.
    pub async fn remembered_account(&self, sid: &AccountSid) -> Option<Arc<Account>> {
        self.accounts.get(sid).await
    }

    pub async fn remember_account(&self, account: Arc<Account>) {
        self.accounts.insert(account.sid.clone(), account).await;
    }

    pub async fn read_account(&self, sid: &AccountSid) -> Result<Option<Account>, Refusal> {
        self.store
            .account(sid)
            .await
            .map_err(|error| unavailable(&error))
    }

    pub async fn application(&self, id: &AppId) -> Result<Arc<Application>, Refusal> {
        if let Some(application) = self.applications.get(id).await {
            return Ok(application);
        }
        let found = self
            .store
            .application(id)
            .await
            .map_err(|error| unavailable(&error))?;
        let application = Arc::new(found.ok_or(StatusCode::AppMissing)?);
        self.applications
            .insert(id.clone(), Arc::clone(&application))
            .await;
        Ok(application)
    }
}

/// What a client is told when the store did not answer. The cause is for the log, not for the client.
pub fn unavailable(error: &StoreError) -> Refusal {
    tracing::error!(%error, "a request failed");
    StatusCode::UnknownError.into()
}
