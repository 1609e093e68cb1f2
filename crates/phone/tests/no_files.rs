//! A process that has no file left. It is one of its own, because nothing else could run in it.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use phone::signalling::{Signalling, SignallingConfig, Transport};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use supervisor::Supervisor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

const PATIENCE: Duration = Duration::from_secs(90);

/// How often it was told that a connection cannot be accepted.
static FAILURES: AtomicUsize = AtomicUsize::new(0);

struct Failures;

impl Subscriber for Failures {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN && metadata.target().ends_with("accepting")
    }

    fn event(&self, _: &Event<'_>) {
        FAILURES.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Listeners are only where the operator has chosen a port.
fn free_address(here: SocketAddr) -> SocketAddr {
    let listener = std::net::TcpListener::bind(here).unwrap();
    listener.local_addr().unwrap()
}

async fn until(failures: usize) {
    let began = Instant::now();
    while FAILURES.load(Ordering::Relaxed) < failures {
        assert!(began.elapsed() < PATIENCE, "accepting does not fail");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn ask(mut stream: TcpStream) -> String {
    let from = stream.local_addr().unwrap();
    let options = format!(
        "OPTIONS sip:x@x SIP/2.0\r\nVia: SIP/2.0/TCP {from};branch=z9hG4bKx\r\nMax-Forwards: 70\r\nFrom: <sip:s@x>;tag=s\r\nTo: <sip:x@x>\r\nCall-ID: x\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(options.as_bytes()).await.unwrap();
    let mut buffer = vec![0; 4096];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await;
    let length = read.expect("an answer in time").unwrap();
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_without_a_file_left_waits_and_accepts_when_there_is_one() {
    tracing::subscriber::set_global_default(Failures).unwrap();
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = SignallingConfig::new(Transport::Tcp, free_address(here));
    let supervisor = Supervisor::new();
    let us = Signalling::start(&supervisor, &config, None).await.unwrap();
    us.add_peer(here.ip());
    // A socket has its file already; only who accepts it needs another.
    let (waiting, next) = (TcpSocket::new_v4().unwrap(), TcpSocket::new_v4().unwrap());
    let limit = getrlimit(Resource::Nofile);
    let none_left = Rlimit {
        current: Some(next.as_raw_fd().unsigned_abs().into()),
        ..limit
    };
    drop(next);
    setrlimit(Resource::Nofile, none_left).unwrap();
    let connected = waiting.connect(us.contact()).await.unwrap();
    until(1).await;
    let first = Instant::now();
    until(4).await;
    // It does not try again and again without a pause.
    assert!(first.elapsed() >= Duration::from_millis(200));
    setrlimit(Resource::Nofile, limit).unwrap();
    assert!(ask(connected).await.starts_with("SIP/2.0 200"));
    assert_eq!(supervisor.down(), Vec::<String>::new());
}
