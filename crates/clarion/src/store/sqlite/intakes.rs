//! Intakes and their incidents, in SQLite.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, params, params_from_iter};

use super::SqliteStore;
use super::query::Query;
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::intake::incident::{Incident, IncidentKey};
use crate::domain::intake::{Intake, IntakeName, IntakeToken, MAX_INCIDENTS, TokenHash};
use crate::store::columns::Columns;
use crate::store::incident_room::IncidentRoom;
use crate::store::statements::{accounts, intakes, queue};
use crate::store::{IntakeBook, SeenIncident, StoreError};

/// Whether one that is not open may be opened. Where there is no room for it, those that are closed make some.
fn count_incidents(
    db: &Connection,
    room: &IncidentRoom,
    seen: &SeenIncident,
) -> Result<bool, StoreError> {
    let counted = || {
        let values = params![seen.intake.as_str(), MAX_INCIDENTS];
        let open = db.row(intakes::COUNT.sqlite, values, |row| row.number(0))?;
        Ok::<_, StoreError>(room.counted(seen, open.unwrap_or(0)))
    };
    if counted()? {
        return Ok(true);
    }
    let values = params_from_iter(intakes::room_values(seen));
    match db.run(intakes::MAKE_ROOM.sqlite, values)? {
        0 => Ok(false),
        _ => counted(),
    }
}

#[async_trait]
impl IntakeBook for SqliteStore {
    async fn add_intake(&self, intake: Intake) -> Result<(), StoreError> {
        self.write_beside(move |db| {
            if !db.exists(accounts::FIND_APPLICATION.sqlite, [intake.app.as_str()])? {
                return Err(StoreError::no_application(&intake.app));
            }
            let values = intakes::values(&intake);
            match db.run(intakes::ADD.sqlite, params_from_iter(values))? {
                1 => Ok(()),
                _ => Err(StoreError::intake_exists(&intake.name)),
            }
        })
        .await
    }

    async fn set_intake(&self, intake: Intake, read_at: Timestamp) -> Result<bool, StoreError> {
        self.write_beside(move |db| {
            let values = params_from_iter(intakes::set_values(&intake, read_at));
            Ok(db.run(intakes::SET.sqlite, values)? == 1)
        })
        .await
    }

    async fn set_intake_token(
        &self,
        name: &IntakeName,
        token: TokenHash,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let name = name.clone();
        self.write_beside(move |db| {
            let values = params![name.as_str(), token.as_str(), now.as_millisecond()];
            match db.run(intakes::SET_TOKEN.sqlite, values)? {
                1 => Ok(()),
                _ => Err(StoreError::no_intake(&name)),
            }
        })
        .await
    }

    async fn remove_intake(&self, name: &IntakeName) -> Result<(), StoreError> {
        let name = name.clone();
        self.write_beside(move |db| {
            db.run(intakes::REMOVE_INCIDENTS.sqlite, [name.as_str()])?;
            match db.run(intakes::REMOVE.sqlite, [name.as_str()])? {
                1 => Ok(()),
                _ => Err(StoreError::no_intake(&name)),
            }
        })
        .await
    }

    async fn intake(&self, name: &IntakeName) -> Result<Option<Intake>, StoreError> {
        let name = name.clone();
        self.read(move |db| {
            db.row(intakes::FIND.sqlite, [name.as_str()], |row| {
                intakes::intake(row)
            })
        })
        .await
    }

    async fn intake_of_token(&self, token: &IntakeToken) -> Result<Option<Intake>, StoreError> {
        let hash = token.hash();
        self.read(move |db| {
            db.row(intakes::FIND_BY_TOKEN.sqlite, [hash.as_str()], |row| {
                intakes::intake(row)
            })
        })
        .await
    }

    async fn intakes(&self) -> Result<Vec<Intake>, StoreError> {
        self.read(|db| db.rows(intakes::ALL.sqlite, [], |row| intakes::intake(row)))
            .await
    }

    async fn open_incident(&self, seen: SeenIncident) -> Result<Option<Incident>, StoreError> {
        let room = Arc::clone(&self.incident_room);
        self.begin(move |db| {
            let has_room = match room.take(&seen) {
                Some(has_room) => has_room,
                None => count_incidents(db, &room, &seen)?,
            };
            let values = params_from_iter(intakes::open_values(&seen, has_room));
            db.row(intakes::OPEN.sqlite, values, |row| intakes::incident(row))
        })
        .await
    }

    async fn note_notice(&self, incident: Incident, is_own: bool) -> Result<bool, StoreError> {
        self.write_beside(move |db| {
            let values = params_from_iter(intakes::notice_values(&incident, is_own));
            Ok(db.run(intakes::NOTE_NOTICE.sqlite, values)? == 1)
        })
        .await
    }

    async fn incident(
        &self,
        intake: &IntakeName,
        key: &IncidentKey,
    ) -> Result<Option<Incident>, StoreError> {
        let (intake, key) = (intake.clone(), key.clone());
        self.read(move |db| {
            let values = [intake.as_str(), key.as_str()];
            db.row(intakes::FIND_INCIDENT.sqlite, values, |row| {
                intakes::incident(row)
            })
        })
        .await
    }

    async fn close_incident(&self, incident: &Incident) -> Result<bool, StoreError> {
        let (room, incident) = (Arc::clone(&self.incident_room), incident.clone());
        self.write_beside(move |db| {
            let values = params_from_iter(intakes::close_values(&incident));
            room.freed(&incident.intake);
            Ok(db.run(intakes::CLOSE.sqlite, values)? == 1)
        })
        .await
    }

    async fn open_incidents(
        &self,
        intake: &IntakeName,
        limit: u32,
    ) -> Result<Vec<Incident>, StoreError> {
        let intake = intake.clone();
        self.read(move |db| {
            let values = params![intake.as_str(), limit];
            db.rows(intakes::OPEN_ONES.sqlite, values, |row| {
                intakes::incident(row)
            })
        })
        .await
    }

    async fn forget_incidents(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.write_beside(move |db| {
            let values = params![before.as_millisecond(), limit];
            Ok(db.run(intakes::FORGET.sqlite, values)? as u64)
        })
        .await
    }

    async fn resolve_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError> {
        let sid = sid.clone();
        self.write(move |db| {
            db.row(queue::RESOLVE.sqlite, [sid.as_str()], |row| {
                queue::call_state(row)
            })
        })
        .await
    }
}
