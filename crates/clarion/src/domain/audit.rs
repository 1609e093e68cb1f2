//! Who changed what and when.

use jiff::Timestamp;

/// Who wants a change: an operator of the console, or a user of the machine with the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Actor {
    pub operator: Option<String>,
    pub system_user: Option<String>,
    pub address: Option<String>,
}

/// A change as it was asked for. It is noted before it is made, so that none is made that is not noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub at: Timestamp,
    pub actor: Actor,
    /// What kind of change, such as `account set`.
    pub action: String,
    /// The whole of it, without its secrets.
    pub detail: String,
    /// A second entry says why it was not done, or not all of it, where that was so.
    pub failure: Option<String>,
}

/// An entry where it stands in the trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLine {
    /// Later ones have higher numbers.
    pub number: i64,
    pub entry: AuditEntry,
}

/// Which entries are wanted, the newest first.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub since: Option<Timestamp>,
    /// Only entries before this number, for the next page.
    pub before: Option<i64>,
    /// The operator or the user of the machine, by the whole name; of a user who has become another one, either.
    pub by: Option<String>,
    /// What action or detail contains.
    pub about: Option<String>,
    pub limit: u32,
}
