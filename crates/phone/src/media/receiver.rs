//! Receives what the peers send: one thread reads all sockets, so that receiving never delays the pacer.
//!
//! It knows sockets and handlers, and nothing of calls. A handler must not panic: `inbound` sees to that for calls.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use supervisor::{Supervisor, Watch};
use tokio::sync::Notify;

/// Longer than any packet of sound.
const LARGEST_PACKET: usize = 2048;
const EVENTS_AT_ONCE: usize = 256;
/// This many packets of a socket that many calls share are read before the other sockets have their turn.
const SHARED_AT_ONCE: usize = 64;
/// The number that stands for "stop".
const STOP: u64 = u64::MAX;
/// A receiver without packets shows that it lives once in this time.
const IDLE_BEAT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};
/// A receiver that has not shown it for this long is stuck.
const PATIENCE: Duration = Duration::from_secs(1);

/// Gets every packet with its sender and the time at which it was read.
type PacketHandler = Box<dyn FnMut(&[u8], SocketAddr, Instant) + Send>;

struct Listener {
    socket: Arc<UdpSocket>,
    handler: Mutex<PacketHandler>,
    at_once: usize,
    /// Told when packets of ours come to a closed port.
    refused: Option<Arc<Notify>>,
}

struct Shared {
    epoll: OwnedFd,
    /// The thread keeps it open: a closed one would tell it nothing.
    stop: OwnedFd,
    listeners: Mutex<HashMap<u64, Arc<Listener>>>,
}

impl Shared {
    fn listeners(&self) -> MutexGuard<'_, HashMap<u64, Arc<Listener>>> {
        self.listeners
            .lock()
            .expect("nothing panics while it changes the table")
    }
}

/// The handle to the thread, which ends when it is dropped.
pub struct RtpReceiver {
    shared: Arc<Shared>,
    next: AtomicU64,
}

impl RtpReceiver {
    pub fn start(supervisor: &Supervisor) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            stop: eventfd(0, EventfdFlags::CLOEXEC)?,
            listeners: Mutex::default(),
        });
        epoll::add(
            &shared.epoll,
            &shared.stop,
            EventData::new_u64(STOP),
            EventFlags::IN,
        )?;
        let reading = Arc::clone(&shared);
        supervisor.require_thread("receiver", Some(PATIENCE), move |watch| {
            read_until_stopped(&reading, &watch);
        })?;
        Ok(Self {
            shared,
            next: AtomicU64::new(0),
        })
    }

    /// Hands every packet that arrives at the socket to `handler`, until the guard is dropped. `refused` is told when packets that leave
    /// through the socket come to a closed port.
    pub fn listen(
        &self,
        socket: Arc<UdpSocket>,
        handler: impl FnMut(&[u8], SocketAddr, Instant) + Send + 'static,
        refused: Option<Arc<Notify>>,
    ) -> io::Result<Listening> {
        // One packet a turn: a socket that is flooded does not keep the others waiting, it is simply ready again.
        self.register(socket, Box::new(handler), 1, refused)
    }

    /// The same for a socket that many calls share.
    pub fn listen_for_many(
        &self,
        socket: Arc<UdpSocket>,
        handler: impl FnMut(&[u8], SocketAddr, Instant) + Send + 'static,
    ) -> io::Result<Listening> {
        self.register(socket, Box::new(handler), SHARED_AT_ONCE, None)
    }

    fn register(
        &self,
        socket: Arc<UdpSocket>,
        handler: PacketHandler,
        at_once: usize,
        refused: Option<Arc<Notify>>,
    ) -> io::Result<Listening> {
        socket.set_nonblocking(true)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let listener = Arc::new(Listener {
            socket: Arc::clone(&socket),
            handler: Mutex::new(handler),
            at_once,
            refused,
        });
        self.shared.listeners().insert(number, listener);
        epoll::add(
            &self.shared.epoll,
            &socket,
            EventData::new_u64(number),
            EventFlags::IN,
        )?;
        Ok(Listening {
            shared: Arc::clone(&self.shared),
            socket,
            number,
        })
    }
}

impl std::fmt::Debug for RtpReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RtpReceiver")
            .field("listeners", &self.shared.listeners().len())
            .finish_non_exhaustive()
    }
}

impl Drop for RtpReceiver {
    fn drop(&mut self) {
        // If this fails, the thread stays and reads sockets that nobody registers any more.
        let _ = rustix::io::write(&self.shared.stop, &1_u64.to_ne_bytes());
    }
}

/// Listening ends when this is dropped.
pub struct Listening {
    shared: Arc<Shared>,
    socket: Arc<UdpSocket>,
    number: u64,
}

impl Listening {
    /// True if everything that has arrived at the socket has been handled.
    pub fn has_handled_all(&self) -> bool {
        let listener = self.shared.listeners().get(&self.number).cloned();
        let Some(listener) = listener else {
            return true;
        };
        // Whoever reads holds the handler meanwhile.
        let _reading = listener.handler.lock().expect("a handler does not panic");
        rustix::io::ioctl_fionread(&self.socket).unwrap_or(0) == 0
    }
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = epoll::delete(&self.shared.epoll, &self.socket);
        self.shared.listeners().remove(&self.number);
    }
}

/// Ends in good order when the handle is dropped, and otherwise only when the kernel refuses to wait.
fn read_until_stopped(shared: &Shared, watch: &Watch) {
    let mut events: Vec<Event> = Vec::with_capacity(EVENTS_AT_ONCE);
    let mut buffer = [0; LARGEST_PACKET];
    loop {
        watch.heartbeat();
        events.clear();
        match epoll::wait(
            &shared.epoll,
            rustix::buffer::spare_capacity(&mut events),
            Some(&IDLE_BEAT),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                tracing::error!(%error, "packets cannot be received any more");
                return;
            }
        }
        for event in &events {
            let number = event.data.u64();
            if number == STOP {
                return watch.release();
            }
            let listener = shared.listeners().get(&number).cloned();
            if let Some(listener) = listener {
                listener.read(&mut buffer);
            }
        }
    }
}

impl Listener {
    fn read(&self, buffer: &mut [u8]) {
        let mut handler = self.handler.lock().expect("a handler does not panic");
        for _ in 0..self.at_once {
            match self.socket.recv_from(buffer) {
                Ok((length, from)) => handler(&buffer[..length], from, Instant::now()),
                // The echo of a packet of ours (ICMP), real or forged.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    if let Some(refused) = &self.refused {
                        refused.notify_one();
                    }
                    return;
                }
                // There is no more to read.
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const LIMIT: Duration = Duration::from_secs(60);

    fn socket() -> Arc<UdpSocket> {
        Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap())
    }

    #[test]
    fn packets_reach_the_handler_of_their_socket_until_it_is_dropped() {
        let receiver = RtpReceiver::start(&Supervisor::new()).unwrap();
        let (packets, received) = mpsc::channel();
        let sockets: Vec<_> = (0..3).map(|_| socket()).collect();
        let listening: Vec<_> = sockets
            .iter()
            .enumerate()
            .map(|(place, socket)| {
                let packets = packets.clone();
                let handler = move |bytes: &[u8], from: SocketAddr, _: Instant| {
                    packets.send((place, bytes.to_vec(), from)).unwrap();
                };
                receiver.listen(Arc::clone(socket), handler, None).unwrap()
            })
            .collect();
        let peer = socket();
        for (place, socket) in sockets.iter().enumerate() {
            peer.send_to(&[7; 20], socket.local_addr().unwrap())
                .unwrap();
            assert_eq!(
                received.recv_timeout(LIMIT).unwrap(),
                (place, vec![7; 20], peer.local_addr().unwrap())
            );
        }
        drop(listening);
        assert!(receiver.shared.listeners().is_empty());
        peer.send_to(&[7; 20], sockets[0].local_addr().unwrap())
            .unwrap();
        assert!(received.recv_timeout(Duration::from_millis(50)).is_err());
    }

    #[tokio::test]
    async fn a_socket_whose_peer_is_gone_does_no_harm_and_tells_so() {
        let receiver = RtpReceiver::start(&Supervisor::new()).unwrap();
        let (packets, received) = mpsc::channel();
        let (ours, good, peer) = (socket(), socket(), socket());
        let closed = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        ours.connect(closed).unwrap();
        let refused = Arc::new(Notify::new());
        let told = Some(Arc::clone(&refused));
        let _gone = receiver
            .listen(Arc::clone(&ours), |_, _, _| (), told)
            .unwrap();
        let count = move |bytes: &[u8], _: SocketAddr, _: Instant| {
            packets.send(bytes.len()).unwrap();
        };
        let _good = receiver.listen(Arc::clone(&good), count, None).unwrap();
        for _ in 0..20 {
            let _ = ours.send(b"nobody is there");
        }
        peer.send_to(b"hello", good.local_addr().unwrap()).unwrap();
        assert_eq!(received.recv_timeout(LIMIT).unwrap(), 5);
        // The sender may get the error instead.
        let told = async {
            while tokio::time::timeout(Duration::from_millis(20), refused.notified())
                .await
                .is_err()
            {
                let _ = ours.send(b"nobody is there");
            }
        };
        tokio::time::timeout(LIMIT, told).await.unwrap();
    }

    #[test]
    fn an_idle_receiver_counts_as_alive_and_ends_with_its_handle() {
        let supervisor = Supervisor::new();
        let until = |what: &str, condition: &dyn Fn() -> bool| {
            let limit = Instant::now() + LIMIT;
            while !condition() {
                assert!(Instant::now() < limit, "not in time: {what}");
                std::thread::sleep(Duration::from_millis(2));
            }
        };
        let began = Instant::now();
        let receiver = RtpReceiver::start(&supervisor).unwrap();
        until("it is up long after its start", &|| {
            began.elapsed() > PATIENCE * 2 && supervisor.down().is_empty()
        });
        drop(receiver);
        until("it ends", &|| supervisor.tasks().is_empty());
    }

    #[cfg(debug_assertions)]
    #[tokio::test]
    async fn a_dead_receiver_is_reported_by_its_name() {
        let supervisor = Supervisor::new();
        let _receiver = RtpReceiver::start(&supervisor).unwrap();
        assert!(supervisor.request_panic("receiver"));
        assert_eq!(supervisor.failed().await.task, "receiver");
    }
}
