//! Room on the disk of `data_dir`. Files are refused first, then calls, long before the end of a call could not be written: below the floor, what is
//! left is for calls that were accepted.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::domain::status_code::{Refusal, StatusCode};

/// A look is good for this long: what calls write in that time is far less than the floor.
const REMEMBERED: Duration = Duration::from_millis(100);
/// Files are refused while less than so many floors are free.
pub const FLOORS_FOR_FILES: u64 = 2;

/// What somebody wants to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomFor {
    /// A call is accepted.
    Calls,
    /// An audio file is added, or a prompt is kept.
    Files,
}

/// Free bytes, or why that is not known.
type Look = Box<dyn Fn() -> std::io::Result<u64> + Send + Sync>;

pub struct DiskRoom {
    look: Look,
    floor: u64,
    /// Whether calls are written to this disk, too. With PostgreSQL they are not.
    holds_calls: bool,
    last: Mutex<Option<(Instant, u64)>>,
}

impl fmt::Debug for DiskRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskRoom")
            .field("floor", &self.floor)
            .finish_non_exhaustive()
    }
}

impl DiskRoom {
    pub fn new(folder: PathBuf, floor: u64, holds_calls: bool) -> Self {
        Self::looking(Box::new(move || free_bytes(&folder)), floor, holds_calls)
    }

    fn looking(look: Look, floor: u64, holds_calls: bool) -> Self {
        Self {
            look,
            floor,
            holds_calls,
            last: Mutex::new(None),
        }
    }

    /// Refuses what there is no room for. A disk that does not tell is no reason to refuse anything.
    pub fn check(&self, what: RoomFor) -> Result<(), Refusal> {
        let wanted = match what {
            RoomFor::Calls if !self.holds_calls => 0,
            RoomFor::Calls => self.floor,
            RoomFor::Files => self.floor.saturating_mul(FLOORS_FOR_FILES),
        };
        if wanted == 0 || self.free(Instant::now()).is_none_or(|free| free >= wanted) {
            return Ok(());
        }
        Err(StatusCode::NoRoom.into())
    }

    /// Why the server is not ready, in a sentence. It looks now, and may wait for the disk.
    pub fn readiness(&self) -> Result<(), String> {
        let free = (self.look)().map_err(|error| format!("data_dir: {error}"))?;
        if free < self.floor {
            return Err(format!(
                "{} MB are free at data_dir, and min_free_mb is {}",
                free >> 20,
                self.floor >> 20
            ));
        }
        Ok(())
    }

    fn free(&self, now: Instant) -> Option<u64> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, free)) = *last
            && now.duration_since(at) < REMEMBERED
        {
            return Some(free);
        }
        let free = (self.look)().ok()?;
        let was_low = last.is_some_and(|(_, free)| free < self.floor);
        let is_low = free < self.floor;
        // One line when it begins and one when it is over, however many are refused.
        if is_low && !was_low {
            tracing::error!(
                free,
                floor = self.floor,
                "the disk of data_dir is nearly full: no calls are accepted"
            );
        } else if was_low && !is_low {
            tracing::info!(free, "there is room on the disk of data_dir again");
        }
        *last = Some((now, free));
        Some(free)
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

    #[test]
    fn files_are_refused_first_then_calls_and_both_come_back() {
        let free = Arc::new(AtomicU64::new(1000));
        let seen = Arc::clone(&free);
        let look = move || Ok(seen.load(Ordering::Relaxed));
        let room = DiskRoom::looking(Box::new(look), 100, true);
        for (bytes, files, calls) in [
            (1000, true, true),
            (199, false, true),
            (99, false, false),
            (150, false, true),
            (200, true, true),
        ] {
            free.store(bytes, Ordering::Relaxed);
            *room.last.lock().unwrap() = None;
            assert_eq!(room.check(RoomFor::Files).is_ok(), files, "{bytes}");
            assert_eq!(room.check(RoomFor::Calls).is_ok(), calls, "{bytes}");
            assert_eq!(room.readiness().is_ok(), calls, "{bytes}");
        }
        let refused = DiskRoom::looking(Box::new(|| Ok(0)), 1, true);
        let refusal = refused.check(RoomFor::Calls).unwrap_err();
        assert_eq!(refusal.code.code(), "190014");
    }

    #[test]
    fn it_is_looked_at_ten_times_a_second_at_most() {
        let looks = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&looks);
        let look = move || Ok(counted.fetch_add(1, Ordering::Relaxed));
        let (room, now) = (DiskRoom::looking(Box::new(look), 1, true), Instant::now());
        for millisecond in 0..1000 {
            room.free(now + Duration::from_millis(millisecond));
        }
        assert_eq!(looks.load(Ordering::Relaxed), 10);
    }

    #[test]
    fn a_floor_of_nothing_a_disk_that_does_not_tell_and_a_database_elsewhere_refuse_no_call() {
        let full = || -> Look { Box::new(|| Ok(0)) };
        let mute: Look = Box::new(|| Err(std::io::Error::other("gone")));
        for room in [
            DiskRoom::looking(full(), 0, true),
            DiskRoom::looking(full(), 100, false),
            DiskRoom::looking(mute, 100, true),
        ] {
            assert!(room.check(RoomFor::Calls).is_ok());
        }
    }
}
