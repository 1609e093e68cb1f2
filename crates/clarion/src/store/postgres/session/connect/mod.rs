//! Making sessions: which of the hosts is asked, in which order, and which of them is taken.

mod greeting;
mod passfile;
mod pooler;
mod socket;
mod startup;
mod tls;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use self::greeting::Greeting;
use self::startup::{LoggedIn, StartupError};
use super::{Session, StatementError, TimeLimit};
use crate::config::{HostOrder, PostgresAddress, PostgresConfig, PostgresHost, SessionTarget};
use crate::domain::wording::Wording;
use crate::random;

/// Why there is no session: each host that was asked, and what came of it.
#[derive(Debug, Clone)]
pub struct ConnectError(String);

impl ConnectError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConnectError {}

/// One place of one host.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

#[derive(Debug)]
pub struct Connector {
    config: PostgresConfig,
    /// The host that could be written to last: it is asked first, so that a dead one before it costs its time once.
    last_good: AtomicUsize,
    /// Hosts behind which sessions are known to be sessions.
    proven: Mutex<Vec<usize>>,
}

impl Connector {
    pub fn new(config: PostgresConfig) -> Self {
        Self {
            config,
            last_good: AtomicUsize::new(0),
            proven: Mutex::default(),
        }
    }

    fn address(&self) -> &PostgresAddress {
        &self.config.address
    }

    /// A session with the first host that is there and is what the address wants.
    pub async fn connect(&self, until: Option<Instant>) -> Result<Session, ConnectError> {
        let mut problems = Vec::new();
        for wanted in passes(self.address().target) {
            problems.clear();
            for place in self.order() {
                match self.connect_to_host(place, *wanted, until).await {
                    Ok(session) => return Ok(session),
                    Err(HostError::Refused(problem)) => return Err(ConnectError(problem)),
                    Err(HostError::Unusable(problem)) => problems.push(problem),
                }
            }
        }
        Err(ConnectError(problems.join("; ")))
    }

    /// What each of several hosts is, for whoever wants to know them all.
    pub async fn survey(&self) -> Vec<(String, Result<Wording, String>)> {
        let mut found = Vec::new();
        if self.address().hosts.len() > 1 {
            for (host, name) in self.address().hosts.iter().enumerate() {
                found.push((name.to_string(), self.ask_host(host).await));
            }
        }
        found
    }

    async fn ask_host(&self, host: usize) -> Result<Wording, String> {
        let places = self.places(&self.address().hosts[host]).await?;
        let mut problem = "has no address".to_owned();
        for place in places {
            match self.log_in(host, &place, None).await {
                Ok((_, greeting)) => return Ok(greeting.kind()),
                Err(HostError::Refused(text) | HostError::Unusable(text)) => problem = text,
            }
        }
        Err(problem)
    }

    /// The places of the hosts in the list, as they are asked.
    fn order(&self) -> Vec<usize> {
        let address = self.address();
        let mut order: Vec<_> = (0..address.hosts.len()).collect();
        match address.order {
            HostOrder::Random => shuffle(&mut order),
            HostOrder::AsWritten if wants_writes(address.target) => {
                let first = self.last_good.load(Ordering::Relaxed);
                order.sort_by_key(|place| (*place != first, *place));
            }
            HostOrder::AsWritten => {}
        }
        order
    }

    async fn connect_to_host(
        &self,
        host: usize,
        wanted: SessionTarget,
        until: Option<Instant>,
    ) -> Result<Session, HostError> {
        let name = &self.address().hosts[host];
        let end = self.end_of_attempt(until);
        let places = timeout_at(end, self.places(name)).await;
        let places = places
            .unwrap_or_else(|_| Err("its name was not resolved in time".to_owned()))
            .map_err(|problem| HostError::Unusable(format!("{name}: {problem}")))?;
        let mut last = HostError::Unusable(format!("{name}: has no address"));
        for place in places {
            match self.connect_to_place(host, &place, wanted, until).await {
                Ok(session) => {
                    self.last_good.store(host, Ordering::Relaxed);
                    return Ok(session);
                }
                Err(HostError::Refused(problem)) => {
                    return Err(HostError::Refused(format!("{name}: {problem}")));
                }
                Err(HostError::Unusable(problem)) => {
                    last = HostError::Unusable(format!("{name}: {problem}"));
                }
            }
        }
        Err(last)
    }

    async fn connect_to_place(
        &self,
        host: usize,
        place: &Place,
        wanted: SessionTarget,
        until: Option<Instant>,
    ) -> Result<Session, HostError> {
        let (logged_in, greeting) = self.log_in(host, place, until).await?;
        greeting.suits(wanted).map_err(HostError::Unusable)?;
        if !logged_in.is_direct(&greeting) {
            self.prove_sessions(host, place, &logged_in, &greeting, until)
                .await?;
        }
        let session = logged_in.session;
        session
            .settle(self.address(), self.config.deadlines.usual)
            .await?;
        Ok(session)
    }

    async fn log_in(
        &self,
        host: usize,
        place: &Place,
        until: Option<Instant>,
    ) -> Result<(LoggedIn, Greeting), HostError> {
        let address = self.address();
        let limit = TimeLimit {
            statement: address.connect_timeout,
            until,
        };
        let logged_in = startup::log_in(address, &address.hosts[host], place);
        let logged_in = timeout_at(self.end_of_attempt(until), logged_in).await;
        let mut logged_in = logged_in.map_err(|_| self.too_late())??;
        logged_in.session.limit = limit;
        let greeting = logged_in.session.greet().await?;
        Ok((logged_in, greeting))
    }

    fn end_of_attempt(&self, until: Option<Instant>) -> Instant {
        let end = Instant::now() + self.address().connect_timeout;
        until.map_or(end, |until| until.min(end))
    }

    fn too_late(&self) -> HostError {
        let limit: Duration = self.address().connect_timeout;
        HostError::Unusable(format!("no session within {limit:?}"))
    }

    async fn places(&self, host: &PostgresHost) -> Result<Vec<Place>, String> {
        match host {
            PostgresHost::Unix { folder, port } => {
                Ok(vec![Place::Unix(folder.join(format!(".s.PGSQL.{port}")))])
            }
            PostgresHost::Tcp {
                address: Some(address),
                port,
                ..
            } => Ok(vec![Place::Tcp((*address, *port).into())]),
            PostgresHost::Tcp { name, port, .. } => {
                let name = name.as_deref().unwrap_or_default();
                let found = match name.parse::<IpAddr>() {
                    Ok(address) => vec![(address, *port).into()],
                    Err(_) => tokio::net::lookup_host((name, *port))
                        .await
                        .map_err(|error| error.to_string())?
                        .collect(),
                };
                let mut places: Vec<_> = found.into_iter().map(Place::Tcp).collect();
                if self.address().order == HostOrder::Random {
                    shuffle(&mut places);
                }
                Ok(places)
            }
        }
    }
}

/// What is wanted, and what is taken if nobody has it.
fn passes(target: SessionTarget) -> &'static [SessionTarget] {
    match target {
        SessionTarget::Any => &[SessionTarget::Any],
        SessionTarget::ReadWrite => &[SessionTarget::ReadWrite],
        SessionTarget::ReadOnly => &[SessionTarget::ReadOnly],
        SessionTarget::Primary => &[SessionTarget::Primary],
        SessionTarget::Standby => &[SessionTarget::Standby],
        SessionTarget::PreferStandby => &[SessionTarget::Standby, SessionTarget::Any],
    }
}

/// Only one of the servers can be meant, so the order is ours.
fn wants_writes(target: SessionTarget) -> bool {
    matches!(target, SessionTarget::ReadWrite | SessionTarget::Primary)
}

fn shuffle<T>(list: &mut [T]) {
    for end in (1..list.len()).rev() {
        let chance = u32::from_le_bytes(random::bytes()) as usize;
        list.swap(end, chance % (end + 1));
    }
}

/// What comes of one host.
enum HostError {
    /// The next one is asked.
    Unusable(String),
    /// It has judged us, or we it: the others are not asked.
    Refused(String),
}

/// As in libpq: where a server is there and does not let us in, the others are not tried.
impl From<StartupError> for HostError {
    fn from(error: StartupError) -> Self {
        match error {
            StartupError::NotLetIn(text) => Self::Refused(text),
            StartupError::Other(text) => Self::Unusable(text),
        }
    }
}

impl From<StatementError> for HostError {
    fn from(error: StatementError) -> Self {
        Self::Unusable(error.text().to_owned())
    }
}
