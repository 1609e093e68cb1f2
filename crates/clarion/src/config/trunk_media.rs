//! The settings of a `[[trunk]]` that are about its sound.

use std::net::{IpAddr, Ipv4Addr};

use phone::call::MediaOptions;
use phone::media::engine::{Encryption, HeardKeys, SymmetricRtp};

use super::section::{Mistake, Section};
use super::values::parse_codec;

/// No time is longer, in seconds.
const LONGEST: u32 = 86_400;

fn symmetric_rtp(text: &str) -> Result<SymmetricRtp, String> {
    match text {
        "off" => Ok(SymmetricRtp::Off),
        "peer" => Ok(SymmetricRtp::Peer),
        "any" => Ok(SymmetricRtp::Any),
        _ => Err(format!("`{text}` is none of off, peer, any")),
    }
}

/// How the calls of a trunk send and receive sound.
pub(super) fn media(section: &mut Section, loopback: bool) -> Result<MediaOptions, Mistake> {
    let codecs = section.list("codecs", parse_codec)?;
    if codecs.is_empty() {
        return Err(section.mistake("codecs", "name at least one of PCMA and PCMU"));
    }
    Ok(MediaOptions {
        codecs,
        encryption: if section.flag("srtp")? {
            Encryption::Sdes
        } else {
            Encryption::Off
        },
        symmetric: section.parsed_by("symmetric_rtp", symmetric_rtp)?,
        rtcp_mux: section.flag("rtcp_mux")?,
        quiet_after: section.seconds_or_none("quiet_seconds", LONGEST)?,
        heard_keys: if section.flag("inband_keys")? {
            HeardKeys::PacketsOrTones
        } else {
            HeardKeys::Packets
        },
        hold_limit: section.seconds_or_none("hold_seconds", LONGEST)?,
        bind: loopback.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        ..MediaOptions::default()
    })
}
