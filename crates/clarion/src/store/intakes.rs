//! The verbs of the store that are about intakes and their incidents.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::intake::incident::{Incident, IncidentKey};
use crate::domain::intake::{Intake, IntakeName, IntakeToken, TokenHash};

/// An alert of an incident, which may be open already.
#[derive(Debug, Clone)]
pub struct SeenIncident {
    pub intake: IntakeName,
    pub key: IncidentKey,
    /// For the case that it is not.
    pub id: String,
    pub now: Timestamp,
    /// One of which nothing was heard since then is closed, unless its notice is under way.
    pub closed_before: Timestamp,
}

#[async_trait]
pub trait IntakeBook: Send + Sync {
    /// A new intake of an application that there is.
    async fn add_intake(&self, intake: Intake) -> Result<(), StoreError>;
    /// The settings of an intake that there is become these; its token stays. False if it was changed since it was read, at the time it had then.
    async fn set_intake(&self, intake: Intake, read_at: Timestamp) -> Result<bool, StoreError>;
    async fn set_intake_token(
        &self,
        name: &IntakeName,
        token: TokenHash,
        now: Timestamp,
    ) -> Result<(), StoreError>;
    /// Its incidents go with it.
    async fn remove_intake(&self, name: &IntakeName) -> Result<(), StoreError>;
    async fn intake(&self, name: &IntakeName) -> Result<Option<Intake>, StoreError>;
    async fn intake_of_token(&self, token: &IntakeToken) -> Result<Option<Intake>, StoreError>;
    /// By their names.
    async fn intakes(&self) -> Result<Vec<Intake>, StoreError>;
    /// Opens an incident, or finds it open, and notes when it was seen. `None` if it is not open, and as many others of its intake are as may be.
    async fn open_incident(&self, seen: SeenIncident) -> Result<Option<Incident>, StoreError>;
    /// Its last notice is this one now, with the fingerprints that it has; whoever has only found the notice (`is_own` false) leaves it to its owner to
    /// say what it tells of. False if that is known already, or the incident was closed meanwhile.
    async fn note_notice(&self, incident: Incident, is_own: bool) -> Result<bool, StoreError>;
    /// If it is open.
    async fn incident(
        &self,
        intake: &IntakeName,
        key: &IncidentKey,
    ) -> Result<Option<Incident>, StoreError>;
    /// False if it has had another notice meanwhile, or was closed.
    async fn close_incident(&self, incident: &Incident) -> Result<bool, StoreError>;
    /// Those that are open, the newest first; at most so many.
    async fn open_incidents(
        &self,
        intake: &IntakeName,
        limit: u32,
    ) -> Result<Vec<Incident>, StoreError>;
    /// Forgets incidents that were last seen before; at most so many, the oldest first. How many went.
    async fn forget_incidents(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
    /// What the call is about is over: it ends before it is answered, or when the talk is over. How far it has come, if it has not ended.
    async fn resolve_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError>;
}
