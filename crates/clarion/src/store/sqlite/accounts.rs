//! Accounts and applications in SQLite.

use std::str::FromStr;

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::StoreError;
use crate::domain::account::{
    Account, AccountChange, AccountLimits, AccountSid, AppId, AppLimits, Application,
    ApplicationChange, CallbackSecret, Permissions,
};
use crate::domain::money::Money;

const ACCOUNT: &str = "SELECT sid, name, auth_token, state, bill_download, custom_display_number, requests_per_second, \
    requests_at_once, calls_per_second, calls_at_once, balance, spending_limit, created_at FROM accounts";
const APPLICATION: &str = "SELECT id, account_sid, name, state, callback_secret, calls_per_second, calls_at_once, created_at FROM applications";

pub fn add(db: &Connection, account: &Account) -> Result<(), StoreError> {
    match find(db, &account.sid).map_err(StoreError::failed)? {
        Some(_) => Err(StoreError::Exists(format!("account {}", account.sid))),
        None => save(db, account).map_err(StoreError::failed),
    }
}

pub fn change(
    db: &Connection,
    sid: &AccountSid,
    change: AccountChange,
) -> Result<Account, StoreError> {
    let found = find(db, sid).map_err(StoreError::failed)?;
    let mut account = found.ok_or_else(|| StoreError::Missing(format!("account {sid}")))?;
    account.apply(change);
    save(db, &account).map_err(StoreError::failed)?;
    Ok(account)
}

/// What has been spent and reserved is not the operator's to set, and is left alone.
fn save(db: &Connection, account: &Account) -> rusqlite::Result<()> {
    let sid = account.sid.as_str();
    db.prepare_cached(
        "INSERT INTO accounts (sid, name, auth_token, state, bill_download, custom_display_number, requests_per_second, \
           requests_at_once, calls_per_second, calls_at_once, balance, spending_limit, created_at) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (sid) DO UPDATE SET name = excluded.name, auth_token = excluded.auth_token, state = excluded.state, \
           bill_download = excluded.bill_download, custom_display_number = excluded.custom_display_number, \
           requests_per_second = excluded.requests_per_second, requests_at_once = excluded.requests_at_once, \
           calls_per_second = excluded.calls_per_second, calls_at_once = excluded.calls_at_once, \
           balance = excluded.balance, spending_limit = excluded.spending_limit",
    )?
    .execute(params![
        sid,
        account.name,
        account.auth_token.reveal(),
        account.state.as_str(),
        account.permissions.bill_download,
        account.permissions.custom_display_number,
        account.limits.requests_per_second,
        account.limits.requests_at_once,
        account.limits.calls_per_second,
        account.limits.calls_at_once,
        account.balance.map(Money::millionths),
        account.spending_limit.map(Money::millionths),
        account.created_at.as_millisecond(),
    ])?;
    replace_list(
        db,
        "number_rules (account_sid, pattern)",
        sid,
        &account.display_numbers,
    )?;
    replace_list(
        db,
        "allowed_networks (account_sid, network)",
        sid,
        &account.allowed_networks,
    )
}

fn replace_list<T: ToString>(
    db: &Connection,
    table_and_columns: &str,
    sid: &str,
    values: &[T],
) -> rusqlite::Result<()> {
    let table = table_and_columns
        .split(' ')
        .next()
        .unwrap_or(table_and_columns);
    db.execute(&format!("DELETE FROM {table} WHERE account_sid = ?"), [sid])?;
    let mut insert = db.prepare_cached(&format!(
        "INSERT OR IGNORE INTO {table_and_columns} VALUES (?, ?)"
    ))?;
    values
        .iter()
        .try_for_each(|value| insert.execute([sid, &value.to_string()]).map(drop))
}

pub fn find(db: &Connection, sid: &AccountSid) -> rusqlite::Result<Option<Account>> {
    let account = db
        .prepare_cached(&format!("{ACCOUNT} WHERE sid = ?"))?
        .query_row([sid.as_str()], read_account)
        .optional()?;
    account.map(|account| with_lists(db, account)).transpose()
}

pub fn all(db: &Connection) -> rusqlite::Result<Vec<Account>> {
    let mut statement = db.prepare_cached(&format!("{ACCOUNT} ORDER BY created_at, sid"))?;
    let accounts = statement.query_map([], read_account)?;
    accounts.map(|account| with_lists(db, account?)).collect()
}

fn read_account(row: &Row<'_>) -> rusqlite::Result<Account> {
    Ok(Account {
        sid: parsed(row, 0)?,
        name: row.get(1)?,
        auth_token: parsed(row, 2)?,
        state: parsed(row, 3)?,
        permissions: Permissions {
            bill_download: row.get(4)?,
            custom_display_number: row.get(5)?,
        },
        limits: AccountLimits {
            requests_per_second: row.get(6)?,
            requests_at_once: row.get(7)?,
            calls_per_second: row.get(8)?,
            calls_at_once: row.get(9)?,
        },
        balance: row.get::<_, Option<i64>>(10)?.map(Money::from_millionths),
        spending_limit: row.get::<_, Option<i64>>(11)?.map(Money::from_millionths),
        display_numbers: Vec::new(),
        allowed_networks: Vec::new(),
        created_at: time(row, 12)?,
    })
}

fn with_lists(db: &Connection, mut account: Account) -> rusqlite::Result<Account> {
    let sid = account.sid.as_str();
    account.display_numbers = list(
        db,
        "SELECT pattern FROM number_rules WHERE account_sid = ? ORDER BY 1",
        sid,
    )?;
    account.allowed_networks = list(
        db,
        "SELECT network FROM allowed_networks WHERE account_sid = ? ORDER BY 1",
        sid,
    )?;
    Ok(account)
}

fn list<T: FromStr<Err: ToString>>(
    db: &Connection,
    sql: &str,
    sid: &str,
) -> rusqlite::Result<Vec<T>> {
    db.prepare_cached(sql)?
        .query_map([sid], |row| parsed(row, 0))?
        .collect()
}

pub fn add_application(db: &Connection, application: &Application) -> Result<(), StoreError> {
    if find(db, &application.account)
        .map_err(StoreError::failed)?
        .is_none()
    {
        return Err(StoreError::Missing(format!(
            "account {}",
            application.account
        )));
    }
    match find_application(db, &application.id).map_err(StoreError::failed)? {
        Some(_) => Err(StoreError::Exists(format!(
            "application {}",
            application.id
        ))),
        None => save_application(db, application).map_err(StoreError::failed),
    }
}

pub fn change_application(
    db: &Connection,
    id: &AppId,
    change: ApplicationChange,
) -> Result<Application, StoreError> {
    let found = find_application(db, id).map_err(StoreError::failed)?;
    let mut application = found.ok_or_else(|| StoreError::Missing(format!("application {id}")))?;
    application.apply(change);
    save_application(db, &application).map_err(StoreError::failed)?;
    Ok(application)
}

fn save_application(db: &Connection, application: &Application) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO applications (id, account_sid, name, state, callback_secret, calls_per_second, calls_at_once, created_at) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, state = excluded.state, callback_secret = excluded.callback_secret, \
           calls_per_second = excluded.calls_per_second, calls_at_once = excluded.calls_at_once",
    )?
    .execute(params![
        application.id.as_str(),
        application.account.as_str(),
        application.name,
        application.state.as_str(),
        application.callback_secret.as_ref().map(CallbackSecret::reveal),
        application.limits.calls_per_second,
        application.limits.calls_at_once,
        application.created_at.as_millisecond(),
    ])?;
    Ok(())
}

pub fn find_application(db: &Connection, id: &AppId) -> rusqlite::Result<Option<Application>> {
    db.prepare_cached(&format!("{APPLICATION} WHERE id = ?"))?
        .query_row([id.as_str()], read_application)
        .optional()
}

pub fn applications(db: &Connection, account: &AccountSid) -> rusqlite::Result<Vec<Application>> {
    db.prepare_cached(&format!(
        "{APPLICATION} WHERE account_sid = ? ORDER BY created_at, id"
    ))?
    .query_map([account.as_str()], read_application)?
    .collect()
}

fn read_application(row: &Row<'_>) -> rusqlite::Result<Application> {
    let secret: Option<String> = row.get(4)?;
    Ok(Application {
        id: parsed(row, 0)?,
        account: parsed(row, 1)?,
        name: row.get(2)?,
        state: parsed(row, 3)?,
        callback_secret: secret.map(|_| parsed(row, 4)).transpose()?,
        limits: AppLimits {
            calls_per_second: row.get(5)?,
            calls_at_once: row.get(6)?,
        },
        created_at: time(row, 7)?,
    })
}

/// Reads a column that a type of the domain wrote, by that type's own parser.
pub fn parsed<T: FromStr<Err: ToString>>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error: T::Err| {
        let error = error.to_string().into();
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error)
    })
}

pub fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    let millis = row.get(column)?;
    Timestamp::from_millisecond(millis)
        .map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, millis))
}
