//! Taking calls from the queue in SQLite: those that are due, those that shall end without being dialled, and those of processes that are gone.

use rusqlite::{Connection, params};

use super::query::Query;
use crate::domain::call::CallSid;
use crate::domain::claim::{
    CalleeCaps, Claim, ClaimedCall, DeadRoute, DueLane, Lane, LaneShare, NodeId, OrphanedCall,
    Overdue,
};
use crate::domain::customer_limits::{Customer, LimitLedger};
use crate::store::StoreError;
use crate::store::binding::millis;
use crate::store::columns::Columns;
use crate::store::statements::queue::{self, CLAIMED, LANE_ORDER, NEXT_LANE, ORPHANED, Waiting};
use crate::store::statements::sqlite;

/// Calls of one lane that one claim looks at, at most. Those that it cannot take it parks, defers or sets aside: it meets none of them again.
const MAX_LOOKED_AT: usize = 1_000;

const LANE_AFTER: &str = sqlite!(NEXT_LANE, "($1, $2, $3, {last_moment})", LANE_ORDER);
pub(super) const DUE_CALLS: &str = sqlite!(
    "SELECT call_sid, callee, expires_at <= $4 OR cancelled = 1 FROM call_queue \
     WHERE app_id = $1 AND route = $2 AND priority = $3 AND node IS NULL AND parked = {in_lane} AND due_at <= $4 \
     ORDER BY due_at, call_sid LIMIT $5"
);
const IS_BUSY: &str = sqlite!(
    "SELECT 1 FROM call_queue WHERE callee = $1 AND node IS NOT NULL AND parked = {in_lane}"
);
/// When a callee with so many calls of an account may be called by it again: as soon as the oldest of them counts no more.
const NTH_LAST_CALL: &str = sqlite!(
    "SELECT claimed_at FROM callee_calls WHERE callee = $1 AND claimed_at > $2 AND account_sid IN ($4, '') ORDER BY claimed_at DESC LIMIT 1 OFFSET $3"
);
const OF_ACCOUNT: &str = sqlite!(
    "SELECT count(*) FROM call_queue WHERE account_sid = $1 AND node IS NOT NULL AND parked = {in_lane}"
);
const OF_APP: &str = sqlite!(
    "SELECT count(*) FROM call_queue WHERE account_sid = $1 AND app_id = $2 AND node IS NOT NULL AND parked = {in_lane}"
);
const TOKENS: &str = sqlite!("SELECT tokens, counted_at FROM start_tokens WHERE customer = $1");
const KEEP_TOKENS: &str = sqlite!(
    "INSERT INTO start_tokens (customer, tokens, counted_at) VALUES ($1, $2, $3) \
     ON CONFLICT (customer) DO UPDATE SET tokens = $2, counted_at = $3"
);
const SET_ASIDE: &str = sqlite!("UPDATE call_queue SET parked = {set_aside} WHERE call_sid = $1");
const PARK: &str = sqlite!(
    "UPDATE call_queue SET parked = {parked}, held_since = coalesce(held_since, $2), pass_at = coalesce(held_since, $2) + patience WHERE call_sid = $1"
);
const DEFER: &str = sqlite!(
    "UPDATE call_queue SET due_at = $2, held_since = coalesce(held_since, $3), \
       pass_at = CASE WHEN coalesce(held_since, $3) + patience < $2 THEN coalesce(held_since, $3) + patience END WHERE call_sid = $1"
);
/// But for those of one account.
pub(super) const UNPARK: &str = sqlite!(
    queue::UNPARK,
    "IN (",
    queue::BEST_PARKED,
    "(SELECT $1 AS callee, $2 AS but_of) AS free",
    queue::BEST_PARKED_OF_EACH,
    "SELECT call_sid FROM best JOIN call_queue AS one USING (call_sid) ORDER BY due_at, call_sid LIMIT 1)"
);
const TAKE: &str = sqlite!(
    "UPDATE call_queue SET state = {claimed}, node = $1, fence = fence + 1, parked = $2, held_since = CASE WHEN $2 = {in_lane} THEN held_since END, pass_at = NULL WHERE call_sid = $3"
);
pub(super) const TAKEN: &str = sqlite!(
    "SELECT ",
    CLAIMED,
    " FROM call_queue AS queue JOIN calls USING (call_sid) WHERE call_sid = $1"
);
const COUNT: &str = sqlite!(
    "INSERT INTO callee_calls (callee, claimed_at, call_sid, account_sid) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
);

/// Why a call is overdue, and which ones are. All of them are asked with the same values. SQLite, which does not know how few calls are cancelled
/// and accounts suspended, is told what to begin with.
const OVERDUE: [(Overdue, &str); 5] = [
    (
        Overdue::Expired,
        sqlite!(
            "SELECT call_sid FROM call_queue WHERE node IS NULL AND expires_at <= $1 ORDER BY expires_at LIMIT $2"
        ),
    ),
    (
        Overdue::Cancelled,
        sqlite!(
            "SELECT call_sid FROM call_queue INDEXED BY call_queue_cancelled WHERE cancelled = 1 AND resolved = 0 AND node IS NULL AND $1 > 0 LIMIT $2"
        ),
    ),
    (
        Overdue::Resolved,
        sqlite!(
            "SELECT call_sid FROM call_queue INDEXED BY call_queue_cancelled WHERE cancelled = 1 AND resolved = 1 AND node IS NULL AND $1 > 0 LIMIT $2"
        ),
    ),
    (
        Overdue::Cancelled,
        sqlite!(
            "SELECT call_sid FROM accounts CROSS JOIN applications ON applications.account_sid = accounts.sid \
               CROSS JOIN call_queue AS queue ON queue.app_id = applications.id \
             WHERE accounts.state <> '{active}' AND queue.node IS NULL AND queue.parked = {in_lane} AND $1 > 0 LIMIT $2"
        ),
    ),
    (
        Overdue::HeldBack,
        sqlite!(
            "SELECT call_sid FROM call_queue INDEXED BY call_queue_held_back WHERE pass_at <= $1 AND node IS NULL LIMIT $2"
        ),
    ),
];
const STRANDED: &str = sqlite!(
    "SELECT call_sid FROM call_queue INDEXED BY call_queue_patient WHERE route = $1 AND due_at + patience <= $2 AND patience <= $3 \
       AND patience IS NOT NULL AND pass_at IS NULL AND node IS NULL AND parked = {in_lane} LIMIT $4"
);
const ORPHANED_CALLS: &str = sqlite!(
    "SELECT ",
    CLAIMED,
    ", ",
    ORPHANED,
    ", coalesce(queue.seen_at, nodes.heartbeat_at, queue.answered_at, queue.rang_at, queue.dialled_at, calls.accepted_at) \
     FROM call_queue AS queue JOIN calls USING (call_sid) LEFT JOIN nodes ON nodes.node = queue.node \
     WHERE queue.node IS NOT NULL AND (queue.node <> $1 OR call_sid IN (SELECT value FROM json_each($2))) LIMIT $3"
);
const TAKE_OVER: &str =
    sqlite!("UPDATE call_queue SET node = $1, fence = fence + 1, seen_at = $2 WHERE call_sid = $3");

/// Every lane with a call in it, and when its first is due.
pub(super) fn lanes(db: &Connection) -> Result<Vec<(DueLane, i64)>, StoreError> {
    let mut lanes: Vec<(DueLane, i64)> = Vec::new();
    loop {
        let next = match lanes.last() {
            None => db.row(LANE_AFTER, params!["", "", 0], |row| queue::lane(row))?,
            Some((last, _)) => {
                db.row(LANE_AFTER, lane_values(&last.lane), |row| queue::lane(row))?
            }
        };
        match next {
            Some(lane) => lanes.push(lane),
            None => return Ok(lanes),
        }
    }
}

fn lane_values(lane: &Lane) -> (&str, &str, u8) {
    (
        lane.app.as_str(),
        lane.route.as_str(),
        lane.priority.number(),
    )
}

pub(super) fn claim(
    db: &Connection,
    claim: &Claim,
    now: i64,
) -> Result<Vec<ClaimedCall>, StoreError> {
    let mut taken = Vec::new();
    let mut ledger = ledger(db, claim, now)?;
    for share in &claim.shares {
        claim_of_lane(db, claim, share, now, &mut ledger, &mut taken)?;
    }
    if !taken.is_empty() {
        for (customer, tokens) in ledger.tokens() {
            let values = params![customer.key(), tokens.thousandths, tokens.counted_at];
            db.run(KEEP_TOKENS, values)?;
        }
    }
    Ok(taken)
}

/// What the limits of the customers leave.
fn ledger(db: &Connection, claim: &Claim, now: i64) -> Result<LimitLedger, StoreError> {
    let mut ledger = LimitLedger::default();
    for share in &claim.shares {
        let account = share.account.as_str();
        for (customer, limits) in claim.limits_of(share) {
            let under_way = match &customer {
                _ if limits.at_once == u32::MAX => 0,
                Customer::Account(_) => db.only_row(OF_ACCOUNT, [account], |row| row.number(0))?,
                Customer::App(app) => {
                    db.only_row(OF_APP, [account, app.as_str()], |row| row.number(0))?
                }
            };
            let tokens = db.row(TOKENS, [customer.key()], |row| queue::start_tokens(row, 0))?;
            ledger.add(customer, limits, under_way, tokens, now);
        }
    }
    Ok(ledger)
}

fn claim_of_lane(
    db: &Connection,
    claim: &Claim,
    share: &LaneShare,
    now: i64,
    ledger: &mut LimitLedger,
    taken: &mut Vec<ClaimedCall>,
) -> Result<(), StoreError> {
    let (app, route, priority) = lane_values(&share.lane);
    let mut left = ledger
        .left(&share.account, &share.lane.app)
        .min(share.calls);
    let mut looked_at = 0;
    while left > 0 && looked_at < MAX_LOOKED_AT {
        let values = params![app, route, priority, now, left];
        let found = db.rows(DUE_CALLS, values, |row| {
            Ok((row.string(0)?, row.string(1)?, row.flag(2)?))
        })?;
        if found.is_empty() {
            break;
        }
        looked_at += found.len();
        for (sid, callee, is_over) in found {
            if is_over {
                db.run(SET_ASIDE, [&sid])?;
                unpark_unless_busy(db, &callee)?;
            } else if db.exists(IS_BUSY, [&callee])? {
                db.run(PARK, params![sid, now])?;
            } else if let Some(due_at) = capped_until(db, share, &callee, claim.caps, now)? {
                db.run(DEFER, params![sid, due_at, now])?;
                // The caps are those of this account: the callee is free for the others.
                db.run(UNPARK, [&callee, share.account.as_str()])?;
            } else {
                let call = take(db, &sid, &claim.node, Waiting::InLane, now)?;
                db.run(COUNT, params![callee, now, sid, share.account.as_str()])?;
                taken.extend(call);
                ledger.take(&share.account, &share.lane.app);
                left -= 1;
            }
        }
    }
    Ok(())
}

/// The moment from which an account may call a callee again, where the caps do not let it be called now.
fn capped_until(
    db: &Connection,
    share: &LaneShare,
    callee: &str,
    caps: CalleeCaps,
    now: i64,
) -> Result<Option<i64>, StoreError> {
    let mut until = None;
    for (cap, window) in caps.windows() {
        let values = params![callee, now - window, cap - 1, share.account.as_str()];
        let nth = db.row(NTH_LAST_CALL, values, |row| row.number::<i64>(0))?;
        until = until.max(nth.map(|claimed_at| claimed_at + window));
    }
    Ok(until)
}

fn unpark_unless_busy(db: &Connection, callee: &str) -> Result<(), StoreError> {
    if !db.exists(IS_BUSY, [callee])? {
        unpark(db, callee)?;
    }
    Ok(())
}

/// The callee is free: the next call for it takes its place in its lane.
pub(super) fn unpark(db: &Connection, callee: &str) -> Result<(), StoreError> {
    db.run(UNPARK, [callee, ""])?;
    Ok(())
}

fn take(
    db: &Connection,
    sid: &str,
    node: &NodeId,
    waiting: Waiting,
    now: i64,
) -> Result<Option<ClaimedCall>, StoreError> {
    db.run(TAKE, params![node.as_str(), waiting as i16, sid])?;
    db.row(TAKEN, [sid], |row| match waiting {
        Waiting::InLane => queue::claimed_at(row, node, now),
        _ => queue::claimed(row, node),
    })
}

pub(super) fn claim_overdue(
    db: &Connection,
    node: &NodeId,
    now: i64,
    limit: u32,
) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError> {
    let mut found = Vec::new();
    for (why, overdue) in OVERDUE {
        for sid in db.rows(overdue, params![now, limit], |row| row.string(0))? {
            let call = take(db, &sid, node, Waiting::SetAside, now)?;
            found.extend(call.map(|call| (call, why)));
        }
    }
    Ok(found)
}

pub(super) fn claim_stranded(
    db: &Connection,
    node: &NodeId,
    routes: &[DeadRoute],
    now: i64,
    limit: u32,
) -> Result<Vec<ClaimedCall>, StoreError> {
    let mut found = Vec::new();
    for dead in routes {
        let values = params![dead.route.as_str(), now, millis(dead.time), limit];
        for sid in db.rows(STRANDED, values, |row| row.string(0))? {
            found.extend(take(db, &sid, node, Waiting::SetAside, now)?);
        }
    }
    Ok(found)
}

/// Calls of processes that are gone, and those that nobody works at, now ours.
pub(super) fn take_orphaned(
    db: &Connection,
    node: &NodeId,
    abandoned: &[CallSid],
    limit: u32,
) -> Result<Vec<OrphanedCall>, StoreError> {
    let abandoned: Vec<_> = abandoned.iter().map(CallSid::as_str).collect();
    let abandoned = serde_json::json!(abandoned).to_string();
    let values = params![node.as_str(), abandoned, limit];
    let orphaned = db.rows(ORPHANED_CALLS, values, |row| {
        // The row is read before it is changed: the lease has the next fence.
        let mut orphaned = queue::orphaned(row, node)?;
        orphaned.claimed.lease.fence += 1;
        Ok(orphaned)
    })?;
    for call in &orphaned {
        let values = params![
            node.as_str(),
            call.last_seen.as_millisecond(),
            call.claimed.call.sid.as_str()
        ];
        db.run(TAKE_OVER, values)?;
    }
    Ok(orphaned)
}
