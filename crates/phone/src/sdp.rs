//! What two parties agree on about the sound: offer and answer (RFC 3264) for one audio stream.
//!
//! Deliberately small: one `audio` line with G.711 and telephone-event, RTP/AVP or (SDES) RTP/SAVP. Further media lines of a peer's offer are
//! refused by port 0, as RFC 3264 wants it.

use std::net::{IpAddr, SocketAddr};

use ezk_sdp_types::{
    Direction, MediaDescription, MediaType, SessionDescription, TaggedAddress, TransportProtocol,
};
use thiserror::Error;

use g711::Codec;
pub use packet_time::PacketTime;
use parse::{Description, MediaLine, parse};
pub(crate) use srtp_keys::{KEY_BYTES, SALT_BYTES};
pub use srtp_keys::{MasterKey, Suite};
use write::{StreamLines, session_lines, suite_name};

/// Our payload type for telephone-event where we choose it.
const TELEPHONE_EVENT: u8 = 101;

/// Our side of a stream.
#[derive(Debug, Clone)]
pub struct LocalMedia {
    /// What the peer shall send to; behind a NAT not what the socket is bound to.
    pub address: IpAddr,
    pub port: u16,
    /// In the order of preference.
    pub codecs: Vec<Codec>,
    /// Taken where the peer wants none of those, and not offered.
    pub spare_codecs: Vec<Codec>,
    pub telephone_event: bool,
    /// Our keys, one for each suite that we can do; none where the stream is not to be encrypted.
    pub keys: Vec<(Suite, MasterKey)>,
    /// RTCP may share the port of RTP (RFC 5761); otherwise it has the next one.
    pub rtcp_mux: bool,
    /// Identifies the session in the origin line; the version grows with each change.
    pub session: u64,
    pub version: u64,
}

/// The peer's side, as far as we understood and share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteMedia {
    pub rtp: SocketAddr,
    pub rtcp: SocketAddr,
    /// RTCP shares the port of RTP on both sides.
    pub rtcp_mux: bool,
    pub codec: Codec,
    /// The payload type for DTMF, where the peer takes it.
    pub telephone_event: Option<u8>,
    /// How much sound the peer wants in a packet.
    pub packet_time: PacketTime,
    /// The peer wants to hear us now; false while we are on hold.
    pub listens: bool,
    /// The peer means to send sound.
    pub speaks: bool,
    pub keys: Option<AgreedKeys>,
}

/// How both directions of a stream are encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgreedKeys {
    pub suite: Suite,
    pub ours: MasterKey,
    pub theirs: MasterKey,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SdpError {
    #[error("the session description cannot be read: {0}")]
    Unreadable(String),
    #[error("there is no audio stream in it")]
    NoAudio,
    #[error("there is no codec that both sides know")]
    NoCommonCodec,
    #[error("the address of the stream is missing or is a name")]
    NoAddress,
    #[error("encryption is wanted by one side only")]
    Encryption,
}

/// What we propose.
pub fn offer(local: &LocalMedia) -> String {
    let stream = StreamLines {
        codecs: &local.codecs,
        telephone_event: local.telephone_event.then_some(TELEPHONE_EVENT),
        direction: Direction::SendRecv,
        rtcp_mux: local.rtcp_mux,
        keys: (1..)
            .zip(local.keys.iter().map(|(suite, key)| (*suite, key)))
            .collect(),
    };
    session_lines(local) + &stream.write(local.port)
}

/// Reads the answer to our offer.
pub fn read_answer(text: &[u8], local: &LocalMedia) -> Result<RemoteMedia, SdpError> {
    let session = parse(text)?.session;
    let (_, audio) = audio(&session)?;
    read(&session, audio, local).map(|(remote, _)| remote)
}

/// Answers a peer's offer. Returns the answer and what was agreed on.
pub fn answer(text: &[u8], local: &LocalMedia) -> Result<(String, RemoteMedia), SdpError> {
    let Description { session, lines } = parse(text)?;
    let (place, audio) = audio(&session)?;
    let (remote, tag) = read(&session, audio, local)?;
    let keys = remote.keys.as_ref();
    let ours = StreamLines {
        codecs: &[remote.codec],
        telephone_event: remote.telephone_event,
        direction: audio.direction.flipped(),
        rtcp_mux: remote.rtcp_mux,
        keys: keys
            .map(|keys| (tag, (keys.suite, &keys.ours)))
            .into_iter()
            .collect(),
    }
    .write(local.port);
    // Every media line of the offer is answered, in its place; what we do not take is refused by port 0.
    let lines = lines.into_iter().map(|line| match line {
        MediaLine::Audio(number) if number == place => ours.clone(),
        MediaLine::Audio(number) => {
            let stream = session.media_descriptions.get(number);
            stream.map_or_else(String::new, |stream| {
                let format = stream.media.fmts.first().copied().unwrap_or(0);
                format!("m=audio 0 {} {format}\r\n", stream.media.proto)
            })
        }
        MediaLine::Other { refusal } => refusal,
    });
    Ok((session_lines(local) + &lines.collect::<String>(), remote))
}

/// The first stream that we can take, and its place.
fn audio(session: &SessionDescription) -> Result<(usize, &MediaDescription), SdpError> {
    let mut streams = session.media_descriptions.iter().enumerate();
    streams
        .find(|(_, stream)| {
            let protocol = &stream.media.proto;
            stream.media.media_type == MediaType::Audio
                && stream.media.port != 0
                && matches!(
                    protocol,
                    TransportProtocol::RtpAvp | TransportProtocol::RtpSavp
                )
        })
        .ok_or(SdpError::NoAudio)
}

/// The peer's side, and the tag of the crypto line that was chosen.
fn read(
    session: &SessionDescription,
    audio: &MediaDescription,
    local: &LocalMedia,
) -> Result<(RemoteMedia, u32), SdpError> {
    let connection = audio
        .connection
        .as_ref()
        .or(session.connection.as_ref())
        .ok_or(SdpError::NoAddress)?;
    let address = ip(&connection.address).ok_or(SdpError::NoAddress)?;
    let codec = common_codec(audio, &local.codecs)
        .or_else(|| common_codec(audio, &local.spare_codecs))
        .ok_or(SdpError::NoCommonCodec)?;
    let telephone_event = audio.rtpmap.iter().find(|map| {
        map.encoding.eq_ignore_ascii_case("telephone-event")
            && map.clock_rate == 8000
            && audio.media.fmts.contains(&map.payload)
    });
    let encrypted = audio.media.proto == TransportProtocol::RtpSavp;
    let keys = match (local.keys.is_empty(), encrypted) {
        (true, false) => None,
        (false, true) => Some(usable_keys(audio, local).ok_or(SdpError::Encryption)?),
        _ => return Err(SdpError::Encryption),
    };
    let rtcp_mux = local.rtcp_mux && audio.rtcp_mux;
    let rtp = SocketAddr::new(address, audio.media.port);
    // Where the stream says nothing, the library has taken over what the session says.
    let direction = audio.direction;
    // The old way to hold (RFC 2543) is the address 0.0.0.0.
    let is_there = !address.is_unspecified();
    let tag = keys.as_ref().map_or(1, |(tag, _)| *tag);
    let remote = RemoteMedia {
        rtp,
        rtcp: if rtcp_mux {
            rtp
        } else {
            rtcp_address(audio, rtp)
        },
        rtcp_mux,
        codec,
        telephone_event: telephone_event
            .map(|map| map.payload)
            .filter(|_| local.telephone_event),
        packet_time: PacketTime::of(millis(audio, "ptime"), millis(audio, "maxptime")),
        listens: is_there && matches!(direction, Direction::SendRecv | Direction::RecvOnly),
        speaks: is_there && matches!(direction, Direction::SendRecv | Direction::SendOnly),
        keys: keys.map(|(_, keys)| keys),
    };
    Ok((remote, tag))
}

/// The milliseconds that an attribute says.
fn millis(audio: &MediaDescription, name: &str) -> Option<u16> {
    let mut attributes = audio.attributes.iter();
    let attribute = attributes.find(|attribute| attribute.name == name)?;
    attribute.value.as_ref()?.trim().parse().ok()
}

/// The first of the peer's formats that we know. In an answer it is the one that the peer means; in an offer it is what the peer prefers.
fn common_codec(audio: &MediaDescription, ours: &[Codec]) -> Option<Codec> {
    audio.media.fmts.iter().find_map(|format| {
        let mapped = audio.rtpmap.iter().find(|map| map.payload == *format);
        let codec = match mapped {
            Some(map) if map.clock_rate == 8000 => Codec::by_name(&map.encoding)?,
            Some(_) => return None,
            None => Codec::ALL
                .into_iter()
                .find(|codec| codec.payload_type() == *format)?,
        };
        // Only under its static number: packets carry that one.
        (ours.contains(&codec) && codec.payload_type() == *format).then_some(codec)
    })
}

/// An address that one party has; a name, and a group that others listen to, are none.
fn ip(address: &TaggedAddress) -> Option<IpAddr> {
    match address {
        TaggedAddress::IP4(address) => Some(IpAddr::V4(*address)),
        TaggedAddress::IP6(address) => Some(IpAddr::V6(*address)),
        _ => None,
    }
    .filter(|address| !address.is_multicast())
}

/// The next port, unless the peer says otherwise (RFC 3605).
fn rtcp_address(audio: &MediaDescription, rtp: SocketAddr) -> SocketAddr {
    match &audio.rtcp {
        Some(rtcp) => {
            let address = rtcp.address.as_ref().and_then(ip);
            SocketAddr::new(address.unwrap_or(rtp.ip()), rtcp.port)
        }
        None => SocketAddr::new(rtp.ip(), rtp.port().saturating_add(1)),
    }
}

/// The first of the peer's keys that we can use, with the tag of its line. Each suite stands once in our own list, so that it tells the line of
/// ours that an answer means, even where the peer got the tag wrong.
fn usable_keys(audio: &MediaDescription, local: &LocalMedia) -> Option<(u32, AgreedKeys)> {
    audio.crypto.iter().find_map(|line| {
        let (suite, ours) = local
            .keys
            .iter()
            .find(|(suite, _)| suite_name(*suite) == line.suite)?;
        let theirs = MasterKey::from_base64(&line.keys.first()?.key_and_salt)?;
        let (suite, ours) = (*suite, ours.clone());
        Some((
            line.tag,
            AgreedKeys {
                suite,
                ours,
                theirs,
            },
        ))
    })
}

mod packet_time;
mod parse;
mod srtp_keys;
#[cfg(test)]
mod tests;
mod write;
