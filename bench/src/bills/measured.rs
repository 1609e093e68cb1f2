//! What was measured on one database, as rows of the document.

use std::time::Duration;

use super::day::WatchedRun;

/// Design: closing is as fast as the export, and memory stays flat.
const MAX_MEMORY: u64 = 64 << 20;

#[derive(Debug)]
pub struct Measured {
    pub database: String,
    pub exported: WatchedRun,
    /// Closing a day without lines.
    pub empty: WatchedRun,
    pub closed: WatchedRun,
    pub download: (Duration, u64),
    /// The most memory of the server before the download and after it.
    pub server: (u64, u64),
    pub asked: f64,
}

impl Measured {
    #[expect(clippy::cast_precision_loss, reason = "for reading")]
    pub fn row(&self, lines: u64) -> String {
        let (time, bytes) = self.download;
        format!(
            "| {} | {:.1} s | {} MiB | {:.1} s | {:.0} | {:.2} times as fast | {} | {:.0} MB in {:.1} s | {} | {:.0} |",
            self.database,
            self.exported.time.as_secs_f64(),
            self.exported.peak >> 20,
            self.closed.time.as_secs_f64(),
            lines as f64 / self.closed.time.as_secs_f64(),
            self.against(),
            memory(self.closed.peak, self.empty.peak),
            bytes as f64 / 1e6,
            time.as_secs_f64(),
            memory(self.server.1, self.server.0),
            self.asked,
        )
    }

    pub fn bars(&self) -> String {
        let told = |met| if met { "met" } else { "**missed**" };
        let more = self.closed.peak.saturating_sub(self.empty.peak);
        let database = &self.database;
        format!(
            "| closing at least as fast as the database's own export | {database} | {:.2} times | {} |\n\
             | at most {} MiB more memory for the lines | {database} | {} MiB | {} |\n",
            self.against(),
            told(self.against() >= 1.0),
            MAX_MEMORY >> 20,
            more >> 20,
            told(more <= MAX_MEMORY),
        )
    }

    fn against(&self) -> f64 {
        self.exported.time.as_secs_f64() / self.closed.time.as_secs_f64()
    }
}

fn memory(peak: u64, before: u64) -> String {
    let more = peak.saturating_sub(before) >> 20;
    format!("{} MiB ({more} more)", peak >> 20)
}
