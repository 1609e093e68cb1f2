//! The list of calls as a file for a spreadsheet, as long as it is: page by page, so that it takes no more memory than a page.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use super::Console;
use super::calls::WantedCalls;
use super::named::NamedCall;
use super::refusal::Refused;
use super::visit::Visit;
use super::{shown, times};
use crate::domain::bill::csv;
use crate::domain::call::CallSid;
use crate::domain::call_record::CallFilter;
use crate::domain::outcome::Outcome;
use crate::fair_places::FairPlace;
use crate::management::ManagementError;

/// Calls that are read at once.
const PAGE: u32 = 500;

/// The words of the API, whatever the language: programs read them.
const COLUMNS: [&str; 14] = [
    "callSid",
    "accepted",
    "account",
    "accountSid",
    "application",
    "appId",
    "to",
    "caller",
    "state",
    "outcome",
    "trunk",
    "dialled",
    "answered",
    "ended",
];

struct Export {
    console: Arc<Console>,
    /// The next page; `None` at the end.
    next: Option<CallFilter>,
    is_first: bool,
    _place: FairPlace,
}

pub async fn download(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let wanted = WantedCalls::of(&console, &visit);
    let filter = wanted.filter(PAGE).ok_or(Refused::BadForm)?;
    let place = console.export_place(&visit).await?;
    let export = Export {
        console,
        next: Some(filter),
        is_first: true,
        _place: place,
    };
    let pages = stream::unfold(export, |mut export| async move {
        let page = export.page().await?;
        Some((page, export))
    });
    let headers = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/csv; charset=utf-8"),
        ),
        (
            CONTENT_DISPOSITION,
            HeaderValue::from_static("attachment; filename=\"calls.csv\""),
        ),
    ];
    Ok((headers, Body::from_stream(pages)).into_response())
}

impl Export {
    /// The next part of the file. If the store fails, the download breaks off, so that nobody takes it for the whole.
    async fn page(&mut self) -> Option<Result<Bytes, std::io::Error>> {
        let filter = self.next.take()?;
        let (found, next) = match self.find(filter.clone()).await {
            Ok(found) => found,
            Err(error) => return Some(Err(std::io::Error::other(error))),
        };
        let mut out = Vec::new();
        if std::mem::take(&mut self.is_first) {
            // Spreadsheets take a file without it for one in the language of the machine.
            out.extend_from_slice("\u{feff}".as_bytes());
            csv::row(&mut out, COLUMNS.into_iter());
        }
        for call in &found {
            let cells = self.cells(call);
            csv::row(&mut out, cells.iter().map(String::as_str));
        }
        self.next = next.map(|before| CallFilter {
            before: Some(before),
            ..filter
        });
        Some(Ok(out.into()))
    }

    /// The calls of a page, and before which one the next page is.
    async fn find(
        &self,
        filter: CallFilter,
    ) -> Result<(Vec<NamedCall>, Option<CallSid>), ManagementError> {
        let Console {
            management, names, ..
        } = &*self.console;
        let page = management.calls(filter).await?;
        let next = page.next.or(page.searched_until);
        Ok((names.calls(management, page.calls).await?, next))
    }

    fn cells(&self, call: &NamedCall) -> [String; COLUMNS.len()] {
        let record = &call.record;
        let time = |time: Option<jiff::Timestamp>| {
            let time = time.map(|time| times::exact(time, &self.console.clock));
            time.unwrap_or_default()
        };
        let outcome = record.outcome.map(Outcome::as_str).unwrap_or_default();
        [
            record.sid.to_string(),
            time(Some(record.accepted_at)),
            call.account.clone(),
            record.account.to_string(),
            call.app.clone(),
            record.app.to_string(),
            shown::whole(&record.number),
            record.caller.clone().unwrap_or_default(),
            record.state.as_str().to_owned(),
            outcome.to_owned(),
            record.trunk.clone().unwrap_or_default(),
            time(record.dialled_at),
            time(record.answered_at),
            time(record.ended_at),
        ]
    }
}
