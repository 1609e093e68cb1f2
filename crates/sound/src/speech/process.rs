//! Runs a program that reads bytes and writes bytes: without a shell, with a time limit and a limit on its output, and with nothing left
//! behind.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, setpriority_process};

use super::SpeechError;

/// Where programs that are not named by a whole path are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What a program says about its failure is kept up to here.
pub(super) const LONGEST_COMPLAINT: u64 = 400;

pub(super) struct Program<'a> {
    pub path: &'a str,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(&'static str, String)>,
    /// How long it may take, for the message, and when that is over.
    pub time: Duration,
    pub deadline: Instant,
    pub byte_limit: usize,
    /// It takes what processor time others leave.
    pub gives_way: bool,
}

impl Program<'_> {
    /// Runs the program to its end and returns what it wrote.
    pub fn run(&self, input: Vec<u8>) -> Result<Vec<u8>, SpeechError> {
        let deadline = self.deadline;
        if Instant::now() >= deadline {
            return Err(self.too_slow());
        }
        let mut running = Running(self.start()?);
        let child = &mut running.0;
        // Each pipe has a thread of its own, or a program that writes before it has read would stand still for ever.
        if let Some(mut stdin) = child.stdin.take() {
            thread::spawn(move || stdin.write_all(&input));
        }
        let complaint = reading(child.stderr.take(), LONGEST_COMPLAINT);
        let output = reading(child.stdout.take(), self.byte_limit as u64 + 1);
        let output = self.wait(&output, deadline)?;
        if output.len() > self.byte_limit {
            return Err(SpeechError::TooMuch {
                who: self.path.into(),
                limit: self.byte_limit,
            });
        }
        let status = running.ended_by(deadline).ok_or_else(|| self.too_slow())?;
        if status.success() {
            return Ok(output);
        }
        let said = self.wait(&complaint, deadline).unwrap_or_default();
        Err(SpeechError::Failed {
            who: self.path.into(),
            reason: format!("{status}, {}", String::from_utf8_lossy(&said).trim()),
        })
    }

    /// Our own environment holds secrets (the address of the database), so a program gets only what it needs to run.
    pub fn start(&self) -> Result<Child, SpeechError> {
        let mut command = Command::new(whole_path(self.path));
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .env("PATH", PATH)
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, so that what it starts can be ended with it.
            .process_group(0);
        let child = command.spawn().map_err(|error| SpeechError::NotStarted {
            program: self.path.into(),
            reason: error.to_string(),
        })?;
        if self.gives_way {
            give_way(&child);
        }
        Ok(child)
    }

    fn wait(&self, output: &Receiver<Vec<u8>>, deadline: Instant) -> Result<Vec<u8>, SpeechError> {
        let left = deadline.saturating_duration_since(Instant::now());
        output.recv_timeout(left).map_err(|_| self.too_slow())
    }

    fn too_slow(&self) -> SpeechError {
        SpeechError::TooSlow {
            who: self.path.into(),
            time: self.time,
        }
    }
}

/// A thirtieth of the share of a program with an ordinary priority. It may have ended already.
const NICE: i32 = 15;

fn give_way(child: &Child) {
    let pid = Pid::from_raw(child.id().cast_signed());
    if let Err(error) = setpriority_process(pid, NICE) {
        tracing::debug!(%error, "a program speaks at the priority of others");
    }
}

/// Where the program is, if it is found. With a name alone and a `PATH` of its own, the standard library would fork: that copies the tables of
/// all our memory, and what other threads write to meanwhile, for every phrase.
fn whole_path(program: &str) -> PathBuf {
    let name = Path::new(program);
    if program.contains('/') {
        return name.to_owned();
    }
    let mut places = PATH.split(':').map(|folder| Path::new(folder).join(name));
    places
        .find(|place| place.is_file())
        .unwrap_or_else(|| name.to_owned())
}

/// Reads a pipe to its end on a thread of its own. What exceeds the limit is left in the pipe.
pub(super) fn reading(pipe: Option<impl Read + Send + 'static>, limit: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // An error counts as the end: the caller judges what has come.
            let _ = pipe.take(limit).read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

/// A child that does not outlive its purpose, whichever way that ends.
pub(super) struct Running(pub Child);

impl Running {
    /// It has closed its output, so this is a matter of moments, unless it is up to something else.
    fn ended_by(&mut self, deadline: Instant) -> Option<std::process::ExitStatus> {
        let mut pause = Duration::from_micros(50);
        loop {
            if let Ok(Some(status)) = self.0.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Until it is waited for, its number cannot belong to another process.
        if let Ok(None) = self.0.try_wait() {
            if let Some(group) = Pid::from_raw(self.0.id().cast_signed()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_started_by_its_whole_path() {
        assert!(whole_path("sh").is_absolute());
        assert_eq!(whole_path("./sh"), Path::new("./sh"));
        assert_eq!(whole_path("no-such-voice"), Path::new("no-such-voice"));
    }
}
