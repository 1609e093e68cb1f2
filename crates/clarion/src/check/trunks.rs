//! Checks each trunk: its address, whether it answers, whether it accepts our password, and whether its packets can reach us.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use phone::signalling::{
    Direction, Host, Registered, Resolver, Signalling, SipCredentials, Trace, Transport,
};
use supervisor::Supervisor;

use super::OtherClock;
use super::finding::Finding;
use super::media;
use super::sockets;
use crate::clock::Clock;
use crate::config::{Config, TrunkSettings};
use crate::outgoing::address_policy::is_public;

const LOOKUP_TIME: Duration = Duration::from_secs(10);
const SLOW_ANSWER: Duration = Duration::from_millis(500);
/// Length of the trial registration, just long enough to get it and give it back.
const TRIED_FOR: Duration = Duration::from_secs(60);

pub async fn check(
    config: &Config,
    serving: Option<u32>,
    clock: &Clock,
) -> (Vec<Finding>, Vec<OtherClock>) {
    let looks = config.trunks.iter().map(|trunk| {
        let look = Look {
            trunk,
            config,
            clock,
            serving,
            subject: format!("trunk {}", trunk.name()),
            findings: Vec::new(),
            clocks: Vec::new(),
        };
        look.whole()
    });
    let mut all = (Vec::new(), Vec::new());
    for (findings, clocks) in futures_util::future::join_all(looks).await {
        all.0.extend(findings);
        all.1.extend(clocks);
    }
    all
}

/// One trunk and what was found about it so far.
struct Look<'a> {
    trunk: &'a TrunkSettings,
    config: &'a Config,
    clock: &'a Clock,
    serving: Option<u32>,
    subject: String,
    findings: Vec<Finding>,
    clocks: Vec<OtherClock>,
}

impl Look<'_> {
    async fn whole(mut self) -> (Vec<Finding>, Vec<OtherClock>) {
        if self.trunk.channels == 0 {
            self.warning(
                "has no channels: nothing is dialled over it",
                "set `channels` and `calls_per_second`",
            );
        }
        if self.trunk.loopback.is_some() {
            self.ok("leads to the telephone in the server itself, for trying things out");
        } else if let Err(problem) = self.outside().await {
            self.findings.push(problem);
        }
        (self.findings, self.clocks)
    }

    /// Checks the trunk from outside. The error is the finding after which it is useless to look further.
    async fn outside(&mut self) -> Result<(), Finding> {
        self.port_is_free();
        let (trunk, mut addresses) = (self.trunk, Vec::new());
        for host in trunk.peers() {
            match self.addresses(host).await {
                Ok(found) => addresses.extend(found),
                Err(problem) => self.findings.push(problem),
            }
        }
        if addresses.is_empty() {
            return Ok(());
        }
        let heard = Arc::new(Mutex::new(None));
        let signalling = self.signalling(&heard).await?;
        self.can_be_reached(signalling.contact().ip(), &addresses);
        let mut there = None;
        for address in addresses {
            if self.ask(&signalling, address, &heard).await {
                there = there.or(Some(address));
            }
        }
        let registers = self.trunk.sip.register.is_some();
        let credentials = self.trunk.sip.credentials.clone().filter(|_| registers);
        if let Some((address, credentials)) = there.zip(credentials) {
            self.register(&signalling, address, credentials).await;
        }
        Ok(())
    }

    /// Checks that no other process holds our fixed port.
    fn port_is_free(&mut self) {
        let endpoint = &self.trunk.endpoint;
        let bind = endpoint.bind;
        let wanted = |port: u16| port == bind.port() && port != 0;
        let holders = match endpoint.transport {
            Transport::Udp => sockets::udp(wanted),
            Transport::Tcp | Transport::Tls => sockets::listening(wanted),
        };
        if let Some(other) = holders.iter().find(|holder| !holder.is(self.serving)) {
            self.findings.push(Finding::problem(
                &self.subject,
                format!("its port {bind} is held by {}", other.describe()),
                "end that, or choose another `bind`",
            ));
        }
    }

    async fn addresses(&mut self, host: &Host) -> Result<Vec<SocketAddr>, Finding> {
        let transport = self.trunk.endpoint.transport;
        let resolver = Resolver::default();
        let lookup = tokio::time::timeout(LOOKUP_TIME, resolver.addresses(host, transport)).await;
        let found = lookup.unwrap_or_else(|_| Err("the name servers do not answer".to_owned()));
        let why = match found {
            Ok(found) if !found.is_empty() => {
                if host.address().is_none() {
                    let list: Vec<_> = found.iter().map(ToString::to_string).collect();
                    self.ok(&format!("{host} is {}", list.join(", ")));
                }
                return Ok(found);
            }
            Ok(_) => "it has no address".to_owned(),
            Err(why) => why,
        };
        Err(Finding::problem(
            &self.subject,
            format!("{host} cannot be looked up (SRV, A, AAAA): {why}"),
            "correct `host`, or the name servers in /etc/resolv.conf",
        ))
    }

    /// Starts an endpoint of its own on any free port, so that a running server keeps the configured one.
    async fn signalling(
        &self,
        heard: &Arc<Mutex<Option<jiff::Timestamp>>>,
    ) -> Result<Signalling, Finding> {
        let mut sip = self.trunk.signalling().map_err(|error| {
            let remedy = "name readable PEM files in `ca`, `certificate` and `private_key`";
            Finding::problem(&self.subject, format!("{error:#}"), remedy)
        })?;
        sip.bind.set_port(0);
        sip.advertised = None;
        let date = Arc::clone(heard);
        sip.trace = Some(Trace::new(move |message| {
            if message.direction == Direction::Received
                && let Some(said) = date_of(&message.text)
            {
                *date.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
            }
        }));
        Signalling::start(&Supervisor::new(), &sip, None)
            .await
            .map_err(|error| {
                let remedy = "`bind` must be an address of this machine";
                Finding::problem(&self.subject, error.to_string(), remedy)
            })
    }

    async fn ask(
        &mut self,
        signalling: &Signalling,
        address: SocketAddr,
        heard: &Mutex<Option<jiff::Timestamp>>,
    ) -> bool {
        let began = Instant::now();
        let asked = signalling
            .ping(&format!("sip:{}", self.trunk.sip.domain()), address)
            .await;
        let took = began.elapsed();
        let ms = took.as_millis();
        let reachable = "see the address, the transport, the firewalls on both sides, and that the provider knows your address";
        match &asked {
            Ok(Some(503)) => {
                let remedy = "ask the provider; until it says something else, calls take another trunk or wait";
                self.problem(
                    &format!("{address} answers 503 (overloaded, or shut)"),
                    remedy,
                );
            }
            Ok(Some(code)) if took > SLOW_ANSWER => {
                let remedy = "calls begin as slowly: look at the line to the provider";
                self.warning(
                    &format!("{address} answers OPTIONS with {code} after {ms} ms"),
                    remedy,
                );
            }
            Ok(Some(code)) => self.ok(&format!("{address} answers OPTIONS with {code} in {ms} ms")),
            Ok(None) => self.problem(&format!("{address} does not answer OPTIONS"), reachable),
            Err(error) => self.problem(&error.to_string(), reachable),
        }
        if let Some(said) = heard.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let name = format!("trunk {}", self.trunk.name());
            self.clocks
                .push(OtherClock::new(name, said, self.clock.now()));
        }
        matches!(asked, Ok(Some(code)) if code != 503)
    }

    /// Tries to register. If a server is running, it does not, because some registrars keep only the last registration.
    async fn register(
        &mut self,
        signalling: &Signalling,
        address: SocketAddr,
        credentials: SipCredentials,
    ) {
        if self.serving.is_some() {
            self.ok("its registration is left to the running server (metric clarion_trunk_up)");
            return;
        }
        let domain = self.trunk.sip.domain();
        let prepared = signalling.registration(&domain, address, credentials);
        let password = "see `user`, `password` and `domain`";
        let mut registration = match prepared {
            Ok(registration) => registration,
            Err(error) => return self.problem(&error.to_string(), password),
        };
        match signalling.register(&mut registration, TRIED_FOR).await {
            Ok(Registered::For(_)) => {
                let _ = signalling.register(&mut registration, Duration::ZERO).await;
                self.ok(&format!("{address} takes our registration"));
            }
            Ok(Registered::Refused(code)) => {
                self.problem(
                    &format!("{address} refuses our registration with {code}"),
                    password,
                );
            }
            Ok(Registered::Silence) => self.problem(
                &format!("{address} does not answer REGISTER"),
                "ask the provider which address takes registrations",
            ),
            Err(error) => self.problem(&error.to_string(), password),
        }
    }

    /// Checks that the trunk can reach us. A trunk on the public Internet cannot answer a private address.
    fn can_be_reached(&mut self, bound: IpAddr, addresses: &[SocketAddr]) {
        let advertised = self.trunk.endpoint.advertised;
        let ours = advertised.map_or(bound, |address| address.ip());
        let media = media::told(self.config);
        let outside = addresses.iter().any(|address| is_public(address.ip()));
        let far = addresses.iter().any(|address| !address.ip().is_loopback());
        for (what, told, setting) in [
            ("SIP", ours, "`advertised` of the trunk"),
            ("the sound", media, "media.advertised"),
        ] {
            let remedy = format!("name the address that it can reach in {setting}");
            if told.is_unspecified() || (far && told.is_loopback()) {
                self.problem(
                    &format!("it is told to send {what} to {told}, which is no use to it"),
                    &remedy,
                );
            } else if outside && !is_public(told) {
                self.warning(
                    &format!(
                        "it is public, and is told to send {what} to the private address {told}"
                    ),
                    &format!("{remedy}, unless a gateway rewrites it"),
                );
            }
        }
    }

    fn ok(&mut self, found: &str) {
        self.findings.push(Finding::ok(&self.subject, found));
    }

    fn warning(&mut self, found: &str, remedy: &str) {
        self.findings
            .push(Finding::warning(&self.subject, found, remedy));
    }

    fn problem(&mut self, found: &str, remedy: &str) {
        self.findings
            .push(Finding::problem(&self.subject, found, remedy));
    }
}

/// Returns the time in a message's Date header (RFC 3261 section 20.17).
fn date_of(message: &str) -> Option<jiff::Timestamp> {
    let line = message.lines().find(|line| {
        line.get(..5)
            .is_some_and(|name| name.eq_ignore_ascii_case("date:"))
    })?;
    let said = jiff::fmt::rfc2822::parse(line[5..].trim()).ok()?;
    Some(said.timestamp())
}

#[cfg(test)]
mod tests {
    use super::date_of;

    #[test]
    fn the_time_is_read_from_an_answer() {
        let answer = "SIP/2.0 200 OK\r\nVia: x\r\nDate: Sat, 13 Nov 2010 23:29:00 GMT\r\n\r\n";
        let said = date_of(answer).unwrap();
        assert_eq!(said.to_string(), "2010-11-13T23:29:00Z");
        assert_eq!(date_of("SIP/2.0 200 OK\r\nDate: soon\r\n\r\n"), None);
    }
}
