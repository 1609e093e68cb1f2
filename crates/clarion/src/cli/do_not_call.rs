//! `clarion do-not-call …`: numbers that an account must not call. What is imported and exported is one number a line.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write, stdin, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Subcommand;
use serde_json::{Value, json};

use super::print;
use crate::domain::account::AccountSid;
use crate::domain::do_not_call::DoNotCallEntry;
use crate::management::{DoNotCallChange, DoNotCallImport, Management};

/// Numbers that are read together.
const PAGE: u32 = 5_000;

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

pub async fn run(command: DoNotCallCommand, management: &Management) -> anyhow::Result<()> {
    match command {
        DoNotCallCommand::Add { account, numbers } => {
            for DoNotCallChange { digits, is_new } in
                management.add_do_not_call(&account, &numbers).await?
            {
                println!("+{digits} is not called{}", as_before(is_new));
            }
        }
        DoNotCallCommand::Remove { account, numbers } => {
            for DoNotCallChange { digits, is_new } in
                management.remove_do_not_call(&account, &numbers).await?
            {
                println!("+{digits} may be called{}", as_before(is_new));
            }
        }
        DoNotCallCommand::Show {
            account,
            number: Some(number),
            json,
            ..
        } => {
            let found = management.look_up_do_not_call(&account, &number).await?;
            let digits = &found.digits;
            let Some(entry) = &found.entry else {
                bail!("+{digits} is not on the do-not-call list of {account}");
            };
            print(json, &describe(entry));
        }
        DoNotCallCommand::Show {
            account,
            number: None,
            after,
            limit,
            json,
        } => {
            let page = management.do_not_call_page(&account, after.as_deref(), limit);
            print(json, &page.await?.iter().map(describe).collect());
        }
        DoNotCallCommand::Import {
            account,
            file,
            json,
        } => {
            let (name, lines) = (file.display().to_string(), open(&file)?);
            let report = management.import_do_not_call(&account, &name, lines);
            tell(&report.await?, json)?;
        }
        DoNotCallCommand::Export { account, out } => {
            export(management, &account, out.as_deref()).await?;
        }
    }
    Ok(())
}

fn as_before(is_new: bool) -> &'static str {
    if is_new { "" } else { ", as before" }
}

fn describe(entry: &DoNotCallEntry) -> Value {
    json!({
        "number": format!("+{}", entry.digits),
        "since": entry.added_at.to_string(),
        "by": entry.source.as_str(),
        "callSid": entry.source.call().map(ToString::to_string),
    })
}

fn open(file: &Path) -> anyhow::Result<Box<dyn BufRead + Send>> {
    if file == Path::new("-") {
        return Ok(Box::new(BufReader::new(stdin())));
    }
    let opened = File::open(file);
    let opened = opened.with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Box::new(BufReader::new(opened)))
}

fn tell(report: &DoNotCallImport, json: bool) -> anyhow::Result<()> {
    let wrong = report.wrong.iter();
    if json {
        let wrong: Vec<_> = wrong
            .map(|(line, rule)| json!({ "line": line, "rule": rule.to_string() }))
            .collect();
        let value = json!({ "added": report.added, "known": report.known, "wrong": wrong });
        print(true, &value);
    } else {
        for (line, rule) in wrong {
            println!("line {line}: {rule}");
        }
        let (added, known, wrong) = (report.added, report.known, report.wrong.len());
        println!("{added} added, {known} there already, {wrong} wrong");
    }
    match report.failure() {
        Some(failure) => bail!(failure),
        None => Ok(()),
    }
}

async fn export(
    management: &Management,
    account: &AccountSid,
    out: Option<&Path>,
) -> anyhow::Result<()> {
    let first = management.do_not_call_page(account, None, PAGE).await?;
    let mut out: Box<dyn Write> = match out {
        Some(path) => {
            let file = File::create(path);
            Box::new(BufWriter::new(
                file.with_context(|| format!("cannot write {}", path.display()))?,
            ))
        }
        None => Box::new(BufWriter::new(stdout())),
    };
    let mut page = first;
    while let Some(last) = page.last() {
        let after = format!("+{}", last.digits);
        for entry in &page {
            writeln!(out, "+{}", entry.digits)?;
        }
        let next = management.do_not_call_page(account, Some(&after), PAGE);
        page = next.await?;
    }
    out.flush().context("the list could not be written")
}
