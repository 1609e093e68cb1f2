//! A change in the words of the command that makes it: what the audit trail keeps. Secrets are never among them.

use std::fmt;

/// A longer text is cut off.
const LONGEST: usize = 4000;
/// Stands for a secret.
pub const HIDDEN: &str = "(hidden)";

/// A change as it will be noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotedChange {
    action: &'static str,
    words: Vec<String>,
}

impl NotedChange {
    /// `action` is the command, such as `account set`.
    pub fn new(action: &'static str) -> Self {
        Self {
            action,
            words: Vec::new(),
        }
    }

    pub fn action(&self) -> &'static str {
        self.action
    }

    #[must_use]
    pub fn on(mut self, what: impl fmt::Display) -> Self {
        self.words.push(quoted(&what.to_string()));
        self
    }

    #[must_use]
    pub fn on_all(self, what: impl IntoIterator<Item = impl fmt::Display>) -> Self {
        what.into_iter().fold(self, Self::on)
    }

    /// An option with its value.
    #[must_use]
    pub fn with(mut self, option: impl fmt::Display, value: impl fmt::Display) -> Self {
        self.words.push(format!("--{option}"));
        self.on(value)
    }

    /// An option with its value, where there is one.
    #[must_use]
    pub fn with_any(self, option: &str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.with(option, value),
            None => self,
        }
    }

    /// An option whose value is a secret.
    #[must_use]
    pub fn with_secret(mut self, option: &str) -> Self {
        self.words.extend([format!("--{option}"), HIDDEN.into()]);
        self
    }

    /// An option without a value, where it holds.
    #[must_use]
    pub fn where_so(mut self, option: &str, holds: bool) -> Self {
        if holds {
            self.words.push(format!("--{option}"));
        }
        self
    }

    /// The whole of it.
    pub fn words(&self) -> String {
        let mut words = vec![self.action];
        words.extend(self.words.iter().map(String::as_str));
        cut(words.join(" "))
    }
}

/// A text of at most so many characters as are kept.
pub fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// A word, in quotation marks where it needs them.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:,+@=*".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("{word:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_in_the_words_of_its_command() {
        let change = NotedChange::new("account set")
            .on("a7")
            .with("name", "A \"B\"\n")
            .with_any("balance", None::<u8>)
            .with_secret("token")
            .where_so("hang-up", true)
            .where_so("json", false);
        assert_eq!(
            change.words(),
            "account set a7 --name \"A \\\"B\\\"\\n\" --token (hidden) --hang-up"
        );
        let long = NotedChange::new("call bar").on("字".repeat(9000));
        assert_eq!(long.words().chars().count(), LONGEST + 1);
    }
}
