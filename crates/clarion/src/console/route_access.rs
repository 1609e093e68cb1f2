//! Who may ask for a route.

use crate::domain::operator::OperatorRole;

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteAccess {
    /// Also who is not signed in.
    Anybody,
    Role(OperatorRole),
}
