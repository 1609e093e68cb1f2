//! Renders prompts: each once, however many callers wait for it, on threads of its own. Prompts are cached in memory and on disk.

mod job_queue;
mod prompt_cache;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, thread};

use supervisor::{Supervisor, Watch, panic_message};
use tokio::sync::oneshot;

use crate::cache::Key;
use crate::cache::disk::Disk;
use crate::prompt::Playlist;
use crate::speech::{Speaker, SpeakingTurn, SpeechError, Utterance, VoiceChoice};
use crate::spelled::SpelledCharacter;
use crate::wav::{AudioError, Wav, WavLimits};
use crate::{background, level, telephone};
use g711::EncodedAudio;

use job_queue::{JobQueue, Labour, QueueEntry, QueuedPrompt, WorkerTurn};
pub use prompt_cache::Counts;
use prompt_cache::{Lookup, PromptCache, Rendered};

/// So many texts may be interrupted on one thread, each for a requester who has no thread: each is kept on its stack.
const MAX_INTERRUPTED: usize = 8;
/// Between two parts of a text, for a requester that has had prompts rendered for a while.
const LONGEST_REST: Duration = Duration::from_millis(100);
/// A third of the share of a thread with an ordinary priority.
const NICE: i32 = 5;

#[derive(Debug, Clone)]
pub struct RendererSettings {
    /// How many prompts are rendered at once, and one more while that many wait for voices that are other programs.
    pub workers: usize,
    /// The most prompts that wait to be rendered; callers that wait for the same one count once.
    pub waiting: usize,
    pub memory_bytes: u64,
    /// The folder and the most bytes in it. `None` keeps nothing on disk.
    pub disk: Option<(PathBuf, u64)>,
    /// Nothing is kept on the disk while it has fewer bytes free.
    pub disk_min_free: u64,
    /// How long a failure is cached, and a prompt of the fallback voice.
    pub failure_ttl: Duration,
    pub limits: WavLimits,
    /// Silence between two plays of a prompt.
    pub gap: Duration,
}

impl Default for RendererSettings {
    fn default() -> Self {
        Self {
            workers: thread::available_parallelism().map_or(2, usize::from),
            waiting: 10_000,
            memory_bytes: 256 << 20,
            disk: None,
            disk_min_free: 0,
            failure_ttl: Duration::from_secs(10),
            limits: WavLimits::default(),
            gap: Duration::from_secs(1),
        }
    }
}

/// Why a prompt cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    #[error("the text was not spoken: {0}")]
    Speech(#[from] SpeechError),
    #[error("the audio file is not playable: {0}")]
    File(#[from] AudioError),
    #[error("the audio file cannot be read: {0}")]
    Missing(String),
    /// Not this one alone.
    #[error("no audio file can be read: {0}")]
    NoFiles(String),
    #[error("too many prompts are waiting to be rendered")]
    Busy,
    #[error("rendering the prompt failed")]
    Broken,
}

/// Whoever wants a prompt. Requesters take turns; who they are is not known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requester<'a>(pub &'a str);

/// One piece of a prompt. A file is named by its content, and read only if it has to be decoded.
pub enum Piece {
    Speech {
        speech: Utterance,
        choice: VoiceChoice,
    },
    File {
        content: String,
        read: ReadFile,
    },
    /// A character of a code. It is spoken on this machine, and not kept on disk.
    Character(SpelledCharacter),
    TestTune,
}

/// It may block: it is called on a thread of the prompt renderer.
pub type ReadFile = Box<dyn FnOnce() -> Result<Vec<u8>, PromptError> + Send>;

impl std::fmt::Debug for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Piece::Speech { speech, choice } => {
                let mut told = f.debug_struct("Speech");
                told.field("speech", speech)
                    .field("choice", choice)
                    .finish()
            }
            Piece::File { content, .. } => f.debug_tuple("File").field(content).finish(),
            Piece::Character(_) => f.write_str("Character"),
            Piece::TestTune => f.write_str("TestTune"),
        }
    }
}

/// When it is dropped, its threads finish what they are rendering and end.
#[derive(Debug)]
pub struct PromptRenderer {
    shared: Arc<Shared>,
    gap: Duration,
}

/// What the threads share.
#[derive(Debug)]
struct Shared {
    cache: PromptCache,
    queue: JobQueue,
    disk: Option<Disk>,
    speaker: Speaker,
    limits: WavLimits,
}

/// A piece that can be played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedPiece {
    pub sound: EncodedAudio,
    /// Who spoke it, where it is speech.
    pub voice: Option<Arc<str>>,
}

/// A piece that is cached, or will be rendered.
#[derive(Debug)]
pub enum Pending {
    Ready(Result<RenderedPiece, PromptError>),
    Waiting(oneshot::Receiver<Result<RenderedPiece, PromptError>>),
}

impl Pending {
    pub async fn ready(self) -> Result<RenderedPiece, PromptError> {
        match self {
            Pending::Ready(piece) => piece,
            Pending::Waiting(answer) => answer.await.unwrap_or(Err(PromptError::Broken)),
        }
    }

    /// For callers without an async runtime.
    pub fn wait(self) -> Result<RenderedPiece, PromptError> {
        match self {
            Pending::Ready(piece) => piece,
            Pending::Waiting(answer) => answer.blocking_recv().unwrap_or(Err(PromptError::Broken)),
        }
    }
}

impl PromptRenderer {
    /// `supervisor` knows the threads as `prompt-renderer`.
    pub fn open(
        supervisor: &Supervisor,
        settings: &RendererSettings,
        speaker: Speaker,
    ) -> io::Result<Self> {
        let disk = match &settings.disk {
            Some((folder, bytes)) => Some(Disk::open(folder, *bytes, settings.disk_min_free)?),
            None => None,
        };
        let shared = Arc::new(Shared {
            cache: PromptCache::new(settings.memory_bytes, settings.failure_ttl),
            queue: JobQueue::new(settings.waiting, settings.workers.max(1)),
            disk,
            speaker,
            limits: settings.limits,
        });
        for _ in 0..=settings.workers.max(1) {
            let shared = Arc::clone(&shared);
            supervisor.restart_thread("prompt-renderer", None, move |watch| {
                shared.render_queued(&watch);
            })?;
        }
        Ok(Self {
            shared,
            gap: settings.gap,
        })
    }

    /// Never blocks: the piece is cached, or is being rendered, or will be.
    pub fn piece(&self, requester: Requester<'_>, piece: Piece) -> Pending {
        let key = self.shared.key(&piece);
        self.shared.queue.note_wanted(requester.0);
        match self.shared.cache.look_up(key) {
            Lookup::Cached(piece) => Pending::Ready(piece),
            Lookup::Pending(answer) => {
                self.shared.queue.join(requester.0, key);
                Pending::Waiting(answer)
            }
            Lookup::Missing(answer) => {
                let labour = self.shared.labour(&piece);
                let given_up = match self.shared.queue.add(requester.0, key, piece, labour) {
                    QueueEntry::Waits => None,
                    QueueEntry::Instead(other) => Some(other),
                    QueueEntry::Refused => Some(key),
                };
                if let Some(given_up) = given_up {
                    self.shared.cache.give_up(given_up, PromptError::Busy);
                }
                Pending::Waiting(answer)
            }
        }
    }

    /// Begins all pieces before it waits for the first.
    pub async fn prompt(
        &self,
        requester: Requester<'_>,
        pieces: Vec<Piece>,
        plays: u8,
    ) -> Result<Playlist, PromptError> {
        let pieces = pieces.into_iter();
        let pending: Vec<Pending> = pieces.map(|piece| self.piece(requester, piece)).collect();
        let (mut sequence, mut voice) = (Vec::with_capacity(pending.len()), None);
        for pending in pending {
            let piece = pending.ready().await?;
            sequence.push(piece.sound);
            voice = voice.or(piece.voice);
        }
        Ok(Playlist::new(sequence, plays, self.gap).spoken_by(voice))
    }

    pub fn counts(&self) -> Counts {
        self.shared.cache.counts()
    }
}

impl Drop for PromptRenderer {
    fn drop(&mut self) {
        self.shared.queue.close();
    }
}

/// Samples, and who has spoken them.
struct MadeSound {
    samples: Vec<f32>,
    voice: Option<Arc<str>>,
    is_fallback: bool,
}

impl MadeSound {
    fn plain(samples: Vec<f32>) -> Self {
        Self {
            samples,
            voice: None,
            is_fallback: false,
        }
    }
}

/// The turn of a requester at a thread: a text that may be interrupted.
struct TextTurn<'a> {
    shared: &'a Shared,
    turn: &'a WorkerTurn<'a>,
    /// So many prompts are interrupted on this thread.
    depth: usize,
    text: InterruptedText,
    /// The part under way began then.
    part_begun: Instant,
}

impl SpeakingTurn for TextTurn<'_> {
    fn let_others(&mut self) {
        let part = self.part_begun.elapsed();
        self.shared.let_others(self.depth, &mut self.text);
        // Half of the time is left to others: what is on the line and in the database waits for the same processors. A text that has interrupted another one
        // does not keep it waiting for that.
        if self.depth == 0 && self.turn.is_long() && self.turn.others_want() {
            thread::sleep(part.min(LONGEST_REST));
            self.shared.let_others(self.depth, &mut self.text);
        }
        self.part_begun = Instant::now();
    }

    fn is_long(&self) -> bool {
        self.turn.is_long()
    }
}

/// A text that is being spoken, and how long it was interrupted for whom.
struct InterruptedText {
    begun: Instant,
    others: HashMap<String, Duration>,
}

impl InterruptedText {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            others: HashMap::new(),
        }
    }

    /// Only to those who have had no more time of it than the text itself: however many long texts another has, this one comes to its end.
    fn yields_to(&self, requester: &str) -> bool {
        let away: Duration = self.others.values().sum();
        let own = self.begun.elapsed().saturating_sub(away);
        let had = self.others.get(requester).copied().unwrap_or_default();
        had <= own
    }

    fn record(&mut self, requester: String, time: Duration) {
        *self.others.entry(requester).or_default() += time;
    }
}

impl Shared {
    fn key(&self, piece: &Piece) -> Key {
        match piece {
            Piece::Speech {
                speech: Utterance { text, options },
                choice,
            } => Key::of(&[
                b"speech",
                self.speaker.identity(text, choice).as_bytes(),
                text.as_bytes(),
                &options.speed.to_le_bytes(),
                &options.volume.to_le_bytes(),
                &options.pitch.to_le_bytes(),
                &[options.background],
            ]),
            Piece::File { content, .. } => Key::of(&[b"file", content.as_bytes()]),
            Piece::Character(spelled) => Key::of(&[
                b"character",
                self.speaker.embedded_identity().as_bytes(),
                spelled.name().as_bytes(),
            ]),
            Piece::TestTune => Key::of(&[b"test tune"]),
        }
    }

    fn labour(&self, piece: &Piece) -> Labour {
        match piece {
            Piece::Speech { speech, choice } if !self.speaker.is_quick(&speech.text, choice) => {
                Labour::Slow
            }
            _ => Labour::Quick,
        }
    }

    /// Renders what is queued, until the renderer is dropped. A panic costs one prompt only.
    fn render_queued(&self, watch: &Watch) {
        give_way();
        watch.heartbeat();
        while let Some(job) = self.queue.take() {
            self.finish(job, 0);
            watch.heartbeat();
        }
        watch.release();
    }

    /// `depth`: so many prompts are interrupted on this thread.
    fn finish(&self, (key, piece, turn): QueuedPrompt<'_>, depth: usize) {
        let rendered = catch_unwind(AssertUnwindSafe(|| self.render(&key, piece, &turn, depth)));
        let rendered = rendered.unwrap_or_else(|panic| {
            let reason = panic_message(&*panic);
            tracing::error!(reason, "rendering a prompt panicked");
            Rendered::Failed(PromptError::Broken)
        });
        self.cache.put(key, rendered);
    }

    /// Between two parts of a long text: requesters for whom no thread works do not wait for its end.
    fn let_others(&self, depth: usize, text: &mut InterruptedText) {
        if depth >= MAX_INTERRUPTED {
            return;
        }
        if let Some(job) = self.queue.take_of_the_idle(|other| text.yields_to(other)) {
            let (requester, begun) = (job.2.requester().to_owned(), Instant::now());
            self.finish(job, depth + 1);
            text.record(requester, begun.elapsed());
        }
    }

    fn render(&self, key: &Key, piece: Piece, turn: &WorkerTurn<'_>, depth: usize) -> Rendered {
        let disk = match piece {
            Piece::Character(_) => None,
            _ => self.disk.as_ref(),
        };
        if let Some(sound) = disk.and_then(|disk| disk.get(key)) {
            // What another voice than the first has spoken is not on the disk.
            let voice = match &piece {
                Piece::Speech { speech, choice } => {
                    Some(self.speaker.first_voice(&speech.text, choice))
                }
                _ => None,
            };
            return Rendered::FromDisk(RenderedPiece { sound, voice });
        }
        match self.samples(piece, turn, depth) {
            Ok(made) => {
                let sound = EncodedAudio::encode(&level::to_whole(&made.samples));
                let piece = RenderedPiece {
                    sound,
                    voice: made.voice,
                };
                if made.is_fallback {
                    return Rendered::Fallback(piece);
                }
                if let Some(disk) = disk {
                    disk.put(key, &piece.sound);
                }
                Rendered::New(piece)
            }
            Err(reason) => Rendered::Failed(reason),
        }
    }

    fn samples(
        &self,
        piece: Piece,
        turn: &WorkerTurn<'_>,
        depth: usize,
    ) -> Result<MadeSound, PromptError> {
        Ok(match piece {
            Piece::Speech { speech, choice } => {
                let mut turn = TextTurn {
                    shared: self,
                    turn,
                    depth,
                    text: InterruptedText::new(),
                    part_begun: Instant::now(),
                };
                let spoken = self.speaker.speak_in_turn(&speech, &choice, &mut turn)?;
                MadeSound {
                    samples: spoken.samples,
                    voice: Some(spoken.voice),
                    is_fallback: spoken.is_fallback,
                }
            }
            Piece::File { read, .. } => {
                let bytes = read()?;
                let samples = Wav::read(&bytes, &self.limits)?.for_the_line();
                MadeSound::plain(telephone::mastered(samples, level::SPEECH_DB))
            }
            Piece::Character(spelled) => MadeSound::plain(spelled.speak(&self.speaker)?),
            Piece::TestTune => MadeSound::plain(background::test_tune()),
        })
    }
}

/// Calls that talk, and requests, come before prompts where the processor is short. Programs that this thread starts are as modest.
fn give_way() {
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "prompts are rendered at the priority of everything else");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_yields_to_nobody_who_has_had_more_of_its_time_than_itself() {
        let mut text = InterruptedText::new();
        assert!(text.yields_to("greedy"));
        text.begun = Instant::now()
            .checked_sub(Duration::from_secs(3))
            .expect("the machine has run for longer");
        text.record("greedy".to_owned(), Duration::from_secs(2));
        // It has had a second for itself.
        assert!(!text.yields_to("greedy") && text.yields_to("modest"));
        text.record("modest".to_owned(), Duration::from_millis(100));
        assert!(text.yields_to("modest"));
    }
}
