//! Calls with the names of whose they are. A page has many calls of few accounts, so names are remembered for a moment.

use std::time::Duration;

use moka::future::Cache;

use crate::domain::account::{AccountSid, AppId};
use crate::domain::call_record::CallRecord;
use crate::management::{Management, ManagementError};

const NAMES: u64 = 10_000;
const NAME_AGE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct NamedCall {
    pub record: CallRecord,
    pub account: String,
    pub app: String,
}

#[derive(Debug)]
pub struct Names {
    accounts: Cache<AccountSid, String>,
    apps: Cache<AppId, String>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            accounts: cache(),
            apps: cache(),
        }
    }
}

fn cache<K: Eq + std::hash::Hash + Send + Sync + 'static>() -> Cache<K, String> {
    Cache::builder()
        .max_capacity(NAMES)
        .time_to_live(NAME_AGE)
        .build()
}

impl Names {
    pub async fn calls(
        &self,
        management: &Management,
        records: Vec<CallRecord>,
    ) -> Result<Vec<NamedCall>, ManagementError> {
        let mut named = Vec::with_capacity(records.len());
        for record in records {
            named.push(self.call(management, record).await?);
        }
        Ok(named)
    }

    pub async fn call(
        &self,
        management: &Management,
        record: CallRecord,
    ) -> Result<NamedCall, ManagementError> {
        Ok(NamedCall {
            account: self.account(management, &record.account).await?,
            app: self.app(management, &record.app).await?,
            record,
        })
    }

    pub async fn account(
        &self,
        management: &Management,
        sid: &AccountSid,
    ) -> Result<String, ManagementError> {
        if let Some(name) = self.accounts.get(sid).await {
            return Ok(name);
        }
        let found = management.account(sid).await.map(|account| account.name);
        let name = found_or(found, sid.as_str())?;
        self.accounts.insert(sid.clone(), name.clone()).await;
        Ok(name)
    }

    async fn app(&self, management: &Management, id: &AppId) -> Result<String, ManagementError> {
        if let Some(name) = self.apps.get(id).await {
            return Ok(name);
        }
        let found = management.application(id).await.map(|app| app.name);
        let name = found_or(found, id.as_str())?;
        self.apps.insert(id.clone(), name.clone()).await;
        Ok(name)
    }
}

/// What is not there any more is called by its id.
fn found_or(found: Result<String, ManagementError>, id: &str) -> Result<String, ManagementError> {
    match found {
        Err(error) if error.is_missing() => Ok(id.to_owned()),
        found => found,
    }
}
