//! Imports files of records from other services: CSV with a header, or one JSON object per line. Every refused record is reported with its
//! line, its field and the rule. If any record is refused, none is imported.

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use crate::clock::Clock;
use crate::domain::bill::call_type::Fault;
use crate::domain::bill::import::ImportedRecord;
use crate::domain::bill::record::{self, Record};
use crate::domain::bill::{COLUMNS, calendar, csv};
use crate::store::{Store, StoreError};

/// A larger file must be split: a file is read into memory, and is imported in one commit that all others wait for.
pub const MAX_BYTES: u64 = 64 << 20;
pub const MAX_RECORDS: usize = 100_000;

/// A refused record: its line in the file, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    pub line: usize,
    pub fault: Fault,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    pub added: usize,
    pub known: usize,
    pub refused: Vec<ImportError>,
}

impl ImportReport {
    /// Why nothing was done.
    pub fn failure(&self) -> Option<String> {
        let refused = self.refused.len();
        (refused > 0).then(|| format!("nothing was added: {refused} of the records were refused"))
    }
}

/// A record from further in the future is a typing error, and would wait that long for its bill.
const AHEAD: SignedDuration = SignedDuration::from_hours(24 * 366);

/// Imports all records of a file, or none.
pub async fn import(
    store: &dyn Store,
    text: &str,
    clock: &Clock,
    late: bool,
) -> Result<ImportReport, StoreError> {
    let zone = clock.zone();
    let latest = clock.now() + AHEAD;
    let read = read(text, zone);
    let mut report = ImportReport::default();
    let (mut lines, mut imported_record) = (Vec::new(), Vec::new());
    for (line, record) in read {
        match record {
            Ok(record) if record.line.ended_at > latest => {
                report
                    .refused
                    .push(refused(line, "end", "lies more than a year ahead"));
            }
            Ok(record) => {
                lines.push(line);
                let day = calendar::day_of(record.line.ended_at, zone);
                imported_record.push(ImportedRecord { record, day });
            }
            Err(fault) => report.refused.push(ImportError { line, fault }),
        }
    }
    if imported_record.len() > MAX_RECORDS {
        let rule = format!("a file may have {MAX_RECORDS} records: split it");
        report
            .refused
            .push(refused(lines[MAX_RECORDS], "file", rule));
    }
    if !report.refused.is_empty() {
        return Ok(report);
    }
    let imported = store.import_records(imported_record, late).await?;
    report.added = imported.added;
    report.known = imported.known;
    report.refused = imported
        .refused
        .into_iter()
        .map(|(place, fault)| ImportError {
            line: lines[place],
            fault,
        })
        .collect();
    Ok(report)
}

fn refused(line: usize, field: &'static str, rule: impl Into<String>) -> ImportError {
    ImportError {
        line,
        fault: Fault::new(field, rule),
    }
}

type Read = (usize, Result<Record, Fault>);

/// The records of a file, each with its line.
pub fn read(text: &str, zone: &TimeZone) -> Vec<Read> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{') {
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        return lines
            .map(|(place, line)| (place + 1, json_record(line, zone)))
            .collect();
    }
    if text.trim_start().starts_with('[') {
        let rule = "is a JSON array: write one object a line, without brackets around them";
        return vec![(1, Err(Fault::new("file", rule)))];
    }
    csv_records(text, zone)
}

fn csv_records(text: &str, zone: &TimeZone) -> Vec<Read> {
    let mut rows = match csv::read(text) {
        Ok(rows) => rows.into_iter(),
        Err((line, rule)) => return vec![(line, Err(Fault::new("file", rule)))],
    };
    let Some((line, header)) = rows.next() else {
        return Vec::new();
    };
    if let Some(unknown) = header.iter().find(|name| !COLUMNS.contains(&name.as_str())) {
        let rule = format!("`{unknown}` is not a column of a bill");
        return vec![(line, Err(Fault::new("header", rule)))];
    }
    let twice = |name: &&String| header.iter().filter(|other| other == name).count() > 1;
    if let Some(twice) = header.iter().find(twice) {
        let rule = format!("`{twice}` is there twice");
        return vec![(line, Err(Fault::new("header", rule)))];
    }
    let record = |cells: &[String]| {
        if cells.len() != header.len() {
            let rule = format!("has {} cells, the header has {}", cells.len(), header.len());
            return Err(Fault::new("row", rule));
        }
        let cells: Vec<_> = cells.iter().map(|cell| csv::unguarded(cell)).collect();
        record::read(zone, |name| {
            let place = header.iter().position(|column| column == name);
            place.map_or("", |place| cells[place].as_str())
        })
    };
    rows.map(|(line, cells)| (line, record(&cells))).collect()
}

fn json_record(line: &str, zone: &TimeZone) -> Result<Record, Fault> {
    let object: Map<String, Value> = serde_json::from_str(line)
        .map_err(|error| Fault::new("line", format!("is not a JSON object: {error}")))?;
    let mut texts = Vec::new();
    for (name, value) in &object {
        let column = COLUMNS.iter().find(|column| *column == name);
        let column = column
            .ok_or_else(|| Fault::new("line", format!("`{name}` is not a column of a bill")))?;
        let text = match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Number(number) if number.is_u64() => number.to_string(),
            _ => {
                return Err(Fault::new(
                    column,
                    "must be a text; amounts too, to stay exact",
                ));
            }
        };
        texts.push((*column, text));
    }
    record::read(zone, |name| {
        let found = texts.iter().find(|(column, _)| *column == name);
        found.map_or("", |(_, text)| text)
    })
}
