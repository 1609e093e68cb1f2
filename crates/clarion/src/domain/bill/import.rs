//! Judges records of other services together against the lines that a bill already has. All of them are imported, or none.

use std::collections::{HashMap, HashSet};

use jiff::civil::Date;

use super::BillLine;
use super::call_type::Fault;
use super::record::Record;
use crate::domain::account::{AccountSid, AppId};
use crate::domain::attempt::call_of_order;

/// A record with the day on which it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedRecord {
    pub record: Record,
    pub day: Date,
}

/// The result of importing a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    pub added: usize,
    /// Records that were already there, word for word.
    pub known: usize,
    /// Records that break a rule, counted from 0. If there is one, nothing was imported.
    pub refused: Vec<(usize, Fault)>,
}

/// The database's knowledge about the records to be imported.
#[derive(Debug, Default)]
pub struct Known {
    pub first_open: Date,
    pub owners: HashMap<AppId, AccountSid>,
    pub lines: HashMap<String, (AppId, BillLine)>,
    /// Our own calls. Only the end of an attempt writes its line.
    pub calls: HashSet<String>,
}

/// A line to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLine {
    pub account: AccountSid,
    pub app: AppId,
    pub day: Date,
    pub line: BillLine,
}

/// Selects the new records. Their lines must be added only if no record was refused.
pub fn judge(
    imported_record: &[ImportedRecord],
    mut known: Known,
    late: bool,
) -> (Imported, Vec<NewLine>) {
    let mut imported = Imported::default();
    let mut new = Vec::new();
    for (place, imported_record) in imported_record.iter().enumerate() {
        match judge_one(imported_record, &known, late) {
            Err(fault) => imported.refused.push((place, fault)),
            Ok(None) => imported.known += 1,
            Ok(Some(line)) => {
                let record = &imported_record.record;
                let there = (record.app.clone(), record.line.clone());
                known.lines.insert(record.line.order_id.clone(), there);
                new.push(line);
            }
        }
    }
    if imported.refused.is_empty() {
        imported.added = new.len();
    }
    (imported, new)
}

fn judge_one(
    imported_record: &ImportedRecord,
    known: &Known,
    late: bool,
) -> Result<Option<NewLine>, Fault> {
    let Record { app, line } = &imported_record.record;
    let account = known
        .owners
        .get(app)
        .ok_or_else(|| Fault::new("appId", "names no application"))?;
    if known.calls.contains(call_of_order(&line.order_id)) {
        return Err(Fault::new("orderid", "is that of a call made here"));
    }
    match known.lines.get(&line.order_id) {
        Some((owner, there)) if owner == app && there == line => return Ok(None),
        Some(_) => return Err(Fault::new("orderid", "is used by another record")),
        None => {}
    }
    if imported_record.day < known.first_open && !late {
        let rule = format!(
            "lies in {}, which is closed: with --late it goes into {}",
            imported_record.day, known.first_open
        );
        return Err(Fault::new("end", rule));
    }
    Ok(Some(NewLine {
        account: account.clone(),
        app: app.clone(),
        day: imported_record.day.max(known.first_open),
        line: line.clone(),
    }))
}
