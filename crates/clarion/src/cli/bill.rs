//! `clarion bill …`: days, files and records, for the operator.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{Subcommand, ValueEnum};
use jiff::civil::Date;
use serde_json::{Value, json};

use super::print;
use crate::billing::import::{ImportReport, MAX_BYTES};
use crate::billing::stream::{BillFormat, BillStream};
use crate::billing::verify::FileVerification;
use crate::domain::account::AppId;
use crate::domain::bill::BillFile;
use crate::domain::bill::keywords::Keywords;
use crate::management::{BilledDay, Management};

#[derive(Debug, Subcommand)]
pub enum BillCommand {
    /// Close the days that are due, as a running server does by itself
    Close {
        /// Close this day and those before it, without waiting for the grace time; the day must be over
        #[arg(long)]
        day: Option<Date>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List closed days
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the bill files of a day
    Show {
        /// The day, such as 2026-11-15
        day: Date,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the lines of an application of one day, which may still be open
    Export {
        /// The day, such as 2026-11-15
        day: Date,
        /// The application
        #[arg(long)]
        app: AppId,
        /// Only lines that all these terms match, as in a bill request
        #[arg(
            long,
            value_name = "TERMS",
            default_value = "",
            hide_default_value = true
        )]
        keywords: String,
        /// Format of the lines
        #[arg(long, value_enum, default_value_t = As::Csv)]
        format: As,
        /// File to write [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Recount a day from its lines, and compare it with its files and with the calls
    Verify {
        /// The day, such as 2026-11-15
        day: Date,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add records of other services, all of them or none; records that are there already stay as they are
    Import {
        /// CSV with a header, or one JSON object per line; - is standard input
        file: PathBuf,
        /// Put records of days that are closed into the first open day
        #[arg(long)]
        late: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum As {
    Csv,
    Jsonl,
}

pub async fn run(command: BillCommand, management: &Management) -> anyhow::Result<()> {
    match command {
        BillCommand::Close { day, json } => {
            let closed = management.close_days(day).await?;
            print(json, &json!({ "daysClosed": closed }));
        }
        BillCommand::List { json } => {
            let days = management.billed_days().await?;
            print(json, &days.iter().map(describe_day).collect());
        }
        BillCommand::Show { day, json } => {
            let files = management.bill_files(day).await?;
            print(json, &files.iter().map(describe).collect());
        }
        BillCommand::Export {
            day,
            app,
            keywords,
            format,
            out,
        } => {
            let format = match format {
                As::Csv => BillFormat::Csv,
                As::Jsonl => BillFormat::JsonLines,
            };
            let keywords =
                Keywords::parse(&keywords).map_err(|refusal| anyhow::anyhow!(refusal.message))?;
            let stream = management.export_bill(day, app, keywords, format).await?;
            export(stream, out.as_deref()).await?;
        }
        BillCommand::Verify { day, json } => {
            let verdict = management.verify_bill(day).await?;
            print(json, &told(&verdict));
            ensure!(verdict.is_good(), "the bill of {day} is not right");
        }
        BillCommand::Import { file, late, json } => {
            let (name, text) = (file.display().to_string(), read(&file)?);
            let report = management.import_bill_records(&name, &text, late).await?;
            tell(&report, json)?;
        }
    }
    Ok(())
}

fn describe_day(day: &BilledDay) -> Value {
    let closed = &day.closed;
    json!({
        "day": closed.day.to_string(),
        "lines": day.totals.lines,
        "fee": day.totals.fee.to_string(),
        "files": day.files,
        "closedAt": closed.closed_at.to_string(),
        "filedAt": closed.filed_at.map(|at| at.to_string()),
    })
}

async fn export(mut stream: BillStream, out: Option<&Path>) -> anyhow::Result<()> {
    let mut target: Box<dyn Write> = match out {
        None => Box::new(std::io::stdout().lock()),
        Some(path) => Box::new(
            std::fs::File::create(path)
                .with_context(|| format!("cannot write {}", path.display()))?,
        ),
    };
    while let Some(bytes) = stream.next().await? {
        target.write_all(&bytes)?;
    }
    Ok(target.flush()?)
}

/// Reads no more than an import accepts, because a mistyped name may be a disk image.
fn read(file: &Path) -> anyhow::Result<String> {
    let context = || format!("cannot read {}", file.display());
    let source: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(file).with_context(context)?)
    };
    let mut bytes = Vec::new();
    source
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(context)?;
    ensure!(
        bytes.len() as u64 <= MAX_BYTES,
        "{} is longer than {} MiB: split it",
        file.display(),
        MAX_BYTES >> 20
    );
    String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8", file.display()))
}

fn tell(report: &ImportReport, json: bool) -> anyhow::Result<()> {
    let refused: Vec<_> = report
        .refused
        .iter()
        .map(|refused| {
            json!({ "line": refused.line, "field": refused.fault.field, "rule": refused.fault.rule })
        })
        .collect();
    if json {
        let value = json!({ "added": report.added, "known": report.known, "refused": refused });
        print(true, &value);
    } else {
        for one in &report.refused {
            println!("line {}: {} {}", one.line, one.fault.field, one.fault.rule);
        }
        println!("{} added, {} there already", report.added, report.known);
    }
    match report.failure() {
        Some(failure) => bail!(failure),
        None => Ok(()),
    }
}

fn describe(file: &BillFile) -> Value {
    json!({
        "appId": file.of.app.as_str(),
        "lines": file.totals.lines,
        "fee": file.totals.fee.to_string(),
        "keywords": file.keywords,
        "bytes": file.bytes,
        "accountSid": file.of.account.as_str(),
        "object": file.object,
        "sha256": file.sha256,
        "madeAt": file.made_at.to_string(),
        "expiresAt": file.expires_at.map(|at| at.to_string()),
    })
}

fn told(verdict: &FileVerification) -> Value {
    let faults: Vec<_> = verdict
        .bills
        .iter()
        .flat_map(|bill| {
            let name = &bill.file.object;
            bill.faults
                .iter()
                .map(move |fault| format!("{name}: {fault}"))
        })
        .collect();
    let missing: Vec<_> = verdict
        .without_file
        .iter()
        .map(|of| of.app.to_string())
        .collect();
    json!({
        "good": verdict.is_good(),
        "files": verdict.bills.len(),
        "lines": verdict.totals.lines,
        "fee": verdict.totals.fee.to_string(),
        "faults": faults,
        "withoutFile": missing,
        "calls": verdict.calls.calls,
        "callsWithoutLine": verdict.calls.without_line,
        "callsDiffering": verdict.calls.differing,
    })
}
