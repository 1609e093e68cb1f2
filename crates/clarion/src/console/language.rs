//! The two languages of the console: chosen by the operator, or else by the browser.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_LANGUAGE;

use super::cookies;
use super::words::{CHINESE, ENGLISH, Words};

/// What an operator has chosen is kept here.
pub const COOKIE: &str = "clarion-language";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageLanguage {
    English,
    Chinese,
}

impl PageLanguage {
    pub const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// As it is written in addresses and cookies.
    pub fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }

    /// As HTML wants it.
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh-CN",
        }
    }

    pub fn words(self) -> &'static Words {
        match self {
            Self::English => &ENGLISH,
            Self::Chinese => &CHINESE,
        }
    }

    /// The one that these words are of.
    pub fn of_words(words: &'static Words) -> Self {
        let is_theirs = |language: &Self| std::ptr::eq(language.words(), words);
        let found = Self::ALL.into_iter().find(is_theirs);
        found.unwrap_or(Self::English)
    }

    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::English => Self::Chinese,
            Self::Chinese => Self::English,
        }
    }

    pub fn by_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.code() == code)
    }

    /// The language of a request: what was chosen, or what the browser prefers, or English.
    pub fn of(headers: &HeaderMap) -> Self {
        let chosen = cookies::value(headers, COOKIE).and_then(|code| Self::by_code(&code));
        let accepted = headers.get(ACCEPT_LANGUAGE);
        let accepted = accepted.and_then(|value| value.to_str().ok());
        let chosen = chosen.or_else(|| accepted.and_then(preferred));
        chosen.unwrap_or(Self::English)
    }
}

/// The first of our languages by the weights of an Accept-Language.
fn preferred(accepted: &str) -> Option<PageLanguage> {
    let mut wanted: Vec<_> = accepted.split(',').filter_map(weighted).collect();
    // Those of the same weight stay in their order.
    wanted.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    wanted.first().map(|(language, _)| *language)
}

fn weighted(entry: &str) -> Option<(PageLanguage, f32)> {
    let mut parts = entry.split(';');
    let tag = parts.next()?.trim().to_ascii_lowercase();
    let language = tag.split('-').next().and_then(PageLanguage::by_code)?;
    let weight = parts.find_map(|part| part.trim().strip_prefix("q=")?.parse().ok());
    let weight = weight.unwrap_or(1.0);
    (weight > 0.0).then_some((language, weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_says_which_language_it_prefers() {
        for (accepted, wanted) in [
            ("zh-CN,zh;q=0.9,en;q=0.8", Some(PageLanguage::Chinese)),
            ("en-GB,en;q=0.9,zh;q=0.8", Some(PageLanguage::English)),
            ("de, zh;q=0.3, en;q=0.7", Some(PageLanguage::English)),
            ("zh;q=0, en;q=0.1", Some(PageLanguage::English)),
            ("de, fr", None),
            ("", None),
            (";;,q=,zh;q=x", Some(PageLanguage::Chinese)),
        ] {
            assert_eq!(preferred(accepted), wanted, "{accepted}");
        }
    }

    #[test]
    fn what_an_operator_has_chosen_comes_first() {
        let mut headers = HeaderMap::new();
        assert_eq!(PageLanguage::of(&headers), PageLanguage::English);
        headers.insert(ACCEPT_LANGUAGE, "zh".parse().unwrap());
        assert_eq!(PageLanguage::of(&headers), PageLanguage::Chinese);
        let cookie = "a=b; clarion-language=en";
        headers.insert("cookie", cookie.parse().unwrap());
        assert_eq!(PageLanguage::of(&headers), PageLanguage::English);
    }
}
