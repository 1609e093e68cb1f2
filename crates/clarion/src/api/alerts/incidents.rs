//! What follows an alert: an incident opens, repeats or is over, and people are called or are not called any more.
//!
//! A notice is named after its incident (`Incident::next_request`), and a name is used once, in the commit that accepts the call. So an alert that comes a
//! hundred times a second, to two nodes, or again after a crash, makes one notice.

use std::sync::Arc;

use super::super::Api;
use super::answer::{self, AlertOutcome};
use super::arrival::IncomingAlert;
use super::notice::AlertCaller;
use crate::domain::call::CallSid;
use crate::domain::intake::incident::{
    Incident, IncidentKey, IncidentResult, MOST_FINGERPRINTS, NoticeStanding,
};
use crate::domain::request_key::RequestKey;
use crate::domain::status_code::Refusal;
use crate::intakes::alert::{AlertGroup, AlertNews};
use crate::intakes::formats::AlertReader;
use crate::random;
use crate::store::{SeenIncident, unavailable};

/// Everything that one request says. A part that is refused does not hinder the others; a database that fails ends it, to be tried again as a whole.
pub async fn follow(api: &Arc<Api>, alert: &IncomingAlert) -> Result<Vec<AlertOutcome>, Refusal> {
    let reader = AlertReader {
        format: alert.intake.format,
        settings: &alert.intake.settings,
        zone: api.clock.zone(),
    };
    let mut outcomes = Vec::new();
    for news in reader.read(&alert.body)? {
        outcomes.push(match news {
            AlertNews::Firing(group) => fire(api, alert, &group).await?,
            AlertNews::Resolved(key) => resolve(api, alert, key).await?,
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
    let (store, intake, now) = (&api.store, &alert.intake, api.clock.now());
    let seen = SeenIncident {
        intake: intake.name.clone(),
        key: group.incident(),
        id: random::id(),
        now,
        closed_before: now - intake.settings.closes_after(),
    };
    let incident = store
        .open_incident(seen)
        .await
        .map_err(|error| unavailable(&error))?;
    let progress = match &incident.call {
        Some(call) => store.call_progress(&alert.account.sid, call).await,
        None => Ok(None),
    };
    let progress = progress.map_err(|error| unavailable(&error))?;
    let silence = intake.settings.silence();
    let standing = NoticeStanding::of(progress.as_ref(), silence.as_ref(), now);
    let calls_for_new = intake.settings.calls_for_new_alerts;
    if !incident.wants_notice(standing, &group.fingerprints, calls_for_new) {
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
    let (earlier, is_running) = (incident.call.clone(), standing == NoticeStanding::Running);
    note(api, incident, group, &placed.call).await?;
    // It tells of all that the earlier one tells of.
    if let Some(earlier) = earlier.filter(|earlier| is_running && *earlier != placed.call) {
        store
            .resolve_call(&earlier)
            .await
            .map_err(|error| unavailable(&error))?;
    }
    let result = if placed.is_new {
        IncidentResult::Called
    } else {
        IncidentResult::Known
    };
    Ok(outcome(result, Some(placed.call)))
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
    };
    let wanted = caller.wanted(group).await?;
    if let Some(failure) = &wanted.spoken.failure {
        tracing::warn!(intake = %alert.intake.name, failure, "the template of an intake failed; a plain sentence is said instead");
    }
    if let Some(refusal) = &wanted.not_called {
        answer::count(refusal);
        tracing::warn!(intake = %alert.intake.name, refusal = refusal.message, "an alert names somebody who may not be called; the people of the intake are called instead");
    }
    let made = caller
        .place(&alert.application, wanted, Some(request))
        .await?;
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

/// The incident remembers its notice. If it was closed meanwhile, the notice ends too.
async fn note(
    api: &Arc<Api>,
    incident: Incident,
    group: &AlertGroup,
    call: &CallSid,
) -> Result<(), Refusal> {
    let fingerprints = group.fingerprints.iter().take(MOST_FINGERPRINTS);
    let noted = Incident {
        notices: incident.notices + 1,
        call: Some(call.clone()),
        fingerprints: fingerprints.cloned().collect(),
        ..incident
    };
    if !api
        .store
        .note_notice(noted)
        .await
        .map_err(|error| unavailable(&error))?
    {
        api.store
            .resolve_call(call)
            .await
            .map_err(|error| unavailable(&error))?;
    }
    Ok(())
}

/// Whatever runs for it ends, also a notice that was placed by somebody who could not write that down any more.
async fn resolve(
    api: &Arc<Api>,
    alert: &IncomingAlert,
    key: String,
) -> Result<AlertOutcome, Refusal> {
    let (store, name) = (&api.store, &alert.intake.name);
    let closed = store.close_incident(name, &IncidentKey::new(&key)).await;
    let outcome = |result, call| AlertOutcome {
        key,
        result,
        refusal: None,
        call,
        to: None,
    };
    let Some(incident) = closed.map_err(|error| unavailable(&error))? else {
        return Ok(outcome(IncidentResult::Nothing, None));
    };
    let next = incident.next_request();
    let unnoted = store.find_request(&alert.application.id, &next);
    let unnoted = unnoted
        .await
        .map_err(|error| unavailable(&error))?
        .map(|known| known.call);
    for call in incident.call.iter().chain(&unnoted) {
        store
            .resolve_call(call)
            .await
            .map_err(|error| unavailable(&error))?;
    }
    tracing::info!(intake = %name, call = incident.call.as_ref().map(CallSid::as_str), "an incident is over");
    Ok(outcome(IncidentResult::Resolved, unnoted.or(incident.call)))
}
