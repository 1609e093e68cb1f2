//! One history: nodes, clients and faults by a plan, until everything has ended.

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use clarion::accepted::Announcer;
use clarion::config::Config;
use clarion::dispatch::STOP_ALL;
use clarion::domain::call::{CallKind, CallSid, NewCall, Priority, Queueing};
use clarion::domain::callback::RespUrl;
use clarion::domain::prompt::Prompt;
use clarion::domain::request_key::AcceptedCall;
use clarion::domain::route::{CallEnds, RouteKey};
use clarion::random;
use clarion::store::CallQueue;
use jiff::SignedDuration;
use tokio::time::Instant;

use crate::life::{Blow, Life};
use crate::network::Network;
use crate::node::SimulatedNode;
use crate::node_store::NodeStore;
use crate::notices::{self, recipient};
use crate::panics;
use crate::plan::{CallPlan, Fault, Plan, TRUNKS};
use crate::world::World;

/// When nothing goes wrong any more, everything ends within this time: the longest wait in the queue, the longest breaker, a call.
const BOUND: Duration = Duration::from_secs(150);
/// How long a client waits for an answer.
const CLIENT_PATIENCE: Duration = Duration::from_secs(5);

/// What came of a history.
#[derive(Debug)]
pub struct Verdict {
    pub wrong: Vec<String>,
    pub fingerprint: u64,
    pub lines: Vec<String>,
    pub calls: usize,
    pub invites: usize,
}

/// Runs the history of a seed, on this thread.
pub fn run(seed: u64, read: bool) -> Verdict {
    random::seeded::set(Some(seed));
    panics::watch();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without threads");
    let mut verdict = runtime.block_on(live(seed, read));
    verdict.wrong.extend(panics::seen());
    drop(runtime);
    random::seeded::set(None);
    verdict
}

/// Everybody who takes part.
struct Stage {
    world: Arc<World>,
    plan: Plan,
    config: Config,
    nodes: Mutex<Vec<Option<SimulatedNode>>>,
    /// Processes that were killed. What they have in hand is dropped with the runtime, and not before.
    killed: Mutex<Vec<SimulatedNode>>,
}

async fn live(seed: u64, read: bool) -> Verdict {
    let plan = Plan::draw(seed);
    let places = plan.nodes.len();
    let world = World::new(seed, plan.lease_end, places, read);
    let stage = Arc::new(Stage {
        world: Arc::clone(&world),
        config: config(&plan),
        nodes: Mutex::new((0..places).map(|_| None).collect()),
        killed: Mutex::default(),
        plan,
    });
    if read {
        world
            .state()
            .log
            .lines
            .as_mut()
            .expect("asked for")
            .push(format!("{:?}", stage.plan));
    }
    for (place, at) in stage.plan.nodes.iter().enumerate() {
        tokio::spawn(Arc::clone(&stage).keep_node(place, *at));
    }
    for (number, call) in stage.plan.calls.iter().enumerate() {
        tokio::spawn(Arc::clone(&stage).client(number, call.clone()));
    }
    world.state().strikes.clone_from(&stage.plan.strikes);
    for (at, fault) in &stage.plan.faults {
        tokio::spawn(Arc::clone(&stage).fault(*at, *fault));
    }
    let calm = Instant::now() + stage.plan.calm_after();
    tokio::time::sleep_until(calm).await;
    while !world.is_at_rest() && calm.elapsed() < BOUND {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let mut state = world.state();
    let mut wrong = state.judge();
    wrong.extend(stage.too_many_starts(&state.network));
    let clocks_apart = stage.plan.clocks_apart();
    wrong.extend(notices::violations(
        &state.model,
        &state.network,
        clocks_apart,
    ));
    Verdict {
        wrong,
        fingerprint: state.fingerprint(),
        calls: state.model.calls.len(),
        invites: state.network.legs().len(),
        lines: state.log.lines.take().unwrap_or_default(),
    }
}

/// The settings of a history.
fn config(plan: &Plan) -> Config {
    static DEFAULT: LazyLock<Config> = LazyLock::new(|| {
        let trunk = |name| {
            format!("[[trunk]]\nname = \"{name}\"\nhost = \"192.0.2.1\"\nprefixes = [\"\"]\n")
        };
        let trunks: String = TRUNKS.map(trunk).concat();
        Config::from_parts(&trunks, &[]).expect("settings without a mistake")
    });
    let mut config = DEFAULT.clone();
    let dispatch = &mut config.dispatch;
    dispatch.lease = SignedDuration::from_secs(plan.lease.into());
    dispatch.calls_at_once = plan.calls_at_once;
    dispatch.calls_per_second = 1000;
    dispatch.ring_time = plan.ring;
    dispatch.lead_in = plan.lead_in;
    dispatch.first_retry = SignedDuration::from_secs(1);
    dispatch.longest_retry = SignedDuration::from_secs(10);
    dispatch.stop_time = Duration::from_secs(3);
    config.calls.retention = None;
    config.trunks.truncate(plan.trunks.len());
    for (trunk, planned) in config.trunks.iter_mut().zip(&plan.trunks) {
        trunk.channels = planned.channels;
        trunk.calls_per_second = planned.per_second;
    }
    config
}

impl Stage {
    fn nodes(&self) -> MutexGuard<'_, Vec<Option<SimulatedNode>>> {
        self.nodes.lock().expect("nobody panics with it")
    }

    fn record(&self, place: usize, what: &str) {
        let mut state = self.world.state();
        self.world.record(&mut state, place, what, "");
    }

    /// A trunk's rate holds in any second to within one start a node. Where something goes wrong, INVITEs wait for their commits, and
    /// then leave together.
    fn too_many_starts(&self, network: &Network) -> Vec<String> {
        let plan = &self.plan;
        if !plan.faults.is_empty() || !plan.strikes.is_empty() {
            return Vec::new();
        }
        let trunks = TRUNKS.iter().zip(&plan.trunks);
        let too_many = trunks.filter_map(|(name, trunk)| {
            let (most, rate) = (network.most_in_a_second(name), trunk.per_second);
            let allowed = rate as usize + plan.nodes.len();
            (most > allowed).then(|| format!("{most} starts in a second, {rate} of {name}"))
        });
        too_many.collect()
    }

    /// Process after process at one place. One that cannot start is started again, as a service manager does.
    async fn keep_node(self: Arc<Self>, place: usize, first: Duration) {
        let mut pause = first;
        loop {
            tokio::time::sleep(pause).await;
            self.record(place, "start");
            let life = Life::begin();
            self.world.state().lives[place] = life.clone();
            let starting = SimulatedNode::start(&self.config, &self.world, place, life.clone());
            let started = tokio::select! {
                biased;
                started = starting => started.ok(),
                _ = life.over() => None,
            };
            if started.is_none() {
                life.strike(Blow::Kill(Duration::from_secs(1)));
            }
            self.nodes()[place] = started;
            pause = life.over().await;
            let killed = self.nodes()[place].take();
            self.killed
                .lock()
                .expect("nobody panics with it")
                .extend(killed);
        }
    }

    /// A client asks one node and then another until a call is accepted: always for the same call.
    async fn client(self: Arc<Self>, number: usize, plan: CallPlan) {
        tokio::time::sleep(plan.at).await;
        let order = order(number, &plan, &self.config, &self.world);
        let sid = order.call.sid.clone();
        for attempt in number..number + 6 {
            let Some((store, announcer)) = self.door(attempt) else {
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            };
            let accepted = store.accept_call(order.clone());
            let accepted = tokio::time::timeout(CLIENT_PATIENCE, accepted).await;
            if matches!(accepted, Ok(Ok(_))) {
                announcer.call_accepted(order.call.account.clone(), order.call.prompt.clone());
                self.world.state().accepted.push(sid.to_string());
                break;
            }
        }
        if let Some(after) = plan.cancelled_after {
            tokio::time::sleep(after).await;
            self.cancel(number, &sid).await;
        }
    }

    async fn cancel(&self, number: usize, sid: &CallSid) {
        if let Some((store, _)) = self.door(number) {
            let _ = tokio::time::timeout(CLIENT_PATIENCE, store.cancel_call(sid)).await;
        }
    }

    /// The store and the announcer of some node that serves.
    fn door(&self, number: usize) -> Option<(Arc<NodeStore>, Announcer)> {
        let nodes = self.nodes();
        let node = nodes[number % nodes.len()].as_ref()?;
        Some((Arc::clone(&node.store), node.dispatch.announcer()))
    }

    async fn fault(self: Arc<Self>, at: Duration, fault: Fault) {
        tokio::time::sleep(at).await;
        self.record(0, &format!("{fault:?}"));
        match fault {
            Fault::Strike(place, blow) => self.world.state().lives[place].strike(blow),
            Fault::Stop(place, time) => self.stop(place, time).await,
            Fault::Panic(place, task) => {
                self.with_node(place, |node| _ = node.supervisor.request_panic(task));
            }
            Fault::Clock(place, seconds, time) => {
                let by = SignedDuration::from_secs(seconds);
                self.with_node(place, |node| node.clock.skew(by));
                tokio::time::sleep(time).await;
                self.with_node(place, |node| node.clock.skew(-by));
            }
            Fault::Prompts(place, time) => {
                let set = |broken| {
                    self.with_node(place, |node| {
                        node.prompts.is_broken.store(broken, Ordering::Relaxed);
                    });
                };
                set(true);
                tokio::time::sleep(time).await;
                set(false);
            }
            Fault::StoreDown(time) => self.world.state().weather.down_for(time),
            Fault::StoreShaky(time) => self.world.state().weather.shaky_for(time),
            Fault::StoreSlow(time) => self.world.state().weather.slow_for(time),
            Fault::TrunkDown(trunk, time) => {
                let mut state = self.world.state();
                state.weather.trunk_down_for(TRUNKS[trunk], time);
            }
            Fault::StopAll(time) => {
                let on = (STOP_ALL.to_owned(), "on".to_owned());
                self.world.state().switches = vec![on];
                tokio::time::sleep(time).await;
                self.world.state().switches.clear();
            }
        }
    }

    fn with_node(&self, place: usize, act: impl FnOnce(&SimulatedNode)) {
        if let Some(node) = &self.nodes()[place] {
            act(node);
        }
    }

    async fn stop(&self, place: usize, pause: Duration) {
        let Some(node) = self.nodes()[place].take() else {
            return;
        };
        node.supervisor.stop();
        node.dispatch.stop().await;
        self.record(place, "stopped");
        node.life.strike(Blow::Kill(pause));
    }
}

fn order(number: usize, plan: &CallPlan, config: &Config, world: &World) -> AcceptedCall {
    let to = recipient(plan.callee);
    let routes = config.trunks.iter().map(|trunk| &trunk.route);
    AcceptedCall {
        event: None,
        queueing: Queueing {
            route: RouteKey::of(
                routes,
                CallEnds {
                    called: to.number.digits(),
                    caller: None,
                },
            ),
            priority: Priority::new(if plan.urgent { 1 } else { 5 }).expect("1 to 9"),
            pause: SignedDuration::ZERO,
            valid_for: SignedDuration::from_secs(plan.valid_for.into()),
            patience: None,
        },
        call: NewCall {
            kind: CallKind::Notification,
            sid: format!("{number:032}").parse().expect("32 digits"),
            account: "a".repeat(32).parse().expect("32 letters"),
            app: "b".repeat(32).parse().expect("32 letters"),
            accepted_at: world.now(),
            notice: plan
                .notice
                .as_ref()
                .map(|drawn| Arc::new(drawn.notice(&to))),
            called: to.called,
            callee: to.callee,
            number: to.number,
            caller: to.caller,
            prompt: Prompt {
                speech: None,
                files: Vec::new(),
                code: None,
                plays: 1,
            },
            max_talk: None,
            resp_url: Some(RespUrl::from_stored("http://example.com/cb".to_owned())),
            user_data: None,
            events: None,
        },
        request: None,
    }
}
