//! Where prompts are made: each once, however many wait for it, on threads of its own; remembered in memory and on disk.

mod shelf;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{io, thread};

use tokio::sync::oneshot;

use crate::cache::Key;
use crate::cache::disk::Disk;
use crate::encoded::Encoded;
use crate::prompt::Playlist;
use crate::speech::{Mute, Speaker, Speech};
use crate::wav::{Limits, Unplayable, Wav};
use crate::{background, level};

pub use shelf::Counts;
use shelf::{Asked, Made, Shelf};

#[derive(Debug, Clone)]
pub struct Settings {
    /// Prompts made at once.
    pub workers: usize,
    /// Prompts waiting to be made at most; callers that wait for the same one count once.
    pub waiting: usize,
    pub memory_bytes: u64,
    /// Folder and its bytes at most. None: nothing is kept on disk.
    pub disk: Option<(PathBuf, u64)>,
    /// How long a failure is remembered, or a prompt that the embedded voice spoke in place of another.
    pub brief: Duration,
    pub limits: Limits,
    /// Silence between two plays of a prompt.
    pub gap: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workers: thread::available_parallelism().map_or(2, usize::from),
            waiting: 10_000,
            memory_bytes: 256 << 20,
            disk: None,
            brief: Duration::from_secs(10),
            limits: Limits::default(),
            gap: Duration::from_secs(1),
        }
    }
}

/// Why a prompt is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unready {
    #[error("the text was not spoken: {0}")]
    Speech(#[from] Mute),
    #[error("the voice file is not playable: {0}")]
    File(#[from] Unplayable),
    #[error("the voice file cannot be read: {0}")]
    Missing(String),
    #[error("too many prompts are waiting to be made")]
    Busy,
    #[error("making the prompt failed")]
    Broken,
}

/// One piece of a prompt. A file is named by its content, and read only if it has to be decoded.
pub enum Piece {
    Speech(Speech),
    File { content: String, read: ReadFile },
    TestTune,
}

/// Blocking; it is called on a thread of the studio.
pub type ReadFile = Box<dyn FnOnce() -> Result<Vec<u8>, String> + Send>;

impl std::fmt::Debug for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Piece::Speech(speech) => f.debug_tuple("Speech").field(speech).finish(),
            Piece::File { content, .. } => f.debug_tuple("File").field(content).finish(),
            Piece::TestTune => f.write_str("TestTune"),
        }
    }
}

/// Dropping it lets its threads finish what they are at, and end.
#[derive(Debug)]
pub struct Studio {
    jobs: SyncSender<Job>,
    room: Arc<Room>,
    gap: Duration,
}

/// What the threads share.
#[derive(Debug)]
struct Room {
    shelf: Shelf,
    disk: Option<Disk>,
    speaker: Speaker,
    limits: Limits,
}

struct Job {
    key: Key,
    piece: Piece,
}

/// A piece that is there, or will be.
#[derive(Debug)]
pub enum Pending {
    Ready(Result<Encoded, Unready>),
    Waiting(oneshot::Receiver<Result<Encoded, Unready>>),
}

impl Pending {
    pub async fn ready(self) -> Result<Encoded, Unready> {
        match self {
            Pending::Ready(sound) => sound,
            Pending::Waiting(answer) => answer.await.unwrap_or(Err(Unready::Broken)),
        }
    }

    /// For callers without an async runtime.
    pub fn wait(self) -> Result<Encoded, Unready> {
        match self {
            Pending::Ready(sound) => sound,
            Pending::Waiting(answer) => answer.blocking_recv().unwrap_or(Err(Unready::Broken)),
        }
    }
}

impl Studio {
    pub fn open(settings: &Settings, speaker: Speaker) -> io::Result<Self> {
        let disk = match &settings.disk {
            Some((folder, bytes)) => Some(Disk::open(folder, *bytes)?),
            None => None,
        };
        let room = Arc::new(Room {
            shelf: Shelf::new(settings.memory_bytes, settings.brief),
            disk,
            speaker,
            limits: settings.limits,
        });
        let (jobs, queue) = sync_channel(settings.waiting);
        let queue = Arc::new(Mutex::new(queue));
        for number in 0..settings.workers.max(1) {
            let (room, queue) = (Arc::clone(&room), Arc::clone(&queue));
            thread::Builder::new()
                .name(format!("sound-{number}"))
                .spawn(move || room.work(&queue))?;
        }
        Ok(Self {
            jobs,
            room,
            gap: settings.gap,
        })
    }

    /// Never blocks: the piece is there, or is being made, or will be.
    pub fn piece(&self, piece: Piece) -> Pending {
        let key = self.room.key(&piece);
        match self.room.shelf.ask(key) {
            Asked::There(sound) => Pending::Ready(sound),
            Asked::Coming(answer) => Pending::Waiting(answer),
            Asked::Nobody(answer) => match self.jobs.try_send(Job { key, piece }) {
                Ok(()) => Pending::Waiting(answer),
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                    self.room.shelf.give_up(key, Unready::Busy);
                    Pending::Ready(Err(Unready::Busy))
                }
            },
        }
    }

    /// All pieces are begun before the first is waited for.
    pub async fn prompt(&self, pieces: Vec<Piece>, plays: u8) -> Result<Playlist, Unready> {
        let pending: Vec<Pending> = pieces.into_iter().map(|piece| self.piece(piece)).collect();
        let mut sequence = Vec::with_capacity(pending.len());
        for pending in pending {
            sequence.push(pending.ready().await?);
        }
        Ok(Playlist::new(sequence, plays, self.gap))
    }

    pub fn counts(&self) -> Counts {
        self.room.shelf.counts()
    }
}

impl Room {
    fn key(&self, piece: &Piece) -> Key {
        match piece {
            Piece::Speech(Speech { text, voice }) => Key::of(&[
                b"speech",
                self.speaker.identity().as_bytes(),
                text.as_bytes(),
                &voice.speed.to_le_bytes(),
                &voice.volume.to_le_bytes(),
                &voice.pitch.to_le_bytes(),
                &[voice.background],
            ]),
            Piece::File { content, .. } => Key::of(&[b"file", content.as_bytes()]),
            Piece::TestTune => Key::of(&[b"test tune"]),
        }
    }

    fn work(&self, queue: &Mutex<Receiver<Job>>) {
        loop {
            let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Job { key, piece }) = job else {
                return;
            };
            // Nothing in here should panic; if it does, one prompt fails and not the studio.
            let made = catch_unwind(AssertUnwindSafe(|| self.make(&key, piece)));
            self.shelf
                .put(key, made.unwrap_or(Made::Failed(Unready::Broken)));
        }
    }

    fn make(&self, key: &Key, piece: Piece) -> Made {
        if let Some(sound) = self.disk.as_ref().and_then(|disk| disk.get(key)) {
            return Made::Remembered(sound);
        }
        match self.samples(piece) {
            Ok((samples, is_makeshift)) => {
                let sound = Encoded::encode(&level::to_whole(&samples));
                if is_makeshift {
                    return Made::Makeshift(sound);
                }
                if let Some(disk) = &self.disk {
                    disk.put(key, &sound);
                }
                Made::New(sound)
            }
            Err(reason) => Made::Failed(reason),
        }
    }

    fn samples(&self, piece: Piece) -> Result<(Vec<f32>, bool), Unready> {
        Ok(match piece {
            Piece::Speech(speech) => {
                let spoken = self.speaker.speak(&speech)?;
                (spoken.samples, spoken.is_makeshift)
            }
            Piece::File { read, .. } => {
                let bytes = read().map_err(Unready::Missing)?;
                (Wav::read(&bytes, &self.limits)?.for_the_line(), false)
            }
            Piece::TestTune => (background::test_tune(), false),
        })
    }
}
