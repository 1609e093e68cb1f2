//! What a look at the database has found.

use jiff::Timestamp;

use crate::domain::wording::Wording;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The schema's version; 0 where nothing has been made yet.
    pub version: usize,
    /// Whether this program can work with it, or bring it up to date.
    pub is_usable: bool,
    /// The version that this program wants.
    pub wanted: usize,
    /// The database's own time, where it has a clock of its own.
    pub now: Option<Timestamp>,
    /// What endangers accepted calls, each in a sentence.
    pub dangers: Vec<Wording>,
    /// What is broken in the file, as SQLite says it.
    pub damage: Option<String>,
    /// How it was reached, where it is reached over a network.
    pub route: Option<DatabaseRoute>,
}

/// The way to a database on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseRoute {
    /// The host that was taken.
    pub host: String,
    /// The version of TLS; `None`: what is sent can be read on the way.
    pub encryption: Option<String>,
    /// Whether the server's certificate was verified.
    pub verified: bool,
    pub on_this_machine: bool,
    /// Where there are several: each host, and what it is or why it cannot be asked.
    pub hosts: Vec<(String, Result<Wording, String>)>,
}
