//! What an operator switches for all calls: dialling, and each trunk.

use super::change::NotedChange;
use super::{Management, ManagementError};
use crate::config::TrunkSettings;
use crate::dispatch::{STOP_ALL, drained_switch};
use crate::domain::wording::wording;

/// How a switch stands that is not where it was.
const ON: &str = "on";

/// A trunk of the settings, and whether the operator lets it run empty.
#[derive(Debug)]
pub struct ManagedTrunk<'a> {
    pub settings: &'a TrunkSettings,
    pub is_drained: bool,
}

impl Management {
    /// Nothing is dialled, until `resume`.
    pub async fn stop_all(&self) -> Result<(), ManagementError> {
        self.switch(NotedChange::new("call stop-all"), STOP_ALL, Some(ON))
            .await
    }

    pub async fn resume(&self) -> Result<(), ManagementError> {
        self.switch(NotedChange::new("call resume"), STOP_ALL, None)
            .await
    }

    pub async fn is_stopped(&self) -> Result<bool, ManagementError> {
        let switches = self.store.switches().await?;
        Ok(switches.iter().any(|(name, _)| name == STOP_ALL))
    }

    /// In the order in which they are tried.
    pub async fn trunks(&self) -> Result<Vec<ManagedTrunk<'_>>, ManagementError> {
        let switches = self.store.switches().await?;
        let mut trunks: Vec<_> = self.config.trunks.iter().collect();
        trunks.sort_by_key(|trunk| trunk.route.priority);
        let trunks = trunks.into_iter().map(|settings| {
            let drained = drained_switch(settings.name());
            ManagedTrunk {
                settings,
                is_drained: switches.iter().any(|(name, _)| *name == drained),
            }
        });
        Ok(trunks.collect())
    }

    /// It gets no more calls; those in progress finish.
    pub async fn drain_trunk(&self, name: &str) -> Result<(), ManagementError> {
        self.switch_trunk(NotedChange::new("trunk drain").on(name), name, Some(ON))
            .await
    }

    pub async fn open_trunk(&self, name: &str) -> Result<(), ManagementError> {
        self.switch_trunk(NotedChange::new("trunk open").on(name), name, None)
            .await
    }

    async fn switch_trunk(
        &self,
        change: NotedChange,
        trunk: &str,
        value: Option<&str>,
    ) -> Result<(), ManagementError> {
        let switch = async {
            self.check_trunk(trunk)?;
            let (name, now) = (drained_switch(trunk), self.clock.now());
            self.store.set_switch(&name, value, now).await?;
            Ok::<_, ManagementError>(())
        };
        self.noted(change, switch).await
    }

    async fn switch(
        &self,
        change: NotedChange,
        name: &str,
        value: Option<&str>,
    ) -> Result<(), ManagementError> {
        let now = self.clock.now();
        self.noted(change, self.store.set_switch(name, value, now))
            .await
    }

    pub(super) fn check_trunk(&self, name: &str) -> Result<(), ManagementError> {
        let names = self.config.trunks.iter();
        let names: Vec<_> = names.map(TrunkSettings::name).collect();
        if names.contains(&name) {
            return Ok(());
        }
        let known = names.join(", ");
        Err(ManagementError::rule(wording!(
            "there is no trunk {name}; the configuration has: {known}",
            "没有中继 {name}，配置中有：{known}"
        )))
    }
}
