//! The do-not-call lists of accounts.

use jiff::Timestamp;

use super::{Statement, statement};
use crate::domain::account::AccountSid;
use crate::domain::call::CallSid;
use crate::domain::do_not_call::{DoNotCallEntry, DoNotCallSource};
use crate::store::StoreError;
use crate::store::binding::Bind;
use crate::store::columns::Columns;

/// What an entry is read from.
const ENTRY: &str = "SELECT number, added_at, source, call_sid FROM account_do_not_call";

/// With the values of `values`: changes nothing where the number is there.
pub const ADD: Statement = statement!(
    "INSERT INTO account_do_not_call (account_sid, number, added_at, source, call_sid) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"
);
/// The number of a call's attempt (`chosen`) at a moment ($2), as its owner wants. Before where they come from.
pub const ADD_CALLEE: &str = "INSERT INTO account_do_not_call (account_sid, number, added_at, source, call_sid) \
     SELECT chosen.account_sid, coalesce(chosen.to_number, calls.number), $2, 'callee', call_sid";
pub const REMOVE: Statement =
    statement!("DELETE FROM account_do_not_call WHERE account_sid = $1 AND number = $2");
pub const FIND: Statement = statement!(ENTRY, " WHERE account_sid = $1 AND number = $2");
pub const PAGE: Statement = statement!(
    ENTRY,
    " WHERE account_sid = $1 AND number > $2 ORDER BY number LIMIT $3"
);

/// Reads the columns of `ENTRY`.
pub fn entry(row: &impl Columns) -> Result<DoNotCallEntry, StoreError> {
    let source = DoNotCallSource::from_stored(row.text(2)?, row.optional_parsed(3)?);
    Ok(DoNotCallEntry {
        digits: row.string(0)?,
        added_at: row.time(1)?,
        source: source.ok_or_else(|| StoreError::failed("an unknown source of a number"))?,
    })
}

/// The values of `ADD`.
pub fn values<'a>(
    account: &'a AccountSid,
    digits: &'a str,
    source: &'a DoNotCallSource,
    now: Timestamp,
) -> [Bind<'a>; 5] {
    [
        Bind::of(account.as_str()),
        Bind::of(digits),
        Bind::of(now),
        Bind::of(source.as_str()),
        Bind::of(source.call().map(CallSid::as_str)),
    ]
}
