//! A registration with a trunk that wants one (RFC 3261 section 10): one REGISTER at a time. Its owner decides when the next one is due.

use std::net::SocketAddr;
use std::time::Duration;

use rsipstack::sip::typed::Contact;

use super::{Signalling, SignallingError, SipCredentials, uri};

/// What the registrar said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registered {
    /// It lasts this long.
    For(Duration),
    /// The code of the refusal.
    Refused(u16),
    Silence,
}

pub struct Registration {
    inner: rsipstack::dialog::registration::Registration,
    user: String,
    /// A parameter of addresses, where it is not UDP.
    transport: String,
    server: rsipstack::sip::Uri,
    destination: SocketAddr,
}

impl Registration {
    pub fn destination(&self) -> SocketAddr {
        self.destination
    }
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration")
            .field("destination", &self.destination)
            .finish_non_exhaustive()
    }
}

impl Signalling {
    /// Prepares a registration at `domain`, sent to `destination`.
    pub fn registration(
        &self,
        domain: &str,
        destination: SocketAddr,
        credentials: SipCredentials,
    ) -> Result<Registration, SignallingError> {
        let user = credentials.user.clone();
        let transport = match self.transport {
            super::Transport::Udp => String::new(),
            stream => format!(";transport={stream}"),
        };
        let server = uri(&format!("sip:{domain}{transport}"))?;
        let mut inner = rsipstack::dialog::registration::Registration::new(
            self.endpoint.clone(),
            Some(credentials.in_library()),
        );
        inner.outbound_proxy = Some(destination);
        Ok(Registration {
            inner,
            user,
            transport,
            server,
            destination,
        })
    }

    /// Registers, or renews the registration; a time of zero takes it back.
    pub async fn register(
        &self,
        registration: &mut Registration,
        time: Duration,
    ) -> Result<Registered, SignallingError> {
        self.add_peer(registration.destination.ip());
        let reached = self.connect(registration.destination).await?;
        let call_id = registration.inner.call_id.value();
        let _conversation = self
            .conversations
            .begin(call_id, None, registration.destination);
        let (user, transport) = (&registration.user, &registration.transport);
        registration.inner.contact = Some(Contact {
            display_name: None,
            uri: uri(&format!("sip:{user}@{reached}{transport}"))?,
            params: Vec::new(),
        });
        let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        let response = registration
            .inner
            .register(registration.server.clone(), Some(seconds))
            .await?;
        Ok(match response.status_code.code() {
            200..=299 => {
                let granted = registration.inner.granted_expires.unwrap_or(seconds);
                Registered::For(Duration::from_secs(granted.into()))
            }
            // The library makes this code out of silence.
            408 => Registered::Silence,
            code => Registered::Refused(code),
        })
    }
}
