//! The trunks of this server: started from the configuration, watched, and chosen from for each call.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use g711::Codec;
use phone::call::{MediaConfig, MediaOptions, Phone};
use phone::media::engine::{Encryption, SocketChoice};
use phone::signalling::{
    Host, Resolver, Signalling, SignallingConfig, SipCredentials, TlsFiles, Transport,
};
use phone::test_phone::{HeardCall, Script, TestPhone, TestPhoneConfig};
use phone::trunk::{Health, Identity, Trunk};
use supervisor::Supervisor;

use super::breaker::Breaker;
use super::capacity::Capacity;
use super::lock;
use crate::config::Config;
use crate::domain::claim::NodeShare;
use crate::domain::route::{self, TrunkConfig, rewritten};

/// One trunk with what is left of its room.
#[derive(Debug)]
pub struct PooledTrunk {
    pub config: TrunkConfig,
    pub trunk: Arc<Trunk>,
    room: Mutex<Capacity>,
    breaker: Mutex<Breaker>,
    /// The operator lets it run empty.
    pub drained: AtomicBool,
    /// The telephone behind a loopback trunk.
    _telephone: Option<TestPhone>,
}

/// A channel of a trunk, given back when it is dropped.
#[derive(Debug)]
pub struct Channel {
    pub line: Arc<PooledTrunk>,
    /// It was given for seeing whether the trunk works again.
    trial: bool,
}

impl Drop for Channel {
    fn drop(&mut self) {
        lock(&self.line.room).give_back();
        if self.trial {
            lock(&self.line.breaker).trial_over();
        }
    }
}

impl PooledTrunk {
    /// A channel, if one is free and the trunk is worth a try.
    fn channel(self: &Arc<Self>, now: Instant) -> Option<Channel> {
        if !self.may_be_tried(now) || !lock(&self.room).take(now) {
            return None;
        }
        let (allowed, trial) = {
            let mut breaker = lock(&self.breaker);
            (breaker.allows(now), breaker.is_trial())
        };
        let channel = Channel {
            line: Arc::clone(self),
            trial: allowed && trial,
        };
        allowed.then_some(channel)
    }

    fn may_be_tried(&self, now: Instant) -> bool {
        self.is_usable() && lock(&self.breaker).would_allow(now)
    }

    fn is_usable(&self) -> bool {
        !self.drained.load(Ordering::Relaxed) && self.trunk.health().borrow().usable()
    }

    pub fn note(&self, worked: bool) {
        let mut breaker = lock(&self.breaker);
        if worked {
            breaker.worked();
        } else {
            breaker.failed(Instant::now());
        }
    }

    /// A called number as this trunk wants it.
    pub fn number(&self, digits: &str) -> String {
        rewritten(digits, &self.config.rewrite)
    }

    /// The calling number as this trunk wants it.
    pub fn caller(&self, digits: Option<&str>) -> String {
        match digits {
            Some(digits) => rewritten(digits, &self.config.caller_rewrite),
            None if self.config.caller.is_empty() => "anonymous".to_owned(),
            None => self.config.caller.clone(),
        }
    }

    pub fn calls(&self) -> u32 {
        lock(&self.room).in_use()
    }

    /// In a word, for people.
    pub fn state(&self) -> String {
        if self.drained.load(Ordering::Relaxed) {
            return "drained".to_owned();
        }
        if !lock(&self.breaker).would_allow(Instant::now()) {
            return "failing".to_owned();
        }
        match &*self.trunk.health().borrow() {
            Health::Unknown | Health::Up => "up".to_owned(),
            Health::Down { why } => format!("down: {why}"),
        }
    }
}

#[derive(Debug)]
pub struct TrunkPool {
    pub lines: Vec<Arc<PooledTrunk>>,
    configs: Vec<TrunkConfig>,
}

/// Why no channel was to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoChannel {
    /// No trunk carries the number.
    NoRoute,
    /// Those that do are full: soon one will be free.
    Full,
    /// Those that do are down or failing.
    Down,
}

impl TrunkPool {
    pub async fn start(
        supervisor: &Supervisor,
        config: &Config,
        phone: &Phone,
    ) -> anyhow::Result<Self> {
        let mut endpoints = HashMap::new();
        let mut lines = Vec::new();
        for trunk in &config.trunks {
            let line = start_line(supervisor, trunk, phone, &mut endpoints)
                .await
                .with_context(|| format!("trunk {}", trunk.name))?;
            lines.push(Arc::new(line));
        }
        Ok(Self {
            configs: config.trunks.clone(),
            lines,
        })
    }

    pub fn named(&self, name: &str) -> Option<&Arc<PooledTrunk>> {
        self.lines.iter().find(|line| line.config.name == name)
    }

    /// How many calls could start now over all trunks together.
    pub fn left(&self) -> u32 {
        let now = Instant::now();
        self.lines
            .iter()
            .filter(|line| line.may_be_tried(now))
            .map(|line| lock(&line.room).left(now))
            .fold(0, u32::saturating_add)
    }

    /// This node takes its part of what all nodes may use together.
    pub fn share(&self, share: NodeShare) {
        for line in &self.lines {
            let config = &line.config;
            let part = |all| share.part(all, &config.name);
            lock(&line.room).resize(part(config.channels), part(config.calls_per_second));
        }
    }

    /// The next channel for a number, on a trunk that was not tried yet.
    pub fn channel(
        &self,
        digits: &str,
        tried: &[String],
        random: u32,
    ) -> Result<Channel, NoChannel> {
        let order = route::order(&self.configs, digits, |below| random % below.max(1));
        if order.is_empty() {
            return Err(NoChannel::NoRoute);
        }
        let now = Instant::now();
        let mut full = false;
        for line in order.into_iter().map(|place| &self.lines[place]) {
            if tried.contains(&line.config.name) {
                continue;
            }
            match line.channel(now) {
                Some(channel) => return Ok(channel),
                None => full |= line.may_be_tried(now),
            }
        }
        Err(if full {
            NoChannel::Full
        } else {
            NoChannel::Down
        })
    }

    pub fn stop(&self) {
        for line in &self.lines {
            line.trunk.stop();
        }
    }
}

/// TrunkPool with the same address of ours share an endpoint.
type Endpoints = HashMap<(Transport, SocketAddr, Option<SocketAddr>, TlsFiles), Arc<Signalling>>;

async fn start_line(
    supervisor: &Supervisor,
    config: &TrunkConfig,
    phone: &Phone,
    endpoints: &mut Endpoints,
) -> anyhow::Result<PooledTrunk> {
    let (telephone, host) = if config.loopback {
        let telephone = telephone(supervisor, config).await?;
        let host = Host::from(telephone.contact());
        (Some(telephone), host)
    } else {
        (None, parse(&config.host, "host")?)
    };
    let transport: Transport = parse(&config.transport, "transport")?;
    let bind = if config.loopback {
        SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0)
    } else {
        parse(&config.bind, "bind")?
    };
    let mut sip = SignallingConfig::new(transport, bind);
    sip.user_agent = format!("Clarion/{}", env!("CARGO_PKG_VERSION"));
    if !config.advertised.is_empty() {
        sip.advertised = Some(parse(&config.advertised, "advertised")?);
    }
    if transport == Transport::Tls {
        sip.tls = tls_files(config)?;
    }
    let key = (transport, sip.bind, sip.advertised, sip.tls.clone());
    let signalling = if let Some(known) = endpoints.get(&key) {
        Arc::clone(known)
    } else {
        let started = Arc::new(Signalling::start(supervisor, &sip, None).await?);
        endpoints.insert(key, Arc::clone(&started));
        started
    };
    let trunk = phone::trunk::SipTrunkConfig {
        proxy: optional(&config.proxy, "proxy")?,
        domain: Some(config.domain.clone()).filter(|domain| !domain.is_empty()),
        credentials: (!config.user.is_empty()).then(|| SipCredentials {
            user: config.user.clone(),
            password: config.password.clone(),
        }),
        register: seconds(config.register_seconds),
        ask_every: seconds(config.options_seconds).filter(|_| !config.loopback),
        identity: Identity {
            from_user: Some(config.from_user.clone()).filter(|user| !user.is_empty()),
            asserted: config.asserted_identity,
            display_name: Some(config.display_name.clone()).filter(|name| !name.is_empty()),
        },
        follow_redirects: config.follow_redirects,
        session_interval: seconds(config.session_seconds),
        progress_time: seconds(config.progress_seconds),
        media: terms(config, phone)?,
        ..phone::trunk::SipTrunkConfig::new(&config.name, host)
    };
    Ok(PooledTrunk {
        room: Mutex::new(Capacity::new(
            config.channels,
            config.calls_per_second,
            Instant::now(),
        )),
        config: config.clone(),
        trunk: Trunk::start(supervisor, trunk, signalling, Resolver::default()),
        breaker: Mutex::default(),
        drained: AtomicBool::new(false),
        _telephone: telephone,
    })
}

fn terms(config: &TrunkConfig, phone: &Phone) -> anyhow::Result<MediaOptions> {
    let codecs = config
        .codecs
        .iter()
        .map(|name| {
            Codec::by_name(name)
                .with_context(|| format!("codecs: `{name}` is not one of PCMA, PCMU"))
        })
        .collect::<anyhow::Result<_>>()?;
    Ok(MediaOptions {
        codecs,
        encryption: if config.srtp {
            Encryption::Sdes
        } else {
            Encryption::Off
        },
        sockets: if config.shared_port {
            SocketChoice::Shared(phone.media().shared_line()?)
        } else {
            SocketChoice::Own
        },
        symmetric: config.symmetric_rtp,
        vanished_after: seconds(config.vanished_seconds),
        bind: config
            .loopback
            .then_some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)),
        ..MediaOptions::default()
    })
}

/// The certificate must name whom the packets go to.
pub fn tls_files(config: &TrunkConfig) -> anyhow::Result<TlsFiles> {
    let peer = match config.proxy.as_str() {
        "" => &config.host,
        proxy => proxy,
    };
    let peer: Host = parse(peer, "host")?;
    let read = |path: &Path| {
        std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let own = if config.certificate.as_os_str().is_empty() {
        None
    } else {
        Some((read(&config.certificate)?, read(&config.private_key)?))
    };
    Ok(TlsFiles {
        authorities: read(&config.ca)?,
        peer_name: Some(peer.name),
        own,
    })
}

/// The telephone behind a loopback trunk: it behaves by the end of the number, and may record what it hears.
async fn telephone(supervisor: &Supervisor, config: &TrunkConfig) -> anyhow::Result<TestPhone> {
    let here = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    let settings = TestPhoneConfig {
        sip: SignallingConfig::new(Transport::Udp, SocketAddr::new(here, 0)),
        media: MediaConfig::new(here, 30_000..=39_999),
        codecs: Codec::ALL.to_vec(),
        credentials: None,
    };
    let (telephone, mut heard) = TestPhone::start(supervisor, &settings, Script::of_number).await?;
    let folder = config.record.clone();
    if !folder.as_os_str().is_empty() {
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("record: cannot make {}", folder.display()))?;
    }
    tokio::spawn(async move {
        while let Some(call) = heard.recv().await {
            if !folder.as_os_str().is_empty() && !call.packets.is_empty() {
                record(&call, &folder);
            }
        }
    });
    Ok(telephone)
}

fn record(call: &HeardCall, folder: &Path) {
    // The Call-ID begins with the callSid, a name of letters and digits; this telephone never sends a caller elsewhere.
    let name: String = call
        .call_id
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    let path = folder.join(format!("{name}.wav"));
    let mut bytes = Vec::new();
    let written = call
        .write_wav(&mut bytes)
        .and_then(|()| std::fs::write(&path, &bytes));
    if let Err(error) = written {
        tracing::warn!(%error, path = %path.display(), "a recording could not be written");
    }
}

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
    text: &str,
    what: &str,
) -> anyhow::Result<T> {
    text.parse()
        .map_err(|error| anyhow::anyhow!("{what}: {error}"))
}

fn optional(text: &str, what: &str) -> anyhow::Result<Option<Host>> {
    if text.is_empty() {
        return Ok(None);
    }
    parse(text, what).map(Some)
}

fn seconds(count: u32) -> Option<Duration> {
    (count > 0).then(|| Duration::from_secs(count.into()))
}
