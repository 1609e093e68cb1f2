//! Whether a node still holds a call.

use rusqlite::{Connection, params};

use super::query::Query;
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::claim::Lease;
use crate::store::StoreError;
use crate::store::statements::queue;

/// The state of a call that this lease still holds.
pub(super) fn held_state(
    db: &Connection,
    sid: &CallSid,
    lease: &Lease,
) -> Result<Option<CallState>, StoreError> {
    let values = params![sid.as_str(), lease.node.as_str(), lease.fence];
    db.row(queue::HELD_STATE.sqlite, values, |row| {
        queue::call_state(row)
    })
}
