//! What the names of audio files mean.

use super::{Statement, statement};
use crate::domain::account::AppId;
use crate::domain::prompt::{AddedFile, AudioOwner, ContentId, FileName, FileOwner};
use crate::store::StoreError;
use crate::store::columns::Columns;

pub const OF_OWNER: Statement = statement!(
    "SELECT name, content, bytes, duration, added_at FROM audio_files WHERE owner = $1 ORDER BY name{bytewise}"
);
pub const REMOVE: Statement = statement!("DELETE FROM audio_files WHERE owner = $1 AND name = $2");

/// As the owner is stored.
pub fn owner_of(app: &AppId, owner: FileOwner) -> &str {
    match owner {
        FileOwner::Application => app.as_str(),
        FileOwner::Platform => "",
    }
}

pub fn file(owner: &AudioOwner, row: &impl Columns) -> Result<AddedFile, StoreError> {
    Ok(AddedFile {
        owner: owner.clone(),
        name: row.parsed(0)?,
        content: ContentId::from_stored(row.string(1)?),
        bytes: row.number(2)?,
        duration: row.number(3)?,
        added_at: row.time(4)?,
    })
}

pub fn content(row: &impl Columns) -> Result<ContentId, StoreError> {
    row.string(0).map(ContentId::from_stored)
}

pub fn missing(name: &FileName) -> StoreError {
    StoreError::Missing(format!("audio file {name}"))
}
