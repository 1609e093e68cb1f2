//! A sentence in the language of the page. What the layers below say of a mistake is in English alone: on a page in another language it is marked as English, for
//! screen readers and fonts.

use super::words::{ENGLISH, Words, fill};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sentence {
    pub before: String,
    /// Empty if all of it is in the language of the page.
    pub english: String,
    pub after: String,
}

impl From<String> for Sentence {
    fn from(before: String) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }
}

impl From<&str> for Sentence {
    fn from(before: &str) -> Self {
        before.to_owned().into()
    }
}

impl Sentence {
    /// A text with values, of which `why` is in English.
    pub fn with_why(words: &Words, text: &str, values: &[(&str, &str)], why: &str) -> Self {
        if std::ptr::eq(words, &raw const ENGLISH) {
            return fill(text, &[values, &[("why", why)]].concat()).into();
        }
        let (before, after) = text.split_once("{why}").unwrap_or((text, ""));
        Self {
            before: fill(before, values),
            english: why.to_owned(),
            after: fill(after, values),
        }
    }

    /// What is in English as a whole.
    pub fn english(why: &str) -> Self {
        Self {
            english: why.to_owned(),
            ..Self::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::words::CHINESE;

    #[test]
    fn what_is_in_english_is_apart_where_the_page_is_not() {
        let told = |words: &Words| {
            let values = [("field", "号码 {why}")];
            Sentence::with_why(words, words.rule_form, &values, "too long")
        };
        let chinese = told(&CHINESE);
        assert_eq!(chinese.before, "“号码 {why}”填写有误：");
        assert_eq!((&*chinese.english, &*chinese.after), ("too long", "。"));
        let english = told(&ENGLISH);
        assert_eq!(english, "号码 {why}: too long.".into());
    }
}
