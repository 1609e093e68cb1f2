//! Voice files in PostgreSQL: what a name means. Their bytes are elsewhere.

use std::collections::HashSet;

use jiff::Timestamp;
use tokio_postgres::{GenericClient, Row};

use super::super::StoreError;
use crate::domain::account::AppId;
use crate::domain::prompt::{AddedFile, AudioOwner, ContentId, FileName, FileOwner};
use crate::domain::status_code::Refusal;

pub async fn audio_files<C: GenericClient>(
    client: &C,
    app: &AppId,
    owner: FileOwner,
    names: &[FileName],
) -> Result<Vec<Option<ContentId>>, StoreError> {
    let owner = match owner {
        FileOwner::Application => app.as_str(),
        FileOwner::Platform => "",
    };
    let wanted: Vec<_> = names.iter().map(FileName::as_str).collect();
    let rows = client
        .query(
            "SELECT content FROM unnest($2::text[]) WITH ORDINALITY AS wanted (name, place) \
             LEFT JOIN voice_files ON voice_files.owner = $1 AND voice_files.name = wanted.name ORDER BY place",
            &[&owner, &wanted],
        )
        .await?;
    Ok(rows
        .iter()
        .map(|row| row.get::<_, Option<String>>(0).map(ContentId::from_stored))
        .collect())
}

/// One statement, so all of them or none. Names in order, so that two uploads at once cannot wait for each other.
pub async fn add<C: GenericClient>(
    client: &C,
    mut files: Vec<AddedFile>,
) -> Result<(), StoreError> {
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let texts = |of: fn(&AddedFile) -> &str| files.iter().map(of).collect::<Vec<_>>();
    let numbers = |of: fn(&AddedFile) -> i64| files.iter().map(of).collect::<Vec<_>>();
    client
        .execute(
            "INSERT INTO voice_files (owner, name, content, bytes, duration, added_at) \
             SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[]) \
             ON CONFLICT (owner, name) DO UPDATE SET content = excluded.content, bytes = excluded.bytes, \
             duration = excluded.duration, added_at = excluded.added_at",
            &[
                &texts(|file| file.owner.as_stored()),
                &texts(|file| file.name.as_str()),
                &texts(|file| file.content.as_str()),
                &numbers(|file| file.bytes.cast_signed()),
                &numbers(|file| file.duration.cast_signed()),
                &numbers(|file| file.added_at.as_millisecond()),
            ],
        )
        .await?;
    Ok(())
}

pub async fn all<C: GenericClient>(
    client: &C,
    owner: &AudioOwner,
) -> Result<Vec<AddedFile>, StoreError> {
    // The order of bytes, as SQLite has it, and not that of some language.
    let rows = client
        .query(
            "SELECT name, content, bytes, duration, added_at FROM voice_files WHERE owner = $1 ORDER BY name COLLATE \"C\"",
            &[&owner.as_stored()],
        )
        .await?;
    rows.iter().map(|row| read(owner, row)).collect()
}

fn read(owner: &AudioOwner, row: &Row) -> Result<AddedFile, StoreError> {
    let name = row.get::<_, &str>(0).parse();
    Ok(AddedFile {
        owner: owner.clone(),
        name: name.map_err(|refusal: Refusal| StoreError::Failed(refusal.message))?,
        content: ContentId::from_stored(row.get(1)),
        bytes: row.get::<_, i64>(2).cast_unsigned(),
        duration: row.get::<_, i64>(3).cast_unsigned(),
        added_at: Timestamp::from_millisecond(row.get(4)).map_err(StoreError::failed)?,
    })
}

pub async fn remove<C: GenericClient>(
    client: &C,
    owner: &AudioOwner,
    name: &FileName,
) -> Result<(), StoreError> {
    let removed = client
        .execute(
            "DELETE FROM voice_files WHERE owner = $1 AND name = $2",
            &[&owner.as_stored(), &name.as_str()],
        )
        .await?;
    if removed == 0 {
        return Err(StoreError::Missing(format!("voice file {name}")));
    }
    Ok(())
}

pub async fn in_use<C: GenericClient>(client: &C) -> Result<HashSet<ContentId>, StoreError> {
    let rows = client
        .query(
            "SELECT content FROM voice_files UNION SELECT file ->> 'content' FROM call_queue \
             JOIN calls USING (call_sid) CROSS JOIN LATERAL jsonb_array_elements(calls.prompt::jsonb -> 'files') AS file",
            &[],
        )
        .await?;
    Ok(rows
        .iter()
        .map(|row| ContentId::from_stored(row.get(0)))
        .collect())
}
