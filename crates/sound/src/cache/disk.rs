//! Sounds on disk: one file each, in 256 folders, written under another name and renamed. It is a cache: a sound that cannot be read is
//! rendered again.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

use super::Key;
use super::lru::Lru;
use g711::{Codec, EncodedAudio};

const MAGIC: &[u8; 4] = b"CLS1";
const CHECK_BYTES: usize = 8;
const HEAD: usize = MAGIC.len() + CHECK_BYTES;
const UNFINISHED: &str = "unfinished";

#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    /// Nothing is kept while fewer bytes are free.
    min_free: u64,
    index: Mutex<Lru<()>>,
    /// Names what is being written.
    written: AtomicU64,
}

/// Prompts may hold spoken codes: nobody else may read them.
fn private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

impl Disk {
    /// Lists the files that are there, oldest first, and removes unfinished ones and those beyond the limit.
    pub fn open(folder: &Path, limit: u64, min_free: u64) -> io::Result<Self> {
        private_folder(folder)?;
        let mut found = Vec::new();
        for shard in fs::read_dir(folder)? {
            let shard = shard?.path();
            if shard.is_dir() {
                found.extend(stock(&shard)?);
            }
        }
        found.sort_unstable();
        let disk = Self {
            min_free,
            folder: folder.to_owned(),
            index: Mutex::new(Lru::new(limit)),
            written: AtomicU64::new(0),
        };
        for (_, key, bytes) in found {
            disk.record(key, bytes);
        }
        Ok(disk)
    }

    pub fn get(&self, key: &Key) -> Option<EncodedAudio> {
        self.lock().get(key)?;
        let path = self.path(key);
        let sound = fs::read(&path).ok().and_then(|bytes| read(&bytes));
        if sound.is_none() {
            self.lock().remove(key);
            let _ = fs::remove_file(&path);
            return None;
        }
        // The next start orders the files by this time.
        if let Ok(file) = fs::File::open(&path) {
            let now = rustix::fs::Timespec {
                tv_sec: 0,
                tv_nsec: rustix::fs::UTIME_NOW,
            };
            let times = rustix::fs::Timestamps {
                last_access: now,
                last_modification: now,
            };
            let _ = rustix::fs::futimens(file, &times);
        }
        sound
    }

    /// A full disk is no reason to fail a call: the error is logged, and the sound is played all the same.
    pub fn put(&self, key: &Key, sound: &EncodedAudio) {
        if !self.has_room() {
            return;
        }
        let path = self.path(key);
        match self.write(&path, sound) {
            Ok(bytes) => self.record(*key, bytes),
            Err(error) => tracing::warn!(%error, "a prompt could not be kept on disk"),
        }
    }

    fn has_room(&self) -> bool {
        let found = rustix::fs::statvfs(&self.folder);
        found.is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) >= self.min_free)
    }

    fn write(&self, path: &Path, sound: &EncodedAudio) -> io::Result<u64> {
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let aside = path.with_extension(format!("{}-{number}.{UNFINISHED}", std::process::id()));
        if let Some(shard) = path.parent() {
            private_folder(shard)?;
        }
        let written = fs::File::create(&aside).and_then(|mut file| {
            file.write_all(MAGIC)?;
            file.write_all(&check(sound.bytes(Codec::Pcma), sound.bytes(Codec::Pcmu)))?;
            file.write_all(sound.bytes(Codec::Pcma))?;
            file.write_all(sound.bytes(Codec::Pcmu))
        });
        let kept = written.and_then(|()| fs::rename(&aside, path));
        if let Err(error) = kept {
            let _ = fs::remove_file(&aside);
            return Err(error);
        }
        Ok((HEAD + sound.size()) as u64)
    }

    fn record(&self, key: Key, bytes: u64) {
        let gone = self.lock().insert(key, (), bytes);
        for (key, ()) in gone {
            let _ = fs::remove_file(self.path(&key));
        }
    }

    fn path(&self, key: &Key) -> PathBuf {
        let name = key.name();
        self.folder.join(&name[..2]).join(name)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Lru<()>> {
        self.index
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

type Found = (std::time::SystemTime, Key, u64);

fn stock(shard: &Path) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for file in fs::read_dir(shard)? {
        let path = file?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if path
            .extension()
            .is_some_and(|extension| extension == UNFINISHED)
        {
            let _ = fs::remove_file(&path);
        } else if let Some(key) = name.and_then(Key::by_name)
            && let Ok(facts) = path.metadata()
        {
            found.push((facts.modified()?, key, facts.len()));
        }
    }
    Ok(found)
}

fn check(pcma: &[u8], pcmu: &[u8]) -> [u8; CHECK_BYTES] {
    let hash: [u8; 32] = Sha256::new_with_prefix(pcma)
        .chain_update(pcmu)
        .finalize()
        .into();
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&hash[..CHECK_BYTES]);
    check
}

fn read(bytes: &[u8]) -> Option<EncodedAudio> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (written, sound) = rest.split_first_chunk::<CHECK_BYTES>()?;
    let (pcma, pcmu) = sound.split_at(sound.len() / 2);
    if check(pcma, pcmu) != *written {
        return None;
    }
    EncodedAudio::from_parts(pcma.into(), pcmu.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_prompt_is_kept_on_a_disk_below_its_floor() {
        let folder = tempfile::tempdir().unwrap();
        let sound = EncodedAudio::from_parts(vec![1; 160].into(), vec![2; 160].into()).unwrap();
        let key = Key::of(&[b"prompt"]);
        let full = Disk::open(folder.path(), 1 << 20, u64::MAX).unwrap();
        full.put(&key, &sound);
        assert!(full.get(&key).is_none());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let free = Disk::open(folder.path(), 1 << 20, 0).unwrap();
        free.put(&key, &sound);
        assert!(free.get(&key).is_some());
        // What is there already is played, however full the disk is.
        let full = Disk::open(folder.path(), 1 << 20, u64::MAX).unwrap();
        assert!(full.get(&key).is_some());
    }
}
