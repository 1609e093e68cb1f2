//! A look at the database that changes nothing: no schema is made or brought up to date, no file is created.

use std::path::{Path, PathBuf};

use super::inspection::Inspection;
use super::{Database, postgres, sqlite};

impl Database {
    /// Connects, asks, and makes sure that writing would be possible.
    pub async fn inspect(&self) -> anyhow::Result<Inspection> {
        match self {
            Self::Sqlite(path) => {
                let path = path.clone();
                tokio::task::spawn_blocking(move || sqlite::inspect(&path)).await?
            }
            Self::Postgres(config) => postgres::inspect(config).await,
        }
    }

    /// The folder that commits go to, where they go to this machine's disk.
    pub fn folder(&self) -> Option<PathBuf> {
        match self {
            Self::Sqlite(path) => path.parent().map(Path::to_owned),
            Self::Postgres(_) => None,
        }
    }

    /// The process that serves from this database on this machine, as far as the database itself shows it.
    pub fn served_by(&self) -> Option<u32> {
        use std::os::unix::fs::MetadataExt;
        let Self::Sqlite(path) = self else {
            return None;
        };
        let inode = std::fs::metadata(path.with_extension("lock")).ok()?.ino();
        holder(&std::fs::read_to_string("/proc/locks").ok()?, inode)
    }
}

/// Who holds the lock on a file, by the kernel's list. Trying the lock instead would keep a server that starts in this moment from its file.
fn holder(locks: &str, inode: u64) -> Option<u32> {
    let ending = format!(":{inode}");
    locks.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let place = words.iter().position(|word| *word == "FLOCK")?;
        let waits = words.get(1) == Some(&"->");
        let file = words.get(place + 4)?;
        (!waits && file.ends_with(&ending)).then(|| words[place + 3].parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found_in_the_kernels_list() {
        let locks = "1: POSIX  ADVISORY  WRITE 77 fe:00:4242 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 815 fe:00:4242 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 816 fe:00:4242 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 99 fe:00:142 0 EOF\n";
        assert_eq!(holder(locks, 4242), Some(815));
        assert_eq!(holder(locks, 142), Some(99));
        assert_eq!(holder(locks, 42), None);
    }
}
