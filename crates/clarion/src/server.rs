//! Builds every part and joins them: the only wiring.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use supervisor::{Supervisor, TaskFailure, TaskGuard, Watch};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::api::{self, Admission, Api};
use crate::audio_files::AudioFiles;
use crate::audio_files::sweep::{self, Sweep};
use crate::barred_numbers::BarredNumbers;
use crate::billing::{self, Billing};
use crate::callbacks::Callbacks;
use crate::claim_holds::ClaimHolds;
use crate::clock::Clock;
use crate::config::Config;
use crate::console::{self, Console};
use crate::disk_room::{DiskRoom, WatchedDisk};
use crate::dispatch::trunk_pool::{PooledTrunk, TrunkPool};
use crate::dispatch::{AnswerNotes, Dispatch, DispatchNeeds, RenderedPrompts};
use crate::domain::audit::Actor;
use crate::domain::claim::NodeId;
use crate::http::Front;
use crate::http::tls::Certificates;
use crate::management::{ManagedServer, Management, OverviewMemory};
use crate::placing::{CallPlacing, Listeners};
use crate::private_files;
use crate::random;
use crate::readiness::Readiness;
use crate::sip_trace::{self, TraceDoor, TraceRing};
use crate::store::{ServeLock, Store};
use crate::telemetry;

/// A server that is running. Dropping it does not stop it in an orderly way; `stop` does.
#[derive(Debug)]
pub struct Server {
    pub addresses: Vec<SocketAddr>,
    /// Where operators reach the console, as far as it can be reached.
    pub console: Vec<SocketAddr>,
    /// The CA file that clients must be given, where the certificate is our own.
    pub ca: Option<PathBuf>,
    supervisor: Supervisor,
    readiness: Arc<Readiness>,
    management: Management,
    store: Arc<dyn Store>,
    stop: watch::Sender<bool>,
    listeners: Vec<TaskGuard>,
    dispatch: Dispatch,
    callbacks: Callbacks,
    /// Work that goes on beside the requests, and ends with the server.
    background: Vec<TaskGuard>,
    _trace_door: Option<TraceDoor>,
    _lock: Option<ServeLock>,
}

impl Server {
    pub async fn start(config: Config, clock: Clock) -> anyhow::Result<Self> {
        let config = Arc::new(config);
        private_files::folder(&config.data_dir).context("data_dir")?;
        let lock = config.database.lock_for_serving()?;
        // Before the first commit, which may stay the longest.
        let metrics = telemetry::start_metrics();
        let supervisor = Supervisor::new();
        let store = config.database.open(&supervisor).await?;
        store
            .set_default_rates(config.rates.default.clone())
            .await?;
        let audio_files = AudioFiles::open(&config)?;
        let billing = Arc::new(Billing::open(&config, Arc::clone(&store), clock.clone())?);
        // This life of this process: what an earlier one held is not ours.
        let node = NodeId::new(random::bytes());
        let callbacks = Callbacks::start(&config.callbacks, &store, &clock, &node, &supervisor)?;
        let disk = Arc::new(DiskRoom::new(&config));
        store.keep_reserve(disk.reserve());
        let holds = ClaimHolds::default();
        holds.describe();
        let barred = Arc::new(BarredNumbers::open(&*store).await?);
        let (trunks, ring, trace_door) =
            start_trunks(&config, &barred, &clock, &supervisor).await?;
        let prompts = RenderedPrompts::open(&config, audio_files.clone(), &supervisor)?;
        let prompts = Arc::new(prompts);
        let (pooled, packets) = (trunks.trunks().to_vec(), Arc::clone(&trunks.packets));
        let needs = DispatchNeeds {
            store: Arc::clone(&store) as _,
            clock: clock.clone(),
            node: node.clone(),
            trunks,
            prompts: Arc::clone(&prompts) as _,
            owed: callbacks.owed(),
            holds: holds.clone(),
            barred: Arc::clone(&barred),
            notes: AnswerNotes::open(&config.data_dir),
        };
        let dispatch = Dispatch::start(&config, needs, &supervisor).await?;
        let readiness = Arc::new(Readiness::new(
            Arc::<dyn Store>::clone(&store),
            supervisor.clone(),
            holds,
            Arc::clone(&disk),
        ));
        let listeners = Listeners {
            accepted: dispatch.announcer(),
            callback_owed: callbacks.owed(),
        };
        let placing = CallPlacing::new(&store, &config, &clock, &barred, &disk, listeners);
        let placing = Arc::new(placing);
        let managed = ManagedServer {
            node: node.clone(),
            placing: Arc::clone(&placing),
            callback_owed: callbacks.owed(),
            trunks: pooled,
            packets,
            disk: Arc::clone(&disk),
            readiness: Arc::clone(&readiness),
            trace: ring,
            prompts,
            overview: OverviewMemory::default(),
        };
        let management = managed.manage(&store, &config, &clock);
        let api = Api {
            admission: Admission::new(&config, Arc::clone(&store), &supervisor),
            store: Arc::clone(&store),
            audio_files,
            billing,
            clock: clock.clone(),
            placing,
            callback_owed: callbacks.owed(),
            disk,
            readiness: Arc::clone(&readiness),
            supervisor: supervisor.clone(),
            metrics,
            config: Arc::clone(&config),
        };
        let background = start_background(&api, &management, &node, barred, &supervisor);
        let (stop, stopped) = watch::channel(false);
        let api = api::router(Arc::new(api));
        let doors = Doors::open(api, &management, &stopped, &supervisor).await?;
        Ok(Self {
            addresses: doors.addresses,
            console: doors.console,
            ca: doors.ca,
            supervisor,
            readiness,
            management,
            store,
            stop,
            listeners: doors.listeners,
            dispatch,
            callbacks,
            background,
            _trace_door: trace_door,
            _lock: lock,
        })
    }

    /// Comes back when a task has ended without which the server cannot go on.
    pub async fn failed(&self) -> TaskFailure {
        self.supervisor.failed().await
    }

    /// Manages this server from within, as this actor.
    pub fn management(&self, actor: Actor) -> Management {
        self.management.acting_as(actor)
    }

    /// Says that a callback has become owed, for whoever has written one beside the server.
    pub fn deliver_callbacks(&self) {
        self.callbacks.owed().something_is_owed();
    }

    /// For tests that make a task panic.
    #[cfg(debug_assertions)]
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Accepts nothing new, finishes what has begun, and closes the store.
    pub async fn stop(self) {
        self.readiness.stop();
        self.supervisor.stop();
        self.stop.send_replace(true);
        for listener in self.listeners {
            listener.ended().await;
        }
        self.dispatch.stop().await;
        self.callbacks.stop().await;
        // Whatever else is under way (a day being closed) is left as it is; the next start goes on with it.
        drop(self.background);
        self.store.close().await;
    }
}

/// Where clients and operators come in.
struct Doors {
    addresses: Vec<SocketAddr>,
    console: Vec<SocketAddr>,
    ca: Option<PathBuf>,
    listeners: Vec<TaskGuard>,
}

impl Doors {
    async fn open(
        api: Router,
        management: &Management,
        stopped: &watch::Receiver<bool>,
        supervisor: &Supervisor,
    ) -> anyhow::Result<Self> {
        let config = management.config();
        let tls = Acceptors::new(config, management.clock())?;
        let console = Console::new(management.clone(), api.clone(), stopped.clone());
        let (console, mut listeners) =
            console::serve(config, console, tls.console, stopped, supervisor).await;
        let front = Front::new(api, tls.api, &config.http);
        let (addresses, own) = listen(config, front, stopped, supervisor).await?;
        listeners.extend(own);
        Ok(Self {
            addresses,
            console,
            ca: tls.ca,
            listeners,
        })
    }
}

/// TLS by the one certificate of this server, where it is spoken.
struct Acceptors {
    api: Option<TlsAcceptor>,
    console: Option<TlsAcceptor>,
    /// The file that clients of the API need, if we made the certificate.
    ca: Option<PathBuf>,
}

impl Acceptors {
    fn new(config: &Config, clock: &Clock) -> anyhow::Result<Self> {
        let for_api = !config.http.plain;
        let for_console = !config.console.plain && !config.console.listen.is_empty();
        let mut acceptors = Self {
            api: None,
            console: None,
            ca: None,
        };
        if for_api || for_console {
            let folder = config.data_dir.join("tls");
            let certificates = Certificates::find_or_make(&config.http, &folder, &clock.wall())?;
            let tls = certificates.acceptor()?;
            acceptors.api = for_api.then(|| tls.clone());
            acceptors.console = for_console.then_some(tls);
            acceptors.ca = certificates.ca.filter(|_| for_api);
        }
        Ok(acceptors)
    }
}

/// The listeners for clients of the API. Without one of them the server does not start.
async fn listen(
    config: &Config,
    front: Front,
    stopped: &watch::Receiver<bool>,
    supervisor: &Supervisor,
) -> anyhow::Result<(Vec<SocketAddr>, Vec<TaskGuard>)> {
    let front = Arc::new(front);
    let (mut addresses, mut listeners) = (Vec::new(), Vec::new());
    for address in &config.http.listen {
        let listener = TcpListener::bind(address).await.with_context(|| {
            format!("cannot listen on {address} (http.listen); is another server running there?")
        })?;
        addresses.push(listener.local_addr()?);
        let (front, stopped) = (Arc::clone(&front), stopped.clone());
        listeners.push(supervisor.require("http-listener", None, |watch| {
            front.serve(listener, watch, stopped)
        }));
    }
    Ok((addresses, listeners))
}

/// The trunks, and their messages and the door to them where these are kept.
async fn start_trunks(
    config: &Config,
    barred: &Arc<BarredNumbers>,
    clock: &Clock,
    supervisor: &Supervisor,
) -> anyhow::Result<(TrunkPool, Option<Arc<TraceRing>>, Option<TraceDoor>)> {
    let room = config.log.sip_trace_room;
    let ring = (room > 0).then(|| Arc::new(TraceRing::new(room)));
    let trace = ring.as_ref().map(|ring| ring.trace(clock.clone()));
    let trunks = TrunkPool::start(config, barred, trace, supervisor).await?;
    trunks.look(&clock.wall());
    let door = ring
        .clone()
        .and_then(|ring| trace_door(config, ring, &trunks, supervisor));
    Ok((trunks, ring, door))
}

/// A server whose messages nobody can ask for makes calls all the same.
fn trace_door(
    config: &Config,
    ring: Arc<TraceRing>,
    trunks: &TrunkPool,
    supervisor: &Supervisor,
) -> Option<TraceDoor> {
    let path = sip_trace::path_in(&config.data_dir);
    let trunks = trunks.trunks().to_vec();
    let addresses = move || {
        let of_trunk = |trunk: &Arc<PooledTrunk>| (trunk.name().to_owned(), trunk.line.addresses());
        trunks.iter().map(of_trunk).collect()
    };
    TraceDoor::open(path.clone(), ring, addresses, supervisor)
        .inspect_err(|error| {
            let path = path.display();
            tracing::warn!(%error, %path, "`clarion call trace` will not work: the socket cannot be made");
        })
        .ok()
}

fn start_background(
    api: &Api,
    management: &Management,
    node: &NodeId,
    barred: Arc<BarredNumbers>,
    supervisor: &Supervisor,
) -> Vec<TaskGuard> {
    let metrics = api.metrics.clone();
    let disk = WatchedDisk::of("data_dir", api.config.data_dir.clone());
    let disk = Arc::new(disk);
    let (files, clock) = (api.audio_files.clone(), api.clock.clone());
    let (store, swept) = (Arc::clone(&api.store), Arc::clone(&api.store));
    let (incidents, incident_clock) = (Arc::clone(&api.store), api.clock.clone());
    let (billing, node) = (Arc::clone(&api.billing), node.clone());
    let management = management.clone();
    vec![
        supervisor.restart("metrics", None, move |watch| {
            telemetry::keep_up(metrics.clone(), watch)
        }),
        supervisor.restart("concerns", None, move |watch| {
            management.clone().keep_telling_concerns(watch)
        }),
        supervisor.restart("disk-gauge", None, move |watch| {
            telemetry::watch_disk(Arc::clone(&disk), watch)
        }),
        supervisor.restart("audio-sweep", None, move |watch| {
            sweep_audio_files(files.clone(), Arc::clone(&swept), clock.clone(), watch)
        }),
        supervisor.restart("billing", None, move |watch| {
            billing::close::keep_closing(Arc::clone(&billing), node.clone(), watch)
        }),
        supervisor.restart("incidents", None, move |watch| {
            api::alerts::keep_forgetting(Arc::clone(&incidents), incident_clock.clone(), watch)
        }),
        supervisor.restart("barred-numbers", None, move |watch| {
            let (barred, store) = (Arc::clone(&barred), Arc::clone(&store));
            async move { barred.keep_reading(&*store, watch).await }
        }),
    ]
}

async fn sweep_audio_files(files: AudioFiles, store: Arc<dyn Store>, clock: Clock, watch: Watch) {
    let mut sweep = Sweep::default();
    loop {
        tokio::time::sleep(sweep::PAUSE).await;
        watch.heartbeat();
        match sweep.step(&files, &*store, clock.now()).await {
            Ok(0) => {}
            Ok(removed) => {
                tracing::info!(removed, "removed audio files that nothing names any more");
            }
            Err(error) => tracing::warn!(%error, "unused audio files could not be removed"),
        }
    }
}
