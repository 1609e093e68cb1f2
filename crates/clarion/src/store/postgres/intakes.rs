//! Intakes and their incidents, in PostgreSQL.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{PostgresStore, bound};
use crate::domain::account::AppId;
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::intake::incident::{Incident, IncidentKey};
use crate::domain::intake::{Intake, IntakeName, IntakeToken, MAX_INCIDENTS, TokenHash};
use crate::store::columns::Columns;
use crate::store::statements::{accounts, intakes, queue};
use crate::store::{IntakeBook, SeenIncident, StoreError};

impl PostgresStore {
    async fn check_application(&self, app: &AppId) -> Result<(), StoreError> {
        let values: super::Values<'_> = &[&app.as_str()];
        match self
            .query_opt(accounts::FIND_APPLICATION.postgres, values)
            .await?
        {
            Some(_) => Ok(()),
            None => Err(StoreError::no_application(app)),
        }
    }
}

impl PostgresStore {
    /// Whether one that is not open may be opened. Where there is no room for it, those that are closed make some.
    async fn count_incidents(&self, seen: &SeenIncident) -> Result<bool, StoreError> {
        let counted = async || {
            let values: super::Values<'_> = &[&seen.intake.as_str(), &i64::from(MAX_INCIDENTS)];
            let row = self.query_opt(intakes::COUNT.postgres, values).await?;
            let open = row.map_or(Ok(0), |row| row.number(0))?;
            Ok::<_, StoreError>(self.incident_room.counted(seen, open))
        };
        if counted().await? {
            return Ok(true);
        }
        let room = intakes::room_values(seen);
        let forgotten = self
            .execute(intakes::MAKE_ROOM.postgres, &bound(&room))
            .await?;
        if forgotten == 0 {
            return Ok(false);
        }
        counted().await
    }
}

#[async_trait]
impl IntakeBook for PostgresStore {
    async fn add_intake(&self, intake: Intake) -> Result<(), StoreError> {
        self.check_application(&intake.app).await?;
        let values = intakes::values(&intake);
        match self.execute(intakes::ADD.postgres, &bound(&values)).await? {
            1 => Ok(()),
            _ => Err(StoreError::intake_exists(&intake.name)),
        }
    }

    async fn set_intake(&self, intake: Intake, read_at: Timestamp) -> Result<bool, StoreError> {
        let values = intakes::set_values(&intake, read_at);
        Ok(self.execute(intakes::SET.postgres, &bound(&values)).await? == 1)
    }

    async fn set_intake_token(
        &self,
        name: &IntakeName,
        token: TokenHash,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let values: super::Values<'_> = &[&name.as_str(), &token.as_str(), &now.as_millisecond()];
        match self.execute(intakes::SET_TOKEN.postgres, values).await? {
            1 => Ok(()),
            _ => Err(StoreError::no_intake(name)),
        }
    }

    async fn remove_intake(&self, name: &IntakeName) -> Result<(), StoreError> {
        let values: super::Values<'_> = &[&name.as_str()];
        self.execute(intakes::REMOVE_INCIDENTS.postgres, values)
            .await?;
        match self.execute(intakes::REMOVE.postgres, values).await? {
            1 => Ok(()),
            _ => Err(StoreError::no_intake(name)),
        }
    }

    async fn intake(&self, name: &IntakeName) -> Result<Option<Intake>, StoreError> {
        let values: super::Values<'_> = &[&name.as_str()];
        let row = self.query_opt(intakes::FIND.postgres, values).await?;
        row.as_ref().map(intakes::intake).transpose()
    }

    async fn intake_of_token(&self, token: &IntakeToken) -> Result<Option<Intake>, StoreError> {
        let hash = token.hash();
        let values: super::Values<'_> = &[&hash.as_str()];
        let row = self
            .query_opt(intakes::FIND_BY_TOKEN.postgres, values)
            .await?;
        row.as_ref().map(intakes::intake).transpose()
    }

    async fn intakes(&self) -> Result<Vec<Intake>, StoreError> {
        let rows = self.query(intakes::ALL.postgres, &[]).await?;
        rows.iter().map(intakes::intake).collect()
    }

    async fn open_incident(&self, seen: SeenIncident) -> Result<Option<Incident>, StoreError> {
        let has_room = match self.incident_room.take(&seen) {
            Some(has_room) => has_room,
            None => self.count_incidents(&seen).await?,
        };
        let values = intakes::open_values(&seen, has_room);
        let row = self
            .query_opt(intakes::OPEN.postgres, &bound(&values))
            .await?;
        row.as_ref().map(intakes::incident).transpose()
    }

    async fn note_notice(&self, incident: Incident, is_own: bool) -> Result<bool, StoreError> {
        let values = intakes::notice_values(&incident, is_own);
        let noted = self
            .execute(intakes::NOTE_NOTICE.postgres, &bound(&values))
            .await?;
        Ok(noted == 1)
    }

    async fn incident(
        &self,
        intake: &IntakeName,
        key: &IncidentKey,
    ) -> Result<Option<Incident>, StoreError> {
        let values: super::Values<'_> = &[&intake.as_str(), &key.as_str()];
        let row = self
            .query_opt(intakes::FIND_INCIDENT.postgres, values)
            .await?;
        row.as_ref().map(intakes::incident).transpose()
    }

    async fn close_incident(&self, incident: &Incident) -> Result<bool, StoreError> {
        let values = intakes::close_values(incident);
        let closed = self
            .execute(intakes::CLOSE.postgres, &bound(&values))
            .await?;
        self.incident_room.freed(&incident.intake);
        Ok(closed == 1)
    }

    async fn open_incidents(
        &self,
        intake: &IntakeName,
        limit: u32,
    ) -> Result<Vec<Incident>, StoreError> {
        let values: super::Values<'_> = &[&intake.as_str(), &i64::from(limit)];
        let rows = self.query(intakes::OPEN_ONES.postgres, values).await?;
        rows.iter().map(intakes::incident).collect()
    }

    async fn forget_incidents(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let values: super::Values<'_> = &[&before.as_millisecond(), &i64::from(limit)];
        self.execute(intakes::FORGET.postgres, values).await
    }

    async fn resolve_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError> {
        let row = self
            .query_opt(queue::RESOLVE.postgres, &[&sid.as_str()])
            .await?;
        row.as_ref().map(queue::call_state).transpose()
    }
}
