//! The sound of one call, both ways.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::clock::{Clock, Outgoing, Playing};
use super::dtmf::KeyListener;
use super::facts::Facts;
use super::ports::PortPair;
use super::receive::{Listening, Receiver};
use super::rtp::{Numbers, Packet};
use super::stream::{Step, Stream};
use crate::codec::Codec;
use crate::sdp::RemoteMedia;

/// It ends when this is dropped.
#[derive(Debug)]
pub struct Sounding {
    playing: Arc<Playing>,
    pair_rtp: Arc<UdpSocket>,
    _listening: Listening,
}

impl Sounding {
    pub fn start(
        (clock, receiver): (&Clock, &Receiver),
        pair: &PortPair,
        remote: &RemoteMedia,
        program: &[Step],
        mut on_key: impl FnMut(char) + Send + 'static,
    ) -> std::io::Result<(Self, oneshot::Receiver<Instant>)> {
        pair.rtp.connect(remote.rtp)?;
        let mut keys = KeyListener::default();
        let telephone_event = remote.telephone_event;
        let listening = receiver.listen(Arc::clone(&pair.rtp), move |bytes, _, _| {
            let Some(packet) = Packet::parse(bytes) else {
                return;
            };
            if Some(packet.payload_type) == telephone_event
                && let Some(key) = keys.hear(packet.timestamp, packet.payload)
            {
                on_key(key);
            }
        })?;
        let numbers = Numbers {
            source: rand::random(),
            sequence: rand::random(),
            timestamp: rand::random(),
        };
        let mut stream = Stream::new(remote.codec, telephone_event, numbers);
        stream.append(program);
        let (finished, when) = oneshot::channel();
        let playing = Arc::new(Playing::default());
        playing.held.store(!remote.listens, Ordering::Relaxed);
        clock.play(Outgoing {
            stream,
            socket: Arc::clone(&pair.rtp),
            playing: Arc::clone(&playing),
            finished,
        });
        Ok((
            Self {
                playing,
                pair_rtp: Arc::clone(&pair.rtp),
                _listening: listening,
            },
            when,
        ))
    }

    /// Takes over what the peer has changed: where it listens, and whether it does.
    pub fn follow(&self, remote: &RemoteMedia) {
        self.playing.held.store(!remote.listens, Ordering::Relaxed);
        if remote.listens
            && let Err(error) = self.pair_rtp.connect(remote.rtp)
        {
            tracing::debug!(%error, "the peer has moved to an address that cannot be reached");
        }
    }

    pub fn stop(&self) {
        self.playing.stopped.store(true, Ordering::Relaxed);
    }

    pub fn facts(&self, codec: Codec) -> Facts {
        let load = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
        Facts {
            codec: Some(codec),
            packets_sent: load(&self.playing.packets),
            packets_late: load(&self.playing.late),
            worst_lateness: Duration::from_micros(load(&self.playing.worst_micros).into()),
        }
    }
}

impl Drop for Sounding {
    fn drop(&mut self) {
        self.stop();
    }
}
