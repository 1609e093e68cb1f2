//! The words that stand in statements as `{name}`: the numbers of states, and what the two dialects spell differently.

use super::Dialect;
use super::queue::Waiting;
use crate::domain::account::AccountState;
use crate::domain::call_state::CallState;
use crate::domain::callback::CallbackState;

/// A name, what it is in SQLite, and what it is in PostgreSQL.
type Name = (&'static str, &'static str, &'static str);

/// States stand in the text, not in parameters: only then are the partial indices used.
const NAMES: &[Name] = &[
    // A call in the queue. Whoever is further than this is held by a node.
    same("queued", number(CallState::Queued as i16)),
    same("claimed", number(CallState::Claimed as i16)),
    same("answered", number(CallState::Answered as i16)),
    same("ended", number(CallState::Ended as i16)),
    // Where a call waits. One that is held and not set aside keeps its callee busy.
    // So long an event is tried, and so many a call may have.
    same("event_time", "60000"),
    same("most_events", "1000"),
    same("in_lane", number(Waiting::InLane as i16)),
    same("parked", number(Waiting::Parked as i16)),
    same("set_aside", number(Waiting::SetAside as i16)),
    // A callback. From delivered on it is settled.
    same("waiting", number(CallbackState::Waiting as i16)),
    same("delivering", number(CallbackState::Delivering as i16)),
    same("delivered", number(CallbackState::Delivered as i16)),
    same("given_up", number(CallbackState::GivenUp as i16)),
    same("superseded", number(CallbackState::Superseded as i16)),
    same("active", AccountState::Active.as_str()),
    // Milliseconds.
    same("minute", "60000"),
    same("hour", "3600000"),
    same("day", "86400000"),
    // Later than any other.
    same("last_moment", "9223372036854775807"),
    // Whoever has been gone for this long has been hung up on.
    same("moment", "5000"),
    // No INVITE leaves with less than this left on the lease: whoever takes the call over must find that it was dialled.
    same("margin", "500"),
    // One process writes to SQLite at a time, so nothing has to be locked there.
    ("for_update", "", " FOR UPDATE"),
    ("for_share", "", " FOR SHARE"),
    ("skip_locked", "", " FOR UPDATE SKIP LOCKED"),
    ("is_cancelled", "cancelled = 1", "cancelled"),
    // Whatever becomes of the talk: the operator or the application has ended it.
    same(
        "is_called_off",
        "(cancelled AND NOT resolved AND NOT cancel_before_answer)",
    ),
    ("greatest", "max", "greatest"),
    // Who holds the one call that a statement names. PostgreSQL would otherwise look among all calls that the node holds, by a plan that was made while it
    // held none.
    ("holder", "node", "coalesce(node, '')"),
    // The order of bytes, as SQLite has it by itself, and not that of some language.
    ("bytewise", "", " COLLATE \"C\""),
    // The database's own clock, in milliseconds, as it stood when the statement came: only what stays the same throughout a statement can be
    // looked up in an index. SQLite has no clock but the caller's.
    (
        "now",
        "",
        "(extract(epoch FROM statement_timestamp()) * 1000)::bigint",
    ),
];

const fn same(name: &'static str, text: &'static str) -> Name {
    (name, text, text)
}

const fn number(number: i16) -> &'static str {
    match number {
        0 => "0",
        1 => "1",
        2 => "2",
        3 => "3",
        4 => "4",
        5 => "5",
        _ => panic!("no statement needs this number yet"),
    }
}

/// What the name means that begins at this brace, and where the text goes on.
pub(super) const fn word(text: &[u8], brace: usize, dialect: Dialect) -> (&'static [u8], usize) {
    let mut row = 0;
    while row < NAMES.len() {
        let (name, sqlite, postgres) = NAMES[row];
        if stands_at(text, brace + 1, name.as_bytes()) {
            let meaning = match dialect {
                Dialect::Sqlite => sqlite,
                Dialect::Postgres => postgres,
            };
            return (meaning.as_bytes(), brace + name.len() + 2);
        }
        row += 1;
    }
    panic!("a statement uses a name that is not in the table");
}

/// Whether the name stands here, up to its closing brace.
const fn stands_at(text: &[u8], start: usize, name: &[u8]) -> bool {
    let end = start + name.len();
    if end >= text.len() || text[end] != b'}' {
        return false;
    }
    let mut at = 0;
    while at < name.len() {
        if text[start + at] != name[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::callback::{EVENT_TIME, MAX_EVENTS};

    #[test]
    fn what_stands_in_statements_is_what_the_domain_says() {
        let meaning = |name: &str| {
            let row = NAMES.iter().find(|(known, ..)| *known == name);
            row.unwrap().1.to_owned()
        };
        assert_eq!(meaning("event_time"), EVENT_TIME.as_millis().to_string());
        assert_eq!(meaning("most_events"), MAX_EVENTS.to_string());
    }
}
