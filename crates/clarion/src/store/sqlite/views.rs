//! What operators look at, in SQLite.

use async_trait::async_trait;
use jiff::civil::Date;
use rusqlite::{Connection, ToSql, params, params_from_iter};

use super::SqliteStore;
use super::query::Query;
use crate::domain::account::{AccountSid, AppId};
use crate::domain::bill::BillLine;
use crate::domain::call::{CallSid, NewCall};
use crate::domain::call_record::{CallFilter, CallPage, CallRecord};
use crate::domain::callback::Callback;
use crate::domain::claim::NodeId;
use crate::store::StoreError;
use crate::store::binding::Bind;
use crate::store::columns::Columns;
use crate::store::statements::views::{self, WANTED};
use crate::store::statements::{accounts, bill_lines, callbacks, records, sqlite};
use crate::store::views::{
    BilledAccount, CallStretch, CallWalk, DayTotals, OperatorViews, OwedCallbacks, QueueOverview,
    SeenNode, WantedOwed,
};

const APP_SIDS: &str = sqlite!(
    "SELECT call_sid FROM calls INDEXED BY calls_by_app WHERE app_id = $4 AND call_sid < $1 AND call_sid >= $2 ORDER BY call_sid DESC LIMIT $3"
);
const NUMBER_SIDS: &str = sqlite!(
    "SELECT call_sid FROM calls INDEXED BY calls_by_number WHERE number = $4 AND call_sid < $1 AND call_sid >= $2 ORDER BY call_sid DESC LIMIT $3"
);
const WANTED_CALL: &str = sqlite!(
    records::RECORD,
    " LEFT JOIN call_queue AS queue USING (call_sid) WHERE call_sid = $1",
    WANTED
);
const WAITING: &str = sqlite!(views::WAITING, "$1", views::OF_WAITING);
const NODES: &str = sqlite!(views::NODES, "$1", views::OF_NODES);

#[async_trait]
impl OperatorViews for SqliteStore {
    async fn list_calls(&self, filter: CallFilter) -> Result<CallPage, StoreError> {
        self.read(move |db| list(db, &filter)).await
    }

    async fn accepted_call(&self, sid: &CallSid) -> Result<Option<NewCall>, StoreError> {
        let sid = sid.clone();
        self.read(move |db| {
            db.row(views::ACCEPTED.sqlite, [sid.as_str()], |row| {
                views::accepted(row)
            })
        })
        .await
    }

    async fn callbacks_of(&self, sid: &CallSid, limit: u32) -> Result<Vec<Callback>, StoreError> {
        let sid = sid.clone();
        self.read(move |db| {
            let values = params![sid.as_str(), limit];
            db.rows(callbacks::OF_CALL.sqlite, values, |row| {
                callbacks::callback(row)
            })
        })
        .await
    }

    async fn bill_lines_of(&self, sid: &CallSid) -> Result<Vec<BillLine>, StoreError> {
        let ids = views::line_ids(sid);
        self.read(move |db| db.rows(views::LINES.sqlite, ids, |row| bill_lines::line(row)))
            .await
    }

    async fn nodes(&self) -> Result<Vec<SeenNode>, StoreError> {
        let now = self.clock.now();
        self.read(move |db| db.rows(NODES, [now], |row| views::node(row)))
            .await
    }

    async fn tell_concerns(&self, node: &NodeId, concerns: String) -> Result<bool, StoreError> {
        let node = node.clone();
        self.write_beside(move |db| {
            Ok(db.run(views::TELL_CONCERNS.sqlite, [node.as_str(), &concerns])? > 0)
        })
        .await
    }

    async fn accepted_since(&self, sid: &CallSid) -> Result<u64, StoreError> {
        let sid = sid.to_string();
        self.read(move |db| {
            let counted = db.row(views::ACCEPTED_SINCE.sqlite, [sid], |row| views::count(row))?;
            Ok(counted.unwrap_or_default())
        })
        .await
    }

    async fn queue_overview(&self) -> Result<QueueOverview, StoreError> {
        let now = self.clock.now();
        self.read(move |db| {
            let waiting = db.rows(WAITING, [now], |row| views::waiting(row))?;
            let running = db.rows(views::RUNNING.sqlite, [], |row| views::running(row))?;
            Ok(QueueOverview::new(waiting, running))
        })
        .await
    }

    async fn owed_callbacks(&self, wanted: WantedOwed) -> Result<OwedCallbacks, StoreError> {
        self.read(move |db| {
            let found = db.rows(views::RECEIVERS.sqlite, [wanted.receivers], |row| {
                let of_all = views::all_receivers(row)?;
                Ok((row.string(0)?, views::receiver(row)?, of_all))
            })?;
            let mut owed = OwedCallbacks::default();
            let since = params![wanted.given_up_since.as_str(), wanted.given_up_limit];
            let given_up = db.row(views::GIVEN_UP_SINCE.sqlite, since, |row| views::count(row))?;
            owed.given_up = given_up.unwrap_or_default();
            for (stored, mut receiver, of_all) in found {
                let last = db.row(views::LAST_DUE.sqlite, [&stored], |row| {
                    Ok((callbacks::key(row)?, row.number(2)?))
                })?;
                if let Some((key, failures)) = last {
                    receiver.failures = failures;
                    let key = params![key.call.as_str(), key.seq];
                    receiver.last_attempt = db.row(views::LAST_ATTEMPT.sqlite, key, |row| {
                        callbacks::attempt(row)
                    })?;
                }
                owed.add(receiver, of_all);
            }
            Ok(owed)
        })
        .await
    }

    async fn billed_accounts(
        &self,
        from: Date,
        to: Date,
    ) -> Result<Vec<BilledAccount>, StoreError> {
        let days = [from, to].map(|day| day.to_string());
        self.read(move |db| db.rows(views::BILLED.sqlite, days, |row| views::billed(row)))
            .await
    }

    async fn billed_days(&self) -> Result<Vec<DayTotals>, StoreError> {
        self.read(|db| db.rows(views::DAY_TOTALS.sqlite, [], |row| views::day_totals(row)))
            .await
    }
}

fn list(db: &Connection, filter: &CallFilter) -> Result<CallPage, StoreError> {
    let apps = if CallWalk::needs_apps(filter) {
        let account = filter.account.iter().map(AccountSid::as_str);
        let read = |row: &rusqlite::Row<'_>| accounts::app_id(row);
        db.rows(accounts::APP_IDS.sqlite, params_from_iter(account), read)?
    } else {
        Vec::new()
    };
    let walk = CallWalk::new(filter, || apps);
    let stretch = CallStretch::new(&walk, filter, walked(db, &walk, filter)?);
    let mut calls = Vec::new();
    let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    for sid in &stretch.sids {
        if calls.len() >= limit {
            break;
        }
        calls.extend(wanted(db, sid, filter)?);
    }
    Ok(stretch.page(calls, filter.limit))
}

/// The callSids of each part of a walk.
fn walked(
    db: &Connection,
    walk: &CallWalk,
    filter: &CallFilter,
) -> Result<Vec<Vec<CallSid>>, StoreError> {
    let ((before, from), limit) = (views::ends(filter), walk.wanted(filter));
    let of = |statement: &str, key: Option<&str>| {
        let mut values: Vec<&dyn ToSql> = vec![&before, &from, &limit];
        values.extend(key.as_ref().map(|key| key as &dyn ToSql));
        db.rows(statement, &values[..], |row| views::sid(row))
    };
    match walk {
        CallWalk::All => Ok(vec![of(views::ALL_SIDS.sqlite, None)?]),
        CallWalk::Alive => Ok(vec![of(views::ALIVE_SIDS.sqlite, None)?]),
        CallWalk::Running => Ok(vec![of(views::RUNNING_SIDS.sqlite, None)?]),
        CallWalk::To(number) => Ok(vec![of(NUMBER_SIDS, Some(number))?]),
        CallWalk::Of(apps) => {
            let apps = apps.iter().map(AppId::as_str);
            apps.map(|app| of(APP_SIDS, Some(app))).collect()
        }
    }
}

/// A call, if it is one of those that are asked for.
fn wanted(
    db: &Connection,
    sid: &CallSid,
    filter: &CallFilter,
) -> Result<Option<CallRecord>, StoreError> {
    let values = [Bind::of(sid.as_str())].into_iter();
    let values = params_from_iter(values.chain(views::wanted(filter)));
    db.row(WANTED_CALL, values, |row| records::record(row))
}
