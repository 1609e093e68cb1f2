//! A zip of audio files. A stranger wrote it: names, sizes and counts are judged before a byte is unpacked, and the unpacked bytes are
//! counted, because sizes in headers lie.

use std::collections::HashSet;
use std::io::{Cursor, Read};

use zip::ZipArchive;

#[derive(Debug, Clone, Copy)]
pub struct ArchiveLimits {
    pub files: usize,
    /// The most bytes of one unpacked file.
    pub file_bytes: u64,
    /// The most bytes of all unpacked files together.
    pub total_bytes: u64,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self {
            files: 100,
            file_bytes: 20_000_000,
            total_bytes: 100_000_000,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Why an archive is refused. It is refused as a whole: half an upload would be worse than none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    #[error("the zip file cannot be read: {0}")]
    Broken(String),
    #[error("the zip file holds no file")]
    Empty,
    #[error("the zip file holds {files} files; at most {limit} are taken")]
    TooMany { files: usize, limit: usize },
    #[error("{name:?} in the zip file is a path; only plain file names are taken")]
    Path { name: String },
    #[error("{name:?} in the zip file is not named as a WAV file (.wav)")]
    NotWav { name: String },
    #[error("{name:?} is in the zip file twice")]
    Twice { name: String },
    #[error("{name:?} in the zip file is encrypted")]
    Encrypted { name: String },
    #[error("{name:?} in the zip file is larger than {limit} bytes unpacked")]
    TooLarge { name: String, limit: u64 },
    #[error("the zip file is larger than {limit} bytes unpacked")]
    TooLargeTogether { limit: u64 },
}

/// Whether these bytes are meant to be a zip file.
pub fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

pub fn unpack(bytes: &[u8], limits: &ArchiveLimits) -> Result<Vec<Entry>, ArchiveError> {
    let broken = |error: zip::result::ZipError| ArchiveError::Broken(error.to_string());
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    judge(&mut archive, limits)?;
    let mut entries = Vec::new();
    let mut left = limits.total_bytes;
    for index in 0..archive.len() {
        let file = archive.by_index(index).map_err(broken)?;
        let name = name(file.name_raw());
        let limit = left.min(limits.file_bytes);
        let mut bytes = Vec::new();
        // One more than is allowed, so that too many can be told from just enough.
        file.take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| ArchiveError::Broken(error.to_string()))?;
        let unpacked = bytes.len() as u64;
        if unpacked > limits.file_bytes {
            return Err(ArchiveError::TooLarge {
                name,
                limit: limits.file_bytes,
            });
        }
        left = left
            .checked_sub(unpacked)
            .ok_or(ArchiveError::TooLargeTogether {
                limit: limits.total_bytes,
            })?;
        entries.push(Entry { name, bytes });
    }
    Ok(entries)
}

/// What the directory of the archive says, before anything is unpacked.
fn judge(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    limits: &ArchiveLimits,
) -> Result<(), ArchiveError> {
    if archive.is_empty() {
        return Err(ArchiveError::Empty);
    }
    if archive.len() > limits.files {
        return Err(ArchiveError::TooMany {
            files: archive.len(),
            limit: limits.files,
        });
    }
    let mut seen = HashSet::new();
    let mut total: u64 = 0;
    for index in 0..archive.len() {
        let file = archive
            .by_index_raw(index)
            .map_err(|error| ArchiveError::Broken(error.to_string()))?;
        let name = name(file.name_raw());
        if name.contains(['/', '\\', ':', '\0']) || name.starts_with('.') {
            return Err(ArchiveError::Path { name });
        }
        if !name.to_lowercase().ends_with(".wav") {
            return Err(ArchiveError::NotWav { name });
        }
        if file.encrypted() {
            return Err(ArchiveError::Encrypted { name });
        }
        if file.size() > limits.file_bytes {
            return Err(ArchiveError::TooLarge {
                name,
                limit: limits.file_bytes,
            });
        }
        total = total.saturating_add(file.size());
        if !seen.insert(name.clone()) {
            return Err(ArchiveError::Twice { name });
        }
    }
    if total > limits.total_bytes {
        return Err(ArchiveError::TooLargeTogether {
            limit: limits.total_bytes,
        });
    }
    Ok(())
}

/// The bytes say what encoding a name is in only sometimes. Names that are UTF-8 are taken as such; the rest are what Chinese Windows writes.
fn name(raw: &[u8]) -> String {
    match str::from_utf8(raw) {
        Ok(name) => name.to_owned(),
        Err(_) => encoding_rs::GBK
            .decode_without_bom_handling(raw)
            .0
            .into_owned(),
    }
}
