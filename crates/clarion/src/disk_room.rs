//! Room on the disks of the database and of the audio files. Files are refused first, then calls, long before the end of a call could not be written: below the floor, what is
//! left is for calls that were accepted.
//!
//! A file system may hang, and whoever asks it then hangs, too. So each disk is looked at by one thread beside the others, at most once at a time; who
//! asks waits for it a moment only.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::config::Config;
use crate::domain::status_code::{Refusal, StatusCode};

/// A look is good for this long: what calls write in that time is far less than the floor.
const REMEMBERED: Duration = Duration::from_millis(100);
/// A look takes microseconds. Nobody waits for one for longer than this.
const ANSWER_TIME: Duration = Duration::from_millis(500);
/// While a disk does not answer, what was last known counts for this long. Then it counts as full.
const HANGS_AFTER: Duration = Duration::from_secs(10);
/// Files are refused while less than so many floors are free.
pub const FLOORS_FOR_FILES: u64 = 2;

/// Of what is wanted: this part more must be free before a disk counts as freed.
const MARGIN: u64 = 8;
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
type Look = Arc<dyn Fn() -> std::io::Result<u64> + Send + Sync>;

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

    /// Of one disk of which so much is free, and 100 bytes must be.
    #[cfg(test)]
    pub fn that_has(look: impl Fn() -> std::io::Result<u64> + Send + Sync + 'static) -> Self {
        Self {
            floor: 100,
            calls: None,
            files: WatchedDisk::looking("a disk", look),
        }
    }

    /// How much is kept for the calls that have begun, for when others have filled the disk.
    pub fn reserve(&self) -> u64 {
        (self.floor / 2).min(LARGEST_RESERVE)
    }

    /// Refuses what there is no room for. A disk that does not tell is no reason to refuse anything, one that hangs is.
    pub async fn check(&self, what: RoomFor) -> Result<(), Refusal> {
        let (disk, wanted) = match what {
            RoomFor::Calls => (self.calls.as_ref(), self.floor),
            RoomFor::Files => (
                Some(&self.files),
                self.floor.saturating_mul(FLOORS_FOR_FILES),
            ),
        };
        match disk {
            Some(disk) if wanted > 0 && !disk.has(wanted).await => Err(StatusCode::NoRoom.into()),
            _ => Ok(()),
        }
    }

    /// How much is free on each disk, and how much must be.
    pub async fn free(&self) -> Vec<FreeDisk> {
        let mut free = Vec::new();
        for disk in self.disks() {
            free.push(FreeDisk {
                name: disk.name,
                bytes: disk.free().await,
                floor: self.floor,
            });
        }
        free
    }

    /// Why the server is not ready, in a sentence.
    pub async fn readiness(&self) -> Result<(), String> {
        for disk in self.disks() {
            let Ok(seen) = disk.look().await else {
                return Err(format!("{}: the disk does not answer", disk.name));
            };
            let free = seen
                .free
                .map_err(|error| format!("{}: {error}", disk.name))?;
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

    fn disks(&self) -> impl Iterator<Item = &WatchedDisk> {
        self.calls.iter().chain([&self.files])
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

/// A disk that is looked at when somebody wants to know.
pub struct WatchedDisk {
    name: &'static str,
    look: Look,
    /// What was seen last.
    seen: Arc<watch::Sender<Option<Seen>>>,
    /// When the look under way began.
    looking: Arc<Mutex<Option<Instant>>>,
    is_low: AtomicBool,
}

#[derive(Debug, Clone)]
struct Seen {
    at: Instant,
    free: Result<u64, String>,
}

/// A look has not answered in time.
struct Hanging {
    began: Instant,
}

impl fmt::Debug for WatchedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedDisk")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl WatchedDisk {
    pub fn of(name: &'static str, folder: PathBuf) -> Self {
        Self::looking(name, move || free_bytes(&folder))
    }

    fn looking(
        name: &'static str,
        look: impl Fn() -> std::io::Result<u64> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            look: Arc::new(look),
            seen: Arc::new(watch::Sender::new(None)),
            looking: Arc::default(),
            is_low: AtomicBool::new(false),
        }
    }

    /// Free bytes, if the disk tells.
    pub async fn free(&self) -> Option<u64> {
        self.look().await.ok()?.free.ok()
    }

    async fn has(&self, wanted: u64) -> bool {
        let free = match self.look().await {
            Ok(seen) => seen.free.ok(),
            Err(Hanging { began }) if began.elapsed() < HANGS_AFTER => {
                let last = self.seen.borrow();
                last.as_ref().and_then(|seen| seen.free.clone().ok())
            }
            Err(Hanging { .. }) => Some(0),
        };
        free.is_none_or(|free| self.is_enough(free, wanted))
    }

    /// One line of the log when it begins and one when it is over, however many are refused. It is over when clearly more is free than is wanted: what comes
    /// and goes at the floor writes no lines.
    fn is_enough(&self, free: u64, wanted: u64) -> bool {
        let is_low = free < wanted;
        let is_over = free >= wanted.saturating_add(wanted / MARGIN);
        if is_low && !self.is_low.swap(true, Ordering::Relaxed) {
            tracing::error!(
                disk = self.name,
                free,
                wanted,
                "a disk is nearly full: what would fill it is refused"
            );
        } else if is_over && self.is_low.swap(false, Ordering::Relaxed) {
            tracing::info!(disk = self.name, free, "there is room on the disk again");
        }
        !is_low
    }

    /// What is seen now, or was a moment ago.
    async fn look(&self) -> Result<Seen, Hanging> {
        let known = self.seen.borrow().clone();
        if let Some(seen) = known
            && seen.at.elapsed() < REMEMBERED
        {
            return Ok(seen);
        }
        let mut seen = self.seen.subscribe();
        let began = self.begin_look();
        let newer = seen.wait_for(|seen| seen.as_ref().is_some_and(|seen| seen.at >= began));
        // Nobody waits for a look that hangs already.
        match timeout_at(began + ANSWER_TIME, newer).await {
            Ok(Ok(seen)) => seen.clone().ok_or(Hanging { began }),
            _ => Err(Hanging { began }),
        }
    }

    /// Returns when the look began that is under way now.
    fn begin_look(&self) -> Instant {
        let mut looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(began) = *looking {
            return began;
        }
        let at = Instant::now();
        *looking = Some(at);
        let (look, seen, looking) = (
            Arc::clone(&self.look),
            Arc::clone(&self.seen),
            Arc::clone(&self.looking),
        );
        tokio::task::spawn_blocking(move || {
            let free = look().map_err(|error| error.to_string());
            // Together: whoever has heard of this look must not take it for the next one.
            let mut looking = looking.lock().unwrap_or_else(PoisonError::into_inner);
            seen.send_replace(Some(Seen { at, free }));
            *looking = None;
        });
        at
    }
}

fn free_bytes(folder: &std::path::Path) -> std::io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_bavail * found.f_frsize)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc;

    use super::*;

    fn watched(look: impl Fn() -> std::io::Result<u64> + Send + Sync + 'static) -> WatchedDisk {
        WatchedDisk::looking("a disk", look)
    }

    #[tokio::test]
    async fn files_are_refused_first_then_calls_and_both_come_back() {
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
            assert_eq!(room.check(RoomFor::Files).await.is_ok(), files, "{bytes}");
            assert_eq!(room.check(RoomFor::Calls).await.is_ok(), calls, "{bytes}");
            assert_eq!(room.readiness().await.is_ok(), calls, "{bytes}");
        }
        let full = DiskRoom {
            floor: 1,
            calls: Some(watched(|| Ok(0))),
            files: watched(|| Ok(9)),
        };
        let refusal = full.check(RoomFor::Calls).await.unwrap_err();
        assert_eq!(refusal.code.code(), "190014");
        // Files are on another disk.
        assert!(full.check(RoomFor::Files).await.is_ok() && full.readiness().await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_looked_at_ten_times_a_second_at_most() {
        let looks = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&looks);
        let disk = watched(move || Ok(counted.fetch_add(1, Ordering::Relaxed)));
        for _ in 0..1000 {
            disk.has(1).await;
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(looks.load(Ordering::Relaxed), 10);
    }

    /// A disk with 500 bytes free. From the second look on, each takes until `Sender` is used or dropped.
    fn hanging() -> (Arc<DiskRoom>, Arc<AtomicU64>, mpsc::Sender<()>) {
        let (let_go, held) = mpsc::channel();
        let (looks, held) = (Arc::new(AtomicU64::new(0)), Mutex::new(held));
        let counted = Arc::clone(&looks);
        let disk = watched(move || {
            if counted.fetch_add(1, Ordering::SeqCst) > 0 {
                let _ = held.lock().unwrap().recv();
            }
            Ok(500)
        });
        let room = DiskRoom {
            floor: 100,
            calls: Some(disk),
            files: watched(|| Ok(500)),
        };
        (Arc::new(room), looks, let_go)
    }

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_hangs_is_not_ready_and_what_was_known_counts_for_a_while() {
        let (room, looks, let_go) = hanging();
        assert_eq!(room.readiness().await, Ok(()));
        tokio::time::advance(REMEMBERED).await;
        let asking = |room: &Arc<DiskRoom>| {
            let room = Arc::clone(room);
            tokio::spawn(async move {
                let hangs = room.readiness().await.unwrap_err();
                assert_eq!(hangs, "a disk: the disk does not answer");
            })
        };
        let asked: Vec<_> = (0..100).map(|_| asking(&room)).collect();
        tokio::task::yield_now().await;
        // The clock stands still while the thread hangs.
        tokio::time::advance(ANSWER_TIME).await;
        for one in asked {
            one.await.unwrap();
        }
        let began = Instant::now();
        assert!(room.check(RoomFor::Calls).await.is_ok());
        tokio::time::advance(HANGS_AFTER).await;
        assert!(room.check(RoomFor::Calls).await.is_err());
        assert!(room.check(RoomFor::Files).await.is_ok(), "another disk");
        assert_eq!(began.elapsed(), HANGS_AFTER, "nobody waits for it again");
        assert_eq!(looks.load(Ordering::SeqCst), 2);
        drop(let_go);
        while room.readiness().await.is_err() {
            tokio::task::yield_now().await;
        }
        assert!(room.check(RoomFor::Calls).await.is_ok());
    }

    #[tokio::test]
    async fn a_floor_of_nothing_a_disk_that_does_not_tell_and_a_database_elsewhere_refuse_no_call()
    {
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
            assert!(room.check(RoomFor::Calls).await.is_ok());
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
        let disk = watched(|| Ok(0));
        let written = Written::default();
        let writer = written.clone();
        let log = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(log, || {
            for free in [0, 500, 0] {
                for _ in 0..1000 {
                    assert_eq!(disk.is_enough(free, 100), free > 100);
                }
            }
            // Somebody else writes and deletes a little.
            for free in [99, 105].repeat(1000) {
                assert_eq!(disk.is_enough(free, 100), free > 100);
            }
        });
        let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let lines = |word: &str| log.lines().filter(|line| line.contains(word)).count();
        assert_eq!(lines("nearly full"), 2, "{log}");
        assert_eq!(lines("room on the disk again"), 1, "{log}");
    }
}
