//! Audio files. An object store keeps their bytes under a hash of them; the store keeps which bytes each file name means.
//!
//! Bytes never change. `sweep` removes them when no name means them and no waiting call needs them: replacing or removing a file only
//! changes what its name means. The prompt renderer (`renderer`) makes sound of them.

pub mod names;
pub mod prompts;
pub mod sweep;
mod transport;
mod unplayable;
pub mod voices;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use jiff::Timestamp;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use sound::archive;
use sound::wav::{Wav, WavLimits};

use crate::config::Config;
use crate::domain::audio_quota::{AudioCharge, AudioQuota};
use crate::domain::prompt::{AddedFile, AudioOwner, ContentId, FileName};
use crate::domain::status_code::{Refusal, StatusCode};
use crate::domain::wording::wording;
use crate::private_files;
use crate::store::Store;

#[derive(Debug, Clone)]
pub struct AudioFiles {
    objects: Arc<dyn ObjectStore>,
    limits: WavLimits,
    /// Maximum number of files of one owner.
    limit: usize,
    quota: AudioQuota,
}

/// Who adds a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedBy {
    /// Keeps within the quota.
    Customer,
    /// Owns the disk.
    Operator,
}

/// A file and how long it is.
#[expect(missing_debug_implementations, reason = "a stream has none")]
pub struct OpenFile {
    pub length: u64,
    pub bytes: BoxStream<'static, object_store::Result<Bytes>>,
}

/// An uploaded file that was checked: it is WAV that can be played.
#[derive(Debug)]
struct Playable {
    name: FileName,
    content: ContentId,
    bytes: Bytes,
    duration: u64,
}

impl Playable {
    fn added(&self, owner: &AudioOwner, now: Timestamp) -> AddedFile {
        AddedFile {
            owner: owner.clone(),
            name: self.name.clone(),
            content: self.content.clone(),
            bytes: self.bytes.len() as u64,
            duration: self.duration,
            added_at: now,
        }
    }
}

impl AudioFiles {
    pub fn open(config: &Config) -> anyhow::Result<Self> {
        let folder = &config.audio_files.folder;
        private_files::folder(folder)?;
        // A file is written aside, synced and renamed, and its folder is synced: when a write returns, the file is durable.
        let objects = LocalFileSystem::new_with_prefix(folder)?.with_fsync(true);
        Ok(Self {
            objects: Arc::new(objects),
            limits: config.audio_files.limits,
            limit: config.audio_files.max_files,
            quota: config.audio_files.quota,
        })
    }

    /// Adds a WAV file, or a zip of WAV files if the name says so. It adds all files or none.
    pub async fn add(
        &self,
        store: &dyn Store,
        by: AddedBy,
        owner: AudioOwner,
        name: &str,
        bytes: Bytes,
        now: Timestamp,
    ) -> Result<Vec<AddedFile>, Refusal> {
        let files = self.judge(name, bytes).await?;
        self.check_room(store, &owner, &files).await?;
        let added: Vec<_> = files.iter().map(|file| file.added(&owner, now)).collect();
        self.charge(store, by, &owner, &added, now).await?;
        for (file, added) in files.into_iter().zip(&added) {
            self.objects
                .put(&place(&added.content), file.bytes.into())
                .await
                .map_err(|error| failed(&error))?;
        }
        // The bytes are durable before any name means them.
        store
            .add_audio_files(added.clone())
            .await
            .map_err(|error| failed(&error))?;
        Ok(added)
    }

    /// Whether such a file can be played; nothing is added.
    pub async fn check(&self, name: &str, bytes: Bytes) -> Result<(), Refusal> {
        self.judge(name, bytes).await.map(|_| ())
    }

    /// Unpacking, checking and hashing keep a processor busy.
    async fn judge(&self, name: &str, bytes: Bytes) -> Result<Vec<Playable>, Refusal> {
        let (limits, name) = (self.limits, name.to_owned());
        tokio::task::spawn_blocking(move || judge(&name, bytes, &limits))
            .await
            .map_err(|error| failed(&error))?
    }

    async fn check_room(
        &self,
        store: &dyn Store,
        owner: &AudioOwner,
        new: &[Playable],
    ) -> Result<(), Refusal> {
        let there = store
            .audio_files_of(owner)
            .await
            .map_err(|error| failed(&error))?;
        let is_new = |file: &&Playable| !there.iter().any(|old| old.name == file.name);
        if there.len() + new.iter().filter(is_new).count() > self.limit {
            let limit = self.limit;
            let rule = wording!(
                "there may be {limit} voice files; remove some first",
                "最多 {limit} 个语音文件，请先删除一些"
            );
            return Err(Refusal::worded(StatusCode::DataTooLong, &rule));
        }
        Ok(())
    }

    /// Notes what the files take of the disk. The platform's own files are counted by nobody.
    async fn charge(
        &self,
        store: &dyn Store,
        by: AddedBy,
        owner: &AudioOwner,
        files: &[AddedFile],
        at: Timestamp,
    ) -> Result<(), Refusal> {
        let AudioOwner::Application(app) = owner else {
            return Ok(());
        };
        let bytes = files.iter().map(|file| (file.content.clone(), file.bytes));
        let charge = AudioCharge {
            app: app.clone(),
            bytes: bytes.collect(),
            at,
        };
        let quota = (by == AddedBy::Customer).then_some(self.quota);
        let charged = store.charge_audio(charge, quota).await;
        charged.map_err(|error| failed(&error))?
    }

    /// Those of the contents whose bytes are not there.
    pub async fn missing(&self, contents: impl IntoIterator<Item = ContentId>) -> Vec<ContentId> {
        let mut missing = Vec::new();
        for content in contents {
            let found = self.objects.head(&place(&content)).await;
            if content != ContentId::test_file() && found.is_err() {
                missing.push(content);
            }
        }
        missing.sort();
        missing
    }

    /// Returns the bytes of the WAV file.
    pub async fn read(&self, content: &ContentId) -> anyhow::Result<Bytes> {
        if *content == ContentId::test_file() {
            let tune = sound::level::to_whole(&sound::background::test_tune());
            return Ok(sound::wav::mono_16_bit(&tune, sound::RATE).into());
        }
        let object = self.objects.get(&place(content)).await?;
        Ok(object.bytes().await?)
    }

    /// Whether anything is there at all. A folder that is not mounted is gone, or empty.
    pub async fn has_any(&self) -> bool {
        let first = self.objects.list(None).next().await;
        first.is_some_and(|object| object.is_ok())
    }

    /// Opens the WAV file, to be read while it is sent.
    pub async fn open_file(&self, content: &ContentId) -> anyhow::Result<OpenFile> {
        if *content == ContentId::test_file() {
            let bytes = self.read(content).await?;
            return Ok(OpenFile {
                length: bytes.len() as u64,
                bytes: stream::once(async { Ok(bytes) }).boxed(),
            });
        }
        let object = self.objects.get(&place(content)).await?;
        Ok(OpenFile {
            length: object.meta.size,
            bytes: object.into_stream(),
        })
    }
}

/// Returns the place of a content, in one of 256 folders by the beginning of its name.
fn place(content: &ContentId) -> Path {
    let name = content.as_str();
    Path::from_iter([name.get(..2).unwrap_or("other"), name])
}

fn judge(name: &str, bytes: Bytes, limits: &WavLimits) -> Result<Vec<Playable>, Refusal> {
    let is_zip = name.to_lowercase().ends_with(".zip");
    if !is_zip {
        let name = FileName::named_by("filename", name)?;
        return Ok(vec![playable(name, bytes, limits)?]);
    }
    let entries = archive::unpack(&bytes, &archive_limits(limits)).map_err(|refused| {
        let code = match refused {
            archive::ArchiveError::TooMany { .. }
            | archive::ArchiveError::TooLarge { .. }
            | archive::ArchiveError::TooLargeTogether { .. } => StatusCode::DataTooLong,
            _ => StatusCode::VoiceFileUnplayable,
        };
        Refusal::worded(code, &unplayable::of_archive(&refused))
    })?;
    entries
        .into_iter()
        .map(|entry| {
            let name = FileName::named_by("a name in the zip file", &entry.name)?;
            playable(name, entry.bytes.into(), limits)
        })
        .collect()
}

fn archive_limits(limits: &WavLimits) -> archive::ArchiveLimits {
    archive::ArchiveLimits {
        file_bytes: limits.bytes as u64,
        ..archive::ArchiveLimits::default()
    }
}

fn playable(name: FileName, bytes: Bytes, limits: &WavLimits) -> Result<Playable, Refusal> {
    let wav = Wav::read(&bytes, limits).map_err(|error| {
        let rule = unplayable::of_file(name.as_str(), &error);
        Refusal::worded(StatusCode::VoiceFileUnplayable, &rule)
    })?;
    let duration = wav.frames() as u64 * 1000 / u64::from(wav.format().rate);
    Ok(Playable {
        name,
        content: ContentId::of(&bytes),
        bytes,
        duration,
    })
}

/// Returns the refusal for the client. The cause is for the log, not for the client.
fn failed(error: &dyn std::fmt::Display) -> Refusal {
    tracing::error!(%error, "an audio file could not be added");
    StatusCode::UnknownError.into()
}
