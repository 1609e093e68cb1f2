//! What an endpoint has to know before it starts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rsipstack::dialog::authenticate::Credential;

use super::{RefusalCounts, Resolver, TlsFiles, Trace, Transport};

const IDLE_TIME: Duration = Duration::from_secs(300);

/// Where and how we are reached.
#[derive(Debug, Clone)]
pub struct SignallingConfig {
    pub transport: Transport,
    pub bind: SocketAddr,
    /// The address for Via and Contact, where it differs from the one that we are bound to.
    pub advertised: Option<SocketAddr>,
    pub tls: TlsFiles,
    pub user_agent: String,
    /// Sees every message, with secrets masked.
    pub trace: Option<Trace>,
    /// For the names in what peers say about where they are.
    pub resolver: Resolver,
    /// What is refused is counted there.
    pub refusals: Arc<RefusalCounts>,
    /// A connection on which nothing comes for so long is closed, whoever has opened it. We ping those that we have opened (`keepalive`).
    pub idle_time: Duration,
}

impl SignallingConfig {
    pub fn new(transport: Transport, bind: SocketAddr) -> Self {
        Self {
            transport,
            bind,
            advertised: None,
            tls: TlsFiles::default(),
            user_agent: "Clarion".to_owned(),
            trace: None,
            resolver: Resolver::default(),
            refusals: Arc::default(),
            idle_time: IDLE_TIME,
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct SipCredentials {
    pub user: String,
    /// The name that the password belongs to, where that is not the user.
    pub auth_user: Option<String>,
    pub password: String,
}

impl SipCredentials {
    pub(super) fn in_library(self) -> Credential {
        Credential {
            username: self.user,
            password: self.password,
            realm: None,
            auth_username: self.auth_user,
        }
    }
}

impl std::fmt::Debug for SipCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SipCredentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}
