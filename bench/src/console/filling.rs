//! What the console has to look through: a long past, its youngest callbacks, and many customers.

use clarion::clock::Clock;
use clarion::domain::account::{Account, Application};
use clarion::random;
use clarion::store::{Database, sqlite};
use supervisor::Supervisor;

use crate::accepts::customer::BenchCustomer;
use crate::accepts::history::{self, PastCall};
use crate::accepts::site::{Site, connect};

/// Callbacks are kept for less time than calls are.
const CALLBACKS: u64 = 2_000_000;

/// One call of the past in so many has a callback that was given up, and one in so many a callback that waits until tomorrow.
const GIVEN_UP: u32 = 200;
const WAITING: u32 = 1_000;

pub async fn fill(
    site: &Site,
    customer: &BenchCustomer,
    calls: u64,
    accounts: u32,
) -> anyhow::Result<PastCall> {
    add_customers(site, &customer.clock, accounts).await?;
    let past = history::fill(site, customer, calls).await?;
    let tomorrow = customer.clock.now().as_millisecond() + 86_400_000;
    let fill = format!(
        "INSERT INTO callbacks (call_sid, seq, app_id, webhook_id, host, url, body, state, attempts, failures, owed_at, due_at, expires_at, finished_at) \
         SELECT call_sid, 0, app_id, 'msg_' || call_sid, 'receiver-' || (ended_at % 20) || '.example', resp_url, '<request></request>', \
           CASE WHEN ended_at % {GIVEN_UP} = 0 THEN 3 WHEN ended_at % {WAITING} = 1 THEN 0 ELSE 2 END, 1, 0, ended_at, \
           CASE WHEN ended_at % {WAITING} = 1 THEN {tomorrow} END, {tomorrow} + 86400000, \
           CASE WHEN ended_at % {WAITING} <> 1 THEN ended_at + 40 END \
         FROM calls ORDER BY call_sid DESC LIMIT {}",
        CALLBACKS.min(calls)
    );
    println!("  filling in callbacks");
    match &site.database {
        Database::Sqlite(path) => {
            let connection = sqlite::connect(path)?;
            for statement in [&*fill, "ANALYZE", "PRAGMA wal_checkpoint(TRUNCATE)"] {
                connection.execute_batch(statement)?;
            }
        }
        Database::Postgres(config) => {
            let client = connect(config.url()).await?;
            for statement in [&*fill, "VACUUM ANALYZE callbacks", "CHECKPOINT"] {
                client.batch_execute(statement).await?;
            }
        }
    }
    Ok(past)
}

/// Each with an application.
async fn add_customers(site: &Site, clock: &Clock, accounts: u32) -> anyhow::Result<()> {
    let store = site.database.open(&Supervisor::new()).await?;
    for number in 0..accounts {
        let other = BenchCustomer::new(clock.clone());
        let account = Account {
            name: format!("Customer {number} {}", random::id()),
            ..other.account()
        };
        store.add_account(account).await?;
        let application = Application {
            name: format!("Application {number}"),
            ..other.application()
        };
        store.add_application(application).await?;
    }
    store.close().await;
    Ok(())
}
