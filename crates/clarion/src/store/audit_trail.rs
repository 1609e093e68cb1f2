//! The verbs of the store that are about who changed what.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::audit::{AuditEntry, AuditFilter, AuditLine};

#[async_trait]
pub trait AuditTrail: Send + Sync {
    async fn note_change(&self, entry: AuditEntry) -> Result<(), StoreError>;
    /// The newest first.
    async fn changes(&self, filter: AuditFilter) -> Result<Vec<AuditLine>, StoreError>;
}
