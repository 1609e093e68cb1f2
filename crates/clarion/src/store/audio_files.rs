//! The verbs of the store that are about audio files: what their names mean. Their bytes are elsewhere.

use std::collections::HashSet;

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::domain::account::AppId;
use crate::domain::audio_quota::{AudioCharge, AudioQuota, DroppedCharge};
use crate::domain::prompt::{AddedFile, AudioOwner, ContentId, FileName, FileOwner};
use crate::domain::status_code::Refusal;

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

    /// Notes what an upload takes of the disk, unless the quota forbids it. Without a quota it is not counted as an upload of the account.
    /// To be called before anything is written.
    async fn charge_audio(
        &self,
        charge: AudioCharge,
        quota: Option<AudioQuota>,
    ) -> Result<Result<(), Refusal>, StoreError>;
    /// The charges from before that moment for which their application has no name any more.
    async fn dropped_audio(&self, before: Timestamp) -> Result<Vec<DroppedCharge>, StoreError>;
    /// Takes charges back, except those that were made again since that moment.
    async fn release_audio(
        &self,
        charges: Vec<DroppedCharge>,
        before: Timestamp,
    ) -> Result<(), StoreError>;
}
