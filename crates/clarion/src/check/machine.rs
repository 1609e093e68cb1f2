//! Checks the machine: how fast its disk syncs, how much space is left, how many files may be open, and whether its clock is right.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use super::finding::Finding;
use super::{OtherClock, privacy};
use crate::config::Config;
use crate::store::Database;

const SYNCS: usize = 40;
/// An accept waits for one sync. Clients notice a longer wait than this.
const SLOW: Duration = Duration::from_millis(20);
/// No disk that keeps data through a power cut answers faster.
const TOO_GOOD: Duration = Duration::from_micros(5);
const GIB: u64 = 1 << 30;
const LOW_SPACE: u64 = 5 * GIB;
const NO_SPACE: u64 = GIB / 4;
/// Open files beside connections and calls: database, logs, callbacks, speech programs.
const OTHER_FILES: u64 = 200;
/// A port for RTP and a port for RTCP.
const FILES_A_CALL: u64 = 2;
const UNNOTICED_SECONDS: f64 = 2.0;
const WRONG_SECONDS: f64 = 60.0;
/// Files that show that a program keeps the clock right.
const KEEPERS: &[&str] = &[
    "/run/systemd/timesync/synchronized",
    "/run/chrony/chronyd.pid",
    "/run/chronyd.pid",
    "/run/ntpd.pid",
    "/run/ntpsec/ntpd.pid",
    "/run/openntpd/ntpd.pid",
];

pub fn disk(config: &Config, database: &Database) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut folders = vec![("data_dir", config.data_dir.clone())];
    if let Some(folder) = database
        .folder()
        .filter(|folder| *folder != config.data_dir)
    {
        folders.push(("database", folder));
    }
    for (what, folder) in [
        ("audio_files.folder", config.audio_files.folder.clone()),
        ("bills.folder", config.bills.folder.clone()),
    ] {
        if !folder.starts_with(&config.data_dir) {
            folders.push((what, folder));
        }
    }
    for (what, folder) in folders {
        let there = nearest(&folder);
        if !folder.is_dir() {
            findings.push(Finding::ok(
                "disk",
                format!("{what} {} is made at the first start", folder.display()),
            ));
        }
        findings.push(sync_speed(what, &there));
        findings.push(space(what, &there));
        findings.extend(privacy::folder(what, &folder));
    }
    findings
}

/// Returns the folder itself, or the nearest folder above it that exists.
fn nearest(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let there = absolute.ancestors().find(|path| path.is_dir());
    there.unwrap_or(Path::new("/")).to_owned()
}

fn sync_speed(what: &str, folder: &Path) -> Finding {
    let place = folder.display();
    match time_syncs(folder) {
        Err(error) => Finding::problem(
            "disk",
            format!("{what}: {place} cannot be written: {error}"),
            "give the user that runs the server this folder (chown), or name another data_dir",
        ),
        Ok(_) if in_memory(folder) => Finding::problem(
            "disk",
            format!("{what}: {place} is in memory; a power cut loses accepted calls"),
            "name a data_dir on a disk",
        ),
        Ok((median, worst)) => {
            let found = format!(
                "{what}: {place} syncs 4 KiB in {:.2} ms (median of {SYNCS}; worst {:.1} ms)",
                median.as_secs_f64() * 1000.0,
                worst.as_secs_f64() * 1000.0
            );
            if median < TOO_GOOD {
                let remedy = "the disk, its driver or an overlay does not really sync, and a power cut may lose accepted calls: put data_dir on a disk that does";
                Finding::warning("disk", found, remedy)
            } else if median > SLOW {
                let remedy = "every accept waits for a sync: use a disk with a protected write cache, or PostgreSQL on one";
                Finding::warning("disk", found, remedy)
            } else {
                Finding::ok("disk", found)
            }
        }
    }
}

/// Returns the median and the worst time of a sync.
fn time_syncs(folder: &Path) -> std::io::Result<(Duration, Duration)> {
    let path = folder.join(format!(".clarion-check-{}", std::process::id()));
    let measure = || -> std::io::Result<Vec<Duration>> {
        let mut file = File::create_new(&path)?;
        let mut times = Vec::with_capacity(SYNCS);
        for _ in 0..SYNCS {
            let began = Instant::now();
            file.write_all(&[0x55; 4096])?;
            file.sync_data()?;
            times.push(began.elapsed());
        }
        Ok(times)
    };
    let times = measure();
    let _ = fs::remove_file(&path);
    let mut times = times?;
    times.sort_unstable();
    Ok((times[SYNCS / 2], times[SYNCS - 1]))
}

fn in_memory(folder: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    rustix::fs::statfs(folder).is_ok_and(|found| {
        let kind = u64::try_from(found.f_type).unwrap_or_default();
        [TMPFS, RAMFS].contains(&kind)
    })
}

fn space(what: &str, folder: &Path) -> Finding {
    let place = folder.display();
    let found = match rustix::fs::statvfs(folder) {
        Ok(found) => found,
        Err(error) => {
            let remedy = "see that the disk is mounted";
            return Finding::problem("disk", format!("{what}: {place}: {error}"), remedy);
        }
    };
    let free = found.f_bavail * found.f_frsize;
    let text = format!("{what}: {} GiB free at {place}", free / GIB);
    let remedy = "make room: audio files, bills and ended calls stay here; `prompts` in data_dir may be deleted at any time";
    match free {
        0..NO_SPACE => Finding::problem("disk", text, remedy),
        NO_SPACE..LOW_SPACE => Finding::warning("disk", text, remedy),
        _ => Finding::ok("disk", text),
    }
}

pub fn files(config: &Config, serving: Option<u32>) -> Finding {
    let own = getrlimit(Resource::Nofile).maximum;
    let (limit, whose) = match serving {
        Some(id) => (limit_of(id).or(own), "the running server's"),
        None => (own, "this shell's hard"),
    };
    let channels: u64 = config
        .trunks
        .iter()
        .map(|trunk| u64::from(trunk.channels))
        .sum();
    let calls = match config.dispatch.max_calls {
        None => channels,
        Some(limit) => channels.min(limit.into()),
    };
    let wanted = config.http.max_connections as u64
        + calls * FILES_A_CALL
        + u64::from(config.callbacks.concurrency)
        + OTHER_FILES;
    let sum = format!(
        "{wanted} are wanted ({} connections, {calls} calls, {} callbacks)",
        config.http.max_connections, config.callbacks.concurrency
    );
    match limit {
        Some(limit) if limit < wanted => Finding::warning(
            "open files",
            format!("{whose} limit is {limit}; {sum}"),
            "LimitNOFILE= in the unit file, --ulimit nofile= of a container, or lower http.max_connections",
        ),
        Some(limit) => Finding::ok("open files", format!("{whose} limit is {limit}; {sum}")),
        None => Finding::ok("open files", format!("not limited; {sum}")),
    }
}

/// Returns the hard limit of open files. The server raises its own limit up to it, so this one counts.
fn limit_of(process: u32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).ok()?;
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))?;
    line.split_whitespace().nth(4)?.parse().ok()
}

/// Compares the clock with the other clocks that were heard, and looks for a program that keeps it right.
pub fn clock(config: &Config, others: &[OtherClock]) -> Vec<Finding> {
    let mut findings = vec![time_zone(config)];
    for other in others {
        let by = other.ahead.abs();
        let way = if other.ahead < 0.0 {
            "behind"
        } else {
            "ahead of"
        };
        let found = format!("{by:.1} s {way} {}", other.name);
        let remedy =
            "keep the clock right (apt-get install chrony): signatures, bills and leases go by it";
        findings.push(if by >= WRONG_SECONDS {
            Finding::problem("clock", found, remedy)
        } else if by >= UNNOTICED_SECONDS {
            Finding::warning("clock", found, remedy)
        } else {
            Finding::ok("clock", format!("agrees with {}", other.name))
        });
    }
    let keeper = KEEPERS.iter().find(|path| Path::new(path).exists());
    if let Some(keeper) = keeper {
        findings.push(Finding::ok(
            "clock",
            format!("is kept right, by the sign of {keeper}"),
        ));
    } else if others.is_empty() {
        findings.push(Finding::warning(
            "clock",
            "nobody was there to compare it with, and nothing shows that it is kept right",
            "apt-get install chrony (in a container: on its host)",
        ));
    }
    findings
}

fn time_zone(config: &Config) -> Finding {
    let zone = config.time_zone();
    let name = zone.iana_name();
    if config.has_time_zone() {
        return Finding::ok("time zone", name.unwrap_or("as configured"));
    }
    Finding::warning(
        "time zone",
        format!(
            "the system's, {}; a bill's day follows it",
            name.unwrap_or("which has no name")
        ),
        "name it in `time_zone`, such as \"Asia/Shanghai\", before the first call is billed",
    )
}
