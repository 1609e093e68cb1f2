//! Our descriptions, as text.

use std::fmt::Write as _;

use ezk_sdp_types::{Direction, SrtpSuite};

use super::{LocalMedia, MasterKey, Suite};
use g711::{Codec, FRAME_MILLIS};

pub fn suite_name(suite: Suite) -> SrtpSuite {
    match suite {
        Suite::AesCm128HmacSha1Tag80 => SrtpSuite::AES_CM_128_HMAC_SHA1_80,
        Suite::AesCm128HmacSha1Tag32 => SrtpSuite::AES_CM_128_HMAC_SHA1_32,
    }
}

pub fn session_lines(local: &LocalMedia) -> String {
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

/// The audio line and what belongs to it.
pub struct StreamLines<'a> {
    pub codecs: &'a [Codec],
    pub telephone_event: Option<u8>,
    pub direction: Direction,
    pub rtcp_mux: bool,
    /// By the tag of their lines.
    pub keys: Vec<(u32, (Suite, &'a MasterKey))>,
}

impl StreamLines<'_> {
    pub fn write(&self, port: u16) -> String {
        let codecs = self.codecs.iter();
        let codecs = codecs.map(|codec| (codec.payload_type(), codec.name()));
        let keys = self
            .telephone_event
            .map(|payload| (payload, "telephone-event"));
        let formats = codecs.chain(keys);
        let protocol = if self.keys.is_empty() {
            "RTP/AVP"
        } else {
            "RTP/SAVP"
        };
        let mut lines = String::with_capacity(256);
        // Writing into a text does not fail.
        let _ = write!(lines, "m=audio {port} {protocol}");
        for (payload, _) in formats.clone() {
            let _ = write!(lines, " {payload}");
        }
        lines += "\r\n";
        for (payload, name) in formats {
            let _ = write!(lines, "a=rtpmap:{payload} {name}/8000\r\n");
        }
        if let Some(payload) = self.telephone_event {
            let _ = write!(lines, "a=fmtp:{payload} 0-15\r\n");
        }
        for (tag, (suite, key)) in &self.keys {
            let (suite, key) = (suite_name(*suite), key.to_base64());
            let _ = write!(lines, "a=crypto:{tag} {suite} inline:{key}\r\n");
        }
        if self.rtcp_mux {
            lines += "a=rtcp-mux\r\n";
        }
        let direction = self.direction.as_str();
        let _ = write!(lines, "a=ptime:{FRAME_MILLIS}\r\na={direction}\r\n");
        lines
    }
}
