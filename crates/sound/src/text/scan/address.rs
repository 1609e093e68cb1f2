//! Addresses of mail and of pages, which are said with their dots.

use super::{Scan, Token};

const LONGEST: usize = 120;
const ENDINGS: [&str; 17] = [
    "com", "cn", "net", "org", "io", "gov", "edu", "hk", "tv", "app", "dev", "ai", "cloud",
    "local", "internal", "lan", "corp",
];

impl Scan<'_> {
    /// Takes an address if one begins here.
    pub(super) fn address(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let written: String = rest
            .iter()
            .take(LONGEST)
            .take_while(|c| c.is_ascii_alphanumeric() || "._-@/:%?=&~+".contains(**c))
            .collect();
        let written = written.trim_end_matches(['.', ':', '/', '?', '&', '=', '-', '~', '+']);
        if !is_address(written) {
            return false;
        }
        self.at += written.len();
        self.tokens.push(Token::Latin(said(written)));
        true
    }
}

fn is_address(written: &str) -> bool {
    let lower = written.to_ascii_lowercase();
    let host = lower
        .split_once("://")
        .map_or(lower.as_str(), |(_, rest)| rest);
    let host = host.split(['/', '?', ':']).next().unwrap_or_default();
    let ends_well = |host: &str| {
        host.rsplit_once('.')
            .is_some_and(|(name, ending)| !name.is_empty() && ENDINGS.contains(&ending))
    };
    let is_mail = host
        .split_once('@')
        .is_some_and(|(user, host)| !user.is_empty() && host.contains('.'));
    is_mail || host.starts_with("www.") || ends_well(host)
}

/// The words between the signs, and the signs that matter. What follows the host is not said: nobody could write it down.
fn said(written: &str) -> String {
    let address = written.split_once("://").map_or(written, |(_, rest)| rest);
    let address = address.split(['/', '?']).next().unwrap_or_default();
    let mut words = String::new();
    for character in address.chars() {
        match character {
            '.' => words.push_str(" dot "),
            '@' => words.push_str(" at "),
            '-' => words.push_str(" dash "),
            '_' => words.push_str(" underscore "),
            '0'..='9' => {
                words.push(' ');
                words.push_str(NAMES[usize::from(character as u8 - b'0')]);
                words.push(' ');
            }
            c if c.is_ascii_alphabetic() => words.push(c),
            _ => words.push(' '),
        }
    }
    let words = words.split_whitespace().map(|word| match word {
        "www" | "WWW" => "w w w",
        word => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

const NAMES: [&str; 10] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
];
