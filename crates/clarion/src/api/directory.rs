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
    /// By who asks for them. `None`: there is none for him.
    applications: Cache<(Option<AccountSid>, AppId), Option<Arc<Application>>>,
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

    /// Returns an application, where somebody asks for it only if it is his. One that is another's is remembered as one that does not exist is: whoever asks
    /// again cannot tell them apart by how long it takes.
    pub async fn application(
        &self,
        id: &AppId,
        asker: Option<&AccountSid>,
    ) -> Result<Arc<Application>, Refusal> {
        let read = async {
            let found = self.store.application(id).await?;
            let is_his = |app: &Application| asker.is_none_or(|asker| *asker == app.account);
            Ok::<_, StoreError>(found.filter(is_his).map(Arc::new))
        };
        let key = (asker.cloned(), id.clone());
        let found = self.applications.try_get_with(key, read).await;
        let found = found.map_err(|error| unavailable(&error))?;
        found.ok_or_else(|| StatusCode::AppMissing.into())
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use supervisor::Supervisor;

    use super::*;
    use crate::domain::account::{AppLimits, AppState, test_account};
    use crate::domain::lexicon::Lexicon;
    use crate::store::Database;

    #[tokio::test]
    async fn an_application_of_another_is_remembered_as_one_that_does_not_exist() {
        let folder = tempfile::tempdir().unwrap();
        let file = format!("sqlite:{}", folder.path().join("clarion.db").display());
        let database = Database::parse(&file).unwrap();
        let store = database.open(&Supervisor::new()).await.unwrap();
        let [owner, stranger] =
            ["a", "b"].map(|letter| letter.repeat(32).parse::<AccountSid>().unwrap());
        let [app, unknown] = ["c", "d"].map(|letter| letter.repeat(32).parse::<AppId>().unwrap());
        store
            .add_account(test_account(owner.clone()))
            .await
            .unwrap();
        let application = Application {
            id: app.clone(),
            account: owner.clone(),
            name: "app".into(),
            state: AppState::Active,
            callback_secret: None,
            limits: AppLimits::default(),
            created_at: Timestamp::UNIX_EPOCH,
            bill_json_key: None,
            voice: None,
            lexicon: Lexicon::default(),
        };
        store.add_application(application).await.unwrap();
        let directory = Directory::new(Arc::clone(&store));
        for (id, asker, is_told) in [
            (&app, Some(&owner), true),
            (&app, None, true),
            (&app, Some(&stranger), false),
            (&unknown, Some(&stranger), false),
        ] {
            let told = directory.application(id, asker).await;
            assert_eq!(told.is_ok(), is_told, "{told:?}");
            let key = (asker.cloned(), id.clone());
            let remembered = directory.applications.get(&key).await;
            assert_eq!(remembered.map(|app| app.is_some()), Some(is_told));
        }
        store.close().await;
    }
}
