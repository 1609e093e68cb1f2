//! The media of one call, both ways: from the description that is offered to the goodbye at the end.
//!
//! A caller offers, perhaps receives early media, is answered, and plays; a callee answers and may play. Both answer the changes that the
//! peer wants later. While the call lasts its owner must `watch`, which sends the reports and notices that the peer has vanished.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::engine::{Encryption, HeardKeys, MediaEngine, MediaError, MediaOptions};
use super::inbound::{Inbound, InboundParameters, OnInbound};
use super::inbound_handle::InboundHandle;
use super::paced_stream::{PacedStream, StreamControl, Target};
use super::reporter::Reporter;
use super::rtp::Numbers;
use super::sockets::Sockets;
use super::srtp::{MasterKey, RtpSealer, Suite};
use super::stats::MediaStats;
use super::stream::{PlaybackItem, Stream};
use crate::sdp::{self, LocalMedia, RemoteMedia};

/// Why there is no use in going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEnd {
    /// The peer has vanished.
    Vanished,
    /// The peer has not listened for too long.
    HeldTooLong,
}

/// It ends, with a goodbye, when this is dropped.
#[derive(Debug)]
pub struct MediaSession {
    engine: MediaEngine,
    options: MediaOptions,
    local: LocalMedia,
    remote: Option<RemoteMedia>,
    answered: bool,
    sockets: Sockets,
    /// The address that our packets go to.
    target: Target,
    inbound: InboundHandle,
    /// Taken by the stream that is played: two streams with the same numbers would have the same key stream.
    numbers: Option<Numbers>,
    control: Arc<StreamControl>,
    reporter: Reporter,
    stopped: bool,
    vanished: bool,
    /// The peer does not listen.
    held_since: Option<Instant>,
}

impl MediaSession {
    pub(super) fn open(
        engine: MediaEngine,
        mut options: MediaOptions,
        on_inbound: OnInbound,
    ) -> io::Result<Self> {
        let now = Instant::now();
        let bind = options.bind.unwrap_or(engine.config().bind);
        let sockets = Sockets::open(&engine, &options.sockets, bind)?;
        // Calls that share a socket are told apart by where the packets come from, which must be known before.
        options.symmetric &= !sockets.are_shared();
        let config = engine.config();
        let keys = match options.encryption {
            Encryption::Off => vec![],
            Encryption::Sdes => Suite::ALL
                .into_iter()
                .map(|suite| Ok((suite, MasterKey::random()?)))
                .collect::<io::Result<_>>()?,
        };
        let local = LocalMedia {
            address: options
                .advertised
                .or(options.bind)
                .or(config.advertised)
                .unwrap_or(config.bind),
            port: sockets.port(),
            codecs: options.codecs.clone(),
            telephone_event: options.heard_keys != HeardKeys::Tones,
            keys,
            rtcp_mux: options.rtcp_mux,
            session: rand::random::<u32>().into(),
            version: 1,
        };
        let numbers = Numbers::random();
        let nowhere = SocketAddr::new(bind, 0);
        Ok(Self {
            local,
            remote: None,
            answered: false,
            sockets,
            target: Arc::new(Mutex::new(nowhere)),
            inbound: InboundHandle::new(Inbound::new(now, numbers.source, on_inbound)),
            control: Arc::new(StreamControl::default()),
            reporter: Reporter::new(numbers.source, numbers.timestamp, now),
            numbers: Some(numbers),
            engine,
            options,
            stopped: false,
            vanished: false,
            held_since: None,
        })
    }

    /// Our offer.
    pub fn offer(&self) -> String {
        sdp::offer(&self.local)
    }

    /// Early media is received and counted; nothing is sent, and keys mean nothing yet.
    pub fn listen_early(&mut self, description: &[u8]) -> Result<(), MediaError> {
        let remote = sdp::read_answer(description, &self.local)?;
        self.settle(remote)
    }

    /// Takes the answer to our offer. An empty one means that the description of the early media stands.
    pub fn answered(&mut self, description: &[u8]) -> Result<(), MediaError> {
        let remote = match &self.remote {
            Some(early) if description.is_empty() => early.clone(),
            _ => sdp::read_answer(description, &self.local)?,
        };
        self.answered = true;
        self.settle(remote)
    }

    /// Answers an offer of the peer: its first one, or a change (hold, resume, another address) of what was agreed on.
    pub fn answer(&mut self, offer: &[u8]) -> Result<String, MediaError> {
        if self.remote.is_some() {
            self.local.version += 1;
        }
        let (answer, remote) = sdp::answer(offer, &self.local)?;
        self.answered = true;
        self.settle(remote)?;
        Ok(answer)
    }

    /// Plays from now on, once a call. The receiver gets the time of the last packet, or an error if the stream ends before it.
    pub fn play(
        &mut self,
        plan: &[PlaybackItem],
    ) -> Result<oneshot::Receiver<Instant>, MediaError> {
        let remote = self.remote.as_ref().ok_or(MediaError::NotAgreed)?;
        let numbers = self.numbers.take().ok_or(MediaError::PlayedBefore)?;
        let mut stream = Stream::new(remote.codec, remote.telephone_event, numbers)
            .with_key_timing(self.options.key_timing);
        stream.append(plan);
        let sealer = remote
            .keys
            .as_ref()
            .map(|keys| Box::new(RtpSealer::new(keys.suite, &keys.ours)));
        let (finished, when) = oneshot::channel();
        self.engine.pacer().play(PacedStream {
            stream,
            send_path: self.sockets.send_path(self.options.symmetric, &self.target),
            sealer,
            control: Arc::clone(&self.control),
            finished,
        });
        Ok(when)
    }

    /// Sends reports when they are due. Comes back when the peer has vanished, which is noticed only where the options say so, and only
    /// while the peer should be speaking, or when it has held us for longer than it may. Dropping it half-way and calling it again loses
    /// nothing.
    pub async fn watch(&mut self) -> WatchEnd {
        loop {
            let now = Instant::now();
            if self.reporter.due().is_some_and(|due| due <= now) {
                self.report(now, false);
            }
            let vanishes = self.vanishes();
            if vanishes.is_some_and(|time| time <= now) {
                self.vanished = true;
                return WatchEnd::Vanished;
            }
            let released =
                (self.held_since.zip(self.options.hold_limit)).map(|(since, limit)| since + limit);
            if released.is_some_and(|time| time <= now) {
                return WatchEnd::HeldTooLong;
            }
            let times = self.reporter.due().into_iter();
            match times.chain(vanishes).chain(released).min() {
                Some(time) => tokio::time::sleep_until(time.into()).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Ends the session, with a goodbye where something was agreed on.
    pub fn stop(&mut self) {
        self.control.stopped.store(true, Ordering::Relaxed);
        if !std::mem::replace(&mut self.stopped, true) && self.reporter.due().is_some() {
            self.report(Instant::now(), true);
        }
        self.sockets.stop_listening();
    }

    /// The figures until now.
    pub fn stats(&self) -> MediaStats {
        let load = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
        let mut stats = MediaStats {
            peer: self.remote.as_ref().map(|remote| remote.rtp),
            packets_sent: load(&self.control.packets),
            packets_late: load(&self.control.late),
            worst_lateness: Duration::from_micros(load(&self.control.worst_micros).into()),
            peer_vanished: self.vanished,
            ..MediaStats::default()
        };
        self.inbound.with(|inbound| inbound.add_to(&mut stats));
        stats
    }

    /// Takes over what the peer says about itself. If that fails, everything stays as it was.
    fn settle(&mut self, mut remote: RemoteMedia) -> Result<(), MediaError> {
        let now = Instant::now();
        if !remote.rtp.ip().is_unspecified() {
            self.point(&remote, now)?;
        } else if let Some(known) = &self.remote {
            // Held in the old way, without an address: the peer is still where it was.
            (remote.rtp, remote.rtcp) = (known.rtp, known.rtcp);
        }
        self.control.held.store(!remote.listens, Ordering::Relaxed);
        self.held_since = match self.held_since {
            _ if remote.listens => None,
            since => since.or(Some(now)),
        };
        if self.answered {
            self.keep_to(&remote);
            let key = remote.keys.as_ref().map(|keys| &keys.ours);
            self.reporter.start(now, key);
        }
        self.remote = Some(remote);
        Ok(())
    }

    /// Sends to the addresses that the peer describes, and receives from them.
    fn point(&mut self, remote: &RemoteMedia, now: Instant) -> io::Result<()> {
        let addresses = |remote: &RemoteMedia| (remote.rtp, remote.rtcp);
        let moved = self.remote.as_ref().map(addresses) != Some(addresses(remote));
        if moved && !self.options.symmetric {
            self.sockets.point(remote, &self.inbound)?;
        }
        let keys = remote.keys.as_ref();
        let parameters = InboundParameters {
            rtp: remote.rtp,
            rtcp: remote.rtcp,
            codec: remote.codec,
            telephone_event: remote.telephone_event,
            inband_keys: self.options.heard_keys != HeardKeys::Packets,
            key: keys.map(|keys| (keys.suite, keys.theirs.clone())),
            symmetric: self.options.symmetric,
            answered: self.answered,
        };
        // Under one lock, so that an address that is learned at once is not overwritten.
        self.inbound.with(|inbound| {
            let learns = inbound.apply(parameters, now);
            if learns {
                self.sockets.open_to_anybody()?;
            }
            if learns || moved {
                *lock_target(&self.target) = remote.rtp;
            }
            io::Result::Ok(())
        })?;
        self.sockets.listen(
            self.engine.receiver(),
            &self.inbound,
            &self.target,
            self.answered && remote.rtcp_mux,
        )
    }

    /// A stream that plays cannot change its codec or its cipher: later offers must have them.
    fn keep_to(&mut self, remote: &RemoteMedia) {
        self.local.codecs = vec![remote.codec];
        if let Some(keys) = &remote.keys {
            self.local.keys.retain(|(suite, _)| *suite == keys.suite);
        }
    }

    fn report(&mut self, now: Instant, goodbye: bool) {
        let (received, to) = self
            .inbound
            .with(|inbound| (inbound.report(now), inbound.rtcp()));
        let packet = self.reporter.write(now, &self.control, received, goodbye);
        let muxed = self.remote.as_ref().is_some_and(|remote| remote.rtcp_mux);
        if let Some(to) = to {
            self.sockets.send_report(&packet, to, muxed);
        }
    }

    /// When the peer will have been silent for too long, if it should be speaking.
    fn vanishes(&self) -> Option<Instant> {
        let remote = self.remote.as_ref().filter(|_| self.answered)?;
        let limit = self.options.vanished_after?;
        if !(remote.listens && remote.speaks && self.sockets.can_receive()) {
            return None;
        }
        Some(self.inbound.last_received()? + limit)
    }
}

fn lock_target(target: &Target) -> MutexGuard<'_, SocketAddr> {
    target
        .lock()
        .expect("nothing panics while it changes an address")
}

impl Drop for MediaSession {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests;
