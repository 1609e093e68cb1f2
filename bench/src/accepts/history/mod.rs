//! A long past: ended calls and their bill lines, written as quickly as each database can take them.

mod past;
mod postgres;
mod sqlite;

use clarion::store::Database;

use self::past::Past;
pub use self::past::PastCall;
use super::customer::BenchCustomer;
use super::progress::Progress;
use super::site::Site;

/// On the disk, with indices, what is free in pages, and PostgreSQL's log on top.
pub const BYTES_PER_CALL: u64 = 1_600;
/// Calls written together: large enough to be quick, small enough to show progress.
const STEP: u64 = 50_000;

/// Fills in so many calls, and tells one from their middle.
pub async fn fill(site: &Site, customer: &BenchCustomer, calls: u64) -> anyhow::Result<PastCall> {
    let past = Past::new(customer, calls);
    let mut progress = Progress::of("ended calls", calls);
    match &site.database {
        Database::Sqlite(path) => sqlite::fill(path, &past, &mut progress)?,
        Database::Postgres(config) => {
            postgres::fill(config.url(), &past, &mut progress).await?;
        }
    }
    Ok(past.call(calls / 2))
}

/// The calls of the past in steps.
fn steps(calls: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    (0..calls)
        .step_by(usize::try_from(STEP).unwrap_or(usize::MAX))
        .map(move |from| from..(from + STEP).min(calls))
}
