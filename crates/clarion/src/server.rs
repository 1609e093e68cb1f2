//! Builds every part and joins them: the only wiring.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::api::{self, Api};
use crate::audio_files::AudioFiles;
use crate::audio_files::sweep::{self, Sweep};
use crate::billing::{self, Billing};
use crate::callbacks::Callbacks;
use crate::clock::Clock;
use crate::config::Config;
use crate::dispatch::Dispatch;
use crate::domain::claim::NodeId;
use crate::http::Front;
use crate::http::tls::Certificates;
use crate::random;
use crate::store::{ServeLock, Store};
use crate::telemetry;

/// A server that is running. Dropping it does not stop it in an orderly way; `stop` does.
#[derive(Debug)]
pub struct Server {
    pub addresses: Vec<SocketAddr>,
    /// The CA file that clients must be given, where the certificate is our own.
    pub ca: Option<PathBuf>,
    store: Arc<dyn Store>,
    stopping: Arc<AtomicBool>,
    stop: watch::Sender<bool>,
    listeners: JoinSet<()>,
    dispatching: JoinHandle<()>,
    callbacks: Callbacks,
    /// Work that goes on beside the requests, and ends with the server.
    background: JoinSet<()>,
    _lock: Option<ServeLock>,
}

impl Server {
    pub async fn start(config: Config, clock: Clock) -> anyhow::Result<Self> {
        let config = Arc::new(config);
        std::fs::create_dir_all(&config.data_dir)
            .with_context(|| format!("cannot make data_dir {}", config.data_dir.display()))?;
        let database = &config.database;
        let lock = database.lock_for_serving()?;
        let store = database.open().await?;

        let stopping = Arc::new(AtomicBool::new(false));
        let metrics = telemetry::start_metrics();
        let mut background = JoinSet::new();
        background.spawn(telemetry::keep_up(metrics.clone()));
        background.spawn(telemetry::watch_disk(config.data_dir.clone()));
        let audio_files = AudioFiles::open(&config)?;
        background.spawn(sweep_audio_files(
            audio_files.clone(),
            Arc::clone(&store),
            clock.clone(),
        ));
        store
            .set_default_rates(config.rates.default.clone())
            .await?;
        let billing = Arc::new(Billing::open(&config, Arc::clone(&store), clock.clone())?);
        // This life of this process: what an earlier one held is not ours.
        let node = NodeId::new(random::bytes());
        background.spawn(billing::close::keep_closing(
            Arc::clone(&billing),
            node.clone(),
        ));
        let callbacks = Callbacks::start(
            &config.callbacks,
            Arc::clone(&store),
            clock.clone(),
            node.to_string(),
        )?;
        let dispatch = Dispatch::start(
            Arc::clone(&config),
            Arc::clone(&store),
            clock.clone(),
            node,
            audio_files.clone(),
            callbacks.owed(),
        )
        .await?;
        let mut api = Api::new(
            Arc::clone(&config),
            Arc::clone(&store),
            audio_files,
            billing,
            clock.clone(),
            metrics,
            Arc::clone(&stopping),
        );
        api.queued = Arc::clone(&dispatch.queued);
        api.ahead = Some(dispatch.ahead.clone());
        background.spawn(Api::keep_barred(
            Arc::clone(&store),
            Arc::clone(&api.barred),
        ));
        let (tls, ca) = if config.http.plain {
            (None, None)
        } else {
            let certificates = Certificates::find_or_make(
                &config.http,
                &config.data_dir.join("tls"),
                &clock.wall(),
            )?;
            (Some(certificates.acceptor()?), certificates.ca)
        };
        let front = Arc::new(Front::new(api::router(Arc::new(api)), tls, &config.http));

        let (stop, stopped) = watch::channel(false);
        let dispatching = tokio::spawn(dispatch.run(stopped.clone()));
        let mut listeners = JoinSet::new();
        let mut addresses = Vec::new();
        for address in &config.http.listen {
            let listener = TcpListener::bind(address).await.with_context(|| {
                format!(
                    "cannot listen on {address} (http.listen); is another server running there?"
                )
            })?;
            addresses.push(listener.local_addr()?);
            listeners.spawn(Arc::clone(&front).serve(listener, stopped.clone()));
        }
        Ok(Self {
            addresses,
            ca,
            store,
            stopping,
            stop,
            listeners,
            dispatching,
            callbacks,
            background,
            _lock: lock,
        })
    }

    /// Says that a callback has become owed, for whoever has written one beside the server.
    pub fn deliver_callbacks(&self) {
        self.callbacks.owed().notify_one();
    }

    /// Accepts nothing new, finishes what has begun, and closes the store.
    pub async fn stop(mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.stop.send_replace(true);
        while self.listeners.join_next().await.is_some() {}
        let _ = self.dispatching.await;
        self.callbacks.stop().await;
        // Whatever else is under way (a day being closed) is left as it is; the next start goes on with it.
        self.background.shutdown().await;
        self.store.close().await;
    }
}

async fn sweep_audio_files(files: AudioFiles, store: Arc<dyn Store>, clock: Clock) {
    let mut sweep = Sweep::default();
    loop {
        tokio::time::sleep(sweep::PAUSE).await;
        match sweep.step(&files, &*store, clock.now()).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "voice files that nothing means any more"),
            Err(error) => tracing::warn!(%error, "unused voice files could not be removed"),
        }
    }
}
