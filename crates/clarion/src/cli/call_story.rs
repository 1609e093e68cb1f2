//! What is known about a call, for people and as JSON.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::call_steps::{self, local};
use super::plain;
use crate::clock::Clock;
use crate::domain::attempt::{Attempt, AttemptNumber, LegOfCall};
use crate::domain::call::Priority;
use crate::domain::call_record::{CallRecord, CurrentAttempt};
use crate::domain::call_state::CallState;
use crate::domain::hearing::AnsweredBy;
use crate::domain::leg::{HangUpReason, HungUpBy, Leg, LegKey};
use crate::domain::notice::Notice;
use crate::domain::notice::ending::NoticeEnding;
use crate::domain::notice::keys::{CalleeChoice, NoticeKeys};
use crate::domain::notice::machine::MachineDetection;
use crate::domain::notice::plan::FollowUp;
use crate::domain::outcome::Outcome;
use crate::management::{CallStep, SeenCall};

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

/// Everything, with attempts, legs and callback.
pub fn tell(seen: &SeenCall, clock: &Clock, json: bool) -> Value {
    let (call, history) = (&seen.record, &seen.history);
    let mut story = outline(call, clock);
    story["requestId"] = json!(call.request_id);
    story["priority"] = json!(call.priority.map(Priority::number));
    story["validUntil"] = json!(call.expires_at.map(|until| local(until, clock)));
    let callback = seen.callback.as_ref();
    let attempts = history.attempts.iter();
    let attempts = attempts.map(|attempt| describe_attempt(seen, attempt, clock));
    if json {
        let legs = history.legs.iter().map(|leg| describe_leg(leg, clock));
        let notice = call.notice.as_deref();
        story["notice"] = json!(notice.map(|notice| describe_notice(seen, notice, clock)));
        story["attempts"] = attempts.collect();
        story["legs"] = legs.collect();
        story["callback"] = json!(callback.map(|callback| {
            json!({
                "state": callback.state.as_str(),
                "host": callback.url.host(),
                "attempts": callback.attempts,
            })
        }));
        return story;
    }
    if let Some(callback) = callback {
        let step = CallStep::of_callback(callback, clock.now());
        story["callback"] = call_steps::sentence(&step.kind, clock).into();
    }
    if let Some(notice) = call.notice.as_deref() {
        story["notice"] = tell_notice(seen, notice).into();
        for (number, attempt) in (1..).zip(&history.attempts) {
            let told = tell_attempt(seen, attempt, clock);
            story[format!("attempt {number}")] = told.into();
        }
        if let Some(current) = seen.current() {
            let number = current.number.number();
            story[format!("attempt {number}")] = tell_current(seen, current, clock).into();
        }
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

/// What a notice asks for, how it ended, and what it is at.
fn describe_notice(seen: &SeenCall, notice: &Notice, clock: &Clock) -> Value {
    let (call, plan) = (&seen.record, &notice.plan);
    let numbers = notice.numbers.iter().map(|to| to.number.to_string());
    let pauses = plan.pauses.iter().map(SignedDuration::as_secs);
    let reasons = plan.redial_on.iter().map(|reason| reason.as_str());
    let next = seen.current().map(|current| {
        json!({
            "attempt": current.number.number(),
            "to": current.to.to_string(),
            "due": call.due_at.map(|due| local(due, clock)),
            "why": seen.why(current.number, &current.to).map(FollowUp::as_str),
        })
    });
    json!({
        "numbers": numbers.collect::<Vec<_>>(),
        "redialTimes": plan.redials,
        "redialInterval": pauses.collect::<Vec<_>>(),
        "redialOn": reasons.collect::<Vec<_>>(),
        "backupAfter": plan.tries_a_turn,
        "callWindow": notice.window.as_ref().map(ToString::to_string),
        "ringTime": notice.ring,
        "lists": notice.list_names().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "keys": notice.keys.as_ref().map(|keys| {
            json!({
                "confirm": keys.confirm.iter().map(char::to_string).collect::<Vec<_>>(),
                "replay": keys.replay.map(String::from),
                "stop": keys.stop.map(String::from),
                "waitSeconds": keys.wait,
            })
        }),
        "machineDetect": notice.machine.map(MachineDetection::as_str),
        "eventsTo": call.events.as_ref().map(|events| events.url.host()),
        "ending": call.ending.map(NoticeEnding::as_str),
        "state": call.callback_state().map(String::from),
        "current": next,
    })
}

fn tell_notice(seen: &SeenCall, notice: &Notice) -> Map<String, Value> {
    let (call, plan) = (&seen.record, &notice.plan);
    let numbers = notice.numbers.iter().map(|to| to.number.to_string());
    let lists = notice.list_names().into_iter().map(|name| name.to_string());
    let lists = Some(lists.collect::<Vec<_>>().join(", ")).filter(|lists| !lists.is_empty());
    let pauses = plan.pauses.iter().map(|pause| pause.as_secs().to_string());
    let reasons = plan.redial_on.iter().map(|reason| reason.as_str());
    let again = (plan.redials > 0).then(|| {
        let pauses = pauses.collect::<Vec<_>>().join(", ");
        let reasons = reasons.collect::<Vec<_>>().join(", ");
        format!("{} times, after {pauses} s, on {reasons}", plan.redials)
    });
    let turn = plan.tries_a_turn.map(|tries| format!("{tries} tries"));
    let ended = call.ending.zip(call.callback_state());
    let ended = ended.map(|(ending, state)| format!("{}, state {state}", ending.as_str()));
    said([
        ("numbers", Some(numbers.collect::<Vec<_>>().join(", "))),
        ("lists", lists),
        ("keys", notice.keys.as_ref().map(tell_keys)),
        ("tried again", again),
        ("turn of a number", turn),
        ("hours", notice.window.as_ref().map(ToString::to_string)),
        ("rings", notice.ring.map(|ring| format!("{ring} s"))),
        ("machines", notice.machine.map(tell_machine)),
        (
            "events to",
            call.events.as_ref().map(|events| events.url.host()),
        ),
        ("ended", ended),
    ])
}

fn tell_machine(wanted: MachineDetection) -> String {
    let told = match wanted {
        MachineDetection::Report => "reported",
        MachineDetection::HangUp => "hung up on",
        MachineDetection::AfterBeep => "spoken to after the beep",
    };
    told.to_owned()
}

fn tell_keys(keys: &NoticeKeys) -> String {
    let confirm = keys.confirm.iter().map(char::to_string);
    let confirm = confirm.collect::<Vec<_>>().join(" or ");
    let told = [
        (!confirm.is_empty()).then(|| format!("{confirm} confirms")),
        keys.replay.map(|key| format!("{key} plays again")),
        keys.stop.map(|key| format!("{key} twice: no more calls")),
        Some(format!("waited for {} s", keys.wait)),
    ];
    told.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What a callee has said by keys.
fn tell_choice(choice: CalleeChoice) -> String {
    match choice {
        CalleeChoice::Confirmed(key) => format!("confirmed by key {key}"),
        CalleeChoice::Stopped => "wants no more calls".to_owned(),
    }
}

/// An attempt of a notice for people: why it came, what became of it, and its legs.
fn tell_attempt(seen: &SeenCall, attempt: &Attempt, clock: &Clock) -> Map<String, Value> {
    let time = |time: Option<Timestamp>| time.map(|time| local(time, clock));
    let why = seen.why(attempt.number, &attempt.to);
    let outcome = attempt.outcome;
    let mut told = said([
        ("why", why.map(|why| why.meaning().to_owned())),
        ("to", Some(attempt.to.to_string())),
        (
            "outcome",
            Some(format!("{}: {}", outcome.as_str(), outcome.meaning())),
        ),
        ("said", attempt.choice.map(tell_choice)),
        (
            "answered by",
            attempt.answered_by.map(|by| by.as_str().to_owned()),
        ),
        ("spoken by", attempt.voice.clone()),
        ("order id", Some(attempt.number.order_id(&seen.record.sid))),
        ("dialled", time(attempt.dialled_at)),
        ("answered", time(attempt.answered_at)),
        ("ended", time(Some(attempt.ended_at))),
    ]);
    add_legs(&mut told, seen, attempt.number, clock);
    told
}

/// The attempt that a notice is at.
fn tell_current(seen: &SeenCall, current: &CurrentAttempt, clock: &Clock) -> Map<String, Value> {
    let call = &seen.record;
    let why = seen.why(current.number, &current.to);
    let waits = call.state == CallState::Queued;
    let state = json!(call.state);
    let mut told = said([
        ("why", why.map(|why| why.meaning().to_owned())),
        ("to", Some(current.to.to_string())),
        ("state", Some(plain(&state))),
        (
            "due",
            call.due_at.filter(|_| waits).map(|time| local(time, clock)),
        ),
    ]);
    add_legs(&mut told, seen, current.number, clock);
    told
}

fn add_legs(told: &mut Map<String, Value>, seen: &SeenCall, attempt: AttemptNumber, clock: &Clock) {
    for (number, leg) in (1..).zip(seen.history.legs_of(attempt)) {
        told.insert(format!("leg {number}"), tell_leg(leg, clock).into());
    }
}

fn describe_attempt(seen: &SeenCall, attempt: &Attempt, clock: &Clock) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| local(time, clock));
    let call = &seen.record.sid;
    json!({
        "why": seen.why(attempt.number, &attempt.to).map(FollowUp::as_str),
        "to": attempt.to.to_string(),
        "outcome": attempt.outcome.as_str(),
        "answeredBy": attempt.answered_by.map(AnsweredBy::as_str),
        "confirmKey": attempt.choice.and_then(CalleeChoice::confirming_key).map(String::from),
        "voice": attempt.voice,
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
        "hangUpReason": leg.hang_up_reason.map(HangUpReason::as_str),
        "heard": leg.heard.map(call_steps::describe_hearing),
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
        ("hung up by", Some(hung_up_by(leg))),
        ("response", leg.response()),
        ("Q.850 cause", leg.q850_cause.map(|cause| cause.to_string())),
        ("heard", leg.heard.map(call_steps::hearing)),
        ("keys", Some(keys).filter(|keys| !keys.is_empty())),
    ];
    said(lines.into_iter().chain(tell_sound(leg)))
}

/// Lines that have something to say.
fn said(lines: impl IntoIterator<Item = (&'static str, Option<String>)>) -> Map<String, Value> {
    let lines = lines.into_iter();
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

fn hung_up_by(leg: &Leg) -> String {
    let side = match leg.hung_up_by {
        HungUpBy::Nobody => "nobody: there was no call",
        HungUpBy::Us => "us",
        HungUpBy::Them => "the other side",
        HungUpBy::Unknown => "unknown: the server was lost",
    };
    match leg.hang_up_reason {
        Some(reason) => format!("{side}: {}", reason.meaning()),
        None => side.to_owned(),
    }
}

/// Names and values of what there is.
fn in_one_line(row: &Value) -> String {
    let fields = row.as_object().into_iter().flatten();
    let fields = fields.filter(|(_, value)| !value.is_null());
    let fields = fields.map(|(name, value)| format!("{name} {}", plain(value)));
    fields.collect::<Vec<_>>().join(", ")
}
