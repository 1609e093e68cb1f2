//! Voice files in SQLite: what a name means. Their bytes are elsewhere.

use std::collections::HashSet;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::super::StoreError;
use crate::domain::account::AppId;
use crate::domain::prompt::{AddedFile, AudioOwner, ContentId, FileName, FileOwner};

pub fn audio_files(
    db: &Connection,
    app: &AppId,
    owner: FileOwner,
    names: &[FileName],
) -> rusqlite::Result<Vec<Option<ContentId>>> {
    let owner = match owner {
        FileOwner::Application => app.as_str(),
        FileOwner::Platform => "",
    };
    let mut statement =
        db.prepare_cached("SELECT content FROM voice_files WHERE owner = ? AND name = ?")?;
    let find = |name: &FileName| {
        statement
            .query_row([owner, name.as_str()], |row| {
                row.get(0).map(ContentId::from_stored)
            })
            .optional()
    };
    names.iter().map(find).collect()
}

pub fn add(db: &Connection, files: &[AddedFile]) -> Result<(), StoreError> {
    let mut statement = db
        .prepare_cached(
            "INSERT INTO voice_files (owner, name, content, bytes, duration, added_at) VALUES (?, ?, ?, ?, ?, ?) \
             ON CONFLICT (owner, name) DO UPDATE SET content = excluded.content, bytes = excluded.bytes, \
             duration = excluded.duration, added_at = excluded.added_at",
        )
        .map_err(StoreError::failed)?;
    for file in files {
        statement
            .execute(params![
                file.owner.as_stored(),
                file.name.as_str(),
                file.content.as_str(),
                file.bytes.cast_signed(),
                file.duration.cast_signed(),
                file.added_at.as_millisecond(),
            ])
            .map_err(StoreError::failed)?;
    }
    Ok(())
}

pub fn all(db: &Connection, owner: &AudioOwner) -> rusqlite::Result<Vec<AddedFile>> {
    let mut statement = db.prepare_cached(
        "SELECT name, content, bytes, duration, added_at FROM voice_files WHERE owner = ? ORDER BY name",
    )?;
    let rows = statement.query_map([owner.as_stored()], |row| {
        let broken = |error: String| {
            rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
        };
        let name: FileName = row
            .get::<_, String>(0)?
            .parse()
            .map_err(|refusal: crate::domain::status_code::Refusal| broken(refusal.message))?;
        Ok(AddedFile {
            owner: owner.clone(),
            name,
            content: ContentId::from_stored(row.get(1)?),
            bytes: row.get::<_, i64>(2)?.cast_unsigned(),
            duration: row.get::<_, i64>(3)?.cast_unsigned(),
            added_at: Timestamp::from_millisecond(row.get(4)?)
                .map_err(|error| broken(error.to_string()))?,
        })
    })?;
    rows.collect()
}

pub fn remove(db: &Connection, owner: &AudioOwner, name: &FileName) -> Result<(), StoreError> {
    let removed = db
        .prepare_cached("DELETE FROM voice_files WHERE owner = ? AND name = ?")
        .and_then(|mut statement| statement.execute([owner.as_stored(), name.as_str()]))
        .map_err(StoreError::failed)?;
    if removed == 0 {
        return Err(StoreError::Missing(format!("voice file {name}")));
    }
    Ok(())
}

pub fn in_use(db: &Connection) -> rusqlite::Result<HashSet<ContentId>> {
    db.prepare_cached(
        "SELECT content FROM voice_files UNION SELECT file.value ->> 'content' FROM call_queue \
         JOIN calls USING (call_sid) JOIN json_each(calls.prompt, '$.files') AS file",
    )?
    .query_map([], |row| row.get(0).map(ContentId::from_stored))?
    .collect()
}
