//! Audio files of an application or of the platform: uploads and imports by the same rules.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::change::NotedChange;
use super::{Management, ManagementError};
use crate::audio_files::{AddedBy, AudioFiles};
use crate::disk_room::{DiskRoom, RoomFor};
use crate::domain::account::AppId;
use crate::domain::prompt::{AddedFile, AudioFile, AudioOwner, ContentId, FileName, TEST_FILE};
use crate::domain::wording::wording;

/// A file that somebody brings, or why it cannot be read.
#[derive(Debug)]
pub struct OfferedFile {
    /// Its name, as far as it can be read.
    pub name: String,
    pub bytes: Result<Bytes, String>,
}

/// What becomes of a file that is imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportedAudio {
    Added,
    Replaced,
    /// It is there already, with the same content.
    Unchanged,
    Refused(String),
}

/// What became of each file.
#[derive(Debug, Default)]
pub struct AudioImport {
    pub files: Vec<(String, ImportedAudio)>,
}

impl AudioImport {
    /// Why not all of it was done.
    pub fn failure(&self) -> Option<String> {
        let refused =
            |(_, fate): &&(String, ImportedAudio)| matches!(fate, ImportedAudio::Refused(_));
        let refused = self.files.iter().filter(refused).count();
        let all = self.files.len();
        (refused > 0).then(|| format!("{refused} of {all} files were not imported"))
    }
}

impl Management {
    pub fn audio_files(&self) -> Result<AudioFiles, ManagementError> {
        Ok(AudioFiles::open(&self.config)?)
    }

    /// An application that there is, or the platform.
    pub async fn audio_owner(&self, app: Option<AppId>) -> Result<AudioOwner, ManagementError> {
        let Some(app) = app else {
            return Ok(AudioOwner::Platform);
        };
        self.application(&app).await?;
        Ok(AudioOwner::Application(app))
    }

    /// Ordered by name.
    pub async fn audio_files_of(
        &self,
        app: Option<AppId>,
    ) -> Result<Vec<AddedFile>, ManagementError> {
        let owner = self.audio_owner(app).await?;
        Ok(self.store.audio_files_of(&owner).await?)
    }

    /// What a name means to an owner; the test file is everybody's.
    pub async fn audio_file(
        &self,
        owner: &AudioOwner,
        name: &str,
    ) -> Result<AudioFile, ManagementError> {
        let name = file_name(name)?;
        let files = self.store.audio_files_of(owner).await?;
        let own = files.into_iter().find(|file| file.name == name);
        let builtin = (name.as_str() == TEST_FILE).then(ContentId::test_file);
        let content = own.map(|file| file.content).or(builtin);
        let content = content.ok_or_else(|| {
            ManagementError::rule(wording!(
                "there is no audio file {name}",
                "没有语音文件 {name}"
            ))
        })?;
        Ok(AudioFile { name, content })
    }

    /// Adds WAV files, or zip files of them. Each is added as a whole or not at all; those before one that is refused stay.
    pub async fn add_audio(
        &self,
        app: Option<AppId>,
        names: &[String],
        files: impl Iterator<Item = OfferedFile> + Send,
    ) -> Result<Vec<AddedFile>, ManagementError> {
        let change = NotedChange::new("audio add").with_any("app", app.as_ref());
        let add = async {
            let (owner, audio_files) = (self.audio_owner(app).await?, self.audio_files()?);
            let mut added = Vec::new();
            for file in files {
                let bytes = file.bytes.map_err(ManagementError::rule)?;
                added.extend(
                    self.add_one(&audio_files, &owner, &file.name, bytes)
                        .await?,
                );
            }
            Ok::<_, ManagementError>(added)
        };
        self.noted(change.on_all(names), add).await
    }

    /// Adds all of many files that can be played, and tells what became of each. `folder` is where they come from. A trial adds nothing.
    pub async fn import_audio(
        &self,
        app: Option<AppId>,
        folder: &str,
        is_trial: bool,
        files: impl Iterator<Item = OfferedFile> + Send,
    ) -> Result<AudioImport, ManagementError> {
        let change = NotedChange::new("audio import").with_any("app", app.as_ref());
        let change = change.on(folder).where_so("dry-run", is_trial);
        let import = async {
            let (owner, audio_files) = (self.audio_owner(app).await?, self.audio_files()?);
            let there = self.store.audio_files_of(&owner).await?.into_iter();
            let there: BTreeMap<_, _> = there
                .map(|file| (file.name.to_string(), file.content))
                .collect();
            let mut import = AudioImport::default();
            for file in files {
                let known = there.get(&file.name);
                let fate = match file.bytes {
                    Err(reason) => ImportedAudio::Refused(reason),
                    Ok(bytes) if known == Some(&ContentId::of(&bytes)) => ImportedAudio::Unchanged,
                    Ok(bytes) => {
                        let done = if is_trial {
                            audio_files.check(&file.name, bytes).await
                        } else {
                            let added = self.add_one(&audio_files, &owner, &file.name, bytes);
                            added.await.map(|_| ())
                        };
                        let is_new = known.is_none();
                        done.map_or_else(
                            |refusal| ImportedAudio::Refused(refusal.message),
                            |()| {
                                if is_new {
                                    ImportedAudio::Added
                                } else {
                                    ImportedAudio::Replaced
                                }
                            },
                        )
                    }
                };
                import.files.push((file.name, fate));
            }
            Ok::<_, ManagementError>(import)
        };
        self.noted_unless(change, import, AudioImport::failure)
            .await
    }

    /// Calls that were accepted before still play it.
    pub async fn remove_audio(
        &self,
        app: Option<AppId>,
        name: &str,
    ) -> Result<(), ManagementError> {
        let change = NotedChange::new("audio remove").with_any("app", app.as_ref());
        let remove = async {
            let owner = self.audio_owner(app).await?;
            let name = file_name(name)?;
            self.store.remove_audio_file(&owner, &name).await?;
            Ok::<_, ManagementError>(())
        };
        self.noted(change.on(name), remove).await
    }

    /// How many contents some name or call wants, and those of them whose bytes are missing.
    pub async fn missing_audio(&self) -> Result<(usize, Vec<ContentId>), ManagementError> {
        let wanted = self.store.audio_contents_in_use().await?;
        let count = wanted.len();
        Ok((count, self.audio_files()?.missing(wanted).await))
    }

    async fn add_one(
        &self,
        audio_files: &AudioFiles,
        owner: &AudioOwner,
        name: &str,
        bytes: Bytes,
    ) -> Result<Vec<AddedFile>, crate::domain::status_code::Refusal> {
        match &self.server {
            Some(server) => server.disk.check(RoomFor::Files).await?,
            None => DiskRoom::new(&self.config).check(RoomFor::Files).await?,
        }
        let (owner, now) = (owner.clone(), self.clock.now());
        let by = AddedBy::Operator;
        audio_files
            .add(&*self.store, by, owner, name, bytes, now)
            .await
    }
}

fn file_name(name: &str) -> Result<FileName, ManagementError> {
    Ok(FileName::named_by("name", name)?)
}
