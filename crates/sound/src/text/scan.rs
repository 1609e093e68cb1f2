//! Finds in a text what is a word, what is written in figures, and what is a mark.

mod address;
mod calendar;
mod clock;
mod context;
mod figures;
mod names;
mod telephone;

use self::context::ends_a_range;
use super::characters::{is_han, is_invisible, is_latin, plain};
use super::expression::{Expression, Symbol};
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
        if self.address() || self.initials() || self.number_plate() || self.known_word() {
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
        // "No." alone is an answer.
        let is_answer = word.eq_ignore_ascii_case("no") && !self.is_digit(1) && !self.is_digit(2);
        if self.peek(0) == Some('.')
            && !is_answer
            && let Some(whole) = abbreviated(word)
        {
            self.at += 1;
            return self.tokens.push(Token::Latin(whole.to_owned()));
        }
        self.tokens.push(Token::Latin(names::words_of(word)));
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
            '#' if self.is_digit(0) && !self.is_named(self.at - 1) => self.numbered(),
            _ => match self.symbol(character) {
                Some(symbol) => Token::Said(Expression::Symbol(symbol)),
                None => return,
            },
        };
        self.tokens.push(token);
    }

    /// Signs are said where they mean something, which depends on what is beside them.
    fn symbol(&mut self, character: char) -> Option<Symbol> {
        let digit_before = self.nearest_before().is_some_and(|c| c.is_ascii_digit());
        let digit_behind = self.nearest_behind().is_some_and(|c| c.is_ascii_digit());
        let before = self.at.checked_sub(2).map(|at| self.text[at]);
        let same_beside = self.peek(0) == Some(character) || before == Some(character);
        match character {
            '&' if !same_beside => Some(Symbol::And),
            // 上涨+3.5% says it twice.
            '+' if before.is_some_and(|before| "涨升增加幅".contains(before)) => None,
            '+' if digit_before || digit_behind => Some(Symbol::Plus),
            '=' if digit_before && digit_behind => Some(Symbol::Equals),
            '×' | '*' if digit_before && digit_behind && !same_beside => Some(Symbol::Times),
            // A star in a name hides a part of it.
            '*' if self.hides_name(before) => None,
            '*' if !same_beside && !digit_before && !digit_behind => Some(Symbol::Star),
            '#' if !same_beside && !digit_behind => Some(Symbol::Hash),
            '±' if digit_behind => Some(Symbol::PlusOrMinus),
            '≥' if digit_behind => Some(Symbol::AtLeast),
            '≤' if digit_behind => Some(Symbol::AtMost),
            '<' | '>' => self.comparison(character),
            '-' | '~' => self.range_or_about(character, before),
            _ => None,
        }
    }

    /// `> 90`, `>= 90`; not an arrow, and not markup.
    fn comparison(&mut self, character: char) -> Option<Symbol> {
        let or_equal = usize::from(self.peek(0) == Some('='));
        let blank = usize::from(self.peek(or_equal) == Some(' '));
        if !self.is_digit(or_equal + blank) {
            return None;
        }
        self.at += or_equal;
        Some(match (character, or_equal) {
            ('>', 0) => Symbol::MoreThan,
            ('>', _) => Symbol::AtLeast,
            (_, 0) => Symbol::LessThan,
            _ => Symbol::AtMost,
        })
    }

    fn range_or_about(&self, character: char, before: Option<char>) -> Option<Symbol> {
        let next = self.peek(0)?;
        let is_joined = before.is_some_and(|c| is_han(c) || c.is_ascii_digit());
        if is_joined && before.is_some_and(ends_a_range) && begins_range_end(next) {
            return Some(Symbol::To);
        }
        match character {
            '~' if is_joined && (is_han(next) || next.is_ascii_digit()) => Some(Symbol::To),
            '~' if next.is_ascii_digit() => Some(Symbol::About),
            _ => None,
        }
    }

    fn hides_name(&self, before: Option<char>) -> bool {
        before.is_some_and(|c| is_han(c) && c != '按') && self.peek(0) != Some('键')
    }

    fn nearest_before(&self) -> Option<char> {
        let before = self.text[..self.at.saturating_sub(1)].iter().rev();
        before.copied().find(|c| *c != ' ')
    }

    fn nearest_behind(&self) -> Option<char> {
        self.text[self.at..].iter().copied().find(|c| *c != ' ')
    }
}

/// What the second end of a range begins with: `11月15日-20日`, `周一-周五`, `上午9点-下午5点`.
fn begins_range_end(character: char) -> bool {
    character.is_ascii_digit() || "周星上下早晚中次明今".contains(character)
}

/// What is said for a word whose full stop does not end the sentence.
fn abbreviated(word: &str) -> Option<&str> {
    const WORDS: [&str; 8] = ["mr", "mrs", "ms", "dr", "st", "inc", "ltd", "prof"];
    const WHOLE: [(&str, &str); 6] = [
        ("no", "number"),
        ("ext", "extension"),
        ("rd", "Road"),
        ("ave", "Avenue"),
        ("vs", "versus"),
        ("co", "company"),
    ];
    if WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)) {
        return Some(word);
    }
    let whole = WHOLE
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(word));
    whole.map(|(_, whole)| *whole)
}
