//! Taking calls that are due from the queue in PostgreSQL.
//!
//! Nodes claim beside each other: rows that another one is just taking are passed over, and so are callees that another one is just
//! deciding about. Nobody waits for a lock that a node holds across a round trip.

use std::collections::{BTreeSet, HashMap, HashSet};

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::session::{Bound, Session, Transaction};
use super::{PostgresStore, column, query_in};
use crate::domain::claim::{Claim, ClaimedCall, LaneShare, NodeId, QueuedLanes};
use crate::domain::customer_limits::{Customer, LimitLedger};
use crate::store::StoreError;
use crate::store::columns::Columns;
use crate::store::statements::postgres;
use crate::store::statements::queue::{self, CLAIMED, LANE_ORDER, NEXT_LANE};

/// One claim looks at the queue at most so often. What it meets and cannot take it parks, defers or sets aside, and meets none of it again.
const LOOKS: usize = 5;
/// Calls of one lane that a further look sees, at least.
const WIDE_LOOK: u32 = 200;
/// The first of the two numbers of the advisory locks on callees. Any serves that nobody else uses.
const CALLEE_LOCKS: i32 = 0x636c_6172;
const ACCOUNT_LOCKS: i32 = CALLEE_LOCKS + 1;

/// Every lane with a call in it, and when its first is due: one step of the index a lane, however much waits there.
const LANES: &str = postgres!(
    "WITH RECURSIVE lanes AS ((",
    NEXT_LANE,
    "('', '', 0::smallint, {last_moment})",
    LANE_ORDER,
    ") UNION ALL SELECT next.* FROM lanes, LATERAL (",
    NEXT_LANE,
    "(lanes.app_id, lanes.route, lanes.priority, {last_moment})",
    LANE_ORDER,
    ") AS next) SELECT lanes.*, {now} FROM lanes"
);
/// The calls that may be taken, in their order. Each callee is this node's to decide about until the end of the transaction.
const LOOK: &str = postgres!(
    "SELECT queue.call_sid, queue.callee, queue.is_over, lane.place - 1 FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bigint[]) \
       WITH ORDINALITY AS lane (app_id, route, priority, room, place) \
     CROSS JOIN LATERAL (SELECT call_sid, callee, due_at, cancelled OR expires_at <= {now} AS is_over FROM call_queue \
       WHERE app_id = lane.app_id AND route = lane.route AND priority = lane.priority AND node IS NULL AND parked = {in_lane} \
         AND due_at <= {now} \
       ORDER BY due_at, call_sid LIMIT lane.room FOR UPDATE SKIP LOCKED) AS queue \
     WHERE pg_try_advisory_xact_lock($5, hashtext(queue.callee)) \
     ORDER BY lane.place, queue.due_at, queue.call_sid"
);
/// Which of those may be called is judged by a statement that comes after the locks: it sees what every node before has committed. A busy
/// callee's call is held in share, so that it cannot end before what is parked behind it is there to be found. Ends take them in the same
/// order.
const JUDGE: &str = postgres!(
    "WITH busy AS MATERIALIZED (SELECT callee FROM call_queue WHERE callee = ANY($1) AND node IS NOT NULL AND parked = {in_lane} \
       ORDER BY callee COLLATE \"C\" FOR KEY SHARE) \
     SELECT callee, callee IN (SELECT callee FROM busy), greatest(\
         CASE WHEN $2::bigint > 0 THEN {minute} + (SELECT claimed_at FROM callee_calls AS calls \
           WHERE calls.callee = wanted.callee AND claimed_at > {now} - {minute} ORDER BY claimed_at DESC LIMIT 1 OFFSET $2 - 1) END, \
         CASE WHEN $3::bigint > 0 THEN {hour} + (SELECT claimed_at FROM callee_calls AS calls \
           WHERE calls.callee = wanted.callee AND claimed_at > {now} - {hour} ORDER BY claimed_at DESC LIMIT 1 OFFSET $3 - 1) END, \
         CASE WHEN $4::bigint > 0 THEN {day} + (SELECT claimed_at FROM callee_calls AS calls \
           WHERE calls.callee = wanted.callee AND claimed_at > {now} - {day} ORDER BY claimed_at DESC LIMIT 1 OFFSET $4 - 1) END) \
     FROM unnest($1::text[]) AS wanted (callee)"
);
/// Each account is this node's to claim for until the end of the transaction.
const LOCK_ACCOUNTS: &str = postgres!(
    "SELECT account FROM unnest($1::text[]) AS wanted (account) WHERE pg_try_advisory_xact_lock($2, hashtext(account))"
);
/// The calls under way of each application, and the tokens of each customer, in the same columns.
const UNDER_WAY: &str = postgres!(
    "SELECT NULL::text, account_sid, app_id, count(*), 0::bigint, {now} FROM call_queue \
       WHERE account_sid = ANY($1) AND node IS NOT NULL AND parked = {in_lane} GROUP BY account_sid, app_id \
     UNION ALL SELECT customer, '', '', tokens, counted_at, {now} FROM start_tokens WHERE customer = ANY($2) \
     UNION ALL SELECT NULL, '', '', 0, 0, {now}"
);
const KEEP_TOKENS: &str = postgres!(
    "INSERT INTO start_tokens (customer, tokens, counted_at) SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]) \
     ON CONFLICT (customer) DO UPDATE SET tokens = excluded.tokens, counted_at = excluded.counted_at"
);
/// What becomes of each call that was looked at: taken, deferred, parked or set aside.
const TAKE: &str = postgres!(
    "WITH counted AS (INSERT INTO callee_calls (callee, claimed_at, call_sid) \
       SELECT callee, {now}, call_sid FROM unnest($1::text[], $2::text[]) AS taken (call_sid, callee) ON CONFLICT DO NOTHING), \
     queue AS (UPDATE call_queue SET state = {claimed}, node = $3, fence = fence + 1, held_since = NULL, pass_at = NULL WHERE call_sid = ANY($1) RETURNING call_queue.*) \
     SELECT ",
    CLAIMED,
    " FROM queue JOIN calls USING (call_sid) ORDER BY queue.due_at, queue.call_sid"
);
const PARK: &str = postgres!(
    "UPDATE call_queue SET parked = {parked}, held_since = coalesce(held_since, {now}), pass_at = coalesce(held_since, {now}) + patience \
     WHERE call_sid = ANY($1)"
);
const DEFER: &str = postgres!(
    "UPDATE call_queue SET due_at = deferred.until, held_since = coalesce(held_since, {now}), \
       pass_at = CASE WHEN coalesce(held_since, {now}) + patience < deferred.until THEN coalesce(held_since, {now}) + patience END FROM unnest($1::text[], $2::bigint[]) AS deferred (call_sid, until) \
     WHERE call_queue.call_sid = deferred.call_sid"
);
const SET_ASIDE: &str =
    postgres!("UPDATE call_queue SET parked = {set_aside} WHERE call_sid = ANY($1)");
/// The callees are free: the next call for each takes its place in its lane. What another node is just taking is its to deal with. A call that
/// ends or goes back is told of by the statement before: this one sees what was parked while that one waited.
pub(super) const UNPARK: &str = postgres!(
    queue::UNPARK,
    "= ANY(ARRAY(SELECT next.call_sid FROM unnest($1::text[]) AS free (callee) CROSS JOIN LATERAL ",
    NEXT_PARKED,
    "))"
);
const NEXT_PARKED: &str = "(SELECT call_sid FROM call_queue WHERE parked = {parked} AND callee = free.callee \
  ORDER BY priority, due_at, call_sid LIMIT 1) AS next";
pub(super) async fn lanes(store: &PostgresStore) -> Result<QueuedLanes, StoreError> {
    let rows = store.query(LANES, &[]).await?;
    let Some(first) = rows.first() else {
        return Ok(QueuedLanes::default());
    };
    let now = first.number(5)?;
    let lanes = rows.iter().map(queue::lane);
    Ok(queue::queued_lanes(
        lanes.collect::<Result<Vec<_>, _>>()?,
        now,
    ))
}

pub(super) async fn claim(
    client: &mut Session,
    claim: &Claim,
) -> Result<Vec<ClaimedCall>, StoreError> {
    let (transaction, ledger) = begin(client, claim).await?;
    let mut room = ClaimRoom {
        lanes: claim.shares.iter().map(|share| share.calls).collect(),
        ledger,
    };
    let (mut calls, mut looks) = (Vec::new(), 0);
    loop {
        let least = if looks == 0 { 0 } else { WIDE_LOOK };
        let seen = look_at_queue(&transaction, claim, &room, least).await?;
        let seen_all = seen.len();
        let verdicts = judge(&transaction, claim, seen, &mut room).await?;
        looks += 1;
        if looks == LOOKS || verdicts.taken.len() == seen_all {
            return finish(transaction, &verdicts, calls, &room.ledger, &claim.node).await;
        }
        calls.extend(verdicts.carry_out(&transaction, &claim.node).await?);
    }
}

/// Carries out the verdicts of the last look, and commits.
async fn finish(
    transaction: Transaction<'_>,
    verdicts: &Verdicts,
    mut calls: Vec<ClaimedCall>,
    ledger: &LimitLedger,
    node: &NodeId,
) -> Result<Vec<ClaimedCall>, StoreError> {
    let kept: Vec<_> = ledger.tokens().collect();
    let (customers, tokens, counted_at) = (
        column(&kept, |(customer, _)| customer.key()),
        column(&kept, |(_, tokens)| tokens.thousandths),
        column(&kept, |(_, tokens)| tokens.counted_at),
    );
    let node_name = node.as_str();
    let mut statements = verdicts.statements(&node_name);
    if !calls.is_empty() || !verdicts.taken.is_empty() {
        statements.push((KEEP_TOKENS, vec![&customers, &tokens, &counted_at]));
    }
    let rows = transaction.commit_with(&bound_all(&statements)).await?;
    calls.extend(verdicts.claimed(rows, node)?);
    Ok(calls)
}

/// A statement, and the values that it will be sent with.
type Planned<'a> = (&'static str, Vec<&'a (dyn ToSql + Sync)>);

fn bound_all<'a>(statements: &'a [Planned<'a>]) -> Vec<Bound<'a>> {
    let bound = statements.iter();
    bound
        .map(|(sql, values)| (*sql, values.as_slice()))
        .collect()
}

/// What may still be taken in one claim.
struct ClaimRoom {
    /// Of each share.
    lanes: Vec<u32>,
    ledger: LimitLedger,
}

impl ClaimRoom {
    fn left(&self, claim: &Claim, place: usize) -> u32 {
        let share = &claim.shares[place];
        let limits = self.ledger.left(&share.account, &share.lane.app);
        self.lanes[place].min(limits)
    }

    fn take(&mut self, claim: &Claim, place: usize) {
        let share = &claim.shares[place];
        self.lanes[place] -= 1;
        self.ledger.take(&share.account, &share.lane.app);
    }
}

/// Begins a claim: what the limits of the customers leave. An account whose calls another node is just claiming is left out.
async fn begin<'a>(
    client: &'a mut Session,
    claim: &Claim,
) -> Result<(Transaction<'a>, LimitLedger), StoreError> {
    let accounts = claim.shares.iter().map(|share| share.account.as_str());
    let accounts: Vec<_> = accounts.collect::<BTreeSet<_>>().into_iter().collect();
    let customers = claim.limits.keys().map(Customer::key);
    let customers: Vec<_> = customers.collect();
    // Who has no limit need not be counted.
    let limited = |share: &&LaneShare| {
        let limits = claim.limits_of(share);
        limits.iter().any(|(_, limits)| limits.at_once < u32::MAX)
    };
    let counted = claim.shares.iter().filter(limited);
    let counted: BTreeSet<_> = counted.map(|share| share.account.as_str()).collect();
    let counted: Vec<_> = counted.into_iter().collect();
    let (lock, count): (super::Values<'_>, super::Values<'_>) =
        (&[&accounts, &ACCOUNT_LOCKS], &[&counted, &customers]);
    // What is counted is counted after the accounts are locked.
    let statements = [(LOCK_ACCOUNTS, lock), (UNDER_WAY, count)];
    let (transaction, mut rows) = client.begin_with(&statements).await?;
    let under_way = rows.pop().unwrap_or_default();
    let locked = rows.iter().flatten().map(|row| row.string(0));
    let locked = locked.collect::<Result<HashSet<_>, _>>()?;
    let ledger = ledger(claim, &locked, &under_way)?;
    Ok((transaction, ledger))
}

fn ledger(
    claim: &Claim,
    locked: &HashSet<String>,
    counted: &[Row],
) -> Result<LimitLedger, StoreError> {
    let (mut of_account, mut of_app, mut tokens) = (HashMap::new(), HashMap::new(), HashMap::new());
    let mut now = 0;
    for row in counted {
        now = row.number(5)?;
        if let Some(customer) = row.optional_string(0)? {
            tokens.insert(customer, queue::start_tokens(row, 3)?);
        } else {
            let calls: u32 = row.number(3)?;
            *of_account.entry(row.string(1)?).or_insert(0) += calls;
            *of_app.entry(row.string(2)?).or_insert(0) += calls;
        }
    }
    let mut ledger = LimitLedger::default();
    let lockable = |share: &&LaneShare| locked.contains(share.account.as_str());
    for share in claim.shares.iter().filter(lockable) {
        for (customer, limits) in claim.limits_of(share) {
            let under_way = match &customer {
                Customer::Account(sid) => of_account.get(sid.as_str()),
                Customer::App(app) => of_app.get(app.as_str()),
            };
            let (under_way, tokens) = (
                under_way.copied().unwrap_or(0),
                tokens.get(&customer.key()).copied(),
            );
            ledger.add(customer, limits, under_way, tokens, now);
        }
    }
    Ok(ledger)
}

/// A call that may be taken.
#[derive(Debug)]
struct Candidate {
    sid: String,
    callee: String,
    /// It was cancelled, or has expired.
    is_over: bool,
    /// The place of its lane in the claim.
    lane: usize,
}

async fn look_at_queue(
    transaction: &Transaction<'_>,
    claim: &Claim,
    room: &ClaimRoom,
    least: u32,
) -> Result<Vec<Candidate>, StoreError> {
    let lanes = &claim.shares;
    let rooms = (0..lanes.len()).map(|place| match room.left(claim, place) {
        0 => 0,
        left => i64::from(left.max(least)),
    });
    let rows = query_in(
        transaction,
        LOOK,
        &[
            &column(lanes, |share| share.lane.app.as_str()),
            &column(lanes, |share| share.lane.route.as_str()),
            &column(lanes, |share| i16::from(share.lane.priority.number())),
            &rooms.collect::<Vec<_>>(),
            &CALLEE_LOCKS,
        ],
    )
    .await?;
    let candidate = |row: &Row| {
        Ok(Candidate {
            sid: row.string(0)?,
            callee: row.string(1)?,
            is_over: row.flag(2)?,
            lane: row.number(3)?,
        })
    };
    rows.iter().map(candidate).collect()
}

/// What becomes of the calls that were looked at.
#[derive(Debug, Default)]
struct Verdicts {
    taken: Vec<String>,
    /// Their callees.
    called: Vec<String>,
    parked: Vec<String>,
    deferred: Vec<String>,
    /// When those are due again.
    due_again: Vec<i64>,
    set_aside: Vec<String>,
    /// Callees of calls that were set aside: the next call for them has its turn.
    free: Vec<String>,
}

async fn judge(
    transaction: &Transaction<'_>,
    claim: &Claim,
    seen: Vec<Candidate>,
    room: &mut ClaimRoom,
) -> Result<Verdicts, StoreError> {
    let mut verdicts = Verdicts::default();
    if seen.is_empty() {
        return Ok(verdicts);
    }
    let callees: BTreeSet<_> = seen.iter().map(|seen| seen.callee.as_str()).collect();
    let callees: Vec<_> = callees.into_iter().collect();
    let caps = claim.caps;
    let values: super::Values<'_> = &[
        &callees,
        &i64::from(caps.per_minute),
        &i64::from(caps.per_hour),
        &i64::from(caps.per_day),
    ];
    let mut known = HashMap::new();
    for row in query_in(transaction, JUDGE, values).await? {
        known.insert(
            row.string(0)?,
            (row.flag(1)?, row.optional_number::<i64>(2)?),
        );
    }
    for call in seen {
        let (is_busy, capped_until) = known.get(&call.callee).copied().unwrap_or_default();
        if call.is_over {
            verdicts.set_aside.push(call.sid);
            verdicts.free.extend((!is_busy).then_some(call.callee));
        } else if is_busy {
            verdicts.parked.push(call.sid);
        } else if let Some(until) = capped_until {
            verdicts.deferred.push(call.sid);
            verdicts.due_again.push(until);
        } else if room.left(claim, call.lane) > 0 {
            room.take(claim, call.lane);
            known.insert(call.callee.clone(), (true, None));
            verdicts.taken.push(call.sid);
            verdicts.called.push(call.callee);
        }
    }
    Ok(verdicts)
}

impl Verdicts {
    async fn carry_out(
        &self,
        transaction: &Transaction<'_>,
        node: &NodeId,
    ) -> Result<Vec<ClaimedCall>, StoreError> {
        let node_name = node.as_str();
        let statements = self.statements(&node_name);
        let rows = transaction.query_all(&bound_all(&statements)).await?;
        self.claimed(rows, node)
    }

    /// Where calls are taken, that is the first of them.
    fn statements<'a>(&'a self, node: &'a &'a str) -> Vec<Planned<'a>> {
        let mut statements: Vec<Planned<'a>> = Vec::with_capacity(6);
        if !self.taken.is_empty() {
            statements.push((TAKE, vec![&self.taken, &self.called, node]));
        }
        if !self.parked.is_empty() {
            statements.push((PARK, vec![&self.parked]));
        }
        if !self.deferred.is_empty() {
            statements.push((DEFER, vec![&self.deferred, &self.due_again]));
        }
        if !self.set_aside.is_empty() {
            statements.push((SET_ASIDE, vec![&self.set_aside]));
            statements.push((UNPARK, vec![&self.free]));
        }
        statements
    }

    /// What `statements` has taken, by the rows of each.
    fn claimed(&self, rows: Vec<Vec<Row>>, node: &NodeId) -> Result<Vec<ClaimedCall>, StoreError> {
        let taken = match rows.into_iter().next() {
            Some(rows) if !self.taken.is_empty() => rows,
            _ => Vec::new(),
        };
        taken.iter().map(|row| queue::claimed(row, node)).collect()
    }
}
