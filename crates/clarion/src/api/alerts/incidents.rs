//! What follows an alert: an incident opens, repeats or is over, and people are called or are not called any more.
//!
//! A notice is named after its incident (`Incident::next_request`), and a name is used once, in the commit that accepts the call. So an alert that comes a
//! hundred times a second, to two nodes, or again after a crash, makes one notice.

use std::sync::Arc;

use jiff::tz::TimeZone;

use super::super::Api;
use super::answer::{self, AlertOutcome};
use super::arrival::{IncomingAlert, SHORT_ALERT};
use super::notice::AlertCaller;
use crate::disk_room::RoomFor;
use crate::domain::call::CallSid;
use crate::domain::intake::incident::{
    Incident, IncidentKey, IncidentResult, MAX_FINGERPRINTS, NoticeState,
};
use crate::domain::intake::{Intake, MAX_INCIDENTS};
use crate::domain::request_key::RequestKey;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::intakes::alert::{AlertGroup, AlertNews};
use crate::intakes::formats::AlertReader;
use crate::random;
use crate::store::{SeenIncident, unavailable};

/// So often an alert looks again where others have changed its incident meanwhile.
const MAX_LOOKS: usize = 3;

/// Everything that one request says. A part that is refused does not hinder the others; a database that fails ends it, to be tried again as a whole.
pub async fn follow(api: &Arc<Api>, alert: &IncomingAlert) -> Result<Vec<AlertOutcome>, Refusal> {
    let mut outcomes = Vec::new();
    for news in read(api, alert).await? {
        outcomes.push(match news {
            AlertNews::Firing(group) => fire(api, alert, &group).await?,
            AlertNews::Resolved(key) => resolve(api, alert, key, true).await?,
            AlertNews::PartlyResolved(key) => resolve(api, alert, key, false).await?,
            AlertNews::Nothing => AlertOutcome {
                key: String::new(),
                result: IncidentResult::Nothing,
                refusal: None,
                call: None,
                to: None,
            },
        });
    }
    Ok(outcomes)
}

async fn read(api: &Arc<Api>, alert: &IncomingAlert) -> Result<Vec<AlertNews>, Refusal> {
    if alert.body.len() <= SHORT_ALERT {
        return read_now(&alert.intake, api.clock.zone(), &alert.body);
    }
    let readers = Arc::clone(&api.admission.long_alert_readers);
    let reader = readers.acquire_owned().await;
    let reader = reader.map_err(|_| StatusCode::UnknownError)?;
    let (intake, body) = (alert.intake.clone(), alert.body.clone());
    let zone = api.clock.zone().clone();
    // A client that goes away leaves its place to nobody before the thread is done.
    let read = tokio::task::spawn_blocking(move || {
        let _reader = reader;
        read_now(&intake, &zone, &body)
    });
    read.await.map_err(|_| StatusCode::UnknownError)?
}

fn read_now(intake: &Intake, zone: &TimeZone, body: &[u8]) -> Result<Vec<AlertNews>, Refusal> {
    let reader = AlertReader {
        format: intake.format,
        settings: &intake.settings,
        zone,
    };
    reader.read(body)
}

async fn fire(
    api: &Arc<Api>,
    alert: &IncomingAlert,
    group: &AlertGroup,
) -> Result<AlertOutcome, Refusal> {
    let outcome = |result, call| AlertOutcome {
        key: group.key.clone(),
        result,
        refusal: None,
        call,
        to: group.to.first().cloned(),
    };
    let mut calls_for_new = alert.intake.settings.calls_for_new_alerts;
    let mut found = None;
    for _ in 0..MAX_LOOKS {
        let incident = match open(api, alert, group).await? {
            Ok(incident) => incident,
            Err(refusal) => {
                return Ok(AlertOutcome {
                    refusal: Some(refusal),
                    ..outcome(IncidentResult::Refused, None)
                });
            }
        };
        let state = notice_state(api, alert, &incident).await?;
        if !incident.wants_notice(state, &group.fingerprints, calls_for_new) {
            return Ok(outcome(IncidentResult::Known, incident.call));
        }
        let placed = match place(api, alert, &incident, group).await {
            Ok(placed) => placed,
            Err(refusal) => {
                return Ok(AlertOutcome {
                    refusal: Some(refusal),
                    ..outcome(IncidentResult::Refused, None)
                });
            }
        };
        // It tells of all that the earlier one tells of.
        let earlier = incident.call.as_ref();
        let earlier = earlier.filter(|_| state == NoticeState::Running);
        if let Some(earlier) = earlier.filter(|earlier| **earlier != placed.call) {
            call_off(api, earlier).await?;
        }
        record(api, incident, group, &placed).await?;
        if placed.is_new {
            return Ok(outcome(IncidentResult::Called, Some(placed.call)));
        }
        // Somebody else has placed it, and says what it tells of. It may be over by now, and nobody knows.
        (calls_for_new, found) = (false, Some(placed.call));
    }
    Ok(outcome(IncidentResult::Known, found))
}

/// The inner error is why this incident cannot be opened.
async fn open(
    api: &Arc<Api>,
    alert: &IncomingAlert,
    group: &AlertGroup,
) -> Result<Result<Incident, Refusal>, Refusal> {
    if let Err(refusal) = api.disk.check(RoomFor::Calls).await {
        return Ok(Err(refusal));
    }
    let now = api.clock.now();
    let seen = SeenIncident {
        intake: alert.intake.name.clone(),
        key: group.incident(),
        id: random::id(),
        now,
        closed_before: now - alert.intake.settings.closes_after(),
    };
    let incident = api.store.open_incident(seen).await;
    let incident = incident.map_err(|error| unavailable(&error))?;
    Ok(incident.ok_or_else(|| {
        Refusal::new(
            StatusCode::TooManyRequests,
            format!("this intake has {MAX_INCIDENTS} open incidents; a new one opens when one of them is over"),
        )
    }))
}

async fn notice_state(
    api: &Arc<Api>,
    alert: &IncomingAlert,
    incident: &Incident,
) -> Result<NoticeState, Refusal> {
    let Some(call) = &incident.call else {
        return Ok(NoticeState::NobodyKnows);
    };
    let progress = api.store.call_progress(&alert.account.sid, call).await;
    let progress = progress.map_err(|error| unavailable(&error))?;
    let notice = progress.as_ref().and_then(|one| one.notice.as_ref());
    let silence = if notice.is_some_and(|notice| notice.confirmed.is_some()) {
        let accepted = api.store.accepted_call(call).await;
        let accepted = accepted.map_err(|error| unavailable(&error))?;
        accepted
            .and_then(|call| call.notice)
            .and_then(|notice| notice.silence.clone())
    } else {
        None
    };
    let now = api.clock.now();
    Ok(NoticeState::of(progress.as_ref(), silence.as_ref(), now))
}

async fn call_off(api: &Arc<Api>, call: &CallSid) -> Result<(), Refusal> {
    let called_off = api.store.resolve_call(call).await;
    called_off.map_err(|error| unavailable(&error))?;
    Ok(())
}

struct PlacedNotice {
    call: CallSid,
    /// False if another request, or this one before a crash, has placed it.
    is_new: bool,
}

async fn place(
    api: &Arc<Api>,
    alert: &IncomingAlert,
    incident: &Incident,
    group: &AlertGroup,
) -> Result<PlacedNotice, Refusal> {
    let request = RequestKey::new(incident.next_request(), "", None);
    let known = api.store.find_request(&alert.application.id, &request.id);
    if let Some(known) = known.await.map_err(|error| unavailable(&error))? {
        return Ok(PlacedNotice {
            call: known.call,
            is_new: false,
        });
    }
    let caller = AlertCaller {
        placing: &api.placing,
        account: &alert.account,
        intake: &alert.intake,
        is_trial: false,
    };
    let wanted = caller.wanted(group).await?;
    if let Some(failure) = &wanted.spoken.failure {
        tracing::warn!(intake = %alert.intake.name, failure, "the template of an intake failed; a plain sentence is said instead");
    }
    if let Some(refusal) = &wanted.left_out {
        answer::count(refusal);
        tracing::warn!(intake = %alert.intake.name, refusal = refusal.message, "some people of an intake may not be called any more; the others are called");
    }
    let not_called = wanted.not_called.clone();
    let placed = caller.place(&alert.application, group, wanted, Some(request));
    let (made, refused) = placed.await?;
    if let Some(refusal) = not_called.or(refused) {
        answer::count(&refusal);
        tracing::warn!(intake = %alert.intake.name, refusal = refusal.message, "an alert names somebody who may not be called; the people of the intake are called instead");
    }
    Ok(match made.before {
        Some(known) => PlacedNotice {
            call: known.call,
            is_new: false,
        },
        None => PlacedNotice {
            call: made.call,
            is_new: true,
        },
    })
}

/// The incident remembers its notice. If it was closed meanwhile, whoever has placed the notice ends it, too.
async fn record(
    api: &Arc<Api>,
    incident: Incident,
    group: &AlertGroup,
    placed: &PlacedNotice,
) -> Result<(), Refusal> {
    let fingerprints = if placed.is_new {
        group.fingerprints.iter().take(MAX_FINGERPRINTS).cloned()
    } else {
        incident.fingerprints.iter().take(MAX_FINGERPRINTS).cloned()
    };
    let noted = Incident {
        notices: incident.notices + 1,
        call: Some(placed.call.clone()),
        fingerprints: fingerprints.collect(),
        ..incident
    };
    let noted = api.store.note_notice(noted, placed.is_new).await;
    if !noted.map_err(|error| unavailable(&error))? && placed.is_new {
        call_off(api, &placed.call).await?;
    }
    Ok(())
}

/// Whatever runs for it ends, also a notice that was placed by somebody who could not write that down any more. The incident is closed after that: whoever
/// asks again because something failed, finds it. Where the tool does not tell all of it (`is_certain`), a notice that runs goes on.
async fn resolve(
    api: &Arc<Api>,
    alert: &IncomingAlert,
    key: String,
    is_certain: bool,
) -> Result<AlertOutcome, Refusal> {
    let (store, name, incident_key) = (&api.store, &alert.intake.name, IncidentKey::new(&key));
    let (mut result, mut call) = (IncidentResult::Nothing, None);
    let outcome = |result, call| AlertOutcome {
        key: key.clone(),
        result,
        refusal: None,
        call,
        to: None,
    };
    for _ in 0..MAX_LOOKS {
        let incident = store.incident(name, &incident_key).await;
        let Some(incident) = incident.map_err(|error| unavailable(&error))? else {
            return Ok(outcome(result, call));
        };
        let next = incident.next_request();
        let unnoted = store.find_request(&alert.application.id, &next).await;
        let unnoted = unnoted
            .map_err(|error| unavailable(&error))?
            .map(|known| known.call);
        if is_certain {
            for call in incident.call.iter().chain(&unnoted) {
                call_off(api, call).await?;
            }
        }
        let closed = store.close_incident(&incident).await;
        let is_closed = closed.map_err(|error| unavailable(&error))?;
        result = IncidentResult::Resolved;
        call = unnoted.or(incident.call);
        if is_closed {
            tracing::info!(intake = %name, call = call.as_ref().map(CallSid::as_str), "an incident is over");
            return Ok(outcome(result, call));
        }
    }
    // It has had another notice each time: whoever tells of its end tells it again.
    Err(StatusCode::UnknownError.into())
}
