//! How long a statement may take, and what one that takes longer may have done.

use std::time::Duration;

use tokio::time::Instant;

/// How long the statements of a session may take.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimit {
    /// Each of them.
    pub statement: Duration,
    /// All of them, and the wait for a connection.
    pub until: Option<Instant>,
}

impl TimeLimit {
    pub fn each(statement: Duration) -> Self {
        Self {
            statement,
            until: None,
        }
    }

    pub fn until(self, until: Instant) -> Self {
        Self {
            until: Some(until),
            ..self
        }
    }

    /// The end of something that begins now and may take this long.
    pub(super) fn end_of(&self, duration: Duration) -> Instant {
        let end = Instant::now() + duration;
        self.until.map_or(end, |until| until.min(end))
    }
}

/// What a statement that gets no answer may have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing that lasts: it reads, or its transaction is not committed.
    Nothing,
    /// It may be there.
    Lasting,
}

impl Effect {
    /// Of a statement that is a transaction of its own. When in doubt, it changes something.
    pub fn of(sql: &str) -> Self {
        let changes = ["INSERT", "UPDATE", "DELETE", "pg_logical_emit_message"];
        if sql.starts_with("SELECT") || sql.starts_with("WITH") {
            let found = changes.iter().any(|word| sql.contains(word));
            return if found { Self::Lasting } else { Self::Nothing };
        }
        Self::Lasting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_nothing_has_no_effect() {
        for (sql, effect) in [
            ("SELECT 1", Effect::Nothing),
            (
                "WITH RECURSIVE x AS (SELECT 1) SELECT * FROM x",
                Effect::Nothing,
            ),
            ("WITH gone AS (DELETE FROM a) SELECT 1", Effect::Lasting),
            ("SELECT 1 FROM a FOR UPDATE", Effect::Lasting),
            (
                "SELECT pg_logical_emit_message(TRUE, '', '')",
                Effect::Lasting,
            ),
            ("UPDATE a SET b = 1", Effect::Lasting),
            ("COMMIT", Effect::Lasting),
            ("CREATE TABLE a ()", Effect::Lasting),
        ] {
            assert_eq!(Effect::of(sql), effect, "{sql}");
        }
    }
}
