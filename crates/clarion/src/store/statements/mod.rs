//! The statements that both databases understand, each said once, with what its rows are read into and the values that it is given.
//!
//! A statement is written with `$n`. SQLite takes `$n` for a name and numbers the names as they first appear, which is silently wrong, so
//! its text has `?n` instead. `{name}` stands for a word of `names`: the number of a state, or a word that the two dialects spell
//! differently. Both texts are made when the program is compiled: nothing is translated or put together while it runs.
//!
//! Statements that differ in more than a word stay with their dialect, written by `sqlite!` and `postgres!` in the same way.

pub mod accounts;
pub mod audio_files;
pub mod audit_trail;
pub mod bill_files;
pub mod bill_lines;
pub mod call_lists;
pub mod callback_list;
pub mod callbacks;
pub mod do_not_call;
pub mod intakes;
pub mod legs;
mod names;
pub mod notices;
pub mod operators;
pub mod queue;
pub mod rates;
pub mod records;
pub mod requests;
pub mod views;

use self::names::word;

/// Proves that a commit can be made durable.
pub const PROBE: Statement = statement!("UPDATE probe SET writes = writes + 1");

/// The fewest migrations that a program must know to work with this schema.
pub const OLDEST_PROGRAM: Statement = statement!("SELECT oldest_program FROM schema_info");
pub const SET_OLDEST_PROGRAM: Statement = statement!("UPDATE schema_info SET oldest_program = $1");

/// One statement in the words of each database.
#[derive(Debug, Clone, Copy)]
pub struct Statement {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

/// The text of one dialect, from pieces.
macro_rules! in_dialect {
    ($dialect:ident, $($piece:expr),+) => {{
        use $crate::store::statements::{Dialect, as_text, expand};
        const PIECES: &[&str] = &[$($piece),+];
        const LENGTH: usize = expand::<0>(PIECES, Dialect::$dialect).1;
        const BYTES: [u8; LENGTH] = expand::<LENGTH>(PIECES, Dialect::$dialect).0;
        as_text(&BYTES)
    }};
}

macro_rules! sqlite {
    ($($piece:expr),+ $(,)?) => { $crate::store::statements::in_dialect!(Sqlite, $($piece),+) };
}

macro_rules! postgres {
    ($($piece:expr),+ $(,)?) => { $crate::store::statements::in_dialect!(Postgres, $($piece),+) };
}

macro_rules! statement {
    ($($piece:expr),+ $(,)?) => {
        $crate::store::statements::Statement {
            sqlite: $crate::store::statements::in_dialect!(Sqlite, $($piece),+),
            postgres: $crate::store::statements::in_dialect!(Postgres, $($piece),+),
        }
    };
}

use statement;
pub(super) use {in_dialect, postgres, sqlite};

/// The text of one dialect and its length. What does not fit is counted but not written, so that the first call can ask for the length.
pub const fn expand<const N: usize>(pieces: &[&str], dialect: Dialect) -> ([u8; N], usize) {
    let (mut bytes, mut length) = ([0; N], 0);
    let mut piece = 0;
    while piece < pieces.len() {
        let text = pieces[piece].as_bytes();
        let (mut at, mut quoted) = (0, false);
        while at < text.len() {
            if text[at] == b'{' {
                let (word, after) = word(text, at, dialect);
                let mut copied = 0;
                while copied < word.len() {
                    put(&mut bytes, &mut length, word[copied]);
                    copied += 1;
                }
                at = after;
            } else {
                quoted ^= text[at] == b'\'';
                let marker = !quoted && text[at] == b'$' && matches!(dialect, Dialect::Sqlite);
                put(
                    &mut bytes,
                    &mut length,
                    if marker { b'?' } else { text[at] },
                );
                at += 1;
            }
        }
        piece += 1;
    }
    (bytes, length)
}

const fn put(bytes: &mut [u8], length: &mut usize, byte: u8) {
    if *length < bytes.len() {
        bytes[*length] = byte;
    }
    *length += 1;
}

pub const fn as_text(bytes: &[u8]) -> &str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("a statement is cut only between letters"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_database_gets_its_own_words() {
        const PIECES: Statement = statement!(
            "SELECT '$1.x', state FROM calls WHERE called = $12 AND state = {queued} ",
            "AND owner = $2{for_update} AND '}' <> $3"
        );
        assert_eq!(
            PIECES.sqlite,
            "SELECT '$1.x', state FROM calls WHERE called = ?12 AND state = 0 AND owner = ?2 AND '}' <> ?3"
        );
        assert_eq!(
            PIECES.postgres,
            "SELECT '$1.x', state FROM calls WHERE called = $12 AND state = 0 AND owner = $2 FOR UPDATE AND '}' <> $3"
        );
    }
}
