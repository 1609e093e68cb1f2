//! The do-not-call list of an account: numbers that it must not call, because their owners do not want that. What the operator bars for all accounts is
//! another list (`barred_numbers`).

use jiff::Timestamp;

use super::call::CallSid;
use super::numbering_plan::NumberingPlan;
use super::phone_number::PhoneNumber;
use super::wording::{Wording, wording};

/// How a number came onto the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoNotCallSource {
    /// By a command that names it.
    Operator,
    /// With a whole file of numbers.
    Import,
    /// Its owner pressed the key for it in this call.
    Callee(CallSid),
}

impl DoNotCallSource {
    /// The word that is stored and shown.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Import => "import",
            Self::Callee(_) => "callee",
        }
    }

    pub fn call(&self) -> Option<&CallSid> {
        match self {
            Self::Callee(call) => Some(call),
            Self::Operator | Self::Import => None,
        }
    }

    pub fn from_stored(word: &str, call: Option<CallSid>) -> Option<Self> {
        match (word, call) {
            ("operator", None) => Some(Self::Operator),
            ("import", None) => Some(Self::Import),
            ("callee", Some(call)) => Some(Self::Callee(call)),
            _ => None,
        }
    }
}

/// A number on the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoNotCallEntry {
    /// In canonical form, without an extension: nobody behind the number is called.
    pub digits: String,
    pub added_at: Timestamp,
    pub source: DoNotCallSource,
}

/// Reads a number for the list, or a line of a file of them, and returns its canonical digits.
pub fn parse_number(text: &str, plan: &NumberingPlan) -> Result<String, Wording> {
    let number = PhoneNumber::parse(text, plan)
        .map_err(|refusal| refusal.in_field("to", "the number").wording())?;
    if number.extension().is_some() {
        return Err(wording!(
            "the number must have no extension: the list has whole numbers only",
            "号码不能带分机号：名单中只有完整号码"
        ));
    }
    Ok(number.digits().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_reads_back() {
        let call: CallSid = "20261115103509000000000000000001".parse().unwrap();
        for source in [
            DoNotCallSource::Operator,
            DoNotCallSource::Import,
            DoNotCallSource::Callee(call),
        ] {
            let read = DoNotCallSource::from_stored(source.as_str(), source.call().cloned());
            assert_eq!(read, Some(source));
        }
        assert_eq!(DoNotCallSource::from_stored("callee", None), None);
    }

    #[test]
    fn a_number_is_whole_and_has_one_form() {
        let plan = NumberingPlan::china();
        for text in ["13800000000", "+8613800000000", "008613800000000"] {
            assert_eq!(parse_number(text, &plan).unwrap(), "8613800000000");
        }
        for (wrong, rule) in [("01052823298-7", "no extension"), ("138", "the number")] {
            let refused = parse_number(wrong, &plan).unwrap_err();
            assert!(refused.english().contains(rule), "{refused}");
        }
    }
}
