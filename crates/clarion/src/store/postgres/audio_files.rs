//! Audio files in PostgreSQL: what a name means, and what an application has on the disk. Their bytes are elsewhere.

use std::collections::HashSet;

use async_trait::async_trait;
use jiff::Timestamp;

use super::session::Session;
use super::{PostgresStore, Values, column};
use crate::domain::account::AppId;
use crate::domain::audio_quota::{AudioCharge, AudioQuota, AudioUse, DroppedCharge};
use crate::domain::prompt::{AddedFile, AudioOwner, ContentId, FileName, FileOwner};
use crate::domain::status_code::Refusal;
use crate::store::columns::Columns;
use crate::store::statements::{audio_files, postgres};
use crate::store::{AudioCatalog, StoreError};

const CONTENTS: &str = postgres!(
    "SELECT content FROM unnest($2::text[]) WITH ORDINALITY AS wanted (name, place) \
     LEFT JOIN audio_files ON audio_files.owner = $1 AND audio_files.name = wanted.name ORDER BY place"
);
const ADD: &str = postgres!(
    "INSERT INTO audio_files (owner, name, content, bytes, duration, added_at) \
     SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[]) \
     ON CONFLICT (owner, name) DO UPDATE SET content = excluded.content, bytes = excluded.bytes, \
     duration = excluded.duration, added_at = excluded.added_at"
);
const IN_USE: &str = postgres!(
    "SELECT content FROM audio_files UNION SELECT file ->> 'content' FROM call_queue \
     JOIN calls USING (call_sid) CROSS JOIN LATERAL jsonb_array_elements(calls.prompt::jsonb -> 'files') AS file \
     UNION SELECT file ->> 'content' FROM call_queue \
     JOIN calls USING (call_sid) CROSS JOIN LATERAL jsonb_array_elements(calls.notice::jsonb -> 'keys' -> 'question' -> 'files') AS file"
);

#[async_trait]
impl AudioCatalog for PostgresStore {
    async fn audio_files(
        &self,
        app: &AppId,
        owner: FileOwner,
        names: &[FileName],
    ) -> Result<Vec<Option<ContentId>>, StoreError> {
        let owner = audio_files::owner_of(app, owner);
        let wanted: Vec<_> = names.iter().map(FileName::as_str).collect();
        let client = self.client().await?;
        let rows = client.query_once(CONTENTS, &[&owner, &wanted]).await?;
        let content = |row| Ok(Columns::optional_string(row, 0)?.map(ContentId::from_stored));
        rows.iter().map(content).collect()
    }

    /// One statement, so all of them or none. Names in order, so that two uploads at once cannot wait for each other.
    async fn add_audio_files(&self, mut files: Vec<AddedFile>) -> Result<(), StoreError> {
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let client = self.client().await?;
        client
            .execute_once(
                ADD,
                &[
                    &column(&files, |file| file.owner.as_stored()),
                    &column(&files, |file| file.name.as_str()),
                    &column(&files, |file| file.content.as_str()),
                    &column(&files, |file| file.bytes.cast_signed()),
                    &column(&files, |file| file.duration.cast_signed()),
                    &column(&files, |file| file.added_at.as_millisecond()),
                ],
            )
            .await?;
        Ok(())
    }

    async fn audio_files_of(&self, owner: &AudioOwner) -> Result<Vec<AddedFile>, StoreError> {
        let client = self.client().await?;
        let rows = client
            .query_once(audio_files::OF_OWNER.postgres, &[&owner.as_stored()])
            .await?;
        rows.iter()
            .map(|row| audio_files::file(owner, row))
            .collect()
    }

    async fn remove_audio_file(
        &self,
        owner: &AudioOwner,
        name: &FileName,
    ) -> Result<(), StoreError> {
        let client = self.client().await?;
        let removed = client
            .execute_once(
                audio_files::REMOVE.postgres,
                &[&owner.as_stored(), &name.as_str()],
            )
            .await?;
        match removed {
            0 => Err(audio_files::missing(name)),
            _ => Ok(()),
        }
    }

    async fn audio_contents_in_use(&self) -> Result<HashSet<ContentId>, StoreError> {
        let client = self.long_client().await?;
        let rows = client.query_once(IN_USE, &[]).await?;
        rows.iter().map(audio_files::content).collect()
    }

    async fn charge_audio(
        &self,
        charge: AudioCharge,
        quota: Option<AudioQuota>,
    ) -> Result<Result<(), Refusal>, StoreError> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        let (app, now) = (charge.app.as_str(), charge.at.as_millisecond());
        let account = transaction
            .query_opt_once(audio_files::ACCOUNT.postgres, &[&app])
            .await?;
        let account = account.ok_or_else(|| StoreError::no_application(&charge.app))?;
        let account = Columns::text(&account, 0)?;
        if let Some(quota) = quota {
            let used = used(&transaction, account, &charge).await?;
            if let Err(refusal) = quota.check(&used) {
                return Ok(Err(refusal));
            }
            let (uploads, since) = (used.hour.uploads, used.hour.since.as_millisecond());
            let values: Values<'_> = &[&account, &i64::from(uploads), &since];
            transaction
                .execute_once(audio_files::COUNT_UPLOAD.postgres, values)
                .await?;
        }
        // In order, so that two uploads cannot wait for each other.
        let mut contents: Vec<_> = charge.bytes.iter().collect();
        contents.sort();
        for (content, bytes) in contents {
            let bytes = bytes.cast_signed();
            let values: Values<'_> = &[&app, &account, &content.as_str(), &bytes, &now];
            transaction
                .execute_once(audio_files::CHARGE.postgres, values)
                .await?;
        }
        transaction.commit().await?;
        Ok(Ok(()))
    }

    async fn dropped_audio(&self, before: Timestamp) -> Result<Vec<DroppedCharge>, StoreError> {
        let client = self.long_client().await?;
        let rows = client
            .query_once(audio_files::DROPPED.postgres, &[&before.as_millisecond()])
            .await?;
        rows.iter().map(audio_files::dropped).collect()
    }

    async fn release_audio(
        &self,
        charges: Vec<DroppedCharge>,
        before: Timestamp,
    ) -> Result<(), StoreError> {
        let client = self.client().await?;
        for charge in &charges {
            let (app, content) = (charge.app.as_str(), charge.content.as_str());
            client
                .execute_once(
                    audio_files::RELEASE.postgres,
                    &[&app, &content, &before.as_millisecond()],
                )
                .await?;
        }
        Ok(())
    }
}

/// What is counted of the account with this upload. Uploads of one account come here one after the other.
async fn used(
    client: &Session,
    account: &str,
    charge: &AudioCharge,
) -> Result<AudioUse, StoreError> {
    let (app, now) = (charge.app.as_str(), charge.at);
    client
        .execute_once(
            audio_files::BEGIN_UPLOADS.postgres,
            &[&account, &now.as_millisecond()],
        )
        .await?;
    let hour = client
        .query_one_once(audio_files::UPLOADS.postgres, &[&account])
        .await?;
    let bytes = client
        .query_one_once(audio_files::CHARGED_BYTES.postgres, &[&account, &app])
        .await?;
    let mut new = 0;
    for (content, bytes) in &charge.bytes {
        let known = client
            .query_opt_once(audio_files::IS_CHARGED.postgres, &[&app, &content.as_str()])
            .await?;
        if known.is_none() {
            new += bytes;
        }
    }
    Ok(audio_files::audio_use(&hour, &bytes)?.with_upload(new, now))
}
