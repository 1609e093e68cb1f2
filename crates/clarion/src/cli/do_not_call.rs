//! `clarion do-not-call …`: numbers that an account must not call. What is imported and exported is one number a line.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::Subcommand;
use serde_json::{Value, json};

use super::print;
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::account::AccountSid;
use crate::domain::do_not_call::{DoNotCallEntry, DoNotCallSource, parse_number};
use crate::store::{Store, StoreError};

/// Numbers that are added, or read, together.
const BATCH: usize = 5_000;
const PAGE: u32 = 5_000;
/// In bytes. A mistyped name may be a disk image.
const LONGEST_LINE: u64 = 1_000;

#[derive(Debug, Subcommand)]
pub enum DoNotCallCommand {
    /// Put numbers on the list of an account; they are not called from now on
    Add {
        /// The account
        #[arg(long)]
        account: AccountSid,
        /// Numbers, without extensions
        #[arg(required = true)]
        numbers: Vec<String>,
    },
    /// Take numbers off the list of an account
    Remove {
        /// The account
        #[arg(long)]
        account: AccountSid,
        /// Numbers, without extensions
        #[arg(required = true)]
        numbers: Vec<String>,
    },
    /// Show the list of an account in the order of the numbers, or whether a number is on it
    Show {
        /// The account
        #[arg(long)]
        account: AccountSid,
        /// Only this number
        number: Option<String>,
        /// Only numbers after this one, for the next page
        #[arg(long, value_name = "NUMBER", conflicts_with = "number")]
        after: Option<String>,
        /// Number of numbers at most
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Put the numbers of a file on the list of an account; wrong lines are named and left out
    Import {
        /// The account
        #[arg(long)]
        account: AccountSid,
        /// One number a line; - is standard input
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the list of an account, one number a line, as import reads it
    Export {
        /// The account
        #[arg(long)]
        account: AccountSid,
        /// File to write [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

pub async fn run(
    command: DoNotCallCommand,
    config: &Config,
    store: Arc<dyn Store>,
    clock: Clock,
) -> anyhow::Result<()> {
    let number = |text: &str| {
        parse_number(text, &config.numbers).map_err(|rule| anyhow::anyhow!("{text:?}: {rule}"))
    };
    let all = |texts: &[String]| {
        let numbers = texts.iter().map(|text| number(text));
        numbers.collect::<anyhow::Result<Vec<_>>>()
    };
    match command {
        DoNotCallCommand::Add { account, numbers } => {
            let numbers = all(&numbers)?;
            check_account(&*store, &account).await?;
            for digits in numbers {
                let source = DoNotCallSource::Operator;
                let added =
                    store.add_do_not_call(&account, vec![digits.clone()], source, clock.now());
                let before = if added.await? == 1 { "" } else { ", as before" };
                println!("+{digits} is not called{before}");
            }
        }
        DoNotCallCommand::Remove { account, numbers } => {
            let numbers = all(&numbers)?;
            check_account(&*store, &account).await?;
            for digits in numbers {
                let removed = store.remove_do_not_call(&account, &digits).await?;
                let before = if removed { "" } else { ", as before" };
                println!("+{digits} may be called{before}");
            }
        }
        DoNotCallCommand::Show {
            account,
            number: text,
            after,
            limit,
            json,
        } => {
            check_account(&*store, &account).await?;
            if let Some(text) = text {
                let digits = number(&text)?;
                let entry = store.do_not_call_entry(&account, &digits).await?;
                let missing = || format!("+{digits} is not on the do-not-call list of {account}");
                print(json, &describe(&entry.with_context(missing)?));
                return Ok(());
            }
            let after = after.map(|text| number(&text)).transpose()?;
            let after = after.unwrap_or_default();
            let page = store.do_not_call_page(&account, &after, limit).await?;
            print(json, &page.iter().map(describe).collect());
        }
        DoNotCallCommand::Import {
            account,
            file,
            json,
        } => {
            check_account(&*store, &account).await?;
            let report = import(&*store, &account, open(&file)?, config, &clock).await?;
            report.tell(json)?;
        }
        DoNotCallCommand::Export { account, out } => {
            check_account(&*store, &account).await?;
            export(&*store, &account, out.as_deref()).await?;
        }
    }
    Ok(())
}

async fn check_account(store: &dyn Store, sid: &AccountSid) -> Result<(), StoreError> {
    match store.account(sid).await? {
        Some(_) => Ok(()),
        None => Err(StoreError::Missing(format!("account {sid}"))),
    }
}

fn describe(entry: &DoNotCallEntry) -> Value {
    json!({
        "number": format!("+{}", entry.digits),
        "since": entry.added_at.to_string(),
        "by": entry.source.as_str(),
        "callSid": entry.source.call().map(ToString::to_string),
    })
}

fn open(file: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    if file == Path::new("-") {
        return Ok(Box::new(BufReader::new(stdin())));
    }
    let opened = File::open(file);
    let opened = opened.with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Box::new(BufReader::new(opened)))
}

/// What became of the lines of a file.
#[derive(Debug, Default)]
struct DoNotCallImport {
    added: u64,
    known: u64,
    /// Lines with no number that can be on the list, and why.
    wrong: Vec<(usize, String)>,
}

impl DoNotCallImport {
    async fn add(
        &mut self,
        store: &dyn Store,
        account: &AccountSid,
        numbers: Vec<String>,
        clock: &Clock,
    ) -> Result<(), StoreError> {
        let count = numbers.len() as u64;
        let source = DoNotCallSource::Import;
        let added = store.add_do_not_call(account, numbers, source, clock.now());
        let added = added.await?;
        self.added += added;
        self.known += count - added;
        Ok(())
    }

    fn tell(&self, json: bool) -> anyhow::Result<()> {
        let wrong = self.wrong.iter();
        if json {
            let wrong: Vec<_> = wrong
                .map(|(line, rule)| json!({ "line": line, "rule": rule }))
                .collect();
            let value = json!({ "added": self.added, "known": self.known, "wrong": wrong });
            print(true, &value);
        } else {
            for (line, rule) in wrong {
                println!("line {line}: {rule}");
            }
            let (added, known, wrong) = (self.added, self.known, self.wrong.len());
            println!("{added} added, {known} there already, {wrong} wrong");
        }
        ensure!(
            self.wrong.is_empty(),
            "{} of {} lines have no number for the list; the others are on it",
            self.wrong.len(),
            self.added + self.known + self.wrong.len() as u64
        );
        Ok(())
    }
}

/// Empty lines are skipped. What was added before the database or the file fails stays.
async fn import(
    store: &dyn Store,
    account: &AccountSid,
    mut lines: Box<dyn BufRead>,
    config: &Config,
    clock: &Clock,
) -> anyhow::Result<DoNotCallImport> {
    let mut report = DoNotCallImport::default();
    let mut numbers = Vec::with_capacity(BATCH);
    let mut line = Vec::new();
    for place in 1.. {
        line.clear();
        let read = (&mut lines).take(LONGEST_LINE).read_until(b'\n', &mut line);
        match read.with_context(|| format!("cannot read line {place}"))? as u64 {
            0 => break,
            LONGEST_LINE => bail!("line {place} is too long: this is no file of numbers"),
            _ => {}
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            continue;
        }
        match parse_number(text, &config.numbers) {
            Ok(digits) => numbers.push(digits),
            Err(rule) => report.wrong.push((place, rule)),
        }
        if numbers.len() == BATCH {
            let batch = std::mem::replace(&mut numbers, Vec::with_capacity(BATCH));
            report.add(store, account, batch, clock).await?;
        }
    }
    if !numbers.is_empty() {
        report.add(store, account, numbers, clock).await?;
    }
    Ok(report)
}

async fn export(store: &dyn Store, account: &AccountSid, out: Option<&Path>) -> anyhow::Result<()> {
    let mut out: Box<dyn Write> = match out {
        Some(path) => {
            let file = File::create(path);
            Box::new(BufWriter::new(
                file.with_context(|| format!("cannot write {}", path.display()))?,
            ))
        }
        None => Box::new(BufWriter::new(stdout())),
    };
    let mut after = String::new();
    loop {
        let page = store.do_not_call_page(account, &after, PAGE).await?;
        for entry in &page {
            writeln!(out, "+{}", entry.digits)?;
        }
        match page.last() {
            Some(last) => after.clone_from(&last.digits),
            None => break,
        }
    }
    out.flush().context("the list could not be written")
}
