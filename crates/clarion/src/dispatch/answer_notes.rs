//! Notes of answers that the database has not taken in time.
//!
//! Somebody who has picked up is not kept waiting for a database that is away or a disk that is full: the answer is acknowledged all the same. If
//! the process died before the database knows of it, nobody could hang up. So what that takes is noted in a file whose room on the disk was taken
//! when the server started. The next start reads it, hangs up what it finds, and wipes what a trunk has confirmed. A note about a call that is over costs one BYE, to
//! which nobody listens any more; so no clock is asked how old a note is, which somebody may have set meanwhile.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

const FILE: &str = "answers";
/// So many notes are kept; the next one takes the place of the oldest.
const SLOTS: u64 = 256;
/// The room of a note, and of its length before it.
const ROOM: usize = 4096;
const LENGTH: usize = 4;

/// A leg that may still be up.
#[derive(Debug, Serialize, Deserialize)]
pub struct AnswerNote {
    pub at: Timestamp,
    pub trunk: String,
    /// What it takes to hang up, as the database would have it.
    pub dialog: String,
}

#[derive(Debug, Default)]
pub struct AnswerNotes {
    /// Where one could be made.
    file: Option<Arc<NotesFile>>,
    /// The place of the next note.
    next: AtomicU64,
    /// What earlier lives have noted, and its places.
    found: Mutex<Vec<(u64, AnswerNote)>>,
}

#[derive(Debug)]
struct NotesFile {
    file: File,
    /// The places that this life has written to.
    own: Mutex<HashSet<u64>>,
}

impl NotesFile {
    fn keep(&self, place: u64, bytes: &[u8]) -> io::Result<()> {
        {
            let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            own.insert(place);
            self.file.write_all_at(bytes, place * ROOM as u64)?;
        }
        self.file.sync_data()
    }

    /// Wipes what this life has not written. Written over, never shortened: the room is kept.
    fn wipe(&self, places: &[u64]) -> io::Result<()> {
        for place in places {
            let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            if !own.contains(place) {
                self.file.write_all_at(&[0; ROOM], place * ROOM as u64)?;
            }
        }
        self.file.sync_data()
    }
}

impl AnswerNotes {
    /// Reads what is there. A server that can keep no notes makes calls all the same.
    pub fn open(folder: &Path) -> Self {
        let opened = open(&folder.join(FILE)).inspect_err(|error| {
            tracing::warn!(%error, "answers cannot be noted: where the database fails, too, the calls of a process that dies may stay up");
        });
        let Ok((file, found)) = opened else {
            return Self::default();
        };
        let last = found.last().map(|(place, _)| *place);
        let own = Mutex::default();
        Self {
            file: Some(Arc::new(NotesFile { file, own })),
            // Until those that were found are done with, a further life must find them again.
            next: AtomicU64::new(last.map_or(0, |last| last + 1)),
            found: Mutex::new(found),
        }
    }

    /// Legs of an earlier life that may still be up, and the places of their notes; told once.
    pub fn take_found(&self) -> Vec<(u64, AnswerNote)> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut found)
    }

    /// What was found there is done with. Until then the next life would find it again.
    pub async fn wipe(&self, places: Vec<u64>) {
        let wipe = move |file: &NotesFile| file.wipe(&places);
        self.on_disk("the notes of an earlier life could not be wiped", wipe)
            .await;
    }

    /// Comes back when it is on the disk, or cannot be.
    pub async fn keep(&self, note: &AnswerNote) {
        let Some(bytes) = written(note) else {
            return;
        };
        let place = self.next.fetch_add(1, Ordering::Relaxed) % SLOTS;
        let keep = move |file: &NotesFile| file.keep(place, &bytes);
        self.on_disk("an answer could not be noted", keep).await;
    }

    /// Work that a slow disk may hold up.
    async fn on_disk(
        &self,
        otherwise: &'static str,
        work: impl FnOnce(&NotesFile) -> io::Result<()> + Send + 'static,
    ) {
        let Some(file) = self.file.clone() else {
            return;
        };
        let done = tokio::task::spawn_blocking(move || work(&file));
        if let Err(error) = done.await.map_err(io::Error::other).flatten() {
            tracing::warn!(%error, "{otherwise}");
        }
    }
}

/// What is there and where, in a file that has all its room on the disk, so that later notes need none.
fn open(path: &Path) -> io::Result<(File, Vec<(u64, AnswerNote)>)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.mode(0o600).open(path)?;
    let mut room = [0; ROOM];
    let mut found = Vec::new();
    for place in 0..SLOTS {
        if file.read_exact_at(&mut room, place * ROOM as u64).is_err() {
            file.write_all_at(&[0; ROOM], place * ROOM as u64)?;
            continue;
        }
        found.extend(read(&room).map(|note| (place, note)));
    }
    file.sync_all()?;
    Ok((file, found))
}

/// `None` if it is too long for its room, which no honest peer makes it.
fn written(note: &AnswerNote) -> Option<Vec<u8>> {
    let text = serde_json::to_vec(note).ok()?;
    let length = u32::try_from(text.len()).ok()?;
    let bytes = [&length.to_le_bytes()[..], &text].concat();
    (bytes.len() <= ROOM).then_some(bytes)
}

/// `None` if there is none, or only a part of one.
pub fn read(room: &[u8]) -> Option<AnswerNote> {
    let (length, text) = room.split_first_chunk::<LENGTH>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    serde_json::from_slice(text.get(..length)?).ok()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn note(at: Timestamp, dialog: &str) -> AnswerNote {
        AnswerNote {
            at,
            trunk: "main".to_owned(),
            dialog: dialog.to_owned(),
        }
    }

    fn now() -> Timestamp {
        "2026-11-17T03:00:00Z".parse().unwrap()
    }

    /// What the next life finds, which is killed before it is done.
    fn found(folder: &Path) -> Vec<String> {
        let found = AnswerNotes::open(folder).take_found();
        found.into_iter().map(|(_, note)| note.dialog).collect()
    }

    #[tokio::test]
    async fn what_is_noted_is_found_until_it_is_wiped_and_takes_no_more_room() {
        let folder = tempfile::tempdir().unwrap();
        let notes = AnswerNotes::open(folder.path());
        assert!(notes.take_found().is_empty());
        let length = || folder.path().join(FILE).metadata().unwrap().len();
        assert_eq!(length(), SLOTS * ROOM as u64);
        notes.keep(&note(now(), "first")).await;
        notes.keep(&note(now(), "second")).await;
        assert_eq!(length(), SLOTS * ROOM as u64);
        assert_eq!(found(folder.path()), ["first", "second"]);
        let next_life = AnswerNotes::open(folder.path());
        assert_eq!(next_life.take_found().len(), 2);
        assert!(next_life.take_found().is_empty());
        next_life.wipe(vec![1]).await;
        assert_eq!(found(folder.path()), ["first"], "it is not confirmed");
        next_life.wipe(vec![0]).await;
        assert!(found(folder.path()).is_empty());
        assert_eq!(length(), SLOTS * ROOM as u64);
    }

    /// The database may still be away while the legs of the life before are hung up.
    #[tokio::test]
    async fn what_this_life_notes_is_neither_wiped_nor_in_the_place_of_what_was_found() {
        let folder = tempfile::tempdir().unwrap();
        let first = AnswerNotes::open(folder.path());
        for dialog in ["first", "second"] {
            first.keep(&note(now(), dialog)).await;
        }
        let next_life = AnswerNotes::open(folder.path());
        next_life.keep(&note(now(), "third")).await;
        assert_eq!(found(folder.path()), ["first", "second", "third"]);
        next_life.wipe(vec![0, 1, 2]).await;
        assert_eq!(found(folder.path()), ["third"]);
    }

    #[tokio::test]
    async fn what_is_torn_or_too_long_is_left_out_and_what_is_old_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let notes = AnswerNotes::open(folder.path());
        notes
            .keep(&note(now() - SignedDuration::from_hours(2), "set clock"))
            .await;
        notes.keep(&note(now(), &"x".repeat(ROOM))).await;
        notes.keep(&note(now(), "torn")).await;
        notes.keep(&note(now(), "whole")).await;
        let file = OpenOptions::new()
            .write(true)
            .open(folder.path().join(FILE));
        // The one that was too long has taken no slot.
        file.unwrap()
            .write_all_at(&[0; 8], ROOM as u64 + 20)
            .unwrap();
        assert_eq!(found(folder.path()), ["set clock", "whole"]);
    }

    #[tokio::test]
    async fn the_oldest_makes_way() {
        let folder = tempfile::tempdir().unwrap();
        let notes = AnswerNotes::open(folder.path());
        for number in 0..=SLOTS {
            notes.keep(&note(now(), &number.to_string())).await;
        }
        let found = found(folder.path());
        assert_eq!(found.len(), usize::try_from(SLOTS).unwrap());
        assert_eq!(found[0], SLOTS.to_string());
        assert_eq!(found[1], "1");
    }
}
