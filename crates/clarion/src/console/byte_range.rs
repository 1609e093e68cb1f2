//! Which bytes of a sound a player asks for: it reads the end first, or goes on where somebody has clicked (RFC 9110, section 14).

use std::ops::Range;

use axum::http::HeaderMap;
use axum::http::header::{IF_RANGE, RANGE};

#[derive(Debug, PartialEq, Eq)]
pub enum WantedBytes {
    All,
    Some(Range<usize>),
    /// Nothing of what is asked for is there.
    Nothing,
}

impl WantedBytes {
    /// What a request wants of so many bytes. Several parts at once, and what is no range, are answered with all of them; so is a range that holds for a state that we do not name.
    pub fn of(headers: &HeaderMap, length: usize) -> Self {
        if headers.contains_key(IF_RANGE) {
            return Self::All;
        }
        let wanted = headers.get(RANGE).and_then(|value| value.to_str().ok());
        let wanted = wanted.and_then(|wanted| wanted.strip_prefix("bytes="));
        let parts = wanted.and_then(|wanted| wanted.trim().split_once('-'));
        let number = |text: &str| {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse::<usize>().unwrap_or(usize::MAX))
        };
        let range = match parts {
            None | Some(("", "")) => return Self::All,
            Some(("", last)) => number(last).map(|last| length.saturating_sub(last)..length),
            Some((from, "")) => number(from).map(|from| from..length),
            Some((from, until)) => number(from)
                .zip(number(until))
                .filter(|(from, until)| from <= until)
                .map(|(from, until)| from..until.saturating_add(1).min(length)),
        };
        match range {
            None => Self::All,
            Some(range) if range.start >= range.end => Self::Nothing,
            Some(range) => Self::Some(range),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(range: &str) -> WantedBytes {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, range.parse().unwrap());
        WantedBytes::of(&headers, 100)
    }

    #[test]
    fn a_part_is_asked_for_by_its_ends() {
        for (range, part) in [
            ("bytes=0-", 0..100),
            ("bytes=0-0", 0..1),
            ("bytes=99-", 99..100),
            ("bytes=10-19", 10..20),
            ("bytes=90-1000", 90..100),
            ("bytes=5-99999999999999999999999", 5..100),
            ("bytes=-1", 99..100),
            ("bytes=-1000", 0..100),
        ] {
            assert_eq!(wanted(range), WantedBytes::Some(part), "{range}");
        }
        for range in ["bytes=100-", "bytes=100-200", "bytes=-0"] {
            assert_eq!(wanted(range), WantedBytes::Nothing, "{range}");
        }
    }

    #[test]
    fn what_is_no_single_range_gets_everything() {
        for range in [
            "",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=20-10",
            "bytes=0-1,5-6",
            "bytes=+1-2",
            "lines=0-1",
            "0-1",
        ] {
            assert_eq!(wanted(range), WantedBytes::All, "{range}");
        }
        assert_eq!(WantedBytes::of(&HeaderMap::new(), 100), WantedBytes::All);
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, "bytes=0-1".parse().unwrap());
        headers.insert(IF_RANGE, "\"x\"".parse().unwrap());
        assert_eq!(WantedBytes::of(&headers, 100), WantedBytes::All);
    }
}
