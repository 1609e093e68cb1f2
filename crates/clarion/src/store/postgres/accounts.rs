//! Accounts and applications in PostgreSQL.

use std::str::FromStr;

use jiff::Timestamp;
use tokio_postgres::{Client, GenericClient, Row};

use super::super::StoreError;
use crate::domain::account::{
    Account, AccountChange, AccountLimits, AccountSid, AppId, AppLimits, Application,
    ApplicationChange, CallbackSecret, Permissions,
};
use crate::domain::money::Money;

/// The lists come along as arrays, so that an account is one round trip.
const ACCOUNT: &str = "SELECT sid, name, auth_token, state, bill_download, custom_display_number, requests_per_second, \
    requests_at_once, calls_per_second, calls_at_once, balance, spending_limit, created_at, \
    ARRAY(SELECT pattern FROM number_rules WHERE account_sid = sid ORDER BY 1), \
    ARRAY(SELECT network FROM allowed_networks WHERE account_sid = sid ORDER BY 1) FROM accounts";
const APPLICATION: &str = "SELECT id, account_sid, name, state, callback_secret, calls_per_second, calls_at_once, created_at FROM applications";

pub async fn add(client: &mut Client, account: &Account) -> Result<(), StoreError> {
    let transaction = client.transaction().await?;
    if find(&transaction, &account.sid, "").await?.is_some() {
        return Err(StoreError::Exists(format!("account {}", account.sid)));
    }
    save(&transaction, account).await?;
    Ok(transaction.commit().await?)
}

pub async fn change(
    client: &mut Client,
    sid: &AccountSid,
    change: AccountChange,
) -> Result<Account, StoreError> {
    let transaction = client.transaction().await?;
    let found = find(&transaction, sid, "FOR UPDATE").await?;
    let mut account = found.ok_or_else(|| StoreError::Missing(format!("account {sid}")))?;
    account.apply(change);
    save(&transaction, &account).await?;
    transaction.commit().await?;
    Ok(account)
}

/// What has been spent and reserved is not the operator's to set, and is left alone.
async fn save<C: GenericClient>(client: &C, account: &Account) -> Result<(), StoreError> {
    let sid = account.sid.as_str();
    client
        .execute(
            "INSERT INTO accounts (sid, name, auth_token, state, bill_download, custom_display_number, requests_per_second, \
               requests_at_once, calls_per_second, calls_at_once, balance, spending_limit, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
             ON CONFLICT (sid) DO UPDATE SET name = excluded.name, auth_token = excluded.auth_token, state = excluded.state, \
               bill_download = excluded.bill_download, custom_display_number = excluded.custom_display_number, \
               requests_per_second = excluded.requests_per_second, requests_at_once = excluded.requests_at_once, \
               calls_per_second = excluded.calls_per_second, calls_at_once = excluded.calls_at_once, \
               balance = excluded.balance, spending_limit = excluded.spending_limit",
            &[
                &sid,
                &account.name,
                &account.auth_token.reveal(),
                &account.state.as_str(),
                &account.permissions.bill_download,
                &account.permissions.custom_display_number,
                &limit(account.limits.requests_per_second),
                &limit(account.limits.requests_at_once),
                &limit(account.limits.calls_per_second),
                &limit(account.limits.calls_at_once),
                &account.balance.map(Money::millionths),
                &account.spending_limit.map(Money::millionths),
                &account.created_at.as_millisecond(),
            ],
        )
        .await?;
    replace_list(
        client,
        "number_rules (account_sid, pattern)",
        sid,
        &account.display_numbers,
    )
    .await?;
    replace_list(
        client,
        "allowed_networks (account_sid, network)",
        sid,
        &account.allowed_networks,
    )
    .await
}

async fn replace_list<C: GenericClient, T: ToString>(
    client: &C,
    table_and_columns: &str,
    sid: &str,
    values: &[T],
) -> Result<(), StoreError> {
    let table = table_and_columns
        .split(' ')
        .next()
        .unwrap_or(table_and_columns);
    client
        .execute(
            &format!("DELETE FROM {table} WHERE account_sid = $1"),
            &[&sid],
        )
        .await?;
    let values: Vec<_> = values.iter().map(ToString::to_string).collect();
    let insert = format!(
        "INSERT INTO {table_and_columns} SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING"
    );
    client.execute(&insert, &[&sid, &values]).await?;
    Ok(())
}

pub async fn find<C: GenericClient>(
    client: &C,
    sid: &AccountSid,
    lock: &str,
) -> Result<Option<Account>, StoreError> {
    let row = client
        .query_opt(
            &format!("{ACCOUNT} WHERE sid = $1 {lock}"),
            &[&sid.as_str()],
        )
        .await?;
    row.as_ref().map(read_account).transpose()
}

pub async fn all<C: GenericClient>(client: &C) -> Result<Vec<Account>, StoreError> {
    let rows = client
        .query(&format!("{ACCOUNT} ORDER BY created_at, sid"), &[])
        .await?;
    rows.iter().map(read_account).collect()
}

fn read_account(row: &Row) -> Result<Account, StoreError> {
    let limit = |column: usize| read_limit(row, column);
    let money = |column: usize| {
        row.get::<_, Option<i64>>(column)
            .map(Money::from_millionths)
    };
    Ok(Account {
        sid: parsed(row.get(0))?,
        name: row.get(1),
        auth_token: parsed(row.get(2))?,
        state: parsed(row.get(3))?,
        permissions: Permissions {
            bill_download: row.get(4),
            custom_display_number: row.get(5),
        },
        limits: AccountLimits {
            requests_per_second: limit(6),
            requests_at_once: limit(7),
            calls_per_second: limit(8),
            calls_at_once: limit(9),
        },
        balance: money(10),
        spending_limit: money(11),
        created_at: time(row.get(12))?,
        display_numbers: list(row.get(13))?,
        allowed_networks: list(row.get(14))?,
    })
}

pub async fn add_application(
    client: &mut Client,
    application: &Application,
) -> Result<(), StoreError> {
    let transaction = client.transaction().await?;
    if find(&transaction, &application.account, "")
        .await?
        .is_none()
    {
        return Err(StoreError::Missing(format!(
            "account {}",
            application.account
        )));
    }
    if find_application(&transaction, &application.id, "")
        .await?
        .is_some()
    {
        return Err(StoreError::Exists(format!(
            "application {}",
            application.id
        )));
    }
    save_application(&transaction, application).await?;
    Ok(transaction.commit().await?)
}

pub async fn change_application(
    client: &mut Client,
    id: &AppId,
    change: ApplicationChange,
) -> Result<Application, StoreError> {
    let transaction = client.transaction().await?;
    let found = find_application(&transaction, id, "FOR UPDATE").await?;
    let mut application = found.ok_or_else(|| StoreError::Missing(format!("application {id}")))?;
    application.apply(change);
    save_application(&transaction, &application).await?;
    transaction.commit().await?;
    Ok(application)
}

async fn save_application<C: GenericClient>(
    client: &C,
    application: &Application,
) -> Result<(), StoreError> {
    client
        .execute(
            "INSERT INTO applications (id, account_sid, name, state, callback_secret, calls_per_second, calls_at_once, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
             ON CONFLICT (id) DO UPDATE SET name = excluded.name, state = excluded.state, callback_secret = excluded.callback_secret, \
               calls_per_second = excluded.calls_per_second, calls_at_once = excluded.calls_at_once",
            &[
                &application.id.as_str(),
                &application.account.as_str(),
                &application.name,
                &application.state.as_str(),
                &application.callback_secret.as_ref().map(CallbackSecret::reveal),
                &limit(application.limits.calls_per_second),
                &limit(application.limits.calls_at_once),
                &application.created_at.as_millisecond(),
            ],
        )
        .await?;
    Ok(())
}

pub async fn find_application<C: GenericClient>(
    client: &C,
    id: &AppId,
    lock: &str,
) -> Result<Option<Application>, StoreError> {
    let row = client
        .query_opt(
            &format!("{APPLICATION} WHERE id = $1 {lock}"),
            &[&id.as_str()],
        )
        .await?;
    row.as_ref().map(read_application).transpose()
}

pub async fn applications<C: GenericClient>(
    client: &C,
    account: &AccountSid,
) -> Result<Vec<Application>, StoreError> {
    let sql = format!("{APPLICATION} WHERE account_sid = $1 ORDER BY created_at, id");
    client
        .query(&sql, &[&account.as_str()])
        .await?
        .iter()
        .map(read_application)
        .collect()
}

fn read_application(row: &Row) -> Result<Application, StoreError> {
    Ok(Application {
        id: parsed(row.get(0))?,
        account: parsed(row.get(1))?,
        name: row.get(2),
        state: parsed(row.get(3))?,
        callback_secret: row.get::<_, Option<&str>>(4).map(parsed).transpose()?,
        limits: AppLimits {
            calls_per_second: read_limit(row, 5),
            calls_at_once: read_limit(row, 6),
        },
        created_at: time(row.get(7))?,
    })
}

fn limit(value: Option<u32>) -> Option<i32> {
    value.and_then(|value| i32::try_from(value).ok())
}

fn read_limit(row: &Row, column: usize) -> Option<u32> {
    row.get::<_, Option<i32>>(column)
        .and_then(|value| u32::try_from(value).ok())
}

/// Reads a value that a type of the domain wrote, by that type's own parser.
pub fn parsed<T: FromStr<Err: ToString>>(text: &str) -> Result<T, StoreError> {
    text.parse()
        .map_err(|error: T::Err| StoreError::Failed(error.to_string()))
}

fn list<T: FromStr<Err: ToString>>(texts: Vec<&str>) -> Result<Vec<T>, StoreError> {
    texts.into_iter().map(parsed).collect()
}

pub fn time(millis: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_millisecond(millis).map_err(StoreError::failed)
}
