//! Checks the machine: how fast its disk syncs, how much space is left, how many files may be open, and whether its clock is right.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use super::finding::{CheckSubject, Finding};
use super::{OtherClock, privacy};
use crate::config::Config;
use crate::domain::wording::{Wording, wording};
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
            let place = folder.display();
            findings.push(Finding::ok(
                CheckSubject::Disk,
                wording!(
                    "{what} {place} is made at the first start",
                    "{what} {place} 在首次启动时创建"
                ),
            ));
        }
        findings.push(sync_speed(what, &there));
        findings.push(space(what, &there));
        findings.extend(privacy::folder(&Wording::named(what), &folder));
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
            CheckSubject::Disk,
            wording!(
                "{what}: {place} cannot be written",
                "{what}：{place} 无法写入"
            )
            .because(error),
            wording!(
                "give the user that runs the server this folder (chown), or name another data_dir",
                "把该目录的属主改为服务运行用户（chown），或更换 data_dir"
            ),
        ),
        Ok(_) if in_memory(folder) => Finding::problem(
            CheckSubject::Disk,
            wording!(
                "{what}: {place} is in memory; a power cut loses accepted calls",
                "{what}：{place} 位于内存文件系统，断电会丢失已受理的呼叫"
            ),
            wording!("name a data_dir on a disk", "data_dir 应放在磁盘上"),
        ),
        Ok((median, worst)) => {
            let [usual, most] = [median, worst].map(|time| time.as_secs_f64() * 1000.0);
            let found = wording!(
                "{what}: {place} syncs 4 KiB in {usual:.2} ms (median of {SYNCS}; worst {most:.1} ms)",
                "{what}：{place} 同步写入 4 KiB 用时 {usual:.2} 毫秒（{SYNCS} 次的中位数，最长 {most:.1} 毫秒）"
            );
            if median < TOO_GOOD {
                let remedy = wording!(
                    "the disk, its driver or an overlay does not really sync, and a power cut may lose accepted calls: put data_dir on a disk that does",
                    "磁盘、驱动或 overlay 没有真正落盘，断电可能丢失已受理的呼叫：请把 data_dir 放到能落盘的磁盘上"
                );
                Finding::warning(CheckSubject::Disk, found, remedy)
            } else if median > SLOW {
                let remedy = wording!(
                    "every accept waits for a sync: use a disk with a protected write cache, or PostgreSQL on one",
                    "每次受理都要等一次落盘：请换用写缓存带掉电保护的磁盘，或使用这种磁盘上的 PostgreSQL"
                );
                Finding::warning(CheckSubject::Disk, found, remedy)
            } else {
                Finding::ok(CheckSubject::Disk, found)
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
            let found = wording!(
                "{what}: {place} cannot be looked at",
                "{what}：无法读取 {place} 的剩余空间"
            );
            let remedy = wording!("see that the disk is mounted", "检查磁盘是否已挂载");
            return Finding::problem(CheckSubject::Disk, found.because(error), remedy);
        }
    };
    let free = found.f_bavail * found.f_frsize;
    let size = free / GIB;
    let found = wording!(
        "{what}: {size} GiB free at {place}",
        "{what}：{place} 剩余 {size} GiB"
    );
    let remedy = wording!(
        "make room: audio files, bills and ended calls stay here; `prompts` in data_dir may be deleted at any time",
        "请腾出空间：语音文件、话单和已结束的呼叫都保存在这里；data_dir 中的 `prompts` 可随时删除"
    );
    match free {
        0..NO_SPACE => Finding::problem(CheckSubject::Disk, found, remedy),
        NO_SPACE..LOW_SPACE => Finding::warning(CheckSubject::Disk, found, remedy),
        _ => Finding::ok(CheckSubject::Disk, found),
    }
}

pub fn files(config: &Config, serving: Option<u32>) -> Finding {
    let own = getrlimit(Resource::Nofile).maximum;
    let (limit, whose) = match serving {
        Some(id) => (
            limit_of(id).or(own),
            wording!("the running server's", "运行中服务的"),
        ),
        None => (own, wording!("this shell's hard", "当前会话的硬")),
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
    let (connections, callbacks) = (config.http.max_connections, config.callbacks.concurrency);
    let sum = wording!(
        "{wanted} are wanted ({connections} connections, {calls} calls, {callbacks} callbacks)",
        "需要 {wanted} 个（{connections} 个连接，{calls} 路呼叫，{callbacks} 个回调）"
    );
    let Some(limit) = limit else {
        let found = wording!("not limited; {sum}", "没有上限；{sum}"; sum);
        return Finding::ok(CheckSubject::OpenFiles, found);
    };
    let found =
        wording!("{whose} limit is {limit}; {sum}", "{whose}上限为 {limit}；{sum}"; whose, sum);
    if limit >= wanted {
        return Finding::ok(CheckSubject::OpenFiles, found);
    }
    Finding::warning(
        CheckSubject::OpenFiles,
        found,
        wording!(
            "LimitNOFILE= in the unit file, --ulimit nofile= of a container, or lower http.max_connections",
            "在 unit 文件中设置 LimitNOFILE=，容器用 --ulimit nofile=，或调低 http.max_connections"
        ),
    )
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
        let (by, name) = (other.ahead.abs(), &other.name);
        let found = if other.ahead < 0.0 {
            wording!("{by:.1} s behind {name}", "比对{name}：慢 {by:.1} 秒"; name)
        } else {
            wording!("{by:.1} s ahead of {name}", "比对{name}：快 {by:.1} 秒"; name)
        };
        let remedy = wording!(
            "keep the clock right (apt-get install chrony): signatures, bills and leases go by it",
            "请校准系统时间（apt-get install chrony）：签名、话单和租约都以它为准"
        );
        findings.push(if by >= WRONG_SECONDS {
            Finding::problem(CheckSubject::Clock, found, remedy)
        } else if by >= UNNOTICED_SECONDS {
            Finding::warning(CheckSubject::Clock, found, remedy)
        } else {
            let found = wording!("agrees with {name}", "比对{name}：一致"; name);
            Finding::ok(CheckSubject::Clock, found)
        });
    }
    let keeper = KEEPERS.iter().find(|path| Path::new(path).exists());
    if let Some(keeper) = keeper {
        findings.push(Finding::ok(
            CheckSubject::Clock,
            wording!(
                "is kept right, by the sign of {keeper}",
                "已启用时间同步（依据 {keeper}）"
            ),
        ));
    } else if others.is_empty() {
        findings.push(Finding::warning(
            CheckSubject::Clock,
            wording!(
                "nobody was there to compare it with, and nothing shows that it is kept right",
                "没有可比对的时间源，也未发现时间同步程序"
            ),
            wording!(
                "apt-get install chrony (in a container: on its host)",
                "执行 apt-get install chrony（容器请在宿主机上执行）"
            ),
        ));
    }
    findings
}

fn time_zone(config: &Config) -> Finding {
    let zone = config.time_zone();
    let name = zone.iana_name();
    if config.has_time_zone() {
        let found = if let Some(name) = name {
            wording!("{name}", "已设为 {name}")
        } else {
            wording!("as configured", "以配置为准")
        };
        return Finding::ok(CheckSubject::TimeZone, found);
    }
    let found = if let Some(name) = name {
        wording!(
            "the system's, {name}; a bill's day follows it",
            "使用系统时区 {name}，话单日期以它为准"
        )
    } else {
        wording!(
            "the system's, which has no name; a bill's day follows it",
            "使用系统时区（没有名称），话单日期以它为准"
        )
    };
    Finding::warning(
        CheckSubject::TimeZone,
        found,
        wording!(
            "name it in `time_zone`, such as \"Asia/Shanghai\", before the first call is billed",
            "在产生话单之前用 `time_zone` 指定，例如 \"Asia/Shanghai\""
        ),
    )
}
