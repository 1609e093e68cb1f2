//! Takes calls from the queue and makes them: as many as there is capacity for, fairly between accounts, one task a call.
//!
//! Each part does one thing and owns what it needs for it; this file joins them. Nothing here decides what is true: that is in the store,
//! and every change there is guarded by the call's lease. A part that panics is started anew by the supervisor. The calls that run are
//! tasks of their own and go on; a claimed call that has no task is recovered by the heartbeat.

mod answer_notes;
mod breaker;
mod call_task;
mod capacity;
mod claiming;
mod clock_check;
mod customers;
mod dial_progress;
mod dispatcher;
mod end_reason;
mod evidence;
mod heartbeat;
mod housekeeping;
mod key_prompts;
mod leg_records;
mod line_events;
mod node;
mod notices;
pub mod planted;
mod playback;
mod prompt_guard;
mod quality_guard;
mod recent_packets;
mod recorder;
mod recovery;
mod redirect_guard;
mod running;
mod sip_line;
mod switches;
mod trunk_capacity;
pub mod trunk_line;
pub mod trunk_pool;
mod trunk_sharing;
mod wake_ups;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use supervisor::{Supervisor, TaskGuard};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::answer_notes::{AnswerNotes, read as read_answer_note};
use self::call_task::{CallRunner, DialTimes};
use self::claiming::{Claimer, NodeCapacity};
use self::clock_check::ClockCheck;
use self::customers::CustomerLimits;
use self::dispatcher::Dispatcher;
use self::heartbeat::Heartbeat;
use self::housekeeping::Housekeeping;
pub use self::key_prompts::KeyPrompts;
use self::node::Node;
use self::notices::NoticePlanner;
use self::planted::PlantedBug;
pub use self::playback::{LEAD_OUT, PromptSource, RenderedPrompts};
use self::playback::{Playback, PlaybackTimes};
use self::prompt_guard::PromptGuard;
use self::quality_guard::QualityGuard;
pub use self::recent_packets::{PACKETS_WINDOW, RecentPackets};
use self::recorder::CallRecorder;
use self::recovery::Recovery;
use self::running::RunningCalls;
use self::switches::Switches;
pub use self::switches::{STOP_ALL, drained_switch};
use self::trunk_pool::TrunkPool;
use self::trunk_sharing::TrunkSharing;
use self::wake_ups::WakeUps;
use crate::accepted::{AcceptedPrompts, Announcer};
use crate::audio_files::prompts;
use crate::barred_numbers::BarredNumbers;
use crate::callbacks::OwedSignal;
use crate::claim_holds::ClaimHolds;
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::claim::NodeId;
use crate::store::DispatchStore;

const HOUSEKEEPING_PATIENCE: Duration = Duration::from_secs(60);
const SHARING_PATIENCE: Duration = Duration::from_secs(30);

/// Dispatch while it runs. Dropping it ends it at once; `stop` ends it in order.
#[derive(Debug)]
pub struct Dispatch {
    announcer: Announcer,
    dispatcher: Arc<Dispatcher>,
    stop_time: Duration,
    stopping: CancellationToken,
    loops: [TaskGuard; 2],
    /// It goes on until the last call has ended.
    heartbeat: TaskGuard,
    _sharing: TaskGuard,
    _prompts: TaskGuard,
}

/// What dispatch shares with other parts of the server.
#[derive(Debug)]
pub struct DispatchNeeds {
    pub store: Arc<dyn DispatchStore>,
    pub clock: Clock,
    /// This life of this process.
    pub node: NodeId,
    pub trunks: TrunkPool,
    pub prompts: Arc<dyn PromptSource>,
    /// To be told when a callback or an event may be owed.
    pub owed: Arc<OwedSignal>,
    pub holds: ClaimHolds,
    pub barred: Arc<BarredNumbers>,
    pub notes: AnswerNotes,
}

impl Dispatch {
    pub async fn start(
        config: &Config,
        needs: DispatchNeeds,
        supervisor: &Supervisor,
    ) -> anyhow::Result<Self> {
        let DispatchNeeds {
            store,
            clock,
            node,
            trunks,
            prompts,
            owed,
            holds,
            barred,
            notes,
        } = needs;
        let settings = &config.dispatch;
        let pool = Arc::new(trunks);
        let node = Node::new(node, Arc::clone(&store), clock, settings.lease);
        let queued = Arc::new(Notify::new());
        let (announcer, accepted) = Announcer::new(Arc::clone(&queued));
        let running = Arc::new(RunningCalls::default());
        let customers = Arc::new(CustomerLimits::new(Arc::clone(&store), settings));
        let recorder = CallRecorder {
            node: node.clone(),
            running: Arc::clone(&running),
            planner: NoticePlanner::new(config, &node, &barred, &customers),
            notes: Arc::new(notes),
            owed,
            recorded_point: supervisor.panic_point("call-recorded"),
        };
        let woken = store.woken(supervisor);
        let clock_check = ClockCheck::new(node.lease, &holds);
        let sharing = join_nodes(&node, &pool, &clock_check).await?;
        let switches = Arc::new(Switches::new(store, Arc::clone(&pool)));
        switches.read().await?;
        let playback = Arc::new(playback(config, prompts));
        let heartbeat = Arc::new(Heartbeat {
            node: node.clone(),
            clock_check,
            running: Arc::clone(&running),
            recovery: Recovery {
                recorder: recorder.clone(),
                pool: Arc::clone(&pool),
                redial: settings.redial_after_crash,
                queued: Arc::clone(&queued),
            },
        });
        // The legs of the life before this one still use channels: they are hung up before anything is dialled.
        let recovery = &heartbeat.recovery;
        recovery.recover(recovery.take_over(&[]).await?).await;
        recovery.hang_up_noted().await;
        let prompt_guard = Arc::new(PromptGuard::new(holds.clone()));
        let pace = Arc::clone(&pool.packets.pace);
        let housekeeping = Arc::new(Housekeeping {
            prompt_guard: Arc::clone(&prompt_guard),
            quality_guard: QualityGuard::new(pace, settings.late_percent, holds.clone()),
            recorder: recorder.clone(),
            pool: Arc::clone(&pool),
            switches: Arc::clone(&switches),
            customers: Arc::clone(&customers),
            retention: config.calls.retention,
        });
        let dispatcher = Arc::new(Dispatcher {
            claimer: Claimer {
                node,
                caps: settings.callee_caps,
                capacity: NodeCapacity::new(settings.max_calls, running, Arc::clone(&pool)),
                customers: Arc::clone(&customers),
                switches,
                holds,
            },
            runner: Arc::new(CallRunner {
                prompt_guard,
                barred,
                customers,
                queued: Arc::clone(&queued),
                pool,
                playback: Arc::clone(&playback),
                recorder,
                times: DialTimes::of(settings),
            }),
            calls: TaskTracker::new(),
            given_up: CancellationToken::new(),
            wake_ups: WakeUps::new(queued, woken),
            claimed_point: supervisor.panic_point("calls-claimed"),
        });
        let stopping = CancellationToken::new();
        let loops = [
            dispatcher.supervise(supervisor, &stopping),
            supervise_housekeeping(housekeeping, supervisor, &stopping),
        ];
        Ok(Self {
            announcer,
            dispatcher,
            stop_time: settings.stop_time,
            stopping,
            loops,
            heartbeat: supervise_heartbeat(heartbeat, settings.lease.unsigned_abs(), supervisor),
            _sharing: supervise_sharing(sharing, supervisor),
            _prompts: supervise_prompts(playback, accepted, ahead_at_once(config), supervisor),
        })
    }

    /// For whoever accepts calls.
    pub fn announcer(&self) -> Announcer {
        self.announcer.clone()
    }

    /// Claims nothing more; calls that run have a while for finishing. The supervisor must know already that everything stops.
    pub async fn stop(self) {
        self.stopping.cancel();
        for task in self.loops {
            task.ended().await;
        }
        self.dispatcher.finish(self.stop_time).await;
        drop(self.heartbeat);
        let node = &self.dispatcher.claimer.node;
        if let Err(error) = node.store.leave(&node.id).await {
            tracing::warn!(%error, "other nodes could not be told that this one stops");
        }
        self.dispatcher.runner.pool.stop();
    }
}

/// Before anything is claimed: the other nodes know of this one, and it knows its share.
async fn join_nodes(
    node: &Node,
    pool: &Arc<TrunkPool>,
    clock_check: &ClockCheck,
) -> anyhow::Result<Arc<TrunkSharing>> {
    let clock_ahead = node.heartbeat().await?;
    if let Some(refusal) = clock_check.refusal(clock_ahead) {
        anyhow::bail!(refusal);
    }
    let sharing = TrunkSharing {
        node: node.clone(),
        pool: Arc::clone(pool),
    };
    if planted::is(PlantedBug::ShareNotAwaited)
        && let Some(lease) = node.lease_watch.current()
    {
        pool.grant_whole(&lease);
    } else {
        sharing.step().await?;
    }
    Ok(Arc::new(sharing))
}

fn playback(config: &Config, prompts: Arc<dyn PromptSource>) -> Playback {
    Playback {
        prompts,
        key_prompts: KeyPrompts::new(&config.calls.sentences),
        times: PlaybackTimes {
            lead_in: config.dispatch.lead_in,
            extension_wait: config.dispatch.extension_wait,
            longest_talk: config.calls.max_talk,
        },
    }
}

fn supervise_heartbeat(
    heartbeat: Arc<Heartbeat>,
    patience: Duration,
    supervisor: &Supervisor,
) -> TaskGuard {
    supervisor.restart("heartbeat", Some(patience), move |watch| {
        Arc::clone(&heartbeat).run(watch)
    })
}

fn supervise_sharing(sharing: Arc<TrunkSharing>, supervisor: &Supervisor) -> TaskGuard {
    supervisor.restart("trunk-sharing", Some(SHARING_PATIENCE), move |watch| {
        Arc::clone(&sharing).run(watch)
    })
}

fn supervise_housekeeping(
    housekeeping: Arc<Housekeeping>,
    supervisor: &Supervisor,
    stopping: &CancellationToken,
) -> TaskGuard {
    let stopping = stopping.clone();
    supervisor.restart("housekeeping", Some(HOUSEKEEPING_PATIENCE), move |watch| {
        Arc::clone(&housekeeping).run(watch, stopping.clone())
    })
}

/// Prompts of accepted calls that are rendered at once: one thread of the renderer is left for calls whose turn it is.
fn ahead_at_once(config: &Config) -> usize {
    prompts::at_once(config).saturating_sub(1).max(1)
}

/// Renders prompts of accepted calls while these wait. What is not rendered here is rendered when their turn comes.
fn supervise_prompts(
    playback: Arc<Playback>,
    accepted: AcceptedPrompts,
    at_once: usize,
    supervisor: &Supervisor,
) -> TaskGuard {
    supervisor.restart("prompts-ahead", None, move |watch| {
        let (playback, accepted) = (Arc::clone(&playback), accepted.clone());
        async move {
            let mut under_way = JoinSet::new();
            loop {
                let (account, prompt) = accepted.next().await;
                watch.heartbeat();
                if under_way.len() >= at_once {
                    // A panic of one costs that one.
                    let _ = under_way.join_next().await;
                }
                let playback = Arc::clone(&playback);
                under_way.spawn(async move { playback.render_ahead(&account, &prompt).await });
            }
        }
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
