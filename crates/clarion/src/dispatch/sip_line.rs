//! Trunks over SIP: started from the configuration, called through `phone`.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use g711::Codec;
use phone::call::{CallEvent, CallRequest, MediaConfig, Phone, PlacedCall};
use phone::media::engine::SocketChoice;
use phone::signalling::{
    DialogSnapshot, RefusalCounts, Resolver, Signalling, SignallingConfig, SignallingError,
    TlsFiles, Trace, Transport,
};
use phone::test_phone::{HeardCall, Script, TestPhone, TestPhoneConfig};
use phone::trunk::{Health, HostFailover, NumberCheck, SipTrunkConfig, Trunk};
use supervisor::{Supervisor, TaskGuard};
use tokio::sync::{Mutex, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::end_reason::leaves_other_hosts;
use super::recent_packets::RecentPackets;
use super::trunk_line::TrunkLine;
use super::trunk_pool::TrunkPool;
use crate::barred_numbers::BarredNumbers;
use crate::config::{Config, LoopbackSettings, TrunkSettings};
use crate::domain::numbering_plan::NumberingPlan;
use crate::domain::redirect::check_redirect;
use crate::private_files;

#[derive(Debug)]
struct SipLine {
    phone: Arc<Phone>,
    trunk: Arc<Trunk>,
    duty: watch::Sender<bool>,
    /// What records the calls of a loopback trunk, and the telephone behind it, which must outlive it.
    _telephone: Option<(TaskGuard, TestPhone)>,
}

#[async_trait]
impl TrunkLine for SipLine {
    async fn call(
        &self,
        request: &CallRequest,
        events: &mpsc::UnboundedSender<CallEvent>,
        hang_up: &CancellationToken,
    ) -> PlacedCall {
        self.phone.call(&self.trunk, request, events, hang_up).await
    }

    async fn end_orphan(&self, dialog: &DialogSnapshot) -> Result<bool, SignallingError> {
        self.trunk.end_orphan(dialog).await
    }

    fn health(&self) -> Health {
        self.trunk.health().borrow().clone()
    }

    fn answers_options(&self) -> bool {
        self.trunk.answers_options()
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.trunk.known_addresses()
    }

    fn registration_duty(&self) -> Option<&watch::Sender<bool>> {
        self.trunk.config.register.map(|_| &self.duty)
    }

    fn stop(&self) {
        self.trunk.stop();
    }
}

impl TrunkPool {
    /// Starts the calling engine and every trunk of the configuration.
    /// `trace` sees their messages.
    pub async fn start(
        config: &Config,
        barred: &Arc<BarredNumbers>,
        trace: Option<Trace>,
        supervisor: &Supervisor,
    ) -> anyhow::Result<Self> {
        let phone = Phone::start(supervisor, &config.media).context("the sound cannot start")?;
        let phone = Arc::new(phone);
        let mut endpoints = Endpoints {
            trace,
            refusals: Arc::default(),
            started: HashMap::new(),
        };
        let mut lines = Vec::new();
        for trunk in &config.trunks {
            let mut sip = trunk.sip.clone();
            sip.redirect_check = redirect_check(trunk, &config.numbers, barred);
            let policy = trunk.policy.clone();
            sip.failover = HostFailover::new(move |failure| leaves_other_hosts(failure, &policy));
            let line = start_line(supervisor, trunk, sip, &phone, &mut endpoints)
                .await
                .with_context(|| format!("trunk {}", trunk.name()))?;
            let line: Arc<dyn TrunkLine> = Arc::new(line);
            lines.push((trunk.clone(), line));
        }
        let mut pool = Self::over(lines);
        pool.packets = Arc::new(RecentPackets::new(Arc::clone(phone.media().pace())));
        pool.refusals = endpoints.refusals;
        Ok(pool)
    }
}

type EndpointKey = (Transport, SocketAddr, Option<SocketAddr>, TlsFiles);

/// Trunks with the same address of ours share an endpoint.
struct Endpoints {
    trace: Option<Trace>,
    refusals: Arc<RefusalCounts>,
    started: HashMap<EndpointKey, Arc<Signalling>>,
}

async fn start_line(
    supervisor: &Supervisor,
    settings: &TrunkSettings,
    mut sip: SipTrunkConfig,
    phone: &Arc<Phone>,
    endpoints: &mut Endpoints,
) -> anyhow::Result<SipLine> {
    let telephone = match &settings.loopback {
        Some(loopback) => Some(telephone(supervisor, loopback).await?),
        None => None,
    };
    if let Some((_, telephone)) = &telephone {
        sip.host = telephone.contact().into();
    }
    if settings.shared_port {
        sip.media.sockets = SocketChoice::Shared(phone.media().shared_line()?);
    }
    let signalling = endpoints
        .endpoint(supervisor, settings.signalling()?)
        .await?;
    let (duty, on_duty) = watch::channel(false);
    let resolver = Resolver::default();
    Ok(SipLine {
        phone: Arc::clone(phone),
        trunk: Trunk::start_on_duty(supervisor, sip, signalling, resolver, on_duty),
        duty,
        _telephone: telephone,
    })
}

impl Endpoints {
    async fn endpoint(
        &mut self,
        supervisor: &Supervisor,
        mut config: SignallingConfig,
    ) -> anyhow::Result<Arc<Signalling>> {
        let key = (
            config.transport,
            config.bind,
            config.advertised,
            config.tls.clone(),
        );
        if let Some(known) = self.started.get(&key) {
            return Ok(Arc::clone(known));
        }
        config.trace.clone_from(&self.trace);
        config.refusals = Arc::clone(&self.refusals);
        let started = Arc::new(Signalling::start(supervisor, &config, None).await?);
        self.started.insert(key, Arc::clone(&started));
        Ok(started)
    }
}

/// Numbers to which the trunk redirects are judged like those of requests.
fn redirect_check(
    trunk: &TrunkSettings,
    plan: &NumberingPlan,
    barred: &Arc<BarredNumbers>,
) -> NumberCheck {
    let (route, plan, barred) = (trunk.route.clone(), plan.clone(), Arc::clone(barred));
    NumberCheck::new(move |written| {
        check_redirect(written, &route, &plan, |digits| barred.contains(digits))
    })
}

/// The telephone behind a loopback trunk: it behaves by the end of the number, and may record what it hears.
async fn telephone(
    supervisor: &Supervisor,
    loopback: &LoopbackSettings,
) -> anyhow::Result<(TaskGuard, TestPhone)> {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let settings = TestPhoneConfig {
        sip: SignallingConfig::new(Transport::Udp, SocketAddr::new(here, 0)),
        media: MediaConfig::new(here, 30_000..=39_999),
        codecs: Codec::ALL.to_vec(),
        credentials: None,
    };
    let (telephone, heard) = TestPhone::start(supervisor, &settings, Script::of_number).await?;
    let folder = loopback.record.clone();
    if let Some(folder) = &folder {
        private_files::data_folder(folder).context("record")?;
    }
    let heard = Arc::new(Mutex::new(heard));
    let recording = supervisor.restart("loopback-recorder", None, move |watch| {
        let (heard, folder) = (Arc::clone(&heard), folder.clone());
        async move {
            while let Some(call) = heard.lock().await.recv().await {
                if let Some(folder) = folder.as_ref().filter(|_| !call.packets.is_empty()) {
                    record(&call, folder);
                }
                watch.heartbeat();
            }
        }
    });
    Ok((recording, telephone))
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
