//! One life of one simulated node: the real dispatch over a simulated store and simulated trunks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use clarion::claim_holds::ClaimHolds;
use clarion::clock::Clock;
use clarion::config::Config;
use clarion::dispatch::trunk_line::TrunkLine;
use clarion::dispatch::trunk_pool::TrunkPool;
use clarion::dispatch::{AnswerNotes, Dispatch, DispatchNeeds, PromptSource};
use clarion::domain::account::AccountSid;
use clarion::domain::claim::NodeId;
use clarion::domain::prompt::Prompt;
use clarion::random;
use jiff::tz::TimeZone;
use sound::{Playlist, PromptError};
use supervisor::Supervisor;

use crate::life::Life;
use crate::line::SimulatedLine;
use crate::node_store::NodeStore;
use crate::world::World;

#[derive(Debug)]
pub struct SimulatedNode {
    pub life: Life,
    pub store: Arc<NodeStore>,
    pub clock: Clock,
    pub prompts: Arc<SimulatedPrompts>,
    pub supervisor: Supervisor,
    pub dispatch: Dispatch,
}

/// A message of silence, while it can be made. One in four takes its time.
#[derive(Debug)]
pub struct SimulatedPrompts {
    world: Arc<World>,
    pub is_broken: AtomicBool,
}

#[async_trait]
impl PromptSource for SimulatedPrompts {
    async fn playlist(&self, _: &AccountSid, _prompt: &Prompt) -> Result<Playlist, PromptError> {
        let time = {
            let chance = &mut self.world.state().chance;
            chance.one_in(4).then(|| chance.millis(0..2_000))
        };
        if let Some(time) = time {
            tokio::time::sleep(time).await;
        }
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(PromptError::Missing("simulated".to_owned()));
        }
        Ok(Playlist::new(Vec::new(), 1, Duration::ZERO))
    }
}

impl SimulatedNode {
    /// Comes back when it serves; an error where a process would end.
    pub async fn start(
        config: &Config,
        world: &Arc<World>,
        place: usize,
        life: Life,
    ) -> anyhow::Result<Self> {
        let node = NodeId::new(random::bytes());
        let supervisor = Supervisor::new();
        let prompts = Arc::new(SimulatedPrompts {
            world: Arc::clone(world),
            is_broken: AtomicBool::new(false),
        });
        let clock = Clock::of_runtime(TimeZone::UTC, world.now());
        let store = Arc::new(NodeStore {
            world: Arc::clone(world),
            place,
            life: life.clone(),
        });
        let lines = config.trunks.iter().map(|trunk| {
            let line = SimulatedLine {
                world: Arc::clone(world),
                node: node.clone(),
                place,
                life: life.clone(),
                trunk: trunk.name().to_owned(),
                channels: trunk.channels,
            };
            let line: Arc<dyn TrunkLine> = Arc::new(line);
            (trunk.clone(), line)
        });
        let trunks = TrunkPool::over(lines);
        let needs = DispatchNeeds {
            store: Arc::clone(&store) as _,
            clock: clock.clone(),
            node,
            trunks,
            prompts: Arc::clone(&prompts) as _,
            owed: Arc::default(),
            holds: ClaimHolds::default(),
            barred: Arc::default(),
            notes: AnswerNotes::default(),
        };
        let dispatch = Dispatch::start(config, needs, &supervisor).await?;
        Ok(Self {
            life,
            store,
            clock,
            prompts,
            supervisor,
            dispatch,
        })
    }
}
