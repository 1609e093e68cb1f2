//! What a check finds, with a remedy.

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingLevel {
    Ok,
    /// It works, but the operator should know.
    Warning,
    /// It will not work.
    Problem,
}

impl FindingLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            FindingLevel::Ok => "ok",
            FindingLevel::Warning => "warning",
            FindingLevel::Problem => "problem",
        }
    }

    fn colour(self) -> &'static str {
        match self {
            FindingLevel::Ok => "\x1b[32m",
            FindingLevel::Warning => "\x1b[33m",
            FindingLevel::Problem => "\x1b[31m",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Finding {
    pub subject: String,
    pub level: FindingLevel,
    pub found: String,
    /// How to mend it.
    pub remedy: Option<String>,
}

impl Finding {
    pub fn ok(subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            level: FindingLevel::Ok,
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
            level: FindingLevel::Warning,
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
            level: FindingLevel::Problem,
            ..Self::warning(subject, found, remedy)
        }
    }

    /// Writes a finding on one line, even if a library's message has several.
    pub fn line(&self, colours: bool) -> String {
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

    pub fn json(&self) -> Value {
        json!({
            "check": self.subject,
            "level": self.level.as_str(),
            "found": self.found,
            "remedy": self.remedy,
        })
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
