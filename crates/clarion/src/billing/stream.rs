//! A bill of any length as a stream of bytes: one page of lines is read while the page before is written out. It holds no snapshot of the
//! database, and at most two pages in memory.

use std::sync::Arc;

use anyhow::Context;
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};

use crate::domain::bill::cells::Cells;
use crate::domain::bill::keywords::Keywords;
use crate::domain::bill::{BillLine, BillOf, COLUMNS, Totals, csv};
use crate::store::Store;

/// Lines in a page. With the longest userData in every line, a page has eight megabytes.
const PAGE: u32 = 2000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BillFormat {
    Csv,
    /// As version 0.1 wrote it, for files of that time.
    FirstCsv,
    JsonLines,
}

#[derive(Debug)]
pub struct BillStream {
    store: Arc<dyn Store>,
    of: BillOf,
    state: State,
    writer: Option<Writer>,
}

#[derive(Debug)]
enum State {
    Begin,
    Page(Vec<BillLine>),
    End,
}

/// Size, totals and hash of a bill that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenBill {
    pub bytes: u64,
    pub totals: Totals,
    pub sha256: String,
}

#[derive(Debug)]
struct Writer {
    of: BillOf,
    format: BillFormat,
    keywords: Option<Keywords>,
    cells: Cells,
    totals: Totals,
    bytes: u64,
    sha256: Sha256,
}

impl BillStream {
    pub fn new(
        store: Arc<dyn Store>,
        of: BillOf,
        zone: TimeZone,
        format: BillFormat,
        keywords: Option<Keywords>,
    ) -> Self {
        let writer = Writer {
            of: of.clone(),
            format,
            keywords,
            cells: Cells::new(zone),
            totals: Totals::default(),
            bytes: 0,
            sha256: Sha256::new(),
        };
        Self {
            store,
            of,
            state: State::Begin,
            writer: Some(writer),
        }
    }

    /// Returns the next bytes, or `None` at the end.
    pub async fn next(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        match std::mem::replace(&mut self.state, State::End) {
            State::Begin => {
                let first = self.store.bill_lines(&self.of, None, PAGE).await?;
                self.state = State::Page(first);
                let writer = self.writer.as_mut().context("the writer is here")?;
                Ok(Some(writer.begin()))
            }
            State::Page(lines) if lines.is_empty() => Ok(None),
            State::Page(lines) => self.page(lines).await.map(Some),
            State::End => Ok(None),
        }
    }

    async fn page(&mut self, lines: Vec<BillLine>) -> anyhow::Result<Vec<u8>> {
        let full = lines.len() == PAGE as usize;
        let after = lines.last().map(BillLine::place).filter(|_| full);
        let mut writer = self.writer.take().context("the writer is here")?;
        // Writing keeps a processor busy, so it runs beside the reading from the database.
        let write = tokio::task::spawn_blocking(move || {
            let bytes = writer.page(&lines);
            (writer, bytes)
        });
        let read = async {
            match after {
                Some(after) => self.store.bill_lines(&self.of, Some(after), PAGE).await,
                None => Ok(Vec::new()),
            }
        };
        let (written, next) = tokio::join!(write, read);
        let (writer, bytes) = written?;
        self.writer = Some(writer);
        self.state = State::Page(next?);
        Ok(bytes)
    }

    pub fn finish(self) -> anyhow::Result<WrittenBill> {
        let writer = self.writer.context("the writer is here")?;
        Ok(WrittenBill {
            bytes: writer.bytes,
            totals: writer.totals,
            sha256: hex::encode(writer.sha256.finalize()),
        })
    }

    /// Reads to the end, and returns size, totals and hash.
    pub async fn recount(mut self) -> anyhow::Result<WrittenBill> {
        while self.next().await?.is_some() {}
        self.finish()
    }
}

impl Writer {
    fn begin(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.format != BillFormat::JsonLines {
            csv::header(&mut out);
        }
        self.record(&out);
        out
    }

    fn page(&mut self, lines: &[BillLine]) -> Vec<u8> {
        let mut out = Vec::with_capacity(lines.len() * 256);
        for line in lines {
            self.cells.fill(&self.of.app, line);
            let wanted = self.keywords.as_ref();
            if wanted.is_some_and(|keywords| !keywords.match_line(&self.cells)) {
                continue;
            }
            self.totals.add(line);
            match self.format {
                BillFormat::Csv => csv::row(&mut out, self.cells.iter()),
                BillFormat::FirstCsv => csv::first_row(&mut out, self.cells.iter()),
                BillFormat::JsonLines => json_line(&mut out, &self.cells),
            }
        }
        self.record(&out);
        out
    }

    fn record(&mut self, out: &[u8]) {
        self.bytes += out.len() as u64;
        self.sha256.update(out);
    }
}

fn json_line(out: &mut Vec<u8>, cells: &Cells) {
    let members: serde_json::Map<_, _> = COLUMNS
        .iter()
        .zip(cells.iter())
        .map(|(name, text)| ((*name).to_owned(), text.into()))
        .collect();
    out.extend_from_slice(serde_json::Value::Object(members).to_string().as_bytes());
    out.push(b'\n');
}
