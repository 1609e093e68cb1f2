//! Accounts and applications in PostgreSQL.

use async_trait::async_trait;

use super::session::Session;
use super::{PostgresStore, bound};
use crate::domain::account::{
    Account, AccountChange, AccountSid, AppId, Application, ApplicationChange,
};
use crate::store::statements::{Statement, accounts};
use crate::store::{AccountBook, StoreError};

#[async_trait]
impl AccountBook for PostgresStore {
    async fn add_account(&self, account: Account) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        if find(&transaction, accounts::FIND, &account.sid)
            .await?
            .is_some()
        {
            return Err(StoreError::account_exists(&account.sid));
        }
        save(&transaction, &account).await?;
        Ok(transaction.commit().await?)
    }

    async fn account(&self, sid: &AccountSid) -> Result<Option<Account>, StoreError> {
        find(&*self.client().await?, accounts::FIND, sid).await
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        let client = self.client().await?;
        let rows = client.query_once(accounts::ALL.postgres, &[]).await?;
        rows.iter().map(accounts::account).collect()
    }

    async fn change_account(
        &self,
        sid: &AccountSid,
        change: AccountChange,
    ) -> Result<Account, StoreError> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        let found = find(&transaction, accounts::FIND_TO_CHANGE, sid).await?;
        let mut account = found.ok_or_else(|| StoreError::no_account(sid))?;
        account.apply(change);
        save(&transaction, &account).await?;
        transaction.commit().await?;
        Ok(account)
    }

    async fn add_application(&self, application: Application) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        let (account, id) = (&application.account, &application.id);
        if find(&transaction, accounts::FIND, account).await?.is_none() {
            return Err(StoreError::no_account(account));
        }
        let known = find_application(&transaction, accounts::FIND_APPLICATION, id).await?;
        if known.is_some() {
            return Err(StoreError::application_exists(id));
        }
        save_application(&transaction, &application).await?;
        Ok(transaction.commit().await?)
    }

    async fn application(&self, id: &AppId) -> Result<Option<Application>, StoreError> {
        find_application(&*self.client().await?, accounts::FIND_APPLICATION, id).await
    }

    async fn applications(
        &self,
        account: Option<&AccountSid>,
    ) -> Result<Vec<Application>, StoreError> {
        let client = self.client().await?;
        let rows = if let Some(sid) = account {
            let one = accounts::APPLICATIONS.postgres;
            client.query_once(one, &[&sid.as_str()]).await?
        } else {
            let all = accounts::ALL_APPLICATIONS.postgres;
            client.query_once(all, &[]).await?
        };
        rows.iter().map(accounts::application).collect()
    }

    async fn change_application(
        &self,
        id: &AppId,
        change: ApplicationChange,
    ) -> Result<Application, StoreError> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        let find = accounts::FIND_APPLICATION_TO_CHANGE;
        let found = find_application(&transaction, find, id).await?;
        let mut application = found.ok_or_else(|| StoreError::no_application(id))?;
        application.apply(change);
        save_application(&transaction, &application).await?;
        transaction.commit().await?;
        Ok(application)
    }
}

async fn find(
    client: &Session,
    statement: Statement,
    sid: &AccountSid,
) -> Result<Option<Account>, StoreError> {
    let row = client
        .query_opt_once(statement.postgres, &[&sid.as_str()])
        .await?;
    row.as_ref().map(accounts::account).transpose()
}

async fn save(client: &Session, account: &Account) -> Result<(), StoreError> {
    let values = accounts::account_values(account);
    client
        .execute_once(accounts::SAVE.postgres, &bound(&values))
        .await?;
    let sid = account.sid.as_str();
    replace_list(
        client,
        (accounts::CLEAR_NUMBER_RULES, accounts::ADD_NUMBER_RULE),
        sid,
        &account.display_numbers,
    )
    .await?;
    replace_list(
        client,
        (accounts::CLEAR_NETWORKS, accounts::ADD_NETWORK),
        sid,
        &account.allowed_networks,
    )
    .await
}

async fn replace_list<T: ToString>(
    client: &Session,
    (clear, add): (Statement, Statement),
    sid: &str,
    values: &[T],
) -> Result<(), StoreError> {
    client.execute_once(clear.postgres, &[&sid]).await?;
    for value in values {
        client
            .execute_once(add.postgres, &[&sid, &value.to_string()])
            .await?;
    }
    Ok(())
}

async fn find_application(
    client: &Session,
    statement: Statement,
    id: &AppId,
) -> Result<Option<Application>, StoreError> {
    let row = client
        .query_opt_once(statement.postgres, &[&id.as_str()])
        .await?;
    row.as_ref().map(accounts::application).transpose()
}

async fn save_application(client: &Session, application: &Application) -> Result<(), StoreError> {
    let values = accounts::application_values(application);
    client
        .execute_once(accounts::SAVE_APPLICATION.postgres, &bound(&values))
        .await?;
    Ok(())
}
