//! Bill files, the tokens for them, what is forgotten, and who closes the day.

use super::{Statement, statement};
use crate::domain::bill::{BillFile, BillOf, Totals};
use crate::store::StoreError;
use crate::store::binding::Bind;
use crate::store::columns::Columns;

/// What a file is read from.
pub const FILE: &str = "SELECT bill_files.id, bill_files.account_sid, bill_files.app_id, bill_files.day, bill_files.keywords, bill_files.object, \
  bill_files.bytes, bill_files.lines, bill_files.fee, bill_files.sha256, bill_files.made_at, bill_files.expires_at FROM ";

pub const FIND: Statement = statement!(
    FILE,
    "bill_files WHERE app_id = $1 AND day = $2 AND keywords = $3"
);
pub const OF_DAY: Statement =
    statement!(FILE, "bill_files WHERE day = $1 ORDER BY app_id, keywords");
pub const OF_TOKEN: Statement = statement!(
    FILE,
    "bill_tokens JOIN bill_files ON bill_files.id = bill_tokens.file_id \
     WHERE bill_tokens.token_hash = $1 AND bill_tokens.expires_at > $2 AND bill_tokens.account_sid = bill_files.account_sid"
);
pub const RECORD: Statement = statement!(
    "INSERT INTO bill_files (id, account_sid, app_id, day, keywords, object, bytes, lines, fee, sha256, made_at, expires_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (app_id, day, keywords) DO NOTHING"
);
pub const FORGET_TOKENS: Statement = statement!(
    "DELETE FROM bill_tokens WHERE token_hash IN (SELECT token_hash FROM bill_tokens WHERE expires_at <= $1 LIMIT $2{skip_locked})"
);
pub const FORGET_DAYS: Statement = statement!("DELETE FROM bill_days WHERE day < $1");
pub const FORGET_LINES: Statement = statement!(
    "DELETE FROM bill_lines WHERE order_id IN (SELECT order_id FROM bill_lines WHERE bill_day < $1 ORDER BY bill_day LIMIT $2)"
);
pub const LEAVE_DUTY: Statement = statement!("DELETE FROM leases WHERE duty = $1 AND node = $2");

/// Reads the columns of `FILE`.
pub fn file(row: &impl Columns) -> Result<BillFile, StoreError> {
    Ok(BillFile {
        id: row.string(0)?,
        of: BillOf {
            account: row.parsed(1)?,
            app: row.parsed(2)?,
            day: row.parsed(3)?,
        },
        keywords: row.string(4)?,
        object: row.string(5)?,
        bytes: row.number(6)?,
        totals: Totals {
            lines: row.number(7)?,
            fee: row.money(8)?,
        },
        sha256: row.string(9)?,
        made_at: row.time(10)?,
        expires_at: row.optional_time(11)?,
    })
}

/// The values of `RECORD`.
pub fn values(file: &BillFile) -> [Bind<'_>; 12] {
    [
        Bind::of(&file.id),
        file.of.account.as_str().into(),
        file.of.app.as_str().into(),
        file.of.day.into(),
        Bind::of(&file.keywords),
        Bind::of(&file.object),
        file.bytes.cast_signed().into(),
        file.totals.lines.cast_signed().into(),
        file.totals.fee.into(),
        Bind::of(&file.sha256),
        file.made_at.into(),
        file.expires_at.into(),
    ]
}
