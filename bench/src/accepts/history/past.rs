//! Ended calls as they would be after half a year, spread over it in order, so that whatever is accepted now sorts after them.

use clarion::domain::call::CallSid;
use clarion::domain::outcome::Outcome;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::super::customer::{self, BenchCustomer};

const SPAN: SignedDuration = SignedDuration::from_hours(24 * 180);
/// Nothing of the past is younger than this.
const YOUNGEST: SignedDuration = SignedDuration::from_hours(1);
const TRUNKS: [&str; 3] = ["carrier-north", "carrier-south", "carrier-spare"];
/// In millionths of the currency unit, for a minute.
const RATE: i64 = 60_000;

#[derive(Debug)]
pub struct Past {
    pub account: String,
    pub app: String,
    pub prompt: String,
    pub resp_url: &'static str,
    pub calls: u64,
    zone: TimeZone,
    first: Timestamp,
    step_nanos: i64,
}

/// What is told about one ended call, in `calls` and in `bill_lines`.
#[derive(Debug)]
pub struct PastCall {
    pub sid: String,
    pub day: String,
    pub called: String,
    pub number: String,
    pub user_data: String,
    pub outcome: Outcome,
    pub trunk: &'static str,
    pub sip_code: i16,
    pub accepted_at: i64,
    pub dialled_at: i64,
    pub rang_at: Option<i64>,
    pub answered_at: Option<i64>,
    pub ended_at: i64,
    pub seconds: i32,
    pub units: i32,
    pub rate: i64,
    pub fee: i64,
}

/// The number that these calls are shown to come from.
pub const CALLER: &str = "4001234567";
/// A bill line of a voice notification.
pub const BILL_TYPE: i16 = 14;

impl Past {
    pub fn new(customer: &BenchCustomer, calls: u64) -> Self {
        let now = customer.clock.now();
        let step = SPAN.as_nanos() / i128::from(calls.max(1));
        Self {
            account: customer.credentials.sid.to_string(),
            app: customer.app.to_string(),
            prompt: serde_json::to_string(&customer::prompt()).expect("a prompt is plain JSON"),
            resp_url: customer::RESP_URL,
            calls,
            zone: customer.clock.zone().clone(),
            first: now - SPAN - YOUNGEST,
            step_nanos: i64::try_from(step).expect("half a year of nanoseconds"),
        }
    }

    pub fn call(&self, order: u64) -> PastCall {
        let chance = scramble(order);
        let accepted = self.first
            + SignedDuration::from_nanos(self.step_nanos * i64::try_from(order).unwrap_or(0));
        let wall = accepted.to_zoned(self.zone.clone());
        let (outcome, sip_code) = how_it_ended(chance % 100);
        let answered = outcome == Outcome::Talked;
        let rang = !matches!(outcome, Outcome::InvalidNumber | Outcome::TrunkFailure);
        let after = |from: i64, range: u64, shift: u32| {
            from + i64::try_from((chance >> shift) % range).unwrap_or_default()
        };
        let accepted_at = accepted.as_millisecond();
        let dialled_at = after(accepted_at + 15, 200, 8);
        let rang_at = rang.then(|| after(dialled_at + 800, 3_000, 16));
        let answered_at = rang_at
            .filter(|_| answered)
            .map(|rang| after(rang + 2_000, 15_000, 24));
        let ended_at = after(
            answered_at.or(rang_at).unwrap_or(dialled_at) + 3_000,
            40_000,
            32,
        );
        let talked = answered_at.map_or(0, |answered| (ended_at - answered + 999) / 1000);
        let units = (talked + 59) / 60;
        PastCall {
            sid: CallSid::new(&wall, chance.to_be_bytes()).to_string(),
            day: wall.date().to_string(),
            called: customer::called(chance),
            number: customer::number(chance),
            user_data: customer::user_data(order),
            outcome,
            trunk: TRUNKS[usize::from(sip_code.unsigned_abs()) % TRUNKS.len()],
            sip_code,
            accepted_at,
            dialled_at,
            rang_at,
            answered_at,
            ended_at,
            seconds: i32::try_from(talked).unwrap_or_default(),
            units: i32::try_from(units).unwrap_or_default(),
            rate: RATE,
            fee: RATE * units,
        }
    }
}

fn how_it_ended(percent: u64) -> (Outcome, i16) {
    match percent {
        0..70 => (Outcome::Talked, 200),
        70..85 => (Outcome::NotAnswered, 487),
        85..93 => (Outcome::Busy, 486),
        93..96 => (Outcome::Declined, 603),
        96..98 => (Outcome::InvalidNumber, 404),
        _ => (Outcome::TrunkFailure, 503),
    }
}

/// SplitMix64: looks random, costs nothing, and is the same in every run.
fn scramble(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
