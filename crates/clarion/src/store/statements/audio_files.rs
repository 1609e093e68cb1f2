//! What the names of audio files mean.

use super::{Statement, statement};
use crate::domain::account::AppId;
use crate::domain::audio_quota::{AudioUse, DroppedCharge, UploadHour};
use crate::domain::prompt::{AddedFile, AudioOwner, ContentId, FileName, FileOwner};
use crate::store::StoreError;
use crate::store::columns::Columns;

pub const OF_OWNER: Statement = statement!(
    "SELECT name, content, bytes, duration, added_at FROM audio_files WHERE owner = $1 ORDER BY name{bytewise}"
);
pub const REMOVE: Statement = statement!("DELETE FROM audio_files WHERE owner = $1 AND name = $2");

pub const ACCOUNT: Statement = statement!("SELECT account_sid FROM applications WHERE id = $1");
/// Makes sure that there is a row to lock.
pub const BEGIN_UPLOADS: Statement = statement!(
    "INSERT INTO audio_uploads (account_sid, uploads, since) VALUES ($1, 0, $2) ON CONFLICT (account_sid) DO NOTHING"
);
/// Uploads of an account come here one after the other.
pub const UPLOADS: Statement =
    statement!("SELECT uploads, since FROM audio_uploads WHERE account_sid = $1{for_update}");
pub const COUNT_UPLOAD: Statement =
    statement!("UPDATE audio_uploads SET uploads = $2, since = $3 WHERE account_sid = $1");
pub const CHARGED_BYTES: Statement = statement!(
    "SELECT CAST(COALESCE(SUM(CASE WHEN owner = $2 THEN bytes END), 0) AS BIGINT), CAST(COALESCE(SUM(bytes), 0) AS BIGINT) \
     FROM audio_charges WHERE account_sid = $1"
);
pub const IS_CHARGED: Statement =
    statement!("SELECT 1 FROM audio_charges WHERE owner = $1 AND content = $2");
pub const CHARGE: Statement = statement!(
    "INSERT INTO audio_charges (owner, account_sid, content, bytes, added_at) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (owner, content) DO UPDATE SET added_at = excluded.added_at"
);
pub const DROPPED: Statement = statement!(
    "SELECT owner, content, EXISTS (SELECT 1 FROM audio_files WHERE audio_files.content = charge.content) FROM audio_charges AS charge \
     WHERE added_at < $1 AND NOT EXISTS \
     (SELECT 1 FROM audio_files WHERE audio_files.content = charge.content AND audio_files.owner = charge.owner)"
);
pub const RELEASE: Statement =
    statement!("DELETE FROM audio_charges WHERE owner = $1 AND content = $2 AND added_at < $3");

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

pub fn audio_use(hour: &impl Columns, bytes: &impl Columns) -> Result<AudioUse, StoreError> {
    Ok(AudioUse {
        app_bytes: bytes.number(0)?,
        account_bytes: bytes.number(1)?,
        hour: UploadHour {
            uploads: hour.number(0)?,
            since: hour.time(1)?,
        },
    })
}

pub fn dropped(row: &impl Columns) -> Result<DroppedCharge, StoreError> {
    Ok(DroppedCharge {
        app: row.parsed(0)?,
        content: ContentId::from_stored(row.string(1)?),
        is_named_by_others: row.flag(2)?,
    })
}

pub fn missing(name: &FileName) -> StoreError {
    StoreError::Missing(format!("audio file {name}"))
}
