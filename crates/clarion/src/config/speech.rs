//! `[speech]`: who speaks text: the operator's own voice if there is one, and the embedded voice.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::section::{Mistake, Section};
use super::values::HttpUrl;

const LONGEST: u32 = 86_400;

#[derive(Debug, Clone)]
pub struct SpeechConfig {
    pub program: String,
    pub chinese_voice: String,
    pub english_voice: String,
    /// Is asked before the embedded voice.
    pub service: Option<SpeechService>,
    pub version: String,
    pub tries: u32,
    /// Time limit of one voice for one text.
    pub time: Duration,
    /// Time limit for one text, whoever speaks it, with all tries.
    pub text_time: Duration,
    /// Where the natural voice is installed, and how many processes it may have.
    pub natural_folder: PathBuf,
    pub natural_workers: usize,
}

/// A voice of the operator's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeechService {
    Command {
        program: String,
        arguments: Vec<String>,
    },
    Http {
        url: HttpUrl,
        /// Authorities that are trusted besides the public ones.
        ca_file: Option<PathBuf>,
    },
}

impl SpeechConfig {
    pub(super) fn read(section: &mut Section, data_dir: &Path) -> Result<Self, Mistake> {
        let natural_folder = section.path_or_none("natural_folder")?;
        Ok(Self {
            program: section.text("program")?,
            chinese_voice: section.text("chinese_voice")?,
            english_voice: section.text("english_voice")?,
            service: service(section)?,
            version: section.text("version")?,
            tries: section.number("tries", 0..=u32::MAX)?,
            time: section.seconds("seconds", 0..=LONGEST)?,
            text_time: section.seconds("text_seconds", 1..=LONGEST)?,
            natural_folder: natural_folder.unwrap_or_else(|| data_dir.join("natural")),
            natural_workers: section.number("natural_workers", 1..=64)?,
        })
    }
}

fn service(section: &mut Section) -> Result<Option<SpeechService>, Mistake> {
    let words = section.list("command", |text| Ok::<_, String>(text.to_owned()))?;
    let url: Option<HttpUrl> = section.parsed_or_none("url", str::parse)?;
    let ca_file = section.path_or_none("ca_file")?;
    let mut words = words.into_iter();
    match (words.next(), url) {
        (None, None) => Ok(None),
        (Some(program), None) => Ok(Some(SpeechService::Command {
            program,
            arguments: words.collect(),
        })),
        (None, Some(url)) => Ok(Some(SpeechService::Http { url, ca_file })),
        (Some(_), Some(_)) => {
            Err(section.mistake("url", "name either this or speech.command, not both"))
        }
    }
}
