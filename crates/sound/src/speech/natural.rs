//! The natural engine: a program of ours in processes of its own, each of which keeps a model in memory and speaks one text after the other.
//!
//! A process reads requests and writes answers, each with its length before it. One that is too slow, answers nonsense or is gone is ended, and
//! another one is started for the next text. Where those that wait would take longer than a text may, the engine says at once that it is busy.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::command::played;
use super::process::{LONGEST_COMPLAINT, Program, Running, reading};
use super::{NativeOptions, SpeakingTime, SpeechEngine, SpeechError, Utterance};
use crate::text::mandarin::is_han;
use crate::wav::WavLimits;

const WHO: &str = "the natural voice";
/// Before an answer: what it is, and how long.
const SOUND: u8 = 0;
const FAILURE: u8 = 1;
/// Work for a letter, in seconds, until it has been measured. A Han character is as much as three.
const FIRST_PACE: f64 = 0.06;
const LETTERS_A_CHARACTER: u64 = 3;
/// How much of what is known of the pace is kept when something new is known.
const MEMORY: f64 = 0.8;
/// One text that took too long makes it at most so many times as slow.
const MAX_SLOWER: f64 = 2.0;

/// What a process is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpeechRequest {
    pub text: String,
    pub speaker: String,
    /// How much faster than natural.
    pub tempo: f32,
}

impl SpeechRequest {
    /// The next request; nothing where there are no more.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut length = [0; 4];
        match from.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let mut json = vec![0; u32::from_le_bytes(length) as usize];
        from.read_exact(&mut json)?;
        Ok(Some(serde_json::from_slice(&json)?))
    }

    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let json = serde_json::to_vec(self)?;
        let length = u32::try_from(json.len()).map_err(io::Error::other)?;
        to.write_all(&length.to_le_bytes())?;
        to.write_all(&json)?;
        to.flush()
    }

    /// Writes what came of a request: a WAV file, or why there is none.
    pub fn answer(to: &mut impl Write, answer: &Result<Vec<u8>, String>) -> io::Result<()> {
        let (kind, bytes) = match answer {
            Ok(wav) => (SOUND, wav.as_slice()),
            Err(reason) => (FAILURE, reason.as_bytes()),
        };
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        to.write_all(&[kind])?;
        to.write_all(&length.to_le_bytes())?;
        to.write_all(bytes)?;
        to.flush()
    }

    fn work(&self) -> u64 {
        let letters = |c: char| if is_han(c) { LETTERS_A_CHARACTER } else { 1 };
        self.text.chars().map(letters).sum()
    }
}

/// The processes, which all natural voices share.
#[derive(Debug)]
pub struct NaturalWorkers {
    program: String,
    arguments: Vec<OsString>,
    limit: usize,
    state: Mutex<WorkersState>,
    freed: Condvar,
}

#[derive(Debug)]
struct WorkersState {
    idle: Vec<Worker>,
    /// Processes that there are, or are being started.
    running: usize,
    /// Letters that are being spoken or wait for it.
    letters: u64,
    /// Seconds of work for a letter.
    pace: f64,
}

impl WorkersState {
    fn learn(&mut self, work: u64, time: Duration) {
        let pace = time.as_secs_f64() / work.max(1) as f64;
        self.pace = self.pace * MEMORY + pace * (1.0 - MEMORY);
    }

    fn took_longer_than(&mut self, work: u64, time: Duration) {
        let pace = time.as_secs_f64() / work.max(1) as f64;
        self.pace = self.pace.max(pace.min(self.pace * MAX_SLOWER));
    }

    /// Nobody speaks, and a text was turned away because of what is thought of the pace. It may have been a bad hour: the next is a little likelier to be tried.
    fn doubt(&mut self) {
        self.pace = self
            .pace
            .min(self.pace * MEMORY + FIRST_PACE * (1.0 - MEMORY));
    }
}

impl NaturalWorkers {
    /// At most so many processes, each of one thread. They are started when they are needed.
    pub fn new(program: String, arguments: Vec<OsString>, limit: usize) -> Self {
        Self {
            program,
            arguments,
            limit: limit.max(1),
            state: Mutex::new(WorkersState {
                idle: Vec::new(),
                running: 0,
                letters: 0,
                pace: FIRST_PACE,
            }),
            freed: Condvar::new(),
        }
    }

    fn speak(&self, request: &SpeechRequest, deadline: Instant) -> Result<Vec<u8>, SpeechError> {
        let work = request.work();
        let turn = self.wait_for_turn(work, deadline)?;
        let begun = Instant::now();
        // How long a process takes to begin says nothing about how fast it speaks.
        let is_new = turn.is_none();
        let mut worker = match turn {
            Some(worker) => worker,
            None => self.start().inspect_err(|_| self.gone(work))?,
        };
        match worker.speak(request, deadline) {
            // A process that says why it failed goes on with the next text.
            Ok(answer) => {
                if answer.is_ok() && !is_new {
                    self.lock().learn(work, begun.elapsed());
                }
                self.free(worker, work);
                answer
            }
            Err(error) => {
                drop(worker);
                if matches!(error, SpeechError::TooSlow { .. }) && !is_new {
                    self.lock().took_longer_than(work, begun.elapsed());
                }
                self.gone(work);
                Err(error)
            }
        }
    }

    /// A process that is idle, or leave to start one.
    fn wait_for_turn(&self, work: u64, deadline: Instant) -> Result<Option<Worker>, SpeechError> {
        let busy = || SpeechError::Busy { who: WHO.into() };
        let mut state = self.lock();
        let ahead = state.letters as f64 / self.limit as f64 + work as f64;
        let left = || deadline.saturating_duration_since(Instant::now());
        if ahead * state.pace > left().as_secs_f64() {
            if state.letters == 0 {
                state.doubt();
            }
            return Err(busy());
        }
        state.letters += work;
        loop {
            // Whoever gets their turn too late leaves it to the next: a text that is broken off costs a process.
            if work as f64 * state.pace > left().as_secs_f64() {
                state.letters -= work;
                self.freed.notify_one();
                return Err(busy());
            }
            if let Some(worker) = state.idle.pop() {
                return Ok(Some(worker));
            }
            if state.running < self.limit {
                state.running += 1;
                return Ok(None);
            }
            let waited = self.freed.wait_timeout(state, left());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn start(&self) -> Result<Worker, SpeechError> {
        let program = Program {
            path: &self.program,
            arguments: self.arguments.clone(),
            environment: Vec::new(),
            time: Duration::ZERO,
            deadline: Instant::now(),
            byte_limit: 0,
            gives_way: false,
        };
        Worker::new(Running(program.start()?))
    }

    fn free(&self, worker: Worker, work: u64) {
        let mut state = self.lock();
        state.idle.push(worker);
        state.letters -= work;
        self.freed.notify_one();
    }

    fn gone(&self, work: u64) {
        let mut state = self.lock();
        state.running -= 1;
        state.letters -= work;
        self.freed.notify_one();
    }

    /// A panic elsewhere leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, WorkersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Answer = Result<Vec<u8>, SpeechError>;

/// One process.
struct Worker {
    requests: ChildStdin,
    answers: Receiver<io::Result<Answer>>,
    complaint: Receiver<Vec<u8>>,
    _process: Running,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

impl Worker {
    fn new(mut process: Running) -> Result<Self, SpeechError> {
        let child = &mut process.0;
        let complaint = reading(child.stderr.take(), LONGEST_COMPLAINT);
        let (Some(requests), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("it has no pipes"));
        };
        let (sender, answers) = channel();
        thread::spawn(move || {
            loop {
                let answer = read_answer(&mut output);
                let is_over = answer.is_err();
                if sender.send(answer).is_err() || is_over {
                    break;
                }
            }
        });
        Ok(Self {
            requests,
            answers,
            complaint,
            _process: process,
        })
    }

    fn speak(&mut self, request: &SpeechRequest, deadline: Instant) -> Result<Answer, SpeechError> {
        if request.write(&mut self.requests).is_err() {
            return Err(self.gone());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        match self.answers.recv_timeout(left) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Err(self.gone()),
            Err(RecvTimeoutError::Timeout) => Err(SpeechError::TooSlow {
                who: WHO.into(),
                time: left,
            }),
        }
    }

    /// What it has said before it went.
    fn gone(&self) -> SpeechError {
        let said = self.complaint.recv_timeout(Duration::from_secs(1));
        let said = said.unwrap_or_default();
        failed(&format!(
            "its process ended: {}",
            String::from_utf8_lossy(&said).trim()
        ))
    }
}

fn read_answer(output: &mut impl Read) -> io::Result<Answer> {
    let mut head = [0; 5];
    output.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let length = u32::from_le_bytes(length) as usize;
    if length > WavLimits::default().bytes {
        return Err(io::Error::other("more than anybody says"));
    }
    let mut bytes = vec![0; length];
    output.read_exact(&mut bytes)?;
    Ok(match kind {
        SOUND => Ok(bytes),
        _ => Err(failed(&String::from_utf8_lossy(&bytes))),
    })
}

fn failed(reason: &str) -> SpeechError {
    SpeechError::Failed {
        who: WHO.into(),
        reason: reason.to_owned(),
    }
}

/// One speaker of the model.
#[derive(Debug)]
pub struct NaturalEngine {
    pub workers: Arc<NaturalWorkers>,
    pub speaker: String,
    pub time: Duration,
    /// What of the installation makes a difference to the sound.
    pub version: String,
}

impl SpeechEngine for NaturalEngine {
    fn identity(&self) -> String {
        format!("natural {} {}", self.speaker, self.version)
    }

    fn native(&self) -> NativeOptions {
        NativeOptions {
            speed: true,
            pitch: false,
        }
    }

    fn speak(
        &self,
        speech: &Utterance,
        time: &mut SpeakingTime<'_>,
    ) -> Result<Vec<f32>, SpeechError> {
        let request = SpeechRequest {
            text: speech.text.clone(),
            speaker: self.speaker.clone(),
            tempo: speech.options.tempo(),
        };
        let deadline = time.within(self.time).deadline();
        let wav = self.workers.speak(&request, deadline)?;
        played(WHO, speech, &wav, WavLimits::default())
    }
}
