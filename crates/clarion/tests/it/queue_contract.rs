//! What every store promises about the queue: leases, fences, one end. One suite, run on SQLite and on PostgreSQL.

mod claiming;
mod progress;
mod recovery;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use clarion::domain::account::AccountSid;
use clarion::domain::call::NewCall;
use clarion::domain::callback::{OwedCallback, RespUrl};
use clarion::domain::claim::{CallUpdate, CalleeCaps, Claim, ClaimedCall, EndedCall, NodeId};
use clarion::domain::outcome::Outcome;
use clarion::domain::phone_number::PhoneNumber;
use clarion::store::Store;
use jiff::{SignedDuration, Timestamp};

use crate::store_contract::call as any_call;
use crate::support::{APP, SID};

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
        resp_url: Some(RespUrl::from_stored("http://example.com/cb".to_owned())),
        ..new_call()
    }
}

fn account() -> AccountSid {
    SID.parse().unwrap()
}

fn claim_for(node: &NodeId, now: Timestamp, limit: u32) -> Claim {
    Claim {
        node: node.clone(),
        now,
        lease_until: now + SignedDuration::from_secs(30),
        shares: vec![(APP.parse().unwrap(), limit)],
        caps: CalleeCaps::default(),
    }
}

async fn claim(
    store: &Arc<dyn Store>,
    node: &NodeId,
    now: Timestamp,
    limit: u32,
) -> Vec<ClaimedCall> {
    store
        .claim_calls(claim_for(node, now, limit))
        .await
        .unwrap()
}

/// An INVITE of this attempt over this trunk is about to leave.
fn dialling(attempt: u32, trunk: &str, at: Timestamp) -> CallUpdate {
    CallUpdate::Dialling {
        attempt,
        trunk: trunk.to_owned(),
        at,
        dialog: format!("{{\"trunk\":\"{trunk}\"}}"),
    }
}

fn ended(claimed: &ClaimedCall, at: Timestamp) -> EndedCall {
    EndedCall {
        claimed: claimed.clone(),
        outcome: Outcome::Talked,
        trunk: Some("first".to_owned()),
        attempts: 1,
        dialled_at: Some(at),
        rang_at: None,
        answered_at: Some(at),
        ended_at: at + SignedDuration::from_millis(1500),
        sip_code: Some(200),
        reason: None,
        legs: vec![],
        bill_day: "2026-11-15".parse().unwrap(),
        callback: claimed.call.resp_url.clone().map(|url| OwedCallback {
            call: claimed.call.sid.clone(),
            app: claimed.call.app.clone(),
            webhook_id: "msg_1".to_owned(),
            url,
            body: "<request/>".to_owned(),
            owed_at: at,
        }),
    }
}
