//! What operators look at, in PostgreSQL. Every statement is planned anew with its values: a plan that was made for a busy application would read all calls
//! for an idle one.

use async_trait::async_trait;
use jiff::civil::Date;

use super::{PooledSession, PostgresStore, bound};
use crate::domain::account::{AccountSid, AppId};
use crate::domain::bill::BillLine;
use crate::domain::call::{CallSid, NewCall};
use crate::domain::call_record::{CallFilter, CallPage, CallRecord};
use crate::domain::callback::{Callback, CallbackKey};
use crate::domain::claim::NodeId;
use crate::store::StoreError;
use crate::store::binding::Bind;
use crate::store::columns::Columns;
use crate::store::statements::views::{self, WANTED};
use crate::store::statements::{accounts, bill_lines, callbacks, postgres, records};
use crate::store::views::{
    BilledAccount, CallStretch, CallWalk, DayTotals, OperatorViews, OwedCallbacks, QueueOverview,
    SeenNode, WantedOwed,
};

/// Each application's own, by its place among them.
const APP_SIDS: &str = postgres!(
    "SELECT part.place, found.call_sid FROM unnest(CAST($4 AS TEXT[])) WITH ORDINALITY AS part (app, place) \
     CROSS JOIN LATERAL (SELECT call_sid FROM calls WHERE app_id = part.app AND call_sid COLLATE \"POSIX\" < $1 \
       AND call_sid COLLATE \"POSIX\" >= $2 ORDER BY call_sid COLLATE \"POSIX\" DESC LIMIT $3) AS found"
);
const NUMBER_SIDS: &str = postgres!(
    "SELECT call_sid FROM calls WHERE number = $4 AND call_sid COLLATE \"POSIX\" < $1 AND call_sid COLLATE \"POSIX\" >= $2 \
     ORDER BY call_sid COLLATE \"POSIX\" DESC LIMIT $3"
);
const WANTED_CALLS: &str = postgres!(
    records::RECORD,
    " LEFT JOIN call_queue AS queue USING (call_sid) WHERE call_sid = ANY($1)",
    WANTED,
    " ORDER BY call_sid DESC"
);
const WAITING: &str = postgres!(views::WAITING, "{now}", views::OF_WAITING);
const NODES: &str = postgres!(views::NODES, "{now}", views::OF_NODES);
/// Calls that are looked at by one statement.
const BATCH: usize = 500;

#[async_trait]
impl OperatorViews for PostgresStore {
    async fn list_calls(&self, filter: CallFilter) -> Result<CallPage, StoreError> {
        let client = self.client().await?;
        let apps = match &filter.account {
            Some(account) if CallWalk::needs_apps(&filter) => apps_of(&client, account).await?,
            _ => Vec::new(),
        };
        let walk = CallWalk::new(&filter, || apps);
        let stretch = CallStretch::new(&walk, &filter, walked(&client, &walk, &filter).await?);
        let mut calls = Vec::new();
        let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        for sids in stretch.sids.chunks(BATCH) {
            calls.extend(wanted(&client, sids, &filter).await?);
            if calls.len() >= limit {
                calls.truncate(limit);
                break;
            }
        }
        Ok(stretch.page(calls, filter.limit))
    }

    async fn accepted_call(&self, sid: &CallSid) -> Result<Option<NewCall>, StoreError> {
        let row = self
            .query_opt(views::ACCEPTED.postgres, &[&sid.as_str()])
            .await?;
        row.as_ref().map(views::accepted).transpose()
    }

    async fn callbacks_of(&self, sid: &CallSid, limit: u32) -> Result<Vec<Callback>, StoreError> {
        let values: super::Values<'_> = &[&sid.as_str(), &i64::from(limit)];
        let rows = self.query(callbacks::OF_CALL.postgres, values).await?;
        rows.iter().map(callbacks::callback).collect()
    }

    async fn bill_lines_of(&self, sid: &CallSid) -> Result<Vec<BillLine>, StoreError> {
        let [first, end] = views::line_ids(sid);
        let rows = self.query(views::LINES.postgres, &[&first, &end]).await?;
        rows.iter().map(bill_lines::line).collect()
    }

    async fn nodes(&self) -> Result<Vec<SeenNode>, StoreError> {
        let rows = self.query(NODES, &[]).await?;
        rows.iter().map(views::node).collect()
    }

    async fn tell_concerns(&self, node: &NodeId, concerns: String) -> Result<bool, StoreError> {
        let values: super::Values<'_> = &[&node.as_str(), &concerns];
        Ok(self.execute(views::TELL_CONCERNS.postgres, values).await? > 0)
    }

    async fn accepted_since(&self, sid: &CallSid) -> Result<u64, StoreError> {
        let client = self.long_client().await?;
        let since = views::ACCEPTED_SINCE.postgres;
        views::count(&client.query_one_once(since, &[&sid.as_str()]).await?)
    }

    async fn queue_overview(&self) -> Result<QueueOverview, StoreError> {
        let client = self.long_client().await?;
        let waiting = client.query_once(WAITING, &[]).await?;
        let waiting = waiting.iter().map(views::waiting);
        let running = client.query_once(views::RUNNING.postgres, &[]).await?;
        let running = running.iter().map(views::running);
        Ok(QueueOverview::new(
            waiting.collect::<Result<_, _>>()?,
            running.collect::<Result<_, _>>()?,
        ))
    }

    async fn owed_callbacks(&self, wanted: WantedOwed) -> Result<OwedCallbacks, StoreError> {
        let client = self.long_client().await?;
        let limit: super::Values<'_> = &[&i64::from(wanted.receivers)];
        let mut owed = OwedCallbacks::default();
        let since = wanted.given_up_since.as_str();
        let since: super::Values<'_> = &[&since, &i64::from(wanted.given_up_limit)];
        let given_up = client.query_opt(views::GIVEN_UP_SINCE.postgres, since);
        let given_up = given_up.await?.as_ref().map(views::count).transpose()?;
        owed.given_up = given_up.unwrap_or_default();
        for row in client.query_once(views::RECEIVERS.postgres, limit).await? {
            let mut receiver = views::receiver(&row)?;
            let stored: super::Values<'_> = &[&row.string(0)?];
            let last = client.query_opt(views::LAST_DUE.postgres, stored).await?;
            if let Some(last) = last {
                receiver.failures = last.number(2)?;
                let CallbackKey { call, seq } = callbacks::key(&last)?;
                let key: super::Values<'_> = &[&call.as_str(), &seq];
                let attempt = client.query_opt(views::LAST_ATTEMPT.postgres, key).await?;
                receiver.last_attempt = attempt.as_ref().map(callbacks::attempt).transpose()?;
            }
            owed.add(receiver, views::all_receivers(&row)?);
        }
        Ok(owed)
    }

    async fn billed_accounts(
        &self,
        from: Date,
        to: Date,
    ) -> Result<Vec<BilledAccount>, StoreError> {
        let days: super::Values<'_> = &[&from.to_string(), &to.to_string()];
        let rows = self.query(views::BILLED.postgres, days).await?;
        rows.iter().map(views::billed).collect()
    }

    async fn billed_days(&self) -> Result<Vec<DayTotals>, StoreError> {
        let rows = self.query(views::DAY_TOTALS.postgres, &[]).await?;
        rows.iter().map(views::day_totals).collect()
    }
}

async fn apps_of(client: &PooledSession, account: &AccountSid) -> Result<Vec<AppId>, StoreError> {
    let account: super::Values<'_> = &[&account.as_str()];
    let rows = client.query(accounts::APP_IDS.postgres, account).await?;
    rows.iter().map(accounts::app_id).collect()
}

/// The callSids of each part of a walk.
async fn walked(
    client: &PooledSession,
    walk: &CallWalk,
    filter: &CallFilter,
) -> Result<Vec<Vec<CallSid>>, StoreError> {
    let ((before, from), limit) = (views::ends(filter), i64::from(walk.wanted(filter)));
    let rows = match walk {
        CallWalk::All => {
            let values: super::Values<'_> = &[&before, &from, &limit];
            client.query_once(views::ALL_SIDS.postgres, values).await?
        }
        CallWalk::Alive => {
            let values: super::Values<'_> = &[&before, &from, &limit];
            client
                .query_once(views::ALIVE_SIDS.postgres, values)
                .await?
        }
        CallWalk::Running => {
            let values: super::Values<'_> = &[&before, &from, &limit];
            client
                .query_once(views::RUNNING_SIDS.postgres, values)
                .await?
        }
        CallWalk::To(number) => {
            let values: super::Values<'_> = &[&before, &from, &limit, number];
            client.query_once(NUMBER_SIDS, values).await?
        }
        CallWalk::Of(apps) => {
            let names: Vec<_> = apps.iter().map(AppId::as_str).collect();
            let values: super::Values<'_> = &[&before, &from, &limit, &names];
            let mut parts = vec![Vec::new(); apps.len()];
            for row in client.query_once(APP_SIDS, values).await? {
                let place: usize = row.number(0)?;
                if let Some(part) = parts.get_mut(place - 1) {
                    part.push(row.parsed(1)?);
                }
            }
            return Ok(parts);
        }
    };
    let sids = rows.iter().map(views::sid);
    Ok(vec![sids.collect::<Result<_, _>>()?])
}

/// Those of these calls that are asked for.
async fn wanted(
    client: &PooledSession,
    sids: &[CallSid],
    filter: &CallFilter,
) -> Result<Vec<CallRecord>, StoreError> {
    let sids: Vec<_> = sids.iter().map(CallSid::as_str).collect();
    let wanted: [Bind<'_>; 8] = views::wanted(filter);
    let mut values: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![&sids];
    values.extend(bound(&wanted));
    let rows = client.query_once(WANTED_CALLS, &values).await?;
    rows.iter().map(records::record).collect()
}
