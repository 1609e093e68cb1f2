//! Attempts and legs: written once, when they are over, and read for operators.

use std::time::Duration;

use super::{Statement, statement};
use crate::domain::attempt::{Attempt, AttemptNumber, LegOfCall};
use crate::domain::ended_call::EndedCall;
use crate::domain::hearing::AnsweredBy;
use crate::domain::leg::{HangUpReason, HungUpBy, Leg, LegMedia};
use crate::domain::notice::keys::CalleeChoice;
use crate::domain::outcome::Outcome;
use crate::domain::phone_number::PhoneNumber;
use crate::store::StoreError;
use crate::store::binding::Bind;
use crate::store::columns::Columns;

/// What a leg consists of, besides where it belongs.
pub const LEG: &str = "trunk, address, transport, sent_at, rang_at, answered_at, ended_at, sip_code, q850_cause, phrase, hung_up_by, \
  codec, packets_sent, packets_late, packets_received, packets_lost, jitter, worst_jitter, keys, media_address, to_play, played, \
  round_trip, peer_lost, heard, hang_up_reason";
/// The columns of `LEG`.
pub const LEG_COLUMNS: usize = 26;

pub const LEGS: Statement = statement!(
    "SELECT ",
    LEG,
    ", attempt, leg FROM legs WHERE call_sid = $1 ORDER BY attempt, leg"
);
pub const ATTEMPTS: Statement = statement!(
    "SELECT attempt, number, extension, outcome, dialled_at, answered_at, ended_at, choice, answered_by, voice FROM attempts WHERE call_sid = $1 ORDER BY attempt"
);

pub const KEEP_ATTEMPT: Statement = statement!(
    "INSERT INTO attempts (call_sid, attempt, number, extension, outcome, dialled_at, answered_at, ended_at, choice, answered_by, voice) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
);

/// The values of `KEEP_ATTEMPT`.
pub fn attempt_values(ended: &EndedCall, legs_before: u32) -> [Bind<'_>; 11] {
    let call = &ended.claimed.call;
    [
        Bind::of(call.sid.as_str()),
        Bind::of(u32::from(ended.claimed.attempt.number())),
        Bind::of(call.number.digits()),
        Bind::of(call.number.extension()),
        Bind::of(i64::from(ended.outcome.number())),
        Bind::of(ended.attempt_dialled_at(legs_before)),
        Bind::of(ended.answered_at),
        Bind::of(ended.ended_at),
        Bind::of(ended.choice.map(CalleeChoice::to_stored)),
        Bind::of(ended.answered_by().map(|by| i64::from(by.number()))),
        Bind::of(ended.voice.as_ref()),
    ]
}

/// The values of `LEG`. A peer may make figures as large as it likes: those that a column does not hold are cut.
pub fn values(leg: &Leg) -> [Bind<'_>; LEG_COLUMNS] {
    let media = (leg.media != LegMedia::default()).then_some(&leg.media);
    let count = |figure: fn(&LegMedia) -> u128| Bind::of(media.map(|media| cut(figure(media))));
    let keys = leg.keys.iter().map(ToString::to_string);
    let keys = keys.collect::<Vec<_>>().join(" ");
    [
        Bind::of(&leg.trunk),
        Bind::of(leg.address.to_string()),
        Bind::of(leg.transport.as_deref()),
        Bind::of(leg.sent_at),
        Bind::of(leg.rang_at),
        Bind::of(leg.answered_at),
        Bind::of(leg.ended_at),
        Bind::of(
            leg.sip_code
                .and_then(|code| i16::try_from(code).ok())
                .map(i64::from),
        ),
        Bind::of(leg.q850_cause.map(i64::from)),
        Bind::of(leg.phrase.as_deref()),
        Bind::of(i64::from(leg.hung_up_by.number())),
        Bind::of(media.and_then(|media| media.codec.as_deref())),
        count(|media| media.packets_sent.into()),
        count(|media| media.packets_late.into()),
        count(|media| media.packets_received.into()),
        count(|media| media.packets_lost.into()),
        count(|media| media.jitter.as_micros()),
        count(|media| media.worst_jitter.as_micros()),
        Bind::of(Some(keys).filter(|keys| !keys.is_empty())),
        Bind::of(
            leg.media
                .address
                .map(|media_address| media_address.to_string()),
        ),
        count(|media| media.to_play.as_millis()),
        count(|media| media.played.as_millis()),
        Bind::of(leg.media.round_trip.map(|time| cut(time.as_micros()))),
        Bind::of(leg.media.peer_lost.map(i64::from)),
        Bind::of(leg.heard.map(|heard| heard.to_string())),
        Bind::of(leg.hang_up_reason.map(HangUpReason::as_str)),
    ]
}

fn cut(figure: u128) -> i64 {
    i32::try_from(figure).unwrap_or(i32::MAX).into()
}

/// Reads the columns of `LEG`, the attempt and the leg's number.
pub fn leg(row: &impl Columns) -> Result<LegOfCall, StoreError> {
    let figure = |column| Ok::<u32, StoreError>(row.optional_number(column)?.unwrap_or(0));
    let micros = |column| Ok::<_, StoreError>(Duration::from_micros(figure(column)?.into()));
    let millis = |column| Ok::<_, StoreError>(Duration::from_millis(figure(column)?.into()));
    let hung_up_by = HungUpBy::from_number(row.number(10)?);
    let keys = row.optional_text(18)?.unwrap_or_default();
    let keys = keys.split_whitespace().map(str::parse);
    let leg = Leg {
        trunk: row.string(0)?,
        address: row.parsed(1)?,
        transport: row.optional_string(2)?,
        sent_at: row.time(3)?,
        rang_at: row.optional_time(4)?,
        answered_at: row.optional_time(5)?,
        ended_at: row.time(6)?,
        sip_code: row.optional_number(7)?,
        q850_cause: row.optional_number(8)?,
        phrase: row.optional_string(9)?,
        hung_up_by: hung_up_by.unwrap_or(HungUpBy::Unknown),
        hang_up_reason: row.optional_text(25)?.and_then(HangUpReason::from_name),
        keys: keys
            .collect::<Result<_, String>>()
            .map_err(StoreError::failed)?,
        heard: row.optional_parsed(24)?,
        media: LegMedia {
            codec: row.optional_string(11)?,
            packets_sent: figure(12)?,
            packets_late: figure(13)?,
            packets_received: figure(14)?,
            packets_lost: figure(15)?,
            jitter: micros(16)?,
            worst_jitter: micros(17)?,
            address: row.optional_parsed(19)?,
            to_play: millis(20)?,
            played: millis(21)?,
            round_trip: row.optional_number(22)?.map(Duration::from_micros),
            peer_lost: row.optional_number(23)?,
        },
    };
    Ok(LegOfCall {
        attempt: attempt_number(row, LEG_COLUMNS)?,
        number: row.number(LEG_COLUMNS + 1)?,
        leg,
    })
}

pub fn attempt(row: &impl Columns) -> Result<Attempt, StoreError> {
    let outcome = row.number(3)?;
    Ok(Attempt {
        number: attempt_number(row, 0)?,
        to: PhoneNumber::from_stored(row.string(1)?, row.optional_string(2)?),
        outcome: Outcome::from_number(outcome)
            .ok_or_else(|| StoreError::failed(format!("there is no outcome {outcome}")))?,
        dialled_at: row.optional_time(4)?,
        answered_at: row.optional_time(5)?,
        ended_at: row.time(6)?,
        choice: choice(row, 7)?,
        answered_by: row.optional_number(8)?.and_then(AnsweredBy::from_number),
        voice: row.optional_string(9)?,
    })
}

/// What a callee has said by keys.
pub fn choice(row: &impl Columns, column: usize) -> Result<Option<CalleeChoice>, StoreError> {
    let Some(text) = row.optional_text(column)? else {
        return Ok(None);
    };
    let choice = CalleeChoice::from_stored(text);
    let choice = choice.ok_or_else(|| StoreError::failed(format!("there is no choice {text}")));
    choice.map(Some)
}

pub fn attempt_number(row: &impl Columns, column: usize) -> Result<AttemptNumber, StoreError> {
    AttemptNumber::new(row.number(column)?).ok_or_else(|| StoreError::failed("an attempt 0"))
}
