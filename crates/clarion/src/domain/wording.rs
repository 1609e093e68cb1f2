//! A sentence for operators in both languages, written side by side where it is said. One without its Chinese, or with other places than in English, does not compile.
//!
//! What others have said, such as an operating system or a receiver, is quoted as it came.

use std::fmt;

/// Says something in both languages: `wording!("port {port} is taken", "端口 {port} 已被占用")`. The names after a semicolon are wordings themselves, and are put in
/// in the language of the text.
macro_rules! wording {
    ($english:literal, $chinese:literal $(; $($part:ident),+)? $(,)?) => {
        $crate::domain::wording::Wording::new(
            {
                const { $crate::domain::wording::must_match($english, $chinese) };
                $($(let $part = $part.english();)+)?
                ::std::fmt::format(::std::format_args!($english))
            },
            {
                $($(let $part = $part.chinese();)+)?
                ::std::fmt::format(::std::format_args!($chinese))
            },
        )
    };
}
pub(crate) use wording;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wording {
    english: String,
    chinese: String,
    quoted: Option<String>,
}

impl Wording {
    /// What `wording!` makes of its two texts.
    pub fn new(english: String, chinese: String) -> Self {
        Self {
            english,
            chinese,
            quoted: None,
        }
    }

    /// What is written the same in both languages, such as the name of a setting.
    pub fn named(name: &str) -> Self {
        Self::new(name.to_owned(), name.to_owned())
    }

    /// Several of them, one after the other.
    pub fn list(all: &[Self]) -> Self {
        let english: Vec<_> = all.iter().map(Self::english).collect();
        let chinese: Vec<_> = all.iter().map(Self::chinese).collect();
        Self::new(english.join(", "), chinese.join("、"))
    }

    /// Nothing but what somebody else has said, or what is said in English alone.
    pub fn quoting(said: impl fmt::Display) -> Self {
        Self::default().because(said)
    }

    /// With what somebody else has said about it.
    #[must_use]
    pub fn because(mut self, said: impl fmt::Display) -> Self {
        self.quoted = Some(said.to_string());
        self
    }

    /// Without what is quoted.
    pub fn english(&self) -> &str {
        &self.english
    }

    /// Without what is quoted.
    pub fn chinese(&self) -> &str {
        &self.chinese
    }

    pub fn quoted(&self) -> Option<&str> {
        self.quoted.as_deref()
    }
}

/// In English, with what is quoted.
impl fmt::Display for Wording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.english)?;
        match &self.quoted {
            Some(said) if self.english.is_empty() => f.write_str(said),
            Some(said) => write!(f, ": {said}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Wording {}

/// What is said in English alone.
impl From<String> for Wording {
    fn from(said: String) -> Self {
        Self::quoting(said)
    }
}

/// What is said in English alone.
impl From<&str> for Wording {
    fn from(said: &str) -> Self {
        Self::quoting(said)
    }
}

impl From<Wording> for String {
    fn from(said: Wording) -> Self {
        said.to_string()
    }
}

/// Asked by the compiler of every text.
pub const fn must_match(english: &str, chinese: &str) {
    let (english, chinese) = (english.as_bytes(), chinese.as_bytes());
    assert!(has_chinese(chinese), "there is no Chinese in the Chinese");
    assert!(
        has_places_of(english, chinese) && has_places_of(chinese, english),
        "the two languages have different places"
    );
    assert!(
        count(english, b'`') == count(chinese, b'`'),
        "what stands in backticks stands so in both languages"
    );
}

/// The first byte of a character of the common block of Chinese.
const fn has_chinese(text: &[u8]) -> bool {
    let mut at = 0;
    while at < text.len() {
        if text[at] >= 0xe4 && text[at] <= 0xe9 {
            return true;
        }
        at += 1;
    }
    false
}

const fn count(text: &[u8], wanted: u8) -> usize {
    let (mut at, mut found) = (0, 0);
    while at < text.len() {
        if text[at] == wanted {
            found += 1;
        }
        at += 1;
    }
    found
}

/// Whether one text has every `{place}` of another.
const fn has_places_of(other: &[u8], text: &[u8]) -> bool {
    let mut at = 0;
    while at < other.len() {
        if other[at] == b'{' && !has_place(text, other, at) {
            return false;
        }
        at += 1;
    }
    true
}

const fn has_place(text: &[u8], other: &[u8], place: usize) -> bool {
    let mut at = 0;
    while at < text.len() {
        if text[at] == b'{' && is_same_place(text, at, other, place) {
            return true;
        }
        at += 1;
    }
    false
}

/// Whether the same name stands at both places. How it is formatted is for each language to say.
const fn is_same_place(one: &[u8], mut at: usize, other: &[u8], mut place: usize) -> bool {
    loop {
        at += 1;
        place += 1;
        if at >= one.len() || place >= other.len() {
            return false;
        }
        match (one[at], other[place]) {
            (b'}' | b':', b'}' | b':') => return true,
            (letter, same) if letter != same => return false,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_said_in_both_languages_and_quotes_others_as_they_are() {
        let (port, whose) = (8883, wording!("somebody", "其他进程"));
        let said = wording!("{whose} has port {port:5}", "端口 {port} 被{whose}占用"; whose);
        assert_eq!(said.to_string(), "somebody has port  8883");
        assert_eq!(said.chinese(), "端口 8883 被其他进程占用");
        let said = said.because("Permission denied");
        assert_eq!(
            said.to_string(),
            "somebody has port  8883: Permission denied"
        );
        assert_eq!(said.quoted(), Some("Permission denied"));
        assert_eq!(Wording::quoting("404 {x}").to_string(), "404 {x}");
    }

    #[test]
    fn texts_that_do_not_belong_together_are_told_apart() {
        let alike = |one: &str, other: &str| {
            let (one, other) = (one.as_bytes(), other.as_bytes());
            has_places_of(one, other) && has_places_of(other, one)
        };
        assert!(alike("{a} {b:.1}", "{b}{a}"));
        for (one, other) in [("{a}", ""), ("{a}", "{ab}"), ("{ab}", "{a}"), ("{a", "{a}")] {
            assert!(!alike(one, other), "{one} {other}");
        }
        assert!(has_chinese("在 here".as_bytes()) && !has_chinese("“here”…".as_bytes()));
    }
}
