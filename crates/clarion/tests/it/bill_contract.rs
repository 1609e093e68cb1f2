//! What every store promises about money: rates, reservations, days that stay closed. One suite, run on SQLite and on PostgreSQL.

mod days;
mod files;
mod lines;
mod rates;
mod reservations;

use clarion::domain::account::{AccountChange, AccountSid};
use clarion::domain::bill::rating::{Funds, Rate};
use clarion::store::Store;
use jiff::Timestamp;

use crate::support::SID;
use crate::support::bills::{at, money};

const NUMBER: &str = "8613800000000";

fn now() -> Timestamp {
    at("2026-11-15T12:00:00+08:00")
}

fn account() -> AccountSid {
    SID.parse().unwrap()
}

fn rate(prefix: &str, unit_seconds: u32, price: &str, unanswered: &str) -> Rate {
    Rate {
        prefix: prefix.parse().unwrap(),
        unit_seconds,
        price: money(price),
        unanswered: money(unanswered),
    }
}

async fn limit(store: &dyn Store, balance: Option<&str>, spending_limit: Option<&str>) {
    let change = AccountChange {
        balance: Some(balance.map(money)),
        spending_limit: Some(spending_limit.map(money)),
        ..AccountChange::default()
    };
    store.change_account(&account(), change).await.unwrap();
}

async fn funds(store: &dyn Store) -> Funds {
    store.funds(&account()).await.unwrap().unwrap()
}
