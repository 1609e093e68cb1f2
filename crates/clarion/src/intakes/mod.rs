//! What monitoring tools say in their alerts, and how it is said by telephone. `formats` has one file for each tool, `speech` makes a text of an alert
//! that a sleepy person understands.
//!
//! It asks no database and places no calls: incidents and their notices are begun where requests come in (`api`).

pub mod alert;
pub mod formats;
pub mod speech;
