//! What the names of audio files mean to an application when a call is placed.

use super::CallPlacing;
use crate::domain::account::AppId;
use crate::domain::prompt::{AudioFile, ContentId, FileName, FileOwner, TEST_FILE};
use crate::domain::status_code::{Refusal, StatusCode};
use crate::store::unavailable;

/// The audio files of a field.
#[derive(Debug)]
pub struct NamedFiles {
    pub field: &'static str,
    pub owner: FileOwner,
    pub names: Vec<FileName>,
}

impl CallPlacing {
    /// The test file is found for either owner, unless that owner has a file of the same name.
    pub async fn find_files(
        &self,
        app: &AppId,
        named: &NamedFiles,
    ) -> Result<Vec<AudioFile>, Refusal> {
        if named.names.is_empty() {
            return Ok(Vec::new());
        }
        let contents = self.contents(app, named.owner, &named.names).await?;
        let names = named.names.iter().zip(contents);
        names
            .map(|(name, content)| {
                let content = content.ok_or_else(|| missing(named.field, name))?;
                let name = name.clone();
                Ok(AudioFile { name, content })
            })
            .collect()
    }

    /// Files that an earlier call played, as they are now: the same content where a name still means it, or else what the name means by now.
    pub async fn find_again(
        &self,
        app: &AppId,
        field: &'static str,
        files: &[AudioFile],
    ) -> Result<Vec<AudioFile>, Refusal> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<_> = files.iter().map(|file| file.name.clone()).collect();
        let own = self.contents(app, FileOwner::Application, &names).await?;
        let common = self.contents(app, FileOwner::Platform, &names).await?;
        let found = files.iter().zip(own.into_iter().zip(common));
        found
            .map(|(file, (own, common))| {
                let mut known = own.into_iter().chain(common);
                let same = known.clone().find(|content| *content == file.content);
                let content = same.or_else(|| known.next());
                Ok(AudioFile {
                    content: content.ok_or_else(|| missing(field, &file.name))?,
                    name: file.name.clone(),
                })
            })
            .collect()
    }

    async fn contents(
        &self,
        app: &AppId,
        owner: FileOwner,
        names: &[FileName],
    ) -> Result<Vec<Option<ContentId>>, Refusal> {
        let contents = self.store.audio_files(app, owner, names).await;
        let contents = contents.map_err(|error| unavailable(&error))?;
        let contents = names.iter().zip(contents).map(|(name, content)| {
            let builtin = || (name.as_str() == TEST_FILE).then(ContentId::test_file);
            content.or_else(builtin)
        });
        Ok(contents.collect())
    }
}

fn missing(field: &str, name: &FileName) -> Refusal {
    Refusal::new(
        StatusCode::VoiceFileMissing,
        format!("{field}: there is no voice file {name}"),
    )
}
