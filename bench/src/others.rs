//! How much of the machine others are using: a figure that was measured beside somebody's compiler, or while a hypervisor had taken the
//! cores away, says nothing about Clarion.

use std::ffi::OsStr;
use std::fs;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The programs that take part in a measurement.
const OURS: [&str; 3] = ["clarion", "clarion-bench", "postgres"];
/// Shares of all cores: above them a second counts as disturbed. Other programs slow a server down by their share, but a hypervisor
/// stops it altogether for a moment, so that little of it already shows in a p99.
const PROGRAMS: f64 = 0.1;
const HYPERVISOR: f64 = 0.01;
const LOOK: Duration = Duration::from_secs(1);

/// The machine's clock ticks since it was started.
#[derive(Debug, Clone, Copy)]
struct Ticks {
    passed: f64,
    worked: f64,
    ours: f64,
    stolen: f64,
}

impl Ticks {
    fn now() -> Self {
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
            ours: our_ticks(),
            stolen: sum(7, 8),
        }
    }

    /// Was the machine ours from then on?
    fn quiet_since(self) -> bool {
        let now = Self::now();
        let passed = (now.passed - self.passed).max(1.0);
        let others = (now.worked - self.worked) - (now.ours - self.ours);
        others / passed < PROGRAMS && (now.stolen - self.stolen) / passed < HYPERVISOR
    }
}

/// Waits until the machine is ours, for as long as the patience lasts.
pub async fn wait_until_quiet(patience: Duration) {
    let end = Instant::now() + patience;
    loop {
        let before = Ticks::now();
        tokio::time::sleep(LOOK).await;
        if before.quiet_since() || Instant::now() > end {
            return;
        }
    }
}

/// Looks once a second, beside a measurement.
#[derive(Debug)]
pub struct Watch(JoinHandle<Vec<bool>>);

impl Watch {
    pub fn over(start: Instant, seconds: u64) -> Self {
        Self(thread::spawn(move || {
            let sleep_until = |time: Instant| {
                thread::sleep(time.saturating_duration_since(Instant::now()));
            };
            sleep_until(start);
            let mut quiet = Vec::new();
            for second in 1..=u32::try_from(seconds).unwrap_or(u32::MAX) {
                let before = Ticks::now();
                sleep_until(start + LOOK * second);
                quiet.push(before.quiet_since());
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

fn our_ticks() -> f64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process = |name: &OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    entries
        .filter(|entry| is_process(&entry.file_name()))
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .filter_map(|stat| ticks_if_ours(&stat))
        .sum()
}

/// From a line such as `4711 (clarion) S 1 …`, where the 14th to 17th field are the ticks in the program and in the kernel, then the
/// same for children that have ended: a server that was stopped still counts.
fn ticks_if_ours(stat: &str) -> Option<f64> {
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let ticks = rest.split_ascii_whitespace().skip(11).take(4);
    OURS.contains(&name)
        .then(|| ticks.filter_map(|number| number.parse::<f64>().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ticks_of_our_programs_are_read_and_those_of_others_are_not() {
        let stat = |name| format!("7 ({name}) S 1 1 1 0 -1 0 0 0 0 0 30 5 4 3 20 0");
        assert_eq!(ticks_if_ours(&stat("clarion")), Some(42.0));
        assert_eq!(ticks_if_ours(&stat("rustc")), None);
        assert_eq!(ticks_if_ours(&stat("a) (b")), None);
    }
}
