//! A caller and a phone to call, on loopback.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use g711::{Codec, EncodedAudio};
use phone::call::{
    CallEvent, CallRequest, MediaConfig, MediaOptions, MediaStats, Phone, PlacedCall,
};
use phone::ending::{Cause, Ending, Failure, Side};
use phone::leg_record::{LegRecord, WhyHungUp};
use phone::media::stream::PlaybackItem;
use phone::signalling::{
    Leave, LookupSource, Resolver, Signalling, SignallingConfig, SrvRecord, Transport,
};
use phone::test_phone::{HeardCall, Script, TestPhone, TestPhoneConfig};
use phone::trunk::{SipTrunkConfig, Trunk};
use supervisor::Supervisor;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

/// How long anything may take before a test gives up on it. Only a failure waits for so long.
pub const PATIENCE: Duration = Duration::from_secs(90);

pub fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub fn media(ports: std::ops::RangeInclusive<u16>) -> MediaConfig {
    MediaConfig::new("127.0.0.1".parse().unwrap(), ports)
}

/// A folder of a test's own, gone when this is dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        let name = format!("clarion-phone-{:016x}", rand::random::<u64>());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A sound that is different at every sample, so that any mistake shows.
pub fn sound(frames: i32) -> EncodedAudio {
    let sample = |index: i32| i16::try_from((index * 7919) % 30_000 - 15_000).unwrap();
    EncodedAudio::encode(&(0..frames * 160).map(sample).collect::<Vec<_>>())
}

pub fn callee_config(codecs: &[Codec]) -> TestPhoneConfig {
    TestPhoneConfig {
        sip: SignallingConfig::new(Transport::Udp, loopback()),
        media: media(30_000..=39_999),
        codecs: codecs.to_vec(),
        credentials: None,
    }
}

pub async fn signalling(transport: Transport) -> Arc<Signalling> {
    let config = SignallingConfig::new(transport, loopback());
    Arc::new(
        Signalling::start(&Supervisor::new(), &config, None)
            .await
            .unwrap(),
    )
}

/// A trunk over UDP to an address.
pub async fn trunk_to(address: SocketAddr) -> Arc<Trunk> {
    trunk(SipTrunkConfig::new("test", address.into())).await
}

pub async fn trunk(config: SipTrunkConfig) -> Arc<Trunk> {
    Trunk::start(
        &Supervisor::new(),
        config,
        signalling(Transport::Udp).await,
        Resolver::default(),
    )
}

/// A name server that knows one name, `trunk.example`, with these addresses in this order.
pub struct Names(pub Vec<SocketAddr>);

#[async_trait::async_trait]
impl LookupSource for Names {
    async fn lookup_srv(&self, _: &str) -> Result<Vec<SrvRecord>, String> {
        let records = self.0.iter().zip(0..).map(|(address, priority)| SrvRecord {
            target: address.ip().to_string(),
            port: address.port(),
            priority,
            weight: 0,
        });
        Ok(records.collect())
    }

    async fn lookup_a_aaaa(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        Ok(vec![name.parse().map_err(|_| "no such name".to_owned())?])
    }
}

/// A trunk of several addresses.
pub async fn trunk_of(addresses: Vec<SocketAddr>) -> Arc<Trunk> {
    Trunk::start(
        &Supervisor::new(),
        SipTrunkConfig::new("test", "trunk.example".parse().unwrap()),
        signalling(Transport::Udp).await,
        Resolver::of(Names(addresses)),
    )
}

pub fn call_request(plan: Vec<PlaybackItem>) -> CallRequest {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let number = CALLS.fetch_add(1, Ordering::Relaxed);
    CallRequest {
        number: "13800000000".to_owned(),
        caller: "4001234567".to_owned(),
        call_id: format!("call-{number}-{:08x}", rand::random::<u32>()),
        opening: Vec::new(),
        plan,
        menu: None,
        machine: None,
        redirect_guard: None,
        ring_time: Duration::from_secs(10),
        talk_time: Duration::from_secs(60),
    }
}

pub fn caller() -> Phone {
    Phone::start(&Supervisor::new(), &media(20_000..=29_999)).unwrap()
}

/// What became of a call, and what was told of it on the way.
#[derive(Debug)]
pub struct Story {
    pub ending: Ending,
    pub stats: MediaStats,
    pub legs: Vec<LegRecord>,
    /// In words, in the order in which they were told.
    pub events: Vec<String>,
}

/// What an event says. Whatever is ready is given leave.
fn word(event: CallEvent) -> String {
    match event {
        CallEvent::Ready(_, leave) => {
            leave.grant(Leave::always());
            "dialling".to_owned()
        }
        CallEvent::Ringing(_) => "ringing".to_owned(),
        CallEvent::Answered(..) => "answered".to_owned(),
        CallEvent::Key(key) => key.to_string(),
        CallEvent::Chosen(choice, recorded) => {
            recorded.done();
            format!("{choice:?}")
        }
    }
}

/// The next event but those that want leave, which is given.
pub async fn next_event(happened: &mut UnboundedReceiver<CallEvent>) -> CallEvent {
    loop {
        match happened.recv().await.unwrap() {
            CallEvent::Ready(_, leave) => leave.grant(Leave::always()),
            event => return event,
        }
    }
}

/// For calls whose events nobody wants to see: leave is given, and everything else forgotten.
pub fn unseen_events() -> UnboundedSender<CallEvent> {
    let (events, mut happened) = unbounded_channel();
    tokio::spawn(async move {
        while let Some(event) = happened.recv().await {
            word(event);
        }
    });
    events
}

impl Story {
    pub fn new(placed: PlacedCall, events: Vec<String>) -> Self {
        Self {
            stats: placed.media(),
            ending: placed.ending,
            legs: placed.legs,
            events,
        }
    }

    pub fn failure(self) -> Failure {
        match self.ending {
            Ending::Failed(failure) => failure,
            Ending::Talked { .. } => panic!("it was answered: {self:?}"),
        }
    }

    pub fn cause(self) -> Cause {
        self.failure().cause
    }

    pub fn talked(self) -> (Duration, Side) {
        match self.ending {
            Ending::Talked { time, hung_up_by } => (time, hung_up_by),
            Ending::Failed(failure) => panic!("it was not answered: {failure:?}"),
        }
    }

    /// Why we have hung up on the last leg.
    pub fn why_hung_up(&self) -> Option<WhyHungUp> {
        self.legs.last()?.why_hung_up
    }

    /// The events. An answer may be told before the ringing that came just before it.
    pub fn course(&self) -> Vec<String> {
        let mut words = self.events.clone();
        for place in 1..words.len() {
            if words[place - 1] == "answered" && words[place] == "ringing" {
                words.swap(place - 1, place);
            }
        }
        words
    }
}

pub async fn call(phone: &Phone, trunk: &Trunk, request: CallRequest) -> Story {
    call_within(PATIENCE, phone, trunk, request).await
}

pub async fn call_within(
    time: Duration,
    phone: &Phone,
    trunk: &Trunk,
    request: CallRequest,
) -> Story {
    let never = CancellationToken::new();
    let call = call_telling(phone, trunk, request, &never, |_| ());
    let ended = tokio::time::timeout(time, call).await;
    ended.expect("the call ends in time")
}

/// Makes the call, and tells of each event in the moment in which it happens. `hang_up` ends it.
pub async fn call_telling(
    phone: &Phone,
    trunk: &Trunk,
    request: CallRequest,
    hang_up: &CancellationToken,
    mut tell: impl FnMut(&str),
) -> Story {
    let (events, mut happened) = unbounded_channel();
    let calling = async move { phone.call(trunk, &request, &events, hang_up).await };
    // Each is written down as soon as it is told: an answer is not acknowledged before.
    let listening = async {
        let mut events = Vec::new();
        while let Some(event) = happened.recv().await {
            let event = word(event);
            tell(&event);
            events.push(event);
        }
        events
    };
    let (placed, events) = tokio::join!(calling, listening);
    Story::new(placed, events)
}

/// Waits until something holds.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "not in time: {what}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub struct Lab {
    pub phone: Phone,
    pub trunk: Arc<Trunk>,
    pub callee: TestPhone,
    heard: UnboundedReceiver<HeardCall>,
}

impl Lab {
    pub async fn new(codecs: &[Codec], script: Script) -> Self {
        Self::with(&callee_config(codecs), script).await
    }

    pub async fn with(config: &TestPhoneConfig, script: Script) -> Self {
        let (callee, heard) = TestPhone::start(&Supervisor::new(), config, move |_| script.clone())
            .await
            .unwrap();
        Self {
            phone: caller(),
            trunk: trunk_to(callee.contact()).await,
            callee,
            heard,
        }
    }

    /// Another trunk to the same callee, with other terms.
    pub async fn trunk_with(&self, media: MediaOptions) -> Arc<Trunk> {
        trunk(SipTrunkConfig {
            media,
            ..SipTrunkConfig::new("test", self.callee.contact().into())
        })
        .await
    }

    pub async fn call(&self, request: CallRequest) -> Story {
        call(&self.phone, &self.trunk, request).await
    }

    pub async fn call_within(&self, time: Duration, request: CallRequest) -> Story {
        call_within(time, &self.phone, &self.trunk, request).await
    }

    pub async fn heard(&mut self) -> HeardCall {
        tokio::time::timeout(PATIENCE, self.heard.recv())
            .await
            .expect("the callee tells in time")
            .expect("the callee is there")
    }
}
