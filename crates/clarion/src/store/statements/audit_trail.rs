//! Who changed what and when.

use super::{Statement, statement};
use crate::domain::audit::{Actor, AuditEntry};
use crate::store::StoreError;
use crate::store::columns::Columns;

pub const NOTE: Statement = statement!(
    "INSERT INTO audit_trail (at, operator, system_user, address, action, detail, failure) VALUES ($1, $2, $3, $4, $5, $6, $7)"
);
pub const CHANGES: Statement = statement!(
    "SELECT at, operator, system_user, address, action, detail, failure FROM audit_trail \
     WHERE at >= $1 AND (CAST($2 AS TEXT) IS NULL OR action LIKE $2 ESCAPE '\\' OR detail LIKE $2 ESCAPE '\\') ORDER BY id DESC LIMIT $3"
);

/// A pattern that finds what contains the text.
pub fn containing(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%");
    format!("%{}%", escaped.replace('_', "\\_"))
}

pub fn entry(row: &impl Columns) -> Result<AuditEntry, StoreError> {
    Ok(AuditEntry {
        at: row.time(0)?,
        actor: Actor {
            operator: row.optional_string(1)?,
            system_user: row.optional_string(2)?,
            address: row.optional_string(3)?,
        },
        action: row.string(4)?,
        detail: row.string(5)?,
        failure: row.optional_string(6)?,
    })
}
