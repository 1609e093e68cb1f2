//! Who changed what and when, in SQLite.

use async_trait::async_trait;
use rusqlite::{params, params_from_iter};

use super::SqliteStore;
use super::query::Query;
use crate::domain::audit::{AuditEntry, AuditFilter, AuditLine};
use crate::store::statements::audit_trail;
use crate::store::{AuditTrail, StoreError};

#[async_trait]
impl AuditTrail for SqliteStore {
    async fn note_change(&self, entry: AuditEntry) -> Result<(), StoreError> {
        self.write_beside(move |db| {
            let values = params![
                entry.at.as_millisecond(),
                entry.actor.operator,
                entry.actor.system_user,
                entry.actor.address,
                entry.action,
                entry.detail,
                entry.failure,
            ];
            db.run(audit_trail::NOTE.sqlite, values)?;
            Ok(())
        })
        .await
    }

    async fn changes(&self, filter: AuditFilter) -> Result<Vec<AuditLine>, StoreError> {
        self.read(move |db| {
            let values = params_from_iter(audit_trail::changes_values(&filter));
            db.rows(audit_trail::CHANGES.sqlite, values, |row| {
                audit_trail::line(row)
            })
        })
        .await
    }
}
