//! Who changed what and when.

use super::{Statement, statement};
use jiff::Timestamp;

use crate::domain::audit::{Actor, AuditEntry, AuditFilter, AuditLine};
use crate::store::StoreError;
use crate::store::binding::Bind;
use crate::store::columns::Columns;

pub const NOTE: Statement = statement!(
    "INSERT INTO audit_trail (at, operator, system_user, address, action, detail, failure) VALUES ($1, $2, $3, $4, $5, $6, $7)"
);
pub const CHANGES: Statement = statement!(
    "SELECT at, operator, system_user, address, action, detail, failure, id FROM audit_trail \
     WHERE id < $4 AND at >= $1 AND (CAST($2 AS TEXT) IS NULL OR action LIKE $2 ESCAPE '\\' OR detail LIKE $2 ESCAPE '\\') \
       AND (CAST($5 AS TEXT) IS NULL OR operator = $5 OR system_user = $5 OR system_user LIKE $6 ESCAPE '\\' OR system_user LIKE $7 ESCAPE '\\') \
     ORDER BY id DESC LIMIT $3"
);

/// The values of `CHANGES`.
pub fn changes_values(filter: &AuditFilter) -> [Bind<'static>; 7] {
    let by = filter.by.as_deref();
    // As `this_user` of the command line writes it.
    let as_another = by.map(|by| format!("{} as %", escaped(by)));
    let another_as = by.map(|by| format!("% as {}", escaped(by)));
    [
        Bind::of(filter.since.map_or(0, Timestamp::as_millisecond)),
        Bind::of(filter.about.as_deref().map(containing)),
        Bind::of(i64::from(filter.limit)),
        Bind::of(filter.before.unwrap_or(i64::MAX)),
        Bind::of(by.map(str::to_owned)),
        Bind::of(as_another),
        Bind::of(another_as),
    ]
}

/// A pattern that finds what contains the text.
pub fn containing(text: &str) -> String {
    format!("%{}%", escaped(text))
}

fn escaped(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%");
    escaped.replace('_', "\\_")
}

pub fn line(row: &impl Columns) -> Result<AuditLine, StoreError> {
    let entry = AuditEntry {
        at: row.time(0)?,
        actor: Actor {
            operator: row.optional_string(1)?,
            system_user: row.optional_string(2)?,
            address: row.optional_string(3)?,
        },
        action: row.string(4)?,
        detail: row.string(5)?,
        failure: row.optional_string(6)?,
    };
    Ok(AuditLine {
        number: row.number(7)?,
        entry,
    })
}
