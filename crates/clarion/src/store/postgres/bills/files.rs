//! Bill files, the tokens for them, and what is forgotten.

use jiff::Timestamp;
use jiff::civil::Date;
use tokio_postgres::{Client, GenericClient, Row};

use super::super::queue::{parsed, time};
use super::lines::day;
use crate::domain::bill::{BillFile, BillOf, Totals};
use crate::domain::money::Money;
use crate::store::StoreError;
use crate::store::bills::{BillToken, Forgotten};

const FILE: &str = "bill_files.id, bill_files.account_sid, bill_files.app_id, bill_files.day, bill_files.keywords, bill_files.object, \
  bill_files.bytes, bill_files.lines, bill_files.fee, bill_files.sha256, bill_files.made_at, bill_files.expires_at";

fn file(row: &Row) -> Result<BillFile, StoreError> {
    let count = |column: usize| row.get::<_, i64>(column).unsigned_abs();
    Ok(BillFile {
        id: row.get(0),
        of: BillOf {
            account: parsed(row.get(1))?,
            app: parsed(row.get(2))?,
            day: day(row.get(3))?,
        },
        keywords: row.get(4),
        object: row.get(5),
        bytes: count(6),
        totals: Totals {
            lines: count(7),
            fee: Money::from_millionths(row.get(8)),
        },
        sha256: row.get(9),
        made_at: time(row.get(10))?,
        expires_at: row.get::<_, Option<i64>>(11).map(time).transpose()?,
    })
}

pub async fn find<C: GenericClient>(
    client: &C,
    of: &BillOf,
    keywords: &str,
) -> Result<Option<BillFile>, StoreError> {
    let row = client
        .query_opt(
            &format!(
                "SELECT {FILE} FROM bill_files WHERE app_id = $1 AND day = $2 AND keywords = $3"
            ),
            &[&of.app.as_str(), &of.day.to_string(), &keywords],
        )
        .await?;
    row.as_ref().map(file).transpose()
}

pub async fn record<C: GenericClient>(client: &C, new: BillFile) -> Result<BillFile, StoreError> {
    let signed = u64::cast_signed;
    client
        .execute(
            "INSERT INTO bill_files (id, account_sid, app_id, day, keywords, object, bytes, lines, fee, sha256, made_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (app_id, day, keywords) DO NOTHING",
            &[
                &new.id,
                &new.of.account.as_str(),
                &new.of.app.as_str(),
                &new.of.day.to_string(),
                &new.keywords,
                &new.object,
                &signed(new.bytes),
                &signed(new.totals.lines),
                &new.totals.fee.millionths(),
                &new.sha256,
                &new.made_at.as_millisecond(),
                &new.expires_at.map(Timestamp::as_millisecond),
            ],
        )
        .await?;
    Ok(find(client, &new.of, &new.keywords).await?.unwrap_or(new))
}

pub async fn of_day<C: GenericClient>(client: &C, day: Date) -> Result<Vec<BillFile>, StoreError> {
    let rows = client
        .query(
            &format!("SELECT {FILE} FROM bill_files WHERE day = $1 ORDER BY app_id, keywords"),
            &[&day.to_string()],
        )
        .await?;
    rows.iter().map(file).collect()
}

/// The file's row is held, so that it cannot be forgotten before its token is there.
pub async fn add_token<C: GenericClient>(
    client: &C,
    token: &BillToken,
) -> Result<bool, StoreError> {
    let added = client
        .execute(
            "WITH kept AS (UPDATE bill_files SET expires_at = greatest(expires_at, $4) WHERE id = $2 AND expires_at IS NOT NULL RETURNING id), \
             whole AS (SELECT id FROM bill_files WHERE id = $2 AND expires_at IS NULL FOR SHARE) \
             INSERT INTO bill_tokens (token_hash, file_id, account_sid, expires_at) \
               SELECT $1, id, $3, $4 FROM (SELECT id FROM kept UNION ALL SELECT id FROM whole) AS there",
            &[
                &token.hash,
                &token.file_id,
                &token.account.as_str(),
                &token.expires_at.as_millisecond(),
            ],
        )
        .await?;
    Ok(added == 1)
}

pub async fn of_token<C: GenericClient>(
    client: &C,
    hash: &str,
    now: Timestamp,
) -> Result<Option<BillFile>, StoreError> {
    let row = client
        .query_opt(
            &format!(
                "SELECT {FILE} FROM bill_tokens JOIN bill_files ON bill_files.id = bill_tokens.file_id \
                 WHERE bill_tokens.token_hash = $1 AND bill_tokens.expires_at > $2 AND bill_tokens.account_sid = bill_files.account_sid"
            ),
            &[&hash, &now.as_millisecond()],
        )
        .await?;
    row.as_ref().map(file).transpose()
}

pub async fn forget(
    client: &mut Client,
    before: Date,
    now: Timestamp,
    limit: u32,
) -> Result<Forgotten, StoreError> {
    let (before, now, limit) = (before.to_string(), now.as_millisecond(), i64::from(limit));
    let transaction = client.transaction().await?;
    transaction
        .execute(
            "DELETE FROM bill_tokens WHERE token_hash IN (SELECT token_hash FROM bill_tokens WHERE expires_at <= $1 LIMIT $2 \
               FOR UPDATE SKIP LOCKED)",
            &[&now, &limit],
        )
        .await?;
    let rows = transaction
        .query(
            &format!(
                "SELECT {FILE} FROM bill_files WHERE expires_at <= $1 OR day < $2 ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED"
            ),
            &[&now, &before, &limit],
        )
        .await?;
    let files: Vec<BillFile> = rows.iter().map(file).collect::<Result<_, _>>()?;
    let ids: Vec<_> = files.iter().map(|file| file.id.as_str()).collect();
    transaction
        .execute("DELETE FROM bill_tokens WHERE file_id = ANY($1)", &[&ids])
        .await?;
    transaction
        .execute("DELETE FROM bill_files WHERE id = ANY($1)", &[&ids])
        .await?;
    transaction
        .execute("DELETE FROM bill_days WHERE day < $1", &[&before])
        .await?;
    let lines = transaction
        .execute(
            "DELETE FROM bill_lines WHERE order_id IN (SELECT order_id FROM bill_lines WHERE bill_day < $1 ORDER BY bill_day LIMIT $2)",
            &[&before, &limit],
        )
        .await?;
    transaction.commit().await?;
    Ok(Forgotten { lines, files })
}
