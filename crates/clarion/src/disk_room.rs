//! Room on the disks of the database and of the audio files. Files are refused first, then calls, long before the end of a call could not be written: below the floor, what is
//! left is for calls that were accepted.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::domain::status_code::{Refusal, StatusCode};

/// A look is good for this long: what calls write in that time is far less than the floor.
const REMEMBERED: Duration = Duration::from_millis(100);
/// Files are refused while less than so many floors are free.
pub const FLOORS_FOR_FILES: u64 = 2;

/// A call that ends takes about 2 KB.
const LARGEST_RESERVE: u64 = 16 << 20;

/// What somebody wants to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomFor {
    /// A call is accepted.
    Calls,
    /// An audio file is added, a prompt is kept, or a bill is filtered.
    Files,
}

/// Free bytes, or why that is not known.
type Look = Box<dyn Fn() -> std::io::Result<u64> + Send + Sync>;

#[derive(Debug)]
pub struct DiskRoom {
    floor: u64,
    /// Where calls are written. `None`: they are written to another machine.
    calls: Option<WatchedDisk>,
    files: WatchedDisk,
}

impl DiskRoom {
    pub fn new(config: &Config) -> Self {
        let calls = config.database.folder();
        Self {
            floor: config.min_free_bytes,
            calls: calls.map(|folder| WatchedDisk::of("the database", folder)),
            files: WatchedDisk::of("audio_files.folder", config.audio_files.folder.clone()),
        }
    }

    /// Of a folder that holds no calls.
    pub fn for_files(config: &Config, name: &'static str, folder: PathBuf) -> Self {
        Self {
            floor: config.min_free_bytes,
            calls: None,
            files: WatchedDisk::of(name, folder),
        }
    }

    /// How much is kept for the calls that have begun, for when others have filled the disk.
    pub fn reserve(&self) -> u64 {
        (self.floor / 2).min(LARGEST_RESERVE)
    }

    /// Refuses what there is no room for. A disk that does not tell is no reason to refuse anything.
    pub fn check(&self, what: RoomFor) -> Result<(), Refusal> {
        let (disk, wanted) = match what {
            RoomFor::Calls => (self.calls.as_ref(), self.floor),
            RoomFor::Files => (
                Some(&self.files),
                self.floor.saturating_mul(FLOORS_FOR_FILES),
            ),
        };
        let has_room = |disk: &WatchedDisk| disk.has(wanted, Instant::now());
        if wanted == 0 || disk.is_none_or(has_room) {
            return Ok(());
        }
        Err(StatusCode::NoRoom.into())
    }

    /// How much is free on each disk, and how much must be. It looks now, and may wait for the disks.
    pub fn free(&self) -> Vec<FreeDisk> {
        let disks = self.calls.iter().chain([&self.files]);
        let free = disks.map(|disk| FreeDisk {
            name: disk.name,
            bytes: (disk.look)().ok(),
            floor: self.floor,
        });
        free.collect()
    }

    /// Why the server is not ready, in a sentence. It looks now, and may wait for the disks.
    pub fn readiness(&self) -> Result<(), String> {
        for disk in self.calls.iter().chain([&self.files]) {
            let free = (disk.look)().map_err(|error| format!("{}: {error}", disk.name))?;
            if free < self.floor {
                return Err(format!(
                    "{} MB are free at {}, and min_free_mb is {}",
                    free >> 20,
                    disk.name,
                    self.floor >> 20
                ));
            }
        }
        Ok(())
    }
}

/// Room on a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeDisk {
    pub name: &'static str,
    /// `None` if the disk does not tell.
    pub bytes: Option<u64>,
    /// Below this, calls are refused.
    pub floor: u64,
}

/// A disk that is looked at now and then.
struct WatchedDisk {
    name: &'static str,
    look: Look,
    last: Mutex<Option<Seen>>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    free: u64,
    is_low: bool,
}

impl fmt::Debug for WatchedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedDisk")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl WatchedDisk {
    fn of(name: &'static str, folder: PathBuf) -> Self {
        Self::looking(name, Box::new(move || free_bytes(&folder)))
    }

    fn looking(name: &'static str, look: Look) -> Self {
        Self {
            name,
            look,
            last: Mutex::new(None),
        }
    }

    fn has(&self, wanted: u64, now: Instant) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = *last
            && now.duration_since(seen.at) < REMEMBERED
        {
            return seen.free >= wanted;
        }
        let Ok(free) = (self.look)() else {
            return true;
        };
        let (is_low, was_low) = (free < wanted, last.is_some_and(|seen| seen.is_low));
        // One line when it begins and one when it is over, however many are refused.
        if is_low && !was_low {
            tracing::error!(
                disk = self.name,
                free,
                wanted,
                "a disk is nearly full: what would fill it is refused"
            );
        } else if was_low && !is_low {
            tracing::info!(disk = self.name, free, "there is room on the disk again");
        }
        *last = Some(Seen {
            at: now,
            free,
            is_low,
        });
        !is_low
    }
}

pub fn free_bytes(folder: &std::path::Path) -> std::io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_bavail * found.f_frsize)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn watched(look: impl Fn() -> std::io::Result<u64> + Send + Sync + 'static) -> WatchedDisk {
        WatchedDisk::looking("a disk", Box::new(look))
    }

    #[test]
    fn files_are_refused_first_then_calls_and_both_come_back() {
        let free = Arc::new(AtomicU64::new(1000));
        let seen = || {
            let free = Arc::clone(&free);
            watched(move || Ok(free.load(Ordering::Relaxed)))
        };
        for (bytes, files, calls) in [
            (1000, true, true),
            (199, false, true),
            (99, false, false),
            (150, false, true),
            (200, true, true),
        ] {
            free.store(bytes, Ordering::Relaxed);
            let room = DiskRoom {
                floor: 100,
                calls: Some(seen()),
                files: seen(),
            };
            assert_eq!(room.check(RoomFor::Files).is_ok(), files, "{bytes}");
            assert_eq!(room.check(RoomFor::Calls).is_ok(), calls, "{bytes}");
            assert_eq!(room.readiness().is_ok(), calls, "{bytes}");
        }
        let full = DiskRoom {
            floor: 1,
            calls: Some(watched(|| Ok(0))),
            files: watched(|| Ok(9)),
        };
        let refusal = full.check(RoomFor::Calls).unwrap_err();
        assert_eq!(refusal.code.code(), "190014");
        // Files are on another disk.
        assert!(full.check(RoomFor::Files).is_ok() && full.readiness().is_err());
    }

    #[test]
    fn it_is_looked_at_ten_times_a_second_at_most() {
        let looks = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&looks);
        let disk = watched(move || Ok(counted.fetch_add(1, Ordering::Relaxed)));
        let now = Instant::now();
        for millisecond in 0..1000 {
            disk.has(1, now + Duration::from_millis(millisecond));
        }
        assert_eq!(looks.load(Ordering::Relaxed), 10);
    }

    #[test]
    fn a_floor_of_nothing_a_disk_that_does_not_tell_and_a_database_elsewhere_refuse_no_call() {
        let mute = || watched(|| Err(std::io::Error::other("gone")));
        for (floor, calls) in [
            (0, Some(watched(|| Ok(0)))),
            (100, None),
            (100, Some(mute())),
        ] {
            let room = DiskRoom {
                floor,
                calls,
                files: mute(),
            };
            assert!(room.check(RoomFor::Calls).is_ok());
        }
    }

    /// What is written of the log, by this thread.
    #[derive(Debug, Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_one_line_of_the_log_and_a_free_one_another() {
        let free = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&free);
        let disk = watched(move || Ok(seen.load(Ordering::Relaxed)));
        let written = Written::default();
        let writer = written.clone();
        let log = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .finish();
        let began = Instant::now();
        tracing::subscriber::with_default(log, || {
            for (second, bytes) in [(0, 0), (100, 500), (200, 0)] {
                free.store(bytes, Ordering::Relaxed);
                for refused in 0..1000 {
                    let passed = Duration::from_secs(second) + Duration::from_millis(refused * 90);
                    disk.has(100, began + passed);
                }
            }
        });
        let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let lines = |word: &str| log.lines().filter(|line| line.contains(word)).count();
        assert_eq!(lines("nearly full"), 2, "{log}");
        assert_eq!(lines("room on the disk again"), 1, "{log}");
    }
}
