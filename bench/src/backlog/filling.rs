//! Makes a queue long, with the store's own statements in large batches.

use std::sync::Arc;

use clarion::domain::notice::{Notice, Recipient};
use clarion::domain::phone_number::PhoneNumber;
use clarion::domain::request_key::AcceptedCall;
use clarion::store::{Database, postgres, sqlite};
use jiff::SignedDuration;

use crate::accepts::commits::commit;
use crate::accepts::customer::{BenchCustomer, EXPIRES_AFTER};
use crate::accepts::progress::Progress;
use crate::accepts::site::Site;

const STEP: u64 = 1_000;
/// Nobody else is called by this number.
const ONE_CALLEE: &str = "8613900000000";

/// What is special about the calls.
pub struct Filling {
    pub callee: Option<&'static str>,
    pub valid_for: SignedDuration,
    /// They are notices with somebody else to be called, and due after this time.
    pub notices_after: Option<SignedDuration>,
}

pub fn usual() -> Filling {
    Filling {
        callee: None,
        valid_for: EXPIRES_AFTER,
        notices_after: None,
    }
}

pub fn tomorrow() -> Filling {
    let day = SignedDuration::from_hours(24);
    Filling {
        valid_for: day + EXPIRES_AFTER,
        notices_after: Some(day),
        ..usual()
    }
}

pub fn to_one_callee() -> Filling {
    Filling {
        callee: Some(ONE_CALLEE),
        ..usual()
    }
}

pub async fn fill(
    site: &Site,
    customer: &BenchCustomer,
    calls: u64,
    filling: &Filling,
) -> anyhow::Result<()> {
    let mut progress = Progress::of("queued calls", calls);
    let mut done = 0;
    while done < calls {
        let step = STEP.min(calls - done);
        let orders: Vec<_> = (0..step).map(|_| order(customer, filling)).collect();
        match &site.database {
            Database::Sqlite(path) => commit(&sqlite::connect(path)?, &orders)?,
            Database::Postgres(config) => {
                let client = postgres::connect(config).await?;
                postgres::accept::insert(&client, &orders).await?;
            }
        }
        done += step;
        progress.show(done);
    }
    site.analyze().await
}

fn order(customer: &BenchCustomer, filling: &Filling) -> AcceptedCall {
    let mut order = customer.order();
    order.queueing.valid_for = filling.valid_for;
    if let Some(callee) = filling.callee {
        order.call.number = PhoneNumber::from_stored(callee.to_owned(), None);
        callee.clone_into(&mut order.call.callee);
    }
    if let Some(pause) = filling.notices_after {
        let to = |number: PhoneNumber| Recipient {
            called: number.digits().to_owned(),
            callee: number.digits().to_owned(),
            number,
            caller: None,
        };
        let backup = PhoneNumber::from_stored(ONE_CALLEE.to_owned(), None);
        let notice = Notice {
            numbers: vec![to(order.call.number.clone()), to(backup)],
            ..Notice::single()
        };
        order.queueing.pause = pause;
        order.queueing.patience = notice.patience(&order.call.number, &[]);
        order.call.notice = Some(Arc::new(notice));
    }
    order
}
