//! A day with many lines in the bill of one application, and that day exported by the database's own program.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clarion::domain::bill::calendar;
use clarion::store::{Database, sqlite};
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::accepts::customer::BenchCustomer;
use crate::accepts::site::connect;

const COLUMNS: &str = "order_id, type, app_id, call_sid, caller, called, started_at, answered_at, ended_at, seconds, units, rate, fee, outcome, user_data";
const LOOK: Duration = Duration::from_millis(10);

/// A call every few milliseconds, from midnight to midnight.
pub async fn fill(
    database: &Database,
    customer: &BenchCustomer,
    day: Date,
    lines: u64,
) -> anyhow::Result<()> {
    let midnight = calendar::begins(day, &TimeZone::system()).as_millisecond();
    let (account, app) = (&customer.credentials.sid, &customer.app);
    let insert = |id: &str, data: &str, source: &str| {
        format!(
            "INSERT INTO bill_lines (account_sid, bill_day, {COLUMNS}) \
             SELECT '{account}', '{day}', id, 14, '{app}', id, '864001234567', '13800000000', ended_at - 21000, ended_at - 12000, \
               ended_at, 12, 1, 55000, 55000, 'talked', data \
             FROM (SELECT {id} AS id, {data} AS data, {midnight} + n * 86400000 / {lines} AS ended_at FROM {source}) AS line"
        )
    };
    match database {
        Database::Sqlite(path) => {
            let connection = sqlite::connect(path)?;
            let numbers = format!(
                "WITH RECURSIVE number (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n + 1 < {lines})"
            );
            let insert = insert(
                "printf('261114%026x', n)",
                "printf('order %012d', n)",
                "number",
            );
            connection.execute_batch(&format!("{numbers} {insert}"))?;
            connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
        }
        Database::Postgres(config) => {
            let client = connect(config.url()).await?;
            let insert = insert(
                "'261114' || lpad(to_hex(n), 26, '0')",
                "'order ' || lpad(n::text, 12, '0')",
                &format!("generate_series(0::bigint, {lines} - 1) AS number (n)"),
            );
            for statement in [&*insert, "VACUUM ANALYZE bill_lines", "CHECKPOINT"] {
                client.batch_execute(statement).await?;
            }
        }
    }
    Ok(())
}

/// The same rows in the same order as CSV, by `sqlite3` or by `COPY`: values as they are stored, nothing made readable.
pub fn export(
    database: &Database,
    customer: &BenchCustomer,
    day: Date,
    out: &Path,
) -> anyhow::Result<WatchedRun> {
    let select = format!(
        "SELECT {COLUMNS} FROM bill_lines WHERE bill_day = '{day}' AND app_id = '{}' ORDER BY ended_at, order_id",
        customer.app
    );
    let mut command = match database {
        Database::Sqlite(path) => {
            let mut command = Command::new("sqlite3");
            command.args(["-csv", "-header"]).arg(path).arg(select);
            command
        }
        Database::Postgres(config) => {
            let mut command = Command::new("psql");
            command.args([config.url(), "-q", "-c"]);
            command.arg(format!(
                "COPY ({select}) TO STDOUT WITH (FORMAT csv, HEADER)"
            ));
            command
        }
    };
    watch(command.stdout(File::create(out)?))
}

/// How long a program took, and the most memory that it held.
#[derive(Debug, Clone, Copy)]
pub struct WatchedRun {
    pub time: Duration,
    pub peak: u64,
}

pub fn watch(command: &mut Command) -> anyhow::Result<WatchedRun> {
    let began = Instant::now();
    let mut process = command
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let mut peak = 0;
    loop {
        peak = peak_memory(process.id()).unwrap_or(0).max(peak);
        if let Some(status) = process.try_wait()? {
            ensure!(
                status.success(),
                "{} failed",
                command.get_program().display()
            );
            return Ok(WatchedRun {
                time: began.elapsed(),
                peak,
            });
        }
        std::thread::sleep(LOOK);
    }
}

/// The most memory that a process has held so far, in bytes.
pub fn peak_memory(id: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes << 10)
}
