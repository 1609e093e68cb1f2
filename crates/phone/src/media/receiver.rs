//! What the peers send: one thread reads all sockets, so that listening never spoils the clock that plays.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Instant;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};

/// Longer than any packet of sound.
const LARGEST_PACKET: usize = 2048;
const EVENTS_AT_ONCE: usize = 256;
/// So many packets of a socket that many calls share are read before the others have their turn.
const SHARED_AT_ONCE: usize = 64;
/// The number that stands for "stop".
const STOP: u64 = u64::MAX;

/// Gets every packet with its sender and the moment it was read.
type Ear = Box<dyn FnMut(&[u8], SocketAddr, Instant) + Send>;

struct Listener {
    socket: Arc<UdpSocket>,
    ear: Mutex<Ear>,
    at_once: usize,
}

struct Shared {
    epoll: OwnedFd,
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
    stop: OwnedFd,
}

impl RtpReceiver {
    pub fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            listeners: Mutex::default(),
        });
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        epoll::add(
            &shared.epoll,
            &stop,
            EventData::new_u64(STOP),
            EventFlags::IN,
        )?;
        let reading = Arc::clone(&shared);
        thread::Builder::new()
            .name("media-receive".to_owned())
            .spawn(move || read_until_stopped(&reading))?;
        Ok(Self {
            shared,
            next: AtomicU64::new(0),
            stop,
        })
    }

    /// Hands every packet that arrives at the socket to `ear`, until the guard is dropped.
    pub fn listen(
        &self,
        socket: Arc<UdpSocket>,
        ear: impl FnMut(&[u8], SocketAddr, Instant) + Send + 'static,
    ) -> io::Result<Listening> {
        // One packet a turn: a socket that is flooded does not keep the others waiting, it is simply ready again.
        self.register(socket, Box::new(ear), 1)
    }

    /// The same for a socket that many calls share.
    pub fn listen_for_many(
        &self,
        socket: Arc<UdpSocket>,
        ear: impl FnMut(&[u8], SocketAddr, Instant) + Send + 'static,
    ) -> io::Result<Listening> {
        self.register(socket, Box::new(ear), SHARED_AT_ONCE)
    }

    fn register(&self, socket: Arc<UdpSocket>, ear: Ear, at_once: usize) -> io::Result<Listening> {
        socket.set_nonblocking(true)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let listener = Arc::new(Listener {
            socket: Arc::clone(&socket),
            ear: Mutex::new(ear),
            at_once,
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
        f.debug_struct("Receiver")
            .field("listeners", &self.shared.listeners().len())
            .finish_non_exhaustive()
    }
}

impl Drop for RtpReceiver {
    fn drop(&mut self) {
        // If this fails the thread stays, reading sockets that nobody registers any more.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
    }
}

/// Listening ends when this is dropped.
pub struct Listening {
    shared: Arc<Shared>,
    socket: Arc<UdpSocket>,
    number: u64,
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

fn read_until_stopped(shared: &Shared) {
    let mut events: Vec<Event> = Vec::with_capacity(EVENTS_AT_ONCE);
    let mut buffer = [0; LARGEST_PACKET];
    loop {
        events.clear();
        match epoll::wait(
            &shared.epoll,
            rustix::buffer::spare_capacity(&mut events),
            None,
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
                return;
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
        let mut ear = self.ear.lock().expect("an ear does not panic");
        for _ in 0..self.at_once {
            // Errors are echoes of our own packets (a port that is closed), or there is no more.
            let Ok((length, from)) = self.socket.recv_from(buffer) else {
                return;
            };
            ear(&buffer[..length], from, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn socket() -> Arc<UdpSocket> {
        Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap())
    }

    #[test]
    fn packets_reach_the_ear_of_their_socket_until_it_is_dropped() {
        let receiver = RtpReceiver::start().unwrap();
        let (heard, hearing) = mpsc::channel();
        let sockets: Vec<_> = (0..3).map(|_| socket()).collect();
        let listening: Vec<_> = sockets
            .iter()
            .enumerate()
            .map(|(place, socket)| {
                let heard = heard.clone();
                let ear = move |bytes: &[u8], from: SocketAddr, _: Instant| {
                    heard.send((place, bytes.to_vec(), from)).unwrap();
                };
                receiver.listen(Arc::clone(socket), ear).unwrap()
            })
            .collect();
        let peer = socket();
        for (place, socket) in sockets.iter().enumerate() {
            peer.send_to(&[7; 20], socket.local_addr().unwrap())
                .unwrap();
            assert_eq!(
                hearing.recv_timeout(PATIENCE).unwrap(),
                (place, vec![7; 20], peer.local_addr().unwrap())
            );
        }
        drop(listening);
        assert!(receiver.shared.listeners().is_empty());
        peer.send_to(&[7; 20], sockets[0].local_addr().unwrap())
            .unwrap();
        assert!(hearing.recv_timeout(Duration::from_millis(50)).is_err());
    }

    #[test]
    fn a_socket_whose_peer_is_gone_does_no_harm() {
        let receiver = RtpReceiver::start().unwrap();
        let (heard, hearing) = mpsc::channel();
        let (ours, good, peer) = (socket(), socket(), socket());
        let closed = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        ours.connect(closed).unwrap();
        let _gone = receiver.listen(Arc::clone(&ours), |_, _, _| ()).unwrap();
        let _good = receiver
            .listen(Arc::clone(&good), move |bytes, _, _| {
                heard.send(bytes.len()).unwrap();
            })
            .unwrap();
        for _ in 0..20 {
            let _ = ours.send(b"nobody is there");
        }
        peer.send_to(b"hello", good.local_addr().unwrap()).unwrap();
        assert_eq!(hearing.recv_timeout(PATIENCE).unwrap(), 5);
    }
}
