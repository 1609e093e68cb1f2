//! The verbs of the store that are about audio files: what their names mean. Their bytes are elsewhere.

use std::collections::HashSet;

use async_trait::async_trait;

use super::StoreError;
use crate::domain::account::AppId;
use crate::domain::prompt::{AddedFile, AudioOwner, ContentId, FileName, FileOwner};

#[async_trait]
pub trait AudioCatalog: Send + Sync {
    /// What each name means to the application now; `None` where there is no such file.
    async fn audio_files(
        &self,
        app: &AppId,
        owner: FileOwner,
        names: &[FileName],
    ) -> Result<Vec<Option<ContentId>>, StoreError>;

    /// Adds files, all of them or none. A name that its owner has already means the new content from now on; calls that were
    /// accepted before keep the old.
    async fn add_audio_files(&self, files: Vec<AddedFile>) -> Result<(), StoreError>;
    /// Ordered by name.
    async fn audio_files_of(&self, owner: &AudioOwner) -> Result<Vec<AddedFile>, StoreError>;
    async fn remove_audio_file(
        &self,
        owner: &AudioOwner,
        name: &FileName,
    ) -> Result<(), StoreError>;
    /// What a name means, or a call in the queue wants.
    async fn audio_contents_in_use(&self) -> Result<HashSet<ContentId>, StoreError>;
}
