//! The query condition of a bill request: terms separated by blanks. All terms must match. `field=value` matches that column exactly, any
//! other term matches inside any column.

use super::COLUMNS;
use super::cells::Cells;
use crate::domain::status_code::{Refusal, StatusCode};

const LONGEST: usize = 256;
const MAX_TERMS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keywords {
    terms: Vec<Term>,
    /// The terms with one blank between them, so that requests with the same terms share a file.
    normal: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    Exactly(usize, String),
    Somewhere(String),
}

impl Keywords {
    /// Parses a condition. Returns `None` if there are no terms.
    pub fn parse(text: &str) -> Result<Option<Self>, Refusal> {
        let words: Vec<_> = text.split_whitespace().collect();
        if text.len() > LONGEST || words.len() > MAX_TERMS {
            return Err(Refusal::new(
                StatusCode::DataTooLong,
                format!("keywords may have {LONGEST} bytes and {MAX_TERMS} terms"),
            ));
        }
        if words.is_empty() {
            return Ok(None);
        }
        let terms = words.iter().map(|word| Term::parse(word)).collect();
        let normal = words.join(" ");
        Ok(Some(Self { terms, normal }))
    }

    pub fn as_str(&self) -> &str {
        &self.normal
    }

    pub fn match_line(&self, cells: &Cells) -> bool {
        self.terms.iter().all(|term| match term {
            Term::Exactly(column, value) => cells.get(*column) == value,
            Term::Somewhere(value) => cells.iter().any(|cell| cell.contains(value)),
        })
    }
}

impl Term {
    fn parse(word: &str) -> Self {
        let named = word.split_once('=').and_then(|(field, value)| {
            let column = COLUMNS
                .iter()
                .position(|column| column.eq_ignore_ascii_case(field))?;
            Some(Self::Exactly(column, value.to_owned()))
        });
        // The text before the sign is no column, so the whole word is the term.
        named.unwrap_or_else(|| Self::Somewhere(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::bill::record::tests::line;

    #[test]
    fn terms_match_a_column_exactly_or_any_column_inside() {
        let mut cells = Cells::new(jiff::tz::TimeZone::UTC);
        let mut line = line();
        line.user_data = Some("order=42 红".to_owned());
        cells.fill(&"a".repeat(32).parse().unwrap(), &line);
        let matches = |text: &str| {
            let keywords = Keywords::parse(text).unwrap().unwrap();
            keywords.match_line(&cells)
        };
        for text in [
            "type=14",
            "TYPE=14 红",
            "order=42",
            "userData=order=42 13800",
            "outcome=talked",
        ] {
            // A value with a blank in it cannot be named exactly.
            assert_eq!(matches(text), !text.starts_with("userData"), "{text}");
        }
        for text in ["type=1", "called=1380000", "talked 蓝", "outcome="] {
            assert!(!matches(text), "{text}");
        }
        assert_eq!(Keywords::parse("  ").unwrap(), None);
        assert!(Keywords::parse(&"x".repeat(257)).is_err());
        assert!(Keywords::parse(&"x ".repeat(17)).is_err());
        assert_eq!(Keywords::parse(" a   b ").unwrap().unwrap().as_str(), "a b");
    }
}
