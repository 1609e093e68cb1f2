//! Bill files, the tokens for them, and what is forgotten.

use jiff::Timestamp;
use jiff::civil::Date;

use super::super::bound;
use super::super::session::Session;
use crate::domain::bill::{BillFile, BillOf};
use crate::store::StoreError;
use crate::store::bills::{BillToken, Forgotten};
use crate::store::statements::bill_files::{self, FILE};
use crate::store::statements::postgres;

/// The file's row is held, so that it cannot be forgotten before its token is there.
const ADD_TOKEN: &str = postgres!(
    "WITH kept AS (UPDATE bill_files SET expires_at = greatest(expires_at, $4) WHERE id = $2 AND expires_at IS NOT NULL RETURNING id), \
     whole AS (SELECT id FROM bill_files WHERE id = $2 AND expires_at IS NULL FOR SHARE) \
     INSERT INTO bill_tokens (token_hash, file_id, account_sid, expires_at) \
       SELECT $1, id, $3, $4 FROM (SELECT id FROM kept UNION ALL SELECT id FROM whole) AS there"
);
const OLD_FILES: &str = postgres!(
    FILE,
    "bill_files WHERE expires_at <= $1 OR day < $2 ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED"
);
const FORGET_FILES: [&str; 2] = [
    postgres!("DELETE FROM bill_tokens WHERE file_id = ANY($1)"),
    postgres!("DELETE FROM bill_files WHERE id = ANY($1)"),
];

pub async fn find(
    client: &Session,
    of: &BillOf,
    keywords: &str,
) -> Result<Option<BillFile>, StoreError> {
    let row = client
        .query_opt_once(
            bill_files::FIND.postgres,
            &[&of.app.as_str(), &of.day.to_string(), &keywords],
        )
        .await?;
    row.as_ref().map(bill_files::file).transpose()
}

pub async fn record(client: &Session, new: BillFile) -> Result<BillFile, StoreError> {
    let values = bill_files::values(&new);
    client
        .execute_once(bill_files::RECORD.postgres, &bound(&values))
        .await?;
    Ok(find(client, &new.of, &new.keywords).await?.unwrap_or(new))
}

pub async fn of_day(client: &Session, day: Date) -> Result<Vec<BillFile>, StoreError> {
    let rows = client
        .query_once(bill_files::OF_DAY.postgres, &[&day.to_string()])
        .await?;
    rows.iter().map(bill_files::file).collect()
}

pub async fn add_token(client: &Session, token: &BillToken) -> Result<bool, StoreError> {
    let added = client
        .execute_once(
            ADD_TOKEN,
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

pub async fn of_token(
    client: &Session,
    hash: &str,
    now: Timestamp,
) -> Result<Option<BillFile>, StoreError> {
    let row = client
        .query_opt_once(
            bill_files::OF_TOKEN.postgres,
            &[&hash, &now.as_millisecond()],
        )
        .await?;
    row.as_ref().map(bill_files::file).transpose()
}

pub async fn forget(
    client: &mut Session,
    before: Date,
    now: Timestamp,
    limit: u32,
) -> Result<Forgotten, StoreError> {
    let (before, now, limit) = (before.to_string(), now.as_millisecond(), i64::from(limit));
    let transaction = client.transaction().await?;
    transaction
        .execute_once(bill_files::FORGET_TOKENS.postgres, &[&now, &limit])
        .await?;
    let rows = transaction
        .query_once(OLD_FILES, &[&now, &before, &limit])
        .await?;
    let files = rows.iter().map(bill_files::file);
    let files: Vec<BillFile> = files.collect::<Result<_, _>>()?;
    let ids: Vec<_> = files.iter().map(|file| file.id.as_str()).collect();
    for forget in FORGET_FILES {
        transaction.execute_once(forget, &[&ids]).await?;
    }
    transaction
        .execute_once(bill_files::FORGET_DAYS.postgres, &[&before])
        .await?;
    let lines = transaction
        .execute_once(bill_files::FORGET_LINES.postgres, &[&before, &limit])
        .await?;
    transaction.commit().await?;
    Ok(Forgotten { lines, files })
}
