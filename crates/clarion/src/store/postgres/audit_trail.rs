//! Who changed what and when, in PostgreSQL.

use async_trait::async_trait;
use jiff::Timestamp;

use super::PostgresStore;
use crate::domain::audit::{AuditEntry, AuditFilter};
use crate::store::statements::audit_trail;
use crate::store::{AuditTrail, StoreError};

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

    async fn changes(&self, filter: AuditFilter) -> Result<Vec<AuditEntry>, StoreError> {
        let since = filter.since.map_or(0, Timestamp::as_millisecond);
        let about = filter.about.as_deref().map(audit_trail::containing);
        let values: super::Values<'_> = &[&since, &about, &i64::from(filter.limit)];
        let rows = self.query(audit_trail::CHANGES.postgres, values).await?;
        rows.iter().map(audit_trail::entry).collect()
    }
}
