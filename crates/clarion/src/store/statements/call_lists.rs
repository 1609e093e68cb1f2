//! Lists of numbers that accounts keep.

use super::{Statement, statement};
use crate::domain::call_list::CallList;
use crate::store::StoreError;
use crate::store::binding::Bind;
use crate::store::columns::Columns;

/// What a list is read from.
pub const LIST: &str = "SELECT account_sid, name, numbers, updated_at FROM call_lists";

pub const ALL: Statement = statement!(LIST, " WHERE account_sid = $1 ORDER BY name{bytewise}");
pub const FIND: Statement = statement!(LIST, " WHERE account_sid = $1 AND name = $2");
pub const ADD: Statement = statement!(
    "INSERT INTO call_lists (account_sid, name, numbers, updated_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
);
pub const SET: Statement = statement!(
    "UPDATE call_lists SET numbers = $3, updated_at = $4 WHERE account_sid = $1 AND name = $2"
);
pub const REMOVE: Statement =
    statement!("DELETE FROM call_lists WHERE account_sid = $1 AND name = $2");

/// Reads the columns of `LIST`.
pub fn list(row: &impl Columns) -> Result<CallList, StoreError> {
    Ok(CallList {
        account: row.parsed(0)?,
        name: row.parsed(1)?,
        numbers: serde_json::from_str(row.text(2)?).map_err(StoreError::failed)?,
        updated_at: row.time(3)?,
    })
}

/// The values of `ADD` and `SET`.
pub fn values(list: &CallList) -> [Bind<'_>; 4] {
    let numbers = serde_json::to_string(&list.numbers).expect("they have only text keys");
    [
        Bind::of(list.account.as_str()),
        Bind::of(list.name.as_str()),
        Bind::of(numbers),
        Bind::of(list.updated_at),
    ]
}
