//! Audio files in SQLite: what a name means, and what an application has on the disk. Their bytes are elsewhere.

use std::collections::HashSet;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::query::Query;
use crate::domain::account::AppId;
use crate::domain::audio_quota::{AudioCharge, AudioQuota, AudioUse, DroppedCharge};
use crate::domain::prompt::{AddedFile, AudioOwner, ContentId, FileName, FileOwner};
use crate::domain::status_code::Refusal;
use crate::store::columns::Columns;
use crate::store::statements::{audio_files, sqlite};
use crate::store::{AudioCatalog, StoreError};

const CONTENT: &str = sqlite!("SELECT content FROM audio_files WHERE owner = $1 AND name = $2");
const ADD: &str = sqlite!(
    "INSERT INTO audio_files (owner, name, content, bytes, duration, added_at) VALUES ($1, $2, $3, $4, $5, $6) \
     ON CONFLICT (owner, name) DO UPDATE SET content = excluded.content, bytes = excluded.bytes, \
     duration = excluded.duration, added_at = excluded.added_at"
);
const IN_USE: &str = sqlite!(
    "SELECT content FROM audio_files UNION SELECT file.value ->> 'content' FROM call_queue \
     JOIN calls USING (call_sid) JOIN json_each(calls.prompt, '$.files') AS file \
     UNION SELECT file.value ->> 'content' FROM call_queue JOIN calls USING (call_sid) JOIN json_each(calls.notice, '$.keys.question.files') AS file"
);

#[async_trait]
impl AudioCatalog for SqliteStore {
    async fn audio_files(
        &self,
        app: &AppId,
        owner: FileOwner,
        names: &[FileName],
    ) -> Result<Vec<Option<ContentId>>, StoreError> {
        let (app, names) = (app.clone(), names.to_vec());
        self.read(move |db| {
            let owner = audio_files::owner_of(&app, owner);
            let find = |name: &FileName| {
                db.row(CONTENT, [owner, name.as_str()], |row| {
                    audio_files::content(row)
                })
            };
            names.iter().map(find).collect()
        })
        .await
    }

    async fn add_audio_files(&self, files: Vec<AddedFile>) -> Result<(), StoreError> {
        self.begin(move |db| {
            for file in &files {
                let values = params![
                    file.owner.as_stored(),
                    file.name.as_str(),
                    file.content.as_str(),
                    file.bytes.cast_signed(),
                    file.duration.cast_signed(),
                    file.added_at.as_millisecond(),
                ];
                db.run(ADD, values)?;
            }
            Ok(())
        })
        .await
    }

    async fn audio_files_of(&self, owner: &AudioOwner) -> Result<Vec<AddedFile>, StoreError> {
        let owner = owner.clone();
        self.read(move |db| {
            db.rows(audio_files::OF_OWNER.sqlite, [owner.as_stored()], |row| {
                audio_files::file(&owner, row)
            })
        })
        .await
    }

    async fn remove_audio_file(
        &self,
        owner: &AudioOwner,
        name: &FileName,
    ) -> Result<(), StoreError> {
        let (owner, name) = (owner.clone(), name.clone());
        self.write_beside(move |db| {
            let values = [owner.as_stored(), name.as_str()];
            match db.run(audio_files::REMOVE.sqlite, values)? {
                0 => Err(audio_files::missing(&name)),
                _ => Ok(()),
            }
        })
        .await
    }

    async fn audio_contents_in_use(&self) -> Result<HashSet<ContentId>, StoreError> {
        self.read(|db| {
            let contents = db.rows(IN_USE, [], |row| audio_files::content(row))?;
            Ok(contents.into_iter().collect())
        })
        .await
    }

    async fn charge_audio(
        &self,
        charge: AudioCharge,
        quota: Option<AudioQuota>,
    ) -> Result<Result<(), Refusal>, StoreError> {
        self.begin(move |db| charge_application(db, &charge, quota))
            .await
    }

    async fn dropped_audio(&self, before: Timestamp) -> Result<Vec<DroppedCharge>, StoreError> {
        self.read(move |db| {
            let before = [before.as_millisecond()];
            db.rows(audio_files::DROPPED.sqlite, before, |row| {
                audio_files::dropped(row)
            })
        })
        .await
    }

    async fn release_audio(
        &self,
        charges: Vec<DroppedCharge>,
        before: Timestamp,
    ) -> Result<(), StoreError> {
        self.write_beside(move |db| {
            for charge in &charges {
                let values = params![
                    charge.app.as_str(),
                    charge.content.as_str(),
                    before.as_millisecond()
                ];
                db.run(audio_files::RELEASE.sqlite, values)?;
            }
            Ok(())
        })
        .await
    }
}

fn charge_application(
    db: &Connection,
    charge: &AudioCharge,
    quota: Option<AudioQuota>,
) -> Result<Result<(), Refusal>, StoreError> {
    let (app, now) = (charge.app.as_str(), charge.at.as_millisecond());
    let account = db.row(audio_files::ACCOUNT.sqlite, [app], |row| row.string(0))?;
    let account = account.ok_or_else(|| StoreError::no_application(&charge.app))?;
    if let Some(quota) = quota {
        let used = used(db, &account, charge)?;
        if let Err(refusal) = quota.check(&used) {
            return Ok(Err(refusal));
        }
        let hour = used.hour;
        let values = params![account, hour.uploads, hour.since.as_millisecond()];
        db.run(audio_files::COUNT_UPLOAD.sqlite, values)?;
    }
    for (content, bytes) in &charge.bytes {
        let values = params![app, account, content.as_str(), bytes.cast_signed(), now];
        db.run(audio_files::CHARGE.sqlite, values)?;
    }
    Ok(Ok(()))
}

/// What is counted of the account with this upload.
fn used(db: &Connection, account: &str, charge: &AudioCharge) -> Result<AudioUse, StoreError> {
    let (app, now) = (charge.app.as_str(), charge.at);
    let begin = params![account, now.as_millisecond()];
    db.run(audio_files::BEGIN_UPLOADS.sqlite, begin)?;
    let used = db.only_row(audio_files::UPLOADS.sqlite, [account], |hour| {
        db.only_row(audio_files::CHARGED_BYTES.sqlite, [account, app], |bytes| {
            audio_files::audio_use(hour, bytes)
        })
    })?;
    let mut new = 0;
    for (content, bytes) in &charge.bytes {
        if !db.exists(audio_files::IS_CHARGED.sqlite, [app, content.as_str()])? {
            new += bytes;
        }
    }
    Ok(used.with_upload(new, now))
}
