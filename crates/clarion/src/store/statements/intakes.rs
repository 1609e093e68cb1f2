//! Intakes and their incidents.

use jiff::Timestamp;

use super::{Statement, statement};
use crate::domain::intake::incident::{Incident, IncidentKey};
use crate::domain::intake::{Intake, IntakeSettings, MAX_INCIDENTS, TokenHash};
use crate::store::binding::Bind;
use crate::store::columns::Columns;
use crate::store::{SeenIncident, StoreError};

/// What an intake is read from.
const INTAKE: &str =
    "SELECT name, app_id, format, token_hash, settings, created_at, updated_at FROM intakes";
/// What an incident is read from.
const INCIDENT: &str =
    "intake, incident_key, id, notices, call_sid, fingerprints, opened_at, seen_at";

pub const ALL: Statement = statement!(INTAKE, " ORDER BY name{bytewise}");
pub const FIND: Statement = statement!(INTAKE, " WHERE name = $1");
pub const FIND_BY_TOKEN: Statement = statement!(INTAKE, " WHERE token_hash = $1");
pub const ADD: Statement = statement!(
    "INSERT INTO intakes (name, app_id, format, token_hash, settings, created_at, updated_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"
);
pub const SET: Statement = statement!(
    "UPDATE intakes SET settings = $2, updated_at = $3 WHERE name = $1 AND updated_at = $4"
);
pub const SET_TOKEN: Statement = statement!(
    "UPDATE intakes SET token_hash = $2, updated_at = {greatest}(updated_at + 1, $3) WHERE name = $1"
);
pub const REMOVE: Statement = statement!("DELETE FROM intakes WHERE name = $1");
pub const REMOVE_INCIDENTS: Statement = statement!("DELETE FROM incidents WHERE intake = $1");
/// Nothing was heard of it for long, and nobody is being called.
const IS_CLOSED: &str = "incidents.seen_at < $5 AND NOT EXISTS (SELECT 1 FROM call_queue WHERE call_queue.call_sid = incidents.call_sid)";
/// One that is closed by now becomes a new one in the same row. Of an intake that has all the incidents that it may have ($6 is false), only those that are there are found.
pub const OPEN: Statement = statement!(
    "INSERT INTO incidents (",
    INCIDENT,
    ") SELECT $1, $2, $3, 0, NULL, '[]', CAST($4 AS BIGINT), CAST($4 AS BIGINT) \
     WHERE $6 OR EXISTS (SELECT 1 FROM incidents WHERE intake = $1 AND incident_key = $2) ON CONFLICT (intake, incident_key) DO UPDATE SET id = CASE WHEN ",
    IS_CLOSED,
    " THEN $3 ELSE incidents.id END, notices = CASE WHEN ",
    IS_CLOSED,
    " THEN 0 ELSE incidents.notices END, call_sid = CASE WHEN ",
    IS_CLOSED,
    " THEN NULL ELSE incidents.call_sid END, fingerprints = CASE WHEN ",
    IS_CLOSED,
    " THEN '[]' ELSE incidents.fingerprints END, opened_at = CASE WHEN ",
    IS_CLOSED,
    " THEN $4 ELSE incidents.opened_at END, seen_at = {greatest}(incidents.seen_at, $4) RETURNING ",
    INCIDENT
);
/// How many there are, up to what there may be.
pub const COUNT: Statement =
    statement!("SELECT COUNT(*) FROM (SELECT 1 FROM incidents WHERE intake = $1 LIMIT $2) AS open");
/// Closed ones that are still kept make room for new ones, the oldest first.
pub const MAKE_ROOM: Statement = statement!(
    "DELETE FROM incidents WHERE intake = $1 AND incident_key IN (SELECT incident_key FROM incidents WHERE intake = $1 AND seen_at < $2 \
     AND NOT EXISTS (SELECT 1 FROM call_queue WHERE call_queue.call_sid = incidents.call_sid) ORDER BY seen_at LIMIT $3)"
);
/// $7 is the number of notices that it may have had, at most.
pub const NOTE_NOTICE: Statement = statement!(
    "UPDATE incidents SET notices = $4, call_sid = $5, fingerprints = $6 \
     WHERE intake = $1 AND incident_key = $2 AND id = $3 AND notices <= $7"
);
pub const FIND_INCIDENT: Statement = statement!(
    "SELECT ",
    INCIDENT,
    " FROM incidents WHERE intake = $1 AND incident_key = $2"
);
pub const CLOSE: Statement = statement!(
    "DELETE FROM incidents WHERE intake = $1 AND incident_key = $2 AND id = $3 AND notices = $4"
);
pub const OPEN_ONES: Statement = statement!(
    "SELECT ",
    INCIDENT,
    " FROM incidents WHERE intake = $1 ORDER BY opened_at DESC, incident_key LIMIT $2"
);
pub const FORGET: Statement = statement!(
    "DELETE FROM incidents WHERE (intake, incident_key) IN (SELECT intake, incident_key FROM incidents WHERE seen_at < $1 ORDER BY seen_at LIMIT $2)"
);

pub fn intake(row: &impl Columns) -> Result<Intake, StoreError> {
    Ok(Intake {
        name: row.parsed(0)?,
        app: row.parsed(1)?,
        format: row.parsed(2)?,
        token: TokenHash::from_stored(row.string(3)?),
        settings: IntakeSettings::from_stored(row.text(4)?).map_err(StoreError::failed)?,
        created_at: row.time(5)?,
        updated_at: row.time(6)?,
    })
}

/// The values of `ADD`.
pub fn values(intake: &Intake) -> [Bind<'_>; 7] {
    [
        Bind::of(intake.name.as_str()),
        Bind::of(intake.app.as_str()),
        Bind::of(intake.format.as_str()),
        Bind::of(intake.token.as_str()),
        Bind::of(intake.settings.to_stored()),
        Bind::of(intake.created_at),
        Bind::of(intake.updated_at),
    ]
}

/// The values of `SET`.
pub fn set_values(intake: &Intake, read_at: Timestamp) -> [Bind<'_>; 4] {
    [
        Bind::of(intake.name.as_str()),
        Bind::of(intake.settings.to_stored()),
        Bind::of(intake.updated_at),
        Bind::of(read_at),
    ]
}

pub fn incident(row: &impl Columns) -> Result<Incident, StoreError> {
    Ok(Incident {
        intake: row.parsed(0)?,
        key: IncidentKey::new(row.text(1)?),
        id: row.string(2)?,
        notices: row.number(3)?,
        call: row.optional_parsed(4)?,
        fingerprints: serde_json::from_str(row.text(5)?).map_err(StoreError::failed)?,
        opened_at: row.time(6)?,
        seen_at: row.time(7)?,
    })
}

/// The values of `OPEN`.
pub fn open_values(seen: &SeenIncident, has_room: bool) -> [Bind<'_>; 6] {
    [
        Bind::of(seen.intake.as_str()),
        Bind::of(seen.key.as_str()),
        Bind::of(&seen.id),
        Bind::of(seen.now),
        Bind::of(seen.closed_before),
        Bind::of(has_room),
    ]
}

/// The values of `MAKE_ROOM`.
pub fn room_values(seen: &SeenIncident) -> [Bind<'_>; 3] {
    [
        Bind::of(seen.intake.as_str()),
        Bind::of(seen.closed_before),
        Bind::of(i64::from(MAX_INCIDENTS / 10)),
    ]
}

/// The values of `NOTE_NOTICE`.
pub fn notice_values(incident: &Incident, is_own: bool) -> [Bind<'_>; 7] {
    let most = incident.notices.saturating_sub(u32::from(!is_own));
    let fingerprints = serde_json::to_string(&incident.fingerprints).expect("they are texts");
    [
        Bind::of(incident.intake.as_str()),
        Bind::of(incident.key.as_str()),
        Bind::of(&incident.id),
        Bind::of(incident.notices),
        Bind::of(
            incident
                .call
                .as_ref()
                .map(crate::domain::call::CallSid::as_str),
        ),
        Bind::of(fingerprints),
        Bind::of(most),
    ]
}

/// The values of `CLOSE`.
pub fn close_values(incident: &Incident) -> [Bind<'_>; 4] {
    [
        Bind::of(incident.intake.as_str()),
        Bind::of(incident.key.as_str()),
        Bind::of(&incident.id),
        Bind::of(incident.notices),
    ]
}
