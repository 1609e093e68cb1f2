//! Room on the disk that is kept for the calls that have begun: a file that is good for nothing, beside the database. When the disk is full, half of it is given up:
//! nothing new begins, and what has begun goes on, callbacks and the changes of operators among it. When that is used up, too, the rest is given up for the ends and
//! the progress of calls alone. Until the whole can be made again, no call is accepted and none is begun.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::random;

/// After the disk was full, it is looked at this often whether the reserve can be made again.
const PAUSE: Duration = Duration::from_secs(2);
const BLOCK: usize = 4096;

#[derive(Debug, Default)]
pub struct Reserve {
    path: PathBuf,
    state: Mutex<ReserveState>,
}

#[derive(Debug, Default, Clone, Copy)]
struct ReserveState {
    /// 0: none is kept.
    bytes: u64,
    is_held: bool,
    given_up: GivenUp,
    /// When the disk was full for the last time, or the reserve could not be made.
    waits_since: Option<Instant>,
}

/// How much of the reserve was given up.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GivenUp {
    #[default]
    Nothing,
    /// What begins nothing may be written.
    Half,
    /// Only the ends and the progress of calls may be written.
    All,
}

impl Reserve {
    pub fn beside(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-reserve");
        Self {
            path: path.into(),
            state: Mutex::default(),
        }
    }

    /// From now on so much is kept; `look_after` makes it.
    pub fn keep(&self, bytes: u64) {
        self.state().bytes = bytes;
    }

    /// Nothing new is to begin if anything is.
    pub fn given_up(&self) -> GivenUp {
        self.state().given_up
    }

    /// The disk is full: the first half is given up, then the rest.
    pub fn give_up(&self) {
        let mut state = self.state();
        if state.bytes == 0 {
            return;
        }
        let rest = match state.given_up {
            GivenUp::Nothing if state.is_held => {
                tracing::error!(
                    "the disk is full: half of the reserve is given up for what has begun; until there is room, no call is accepted and none is begun"
                );
                state.given_up = GivenUp::Half;
                state.bytes / 2
            }
            GivenUp::Nothing | GivenUp::Half => {
                tracing::error!(
                    "the disk is full: all of the reserve is given up for the ends of calls; until there is room, callbacks and changes wait"
                );
                state.given_up = GivenUp::All;
                0
            }
            GivenUp::All => 0,
        };
        let made = File::options().write(true).open(&self.path);
        if let Err(error) = made.and_then(|file| file.set_len(rest))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::error!(%error, "the reserve could not be given up");
        }
        state.is_held = false;
        state.waits_since = Some(Instant::now());
    }

    /// Makes it where it is wanted and there is room for it and as much again.
    pub fn look_after(&self) {
        let mut state = self.state();
        let waits = state.waits_since.is_some_and(|at| at.elapsed() < PAUSE);
        if state.bytes == 0 || state.is_held || waits {
            return;
        }
        match self.make(state.bytes) {
            Ok(()) => {
                state.is_held = true;
                state.waits_since = None;
                if std::mem::take(&mut state.given_up) != GivenUp::Nothing {
                    tracing::info!("there is room on the disk again: calls are begun");
                }
            }
            Err(error) if is_full(&error) => {
                if state.waits_since.is_none() {
                    tracing::warn!("there is no room on the disk yet for the reserve");
                }
                state.waits_since = Some(Instant::now());
            }
            // A disk that cannot do it is no reason to begin no calls.
            Err(error) => {
                tracing::error!(%error, file = %self.path.display(), "the reserve cannot be made; there is none");
                *state = ReserveState::default();
            }
        }
    }

    fn make(&self, bytes: u64) -> io::Result<()> {
        let is_there = fs::metadata(&self.path).is_ok_and(|found| found.len() == bytes);
        if is_there {
            return Ok(());
        }
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.path)?;
        let held = file.metadata()?.len();
        // Of the file: a path may have no folder in it.
        let free = rustix::fs::fstatvfs(&file)?;
        if held + free.f_bavail * free.f_frsize < bytes.saturating_mul(2) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let kept = held.min(bytes);
        file.set_len(kept)?;
        let made = fill(&mut file, bytes);
        if made.is_err() {
            file.set_len(kept)?;
        }
        made
    }

    fn state(&self) -> MutexGuard<'_, ReserveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The disk is full, or the quota of the server's user is used up.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), QuotaExceeded | StorageFull)
}

/// Has the disk set the room aside. Where it cannot do that, by bytes that it cannot write more briefly.
fn fill(file: &mut File, bytes: u64) -> io::Result<()> {
    match fallocate(&*file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP) => {}
        done => return Ok(done?),
    }
    let mut left = bytes;
    while left > 0 {
        let block = random::bytes::<BLOCK>();
        let length = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
        file.write_all(&block[..length])?;
        left -= length as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_given_up_and_made_again_and_found_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("clarion.db");
        let length = || {
            let file = folder.path().join("clarion.db-reserve");
            fs::metadata(file).map_or(0, |found| found.len())
        };
        let reserve = Reserve::beside(&database);
        // The commands beside a server keep none.
        reserve.look_after();
        reserve.give_up();
        assert!(reserve.given_up() == GivenUp::Nothing && length() == 0);
        reserve.keep(100_000);
        reserve.look_after();
        assert_eq!(length(), 100_000);
        let restarted = Reserve::beside(&database);
        restarted.keep(100_000);
        restarted.look_after();
        assert!(restarted.state().is_held);
        for (given_up, left) in [
            (GivenUp::Half, 50_000),
            (GivenUp::All, 0),
            (GivenUp::All, 0),
        ] {
            reserve.give_up();
            assert_eq!((reserve.given_up(), length()), (given_up, left));
        }
        // Not at once: the disk has just been full.
        reserve.look_after();
        assert!(reserve.given_up() == GivenUp::All && length() == 0);
        reserve.state().waits_since = Instant::now().checked_sub(PAUSE);
        reserve.look_after();
        assert!(reserve.given_up() == GivenUp::Nothing && length() == 100_000);
        // A life that ended on a full disk has left half of it.
        reserve.give_up();
        let restarted = Reserve::beside(&database);
        restarted.keep(100_000);
        restarted.look_after();
        assert_eq!(length(), 100_000);
    }

    #[test]
    fn a_disk_that_has_no_room_for_it_or_cannot_make_it_goes_on_without() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = Reserve::beside(&folder.path().join("clarion.db"));
        reserve.keep(u64::MAX);
        reserve.look_after();
        let state = *reserve.state();
        assert!(!state.is_held && state.waits_since.is_some());
        assert_eq!(state.given_up, GivenUp::Nothing);
        let nowhere = Reserve::beside(&folder.path().join("nowhere/clarion.db"));
        nowhere.keep(1000);
        nowhere.look_after();
        nowhere.give_up();
        assert_eq!(nowhere.given_up(), GivenUp::Nothing);
    }
}
