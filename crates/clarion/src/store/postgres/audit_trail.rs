//! Who changed what and when, in PostgreSQL.

use super::{PostgresStore, bound};
use crate::domain::audit::{AuditEntry, AuditFilter, AuditLine};
use crate::store::statements::audit_trail;
use crate::store::{AuditTrail, StoreError};
use async_trait::async_trait;

#[async_trait]
impl AuditTrail for PostgresStore {
    async fn note_change(&self, entry: AuditEntry) -> Result<(), StoreError> {
        let values: super::Values<'_> = &[
            &entry.at.as_millisecond(),
            &entry.actor.operator,
            &entry.actor.system_user,
            &entry.actor.address,
            &entry.action,
            &entry.detail,
            &entry.failure,
        ];
        self.execute(audit_trail::NOTE.postgres, values).await?;
        Ok(())
    }

    async fn changes(&self, filter: AuditFilter) -> Result<Vec<AuditLine>, StoreError> {
        let values = audit_trail::changes_values(&filter);
        let values = bound(&values);
        let rows = self.query(audit_trail::CHANGES.postgres, &values).await?;
        rows.iter().map(audit_trail::line).collect()
    }
}
