//! The steps of a call, for people and as JSON.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::clock::Clock;
use crate::domain::attempt::AttemptNumber;
use crate::domain::callback::CallbackState;
use crate::domain::hearing::{AnsweredBy, HeardTone, Hearing};
use crate::domain::leg::HangUpReason;
use crate::domain::notice::ending::NoticeEnding;
use crate::management::{CallStep, CallStepKind};

/// In the platform's zone.
pub fn local(time: Timestamp, clock: &Clock) -> String {
    let local = time.to_zoned(clock.zone().clone());
    local.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

/// A line for people.
pub fn line(step: &CallStep, clock: &Clock) -> String {
    let attempt = step.attempt.map(AttemptNumber::number);
    let attempt = attempt.map(|number| format!("attempt {number}: "));
    let said = format!(
        "{}{}",
        attempt.unwrap_or_default(),
        sentence(&step.kind, clock)
    );
    let said = said.trim_end_matches(": ");
    format!(
        "{}  {:<10} {said}",
        local(step.at, clock),
        step.kind.event()
    )
}

pub fn describe(step: &CallStep, clock: &Clock) -> Value {
    let mut value = json!({
        "time": local(step.at, clock),
        "event": step.kind.event(),
    });
    if let Some(attempt) = step.attempt {
        value["attempt"] = attempt.number().into();
    }
    for (name, fact) in facts(&step.kind, clock) {
        value[name] = fact;
    }
    value
}

/// What a step says, without its time.
pub fn sentence(kind: &CallStepKind, clock: &Clock) -> String {
    match kind {
        CallStepKind::Queued { to } => format!("for {to}"),
        CallStepKind::FollowUp { to, why } => format!("{to} is next: {}", why.meaning()),
        CallStepKind::Waiting { until } => format!("until {}", local(*until, clock)),
        CallStepKind::Dialling { to, trunk } => {
            let over = trunk.as_ref().map(|trunk| format!(" over {trunk}"));
            format!("{to}{}", over.unwrap_or_default())
        }
        CallStepKind::Ringing | CallStepKind::Answered => String::new(),
        CallStepKind::Heard(heard) => hearing(*heard),
        CallStepKind::Key(key) => key.to_string(),
        CallStepKind::Refused {
            trunk, response, ..
        } => {
            let said = response.as_deref().unwrap_or("no answer");
            format!("over {trunk}: {said}")
        }
        CallStepKind::HangUp {
            outcome,
            talk,
            response,
            reason,
            ..
        } => {
            let talk = talk.map(|talk| format!(" for {:.1} s", talk.as_secs_f64()));
            let reason = reason.map(|reason| format!(", {}", reason.meaning()));
            let response = response.as_ref().map(|response| format!(" ({response})"));
            format!(
                "{}{}{}{}",
                outcome.as_str(),
                talk.unwrap_or_default(),
                reason.unwrap_or_default(),
                response.unwrap_or_default()
            )
        }
        CallStepKind::Ended {
            outcome,
            ending,
            dialled,
            state,
        } => {
            let tried = match dialled {
                0 => "it was never dialled".to_owned(),
                1 => "after 1 attempt".to_owned(),
                many => format!("after {many} attempts"),
            };
            let how = ending.map(|ending| format!(" ({})", ending.as_str()));
            let how = how.unwrap_or_default();
            format!("{}{how}, {tried}; state {state}", outcome.as_str())
        }
        CallStepKind::Callback {
            state,
            host,
            attempts,
            due,
        } => match state {
            CallbackState::Delivered => format!("delivered to {host}"),
            CallbackState::GivenUp | CallbackState::Superseded => {
                format!("given up after attempt {attempts}: {host}")
            }
            CallbackState::Waiting | CallbackState::Delivering if *attempts == 0 => {
                format!("owed to {host}")
            }
            CallbackState::Waiting | CallbackState::Delivering => {
                let due = due.map(|due| local(due, clock));
                let due = due.as_deref().unwrap_or("soon");
                format!("not delivered to {host} by attempt {attempts}; again {due}")
            }
        },
    }
}

/// What was heard on a leg, for people.
pub fn hearing(heard: Hearing) -> String {
    let tone = heard.tone.map(|tone| match tone {
        HeardTone::Busy => "a busy tone",
        HeardTone::Congestion => "a congestion tone",
        HeardTone::Dial => "a dial tone",
        HeardTone::Special => "the tones before an announcement",
        HeardTone::Fax => "a fax",
        HeardTone::Announcement => "an announcement",
    });
    let answered_by = heard.answered_by.map(|by| match by {
        AnsweredBy::Human => "a human answered",
        AnsweredBy::Machine => "a machine answered",
        AnsweredBy::Unknown => "not known who answered",
    });
    let said: Vec<_> = answered_by.into_iter().chain(tone).collect();
    let seconds = heard.after.as_secs_f64();
    format!("{}, after {seconds:.1} s", said.join(", "))
}

pub fn describe_hearing(heard: Hearing) -> Value {
    json!({
        "answeredBy": heard.answered_by.map(AnsweredBy::as_str),
        "tone": heard.tone.map(HeardTone::as_str),
        "afterSeconds": heard.after.as_secs_f64(),
    })
}

fn facts(kind: &CallStepKind, clock: &Clock) -> Map<String, Value> {
    let facts = match kind {
        CallStepKind::Queued { to } => json!({ "number": to.to_string() }),
        CallStepKind::FollowUp { to, why } => {
            json!({ "number": to.to_string(), "why": why.as_str() })
        }
        CallStepKind::Waiting { until } => json!({ "due": local(*until, clock) }),
        CallStepKind::Dialling { to, trunk } => {
            json!({ "number": to.to_string(), "trunk": trunk })
        }
        CallStepKind::Ringing | CallStepKind::Answered => json!({}),
        CallStepKind::Heard(heard) => describe_hearing(*heard),
        CallStepKind::Key(key) => json!({ "dtmf": key.to_string() }),
        CallStepKind::Refused {
            trunk, sip_code, ..
        } => json!({ "trunk": trunk, "sipCode": sip_code }),
        CallStepKind::HangUp {
            to,
            outcome,
            sip_code,
            reason,
            ..
        } => json!({
            "number": to.to_string(),
            "outcome": outcome.as_str(),
            "sipCode": sip_code,
            "hangUpReason": reason.map(HangUpReason::as_str),
        }),
        CallStepKind::Ended {
            outcome,
            ending,
            dialled,
            state,
        } => json!({
            "outcome": outcome.as_str(),
            "ending": ending.map(NoticeEnding::as_str),
            "attempts": dialled,
            "state": state.to_string(),
        }),
        CallStepKind::Callback {
            state,
            host,
            attempts,
            ..
        } => json!({ "state": state.as_str(), "host": host, "attempts": attempts }),
    };
    match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
    }
}
