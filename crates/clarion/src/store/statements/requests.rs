//! The names that applications give to their requests.

use super::{Statement, statement};
use crate::domain::request_key::{AcceptedCall, KnownRequest};
use crate::store::StoreError;
use crate::store::binding::Bind;
use crate::store::columns::Columns;

pub const KEEP: Statement = statement!(
    "INSERT INTO request_keys (app_id, request_id, call_sid, accepted_at, digest) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"
);
pub const FIND: Statement = statement!(
    "SELECT call_sid, accepted_at, digest FROM request_keys WHERE app_id = $1 AND request_id = $2"
);
/// The digest of the fields alone (`RequestKey`), where the secret is to be forgotten.
pub const WITHOUT_SECRET: &str = "substr(digest, 1, 64)";
/// The oldest first: callSids sort by time. What belongs to a call that has not ended, or has ended a while ago only, is kept. A call that was forgotten has
/// left its end here; of one that an earlier program has forgotten nothing is known.
pub const OLD: Statement = statement!(
    "SELECT call_sid, CASE WHEN calls.call_sid IS NULL THEN oldest.ended_at IS NULL OR oldest.ended_at < $2 \
         ELSE calls.ended_at IS NOT NULL AND calls.ended_at < $2 END, oldest.accepted_at < $2 \
     FROM (SELECT call_sid, accepted_at, ended_at FROM request_keys WHERE call_sid > $3 ORDER BY call_sid LIMIT $1) AS oldest \
       LEFT JOIN calls USING (call_sid) ORDER BY call_sid"
);

/// The values of `KEEP`, where the request has a name.
pub fn key_values(order: &AcceptedCall) -> Option<[Bind<'_>; 5]> {
    let key = order.request.as_ref()?;
    Some([
        order.call.app.as_str().into(),
        key.id.as_str().into(),
        order.call.sid.as_str().into(),
        order.call.accepted_at.into(),
        (&key.digest).into(),
    ])
}

pub fn known(row: &impl Columns) -> Result<KnownRequest, StoreError> {
    Ok(KnownRequest {
        call: row.parsed(0)?,
        accepted_at: row.time(1)?,
        digest: row.string(2)?,
    })
}
