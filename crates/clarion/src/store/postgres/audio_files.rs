//! Audio files in PostgreSQL: what a name means. Their bytes are elsewhere.

use std::collections::HashSet;

use async_trait::async_trait;

use super::{PostgresStore, column};
use crate::domain::account::AppId;
use crate::domain::prompt::{AddedFile, AudioOwner, ContentId, FileName, FileOwner};
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
     JOIN calls USING (call_sid) CROSS JOIN LATERAL jsonb_array_elements(calls.prompt::jsonb -> 'files') AS file"
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
}
