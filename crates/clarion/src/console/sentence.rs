//! A sentence in the language of the page. What programs of others say, and what the layers below say in English alone, is marked as English on a page in another
//! language, for screen readers and fonts.

use super::words::{ENGLISH, Words, fill};
use crate::domain::wording::Wording;

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

    /// What the layers below say in both languages.
    pub fn of(words: &Words, said: &Wording) -> Self {
        Self::with_wording(words, "{why}", &[], said)
    }

    /// A text with values, of which `why` is said by the layers below.
    pub fn with_wording(words: &Words, text: &str, values: &[(&str, &str)], why: &Wording) -> Self {
        if std::ptr::eq(words, &raw const ENGLISH) {
            return fill(text, &[values, &[("why", &*why.to_string())]].concat()).into();
        }
        let Some(quoted) = why.quoted() else {
            return fill(text, &[values, &[("why", why.chinese())]].concat()).into();
        };
        let (before, after) = text.split_once("{why}").unwrap_or((text, ""));
        let colon = if why.chinese().is_empty() { "" } else { "：" };
        Self {
            before: format!("{}{}{colon}", fill(before, values), why.chinese()),
            english: quoted.to_owned(),
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
    use crate::domain::wording::wording;

    #[test]
    fn what_is_said_in_both_languages_is_in_that_of_the_page() {
        let told = |words: &Words, said: &Wording| {
            let values = [("field", "A")];
            Sentence::with_wording(words, words.rule_form, &values, said)
        };
        let said = wording!("too long", "过长");
        assert_eq!(told(&CHINESE, &said), "“A”填写有误：过长。".into());
        assert_eq!(told(&ENGLISH, &said), "A: too long.".into());
        let said = said.because("EINVAL");
        let chinese = told(&CHINESE, &said);
        assert_eq!(chinese.before, "“A”填写有误：过长：");
        assert_eq!((&*chinese.english, &*chinese.after), ("EINVAL", "。"));
        assert_eq!(told(&ENGLISH, &said), "A: too long: EINVAL.".into());
        assert_eq!(
            Sentence::of(&CHINESE, &Wording::quoting("x")),
            Sentence::english("x")
        );
    }

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
