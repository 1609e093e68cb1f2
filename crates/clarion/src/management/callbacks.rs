//! Callbacks: which are owed, what became of them, and sending them again.

use jiff::Timestamp;

use super::change::NotedChange;
use super::{Management, ManagementError};
use crate::domain::account::AppId;
use crate::domain::call::CallSid;
use crate::domain::callback::{Callback, CallbackAttempt, CallbackKey};
use crate::domain::wording::wording;
use crate::store::{CallbackFilter, CallbackPage, ReplayFrom, ReplayStep, Replayed};

/// Callbacks that are looked at in one step.
const STEP: u32 = 1_000;
/// Of one call.
const MAX_SHOWN: u32 = 200;

/// Which callbacks are sent again: those of an application, of a receiver, or of both.
#[derive(Debug, Clone)]
pub struct CallbackReplay {
    pub app: Option<AppId>,
    /// Name and port.
    pub host: Option<String>,
    /// Of calls that were accepted since then.
    pub since: Timestamp,
    /// Only of calls after this one: where one that was broken off goes on.
    pub after: Option<CallSid>,
    pub from: ReplayFrom,
}

impl CallbackReplay {
    fn change(&self) -> NotedChange {
        NotedChange::new("callback replay")
            .with("since", self.since)
            .with_any("app", self.app.as_ref())
            .with_any("host", self.host.as_ref())
            .with_any("after", self.after.as_ref())
            .where_so("delivered", self.from == ReplayFrom::Delivered)
    }
}

impl Management {
    /// Those of the newest calls first.
    pub async fn callbacks(&self, filter: CallbackFilter) -> Result<CallbackPage, ManagementError> {
        Ok(self.store.callbacks(filter).await?)
    }

    /// A callback with its attempts, the oldest first.
    pub async fn callback(
        &self,
        key: &CallbackKey,
    ) -> Result<(Callback, Vec<CallbackAttempt>), ManagementError> {
        let found = self.store.callback(key).await?;
        found.ok_or_else(|| ManagementError::missing(format!("callback of call {key}")))
    }

    /// Sends a callback again, whatever its state.
    pub async fn replay_callback(&self, key: &CallbackKey) -> Result<(), ManagementError> {
        let change = NotedChange::new("callback replay").on(key);
        self.noted(change, self.store.replay_callback(key)).await?;
        self.callback_is_owed();
        Ok(())
    }

    /// Sends the final callbacks of many calls again, those that were accepted since a moment: a step of it. The first step is noted; the others go on
    /// after the call that the one before has come to.
    pub async fn replay_callbacks(
        &self,
        wanted: &CallbackReplay,
        after: Option<CallSid>,
    ) -> Result<Replayed, ManagementError> {
        let is_first = after.is_none();
        let since = self.sid_at(wanted.since);
        let after = after.or_else(|| wanted.after.clone());
        let step = ReplayStep {
            from: wanted.from,
            app: wanted.app.clone(),
            host: wanted.host.clone(),
            after: after.map_or_else(|| since.clone(), |after| after.max(since.clone())),
            limit: STEP,
        };
        let replay = async {
            if wanted.app.is_none() && wanted.host.is_none() {
                let rule = wording!(
                    "name an application or a receiver: callbacks of all of them are not sent again together",
                    "请指定应用或接收方，不能对全部接收方一起重发"
                );
                return Err(ManagementError::rule(rule));
            }
            Ok(self.store.replay_callbacks(step).await?)
        };
        let replayed = if is_first {
            self.noted(wanted.change(), replay).await?
        } else {
            replay.await?
        };
        if replayed.count > 0 {
            self.callback_is_owed();
        }
        Ok(replayed)
    }

    /// Everything that is owed for a call: the final callback, then its events.
    pub async fn callbacks_of(&self, call: &CallSid) -> Result<Vec<Callback>, ManagementError> {
        Ok(self.store.callbacks_of(call, MAX_SHOWN).await?)
    }
}
