//! *Bills*: closed days with their totals, by account and by application; files to download, and their verification.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use jiff::civil::Date;
use url::form_urlencoded;

use super::Console;
use super::page::{Frame, MenuPlace, html};
use super::refusal::Refused;
use super::sentence::Sentence;
use super::times;
use super::visit::Visit;
use super::words::{Words, fill};
use crate::billing::stream::BillFormat;
use crate::billing::verify::FileVerification;
use crate::domain::account::AppId;
use crate::domain::bill::BillFile;
use crate::domain::bill::keywords::Keywords;
use crate::management::BilledDay;
use crate::store::BilledAccount;

/// The part of an address with the keywords of a file.
const KEYWORDS: &str = "keywords";

#[derive(Template)]
#[template(path = "console/bills.html")]
struct BillsPage {
    frame: Frame,
    days: Vec<DayRow>,
}

struct DayRow {
    day: Date,
    closed: String,
    files: u64,
    lines: u64,
    fee: String,
}

#[derive(Template)]
#[template(path = "console/bill_day.html")]
struct BillDayPage {
    frame: Frame,
    day: Date,
    accounts: Vec<AccountTotal>,
    files: Vec<FileRow>,
    verified: Option<VerifiedDay>,
}

struct AccountTotal {
    name: String,
    sid: String,
    files: u64,
    lines: u64,
    fee: String,
}

impl AccountTotal {
    fn new(billed: BilledAccount) -> Self {
        let sid = billed.account.to_string();
        Self {
            name: billed.name.unwrap_or_else(|| sid.clone()),
            sid,
            files: billed.files,
            lines: billed.totals.lines,
            fee: billed.totals.fee.to_string(),
        }
    }
}

struct FileRow {
    account: String,
    app: String,
    keywords: String,
    /// What chooses it among those of its application, behind the address.
    query: String,
    bytes: u64,
    lines: u64,
    fee: String,
    sha256: String,
    made: String,
}

/// What a recount has found, in sentences; none where everything is right.
struct VerifiedDay {
    faults: Vec<Sentence>,
    told: String,
}

pub async fn list(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let words = visit.language.words();
    let mut days = console.management.billed_days().await?;
    days.sort_by_key(|day| std::cmp::Reverse(day.closed.day));
    let row = |day: &BilledDay| DayRow {
        day: day.closed.day,
        closed: times::exact(day.closed.closed_at, &console.clock),
        files: day.files,
        lines: day.totals.lines,
        fee: day.totals.fee.to_string(),
    };
    Ok(html(&BillsPage {
        frame: Frame::new(&console, &visit, MenuPlace::Bills, words.bills_title),
        days: days.iter().map(row).collect(),
    }))
}

pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    day_page(&console, &visit, None).await
}

/// Recounts the day from its lines. It changes nothing, so whoever may look may ask for it.
pub async fn verify(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let words = visit.language.words();
    let Ok(_place) = console.recounting.try_acquire() else {
        return Err(Refused::Busy);
    };
    let verification = console.management.verify_bill(day_of(&visit)?).await?;
    day_page(&console, &visit, Some(verified(&verification, words))).await
}

fn verified(verification: &FileVerification, words: &Words) -> VerifiedDay {
    let of_files = verification.bills.iter().flat_map(|bill| {
        let app = bill.file.of.app.to_string();
        bill.faults
            .iter()
            .map(move |fault| Sentence::english(&format!("{app}: {fault}")))
    });
    let mut faults: Vec<_> = of_files.collect();
    let missing = verification.without_file.iter();
    faults.extend(missing.map(|of| {
        let app = of.app.to_string();
        Sentence::from(fill(words.bills_without_file, &[("app", &app)]))
    }));
    let calls = &verification.calls;
    if calls.without_line + calls.differing > 0 {
        let (without, differing) = (calls.without_line.to_string(), calls.differing.to_string());
        let values = [("without", without.as_str()), ("differing", &differing)];
        faults.push(fill(words.bills_calls_differ, &values).into());
    }
    let lines = verification.totals.lines.to_string();
    let fee = verification.totals.fee.to_string();
    VerifiedDay {
        faults,
        told: fill(words.bills_verified, &[("lines", &lines), ("fee", &fee)]),
    }
}

async fn day_page(
    console: &Console,
    visit: &Visit,
    verified: Option<VerifiedDay>,
) -> Result<Response, Refused> {
    let (words, day) = (visit.language.words(), day_of(visit)?);
    let management = &console.management;
    let files = management.bill_files(day).await?;
    let accounts = management.billed_accounts(day, day).await?;
    let accounts: Vec<_> = accounts.into_iter().map(AccountTotal::new).collect();
    let names: HashMap<_, _> = accounts.iter().map(|one| (&*one.sid, &*one.name)).collect();
    let rows = files.iter().map(|file| {
        let sid = file.of.account.as_str();
        // Who has files of keywords alone is not among those who were billed.
        let account = names.get(sid).copied().unwrap_or(sid);
        file_row(console, file, account.to_owned())
    });
    let files = rows.collect();
    let title = fill(words.bills_day_title, &[("day", &day.to_string())]);
    Ok(html(&BillDayPage {
        frame: Frame::new(console, visit, MenuPlace::Bills, title).at(format!("/bills/{day}")),
        day,
        accounts,
        files,
        verified,
    }))
}

fn file_row(console: &Console, file: &BillFile, account: String) -> FileRow {
    FileRow {
        account,
        app: file.of.app.to_string(),
        query: query(&file.keywords),
        keywords: file.keywords.clone(),
        bytes: file.bytes,
        lines: file.totals.lines,
        fee: file.totals.fee.to_string(),
        sha256: file.sha256.clone(),
        made: times::exact(file.made_at, &console.clock),
    }
}

fn query(keywords: &str) -> String {
    if keywords.is_empty() {
        return String::new();
    }
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    format!("?{}", pairs.append_pair(KEYWORDS, keywords).finish())
}

fn day_of(visit: &Visit) -> Result<Date, Refused> {
    let day = visit.path_value("day").parse();
    day.map_err(|_| Refused::NotFound)
}

/// The lines of an application of that day, as its file has them, or its file of these keywords.
pub async fn download(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let day = day_of(&visit)?;
    let app: AppId = visit
        .path_value("app")
        .parse()
        .map_err(|_| Refused::NotFound)?;
    let keywords = visit.query(KEYWORDS).unwrap_or_default();
    let keywords = Keywords::parse(&keywords).map_err(|_| Refused::NotFound)?;
    let part = if keywords.is_some() { "-part" } else { "" };
    let name = format!("attachment; filename=\"{app}-{day}{part}.csv\"");
    let place = console.export_place(&visit).await?;
    let stream = console
        .management
        .export_bill(day, app, keywords, BillFormat::Csv);
    let begun = Some((stream.await?, place));
    let lines = stream::unfold(begun, async |bill| {
        let (mut bill, place) = bill?;
        match bill.next().await {
            Ok(Some(part)) => Some((Ok(part), Some((bill, place)))),
            Ok(None) => None,
            // The download breaks off, so that nobody takes it for the whole.
            Err(error) => Some((Err(std::io::Error::other(error)), None)),
        }
    });
    let disposition = HeaderValue::from_str(&name).map_err(|_| Refused::NotFound)?;
    let headers = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/csv; charset=utf-8"),
        ),
        (CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, Body::from_stream(lines)).into_response())
}
