//! Records of other services, judged together against what the bill holds already: all of them are taken, or none.

use std::collections::{HashMap, HashSet};

use jiff::civil::Date;

use super::BillLine;
use super::call_type::Fault;
use super::record::Record;
use crate::domain::account::{AccountSid, AppId};

/// A record with the day in which it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedRecord {
    pub record: Record,
    pub day: Date,
}

/// What became of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    pub added: usize,
    /// Records that were there, word for word.
    pub known: usize,
    /// Which records break which rule, counted from 0. If there is one, nothing was taken.
    pub refused: Vec<(usize, Fault)>,
}

/// What the database knows about the records that are imported.
#[derive(Debug, Default)]
pub struct Known {
    pub first_open: Date,
    pub owners: HashMap<AppId, AccountSid>,
    pub lines: HashMap<String, (AppId, BillLine)>,
    /// Ids that are calls of ours: their lines are written when they end, and by nobody else.
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

/// Sorts out what is new. The lines are to be added only if none was refused.
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
    if known.calls.contains(&line.order_id) {
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
