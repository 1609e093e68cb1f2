//! Removes expired tokens and filtered files, bills beyond their retention, and files that killed processes have left aside.

use std::fs::DirEntry;
use std::path::Path as Folder;
use std::time::Duration;

use futures_util::TryStreamExt;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::Billing;
use crate::domain::bill::calendar;

/// Maximum number of tokens, of files and of lines in one commit. Between two commits others get their turn.
const AT_A_TIME: u32 = 1000;
const BREATH: Duration = Duration::from_millis(20);
/// A file that is still being written changes more often than this.
const ABANDONED: SignedDuration = SignedDuration::from_hours(24);

/// Time between two sweeps.
const SWEEP: SignedDuration = SignedDuration::from_hours(1);

/// Decides when the next sweep is due. It does not trust a clock that has just jumped: if the clock is years ahead for a minute, every bill
/// seems to be beyond its retention.
#[derive(Debug)]
pub struct Rhythm {
    last: Timestamp,
}

impl From<Timestamp> for Rhythm {
    fn from(now: Timestamp) -> Self {
        Self { last: now }
    }
}

impl Rhythm {
    pub fn is_due(&mut self, now: Timestamp) -> bool {
        let since = now.duration_since(self.last);
        if since.abs() < SWEEP {
            return false;
        }
        self.last = now;
        (SWEEP..SWEEP * 2).contains(&since)
    }
}

/// Sweeps once and returns how many files it forgot.
pub async fn sweep(billing: &Billing) -> anyhow::Result<usize> {
    let now = billing.clock.now();
    let today = calendar::day_of(now, billing.clock.zone());
    // A day that is not closed yet is kept, however old it is.
    let open = billing.store.first_open_day().await?;
    let before = today.saturating_sub(billing.settings.retention).min(open);
    let mut forgotten = 0;
    loop {
        let step = billing.store.forget_bills(before, now, AT_A_TIME).await?;
        for file in &step.files {
            remove(billing, &Path::from(file.object.as_str())).await?;
        }
        forgotten += step.files.len();
        if step.lines == 0 && step.files.is_empty() {
            break;
        }
        tokio::time::sleep(BREATH).await;
    }
    remove_strays(billing, before).await?;
    let folder = billing.folder.clone();
    tokio::task::spawn_blocking(move || remove_abandoned(&folder, now)).await??;
    Ok(forgotten)
}

async fn remove(billing: &Billing, place: &Path) -> anyhow::Result<()> {
    match billing.objects.delete(place).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes objects of forgotten days that no record names: a process was killed after it removed the record, before it removed the object.
async fn remove_strays(billing: &Billing, before: Date) -> anyhow::Result<()> {
    let days = billing.objects.list_with_delimiter(None).await?;
    for folder in days.common_prefixes {
        let day = folder.filename().and_then(|name| name.parse::<Date>().ok());
        if day.is_none_or(|day| day >= before) {
            continue;
        }
        let objects: Vec<_> = billing.objects.list(Some(&folder)).try_collect().await?;
        for object in objects {
            remove(billing, &object.location).await?;
        }
    }
    Ok(())
}

/// Removes old files that were written aside. They have a `#` in their names, and the object store does not list them.
fn remove_abandoned(folder: &Folder, now: Timestamp) -> std::io::Result<()> {
    for day in std::fs::read_dir(folder)?.flatten() {
        if !day.file_type()?.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(day.path())?.flatten() {
            let aside = file.file_name().to_string_lossy().contains('#');
            if aside && is_old(&file, now) {
                std::fs::remove_file(file.path())?;
            }
        }
    }
    Ok(())
}

/// Returns whether a file is old. A file that has just been renamed is gone, and does not count as old.
fn is_old(file: &DirEntry, now: Timestamp) -> bool {
    let touched = file.metadata().and_then(|file| file.modified()).ok();
    touched
        .and_then(|touched| Timestamp::try_from(touched).ok())
        .is_some_and(|touched| now.duration_since(touched) > ABANDONED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_has_just_jumped_makes_nobody_forget() {
        let start: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let at = |minutes: i64| start + SignedDuration::from_mins(minutes);
        let mut sweeps = Rhythm::from(start);
        assert!(!sweeps.is_due(at(0)) && !sweeps.is_due(at(59)));
        assert!(sweeps.is_due(at(60)));
        assert!(!sweeps.is_due(at(61)), "once an hour");
        let year = 365 * 24 * 60;
        assert!(!sweeps.is_due(at(62 + year)), "a year ahead");
        assert!(!sweeps.is_due(at(63)), "and back");
        assert!(!sweeps.is_due(at(122)));
        assert!(sweeps.is_due(at(123)));
    }
}
