//! What the console has to look through: a long past, its youngest callbacks, and many customers.

use clarion::clock::Clock;
use clarion::config::Config;
use clarion::domain::account::{Account, Application};
use clarion::domain::call_list::{CallList, ListedNumber};
use clarion::domain::do_not_call::DoNotCallSource;
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
const LISTS: u32 = 50;
const PEOPLE: u32 = 20;

pub async fn fill(
    site: &Site,
    customer: &BenchCustomer,
    calls: u64,
    accounts: u32,
) -> anyhow::Result<PastCall> {
    add_customers(site, &customer.clock, accounts).await?;
    add_numbers(site, customer, calls).await?;
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

/// Lists of people, and numbers that want no more calls: one for a hundred calls of the past.
async fn add_numbers(site: &Site, customer: &BenchCustomer, calls: u64) -> anyhow::Result<()> {
    let store = site.database.open(&Supervisor::new()).await?;
    let (account, now) = (&customer.credentials.sid, customer.clock.now());
    let plan = Config::from_parts("", &[])?.numbers;
    for list in 0..LISTS {
        let people =
            (0..PEOPLE).map(|person| format!("1380000{list:02}{person:02}=Person {person}"));
        let people = people.map(|person| ListedNumber::parse(&person, &plan));
        let people = people
            .collect::<Result<_, _>>()
            .map_err(anyhow::Error::msg)?;
        let name = format!("team-{list}").parse().map_err(anyhow::Error::msg)?;
        let list = CallList::new(account.clone(), name, people, now).map_err(anyhow::Error::msg)?;
        store.add_list(list).await?;
    }
    let numbers: Vec<_> = (0..calls / 100)
        .map(|number| format!("8613{number:09}"))
        .collect();
    for numbers in numbers.chunks(10_000) {
        let added =
            store.add_do_not_call(account, numbers.to_vec(), DoNotCallSource::Operator, now);
        added.await?;
    }
    store.close().await;
    Ok(())
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
