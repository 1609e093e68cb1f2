//! What two parties agree on about the sound: offer and answer (RFC 3264) for one audio stream.
//!
//! Deliberately small: one `audio` line with G.711 and telephone-event, RTP/AVP or (SDES) RTP/SAVP. Further media lines of a peer's offer are
//! refused by port 0, as RFC 3264 wants it.

use std::net::{IpAddr, SocketAddr};

use bytesstr::BytesStr;
use ezk_sdp_types::{
    Direction, MediaDescription, MediaType, SessionDescription, SrtpSuite, TaggedAddress,
    TransportProtocol,
};
use thiserror::Error;

use crate::codec::{Codec, FRAME_MILLIS};

/// Our payload type for telephone-event where we choose it.
const TELEPHONE_EVENT: u8 = 101;
const SUITE: SrtpSuite = SrtpSuite::AES_CM_128_HMAC_SHA1_80;

/// Our side of a stream.
#[derive(Debug, Clone)]
pub struct LocalMedia {
    /// What the peer shall send to; behind a NAT not what the socket is bound to.
    pub address: IpAddr,
    pub port: u16,
    /// In the order of preference.
    pub codecs: Vec<Codec>,
    pub telephone_event: bool,
    /// Master key and salt in Base64, where the stream is to be encrypted.
    pub srtp_key: Option<String>,
    /// Identifies the session in the origin line; the version grows with each change.
    pub session: u64,
    pub version: u64,
}

/// The peer's side, as far as we understood and share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteMedia {
    pub rtp: SocketAddr,
    pub rtcp: SocketAddr,
    pub codec: Codec,
    /// The payload type for DTMF, where the peer takes it.
    pub telephone_event: Option<u8>,
    /// The peer wants to hear us now; false while we are on hold.
    pub listens: bool,
    pub srtp_key: Option<String>,
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
    let telephone_event = local.telephone_event.then_some(TELEPHONE_EVENT);
    session_lines(local)
        + &stream_lines(
            local,
            &local.codecs,
            telephone_event,
            Direction::SendRecv,
            1,
        )
}

/// Reads the answer to our offer.
pub fn read_answer(text: &[u8], local: &LocalMedia) -> Result<RemoteMedia, SdpError> {
    let session = parse(text)?;
    let audio = audio(&session)?;
    read(&session, audio, local).map(|(remote, _)| remote)
}

/// Answers a peer's offer, and says what was agreed on.
pub fn answer(text: &[u8], local: &LocalMedia) -> Result<(String, RemoteMedia), SdpError> {
    let session = parse(text)?;
    let audio = audio(&session)?;
    let (remote, tag) = read(&session, audio, local)?;
    let direction = direction_of(&session, audio).flipped();
    let ours = stream_lines(
        local,
        &[remote.codec],
        remote.telephone_event,
        direction,
        tag,
    );
    // Every media line of the offer is answered, in its place; what we do not take is refused by port 0.
    let lines = session.media_descriptions.iter().map(|line| {
        let media = &line.media;
        if std::ptr::eq(line, audio) {
            ours.clone()
        } else {
            let format = media.fmts.first().copied().unwrap_or(0);
            format!("m={} 0 {} {format}\r\n", media.media_type, media.proto)
        }
    });
    Ok((session_lines(local) + &lines.collect::<String>(), remote))
}

fn parse(text: &[u8]) -> Result<SessionDescription, SdpError> {
    let text =
        std::str::from_utf8(text).map_err(|error| SdpError::Unreadable(error.to_string()))?;
    SessionDescription::parse(&BytesStr::from(text))
        .map_err(|error| SdpError::Unreadable(error.to_string()))
}

fn audio(session: &SessionDescription) -> Result<&MediaDescription, SdpError> {
    let mut lines = session.media_descriptions.iter();
    lines
        .find(|line| {
            let protocol = &line.media.proto;
            line.media.media_type == MediaType::Audio
                && line.media.port != 0
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
    let address = match connection.address {
        TaggedAddress::IP4(address) => IpAddr::V4(address),
        TaggedAddress::IP6(address) => IpAddr::V6(address),
        _ => return Err(SdpError::NoAddress),
    };
    let codec = common_codec(audio, &local.codecs).ok_or(SdpError::NoCommonCodec)?;
    let telephone_event = audio.rtpmap.iter().find(|map| {
        map.encoding.eq_ignore_ascii_case("telephone-event")
            && map.clock_rate == 8000
            && audio.media.fmts.contains(&map.payload)
    });
    let crypto = match (
        &local.srtp_key,
        audio.media.proto == TransportProtocol::RtpSavp,
    ) {
        (None, false) => None,
        (Some(_), true) => Some(usable_key(audio).ok_or(SdpError::Encryption)?),
        _ => return Err(SdpError::Encryption),
    };
    let rtcp_port = match &audio.rtcp {
        Some(rtcp) => rtcp.port,
        None if audio.rtcp_mux => audio.media.port,
        None => audio.media.port.saturating_add(1),
    };
    let direction = direction_of(session, audio);
    let tag = crypto.as_ref().map_or(1, |(tag, _)| *tag);
    let remote = RemoteMedia {
        rtp: SocketAddr::new(address, audio.media.port),
        rtcp: SocketAddr::new(address, rtcp_port),
        codec,
        telephone_event: telephone_event
            .map(|map| map.payload)
            .filter(|_| local.telephone_event),
        // The old way to hold (RFC 2543) is the address 0.0.0.0.
        listens: matches!(direction, Direction::SendRecv | Direction::RecvOnly)
            && !address.is_unspecified(),
        srtp_key: crypto.map(|(_, key)| key),
    };
    Ok((remote, tag))
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

fn usable_key(audio: &MediaDescription) -> Option<(u32, String)> {
    let line = audio
        .crypto
        .iter()
        .find(|line| line.suite == SUITE && !line.keys.is_empty())?;
    Some((line.tag, line.keys[0].key_and_salt.to_string()))
}

/// A direction of the session counts where the stream has none of its own; the library tells `sendrecv` for both cases.
fn direction_of(session: &SessionDescription, audio: &MediaDescription) -> Direction {
    match audio.direction {
        Direction::SendRecv => session.direction,
        other => other,
    }
}

fn session_lines(local: &LocalMedia) -> String {
    let family = if local.address.is_ipv4() {
        "IP4"
    } else {
        "IP6"
    };
    let LocalMedia {
        address,
        session,
        version,
        ..
    } = local;
    format!(
        "v=0\r\no=- {session} {version} IN {family} {address}\r\ns=-\r\nc=IN {family} {address}\r\nt=0 0\r\n"
    )
}

fn stream_lines(
    local: &LocalMedia,
    codecs: &[Codec],
    telephone_event: Option<u8>,
    direction: Direction,
    crypto_tag: u32,
) -> String {
    let mut formats: Vec<_> = codecs
        .iter()
        .map(|codec| (codec.payload_type(), codec.name()))
        .collect();
    formats.extend(telephone_event.map(|payload| (payload, "telephone-event")));
    let protocol = if local.srtp_key.is_some() {
        "RTP/SAVP"
    } else {
        "RTP/AVP"
    };
    let numbers: Vec<_> = formats
        .iter()
        .map(|(payload, _)| payload.to_string())
        .collect();
    let mut lines = format!(
        "m=audio {} {protocol} {}\r\n",
        local.port,
        numbers.join(" ")
    );
    for (payload, name) in formats {
        lines += &format!("a=rtpmap:{payload} {name}/8000\r\n");
    }
    if let Some(payload) = telephone_event {
        lines += &format!("a=fmtp:{payload} 0-15\r\n");
    }
    if let Some(key) = &local.srtp_key {
        lines += &format!("a=crypto:{crypto_tag} {SUITE} inline:{key}\r\n");
    }
    lines += &format!("a=ptime:{FRAME_MILLIS}\r\na={}\r\n", direction.as_str());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local() -> LocalMedia {
        LocalMedia {
            address: "192.0.2.1".parse().unwrap(),
            port: 40_000,
            codecs: vec![Codec::Pcma, Codec::Pcmu],
            telephone_event: true,
            srtp_key: None,
            session: 7,
            version: 1,
        }
    }

    fn peer(lines: &str) -> Vec<u8> {
        format!(
            "v=0\r\no=x 1 1 IN IP4 198.51.100.2\r\ns=x\r\nc=IN IP4 198.51.100.2\r\nt=0 0\r\n{lines}"
        )
        .into_bytes()
    }

    #[test]
    fn an_offer_says_what_we_can() {
        assert_eq!(
            offer(&local()),
            "v=0\r\no=- 7 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 8 0 101\r\n\
             a=rtpmap:8 PCMA/8000\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\na=sendrecv\r\n"
        );
        let own = read_answer(offer(&local()).as_bytes(), &local()).unwrap();
        assert_eq!(
            (own.codec, own.telephone_event, own.listens),
            (Codec::Pcma, Some(101), true)
        );
    }

    #[test]
    fn the_first_codec_of_an_answer_counts() {
        let remote = read_answer(
            &peer("m=audio 5000 RTP/AVP 0 8 96\r\na=rtpmap:96 telephone-event/8000\r\n"),
            &local(),
        )
        .unwrap();
        assert_eq!(
            (remote.codec, remote.telephone_event),
            (Codec::Pcmu, Some(96))
        );
        assert_eq!(remote.rtp, "198.51.100.2:5000".parse().unwrap());
        assert_eq!(remote.rtcp, "198.51.100.2:5001".parse().unwrap());
        let unknown_first =
            peer("m=audio 5000 RTP/AVP 18 8\r\na=rtpmap:18 G729/8000\r\na=rtcp-mux\r\n");
        let remote = read_answer(&unknown_first, &local()).unwrap();
        assert_eq!(
            (remote.codec, remote.telephone_event, remote.rtcp.port()),
            (Codec::Pcma, None, 5000)
        );
    }

    #[test]
    fn hold_is_understood_in_every_way_it_is_written() {
        for (lines, listens) in [
            ("m=audio 5000 RTP/AVP 8\r\na=sendonly\r\n", false),
            ("m=audio 5000 RTP/AVP 8\r\na=inactive\r\n", false),
            ("m=audio 5000 RTP/AVP 8\r\na=recvonly\r\n", true),
            ("m=audio 5000 RTP/AVP 8\r\nc=IN IP4 0.0.0.0\r\n", false),
            ("a=sendonly\r\nm=audio 5000 RTP/AVP 8\r\n", false),
            ("m=audio 5000 RTP/AVP 8\r\n", true),
        ] {
            assert_eq!(
                read_answer(&peer(lines), &local()).unwrap().listens,
                listens,
                "{lines}"
            );
        }
    }

    #[test]
    fn an_offer_is_answered_line_by_line() {
        let lines = "m=video 6000 RTP/AVP 34\r\nm=audio 5000 RTP/AVP 0 101\r\na=rtpmap:101 telephone-event/8000\r\na=sendonly\r\n";
        let (text, remote) = answer(&peer(lines), &local()).unwrap();
        assert!(
            text.contains("m=video 0 RTP/AVP 34\r\nm=audio 40000 RTP/AVP 0 101\r\n"),
            "{text}"
        );
        assert!(text.contains("a=recvonly"), "{text}");
        assert!(!remote.listens);
    }

    #[test]
    fn encryption_is_agreed_on_or_refused() {
        let key = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz";
        let mut encrypted = local();
        encrypted.srtp_key = Some("a".repeat(40));
        let line = format!(
            "m=audio 5000 RTP/SAVP 8\r\na=crypto:3 AES_CM_128_HMAC_SHA1_80 inline:{key}\r\n"
        );
        let (text, remote) = answer(&peer(&line), &encrypted).unwrap();
        assert_eq!(remote.srtp_key.as_deref(), Some(key));
        assert!(
            text.contains("RTP/SAVP 8")
                && text.contains("a=crypto:3 AES_CM_128_HMAC_SHA1_80 inline:aaaa"),
            "{text}"
        );
        assert_eq!(
            read_answer(&peer("m=audio 5000 RTP/AVP 8\r\n"), &encrypted),
            Err(SdpError::Encryption)
        );
        assert_eq!(
            read_answer(&peer(&line), &local()),
            Err(SdpError::Encryption)
        );
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let refused = |lines: &str| read_answer(&peer(lines), &local()).unwrap_err();
        assert_eq!(refused(""), SdpError::NoAudio);
        assert_eq!(refused("m=audio 0 RTP/AVP 8\r\n"), SdpError::NoAudio);
        assert_eq!(
            refused("m=audio 5000 RTP/AVP 18\r\n"),
            SdpError::NoCommonCodec
        );
        assert_eq!(
            refused("m=audio 5000 RTP/AVP 8\r\nc=IN IP4 host.example\r\n"),
            SdpError::NoAddress
        );
        assert!(matches!(
            read_answer(b"nonsense", &local()),
            Err(SdpError::Unreadable(_))
        ));
        assert!(matches!(
            read_answer(&[0xff], &local()),
            Err(SdpError::Unreadable(_))
        ));
    }

    #[test]
    fn an_ipv6_address_is_written_as_one() {
        let mut six = local();
        six.address = "2001:db8::1".parse().unwrap();
        let text = offer(&six);
        assert!(text.contains("c=IN IP6 2001:db8::1\r\n"));
        assert_eq!(
            read_answer(text.as_bytes(), &six).unwrap().rtp.ip(),
            six.address
        );
    }
}
