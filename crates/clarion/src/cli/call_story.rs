//! What is known about a call, for people and as JSON.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::plain;
use crate::clock::Clock;
use crate::domain::attempt::{Attempt, CallHistory, LegOfCall};
use crate::domain::call::CallSid;
use crate::domain::claim::CallRecord;
use crate::domain::leg::{HungUpBy, Leg, LegKey};
use crate::domain::outcome::Outcome;

/// The call itself, without attempts and legs.
pub fn outline(call: &CallRecord, clock: &Clock) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| local(time, clock));
    json!({
        "callSid": call.sid.as_str(),
        "to": call.number.to_string(),
        "state": call.state,
        "outcome": call.outcome.map(Outcome::as_str),
        "accountSid": call.account.as_str(),
        "appId": call.app.as_str(),
        "caller": call.caller,
        "trunk": call.trunk,
        "tries": call.tries,
        "accepted": time(Some(call.accepted_at)),
        "due": time(call.due_at),
        "dialled": time(call.dialled_at),
        "rang": time(call.rang_at),
        "answered": time(call.answered_at),
        "ended": time(call.ended_at),
        "sipCode": call.sip_code,
        "reason": call.reason,
    })
}

fn local(time: Timestamp, clock: &Clock) -> String {
    let local = time.to_zoned(clock.zone().clone());
    local.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

/// Everything, with attempts and legs.
pub fn tell(call: &CallRecord, history: &CallHistory, clock: &Clock, json: bool) -> Value {
    let mut story = outline(call, clock);
    let attempts = history.attempts.iter();
    let attempts = attempts.map(|attempt| describe_attempt(&call.sid, attempt, clock));
    if json {
        let legs = history.legs.iter().map(|leg| describe_leg(leg, clock));
        story["attempts"] = attempts.collect();
        story["legs"] = legs.collect();
        return story;
    }
    for (number, attempt) in (1..).zip(attempts) {
        story[format!("attempt {number}")] = in_one_line(&attempt).into();
    }
    for (number, of_call) in (1..).zip(&history.legs) {
        story[format!("leg {number}")] = tell_leg(&of_call.leg, clock).into();
    }
    story
}

fn describe_attempt(call: &CallSid, attempt: &Attempt, clock: &Clock) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| local(time, clock));
    json!({
        "to": attempt.to.to_string(),
        "outcome": attempt.outcome.as_str(),
        "orderId": attempt.number.order_id(call),
        "dialled": time(attempt.dialled_at),
        "answered": time(attempt.answered_at),
        "ended": time(Some(attempt.ended_at)),
    })
}

fn describe_leg(of_call: &LegOfCall, clock: &Clock) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| local(time, clock));
    let (leg, media) = (&of_call.leg, &of_call.leg.media);
    let with_sound = |figure: Value| media.codec.as_ref().map(|_| figure);
    json!({
        "attempt": of_call.attempt.number(),
        "trunk": leg.trunk,
        "address": leg.address.to_string(),
        "transport": leg.transport,
        "sent": time(Some(leg.sent_at)),
        "rang": time(leg.rang_at),
        "answered": time(leg.answered_at),
        "ended": time(Some(leg.ended_at)),
        "sipCode": leg.sip_code,
        "q850Cause": leg.q850_cause,
        "phrase": leg.phrase,
        "hungUpBy": leg.hung_up_by.as_str(),
        "keys": leg.keys.iter().map(describe_key).collect::<Vec<_>>(),
        "codec": media.codec,
        "mediaAddress": media.address.map(|address| address.to_string()),
        "messageSeconds": with_sound(json!(media.to_play.as_secs_f64())),
        "playedSeconds": with_sound(json!(media.played.as_secs_f64())),
        "packetsSent": with_sound(media.packets_sent.into()),
        "packetsLate": with_sound(media.packets_late.into()),
        "packetsReceived": with_sound(media.packets_received.into()),
        "packetsLost": with_sound(media.packets_lost.into()),
        "packetsLostByPeer": media.peer_lost,
        "jitterMs": with_sound(json!(millis(media.jitter))),
        "worstJitterMs": with_sound(json!(millis(media.worst_jitter))),
        "roundTripMs": media.round_trip.map(millis),
    })
}

fn describe_key(pressed: &LegKey) -> Value {
    json!({ "key": pressed.key.to_string(), "afterSeconds": pressed.after.as_secs_f64() })
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A leg for people, a line for each thing that there is to say.
fn tell_leg(leg: &Leg, clock: &Clock) -> Map<String, Value> {
    let since = |time: Timestamp| after(time.duration_since(leg.sent_at));
    let transport = leg.transport.as_deref().unwrap_or("unknown transport");
    let keys = leg.keys.iter().map(|pressed| {
        let moment = pressed.after.as_secs_f64();
        format!("{} {moment:.1} s after the answer", pressed.key)
    });
    let keys = keys.collect::<Vec<_>>().join(", ");
    let lines = [
        ("trunk", Some(leg.trunk.clone())),
        ("address", Some(format!("{} {transport}", leg.address))),
        ("sent", Some(local(leg.sent_at, clock))),
        ("rang", leg.rang_at.map(since)),
        ("answered", leg.answered_at.map(since)),
        ("ended", Some(since(leg.ended_at))),
        ("hung up by", Some(hung_up_by(leg.hung_up_by).to_owned())),
        ("response", response(leg)),
        ("Q.850 cause", leg.q850_cause.map(|cause| cause.to_string())),
        ("keys", Some(keys).filter(|keys| !keys.is_empty())),
    ];
    let lines = lines.into_iter().chain(tell_sound(leg));
    let said = lines.filter_map(|(name, text)| Some((name.to_owned(), text?.into())));
    said.collect()
}

/// What was sent and received, where there was sound.
fn tell_sound(leg: &Leg) -> Vec<(&'static str, Option<String>)> {
    let media = &leg.media;
    let Some(codec) = &media.codec else {
        return Vec::new();
    };
    let address = media.address.map(|address| format!(" to {address}"));
    let (played, whole) = (media.played.as_secs_f64(), media.to_play.as_secs_f64());
    let lost = media
        .peer_lost
        .map(|lost| format!("; the peer misses {lost}"));
    let (jitter, worst) = (millis(media.jitter), millis(media.worst_jitter));
    let trip = media.round_trip.map(millis);
    vec![
        (
            "codec",
            Some(format!("{codec}{}", address.unwrap_or_default())),
        ),
        (
            "message",
            Some(format!("{played:.1} of {whole:.1} s played")),
        ),
        (
            "packets sent",
            Some(format!(
                "{}, {} of them late{}",
                media.packets_sent,
                media.packets_late,
                lost.unwrap_or_default()
            )),
        ),
        (
            "packets received",
            Some(format!(
                "{}, {} lost",
                media.packets_received, media.packets_lost
            )),
        ),
        (
            "jitter",
            Some(format!("{jitter:.1} ms, {worst:.1} ms at worst")),
        ),
        ("round trip", trip.map(|trip| format!("{trip:.1} ms"))),
    ]
}

fn after(time: SignedDuration) -> String {
    format!("after {:.3} s", time.as_secs_f64())
}

fn hung_up_by(side: HungUpBy) -> &'static str {
    match side {
        HungUpBy::Nobody => "nobody: there was no call",
        HungUpBy::Us => "us",
        HungUpBy::Them => "the other side",
        HungUpBy::Unknown => "unknown: the server was lost",
    }
}

fn response(leg: &Leg) -> Option<String> {
    match (leg.sip_code, &leg.phrase) {
        (Some(code), Some(phrase)) => Some(format!("{code} {phrase}")),
        (Some(code), None) => Some(code.to_string()),
        (None, phrase) => phrase.clone(),
    }
}

/// Names and values of what there is.
fn in_one_line(row: &Value) -> String {
    let fields = row.as_object().into_iter().flatten();
    let fields = fields.filter(|(_, value)| !value.is_null());
    let fields = fields.map(|(name, value)| format!("{name} {}", plain(value)));
    fields.collect::<Vec<_>>().join(", ")
}
