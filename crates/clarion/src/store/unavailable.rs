//! What a client is told where the database failed.

use super::StoreError;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::seldom::Seldom;

/// Returns the refusal for a request whose store access failed. The cause is for the log, not for the client.
pub fn unavailable(error: &StoreError) -> Refusal {
    static FAILURES: Seldom = Seldom::new();
    if let Some(unsaid) = FAILURES.say() {
        tracing::error!(%error, unsaid, "a request failed");
    }
    match error {
        StoreError::NoRoom => StatusCode::NoRoom.into(),
        _ => StatusCode::UnknownError.into(),
    }
}
