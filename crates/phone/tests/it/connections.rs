//! Connections to trunks: which peer is on them, and what becomes of one whose peer is gone.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use g711::Codec;
use phone::ending::Side;
use phone::signalling::{
    LookupSource, Resolver, Signalling, SignallingConfig, SrvRecord, TlsFiles, Transport,
};
use phone::test_phone::{Script, TestPhone, TestPhoneConfig};
use phone::trunk::{Health, SipTrunkConfig, Trunk};
use socket2::{SockFilter, SockRef};
use supervisor::Supervisor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::far_end::leap;
use crate::lab::{PATIENCE, Story, call, call_request, callee_config, caller, loopback};
use crate::puppet::header;
use crate::sipp::registrations::becomes;

/// A trunk over TCP to somebody who listens.
async fn trunk_to(peer: &TcpListener, config: SipTrunkConfig) -> Arc<Trunk> {
    let sip = SignallingConfig {
        // Clocks leap here.
        idle_time: Duration::from_secs(1_000_000),
        ..SignallingConfig::new(Transport::Tcp, loopback())
    };
    let signalling = Signalling::start(&Supervisor::new(), &sip, None).await;
    let config = SipTrunkConfig {
        host: peer.local_addr().unwrap().into(),
        ..config
    };
    let signalling = Arc::new(signalling.unwrap());
    Trunk::start(&Supervisor::new(), config, signalling, Resolver::default())
}

fn asked_always() -> SipTrunkConfig {
    SipTrunkConfig {
        ask_every: Some(Duration::from_millis(100)),
        ..SipTrunkConfig::new("asked", loopback().into())
    }
}

/// Waits for what happens only when the clocks of the signalling have leapt.
async fn leaping<T>(waited: impl Future<Output = T>) -> T {
    let mut waited = pin!(waited);
    let limit = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < limit, "not in time");
        if let Ok(done) = tokio::time::timeout(Duration::ZERO, &mut waited).await {
            return done;
        }
        leap().await;
    }
}

/// A connection that we have opened, as the peer has it.
struct Accepted(TcpStream);

impl Accepted {
    async fn by(peer: &TcpListener) -> Self {
        Self(peer.accept().await.unwrap().0)
    }

    /// The next request, which has no body. Pings are passed over.
    async fn request(&mut self) -> String {
        let mut text = Vec::new();
        while !text.ends_with(b"\r\n\r\n") || text.trim_ascii().is_empty() {
            text.push(self.0.read_u8().await.expect("the connection is up"));
        }
        String::from_utf8(text).unwrap().trim_start().to_owned()
    }

    async fn confirm(&mut self, request: &str) {
        let kept = ["Via", "From", "To", "Call-ID", "CSeq"];
        let kept = kept.map(|name| format!("{name}: {}\r\n", header(request, name)));
        let text = format!(
            "SIP/2.0 200 OK\r\n{}Content-Length: 0\r\n\r\n",
            kept.concat()
        );
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads to the end, if there is one.
    async fn end(mut self) {
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(PATIENCE, self.0.read_to_end(&mut rest));
        drop(closed.await.expect("it is closed in time"));
    }
}

#[tokio::test]
async fn a_connection_on_which_options_get_no_answer_any_more_is_opened_anew() {
    let peer = TcpListener::bind(loopback()).await.unwrap();
    let trunk = trunk_to(&peer, asked_always()).await;
    let mut first = Accepted::by(&peer).await;
    let options = first.request().await;
    first.confirm(&options).await;
    becomes(&mut trunk.health(), |health| *health == Health::Up).await;
    // It hangs, and so does whatever else comes on that connection.
    let mut second = leaping(Accepted::by(&peer)).await;
    first.end().await;
    let options = leaping(second.request()).await;
    second.confirm(&options).await;
    becomes(&mut trunk.health(), |health| *health == Health::Up).await;
    trunk.stop();
}

#[tokio::test]
async fn a_connection_to_one_that_never_answers_options_stays() {
    let peer = TcpListener::bind(loopback()).await.unwrap();
    let trunk = trunk_to(&peer, asked_always()).await;
    let mut only = Accepted::by(&peer).await;
    for _ in 0..4 {
        leaping(only.request()).await;
    }
    let another = tokio::time::timeout(Duration::ZERO, peer.accept()).await;
    assert!(another.is_err(), "{another:?}");
    trunk.stop();
}

/// From now on nothing that is sent to this socket arrives, and nobody is told: its host has vanished.
fn vanish(connection: &TcpStream) {
    const DROP: SockFilter = SockFilter::new(6, 0, 0, 0);
    SockRef::from(connection).attach_filter(&[DROP]).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_to_a_host_that_has_vanished_without_a_word_is_opened_anew() {
    let peer = TcpListener::bind(loopback()).await.unwrap();
    let pinged = SipTrunkConfig {
        keep_alive: Some(Duration::from_millis(50)),
        ..SipTrunkConfig::new("pinged", loopback().into())
    };
    let trunk = trunk_to(&peer, pinged).await;
    let mut first = Accepted::by(&peer).await;
    first.0.read_exact(&mut [0; 8]).await.unwrap();
    vanish(&first.0);
    let again = tokio::time::timeout(PATIENCE, Accepted::by(&peer)).await;
    let mut pings = [0; 8];
    let mut second = again.expect("another connection in time");
    second.0.read_exact(&mut pings).await.unwrap();
    assert_eq!(&pings, b"\r\n\r\n\r\n\r\n");
    trunk.stop();
}

/// One name server that knows everybody to be here.
struct Here;

#[async_trait::async_trait]
impl LookupSource for Here {
    async fn lookup_srv(&self, _: &str) -> Result<Vec<SrvRecord>, String> {
        Err("no such name".to_owned())
    }

    async fn lookup_a_aaaa(&self, _: &str) -> Result<Vec<std::net::IpAddr>, String> {
        Ok(vec![loopback().ip()])
    }
}

/// A private authority.
struct Authority(rcgen::CertifiedIssuer<'static, rcgen::KeyPair>);

impl Authority {
    fn new() -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut own = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        own.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self(rcgen::CertifiedIssuer::self_signed(own, key).unwrap())
    }

    /// A telephone over TLS that proves this name, and how often it was called.
    async fn telephone(&self, name: &str, script: Script) -> (TestPhone, Arc<AtomicUsize>) {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = certificate.signed_by(&key, &self.0).unwrap();
        let mut sip = SignallingConfig::new(Transport::Tls, loopback());
        sip.tls.own = Some((certificate.pem().into(), key.serialize_pem().into()));
        let config = TestPhoneConfig {
            sip,
            ..callee_config(&Codec::ALL)
        };
        let called = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&called);
        let script = move |_: &str| {
            count.fetch_add(1, Ordering::Relaxed);
            script.clone()
        };
        let started = TestPhone::start(&Supervisor::new(), &config, script).await;
        (started.unwrap().0, called)
    }

    /// A call over a trunk of these hosts, of which the first is the one that it is named by.
    async fn call(&self, hosts: [(&str, SocketAddr); 2]) -> Story {
        let mut sip = SignallingConfig::new(Transport::Tls, loopback());
        sip.tls = TlsFiles {
            authorities: self.0.pem().into_bytes(),
            peer_name: Some(hosts[0].0.to_owned()),
            own: None,
        };
        let signalling = Signalling::start(&Supervisor::new(), &sip, None).await;
        let [first, second] =
            hosts.map(|(name, address)| format!("{name}:{}", address.port()).parse().unwrap());
        let config = SipTrunkConfig {
            more_hosts: vec![second],
            ..SipTrunkConfig::new("two", first)
        };
        let signalling = Arc::new(signalling.unwrap());
        let names = Resolver::of(Here);
        let trunk = Trunk::start(&Supervisor::new(), config, signalling, names);
        call(&caller(), &trunk, call_request(vec![])).await
    }
}

const ONE: &str = "one.example";
const TWO: &str = "two.example";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_host_over_tls_proves_its_own_name() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authority = Authority::new();
    let (first, refused) = authority.telephone(ONE, Script::refuse(503)).await;
    let (second, answered) = authority.telephone(TWO, Script::answer()).await;
    let hosts = [(ONE, first.contact()), (TWO, second.contact())];
    let story = authority.call(hosts).await;
    assert_eq!(story.talked().1, Side::Us);
    let calls = [refused, answered].map(|calls| calls.load(Ordering::Relaxed));
    assert_eq!(calls, [1, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_over_tls_that_proves_the_name_of_another_one_gets_no_call() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authority = Authority::new();
    let (first, refused) = authority.telephone(ONE, Script::refuse(503)).await;
    let (second, answered) = authority.telephone(ONE, Script::answer()).await;
    let hosts = [(ONE, first.contact()), (TWO, second.contact())];
    let failure = authority.call(hosts).await.failure();
    assert_eq!(failure.reason(), Some((503, None)));
    let calls = [refused, answered].map(|calls| calls.load(Ordering::Relaxed));
    assert_eq!(calls, [1, 0]);
}
