//! Addresses of mail and of pages, which are said with their dots.

use super::names::said_for;
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
    is_mail || host.starts_with("www.") || ends_well(host) || is_host_name(written)
}

/// A name of a host or a file, such as `db-1.internal` or `nginx.conf`: small letters and figures, and at least one letter in each part that is not a number.
fn is_host_name(written: &str) -> bool {
    let is_part = |part: &str| {
        let of_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !part.is_empty() && part.bytes().all(of_part)
    };
    let name = written.split(':').next().unwrap_or_default();
    let parts: Vec<_> = name.split('.').collect();
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
        return false;
    };
    let is_dotted = parts.len() > 1
        && last.len() > 1
        && last.bytes().all(|byte| byte.is_ascii_lowercase())
        && (first.len() > 1 || parts.len() > 2);
    // ip-10-0-1-23: figures that are no range.
    let numbers = name.split('-').skip(1);
    let is_numbered = parts.len() == 1
        && numbers
            .filter(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
            .count()
            > 1;
    parts.iter().all(|part| is_part(part)) && (is_dotted || is_numbered)
}

/// The words between the signs, and the signs that matter. What follows the host is not said: nobody could write it down.
fn said(written: &str) -> String {
    let address = written.split_once("://").map_or(written, |(_, rest)| rest);
    let address = address.split(['/', '?']).next().unwrap_or_default();
    let mut words = Vec::new();
    let mut rest = address;
    while let Some(first) = rest.chars().next() {
        let name = rest.split(|c: char| !c.is_ascii_alphanumeric()).next();
        let name = name.unwrap_or_default();
        if name.is_empty() {
            rest = &rest[first.len_utf8()..];
            words.extend(sign(first).map(str::to_owned));
        } else {
            rest = &rest[name.len()..];
            words.push(part(name));
        }
    }
    words.join(" ")
}

fn sign(character: char) -> Option<&'static str> {
    Some(match character {
        '.' => "dot",
        '@' => "at",
        '-' => "dash",
        '_' => "underscore",
        ':' => "port",
        _ => return None,
    })
}

/// Letters as they are written, digits one by one.
fn part(name: &str) -> String {
    if name.eq_ignore_ascii_case("www") {
        return "w w w".to_owned();
    }
    if let Some(said) = said_for(name) {
        return said.to_owned();
    }
    let mut words = String::new();
    for character in name.chars() {
        match character {
            '0'..='9' => {
                words.push(' ');
                words.push_str(NAMES[usize::from(character as u8 - b'0')]);
                words.push(' ');
            }
            letter => words.push(letter),
        }
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

const NAMES: [&str; 10] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
];
