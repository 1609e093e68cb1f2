//! What the tests through the front door stand on, as far as it is used here.

#[path = "../it/support/postgres.rs"]
pub mod postgres;
