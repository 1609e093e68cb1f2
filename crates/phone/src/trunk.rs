//! A trunk into the telephone network: its addresses, how it wants to be called, and whether it is there.

mod addresses;
mod config;
mod failover;
mod health;
mod invite;
mod redirect;
mod registration;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use supervisor::Supervisor;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::signalling::{DialogSnapshot, Resolver, Signalling, SignallingError, Transport};
use addresses::Addresses;
pub use config::{Identity, NumberForm, SipTrunkConfig};
pub use failover::HostFailover;
pub use health::Health;
use health::{HealthSource, KnownHealth};
pub(crate) use redirect::RedirectTarget;
pub use redirect::{NumberCheck, RedirectGuard, RedirectHosts};

#[derive(Debug)]
pub struct Trunk {
    pub config: SipTrunkConfig,
    signalling: Arc<Signalling>,
    resolver: Resolver,
    addresses: Mutex<Addresses>,
    known_health: Mutex<KnownHealth>,
    health: watch::Sender<Health>,
    /// Whether we register, where the trunk wants a registration.
    duty: watch::Receiver<bool>,
    stop: CancellationToken,
}

impl Trunk {
    /// Registers where the trunk wants that, and asks it whether it is there, until `stop`. `supervisor` knows the tasks as
    /// `registration:NAME`, `trunk-health:NAME` and `trunk-keepalive:NAME`.
    pub fn start(
        supervisor: &Supervisor,
        config: SipTrunkConfig,
        signalling: Arc<Signalling>,
        resolver: Resolver,
    ) -> Arc<Self> {
        let (_, always) = watch::channel(true);
        Self::start_on_duty(supervisor, config, signalling, resolver, always)
    }

    /// The same, but registers only while `duty` says so: others may do it for us.
    pub fn start_on_duty(
        supervisor: &Supervisor,
        config: SipTrunkConfig,
        signalling: Arc<Signalling>,
        resolver: Resolver,
        duty: watch::Receiver<bool>,
    ) -> Arc<Self> {
        let (health, _) = watch::channel(Health::Unknown);
        let trunk = Arc::new(Self {
            config,
            signalling,
            resolver,
            addresses: Mutex::default(),
            known_health: Mutex::default(),
            health,
            duty,
            stop: CancellationToken::new(),
        });
        trunk.introduce();
        let name = &trunk.config.name;
        // Both tasks end by themselves, because a registration is taken back at the end.
        if let Some(time) = trunk.config.register {
            let (name, cared_for) = (format!("registration:{name}"), Arc::clone(&trunk));
            supervisor
                .restart(&name, None, move |watch| {
                    registration::keep_registered(Arc::clone(&cared_for), time, watch)
                })
                .detach();
        }
        if let Some(interval) = trunk.config.ask_every {
            let (name, cared_for) = (format!("trunk-health:{name}"), Arc::clone(&trunk));
            supervisor
                .restart(&name, None, move |watch| {
                    health::check_health(Arc::clone(&cared_for), interval, watch)
                })
                .detach();
        }
        if let Some(interval) = trunk.config.keep_alive
            && trunk.signalling.transport() != Transport::Udp
        {
            let (name, cared_for) = (format!("trunk-keepalive:{name}"), Arc::clone(&trunk));
            supervisor
                .restart(&name, None, move |watch| {
                    health::keep_alive(Arc::clone(&cared_for), interval, watch)
                })
                .detach();
        }
        trunk
    }

    pub fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    /// It has answered the last OPTIONS.
    pub fn answers_options(&self) -> bool {
        self.known_health().options_say_up()
    }

    pub fn signalling(&self) -> &Arc<Signalling> {
        &self.signalling
    }

    /// Takes the registration back, and asks no more.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.stop.run_until_cancelled(work).await
    }

    /// Ends a leg of an earlier process.
    pub async fn end_orphan(&self, snapshot: &DialogSnapshot) -> Result<bool, SignallingError> {
        if self.signalling.transport() == Transport::Tls {
            // Each host is checked by its own name, which is known with its address.
            let _ = self.addresses().await;
        }
        self.signalling.end_orphan(snapshot).await
    }

    fn note_health(&self, source: HealthSource, health: Health) {
        let mut known = self.known_health();
        known.set(source, health);
        let health = known.all();
        if *self.health.borrow() == health {
            return;
        }
        let trunk = &self.config.name;
        match &health {
            Health::Down { why } => tracing::warn!(trunk, why, "the trunk is down"),
            Health::Up => tracing::info!(trunk, "the trunk is up"),
            Health::Unknown => {}
        }
        self.health.send_replace(health);
    }

    fn known_health(&self) -> MutexGuard<'_, KnownHealth> {
        let known = self.known_health.lock();
        known.unwrap_or_else(PoisonError::into_inner)
    }
}
