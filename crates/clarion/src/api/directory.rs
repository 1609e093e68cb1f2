//! Accounts and applications for requests: read from the store and remembered for a moment.
//!
//! The moment is short enough that an operator's change takes effect within a second, and long enough that a busy account costs two reads a
//! second instead of ten thousand. When the moment is over, hundreds of requests may need the same account at the same time: one of them
//! reads it and the others share the answer.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;

use crate::domain::account::{Account, AccountSid, AppId, Application};
use crate::domain::status_code::{Refusal, StatusCode};
use crate::store::{Store, StoreError, unavailable};

const MOMENT: Duration = Duration::from_millis(500);
const LIMIT: u64 = 10_000;

#[derive(Debug)]
pub struct Directory {
    store: Arc<dyn Store>,
    accounts: Cache<AccountSid, Arc<Account>>,
    /// Reads that are under way. An entry is removed as soon as its read has ended.
    reading: Cache<AccountSid, Option<Arc<Account>>>,
    applications: Cache<AppId, Arc<Application>>,
}

impl Directory {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            accounts: Cache::builder()
                .max_capacity(LIMIT)
                .time_to_live(MOMENT)
                .build(),
            reading: Cache::new(LIMIT),
            applications: Cache::builder()
                .max_capacity(LIMIT)
                .time_to_live(MOMENT)
                .build(),
        }
    }

    /// Returns the account if it was read a moment ago. Only accounts that have shown the right token are remembered.
    pub async fn remembered_account(&self, sid: &AccountSid) -> Option<Arc<Account>> {
        self.accounts.get(sid).await
    }

    pub async fn remember_account(&self, account: Arc<Account>) {
        self.accounts.insert(account.sid.clone(), account).await;
    }

    pub async fn read_account(&self, sid: &AccountSid) -> Result<Option<Arc<Account>>, Refusal> {
        let read = async {
            let account = self.store.account(sid).await?;
            Ok::<_, StoreError>(account.map(Arc::new))
        };
        let found = self.reading.try_get_with_by_ref(sid, read).await;
        self.reading.invalidate(sid).await;
        found.map_err(|error| unavailable(&error))
    }

    pub async fn application(&self, id: &AppId) -> Result<Arc<Application>, Refusal> {
        let read = async {
            let found = self.store.application(id).await;
            let found = found.map_err(|error| unavailable(&error))?;
            Ok::<_, Refusal>(Arc::new(found.ok_or(StatusCode::AppMissing)?))
        };
        self.applications
            .try_get_with_by_ref(id, read)
            .await
            .map_err(|refusal| (*refusal).clone())
    }
}
