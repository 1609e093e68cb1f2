//! The findings of a check, one line each, with a remedy.

use std::io::{IsTerminal, Write};

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Ok,
    /// It works, but the operator should know.
    Warning,
    /// It will not work.
    Problem,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Problem => "problem",
        }
    }

    fn colour(self) -> &'static str {
        match self {
            Level::Ok => "\x1b[32m",
            Level::Warning => "\x1b[33m",
            Level::Problem => "\x1b[31m",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Finding {
    pub subject: String,
    pub level: Level,
    pub found: String,
    /// How to mend it.
    pub remedy: Option<String>,
}

impl Finding {
    pub fn ok(subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            level: Level::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    pub fn warning(
        subject: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Warning,
            remedy: Some(remedy.into()),
            ..Self::ok(subject, found)
        }
    }

    pub fn problem(
        subject: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Problem,
            ..Self::warning(subject, found, remedy)
        }
    }

    /// Writes a finding on one line, even if a library's message has several.
    fn line(&self, colours: bool) -> String {
        let (on, off) = if colours {
            (self.level.colour(), "\x1b[0m")
        } else {
            ("", "")
        };
        let remedy = self.remedy.as_ref();
        let remedy = remedy.map_or(String::new(), |remedy| format!(" → {remedy}"));
        let text = format!("{}{remedy}", self.found);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        format!(
            "{on}{:<8}{off} {:<14} {text}",
            self.level.as_str(),
            self.subject
        )
    }

    fn json(&self) -> Value {
        json!({
            "check": self.subject,
            "level": self.level.as_str(),
            "found": self.found,
            "remedy": self.remedy,
        })
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
        (count(Level::Problem), count(Level::Warning))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_with_its_remedy() {
        let finding = Finding::problem("disk", "slow:\n 40 ms", "buy another");
        assert_eq!(
            finding.line(false),
            "problem  disk           slow: 40 ms → buy another"
        );
        assert_eq!(
            Finding::ok("disk", "quick").line(true),
            "\x1b[32mok      \x1b[0m disk           quick"
        );
    }
}
