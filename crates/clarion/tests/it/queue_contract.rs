//! What every store promises about the queue: leases, fences, one end. One suite, run on SQLite and on PostgreSQL.

mod backlog;
mod choices;
mod claiming;
mod group_commit;
mod lanes;
mod legs;
mod progress;
mod recovery;
mod requests;
mod sharing;
mod stories;
mod turns;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use clarion::domain::account::AccountSid;
use clarion::domain::call::NewCall;
use clarion::domain::callback::{CallbackKey, OwedCallback, RespUrl};
use clarion::domain::claim::{
    CallUpdate, CalleeCaps, Claim, ClaimedCall, Lane, LaneShare, NodeId, Requeue,
};
use clarion::domain::ended_call::EndedCall;
use clarion::domain::outcome::Outcome;
use clarion::domain::phone_number::PhoneNumber;
use clarion::store::{Database, Store};
use jiff::{SignedDuration, Timestamp};

use crate::store_contract::{call as any_call, lane};
use crate::support::{self, SID};

/// A second after the calls were accepted.
fn now() -> Timestamp {
    "2026-11-15T02:35:10.123Z".parse().unwrap()
}

fn new_call() -> NewCall {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    any_call(NUMBER.fetch_add(1, Ordering::Relaxed).into())
}

fn node(number: u8) -> NodeId {
    NodeId::new([number; 8])
}

fn call(number: &str) -> NewCall {
    NewCall {
        number: PhoneNumber::from_stored(number.to_owned(), None),
        callee: number.to_owned(),
        resp_url: Some(RespUrl::from_stored("http://example.com/cb".to_owned())),
        ..new_call()
    }
}

fn account() -> AccountSid {
    SID.parse().unwrap()
}

const LEASE: SignedDuration = SignedDuration::from_secs(30);

fn share(lane: Lane, calls: u32) -> LaneShare {
    LaneShare {
        account: account(),
        lane,
        calls,
    }
}

fn claim_for(node: &NodeId, limit: u32) -> Claim {
    Claim {
        node: node.clone(),
        shares: vec![share(lane(), limit)],
        limits: HashMap::new(),
        caps: CalleeCaps::default(),
    }
}

/// What a living node claims.
async fn claim(store: &Arc<dyn Store>, node: &NodeId, limit: u32) -> Vec<ClaimedCall> {
    store.heartbeat(node, now(), LEASE).await.unwrap();
    store.claim_calls(claim_for(node, limit)).await.unwrap()
}

/// Of the ten oldest calls.
async fn forget_calls(store: &dyn Store, before: Timestamp) -> u64 {
    let step = store.forget_calls(before, None, 10).await.unwrap();
    step.forgotten
}

/// Time passes for the queue: everything in it lies further back.
async fn pass(database: &Database, time: SignedDuration) {
    let millis = time.as_millis();
    let statements = format!(
        "UPDATE call_queue SET due_at = due_at - {millis}, expires_at = expires_at - {millis}, held_since = held_since - {millis}, pass_at = pass_at - {millis};
         UPDATE callee_calls SET claimed_at = claimed_at - {millis};
         UPDATE nodes SET lease_until = lease_until - {millis}, steady_since = steady_since - {millis}, heartbeat_at = heartbeat_at - {millis};"
    );
    support::execute(database, &statements).await;
}

/// An INVITE over this trunk is about to leave.
fn dialling(tries: u32, trunk: &str, at: Timestamp) -> CallUpdate {
    CallUpdate::Dialling {
        tries,
        trunk: trunk.to_owned(),
        at,
        dialog: format!("{{\"trunk\":\"{trunk}\"}}"),
    }
}

/// Back to the queue without a leg.
fn back(pause: SignedDuration, tries: u32) -> Requeue {
    Requeue {
        pause,
        tries,
        legs: vec![],
        is_held_back: false,
    }
}

fn ended(claimed: &ClaimedCall, at: Timestamp) -> EndedCall {
    EndedCall {
        choice: None,
        if_called_off: None,
        voice: Some("anna".to_owned()),
        events: Vec::new(),
        notice: None,
        claimed: claimed.clone(),
        outcome: Outcome::Talked,
        trunk: Some("first".to_owned()),
        tries: 1,
        dialled_at: Some(at),
        rang_at: None,
        answered_at: Some(at),
        ended_at: at + SignedDuration::from_millis(1500),
        sip_code: Some(200),
        reason: None,
        legs: vec![],
        bill_day: "2026-11-15".parse().unwrap(),
        callback: claimed.call.resp_url.clone().map(|url| OwedCallback {
            key: CallbackKey::of_end(claimed.call.sid.clone()),
            app: claimed.call.app.clone(),
            webhook_id: "msg_1".to_owned(),
            url,
            body: "<request/>".to_owned(),
            owed_at: at,
            valid_for: None,
        }),
    }
}
