//! Our descriptions, as text.

use ezk_sdp_types::{Direction, SrtpSuite};

use super::LocalMedia;
use crate::media::srtp::{MasterKey, Suite};
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
        let mut formats: Vec<_> = self
            .codecs
            .iter()
            .map(|codec| (codec.payload_type(), codec.name()))
            .collect();
        formats.extend(
            self.telephone_event
                .map(|payload| (payload, "telephone-event")),
        );
        let protocol = if self.keys.is_empty() {
            "RTP/AVP"
        } else {
            "RTP/SAVP"
        };
        let numbers: Vec<_> = formats
            .iter()
            .map(|(payload, _)| payload.to_string())
            .collect();
        let mut lines = format!("m=audio {port} {protocol} {}\r\n", numbers.join(" "));
        for (payload, name) in formats {
            lines += &format!("a=rtpmap:{payload} {name}/8000\r\n");
        }
        if let Some(payload) = self.telephone_event {
            lines += &format!("a=fmtp:{payload} 0-15\r\n");
        }
        for (tag, (suite, key)) in &self.keys {
            let (suite, key) = (suite_name(*suite), key.to_base64());
            lines += &format!("a=crypto:{tag} {suite} inline:{key}\r\n");
        }
        if self.rtcp_mux {
            lines += "a=rtcp-mux\r\n";
        }
        lines
            + &format!(
                "a=ptime:{FRAME_MILLIS}\r\na={}\r\n",
                self.direction.as_str()
            )
    }
}
