//! A TCP proxy on loopback between a server and its PostgreSQL, which falls silent, cuts and delays when it is told to.
//!
//! What is silent stays open on both sides: bytes are taken and vanish, and neither side hears that the other has gone, as when packets are
//! dropped on the way. A connection that has lost bytes never comes back to life.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Pass,
    /// Nothing arrives, in either direction.
    Stall,
    /// What is asked arrives, and no answer comes back.
    StallAnswers,
    /// What is asked arrives, and then the connection is closed on both sides.
    CutAfter,
    /// The connection is closed on both sides.
    Cut,
    /// What is asked arrives this much later.
    Delay(Duration),
}

/// Whom a fault hits at its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hits {
    ThisConnection,
    /// And from then on every other is silent, new ones too.
    ThisAndSilenceForAll,
}

pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Everything ends with the proxy.
    _tasks: JoinSet<()>,
}

struct Shared {
    upstream: SocketAddr,
    state: Mutex<State>,
    /// For all connections, and how often a moment has come.
    fault: watch::Sender<Fault>,
    moments: watch::Sender<u32>,
}

#[derive(Default)]
struct State {
    armed: Option<Moment>,
}

/// One after the other, on one connection, these texts pass on their way to the database.
struct Moment {
    texts: Vec<String>,
    fault: Fault,
    hits: Hits,
}

impl Proxy {
    /// Before the database at this address.
    pub async fn before(database: &str) -> Self {
        let url = url::Url::parse(database).unwrap();
        let upstream = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Arc::new(Shared {
            upstream: upstream.parse().unwrap(),
            state: Mutex::default(),
            fault: watch::Sender::new(Fault::Pass),
            moments: watch::Sender::new(0),
        });
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            _tasks: tasks,
        }
    }

    /// The address of a database behind it.
    pub fn url(&self, database: &str) -> String {
        let mut url = url::Url::parse(database).unwrap();
        url.set_port(Some(self.address.port())).unwrap();
        url.to_string()
    }

    /// Every connection from now on, those that are there and those that come.
    pub fn all(&self, fault: Fault) {
        self.shared.fault.send_replace(fault);
    }

    /// When these texts have passed on one connection, one after the other. The last one is already under the fault.
    pub fn when(&self, texts: &[&str], fault: Fault, hits: Hits) {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        self.shared.state.lock().unwrap().armed = Some(Moment { texts, fault, hits });
    }

    /// How often a moment has come.
    pub fn moments(&self) -> u32 {
        *self.shared.moments.borrow()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut lines = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        lines.spawn(run(client, Arc::clone(&shared)));
    }
}

/// One connection. Its own fault, once it has one, outlasts the others'.
async fn run(client: TcpStream, shared: Arc<Shared>) {
    client.set_nodelay(true).unwrap();
    let own = Arc::new(watch::Sender::new(Fault::Pass));
    if *shared.fault.borrow() == Fault::Stall {
        return swallow(client).await;
    }
    let Ok(server) = TcpStream::connect(shared.upstream).await else {
        return;
    };
    server.set_nodelay(true).unwrap();
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    let asked = Pump {
        from: client_read,
        to: server_write,
        asks: true,
        own: Arc::clone(&own),
        shared: Arc::clone(&shared),
    };
    let answered = Pump {
        from: server_read,
        to: client_write,
        asks: false,
        own: Arc::clone(&own),
        shared: Arc::clone(&shared),
    };
    tokio::select! {
        () = asked.run() => {}
        () = answered.run() => {}
        () = is_cut(&own) => {}
        () = is_cut(&shared.fault) => {}
    }
}

async fn is_cut(fault: &watch::Sender<Fault>) {
    let mut fault = fault.subscribe();
    let _ = fault.wait_for(|fault| *fault == Fault::Cut).await;
}

/// Takes everything and passes nothing on, not even the end.
async fn swallow(mut from: impl AsyncRead + Unpin) {
    let mut lost = vec![0; 64 << 10];
    while from.read(&mut lost).await.is_ok_and(|read| read > 0) {}
    std::future::pending::<()>().await;
}

/// One direction of one connection.
struct Pump {
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    asks: bool,
    own: Arc<watch::Sender<Fault>>,
    shared: Arc<Shared>,
}

impl Pump {
    async fn run(mut self) {
        let mut waited_for = 0;
        let mut tail = Vec::new();
        let mut chunk = vec![0; 64 << 10];
        loop {
            let read = self.from.read(&mut chunk).await.unwrap_or(0);
            if self.asks && read > 0 {
                tail.extend_from_slice(&chunk[..read]);
                self.note_moment(&mut tail, &mut waited_for);
            }
            match self.fault() {
                Fault::Stall => self.silence().await,
                Fault::StallAnswers if !self.asks => self.silence().await,
                Fault::Cut => return,
                Fault::Delay(time) if self.asks => tokio::time::sleep(time).await,
                _ => {}
            }
            if read == 0 || self.to.write_all(&chunk[..read]).await.is_err() {
                return;
            }
            if self.fault() == Fault::CutAfter && self.asks {
                return;
            }
        }
    }

    fn fault(&self) -> Fault {
        match *self.own.borrow() {
            Fault::Pass => *self.shared.fault.borrow(),
            own => own,
        }
    }

    /// For good: what has lost bytes makes no sense any more.
    async fn silence(&mut self) {
        if *self.own.borrow() == Fault::Pass {
            self.own.send_replace(*self.shared.fault.borrow());
        }
        swallow(&mut self.from).await;
    }

    /// `tail` is what has passed since the last text that was waited for.
    fn note_moment(&self, tail: &mut Vec<u8>, passed: &mut usize) {
        let mut state = self.shared.state.lock().unwrap();
        let Some(moment) = &state.armed else {
            tail.clear();
            *passed = 0;
            return;
        };
        while let Some(text) = moment.texts.get(*passed) {
            let found = tail
                .windows(text.len())
                .position(|window| window == text.as_bytes());
            let Some(place) = found else {
                let keep = tail.len().min(text.len() - 1);
                tail.drain(..tail.len() - keep);
                return;
            };
            tail.drain(..place + text.len());
            *passed += 1;
        }
        let Some(moment) = state.armed.take() else {
            return;
        };
        self.own.send_replace(moment.fault);
        if moment.hits == Hits::ThisAndSilenceForAll {
            self.shared.fault.send_replace(Fault::Stall);
        }
        self.shared.moments.send_modify(|count| *count += 1);
    }
}
