//! Accounts and applications.

use std::str::FromStr;

use super::{Statement, statement};
use crate::domain::account::{
    Account, AccountLimits, AppId, AppLimits, Application, BillJsonKey, CallbackSecret, Permissions,
};
use crate::domain::lexicon::Lexicon;
use crate::domain::voice_name::VoiceName;
use crate::store::StoreError;
use crate::store::binding::Bind;
use crate::store::columns::Columns;

/// The lists come along, so that an account is one question. Neither a number rule nor a network has a space in it.
const ACCOUNT: &str = "SELECT sid, name, auth_token, state, bill_download, custom_display_number, requests_per_second, \
    requests_at_once, calls_per_second, calls_at_once, balance, spending_limit, created_at, \
    (SELECT string_agg(pattern, ' ' ORDER BY pattern) FROM number_rules WHERE account_sid = sid), \
    (SELECT string_agg(network, ' ' ORDER BY network) FROM allowed_networks WHERE account_sid = sid), coalesce(updated_at, created_at), \
    call_hours, urgent_outside_hours, EXISTS (SELECT 1 FROM account_do_not_call WHERE account_do_not_call.account_sid = accounts.sid) FROM accounts";
const APPLICATION: &str = "SELECT id, account_sid, name, state, callback_secret, calls_per_second, calls_at_once, created_at, bill_json_key, voice, lexicon FROM applications";

pub const APP_IDS: Statement =
    statement!("SELECT id FROM applications WHERE account_sid = $1 ORDER BY id");
pub const FIND: Statement = statement!(ACCOUNT, " WHERE sid = $1");
pub const FIND_TO_CHANGE: Statement = statement!(ACCOUNT, " WHERE sid = $1{for_update}");
pub const ALL: Statement = statement!(ACCOUNT, " ORDER BY created_at, sid");
/// What has been spent and reserved is not the operator's to set, and is left alone.
pub const SAVE: Statement = statement!(
    "INSERT INTO accounts (sid, name, auth_token, state, bill_download, custom_display_number, requests_per_second, \
       requests_at_once, calls_per_second, calls_at_once, balance, spending_limit, created_at, updated_at, call_hours, urgent_outside_hours) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) \
     ON CONFLICT (sid) DO UPDATE SET name = excluded.name, auth_token = excluded.auth_token, state = excluded.state, \
       bill_download = excluded.bill_download, custom_display_number = excluded.custom_display_number, \
       requests_per_second = excluded.requests_per_second, requests_at_once = excluded.requests_at_once, \
       calls_per_second = excluded.calls_per_second, calls_at_once = excluded.calls_at_once, \
       balance = excluded.balance, spending_limit = excluded.spending_limit, updated_at = excluded.updated_at, \
       call_hours = excluded.call_hours, urgent_outside_hours = excluded.urgent_outside_hours"
);
pub const CLEAR_NUMBER_RULES: Statement =
    statement!("DELETE FROM number_rules WHERE account_sid = $1");
pub const ADD_NUMBER_RULE: Statement = statement!(
    "INSERT INTO number_rules (account_sid, pattern) VALUES ($1, $2) ON CONFLICT DO NOTHING"
);
pub const CLEAR_NETWORKS: Statement =
    statement!("DELETE FROM allowed_networks WHERE account_sid = $1");
pub const ADD_NETWORK: Statement = statement!(
    "INSERT INTO allowed_networks (account_sid, network) VALUES ($1, $2) ON CONFLICT DO NOTHING"
);

pub const FIND_APPLICATION: Statement = statement!(APPLICATION, " WHERE id = $1");
pub const FIND_APPLICATION_TO_CHANGE: Statement =
    statement!(APPLICATION, " WHERE id = $1{for_update}");
pub const ALL_APPLICATIONS: Statement = statement!(APPLICATION, " ORDER BY created_at, id");
pub const APPLICATIONS: Statement = statement!(
    APPLICATION,
    " WHERE account_sid = $1 ORDER BY created_at, id"
);
pub const SAVE_APPLICATION: Statement = statement!(
    "INSERT INTO applications (id, account_sid, name, state, callback_secret, calls_per_second, calls_at_once, created_at, bill_json_key, voice, lexicon) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
     ON CONFLICT (id) DO UPDATE SET name = excluded.name, state = excluded.state, callback_secret = excluded.callback_secret, \
       calls_per_second = excluded.calls_per_second, calls_at_once = excluded.calls_at_once, bill_json_key = excluded.bill_json_key, \
       voice = excluded.voice, lexicon = excluded.lexicon"
);

pub fn account(row: &impl Columns) -> Result<Account, StoreError> {
    Ok(Account {
        sid: row.parsed(0)?,
        name: row.string(1)?,
        auth_token: row.parsed(2)?,
        state: row.parsed(3)?,
        permissions: Permissions {
            bill_download: row.flag(4)?,
            custom_display_number: row.flag(5)?,
            urgent_outside_hours: row.flag(17)?,
        },
        limits: AccountLimits {
            requests_per_second: row.optional_number(6)?,
            requests_at_once: row.optional_number(7)?,
            calls_per_second: row.optional_number(8)?,
            calls_at_once: row.optional_number(9)?,
        },
        balance: row.optional_money(10)?,
        spending_limit: row.optional_money(11)?,
        created_at: row.time(12)?,
        display_numbers: list(row.optional_text(13)?)?,
        allowed_networks: list(row.optional_text(14)?)?,
        has_do_not_call: row.flag(18)?,
        updated_at: row.time(15)?,
        call_hours: row.optional_parsed(16)?,
    })
}

fn list<T: FromStr<Err: std::fmt::Display>>(texts: Option<&str>) -> Result<Vec<T>, StoreError> {
    let texts = texts.unwrap_or_default().split_whitespace();
    texts
        .map(|text| text.parse().map_err(StoreError::failed))
        .collect()
}

/// The values of `SAVE`.
pub fn account_values(account: &Account) -> [Bind<'_>; 16] {
    [
        account.sid.as_str().into(),
        Bind::of(&account.name),
        account.auth_token.reveal().into(),
        account.state.as_str().into(),
        account.permissions.bill_download.into(),
        account.permissions.custom_display_number.into(),
        account.limits.requests_per_second.into(),
        account.limits.requests_at_once.into(),
        account.limits.calls_per_second.into(),
        account.limits.calls_at_once.into(),
        account.balance.into(),
        account.spending_limit.into(),
        account.created_at.into(),
        account.updated_at.into(),
        account.call_hours.as_ref().map(ToString::to_string).into(),
        account.permissions.urgent_outside_hours.into(),
    ]
}

pub fn app_id(row: &impl Columns) -> Result<AppId, StoreError> {
    row.parsed(0)
}

pub fn application(row: &impl Columns) -> Result<Application, StoreError> {
    Ok(Application {
        id: row.parsed(0)?,
        account: row.parsed(1)?,
        name: row.string(2)?,
        state: row.parsed(3)?,
        callback_secret: row.optional_parsed(4)?,
        limits: AppLimits {
            calls_per_second: row.optional_number(5)?,
            calls_at_once: row.optional_number(6)?,
        },
        created_at: row.time(7)?,
        bill_json_key: row.optional_parsed(8)?,
        voice: row.optional_parsed(9)?,
        lexicon: Lexicon::from_stored(row.optional_text(10)?).map_err(StoreError::failed)?,
    })
}

/// The values of `SAVE_APPLICATION`.
pub fn application_values(application: &Application) -> [Bind<'_>; 11] {
    let secret = application.callback_secret.as_ref();
    [
        application.id.as_str().into(),
        application.account.as_str().into(),
        Bind::of(&application.name),
        application.state.as_str().into(),
        secret.map(CallbackSecret::reveal).into(),
        application.limits.calls_per_second.into(),
        application.limits.calls_at_once.into(),
        application.created_at.into(),
        application.bill_json_key.map(BillJsonKey::as_str).into(),
        application.voice.as_ref().map(VoiceName::as_str).into(),
        application.lexicon.to_stored().into(),
    ]
}
