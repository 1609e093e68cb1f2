//! The media of one call, both ways: from the description that is offered to the goodbye at the end.
//!
//! A caller offers, perhaps receives early media, is answered, and plays; a callee answers and may play. Both answer the changes that the
//! peer wants later. While the call lasts its owner must `watch`, which sends the reports and notices that the peer is quiet.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use super::engine::{Encryption, HeardKeys, MediaEngine, MediaError, MediaOptions, SymmetricRtp};
use super::inbound::{Inbound, InboundEvent, InboundParameters, OnInbound};
use super::inbound_handle::InboundHandle;
use super::paced_stream::{NewPlayback, PacedStream, StreamControl, Target};
use super::reporter::Reporter;
use super::rtp::Numbers;
use super::sockets::Sockets;
use super::srtp::RtpSealer;
use super::stats::MediaStats;
use super::stream::{PlaybackItem, Stream};
use crate::sdp::{self, LocalMedia, MasterKey, RemoteMedia, Suite};

/// What the owner of a session has to do something about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEnd {
    /// Nothing has come from the peer for some time: a hint that it may be gone, and no proof. Those who never speak, and those who send
    /// nothing while they are silent, are there all the same.
    Quiet,
    /// The same, and our packets come to a closed port.
    PortClosed,
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
    /// The sounds of what is played.
    to_play: Duration,
    reporter: Reporter,
    stopped: bool,
    /// When the owner was last told that the peer is quiet.
    told_quiet: Option<Instant>,
    /// The peer does not listen.
    held_since: Option<Instant>,
    /// Our last description.
    said: Option<String>,
}

/// A peer whose port is closed is asked after this time of silence, so that one that is only slow to open it is not.
const CLOSED_PORT: Duration = Duration::from_secs(1);
/// A peer that stays quiet and is there is asked again after so many times the time of silence.
const ASKED_AGAIN: u32 = 3;

impl MediaEngine {
    /// The media session of a new call. Nothing is sent or received before both sides have agreed. `on_inbound` runs on the thread that
    /// receives for all calls: it must be quick, and must not use the session.
    pub fn open(
        &self,
        options: MediaOptions,
        on_inbound: impl FnMut(InboundEvent<'_>) + Send + 'static,
    ) -> io::Result<MediaSession> {
        MediaSession::open(self.clone(), options, Box::new(on_inbound))
    }
}

impl MediaSession {
    fn open(
        engine: MediaEngine,
        mut options: MediaOptions,
        on_inbound: OnInbound,
    ) -> io::Result<Self> {
        let now = Instant::now();
        let bind = options.bind.unwrap_or(engine.config().bind);
        let sockets = Sockets::open(&engine, &options.sockets, bind)?;
        // Calls that share a socket are told apart by where the packets come from, which must be known before.
        if sockets.are_shared() {
            options.symmetric = SymmetricRtp::Off;
        }
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
            spare_codecs: options.codecs.clone(),
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
            to_play: Duration::ZERO,
            reporter: Reporter::new(numbers.source, numbers.timestamp, now),
            numbers: Some(numbers),
            engine,
            options,
            stopped: false,
            told_quiet: None,
            held_since: None,
            said: None,
        })
    }

    /// Our offer.
    pub fn offer(&mut self) -> String {
        let Ok((offer, ())) = self.say(|local| Ok::<_, Infallible>((sdp::offer(local), ())));
        offer
    }

    /// True if the peer has described its side.
    pub fn is_described(&self) -> bool {
        self.remote.is_some()
    }

    /// What we said last about our side; nothing changes by saying it again.
    pub fn said(&self) -> String {
        self.said.clone().unwrap_or_default()
    }

    /// A description that differs from the one before has a higher version (RFC 3264 section 8).
    fn say<T, E>(
        &mut self,
        describe: impl Fn(&LocalMedia) -> Result<(String, T), E>,
    ) -> Result<(String, T), E> {
        let mut described = describe(&self.local)?;
        if self.said.as_ref().is_some_and(|said| *said != described.0) {
            self.local.version += 1;
            described = describe(&self.local)?;
        }
        let (text, agreed) = described;
        self.said = Some(text.clone());
        Ok((text, agreed))
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
        if !std::mem::replace(&mut self.answered, true) {
            // Nobody holds a call that only rings.
            self.held_since = None;
        }
        self.settle(remote)
    }

    /// Answers an offer of the peer: its first one, or a change (hold, resume, another address) of what was agreed on.
    pub fn answer(&mut self, offer: &[u8]) -> Result<String, MediaError> {
        self.answered = true;
        self.agree(offer)
    }

    /// Answers a change of what was described for early media. Nothing is sent before the answer.
    pub fn answer_early(&mut self, offer: &[u8]) -> Result<String, MediaError> {
        self.agree(offer)
    }

    fn agree(&mut self, offer: &[u8]) -> Result<String, MediaError> {
        let before = (self.local.version, self.said.clone());
        let (answer, remote) = self.say(|local| sdp::answer(offer, local))?;
        if let Err(error) = self.settle(remote) {
            // It is refused, so nothing was said.
            (self.local.version, self.said) = before;
            return Err(error);
        }
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
            .with_packet_time(remote.packet_time)
            .with_key_timing(self.options.key_timing);
        stream.append(plan);
        self.to_play = plan.iter().map(sound_of).sum();
        let sealer = remote
            .keys
            .as_ref()
            .map(|keys| Box::new(RtpSealer::new(keys.suite, &keys.ours)));
        let (finished, when) = oneshot::channel();
        self.engine.pacer().play(PacedStream {
            stream,
            send_path: self.sockets.send_path(self.is_symmetric(), &self.target),
            sealer,
            control: Arc::clone(&self.control),
            finished,
        });
        Ok(when)
    }

    /// Plays something else from the next packet on, as long as something is being played. The receiver is as that of `play`.
    pub fn change(&mut self, plan: Vec<PlaybackItem>) -> oneshot::Receiver<Instant> {
        self.to_play += plan.iter().map(sound_of).sum::<Duration>();
        let (finished, when) = oneshot::channel();
        self.control.change(NewPlayback {
            items: plan,
            finished,
        });
        when
    }

    /// How long it takes to play these.
    pub fn length_of(&self, items: &[PlaybackItem]) -> Duration {
        let timing = self.options.key_timing;
        let samples = |item: &PlaybackItem| match item {
            PlaybackItem::Silence { frames } => *frames as usize * g711::FRAME_BYTES,
            PlaybackItem::Sound(sound) => sound.frames() * g711::FRAME_BYTES,
            PlaybackItem::Keys(keys) => {
                let key = usize::from(timing.tone_samples()) + timing.pause_bytes();
                keys.chars().count() * key
            }
        };
        let samples: usize = items.iter().map(samples).sum();
        time_of(u32::try_from(samples).unwrap_or(u32::MAX))
    }

    /// Whether a sound has begun: silence and keys of ours are none.
    pub fn has_sounded(&self) -> bool {
        self.control.sound_octets.load(Ordering::Relaxed) > 0
    }

    /// Sends reports when they are due. Comes back when the peer is quiet, where the options want to know it, or when it has held us for
    /// longer than it may. Dropping it half-way and calling it again loses nothing.
    pub async fn watch(&mut self) -> WatchEnd {
        loop {
            let now = Instant::now();
            if self.reporter.due().is_some_and(|due| due <= now) {
                self.report(now, false);
            }
            let silence = self.silence();
            if silence.is_some_and(|silence| silence.ends <= now) {
                self.told_quiet = Some(now);
                return WatchEnd::Quiet;
            }
            let released =
                (self.held_since.zip(self.options.hold_limit)).map(|(since, limit)| since + limit);
            if released.is_some_and(|time| time <= now) {
                return WatchEnd::HeldTooLong;
            }
            let hints = silence.and_then(|silence| silence.hints);
            let times = [
                self.reporter.due(),
                released,
                silence.map(|it| it.ends),
                hints,
            ];
            let next = times.into_iter().flatten().filter(|time| *time > now).min();
            let refused = Arc::clone(&self.control.refused);
            if hints.is_none_or(|since| since > now) {
                forget(&refused);
            }
            tokio::select! {
                () = until(next) => {}
                () = refused.notified(), if hints.is_some_and(|since| since <= now) => {
                    self.told_quiet = Some(Instant::now());
                    return WatchEnd::PortClosed;
                }
            }
        }
    }

    /// The ears listen from now on and know nothing yet, or listen no more.
    pub fn set_ears(&self, listens: bool) {
        self.inbound.set_ears(listens);
    }

    /// What has come from the peer.
    pub fn inbound(&self) -> &InboundHandle {
        &self.inbound
    }

    /// Waits until everything that has arrived has been handled: a machine that is busy may need a while, and what is not read before the
    /// end is lost.
    pub async fn catch_up(&self, limit: Duration) {
        let handled = async {
            while !self.sockets.have_handled_all() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        // A peer that never stops sending is not waited for.
        let _ = tokio::time::timeout(limit, handled).await;
    }

    /// Ends the session, with a goodbye where something was agreed on.
    pub fn stop(&mut self) {
        self.control.signals.stop();
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
            to_play: self.to_play,
            played: time_of(load(&self.control.sound_octets)),
            packets_sent: load(&self.control.packets),
            packets_late: load(&self.control.late),
            worst_lateness: Duration::from_micros(load(&self.control.worst_micros).into()),
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
        self.control.signals.speak(remote.codec);
        self.control.signals.hold(!remote.listens);
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

    fn is_symmetric(&self) -> bool {
        self.options.symmetric != SymmetricRtp::Off
    }

    /// Sends to the addresses that the peer describes, and receives from them.
    fn point(&mut self, remote: &RemoteMedia, now: Instant) -> io::Result<()> {
        let addresses = |remote: &RemoteMedia| (remote.rtp, remote.rtcp);
        let moved = self.remote.as_ref().map(addresses) != Some(addresses(remote));
        if moved && !self.is_symmetric() {
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
            symmetric: self.options.believed(),
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
            &self.control.refused,
            self.answered && remote.rtcp_mux,
        )
    }

    /// A stream that plays cannot change its cipher, and changes its codec only where the peer does not want the one that it has.
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

    /// The time in which nothing comes, if it matters.
    fn silence(&self) -> Option<Silence> {
        let limit = self.options.quiet_after.filter(|_| self.answered)?;
        let last = self.inbound.last_received()?;
        Some(match self.told_quiet {
            Some(told) if told >= last => Silence {
                ends: told + limit * ASKED_AGAIN,
                hints: None,
            },
            _ => Silence {
                ends: last + limit,
                hints: Some(last + CLOSED_PORT.min(limit)),
            },
        })
    }
}

/// A time in which nothing comes from the peer.
#[derive(Debug, Clone, Copy)]
struct Silence {
    /// Then the peer is quiet.
    ends: Instant,
    /// From then on a closed port counts.
    hints: Option<Instant>,
}

/// What was refused while the peer was there means nothing later.
fn forget(refused: &Notify) {
    pin!(refused.notified()).enable();
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// How long the sound of an item lasts.
fn sound_of(item: &PlaybackItem) -> Duration {
    match item {
        PlaybackItem::Sound(sound) => {
            let frames = u32::try_from(sound.frames()).unwrap_or(u32::MAX);
            Duration::from_millis(u64::from(frames) * u64::from(g711::FRAME_MILLIS))
        }
        PlaybackItem::Silence { .. } | PlaybackItem::Keys(_) => Duration::ZERO,
    }
}

/// How long so many bytes of sound last: each is a sample.
fn time_of(octets: u32) -> Duration {
    Duration::from_micros(u64::from(octets) * 1_000_000 / u64::from(g711::RATE))
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
