//! What somebody should look at on a node. The console says it in words. The other nodes read it in the database, so that whoever looks at one node
//! sees what is wrong with all.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use supervisor::Watch;
use tokio::time::Instant;

use super::{Management, NodeUse};
use crate::disk_room::FreeDisk;
use crate::dispatch::trunk_pool::TrunkState;
use crate::readiness::NotReady;

/// A disk with less than so many times its floor needs a hand soon.
const SCARCE: u64 = 2;
/// As many of a thousand packets may leave late before somebody is told.
const LATE: u64 = 10;
/// What has not changed is told again after this.
const AGAIN: Duration = Duration::from_mins(1);
/// From one look to the next.
const LOOK: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concern {
    NotReady(NotReady),
    NoTrunk,
    /// It carries no calls, and not because of its hours.
    Trunk {
        name: String,
        state: TrunkState,
    },
    /// So many bytes are left on a disk, rounded down to whole megabytes.
    Disk {
        name: String,
        left: u64,
    },
    LatePackets,
}

impl Concern {
    /// Those of a node, the worst first.
    pub fn of(node: &NodeUse, not_ready: Option<NotReady>) -> Vec<Self> {
        let mut concerns: Vec<_> = not_ready.map(Self::NotReady).into_iter().collect();
        if node.trunks.is_empty() {
            concerns.push(Self::NoTrunk);
        }
        let idle = node
            .trunks
            .iter()
            .filter(|trunk| !matches!(trunk.state, TrunkState::Up | TrunkState::OutsideItsHours));
        concerns.extend(idle.map(|trunk| Self::Trunk {
            name: trunk.name.clone(),
            state: trunk.state.clone(),
        }));
        let scarce = node.disks.iter().filter(|disk| is_scarce(disk));
        concerns.extend(scarce.map(|disk| Self::Disk {
            name: disk.name.to_owned(),
            left: disk.bytes.unwrap_or_default() >> 20 << 20,
        }));
        let (sent, late) = node.packets;
        if late * 1000 > sent * LATE {
            concerns.push(Self::LatePackets);
        }
        concerns
    }

    /// As another node has told them; what that node knows and this one does not is passed over.
    pub fn read(told: &str) -> Vec<Self> {
        let told: Vec<Value> = serde_json::from_str(told).unwrap_or_default();
        let known = told.into_iter().map(serde_json::from_value);
        known.filter_map(Result::ok).collect()
    }
}

pub fn is_scarce(disk: &FreeDisk) -> bool {
    let free = disk.bytes;
    free.is_some_and(|free| free < disk.floor.saturating_mul(SCARCE))
}

impl Management {
    /// Tells the other nodes what is wrong with this one, whenever that changes.
    pub async fn keep_telling_concerns(self, watch: Watch) {
        let Some(server) = self.server.clone() else {
            return watch.release();
        };
        let mut told: Option<(Vec<Concern>, Instant)> = None;
        loop {
            tokio::time::sleep(LOOK).await;
            watch.heartbeat();
            let node = self.node_use().await.unwrap_or_default();
            let concerns = Concern::of(&node, server.readiness.known().err());
            // Now and then, too: what another life of this task has told, or what was lost, is put right.
            let is_known =
                |told: &(Vec<Concern>, Instant)| told.0 == concerns && told.1.elapsed() < AGAIN;
            if told.as_ref().is_some_and(is_known) {
                continue;
            }
            let text = serde_json::to_string(&concerns).unwrap_or_default();
            match self.store.tell_concerns(&server.node, text).await {
                Ok(true) => told = Some((concerns, Instant::now())),
                // Its first heartbeat is not there yet.
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(%error, "other nodes do not know what is wrong with this one");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim_holds::HoldKind;

    #[test]
    fn another_node_reads_what_was_told_and_passes_over_what_it_does_not_know() {
        let concerns = [
            Concern::NotReady(NotReady::ClaimsHeld(HoldKind::Clock, "2 s ahead".into())),
            Concern::NotReady(NotReady::Stopping),
            Concern::NoTrunk,
            Concern::Trunk {
                name: "north".into(),
                state: TrunkState::Down { why: "503".into() },
            },
            Concern::Trunk {
                name: "south".into(),
                state: TrunkState::Drained,
            },
            Concern::Disk {
                name: "the database".into(),
                left: 199 << 20,
            },
            Concern::LatePackets,
        ];
        let told = serde_json::to_string(&concerns).unwrap();
        assert_eq!(Concern::read(&told), concerns);
        let newer = told.replacen('[', "[{\"heat\":90},\"noise\",", 1);
        assert_eq!(Concern::read(&newer), concerns);
        for nothing in ["", "[]", "{}", "null", "[1,null,[]]"] {
            assert!(Concern::read(nothing).is_empty(), "{nothing}");
        }
    }
}
