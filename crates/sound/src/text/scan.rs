//! Finds in a text what is a word, what is written in figures, and what is a mark.

mod address;
mod calendar;
mod context;
mod figures;

use super::characters::{is_han, is_invisible, is_latin, plain};
use super::expression::{Expression, Symbol};
use super::numerals::DigitGroups;
use super::units::currency;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Han(String),
    Latin(String),
    Said(Expression),
    /// One of `, . ? !`.
    Mark(char),
}

/// A longer run of Han characters is cut, so that no phrase is unbounded.
const LONGEST_RUN: usize = 200;

pub(super) fn scan(text: &str) -> Vec<Token> {
    let text: Vec<char> = text
        .chars()
        .filter(|character| !is_invisible(*character))
        .map(plain)
        .collect();
    let mut scan = Scan {
        text: &text,
        at: 0,
        tokens: Vec::new(),
    };
    while let Some(character) = scan.peek(0) {
        let before = scan.at;
        scan.step(character);
        // Every step consumes something: a text ends.
        scan.at = scan.at.max(before + 1);
    }
    scan.tokens
}

struct Scan<'a> {
    text: &'a [char],
    at: usize,
    tokens: Vec<Token>,
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn before(&self) -> Option<char> {
        self.at.checked_sub(1).map(|at| self.text[at])
    }

    fn is_digit(&self, ahead: usize) -> bool {
        self.peek(ahead).is_some_and(|c| c.is_ascii_digit())
    }

    fn step(&mut self, character: char) {
        match character {
            _ if is_han(character) => self.han(),
            _ if is_latin(character) => self.latin(),
            _ if self.begins_figures(character) => self.figures(),
            _ => {
                self.at += 1;
                self.sign(character);
            }
        }
    }

    fn take_while(&mut self, limit: usize, belongs: impl Fn(char) -> bool) -> String {
        let rest = &self.text[self.at..];
        let length = rest
            .iter()
            .take(limit)
            .take_while(|character| belongs(**character))
            .count();
        self.at += length;
        rest[..length].iter().collect()
    }

    fn han(&mut self) {
        let word = self.take_while(LONGEST_RUN, is_han);
        self.tokens.push(Token::Han(word));
    }

    fn latin(&mut self) {
        if self.address() || self.initials() {
            return;
        }
        let word = self.take_while(LONGEST_RUN, |c| is_latin(c) || c == '\'');
        let word = word.trim_matches('\'');
        let blank = usize::from(self.peek(0) == Some(' '));
        if let Some(currency) = currency(word)
            && self.is_digit(blank)
        {
            self.at += blank;
            return self.money(currency);
        }
        if self.day_of(word) {
            return;
        }
        if self.is_digit(0) && word.chars().all(|c| c.is_ascii_uppercase()) {
            return self.identifier(word);
        }
        if self.peek(0) == Some('.') && is_abbreviation(word) {
            self.at += 1;
            if word.eq_ignore_ascii_case("no") {
                return self.tokens.push(Token::Latin("number".into()));
            }
        }
        self.tokens.push(Token::Latin(apart(word)));
    }

    /// Letters and figures without a blank: a flight, a number plate, an order. All of it is spelled.
    fn identifier(&mut self, letters: &str) {
        let spelled: Vec<String> = letters.chars().map(String::from).collect();
        self.tokens.push(Token::Latin(spelled.join(" ")));
        let digits = self.take_while(LONGEST_RUN, |c| c.is_ascii_digit());
        self.tokens
            .push(Token::Said(Expression::Digits(DigitGroups::of(&digits))));
    }

    /// Letters with a full stop behind each: `U.S.`, `e.g.`
    fn initials(&mut self) -> bool {
        let pair = |scan: &Self, at: usize| {
            scan.peek(at).is_some_and(is_latin) && scan.peek(at + 1) == Some('.')
        };
        if !(pair(self, 0) && pair(self, 2)) {
            return false;
        }
        let mut letters = Vec::new();
        while pair(self, 0) {
            letters.extend(self.peek(0).map(String::from));
            self.at += 2;
        }
        self.tokens.push(Token::Latin(letters.join(" ")));
        true
    }

    fn sign(&mut self, character: char) {
        let token = match character {
            ',' | ';' | ':' | '(' | ')' => Token::Mark(','),
            '/' if self.is_digit(0) => Token::Mark(','),
            '.' | '\n' => Token::Mark('.'),
            '?' | '!' => Token::Mark(character),
            _ => match self.symbol(character) {
                Some(symbol) => Token::Said(Expression::Symbol(symbol)),
                None => return,
            },
        };
        self.tokens.push(token);
    }

    /// Signs are said where they mean something, which depends on what is beside them.
    fn symbol(&self, character: char) -> Option<Symbol> {
        let digit_before = self.nearest_before().is_some_and(|c| c.is_ascii_digit());
        let digit_behind = self.nearest_behind().is_some_and(|c| c.is_ascii_digit());
        let same_beside =
            self.peek(0) == Some(character) || self.at >= 2 && self.text[self.at - 2] == character;
        match character {
            '&' if !same_beside => Some(Symbol::And),
            '+' if digit_before || digit_behind => Some(Symbol::Plus),
            '=' if digit_before && digit_behind => Some(Symbol::Equals),
            '×' | '*' if digit_before && digit_behind && !same_beside => Some(Symbol::Times),
            '*' if !same_beside && !digit_before && !digit_behind => Some(Symbol::Star),
            '#' if !same_beside && !digit_behind => Some(Symbol::Hash),
            '≥' if digit_behind => Some(Symbol::AtLeast),
            '≤' if digit_behind => Some(Symbol::AtMost),
            '>' | '<' => self.comparison(character),
            _ => None,
        }
    }

    /// `> 80` and `<= 5`, behind what is compared.
    fn comparison(&self, sign: char) -> Option<Symbol> {
        let rest = &self.text[self.at..];
        let or_equal = rest.first() == Some(&'=');
        let value = rest.iter().skip(usize::from(or_equal)).find(|c| **c != ' ');
        if !value.is_some_and(char::is_ascii_digit) || self.nearest_before().is_none() {
            return None;
        }
        Some(match (sign, or_equal) {
            ('>', false) => Symbol::Above,
            ('>', true) => Symbol::AtLeast,
            (_, false) => Symbol::Below,
            (_, true) => Symbol::AtMost,
        })
    }

    fn nearest_before(&self) -> Option<char> {
        let before = self.text[..self.at.saturating_sub(1)].iter().rev();
        before.copied().find(|c| *c != ' ')
    }

    fn nearest_behind(&self) -> Option<char> {
        self.text[self.at..].iter().copied().find(|c| *c != ' ')
    }
}

/// A name that is written of several words, such as `KubePodCrashLooping`, as these words. `iPhone` and `GitHub` are said as they are.
fn apart(word: &str) -> String {
    const FEWEST: usize = 3;
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for letter in word.chars() {
        if letter.is_uppercase() && before.is_lowercase() || words.is_empty() {
            words.push(String::new());
        }
        words.last_mut().expect("there is one").push(letter);
        before = letter;
    }
    if words.len() < FEWEST || words.iter().any(|word| word.len() < 2) {
        return word.to_owned();
    }
    words.join(" ")
}

/// Words whose full stop does not end the sentence.
fn is_abbreviation(word: &str) -> bool {
    const WORDS: [&str; 11] = [
        "mr", "mrs", "ms", "dr", "no", "st", "vs", "inc", "ltd", "co", "prof",
    ];
    WORDS.contains(&word.to_ascii_lowercase().as_str())
}
