//! What two parties agree on to encrypt the sound (RFC 4568). What is done with it, `media::srtp` knows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rand::TryRng;
use rand::rngs::SysRng;

pub(crate) const KEY_BYTES: usize = 16;
pub(crate) const SALT_BYTES: usize = 14;

/// Named in `a=crypto`; the two differ in the length of the tag of RTP packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    AesCm128HmacSha1Tag80,
    AesCm128HmacSha1Tag32,
}

impl Suite {
    pub const ALL: [Suite; 2] = [Suite::AesCm128HmacSha1Tag80, Suite::AesCm128HmacSha1Tag32];

    /// Bytes of the tag of an RTP packet.
    pub(crate) fn rtp_tag(self) -> usize {
        match self {
            Suite::AesCm128HmacSha1Tag80 => 10,
            Suite::AesCm128HmacSha1Tag32 => 4,
        }
    }
}

/// Key and salt of one direction.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey([u8; KEY_BYTES + SALT_BYTES]);

impl MasterKey {
    /// From the operating system; fails only where that has no randomness.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0; KEY_BYTES + SALT_BYTES];
        SysRng
            .try_fill_bytes(&mut bytes)
            .map_err(std::io::Error::other)?;
        Ok(Self(bytes))
    }

    pub fn from_base64(text: &str) -> Option<Self> {
        Some(Self(BASE64.decode(text).ok()?.try_into().ok()?))
    }

    pub(crate) fn key_and_salt(&self) -> (&[u8], &[u8]) {
        self.0.split_at(KEY_BYTES)
    }

    pub fn to_base64(&self) -> String {
        BASE64.encode(self.0)
    }
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterKey(…)")
    }
}
