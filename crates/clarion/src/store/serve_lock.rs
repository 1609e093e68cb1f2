//! One server at a time serves from a SQLite file.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::{Context, bail};

use super::Database;
use crate::private_files;

/// Says that this process serves from a SQLite file, until it is dropped or the process ends in whatever way.
#[derive(Debug)]
pub struct ServeLock(File);

impl Drop for ServeLock {
    /// The file is unlocked, not only closed: a process that is being started at the same time holds a copy of it for a moment.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// The files of a database that is there may have been made by something else, a copy for instance. They hold tokens.
fn close_to_others(path: &Path) -> anyhow::Result<()> {
    for part in ["", "-wal", "-shm", "-reserve"] {
        let mut file = path.as_os_str().to_owned();
        file.push(part);
        private_files::close(Path::new(&file))?;
    }
    Ok(())
}

impl Database {
    /// One server at a time serves from a SQLite file: its leases belong to that process's life. The command line may still open the
    /// file beside it. Nodes that share a PostgreSQL need no such lock.
    pub fn lock_for_serving(&self) -> anyhow::Result<Option<ServeLock>> {
        let Self::Sqlite(path) = self else {
            return Ok(None);
        };
        let lock = path.with_extension("lock");
        let file = private_files::file(&lock)
            .with_context(|| format!("cannot make the lock file {}", lock.display()))?;
        match file.try_lock() {
            Ok(()) => {
                close_to_others(path)?;
                Ok(Some(ServeLock(file)))
            }
            Err(TryLockError::WouldBlock) => {
                bail!("another server is already serving from {}", path.display())
            }
            Err(TryLockError::Error(error)) => {
                Err(error).context("cannot lock the database for serving")
            }
        }
    }
}
