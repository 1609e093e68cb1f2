//! Lists of numbers that an account keeps on the server: whom a notice calls by `@name`. A list counts as it is when its numbers have their turn, not as it
//! was when the request came.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::account::AccountSid;
use super::numbering_plan::NumberingPlan;
use super::phone_number::PhoneNumber;
use super::wording::{Wording, wording};

pub const MAX_NUMBERS: usize = 20;
const LONGEST_NAME: usize = 32;
const LONGEST_PERSON: usize = 64;

/// The name of a list, without the `@`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ListName(String);

impl ListName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ListName {
    type Err = Wording;

    /// It stands in a field between semicolons, and on command lines.
    fn from_str(text: &str) -> Result<Self, Wording> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(is_plain) {
            return Ok(Self(text.to_owned()));
        }
        Err(wording!(
            "the name of a list must be 1 to {LONGEST_NAME} letters, digits, '-' or '_'",
            "列表名为 1 到 {LONGEST_NAME} 位字母、数字、- 或 _"
        ))
    }
}

/// As a request writes it.
impl fmt::Display for ListName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

/// One number of a list, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedNumber {
    /// Exactly as the operator wrote it: bills show this.
    pub called: String,
    pub number: PhoneNumber,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
}

impl ListedNumber {
    /// Reads `13800000000` or `13800000000=Li Wei`. The number is checked like `to`, and an emergency number never stands in a list.
    pub fn parse(text: &str, plan: &NumberingPlan) -> Result<Self, Wording> {
        let (called, person) = match text.split_once('=') {
            Some((called, person)) => (called.trim(), Some(person.trim())),
            None => (text.trim(), None),
        };
        let field = format!("number {called:?}");
        let number = PhoneNumber::parse(called, plan)
            .and_then(|number| {
                number.check_allowed(plan)?;
                number.check_no_emergency("to", plan)?;
                Ok(number)
            })
            .map_err(|refusal| {
                let rule = refusal.in_field("to", &field).wording();
                let chinese = format!("号码 {called:?}：{}", rule.chinese());
                Wording::new(rule.english().to_owned(), chinese)
            })?;
        let fits = |person: &str| {
            (1..=LONGEST_PERSON).contains(&person.chars().count())
                && !person.chars().any(char::is_control)
        };
        if !person.is_none_or(fits) {
            return Err(wording!(
                "number {called:?}: the name after '=' must be 1 to {LONGEST_PERSON} characters",
                "号码 {called:?}：= 之后的姓名为 1 到 {LONGEST_PERSON} 个字符"
            ));
        }
        Ok(Self {
            called: called.to_owned(),
            number,
            person: person.map(str::to_owned),
        })
    }
}

/// As `parse` reads it.
impl fmt::Display for ListedNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.called)?;
        match &self.person {
            Some(person) => write!(f, "={person}"),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallList {
    pub account: AccountSid,
    pub name: ListName,
    /// In the order of their turns, each of them once.
    pub numbers: Vec<ListedNumber>,
    pub updated_at: Timestamp,
}

impl CallList {
    pub fn new(
        account: AccountSid,
        name: ListName,
        numbers: Vec<ListedNumber>,
        updated_at: Timestamp,
    ) -> Result<Self, Wording> {
        let count = numbers.len();
        if !(1..=MAX_NUMBERS).contains(&count) {
            return Err(wording!(
                "a list must have 1 to {MAX_NUMBERS} numbers, but has {count}",
                "列表应有 1 到 {MAX_NUMBERS} 个号码，现有 {count} 个"
            ));
        }
        for (place, listed) in numbers.iter().enumerate() {
            let is_same = |other: &ListedNumber| other.number == listed.number;
            if numbers[..place].iter().any(is_same) {
                let called = &listed.called;
                return Err(wording!(
                    "number {called:?} must stand in a list only once",
                    "号码 {called:?} 在列表中重复"
                ));
            }
        }
        Ok(Self {
            account,
            name,
            numbers,
            updated_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_stand_in_a_field_and_on_a_command_line() {
        let long = "n".repeat(LONGEST_NAME);
        for name in ["oncall", "night-shift_2", "7", &long] {
            let read: ListName = name.parse().unwrap();
            assert_eq!(
                (read.as_str(), read.to_string()),
                (name, format!("@{name}"))
            );
        }
        let longer = "n".repeat(LONGEST_NAME + 1);
        for name in ["", "@oncall", "on call", "a;b", "值班", "a/b", &longer] {
            assert!(name.parse::<ListName>().is_err(), "{name}");
        }
    }

    #[test]
    fn a_number_is_checked_like_any_other_and_may_have_a_name() {
        let mut plan = NumberingPlan::china();
        plan.permitted = vec!["+86120".parse().unwrap()];
        let listed = ListedNumber::parse(" 01052823298-3627 = Li Wei ", &plan).unwrap();
        assert_eq!(listed.called, "01052823298-3627");
        assert_eq!(listed.number.digits(), "861052823298");
        assert_eq!(listed.number.extension(), Some("3627"));
        assert_eq!(listed.person.as_deref(), Some("Li Wei"));
        assert_eq!(listed.to_string(), "01052823298-3627=Li Wei");
        assert_eq!(
            ListedNumber::parse("13800000000", &plan).unwrap().person,
            None
        );
        for (wrong, rule) in [
            ("138", "number \"138\""),
            ("=Li", "number \"\""),
            ("110", "emergency"),
            ("120", "emergency"),
            ("16812345", "prefix"),
            ("13800000000=", "name after '='"),
            ("13800000000=a\nb", "name after '='"),
        ] {
            let refused = ListedNumber::parse(wrong, &plan).unwrap_err();
            assert!(refused.english().contains(rule), "{wrong}: {refused}");
            assert!(refused.chinese().len() > 20, "{refused:?}");
        }
    }

    #[test]
    fn a_list_has_some_numbers_each_of_them_once() {
        let plan = NumberingPlan::china();
        let list = |numbers: Vec<String>| {
            let numbers = numbers.iter().map(|text| ListedNumber::parse(text, &plan));
            let numbers = numbers.collect::<Result<_, _>>().unwrap();
            let account = "a".repeat(32).parse().unwrap();
            CallList::new(
                account,
                "l".parse().unwrap(),
                numbers,
                Timestamp::UNIX_EPOCH,
            )
        };
        let number = |place: usize| format!("138{place:08}");
        assert!(list((0..MAX_NUMBERS).map(number).collect()).is_ok());
        let refused = list((0..=MAX_NUMBERS).map(number).collect()).unwrap_err();
        let rule = "1 to 20 numbers, but has 21";
        assert!(refused.english().contains(rule), "{refused}");
        assert!(list(vec![]).is_err());
        let twice = list(vec![number(1), format!("+86{}", number(1))]).unwrap_err();
        assert!(twice.english().contains("only once"), "{twice}");
    }
}
