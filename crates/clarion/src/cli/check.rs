//! `clarion check`: what `check` finds, one line each.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use serde_json::Value;

use crate::check::{self, CheckSubject, Finding, FindingLevel};
use crate::config::{Config, ConfigError};
use crate::domain::wording::{Wording, wording};

#[derive(Debug, Args)]
pub struct Check {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    pub async fn run(self, file: Option<&Path>) -> anyhow::Result<()> {
        let mut report = CheckReport::new(self.json);
        let file = Config::file(file);
        match Config::load(file.as_deref()) {
            Ok(config) => {
                let tell = &mut |findings| report.tell(findings);
                check::examine(&Arc::new(config), file.as_deref(), tell).await;
            }
            Err(ConfigError(mistakes)) => report.tell(mistakes.into_iter().map(|mistake| {
                let remedy = wording!(
                    "correct it; `clarion config` prints every setting with its meaning",
                    "请修正；`clarion config` 可列出全部配置项及其说明"
                );
                Finding::problem(
                    CheckSubject::Configuration,
                    Wording::quoting(mistake),
                    remedy,
                )
            })),
        }
        match report.end() {
            (0, _) => Ok(()),
            (1, _) => bail!("one problem was found"),
            (problems, _) => bail!("{problems} problems were found"),
        }
    }
}

/// Prints each finding at once, or as JSON all of them at the end.
#[derive(Debug)]
pub struct CheckReport {
    json: bool,
    colours: bool,
    findings: Vec<Finding>,
}

impl CheckReport {
    pub fn new(json: bool) -> Self {
        Self {
            json,
            colours: std::io::stdout().is_terminal(),
            findings: Vec::new(),
        }
    }

    pub fn tell(&mut self, findings: impl IntoIterator<Item = Finding>) {
        for finding in findings {
            if !self.json {
                // The reader may have gone away.
                let _ = writeln!(std::io::stdout(), "{}", finding.line(self.colours));
            }
            self.findings.push(finding);
        }
    }

    /// Ends the report. Returns the number of problems and of warnings.
    pub fn end(self) -> (usize, usize) {
        if self.json {
            let all: Vec<_> = self.findings.iter().map(Finding::json).collect();
            let _ = writeln!(std::io::stdout(), "{:#}", Value::Array(all));
        }
        let count = |level| {
            let of_level = self
                .findings
                .iter()
                .filter(|finding| finding.level == level);
            of_level.count()
        };
        (count(FindingLevel::Problem), count(FindingLevel::Warning))
    }
}
