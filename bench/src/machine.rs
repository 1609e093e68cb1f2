//! Facts about the machine without which no figure means anything.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::latency::{Latencies, Spread};

const SYNCS: usize = 500;

#[derive(Debug)]
pub struct Machine {
    cores: usize,
    processor: String,
    memory_gib: u64,
    kernel: String,
    sync: Spread,
}

impl Machine {
    /// Looks at the machine, and at the disk that holds `folder`.
    pub fn look(folder: &Path) -> anyhow::Result<Self> {
        let kilobytes: u64 = field("/proc/meminfo", "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse().ok())
            .unwrap_or_default();
        Ok(Self {
            cores: std::thread::available_parallelism()?.get(),
            processor: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            memory_gib: kilobytes >> 20,
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?
                .trim()
                .to_owned(),
            sync: sync_time(folder)?,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cores ({}), {} GiB of memory, Linux {}; the disk syncs 4 KiB in {:.2} ms (median; p99 {:.2} ms, worst {:.1} ms)",
            self.cores,
            self.processor,
            self.memory_gib,
            self.kernel,
            self.sync.p50.as_secs_f64() * 1e3,
            self.sync.p99.as_secs_f64() * 1e3,
            self.sync.max.as_secs_f64() * 1e3,
        )
    }
}

/// The first value of a field in one of the kernel's `name : value` files.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Appends small pieces and syncs each, as a write-ahead log does.
fn sync_time(folder: &Path) -> anyhow::Result<Spread> {
    let path = folder.join("sync-probe");
    let mut file = File::create(&path)?;
    let mut times = Latencies::default();
    for _ in 0..SYNCS {
        let began = Instant::now();
        file.write_all(&[0x5a; 4096])?;
        file.sync_data()?;
        times.add(began.elapsed());
    }
    fs::remove_file(path)?;
    Ok(times.spread())
}

/// Refuses early what would fail late.
pub fn check_space(folder: &Path, needed: u64) -> anyhow::Result<()> {
    let disk = rustix::fs::statvfs(folder)
        .with_context(|| format!("cannot see how much space {} has", folder.display()))?;
    let free = disk.f_bavail * disk.f_frsize;
    println!(
        "  the history needs about {:.1} GiB; {:.1} GiB are free",
        gib(needed),
        gib(free)
    );
    ensure!(
        free > needed,
        "not enough space in {}: choose another place with --dir, or fewer calls with --rows",
        folder.display()
    );
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "for reading")]
fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
