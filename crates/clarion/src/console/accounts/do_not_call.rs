//! *Do not call*: the numbers that an account must not call, page by page in their order.

use std::sync::Arc;

use askama::Template;
use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use url::form_urlencoded;

use super::{address_of, shown_name, sid_of};
use crate::console::Console;
use crate::console::page::{Frame, MenuPlace, html_with, led_to};
use crate::console::page_forms::{FieldMistake, FormError, FormField, PageForms};
use crate::console::refusal::Refused;
use crate::console::sentence::Sentence;
use crate::console::times::Moment;
use crate::console::visit::Visit;
use crate::console::words::{Words, fill};
use crate::domain::account::AccountSid;
use crate::domain::do_not_call::{DoNotCallEntry, DoNotCallSource};
use crate::fair_places::FairPlace;
use crate::management::{DoNotCallImport, ManagementError};

const ADD: &str = "add";
const IMPORT: &str = "import";
const LOOK_UP: &str = "look-up";
/// Numbers of a page, and of a part of the file.
const PAGE: u32 = 50;
const EXPORTED: u32 = 5_000;
/// Wrong lines that are named.
const NAMED: usize = 20;

#[derive(Template)]
#[template(path = "console/do_not_call.html")]
struct DoNotCallPage {
    frame: Frame,
    forms: PageForms,
    sid: String,
    account: String,
    look_up: FormField,
    /// What became of the number that was looked up.
    found: Option<String>,
    rows: Vec<DoNotCallRow>,
    is_first: bool,
    next: Option<String>,
    add: FormField,
    pasted: FormField,
}

struct DoNotCallRow {
    number: String,
    since: Moment,
    by: &'static str,
    /// The call in which its owner wished it.
    call: Option<String>,
}

impl DoNotCallRow {
    fn new(entry: &DoNotCallEntry, console: &Console, words: &Words) -> Self {
        Self {
            number: format!("+{}", entry.digits),
            since: Moment::new(entry.added_at, &console.clock, words),
            by: match entry.source {
                DoNotCallSource::Operator => words.unwanted_by_operator,
                DoNotCallSource::Import => words.unwanted_by_import,
                DoNotCallSource::Callee(_) => words.unwanted_by_callee,
            },
            call: entry.source.call().map(ToString::to_string),
        }
    }
}

fn address(sid: &AccountSid) -> String {
    format!("{}/do-not-call", address_of(sid))
}

pub async fn show(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    page(&console, &visit, PageForms::default()).await
}

async fn page(
    console: &Console,
    visit: &Arc<Visit>,
    forms: PageForms,
) -> Result<Response, Refused> {
    let (sid, words) = (sid_of(visit)?, visit.language.words());
    let account = console.management.account(&sid).await?;
    let wanted = visit.query("number");
    let (entries, found, forms) = if let Some(number) = &wanted {
        look_up(console, visit, &sid, number, forms).await?
    } else {
        let after = visit.query("after");
        let page = console
            .management
            .do_not_call_page(&sid, after.as_deref(), PAGE);
        (page.await?, None, forms)
    };
    let is_full = wanted.is_none() && entries.len() >= PAGE as usize;
    let last = entries.last().filter(|_| is_full);
    let frame = Frame::new(console, visit, MenuPlace::Accounts, words.unwanted_title);
    let line = |form, name, label, hint| forms.line(form, name, label, hint, "");
    let number = wanted.as_deref().unwrap_or_default();
    let look_up = forms.line(LOOK_UP, "number", words.unwanted_number, "", number);
    let page = DoNotCallPage {
        frame: frame.at(here(visit, &sid)),
        account: shown_name(&account.name, sid.as_str()),
        look_up,
        found,
        is_first: wanted.is_none() && visit.query("after").is_none(),
        next: last.map(|entry| with_query(&sid, "after", &format!("+{}", entry.digits))),
        rows: entries
            .iter()
            .map(|entry| DoNotCallRow::new(entry, console, words))
            .collect(),
        add: line(
            ADD,
            "number",
            words.unwanted_number,
            words.unwanted_number_hint,
        ),
        pasted: line(
            IMPORT,
            "numbers",
            words.unwanted_numbers,
            words.unwanted_import_hint,
        )
        .of_lines(8),
        sid: sid.to_string(),
        forms,
    };
    Ok(html_with(page.forms.status(), &page))
}

/// The address of this page, as one comes back to it.
fn here(visit: &Visit, sid: &AccountSid) -> String {
    let asked = ["number", "after"].into_iter();
    let mut asked = asked.filter_map(|name| Some((name, visit.query(name)?)));
    match asked.next() {
        Some((name, value)) => with_query(sid, name, &value),
        None => address(sid),
    }
}

fn with_query(sid: &AccountSid, name: &str, value: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let query = query.append_pair(name, value).finish();
    format!("{}?{query}", address(sid))
}

/// The entry of a number, what is said about it, and the form, which may be refused.
async fn look_up(
    console: &Console,
    visit: &Arc<Visit>,
    sid: &AccountSid,
    number: &str,
    forms: PageForms,
) -> Result<(Vec<DoNotCallEntry>, Option<String>, PageForms), Refused> {
    let words = visit.language.words();
    let found = console.management.look_up_do_not_call(sid, number).await;
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            let forms = PageForms::refused(visit, LOOK_UP, error.into())?;
            return Ok((Vec::new(), None, forms));
        }
    };
    let text = match found.entry {
        Some(_) => words.unwanted_found,
        None => words.unwanted_not_found,
    };
    let shown = format!("+{}", found.digits);
    let said = fill(text, &[("number", &shown)]);
    Ok((found.entry.into_iter().collect(), Some(said), forms))
}

async fn refused(
    console: &Console,
    visit: &Arc<Visit>,
    form: &str,
    error: FormError,
) -> Result<Response, Refused> {
    let forms = PageForms::refused(visit, form, error)?;
    page(console, visit, forms).await
}

pub async fn add(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let (sid, number) = (sid_of(&visit)?, visit.field("number").trim().to_owned());
    let added = console
        .acting(&visit)
        .add_do_not_call(&sid, &[number])
        .await;
    match added {
        Ok(changes) => {
            let is_new = changes.iter().any(|change| change.is_new);
            let done = if is_new { "number-added" } else { "unchanged" };
            Ok(led_to(&address(&sid), done))
        }
        Err(error) => refused(&console, &visit, ADD, error.into()).await,
    }
}

pub async fn remove(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let (sid, number) = (sid_of(&visit)?, visit.field("number").to_owned());
    let management = console.acting(&visit);
    management.remove_do_not_call(&sid, &[number]).await?;
    Ok(led_to(&address(&sid), "number-removed"))
}

/// Adds what was pasted. Lines without a number are named, and the others are on the list then.
pub async fn import(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let sid = sid_of(&visit)?;
    let import = async {
        let lines = visit.field("numbers").as_bytes();
        // As the command line calls what it is given without a file.
        let management = console.acting(&visit);
        let report = management.import_do_not_call(&sid, "-", lines).await?;
        match wrong_lines(&report, visit.language.words()) {
            mistakes if mistakes.is_empty() => Ok(()),
            mistakes => Err(FormError::Mistakes(mistakes)),
        }
    };
    match import.await {
        Ok(()) => Ok(led_to(&address(&sid), "imported")),
        Err(error) => refused(&console, &visit, IMPORT, error).await,
    }
}

fn wrong_lines(report: &DoNotCallImport, words: &Words) -> Vec<FieldMistake> {
    let mistake = |sentence: Sentence| FieldMistake {
        field: "numbers",
        sentence,
    };
    if report.wrong.is_empty() {
        return Vec::new();
    }
    let counts = [report.added, report.known, report.wrong.len() as u64];
    let [added, known, wrong] = counts.map(|count| count.to_string());
    let values = [("added", &*added), ("known", &known), ("wrong", &wrong)];
    let summary = mistake(fill(words.unwanted_import_wrong, &values).into());
    let lines = report.wrong.iter().take(NAMED).map(|(line, why)| {
        let line = line.to_string();
        let values = [("n", &*line)];
        mistake(Sentence::with_wording(
            words,
            words.unwanted_line,
            &values,
            why,
        ))
    });
    std::iter::once(summary).chain(lines).collect()
}

struct Export {
    console: Arc<Console>,
    sid: AccountSid,
    /// The number after which the next part begins.
    after: Option<String>,
    is_over: bool,
    _place: FairPlace,
}

/// The whole list, one number a line, as import reads it.
pub async fn download(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let sid = sid_of(&visit)?;
    console.management.account(&sid).await?;
    let place = console.export_place(&visit).await?;
    let name = format!("attachment; filename=\"do-not-call-{sid}.txt\"");
    let export = Export {
        console,
        sid,
        after: None,
        is_over: false,
        _place: place,
    };
    let parts = stream::unfold(export, |mut export| async move {
        let part = export.part().await?;
        Some((part, export))
    });
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    let name = HeaderValue::from_str(&name).map_err(|_| Refused::NotFound)?;
    let headers = [(CONTENT_TYPE, plain), (CONTENT_DISPOSITION, name)];
    Ok((headers, Body::from_stream(parts)).into_response())
}

impl Export {
    /// If the store fails, the download breaks off, so that nobody takes it for the whole.
    async fn part(&mut self) -> Option<Result<Bytes, std::io::Error>> {
        if self.is_over {
            return None;
        }
        let part = self.find().await;
        self.is_over |= part.is_err();
        Some(part.map_err(std::io::Error::other))
    }

    async fn find(&mut self) -> Result<Bytes, ManagementError> {
        let (management, after) = (&self.console.management, self.after.as_deref());
        let page = management.do_not_call_page(&self.sid, after, EXPORTED);
        let entries = page.await?;
        self.is_over = entries.len() < EXPORTED as usize;
        self.after = entries.last().map(|entry| format!("+{}", entry.digits));
        let lines = entries.iter().map(|entry| format!("+{}\n", entry.digits));
        Ok(lines.collect::<String>().into())
    }
}
