//! Makes calls and records for bills, without telephones.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use clarion::domain::account::AccountChange;
use clarion::domain::bill::call_type::CallType;
use clarion::domain::bill::import::ImportedRecord;
use clarion::domain::bill::record::Record;
use clarion::domain::bill::{BillLine, BillOf, calendar};
use clarion::domain::call::NewCall;
use clarion::domain::claim::{CalleeCaps, Claim, ClaimedCall, DueLane, LaneShare, NodeId};
use clarion::domain::ended_call::EndedCall;
use clarion::domain::money::Money;
use clarion::domain::outcome::Outcome;
use clarion::domain::phone_number::PhoneNumber;
use clarion::store::Store;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{APP, SID, TestServer};
use crate::store_contract;
use crate::store_contract::order;

pub fn zone() -> TimeZone {
    TimeZone::get(super::ZONE).unwrap()
}

pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub fn day(text: &str) -> Date {
    text.parse().unwrap()
}

pub fn money(text: &str) -> Money {
    text.parse().unwrap()
}

pub fn bill_of(on: &str) -> BillOf {
    BillOf {
        account: SID.parse().unwrap(),
        app: APP.parse().unwrap(),
        day: day(on),
    }
}

/// Returns a new call to a number.
pub fn call(digits: &str, accepted_at: Timestamp) -> NewCall {
    static NUMBER: AtomicU64 = AtomicU64::new(1 << 40);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    NewCall {
        accepted_at,
        number: PhoneNumber::from_stored(digits.to_owned(), None),
        callee: digits.to_owned(),
        ..store_contract::call(number.into())
    }
}

/// Claims so many calls of each lane.
pub async fn claim(store: &dyn Store, limit: u32) -> Vec<ClaimedCall> {
    let lanes = store.queued_lanes().await.unwrap().due;
    let share = |due: DueLane| LaneShare {
        account: due.account,
        lane: due.lane,
        calls: limit,
    };
    let claim = Claim {
        node: NodeId::new([7; 8]),
        shares: lanes.into_iter().map(share).collect(),
        limits: HashMap::new(),
        caps: CalleeCaps::default(),
    };
    store.claim_calls(claim).await.unwrap()
}

/// Returns the end of a call: after this number of seconds of talk, or without an answer.
pub fn ended(
    claimed: &ClaimedCall,
    talk: Option<i64>,
    outcome: Outcome,
    ended_at: Timestamp,
) -> EndedCall {
    let answered_at = talk.map(|seconds| ended_at - SignedDuration::from_secs(seconds));
    EndedCall {
        choice: None,
        if_called_off: None,
        voice: None,
        events: Vec::new(),
        notice: None,
        claimed: claimed.clone(),
        outcome,
        trunk: None,
        tries: 1,
        dialled_at: Some(answered_at.unwrap_or(ended_at)),
        rang_at: None,
        answered_at,
        ended_at,
        sip_code: None,
        reason: None,
        legs: vec![],
        bill_day: calendar::day_of(ended_at, &zone()),
        callback: None,
    }
}

/// Accepts, claims and ends a call. Returns its bill line.
pub async fn talk(store: &dyn Store, digits: &str, seconds: i64, ended_at: Timestamp) -> BillLine {
    let call = call(digits, ended_at - SignedDuration::from_secs(seconds + 10));
    store.accept_call(order(call.clone())).await.unwrap();
    let claimed = claim(store, 1).await.remove(0);
    assert_eq!(claimed.call.sid, call.sid);
    let end = ended(&claimed, Some(seconds), Outcome::Talked, ended_at);
    assert!(store.end_call(end).await.unwrap());
    line_of(store, call.sid.as_str(), ended_at).await
}

/// Returns the line with this id. It may be billed on the day of its end or on a later day.
pub async fn line_of(store: &dyn Store, id: &str, ended_at: Timestamp) -> BillLine {
    let mut on = calendar::day_of(ended_at, &zone());
    for _ in 0..400 {
        let of = BillOf {
            day: on,
            ..bill_of("2026-01-01")
        };
        let lines = store.bill_lines(&of, None, 100_000).await.unwrap();
        if let Some(line) = lines.into_iter().find(|line| line.order_id == id) {
            return line;
        }
        on = on.tomorrow().unwrap();
    }
    panic!("no line {id}");
}

/// Returns a record of another service.
pub fn record(id: &str, ended_at: Timestamp, fee: Money) -> ImportedRecord {
    let line = BillLine {
        order_id: id.to_owned(),
        call_type: CallType::TemplateSms,
        call_sid: None,
        caller: "1234".to_owned(),
        called: "+8613800000000".to_owned(),
        started_at: ended_at,
        answered_at: None,
        ended_at,
        seconds: 0,
        units: 1,
        rate: fee,
        fee,
        outcome: "sent".to_owned(),
        user_data: Some("=1+1, \"x\"".to_owned()),
    };
    ImportedRecord {
        record: Record {
            app: APP.parse().unwrap(),
            line,
        },
        day: calendar::day_of(ended_at, &zone()),
    }
}

/// Adds many records that end on one day, a millisecond apart.
pub async fn add_records(store: &dyn Store, from: Timestamp, count: usize) {
    let records: Vec<_> = (0..count)
        .map(|number| {
            let moment = from + SignedDuration::from_millis(number.try_into().unwrap());
            let id = format!("{}-{number}", from.as_second());
            record(&id, moment, money("0.05"))
        })
        .collect();
    let imported = store.import_records(records, false).await.unwrap();
    assert_eq!(imported.added, count, "{imported:?}");
}

impl TestServer {
    /// Permits the download of bills. Must be called before the first request, because an account is remembered for a moment.
    pub async fn permit_bills(&self) {
        let change = AccountChange {
            bill_download: Some(true),
            ..AccountChange::default()
        };
        self.change_account(change).await;
    }

    /// Moves the server's own clock.
    pub fn set_time(&self, wall: &str) {
        let now = self.clock.now();
        self.clock.shift(at(wall).duration_since(now));
    }
}
