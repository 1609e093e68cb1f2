//! How much of the machine others are using: a figure that was measured beside somebody's compiler, or while a hypervisor had taken the
//! cores away, says nothing about Clarion.

use std::ffi::OsStr;
use std::fs;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::usage::TICKS_A_SECOND;

/// Shares of all cores: above them a second counts as disturbed. Other programs slow a server down by their share, but a hypervisor
/// stops it altogether for a moment, so that little of it already shows in a p99.
const PROGRAMS: f64 = 0.1;
const HYPERVISOR: f64 = 0.01;
const LOOK: Duration = Duration::from_secs(1);

/// The processes that take part in a measurement: these and their children. Everybody else on the machine is `others`.
#[derive(Debug, Clone)]
pub struct Ours(Processes);

/// Some processes and their children.
#[derive(Debug, Clone)]
pub struct Processes(Vec<u32>);

impl Processes {
    /// All of a PostgreSQL that runs here, by the number of any of its processes.
    pub fn of_postgres(backend: u32) -> Self {
        let stat = fs::read_to_string(format!("/proc/{backend}/stat")).ok();
        let postmaster = stat.and_then(|stat| Some(Process::read(&stat)?.parent));
        Self(postmaster.into_iter().collect())
    }

    /// Seconds of processor so far, those of children that have ended included.
    pub fn cpu(&self) -> f64 {
        self.ticks() / TICKS_A_SECOND
    }

    fn ticks(&self) -> f64 {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let is_process = |name: &OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        entries
            .filter(|entry| is_process(&entry.file_name()))
            .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
            .filter_map(|stat| Process::read(&stat))
            .filter(|process| self.0.contains(&process.id) || self.0.contains(&process.parent))
            .map(|process| process.ticks)
            .sum()
    }
}

impl Ours {
    /// This program with the servers that it starts, and a PostgreSQL by the number of any of its processes, if it runs here.
    pub fn with_postgres(backend: Option<u32>) -> Self {
        let postgres = backend.map(Processes::of_postgres);
        let mut all = postgres.unwrap_or(Processes(Vec::new()));
        all.0.push(std::process::id());
        Self(all)
    }

    /// Seconds of processor so far.
    pub fn cpu(&self) -> f64 {
        self.0.cpu()
    }

    fn ticks(&self) -> f64 {
        self.0.ticks()
    }
}

#[derive(Debug, PartialEq)]
struct Process {
    id: u32,
    parent: u32,
    ticks: f64,
}

impl Process {
    /// From a line such as `4711 (clarion) S 1 …`, where the 14th to 17th field are the ticks in the program and in the kernel, then
    /// the same for children that have ended: a server that was stopped still counts.
    fn read(stat: &str) -> Option<Self> {
        let (id, rest) = stat.split_once(" (")?;
        let fields: Vec<_> = rest.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let ticks = fields.get(11..15)?.iter();
        Some(Self {
            id: id.parse().ok()?,
            parent: fields.get(1)?.parse().ok()?,
            ticks: ticks.filter_map(|number| number.parse::<f64>().ok()).sum(),
        })
    }
}

/// The machine's clock ticks since it was started.
#[derive(Debug, Clone, Copy)]
struct Ticks {
    passed: f64,
    worked: f64,
    ours: f64,
    stolen: f64,
}

impl Ticks {
    fn now(ours: &Ours) -> Self {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        // user, nice, system, idle, iowait, irq, softirq, stolen; what follows is contained in the first two.
        let ticks: Vec<f64> = line
            .split_ascii_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect();
        let sum = |from, to| ticks.iter().take(to).skip(from).sum::<f64>();
        Self {
            passed: sum(0, 8),
            worked: sum(0, 3) + sum(5, 7),
            ours: ours.ticks(),
            stolen: sum(7, 8),
        }
    }

    /// Was the machine ours from then on?
    fn quiet_since(self, ours: &Ours) -> bool {
        let (programs, hypervisor) = self.shares_since(ours);
        programs < PROGRAMS && hypervisor < HYPERVISOR
    }

    /// Shares of all cores that other programs and a hypervisor have taken from then on.
    fn shares_since(self, ours: &Ours) -> (f64, f64) {
        let now = Self::now(ours);
        let passed = (now.passed - self.passed).max(1.0);
        let others = (now.worked - self.worked) - (now.ours - self.ours);
        (
            others.max(0.0) / passed,
            (now.stolen - self.stolen) / passed,
        )
    }
}

/// Waits until the machine is ours, for as long as the patience lasts.
pub async fn wait_until_quiet(ours: &Ours, patience: Duration) {
    let end = Instant::now() + patience;
    loop {
        let before = Ticks::now(ours);
        tokio::time::sleep(LOOK).await;
        if before.quiet_since(ours) || Instant::now() > end {
            return;
        }
    }
}

/// How much of the machine others take from a moment on.
#[derive(Debug)]
pub struct InterferenceShare {
    ours: Ours,
    began: Ticks,
}

impl InterferenceShare {
    pub fn from_now(ours: Ours) -> Self {
        let began = Ticks::now(&ours);
        Self { ours, began }
    }

    /// Of all cores, programs and hypervisor together.
    pub fn so_far(&self) -> f64 {
        let (programs, hypervisor) = self.began.shares_since(&self.ours);
        programs + hypervisor
    }
}

/// Looks once a second, beside a measurement, for work of other programs.
#[derive(Debug)]
pub struct InterferenceMonitor(JoinHandle<Vec<bool>>);

impl InterferenceMonitor {
    pub fn over(ours: &Ours, start: Instant, seconds: u64) -> Self {
        let ours = ours.clone();
        Self(thread::spawn(move || {
            let sleep_until = |time: Instant| {
                thread::sleep(time.saturating_duration_since(Instant::now()));
            };
            sleep_until(start);
            let mut quiet = Vec::new();
            for second in 1..=u32::try_from(seconds).unwrap_or(u32::MAX) {
                let before = Ticks::now(&ours);
                sleep_until(start + LOOK * second);
                quiet.push(before.quiet_since(&ours));
            }
            quiet
        }))
    }

    /// For each second, whether the machine was ours; a second after a disturbed one still suffers from it.
    pub fn quiet_seconds(self) -> Vec<bool> {
        let quiet = self.0.join().expect("looking does not panic");
        let before = std::iter::once(true).chain(quiet.iter().copied());
        before
            .zip(&quiet)
            .map(|(before, now)| before && *now)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_holds() {
        let process = |id, parent| Process {
            id,
            parent,
            ticks: 42.0,
        };
        let stat = |name| format!("7 ({name}) S 5 1 1 0 -1 0 0 0 0 0 30 5 4 3 20 0");
        assert_eq!(Process::read(&stat("clarion")), Some(process(7, 5)));
        assert_eq!(Process::read(&stat("a) (b")), Some(process(7, 5)));
        assert_eq!(Process::read("7 (cut off) S"), None);
    }
}
