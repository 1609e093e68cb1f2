//! Floods of strangers cost little memory, and calls go on meanwhile. A process of its own, because memory is counted.

#[path = "it/lab.rs"]
#[expect(dead_code, reason = "the lab serves other tests too")]
mod lab;

use std::alloc::System;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use g711::Codec;
use phone::ending::Side;
use phone::media::stream::PlaybackItem;
use phone::signalling::{
    RefusalCounts, Resolver, Signalling, SignallingConfig, SipRefusal, TlsFiles, Transport,
};
use phone::test_phone::{HeardCall, Script, TestPhone, TestPhoneConfig};
use phone::trunk::{SipTrunkConfig, Trunk};
use supervisor::Supervisor;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::sync::mpsc::UnboundedReceiver;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use lab::{PATIENCE, Story, call, call_request, callee_config, caller, eventually, sound};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// One test at a time: they count what all of them use.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const STRANGER: &str = "127.0.0.2:0";
const MEGABYTE: usize = 1 << 20;

/// Bytes that are allocated now.
fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats
        .bytes_allocated
        .saturating_sub(stats.bytes_deallocated)
}

/// A trunk at 127.0.0.1, and an endpoint of ours that listens at a port of its own.
struct Line {
    us: SocketAddr,
    trunk: Arc<Trunk>,
    refusals: Arc<RefusalCounts>,
    _callee: TestPhone,
    _heard: UnboundedReceiver<HeardCall>,
}

impl Line {
    async fn over(transport: Transport) -> Self {
        let config = SignallingConfig::new(transport, free_address());
        Self::with(config, TlsFiles::default()).await
    }

    async fn with(config: SignallingConfig, theirs: TlsFiles) -> Self {
        let mut callee = callee_config(&Codec::ALL);
        callee.sip = SignallingConfig {
            tls: theirs,
            ..SignallingConfig::new(config.transport, lab::loopback())
        };
        let (callee, heard) = start(&callee).await;
        let refusals = Arc::clone(&config.refusals);
        let signalling = Signalling::start(&Supervisor::new(), &config, None).await;
        let signalling = signalling.unwrap();
        let us = signalling.contact();
        let trunk = Trunk::start(
            &Supervisor::new(),
            SipTrunkConfig::new("test", callee.contact().into()),
            Arc::new(signalling),
            Resolver::default(),
        );
        Self {
            us,
            trunk,
            refusals,
            _callee: callee,
            _heard: heard,
        }
    }

    async fn call(&self) -> Story {
        let request = call_request(vec![PlaybackItem::Sound(sound(50))]);
        call(&caller(), &self.trunk, request).await
    }
}

async fn start(config: &TestPhoneConfig) -> (TestPhone, UnboundedReceiver<HeardCall>) {
    TestPhone::start(&Supervisor::new(), config, |_| Script::answer())
        .await
        .unwrap()
}

/// Listeners are only where the operator has chosen a port.
fn free_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind(lab::loopback()).unwrap();
    listener.local_addr().unwrap()
}

async fn connect(from: &str, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(from.parse().unwrap())?;
    socket.connect(to).await
}

/// Waits until the other side has closed a connection.
async fn is_closed(stream: &mut TcpStream) {
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut [0; 16])).await;
    match read.expect("it is closed in time") {
        Ok(length) => assert_eq!(length, 0, "something was sent to it"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_thousand_silent_connections_of_a_stranger_cost_nothing_and_a_call_goes_on() {
    let _alone = ALONE.lock().await;
    let line = Line::over(Transport::Tcp).await;
    line.call().await.talked();
    let before = allocated();
    let mut strangers = Vec::with_capacity(3000);
    for _ in 0..3000 {
        strangers.push(connect(STRANGER, line.us).await.unwrap());
    }
    let story = line.call().await;
    let grown = allocated().saturating_sub(before);
    println!("3,000 connections of a stranger: {grown} bytes more");
    assert!(grown < 8 * MEGABYTE, "{grown} bytes for 3,000 connections");
    assert_eq!(story.talked().1, Side::Us);
    for stranger in &mut strangers {
        is_closed(stranger).await;
    }
    assert_eq!(line.refusals.get(SipRefusal::Connection), 3000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_has_sixty_four_connections_and_says_something_on_each_or_loses_it() {
    let _alone = ALONE.lock().await;
    let line = Line::over(Transport::Tcp).await;
    line.call().await.talked();
    let before = allocated();
    let mut open = Vec::with_capacity(64);
    for _ in 0..64 {
        open.push(connect("127.0.0.1:0", line.us).await.unwrap());
    }
    for _ in 0..500 {
        let mut excess = connect("127.0.0.1:0", line.us).await.unwrap();
        is_closed(&mut excess).await;
    }
    assert_eq!(line.refusals.get(SipRefusal::ExcessConnection), 500);
    let grown = allocated().saturating_sub(before);
    println!("64 connections of a peer: {grown} bytes more");
    assert!(grown < 16 * MEGABYTE, "{grown} bytes for 64 connections");
    assert_eq!(line.call().await.talked().1, Side::Us);
    // Whoever connects has thirty seconds for its first message. Then its place is free again.
    for silent in &mut open {
        is_closed(silent).await;
    }
    assert_eq!(line.refusals.get(SipRefusal::ExcessConnection), 564);
    let mut stream = connect("127.0.0.1:0", line.us).await.unwrap();
    let answer = ask(&mut stream, line.us).await;
    assert!(answer.unwrap().starts_with("SIP/2.0 200"));
}

/// It has said something, so that only this limit ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_on_which_nothing_more_comes_is_closed() {
    let _alone = ALONE.lock().await;
    let mut config = SignallingConfig::new(Transport::Tcp, free_address());
    assert_eq!(config.idle_time, Duration::from_secs(300));
    config.idle_time = Duration::from_secs(1);
    let line = Line::with(config, TlsFiles::default()).await;
    let mut stream = connect("127.0.0.1:0", line.us).await.unwrap();
    let answer = ask(&mut stream, line.us).await;
    assert!(answer.unwrap().starts_with("SIP/2.0 200"));
    is_closed(&mut stream).await;
    assert_eq!(line.refusals.get(SipRefusal::ExcessConnection), 0);
    // Its place is free, and calls go on.
    assert_eq!(line.call().await.talked().1, Side::Us);
}

/// Asks by OPTIONS on a connection. `None` if it has been closed.
async fn ask(stream: &mut TcpStream, to: SocketAddr) -> Option<String> {
    use tokio::io::AsyncWriteExt;
    let options = options(to, 1, stream.local_addr().unwrap(), "TCP");
    stream.write_all(options.as_bytes()).await.ok()?;
    let mut buffer = vec![0; 4096];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await;
    let length = read.expect("an answer in time").ok()?;
    (length > 0).then(|| String::from_utf8_lossy(&buffer[..length]).into_owned())
}

fn options(to: SocketAddr, number: u32, from: SocketAddr, transport: &str) -> String {
    format!(
        "OPTIONS sip:x@{to} SIP/2.0\r\nVia: SIP/2.0/{transport} {from};branch=z9hG4bK{number}-{:08x}\r\nMax-Forwards: 70\r\nFrom: <sip:s@x>;tag={number}\r\nTo: <sip:x@x>\r\nCall-ID: {number}-{:08x}\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n",
        rand::random::<u32>(),
        rand::random::<u32>()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_requests_of_a_stranger_make_no_transaction_and_a_call_goes_on() {
    let _alone = ALONE.lock().await;
    let line = Line::over(Transport::Udp).await;
    line.call().await.talked();
    let nothing_open = || line.trunk.signalling().open() == (0, 0);
    eventually("the first call is forgotten", nothing_open).await;
    let before = allocated();
    let stranger = UdpSocket::bind(STRANGER).await.unwrap();
    let from = stranger.local_addr().unwrap();
    let mut most_transactions = 0;
    for number in 0..20_000 {
        let options = options(line.us, number, from, "UDP");
        stranger.send_to(options.as_bytes(), line.us).await.unwrap();
        if number % 50 == 0 {
            // So that the kernel drops none of them.
            let seen = || line.refusals.get(SipRefusal::Datagram) >= u64::from(number);
            eventually("they are read", seen).await;
            most_transactions = most_transactions.max(line.trunk.signalling().open().1);
        }
    }
    let all = || line.refusals.get(SipRefusal::Datagram) == 20_000;
    eventually("all are dropped", all).await;
    let grown = allocated().saturating_sub(before);
    println!(
        "20,000 requests of a stranger: {grown} bytes and {most_transactions} transactions more"
    );
    assert_eq!(most_transactions, 0);
    assert!(grown < MEGABYTE, "{grown} bytes for 20,000 requests");
    assert_eq!(line.call().await.talked().1, Side::Us);
    assert!(stranger.try_recv(&mut [0; 1000]).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_gets_no_handshake_and_a_peer_that_does_not_finish_it_holds_no_place_for_ever() {
    let _alone = ALONE.lock().await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let made = rcgen::generate_simple_self_signed(vec!["trunk.example".to_owned()]).unwrap();
    let certificate = made.cert.pem().into_bytes();
    let files = TlsFiles {
        authorities: certificate.clone(),
        peer_name: Some("trunk.example".to_owned()),
        own: Some((certificate, made.signing_key.serialize_pem().into_bytes())),
    };
    let config = SignallingConfig {
        tls: files.clone(),
        ..SignallingConfig::new(Transport::Tls, free_address())
    };
    let line = Line::with(config, files).await;
    let mut stranger = connect(STRANGER, line.us).await.unwrap();
    is_closed(&mut stranger).await;
    assert_eq!(line.refusals.get(SipRefusal::Connection), 1);
    // A peer has ten seconds.
    let mut silent = connect("127.0.0.1:0", line.us).await.unwrap();
    assert_eq!(line.call().await.talked().1, Side::Us);
    is_closed(&mut silent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_listens_where_the_operator_has_chosen_no_port() {
    let _alone = ALONE.lock().await;
    let config = SignallingConfig::new(Transport::Tcp, lab::loopback());
    let signalling = Signalling::start(&Supervisor::new(), &config, None).await;
    let us = signalling.unwrap().contact();
    let refused = connect("127.0.0.1:0", us).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}
