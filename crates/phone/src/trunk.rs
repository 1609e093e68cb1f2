//! A trunk: a way into the telephone network, with its addresses, its manners, and whether it is there.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::media::engine::MediaOptions;
use crate::signalling::{
    DialogSnapshot, Host, Invite, Registered, Registration, Resolver, Signalling, SignallingError,
    SipCredentials, Transport,
};

/// How long addresses are believed before the name servers are asked again. They are also asked when nobody there answers.
const ADDRESSES_LAST: Duration = Duration::from_secs(60);
/// A trunk that is down is asked again after this time, whatever the usual pace.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// One lost packet is no reason to give a trunk up.
const MISSES_ALLOWED: u32 = 2;
/// A registration is renewed when this part of it is over.
const RENEW_AFTER: f64 = 0.8;
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct SipTrunkConfig {
    pub name: String,
    /// Who is called: the host of the request's address.
    pub host: Host,
    /// Where the packets go, if not to the host itself.
    pub proxy: Option<Host>,
    /// The host in From, To and the registration, where the trunk wants another than its own name.
    pub domain: Option<String>,
    pub credentials: Option<SipCredentials>,
    /// How long a registration shall last; `None` for a trunk that knows us by our address.
    pub register: Option<Duration>,
    /// How often the trunk is asked whether it is there; `None`: never, it counts as being there.
    pub ask_every: Option<Duration>,
    pub identity: Identity,
    /// Follow a 3xx to another address.
    pub follow_redirects: bool,
    /// Offer session refreshes at this interval.
    pub session_interval: Option<Duration>,
    /// How long a trunk that has said "trying" may leave it at that before another one is tried.
    pub progress_time: Option<Duration>,
    /// What its calls want of their sound.
    pub media: MediaOptions,
}

impl SipTrunkConfig {
    pub fn new(name: &str, host: Host) -> Self {
        Self {
            name: name.to_owned(),
            host,
            proxy: None,
            domain: None,
            credentials: None,
            register: None,
            ask_every: None,
            identity: Identity::default(),
            follow_redirects: false,
            session_interval: None,
            progress_time: None,
            media: MediaOptions::default(),
        }
    }

    fn domain(&self) -> String {
        self.domain.clone().unwrap_or_else(|| self.host.to_string())
    }
}

/// How the calling number is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// A fixed user part of From, for trunks that want to see their customer there instead of the calling number.
    pub from_user: Option<String>,
    /// Tell the calling number in P-Asserted-Identity too (RFC 3325).
    pub asserted: bool,
    pub display_name: Option<String>,
}

/// Is it there?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Nobody has asked yet.
    Unknown,
    Up,
    Down {
        why: String,
    },
}

impl Health {
    /// Worth a try: a trunk of which nothing is known yet is tried too.
    pub fn usable(&self) -> bool {
        !matches!(self, Health::Down { .. })
    }
}

#[derive(Debug)]
struct Addresses {
    known: Vec<SocketAddr>,
    asked: Option<Instant>,
}

#[derive(Debug)]
pub struct Trunk {
    pub config: SipTrunkConfig,
    signalling: Arc<Signalling>,
    resolver: Resolver,
    addresses: Mutex<Addresses>,
    health: watch::Sender<Health>,
    stop: CancellationToken,
}

impl Trunk {
    /// Starts to watch over the trunk: registers where it wants that, asks whether it is there.
    pub fn start(
        config: SipTrunkConfig,
        signalling: Arc<Signalling>,
        resolver: Resolver,
    ) -> Arc<Self> {
        let (health, _) = watch::channel(Health::Unknown);
        let trunk = Arc::new(Self {
            config,
            signalling,
            resolver,
            addresses: Mutex::new(Addresses {
                known: Vec::new(),
                asked: None,
            }),
            health,
            stop: CancellationToken::new(),
        });
        if trunk.config.register.is_some() || trunk.config.ask_every.is_some() {
            tokio::spawn(Arc::clone(&trunk).watch_over());
        }
        trunk
    }

    pub fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    pub fn signalling(&self) -> &Arc<Signalling> {
        &self.signalling
    }

    /// Stops watching over it, and takes the registration back.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// All addresses of the trunk, in the order in which they are to be tried.
    pub async fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        {
            let addresses = self.lock();
            let fresh = addresses
                .asked
                .is_some_and(|asked| asked.elapsed() < ADDRESSES_LAST);
            if fresh {
                return Ok(addresses.known.clone());
            }
        }
        let host = self.config.proxy.as_ref().unwrap_or(&self.config.host);
        let found = self
            .resolver
            .addresses(host, self.signalling.transport())
            .await;
        let mut addresses = self.lock();
        match found {
            Ok(found) => {
                for address in &found {
                    self.signalling.know(address.ip());
                }
                addresses.known.clone_from(&found);
                addresses.asked = Some(Instant::now());
                Ok(found)
            }
            // Name servers fail too; what was true a minute ago is the best that is known.
            Err(error) if !addresses.known.is_empty() => {
                tracing::warn!(trunk = self.config.name, %error, "the trunk's name cannot be looked up; its old addresses are used");
                Ok(addresses.known.clone())
            }
            Err(error) => Err(error),
        }
    }

    /// The address of a redirect's target.
    pub(crate) async fn locate(&self, target: &str) -> Result<SocketAddr, String> {
        let host = host_of(target)?;
        let addresses = self
            .resolver
            .addresses(&host, self.signalling.transport())
            .await?;
        addresses
            .first()
            .copied()
            .ok_or_else(|| format!("{host} has no address"))
    }

    /// Nobody answered at the known addresses: they may have changed.
    pub fn doubt_addresses(&self) {
        self.lock().asked = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Addresses> {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a leg of an earlier life of the process.
    pub async fn end_orphan(&self, facts: &DialogSnapshot) -> Result<bool, SignallingError> {
        self.signalling.end_orphan(facts).await
    }

    /// The INVITE for a call over this trunk.
    pub(crate) fn invite(
        &self,
        number: &str,
        caller: &str,
        call_id: &str,
        destination: SocketAddr,
        offer: String,
    ) -> Invite {
        let domain = self.config.domain();
        let identity = &self.config.identity;
        let from_user = identity.from_user.as_deref().unwrap_or(caller);
        let mut headers = Vec::new();
        if identity.asserted {
            let asserted = format!("<sip:{}@{domain}>", user_part(caller));
            headers.push(("P-Asserted-Identity".to_owned(), asserted));
        }
        if let Some(proxy) = &self.config.proxy {
            headers.push((
                "Route".to_owned(),
                format!("<sip:{proxy}{};lr>", self.transport_parameter()),
            ));
        }
        if let Some(interval) = self.config.session_interval {
            headers.push(("Supported".to_owned(), "timer".to_owned()));
            headers.push(("Session-Expires".to_owned(), interval.as_secs().to_string()));
        }
        Invite {
            to: self.request_address(&user_part(number)),
            from: format!("sip:{}@{domain}", user_part(from_user)),
            display_name: identity.display_name.clone(),
            destination,
            call_id: call_id.to_owned(),
            credentials: self.config.credentials.clone(),
            headers,
            offer,
        }
    }

    fn transport_parameter(&self) -> String {
        match self.signalling.transport() {
            Transport::Udp => String::new(),
            stream => format!(";transport={stream}"),
        }
    }

    fn request_address(&self, user: &str) -> String {
        let at = if user.is_empty() { "" } else { "@" };
        let host = match &self.config.domain {
            Some(domain) => domain.clone(),
            None => self.config.host.to_string(),
        };
        format!("sip:{user}{at}{host}{}", self.transport_parameter())
    }

    async fn watch_over(self: Arc<Self>) {
        let mut watcher = Watcher {
            registration: None,
            misses: 0,
            pause: ASK_AGAIN,
        };
        loop {
            let next = tokio::select! {
                next = watcher.look(&self) => next,
                () = self.stop.cancelled() => break,
            };
            tokio::select! {
                () = tokio::time::sleep(next) => {}
                () = self.stop.cancelled() => break,
            }
        }
        if let Some(mut registration) = watcher.registration {
            let _ = self
                .signalling
                .register(&mut registration, Duration::ZERO)
                .await;
        }
    }

    fn set_health(&self, health: Health) {
        let changed = *self.health.borrow() != health;
        if changed {
            if let Health::Down { why } = &health {
                tracing::warn!(trunk = self.config.name, why, "the trunk is down");
            } else {
                tracing::info!(trunk = self.config.name, "the trunk is up");
            }
            self.health.send_replace(health);
        }
    }
}

/// Asks one trunk, time and again.
struct Watcher {
    registration: Option<Registration>,
    misses: u32,
    /// Grows while the registrar refuses.
    pause: Duration,
}

impl Watcher {
    /// One look at the trunk; when the next one is due.
    async fn look(&mut self, trunk: &Trunk) -> Duration {
        let looked = match trunk.config.register {
            Some(time) => self.register(trunk, time).await,
            None => self.ask(trunk).await,
        };
        match looked {
            Ok(next) => {
                self.misses = 0;
                self.pause = ASK_AGAIN;
                trunk.set_health(Health::Up);
                next
            }
            Err(why) => {
                trunk.doubt_addresses();
                self.misses += 1;
                if self.misses >= MISSES_ALLOWED || !trunk.health.borrow().usable() {
                    trunk.set_health(Health::Down { why });
                }
                let pause = self.pause;
                if trunk.config.register.is_some() {
                    self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                }
                // Not all clients of a registrar that comes back shall come back in the same moment.
                pause.mul_f64(0.75 + rand::random::<f64>() / 4.0)
            }
        }
    }

    async fn ask(&mut self, trunk: &Trunk) -> Result<Duration, String> {
        let every = trunk.config.ask_every.unwrap_or(ASK_AGAIN);
        let target = trunk.request_address("");
        let mut why = String::new();
        for address in trunk.addresses().await? {
            match trunk.signalling.ping(&target, address).await {
                // Overloaded or shutting down; anything else is somebody who is there, even one who does not like OPTIONS.
                Ok(Some(503)) => why = format!("{address} answers 503"),
                Ok(Some(_)) => return Ok(every),
                Ok(None) => why = format!("{address} does not answer"),
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }

    async fn register(&mut self, trunk: &Trunk, time: Duration) -> Result<Duration, String> {
        let Some(credentials) = trunk.config.credentials.clone() else {
            return Err("a registration needs a user and a password".to_owned());
        };
        let mut why = String::new();
        for address in trunk.addresses().await? {
            // The same registration goes on as long as the address does: same Call-ID, growing CSeq.
            let mut registration = match self.registration.take() {
                Some(known) if known.destination() == address => known,
                _ => trunk
                    .signalling
                    .registration(&trunk.config.domain(), address, credentials.clone())
                    .map_err(|error| error.to_string())?,
            };
            let registered = trunk.signalling.register(&mut registration, time).await;
            self.registration = Some(registration);
            match registered {
                Ok(Registered::For(granted)) => {
                    return Ok(renewed_after(granted));
                }
                Ok(Registered::Refused(code)) => {
                    why = format!("{address} refuses the registration with {code}");
                }
                Ok(Registered::Silence) => why = format!("{address} does not answer"),
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }
}

/// When a registration that was granted for so long is renewed.
fn renewed_after(granted: Duration) -> Duration {
    granted.mul_f64(RENEW_AFTER).max(Duration::from_secs(1))
}

/// The host of `sip:user@host:port;parameters`.
fn host_of(target: &str) -> Result<Host, String> {
    let bare = target
        .strip_prefix("sip:")
        .or_else(|| target.strip_prefix("sips:"))
        .ok_or_else(|| format!("not a SIP address: {target}"))?;
    let host = bare.rsplit_once('@').map_or(bare, |(_, host)| host);
    let end = host.find([';', '?', '>']).unwrap_or(host.len());
    host[..end].parse()
}

/// The user part of an address: letters that have a meaning there are written as numbers.
fn user_part(text: &str) -> String {
    let mut user = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'+' | b'*' | b'-' | b'_' | b'.' => {
                user.push(byte.into());
            }
            _ => user.push_str(&format!("%{byte:02X}")),
        }
    }
    user
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_is_renewed_before_it_ends_and_not_all_the_time() {
        for seconds in [2, 3, 60, 3600] {
            let granted = Duration::from_secs(seconds);
            assert!(renewed_after(granted) < granted, "{seconds}");
            assert!(renewed_after(granted) >= granted / 2, "{seconds}");
        }
        assert_eq!(renewed_after(Duration::ZERO), Duration::from_secs(1));
    }

    #[test]
    fn the_host_of_an_address_is_found() {
        for (target, host) in [
            ("sip:100@192.0.2.1:5070;transport=tcp", "192.0.2.1:5070"),
            ("sip:host.example", "host.example"),
            ("sips:a@b.example?x=y", "b.example"),
            ("sip:100@[2001:db8::1]:5060", "[2001:db8::1]:5060"),
        ] {
            assert_eq!(host_of(target).unwrap().to_string(), host);
        }
        assert!(host_of("tel:+123").is_err());
    }

    #[test]
    fn a_number_cannot_break_out_of_its_address() {
        assert_eq!(user_part("+8613800138000"), "+8613800138000");
        assert_eq!(user_part("12#34"), "12%2334");
        assert_eq!(user_part("1@evil>\r\nX: y"), "1%40evil%3E%0D%0AX%3A%20y");
    }
}
