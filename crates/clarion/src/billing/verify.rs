//! Recounts a closed day from its bill lines, and compares it with the files, their hashes and the calls, as far as these are kept.

use std::sync::Arc;

use futures_util::TryStreamExt;
use jiff::civil::Date;
use jiff::{Span, Timestamp};
use sha2::{Digest, Sha256};

use super::Billing;
use super::stream::{BillFormat, BillStream, WrittenBill};
use crate::domain::bill::keywords::Keywords;
use crate::domain::bill::{BillFile, BillOf, Totals, calendar};
use crate::store::bills::{CallComparison, CallSpan};

/// A bill file and its differences from the bill lines.
#[derive(Debug)]
pub struct Checked {
    pub file: BillFile,
    /// Empty if the file is right.
    pub faults: Vec<String>,
}

#[derive(Debug)]
pub struct FileVerification {
    pub bills: Vec<Checked>,
    /// Bills that have lines but no file.
    pub without_file: Vec<BillOf>,
    pub totals: Totals,
    pub calls: CallComparison,
}

impl FileVerification {
    pub fn is_good(&self) -> bool {
        self.without_file.is_empty()
            && self.bills.iter().all(|bill| bill.faults.is_empty())
            && self.calls.without_line + self.calls.differing == 0
    }
}

impl Billing {
    pub async fn verify(&self, day: Date) -> anyhow::Result<FileVerification> {
        let files = self.store.bill_files(day).await?;
        let mut without_file = self.store.bills_of_day(day).await?;
        without_file.retain(|of| {
            !files
                .iter()
                .any(|file| file.of == *of && file.keywords.is_empty())
        });
        let mut bills = Vec::new();
        let mut totals = Totals::default();
        for file in files {
            if file.keywords.is_empty() {
                totals.lines += file.totals.lines;
                totals.fee = totals.fee.plus(file.totals.fee);
            }
            let faults = self.faults(&file).await?;
            bills.push(Checked { file, faults });
        }
        let calls = self.store.compare_with_calls(self.span(day)).await?;
        Ok(FileVerification {
            bills,
            without_file,
            totals,
            calls,
        })
    }

    async fn faults(&self, file: &BillFile) -> anyhow::Result<Vec<String>> {
        let recorded = WrittenBill {
            bytes: file.bytes,
            totals: file.totals,
            sha256: file.sha256.clone(),
        };
        let (counted, _) = self.recounted(file).await?;
        let mut faults = Vec::new();
        if counted != recorded {
            faults.push(format!(
                "the lines say {} lines, {} in all, SHA-256 {}; recorded are {} lines, {}, {}",
                counted.totals.lines,
                counted.totals.fee,
                counted.sha256,
                recorded.totals.lines,
                recorded.totals.fee,
                recorded.sha256
            ));
        }
        match self.hash_of_file(file).await {
            Err(error) => faults.push(format!("the file cannot be read: {error}")),
            Ok(hash) if hash != file.sha256 => {
                faults.push(format!(
                    "the file has SHA-256 {hash}; recorded is {}",
                    file.sha256
                ));
            }
            Ok(_) => {}
        }
        Ok(faults)
    }

    /// What the lines of a file come to, in the format that makes the recorded bytes. If none does, in today's.
    pub(super) async fn recounted(
        &self,
        file: &BillFile,
    ) -> anyhow::Result<(WrittenBill, BillFormat)> {
        let counted = self.recount(file, BillFormat::Csv).await?;
        if counted.sha256 != file.sha256 {
            let first = self.recount(file, BillFormat::FirstCsv).await?;
            if first.sha256 == file.sha256 {
                return Ok((first, BillFormat::FirstCsv));
            }
        }
        Ok((counted, BillFormat::Csv))
    }

    async fn recount(&self, file: &BillFile, format: BillFormat) -> anyhow::Result<WrittenBill> {
        let keywords =
            Keywords::parse(&file.keywords).map_err(|refusal| anyhow::anyhow!(refusal.message))?;
        let zone = self.clock.zone().clone();
        let store = Arc::clone(&self.store);
        let stream = BillStream::new(store, file.of.clone(), zone, format, keywords);
        stream.recount().await
    }

    pub(super) async fn hash_of_file(&self, file: &BillFile) -> anyhow::Result<String> {
        let mut bytes = self.open_file(file, 0..u64::MAX).await?;
        let mut hash = Sha256::new();
        while let Some(chunk) = bytes.try_next().await? {
            hash.update(&chunk);
        }
        Ok(hex::encode(hash.finalize()))
    }

    /// Returns the span of the calls that ended on the day. A callSid begins with the time of acceptance, and no call waits and talks for
    /// longer than a week.
    fn span(&self, day: Date) -> CallSpan {
        let zone = self.clock.zone();
        let next = day.tomorrow().unwrap_or(day);
        let sid = |moment: Timestamp| {
            let wall = moment.to_zoned(zone.clone());
            wall.strftime("%y%m%d%H%M%S").to_string()
        };
        let begins = calendar::begins(day, zone);
        let ends = calendar::begins(next, zone);
        let week = day.saturating_sub(Span::new().days(7));
        CallSpan {
            begins,
            ends,
            first_sid: sid(calendar::begins(week, zone)),
            last_sid: sid(calendar::begins(next.tomorrow().unwrap_or(next), zone)),
        }
    }
}
