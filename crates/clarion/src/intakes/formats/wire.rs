//! Reading JSON that others write: any scalar is a text, long texts are cut, and what is missing is empty. Whatever is beyond what is kept is passed over while it is
//! read: the longest body takes little more memory than its bytes.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Number;

use crate::domain::status_code::{Refusal, StatusCode};

/// Longer texts are cut: nobody listens to more.
const LONGEST_TEXT: usize = 2000;
/// Labels beyond these are left out.
const MAX_LABELS: usize = 64;
/// What is beyond these in a list is left out.
const MAX_OF_LIST: usize = 64;
/// Characters of a problem that are told.
const LONGEST_PROBLEM: usize = 200;
/// A moment before this means that there is none.
const FIRST_YEAR: i16 = 2000;

pub fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Refusal> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    serde_json::from_slice(body).map_err(|error| {
        let problem: String = error.to_string().chars().take(LONGEST_PROBLEM).collect();
        Refusal::new(
            StatusCode::BodyFormat,
            format!("the JSON body cannot be read: {problem}"),
        )
    })
}

/// A text, or a number or flag that stands for one.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(pub String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let scalar = Option::<Scalar>::deserialize(deserializer)?;
        Ok(Self(scalar.and_then(|scalar| scalar.0).unwrap_or_default()))
    }
}

/// A text, or a number or flag that stands for one. `None`: a list or an object, of which nothing is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar(pub Option<String>);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar(Some(cut(text))))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Scalar, E> {
        Ok(Scalar(Some(flag.to_string())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar(Some(number.to_string())))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar(Some(number.to_string())))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Scalar, E> {
        let number = Number::from_f64(number).map(|number| number.to_string());
        Ok(Scalar(Some(number.unwrap_or_default())))
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
        Ok(Scalar(Some(String::new())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Scalar, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar(None))
    }
}

/// Characters that a request may not have are blanks.
pub fn cut(text: &str) -> String {
    let plain = |character: char| match character {
        '\n' => '\n',
        '\u{fffe}' | '\u{ffff}' => ' ',
        control if control.is_control() => ' ',
        other => other,
    };
    let text: String = text.trim().chars().take(LONGEST_TEXT).map(plain).collect();
    text.trim().to_owned()
}

/// Labels or annotations.
#[derive(Debug, Clone, Default)]
pub struct Texts(pub BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let labels = Option::<Object<MAX_LABELS>>::deserialize(deserializer)?;
        let pairs = labels.into_iter().flat_map(|labels| labels.first);
        let text = |value: Scalar| value.0.unwrap_or_default();
        Ok(Self(
            pairs
                .map(|(name, value)| (cut(&name), text(value)))
                .collect(),
        ))
    }
}

/// The first members of an object.
#[derive(Debug, Clone, Default)]
pub struct Object<const MOST: usize> {
    pub first: Vec<(String, Scalar)>,
}

impl<'de, const MOST: usize> Deserialize<'de> for Object<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor::<MOST>)
    }
}

struct ObjectVisitor<const MOST: usize>;

impl<'de, const MOST: usize> Visitor<'de> for ObjectVisitor<MOST> {
    type Value = Object<MOST>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut first = Vec::new();
        while first.len() < MOST {
            let Some(member) = object.next_entry()? else {
                return Ok(Object { first });
            };
            first.push(member);
        }
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Object { first })
    }
}

impl Texts {
    /// The first of these that says something.
    pub fn first(&self, names: &[&str]) -> String {
        let said = |name: &&str| self.0.get(*name).filter(|text| !text.is_empty());
        names.iter().find_map(said).cloned().unwrap_or_default()
    }
}

/// The first of a list, where there may be none. What is not kept must be right all the same.
pub fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::<FirstOf<T>>::deserialize(deserializer)?.map_or_else(Vec::new, |list| list.0))
}

pub fn go_on_while(there_is_room: bool) -> ControlFlow<()> {
    if there_is_room {
        ControlFlow::Continue(())
    } else {
        ControlFlow::Break(())
    }
}

struct FirstOf<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FirstOf<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut first = Vec::new();
        let take = |one| {
            first.push(one);
            go_on_while(first.len() < MAX_OF_LIST)
        };
        each(deserializer, take, |_: IgnoredAny| {})?;
        Ok(Self(first))
    }
}

/// Reads a list one by one, each as a whole while `take` wants that, and the rest in short.
pub fn each<'de, D: Deserializer<'de>, T: Deserialize<'de>, S: Deserialize<'de>>(
    deserializer: D,
    take: impl FnMut(T) -> ControlFlow<()>,
    in_short: impl FnMut(S),
) -> Result<(), D::Error> {
    deserializer.deserialize_seq(EachVisitor {
        take,
        in_short,
        of: PhantomData,
    })
}

struct EachVisitor<T, S, F, G> {
    take: F,
    in_short: G,
    of: PhantomData<(T, S)>,
}

impl<'de, T, S, F, G> Visitor<'de> for EachVisitor<T, S, F, G>
where
    T: Deserialize<'de>,
    S: Deserialize<'de>,
    F: FnMut(T) -> ControlFlow<()>,
    G: FnMut(S),
{
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(one) = list.next_element()? {
            if (self.take)(one).is_break() {
                break;
            }
        }
        while let Some(one) = list.next_element()? {
            (self.in_short)(one);
        }
        Ok(())
    }
}

/// A moment as RFC 3339 has it.
pub fn moment(text: &str) -> Option<Timestamp> {
    let moment: Timestamp = text.parse().ok()?;
    let year = jiff::tz::Offset::UTC.to_datetime(moment).year();
    (year >= FIRST_YEAR).then_some(moment)
}

/// A local time such as `2026-11-18 03:05:07`.
pub fn local_time(text: &str) -> Option<DateTime> {
    let time: DateTime = text
        .replace('.', "-")
        .parse()
        .ok()
        .or_else(|| text.parse().ok())?;
    (time.year() >= FIRST_YEAR).then_some(time)
}

/// Words without the mark at their end: sentences are made of them.
pub fn phrase(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.trim_end_matches(['.', '。', '!', '！', ';', '；', ',', '，', ' '])
        .to_owned()
}

pub fn required(text: &str, field: &str) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(Refusal::field(format!("{field} is required")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_no_text_is_passed_over_and_the_rest_is_read() {
        let many = format!("[{}0]", "0,".repeat(100_000));
        for (json, wanted) in [
            ("\" a\\u0000b \"", "a b"),
            ("-7", "-7"),
            ("18446744073709551615", "18446744073709551615"),
            ("1.50", "1.5"),
            ("1e3", "1000.0"),
            ("true", "true"),
            ("null", ""),
            ("{\"a\":[1,{}]}", ""),
            (&many, ""),
        ] {
            let pair: (Text, Text) = read(format!("[{json},\"end\"]").as_bytes()).unwrap();
            assert_eq!((pair.0.0.as_str(), pair.1.0.as_str()), (wanted, "end"));
        }
    }

    #[test]
    fn of_labels_and_lists_the_first_are_kept_and_the_rest_must_be_right() {
        let labels = |last: &str| {
            let some: String = (0..100).map(|n| format!("\"l{n}\":{n},")).collect();
            read::<Texts>(format!("{{{some}{last}}}").as_bytes())
        };
        let kept = labels("\"x\":1").unwrap();
        assert_eq!(kept.0.len(), MAX_LABELS);
        assert_eq!(kept.first(&["l0"]), "0");
        assert!(labels("x").is_err());
        assert!(read::<Texts>(b"null").unwrap().0.is_empty());
        let list = |json: &str| {
            let mut reader = serde_json::Deserializer::from_str(json);
            list::<_, Text>(&mut reader).map(|list| list.len())
        };
        assert_eq!(list("null").unwrap(), 0);
        assert_eq!(
            list(&format!("[{}1]", "1,".repeat(1000))).unwrap(),
            MAX_OF_LIST
        );
        assert!(list("[1,").is_err());
    }
}
