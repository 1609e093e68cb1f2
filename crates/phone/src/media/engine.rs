//! What all calls share: the pacer, the receiver, and the ports.

use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use supervisor::Supervisor;
use thiserror::Error;

use super::dtmf::KeyTiming;
use super::latch::Believed;
use super::pacer::{PaceCounts, Pacer};
use super::ports::{EXPEDITED, Ports, RTP_BUFFER};
use super::receiver::RtpReceiver;
use super::shared::SharedLine;
use crate::sdp::SdpError;
use g711::Codec;

#[derive(Debug, Clone)]
pub struct MediaConfig {
    pub bind: IpAddr,
    /// The address that peers send to, where it differs from the one that we are bound to.
    pub advertised: Option<IpAddr>,
    pub ports: RangeInclusive<u16>,
    /// The mark on our packets (RFC 2474); `None` leaves it to the system.
    pub dscp: Option<u8>,
    /// How many bytes the kernel keeps of each call that we have not read.
    pub rtp_buffer: usize,
}

impl MediaConfig {
    /// Packets are marked as voice.
    pub fn new(bind: IpAddr, ports: RangeInclusive<u16>) -> Self {
        Self {
            bind,
            advertised: None,
            ports,
            dscp: Some(EXPEDITED),
            rtp_buffer: RTP_BUFFER,
        }
    }
}

/// How one call sends and receives sound: mostly settings of its trunk.
#[derive(Debug, Clone)]
pub struct MediaOptions {
    /// In the order of preference.
    pub codecs: Vec<Codec>,
    pub encryption: Encryption,
    pub sockets: SocketChoice,
    /// Offer RTCP on the port of RTP (RFC 5761).
    pub rtcp_mux: bool,
    /// The peer may be behind a NAT: believe its first packets rather than its description. Not with a shared line.
    pub symmetric: SymmetricRtp,
    /// The host that we signal with.
    pub sip_peer: Option<IpAddr>,
    /// A peer from which nothing at all has come for this long is to be asked whether it is still there.
    pub quiet_after: Option<Duration>,
    /// How long the peer may hold us.
    pub hold_limit: Option<Duration>,
    pub key_timing: KeyTiming,
    pub heard_keys: HeardKeys,
    /// The addresses to bind and to advertise, where a trunk has its own. Not with a shared line.
    pub bind: Option<IpAddr>,
    pub advertised: Option<IpAddr>,
}

impl Default for MediaOptions {
    fn default() -> Self {
        Self {
            codecs: Codec::ALL.to_vec(),
            encryption: Encryption::Off,
            sockets: SocketChoice::Own,
            rtcp_mux: true,
            symmetric: SymmetricRtp::Off,
            sip_peer: None,
            quiet_after: None,
            hold_limit: None,
            key_timing: KeyTiming::default(),
            heard_keys: HeardKeys::PacketsOrTones,
            bind: None,
            advertised: None,
        }
    }
}

impl MediaOptions {
    /// Whose packets may show where the peer is; `None` where its description alone counts.
    pub(super) fn believed(&self) -> Option<Believed> {
        match self.symmetric {
            SymmetricRtp::Off => None,
            SymmetricRtp::Peer => Some(Believed::Hosts {
                sip_peer: self.sip_peer,
            }),
            SymmetricRtp::Any => Some(Believed::Anybody),
        }
    }
}

/// Whether RTP goes to where the peer's packets come from (RFC 4961).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymmetricRtp {
    Off,
    /// If they come from the host of its description, or from the one that we signal with.
    Peer,
    /// Wherever they come from.
    Any,
}

/// Encryption is never optional: a peer that does not agree is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    Off,
    /// SRTP, the keys in the session description (RFC 4568).
    Sdes,
}

/// As what the peer's keys are heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeardKeys {
    /// Packets (telephone-event, RFC 4733).
    Packets,
    /// Packets where both agree on them, and otherwise tones in the sound.
    PacketsOrTones,
    /// Tones: telephone-event is neither offered nor taken.
    Tones,
}

#[derive(Debug, Clone)]
pub enum SocketChoice {
    /// A pair of ports for this call.
    Own,
    /// The ports of its trunk.
    Shared(Arc<SharedLine>),
}

#[derive(Debug, Error)]
pub enum MediaError {
    #[error("the range of RTP ports {0:?} holds no even port with the odd one after it")]
    Ports(RangeInclusive<u16>),
    #[error(transparent)]
    Description(#[from] SdpError),
    #[error("nothing is agreed on yet")]
    NotAgreed,
    #[error("a session plays once")]
    PlayedBefore,
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[derive(Debug)]
struct Parts {
    pacer: Pacer,
    receiver: RtpReceiver,
    ports: Ports,
    config: MediaConfig,
}

/// The handle; threads end when all handles and all sessions are gone.
#[derive(Debug, Clone)]
pub struct MediaEngine(Arc<Parts>);

impl MediaEngine {
    /// Starts the two threads, which `supervisor` knows as `pacer` and `receiver`.
    pub fn start(supervisor: &Supervisor, config: &MediaConfig) -> Result<Self, MediaError> {
        let ports =
            Ports::new(&config.ports).ok_or_else(|| MediaError::Ports(config.ports.clone()))?;
        Ok(Self(Arc::new(Parts {
            pacer: Pacer::start(supervisor)?,
            receiver: RtpReceiver::start(supervisor)?,
            ports: ports.marking(config.dscp).buffering(config.rtp_buffer),
            config: config.clone(),
        })))
    }

    /// How well the packets of all calls leave.
    pub fn pace(&self) -> &Arc<PaceCounts> {
        self.0.pacer.counts()
    }

    /// A pair of ports for all calls of a trunk.
    pub fn shared_line(&self) -> io::Result<Arc<SharedLine>> {
        let line = SharedLine::open(self.ports(), self.receiver(), self.config().bind)?;
        Ok(Arc::new(line))
    }

    pub(super) fn pacer(&self) -> &Pacer {
        &self.0.pacer
    }

    pub(super) fn receiver(&self) -> &RtpReceiver {
        &self.0.receiver
    }

    pub(super) fn ports(&self) -> &Ports {
        &self.0.ports
    }

    pub(super) fn config(&self) -> &MediaConfig {
        &self.0.config
    }
}
