//! Taking calls that are due from the queue in PostgreSQL.
//!
//! Nodes claim beside each other: rows that another one is just taking are passed over, and so are callees that another one is just
//! deciding about. No claim waits for a lock that a node holds across a round trip; the end of a call does, while its callee is being judged.

use std::collections::{BTreeSet, HashMap, HashSet};

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::session::{Bound, Session, Transaction};
use super::{PostgresStore, column};
use crate::domain::claim::{Claim, ClaimedCall, DueLane, LaneShare, NodeId};
use crate::domain::customer_limits::{Customer, LimitLedger};
use crate::store::StoreError;
use crate::store::columns::Columns;
use crate::store::statements::postgres;
use crate::store::statements::queue::{self, CLAIMED, CLAIMED_COLUMNS, LANE_ORDER, NEXT_LANE};

/// One claim looks at the queue at most so often. What it meets and cannot take it parks, defers or sets aside, and meets none of it again; but for
/// calls whose callee another node decides about.
const LOOKS: usize = 5;
/// Calls of one lane that the first look sees, at most.
const FIRST_LOOK: u32 = 32;
/// Calls of one lane that a further look sees, at least.
const WIDE_LOOK: u32 = 200;
/// The first of the two numbers of the advisory locks on callees. Any serves that nobody else uses.
const CALLEE_LOCKS: i32 = 0x636c_6172;
const ACCOUNT_LOCKS: i32 = CALLEE_LOCKS + 1;

macro_rules! unpark {
    ($free:literal) => {
        postgres!(
            queue::UNPARK,
            "= ANY(ARRAY(",
            queue::BEST_PARKED,
            $free,
            queue::BEST_PARKED_OF_EACH,
            "SELECT DISTINCT ON (best.callee) call_sid FROM best JOIN call_queue AS one USING (call_sid) ORDER BY best.callee, due_at, call_sid))"
        )
    };
}

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
/// The calls that may be taken, in their order, of accounts that this node has locked. Each callee is this node's to decide about until the end of
/// the transaction, unless another one decides about it just now. Those that it may decide about are noted for the statement that judges.
const LOOK: &str = postgres!(
    "WITH lane AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bigint[], $5::text[]) \
       WITH ORDINALITY AS lane (app_id, route, priority, room, account, place) \
       WHERE account = ANY(ARRAY(SELECT unnest(nullif(current_setting('clarion.locked_accounts', TRUE), '')::text[])))), \
     seen AS MATERIALIZED (SELECT queue.*, lane.place, lane.account, pg_try_advisory_xact_lock($6, hashtext(queue.callee)) AS is_ours FROM lane \
       CROSS JOIN LATERAL (SELECT call_sid, callee, due_at, cancelled OR expires_at <= {now} AS is_over FROM call_queue \
         WHERE app_id = lane.app_id AND route = lane.route AND priority = lane.priority AND node IS NULL AND parked = {in_lane} \
           AND due_at <= {now} \
         ORDER BY due_at, call_sid LIMIT lane.room FOR UPDATE SKIP LOCKED) AS queue), \
     noted AS MATERIALIZED (SELECT set_config('clarion.seen_callees', coalesce(array_agg(DISTINCT account || '/' || callee), ARRAY[]::text[])::text, TRUE) \
       FROM seen WHERE is_ours) \
     SELECT call_sid, callee, is_over, place - 1 FROM seen CROSS JOIN noted ORDER BY place, due_at, call_sid"
);
/// Which of those may be called is judged by a statement that comes after the locks: it sees what every node before has committed. A busy
/// callee's call is held in share, so that it cannot end before what is parked behind it is there to be found. One that is just ending is not
/// waited for, and what is to be called after it is left where it is: a claim that waited, with other calls held, could meet an end that
/// waits for those.
const JUDGE: &str = postgres!(
    "WITH wanted AS MATERIALIZED (SELECT split_part(pair, '/', 1) AS account, split_part(pair, '/', 2) AS callee \
       FROM unnest(nullif(current_setting('clarion.seen_callees', TRUE), '')::text[]) AS wanted (pair)), \
     busy AS MATERIALIZED (SELECT callee FROM call_queue WHERE callee = ANY(ARRAY(SELECT callee FROM wanted)) AND node IS NOT NULL \
         AND parked = {in_lane}), \
     held AS MATERIALIZED (SELECT callee FROM call_queue WHERE callee = ANY(ARRAY(SELECT callee FROM busy)) AND node IS NOT NULL \
         AND parked = {in_lane} FOR KEY SHARE SKIP LOCKED) \
     SELECT account, callee, callee IN (SELECT callee FROM busy), greatest(\
         CASE WHEN $1::bigint > 0 THEN {minute} + (SELECT claimed_at FROM callee_calls AS calls \
           WHERE calls.callee = wanted.callee AND account_sid IN (wanted.account, '') AND claimed_at > {now} - {minute} ORDER BY claimed_at DESC LIMIT 1 OFFSET $1 - 1) END, \
         CASE WHEN $2::bigint > 0 THEN {hour} + (SELECT claimed_at FROM callee_calls AS calls \
           WHERE calls.callee = wanted.callee AND account_sid IN (wanted.account, '') AND claimed_at > {now} - {hour} ORDER BY claimed_at DESC LIMIT 1 OFFSET $2 - 1) END, \
         CASE WHEN $3::bigint > 0 THEN {day} + (SELECT claimed_at FROM callee_calls AS calls \
           WHERE calls.callee = wanted.callee AND account_sid IN (wanted.account, '') AND claimed_at > {now} - {day} ORDER BY claimed_at DESC LIMIT 1 OFFSET $3 - 1) END), \
       callee IN (SELECT callee FROM busy EXCEPT SELECT callee FROM held) \
     FROM wanted"
);
/// Each account is this node's to claim for until the end of the transaction. They are noted for the statement that looks.
const LOCK_ACCOUNTS: &str = postgres!(
    "WITH locked AS MATERIALIZED (SELECT account FROM unnest($1::text[]) AS wanted (account) \
       WHERE pg_try_advisory_xact_lock($2, hashtext(account))), \
     noted AS MATERIALIZED (SELECT set_config('clarion.locked_accounts', coalesce(array_agg(account), ARRAY[]::text[])::text, TRUE) FROM locked) \
     SELECT account FROM locked CROSS JOIN noted"
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
    "WITH counted AS (INSERT INTO callee_calls (callee, claimed_at, call_sid, account_sid) \
       SELECT callee, {now}, call_sid, account FROM unnest($1::text[], $2::text[], $4::text[]) AS taken (call_sid, callee, account) ON CONFLICT DO NOTHING), \
     queue AS (UPDATE call_queue SET state = {claimed}, node = $3, fence = fence + 1, pass_at = NULL WHERE call_sid = ANY($1) RETURNING call_queue.*) \
     SELECT ",
    CLAIMED,
    ", {now} FROM queue JOIN calls USING (call_sid) ORDER BY queue.due_at, queue.call_sid"
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
pub(super) const UNPARK: &str =
    unpark!("(SELECT callee, ''::text AS but_of FROM unnest($1::text[]) AS free (callee)) AS free");
/// As `UNPARK`, but the next call of another account than this one.
const UNPARK_OTHERS: &str = unpark!("unnest($1::text[], $2::text[]) AS free (callee, but_of)");
/// Every lane with a call in it, when its first call is due, and the time now.
pub(super) async fn lanes(store: &PostgresStore) -> Result<(Vec<(DueLane, i64)>, i64), StoreError> {
    let rows = store.query(LANES, &[]).await?;
    let now = rows.first().map(|first| first.number(5)).transpose()?;
    let lanes = rows.iter().map(queue::lane);
    Ok((lanes.collect::<Result<_, _>>()?, now.unwrap_or_default()))
}

pub(super) async fn claim(
    client: &mut Session,
    claim: &Claim,
) -> Result<Vec<ClaimedCall>, StoreError> {
    let mut look = Look::first(claim);
    let (transaction, ledger, mut seen) = begin(client, claim, &look).await?;
    let mut room = ClaimRoom {
        lanes: claim.shares.iter().map(|share| share.calls).collect(),
        ledger,
    };
    let (mut calls, mut looks) = (Vec::new(), 1);
    loop {
        let verdicts = judge(claim, &look, seen, &mut room);
        if looks == 1 && verdicts.are_none() {
            // What was looked at is let go, so that the next claim of any node finds it; nothing has to reach the disk.
            transaction.roll_back().await?;
            return Ok(calls);
        }
        if looks == LOOKS || !verdicts.more_may_start {
            return finish(transaction, &verdicts, calls, &room.ledger, &claim.node).await;
        }
        look = Look::further(claim, &room, &verdicts.held_back);
        let node_name = claim.node.as_str();
        let mut statements = verdicts.statements(&node_name);
        let carried_out = statements.len();
        statements.extend(look.statements());
        let mut rows = transaction.query_all(&bound_all(&statements)).await?;
        seen = Seen::read(&rows.split_off(carried_out))?;
        calls.extend(verdicts.claimed(&rows, &claim.node)?);
        looks += 1;
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
    calls.extend(verdicts.claimed(&rows, node)?);
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

/// Begins a claim: what the limits of the customers leave, and the first look. An account whose calls another node is just claiming is left out.
async fn begin<'a>(
    client: &'a mut Session,
    claim: &Claim,
    look: &Look<'_>,
) -> Result<(Transaction<'a>, LimitLedger, Seen), StoreError> {
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
    // What is counted is counted after the accounts are locked.
    let mut statements: Vec<Planned<'_>> = vec![
        (LOCK_ACCOUNTS, vec![&accounts, &ACCOUNT_LOCKS]),
        (UNDER_WAY, vec![&counted, &customers]),
    ];
    let before_look = statements.len();
    statements.extend(look.statements());
    let (transaction, mut rows) = client.begin_with(&bound_all(&statements)).await?;
    let seen = Seen::read(&rows.split_off(before_look))?;
    let under_way = rows.pop().unwrap_or_default();
    let locked = rows.iter().flatten().map(|row| row.string(0));
    let locked = locked.collect::<Result<HashSet<_>, _>>()?;
    let ledger = ledger(claim, &locked, &under_way)?;
    Ok((transaction, ledger, seen))
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

/// A look at the queue: so many calls of each lane of a claim, and whether their callees may be called.
struct Look<'a> {
    apps: Vec<&'a str>,
    routes: Vec<&'a str>,
    priorities: Vec<i16>,
    rooms: Vec<i64>,
    accounts: Vec<&'a str>,
    caps: [i64; 3],
}

impl<'a> Look<'a> {
    /// Before it is known what the limits of the customers leave: a few calls, so that few are held in vain. Of an account's lanes that is the last,
    /// for what it gets must be what the more urgent ones leave.
    fn first(claim: &'a Claim) -> Self {
        let mut accounts = HashSet::new();
        let shares = claim.shares.iter().rev();
        let rooms = shares.map(|share| {
            if accounts.insert(&share.account) {
                share.calls.min(FIRST_LOOK)
            } else {
                share.calls
            }
        });
        let rooms: Vec<_> = rooms.collect();
        Self::new(claim, rooms.into_iter().rev())
    }

    /// Wide where the look before has met calls that could not start: there may be many of them.
    fn further(claim: &'a Claim, room: &ClaimRoom, held_back: &[bool]) -> Self {
        let rooms =
            held_back
                .iter()
                .enumerate()
                .map(|(place, held_back)| match room.left(claim, place) {
                    left if left > 0 && *held_back => left.max(WIDE_LOOK),
                    left => left,
                });
        Self::new(claim, rooms)
    }

    fn new(claim: &'a Claim, rooms: impl Iterator<Item = u32>) -> Self {
        let (shares, caps) = (&claim.shares, claim.caps);
        Self {
            apps: column(shares, |share| share.lane.app.as_str()),
            routes: column(shares, |share| share.lane.route.as_str()),
            priorities: column(shares, |share| i16::from(share.lane.priority.number())),
            rooms: rooms.map(i64::from).collect(),
            accounts: column(shares, |share| share.account.as_str()),
            caps: [caps.per_minute, caps.per_hour, caps.per_day].map(i64::from),
        }
    }

    fn statements(&self) -> [Planned<'_>; 2] {
        let [minute, hour, day] = &self.caps;
        let look: Vec<&(dyn ToSql + Sync)> = vec![
            &self.apps,
            &self.routes,
            &self.priorities,
            &self.rooms,
            &self.accounts,
            &CALLEE_LOCKS,
        ];
        [(LOOK, look), (JUDGE, vec![minute, hour, day])]
    }
}

/// What a look has seen.
struct Seen {
    calls: Vec<Candidate>,
    /// Whether each callee is busy, of those that this node can decide about.
    callees: HashMap<String, bool>,
    /// Until when an account has called a callee too often.
    capped: HashMap<(String, String), i64>,
}

impl Seen {
    /// From the rows of the statements of a look.
    fn read(rows: &[Vec<Row>]) -> Result<Self, StoreError> {
        let [calls, callees] = rows else {
            return Err(StoreError::failed("a look at the queue has two answers"));
        };
        let candidate = |row: &Row| {
            Ok(Candidate {
                sid: row.string(0)?,
                callee: row.string(1)?,
                is_over: row.flag(2)?,
                lane: row.number(3)?,
            })
        };
        let (mut busy, mut capped) = (HashMap::new(), HashMap::new());
        for row in callees {
            let callee = row.string(1)?;
            let is_ending = row.flag(4)?;
            if is_ending {
                continue;
            }
            if let Some(until) = row.optional_number(3)? {
                capped.insert((row.string(0)?, callee.clone()), until);
            }
            busy.insert(callee, row.flag(2)?);
        }
        Ok(Self {
            calls: calls
                .iter()
                .map(candidate)
                .collect::<Result<_, StoreError>>()?,
            callees: busy,
            capped,
        })
    }
}

/// What becomes of the calls that were looked at.
#[derive(Debug, Default)]
struct Verdicts {
    taken: Vec<String>,
    /// Their callees.
    called: Vec<String>,
    /// Whose they are.
    callers: Vec<String>,
    parked: Vec<String>,
    deferred: Vec<String>,
    /// When those are due again.
    due_again: Vec<i64>,
    /// Their callees, who are free for other accounts, and whose those calls are.
    free_for_others: Vec<String>,
    capped: Vec<String>,
    set_aside: Vec<String>,
    /// Callees of calls that were set aside: the next call for them has its turn.
    free: Vec<String>,
    /// Of each lane, whether it has shown calls that cannot start now.
    held_back: Vec<bool>,
    /// There may be calls that the look has not seen, for which there is room.
    more_may_start: bool,
}

/// What may start takes its place in the room that is left. Where there is none, calls stay as they are.
fn judge(claim: &Claim, look: &Look<'_>, seen: Seen, room: &mut ClaimRoom) -> Verdicts {
    let mut counts = vec![LaneCount::default(); claim.shares.len()];
    let mut verdicts = Verdicts::default();
    let mut callees = seen.callees;
    for call in seen.calls {
        let count = &mut counts[call.lane];
        count.seen += 1;
        // Another node decides about a callee that was not judged, or its call is just ending.
        let Some(is_busy) = callees.get_mut(&call.callee) else {
            continue;
        };
        if room.left(claim, call.lane) == 0 {
            continue;
        }
        let account = claim.shares[call.lane].account.to_string();
        let called = (account, call.callee);
        if call.is_over {
            count.gave_way += 1;
            verdicts.set_aside.push(call.sid);
            verdicts.free.extend((!*is_busy).then_some(called.1));
        } else if *is_busy {
            verdicts.parked.push(call.sid);
        } else if let Some(until) = seen.capped.get(&called) {
            count.gave_way += 1;
            verdicts.deferred.push(call.sid);
            verdicts.due_again.push(*until);
            verdicts.capped.push(called.0);
            verdicts.free_for_others.push(called.1);
        } else {
            *is_busy = true;
            room.take(claim, call.lane);
            count.taken += 1;
            verdicts.taken.push(call.sid);
            verdicts.callers.push(called.0);
            verdicts.called.push(called.1);
        }
    }
    verdicts.more_may_start = (0..counts.len()).any(|place| {
        let is_cut = counts[place].seen == look.rooms[place];
        room.left(claim, place) > 0 && (is_cut || counts[place].gave_way > 0)
    });
    verdicts.held_back = counts
        .iter()
        .map(|count| count.taken < count.seen)
        .collect();
    verdicts
}

/// What a look has met in a lane.
#[derive(Debug, Clone, Default)]
struct LaneCount {
    seen: i64,
    taken: i64,
    /// Set aside, or deferred: the next call to the callee of such a one may take its place in its lane.
    gave_way: i64,
}

impl Verdicts {
    fn are_none(&self) -> bool {
        let all = [&self.taken, &self.parked, &self.deferred, &self.set_aside];
        all.into_iter().all(Vec::is_empty) && !self.more_may_start
    }

    /// Where calls are taken, that is the first of them.
    fn statements<'a>(&'a self, node: &'a &'a str) -> Vec<Planned<'a>> {
        let mut statements: Vec<Planned<'a>> = Vec::with_capacity(6);
        if !self.taken.is_empty() {
            statements.push((TAKE, vec![&self.taken, &self.called, node, &self.callers]));
        }
        if !self.parked.is_empty() {
            statements.push((PARK, vec![&self.parked]));
        }
        if !self.deferred.is_empty() {
            statements.push((DEFER, vec![&self.deferred, &self.due_again]));
            let others: Vec<&(dyn ToSql + Sync)> = vec![&self.free_for_others, &self.capped];
            statements.push((UNPARK_OTHERS, others));
        }
        if !self.set_aside.is_empty() {
            statements.push((SET_ASIDE, vec![&self.set_aside]));
            statements.push((UNPARK, vec![&self.free]));
        }
        statements
    }

    /// What `statements` has taken, by the rows of each.
    fn claimed(&self, rows: &[Vec<Row>], node: &NodeId) -> Result<Vec<ClaimedCall>, StoreError> {
        let taken = rows.first().filter(|_| !self.taken.is_empty());
        let taken = taken.into_iter().flatten();
        let claimed = |row: &Row| queue::claimed_at(row, node, row.number(CLAIMED_COLUMNS)?);
        taken.map(claimed).collect()
    }
}
