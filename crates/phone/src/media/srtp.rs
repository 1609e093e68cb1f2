//! Encrypted sound: SRTP and SRTCP (RFC 3711) with AES-CM and HMAC-SHA1, the keys exchanged in the session description (RFC 4568).
//!
//! No packets are made or understood here, only sealed and opened. Not done: key derivation rates, master key identifiers and the other
//! options of the RFC, which nobody offers on trunks; `sdp` refuses a line that asks for them.

use aes::Aes128Enc;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use hmac::{Hmac, Mac};
use sha1::Sha1;

use super::rtp;
use crate::sdp::{KEY_BYTES, MasterKey, SALT_BYTES, Suite};
use window::Window;

/// The longest that a sealed RTP packet grows.
pub const RTP_GROWTH: usize = 10;
/// A sealed RTCP packet grows by its index and its tag, which is 80 bits in both suites (RFC 4568 section 6.2.2).
pub const RTCP_GROWTH: usize = 4 + RTCP_TAG;
const RTCP_TAG: usize = 10;
/// What of an RTCP packet stays readable: the first header and the source.
const RTCP_CLEAR: usize = 8;
/// Set in the index of an RTCP packet that is encrypted.
const ENCRYPTED: u32 = 1 << 31;
/// A peer has one source; a few more come with transfers. More than that is not remembered.
const SOURCES: usize = 8;

/// What the two directions and the two protocols have in common: keys derived from the master key.
#[derive(Clone)]
struct Transform {
    cipher: Aes128Enc,
    salt: u128,
    mac: Hmac<Sha1>,
}

impl Transform {
    /// Key derivation (RFC 3711 section 4.3) with a rate of zero: three labels from the first one on.
    fn derive(master: &MasterKey, first_label: u8) -> Self {
        let (key, salt) = master.key_and_salt();
        let cipher = aes(key);
        let master_salt = number(salt);
        let derived = |label: u8, bytes: &mut [u8]| {
            let start = (master_salt ^ (u128::from(label) << 48)) << 16;
            apply_key_stream(&cipher, start, bytes);
        };
        let (mut key, mut auth, mut salt) = ([0; KEY_BYTES], [0; 20], [0; SALT_BYTES]);
        derived(first_label, &mut key);
        derived(first_label + 1, &mut auth);
        derived(first_label + 2, &mut salt);
        Self {
            cipher: aes(&key),
            salt: number(&salt),
            mac: <Hmac<Sha1> as KeyInit>::new_from_slice(&auth)
                .expect("HMAC takes keys of any length"),
        }
    }

    fn rtp(master: &MasterKey) -> Self {
        Self::derive(master, 0)
    }

    fn rtcp(master: &MasterKey) -> Self {
        Self::derive(master, 3)
    }

    /// Encrypts or decrypts, which is the same (section 4.1.1).
    fn crypt(&self, source: u32, index: u64, bytes: &mut [u8]) {
        let start = (self.salt << 16) ^ (u128::from(source) << 64) ^ (u128::from(index) << 16);
        apply_key_stream(&self.cipher, start, bytes);
    }

    fn tag(&self, parts: [&[u8]; 2]) -> Hmac<Sha1> {
        let mut mac = self.mac.clone();
        for part in parts {
            mac.update(part);
        }
        mac
    }
}

fn aes(key: &[u8]) -> Aes128Enc {
    Aes128Enc::new_from_slice(key).expect("the key has the length of an AES-128 key")
}

fn number(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .fold(0, |number, byte| (number << 8) | u128::from(*byte))
}

/// The counter is in the low 16 bits, which are zero at the start: enough for a megabyte, and packets have two kilobytes at most.
fn apply_key_stream(cipher: &Aes128Enc, start: u128, bytes: &mut [u8]) {
    for (counter, chunk) in (0_u128..).zip(bytes.chunks_mut(16)) {
        let mut block = Array::from((start ^ counter).to_be_bytes());
        cipher.encrypt_block(&mut block);
        for (byte, key) in chunk.iter_mut().zip(block) {
            *byte ^= key;
        }
    }
}

/// Seals the RTP packets of one outgoing stream, in the order of their sequence numbers.
pub struct RtpSealer {
    transform: Transform,
    tag: usize,
    rollovers: u32,
    last: Option<u16>,
}

impl RtpSealer {
    pub fn new(suite: Suite, master: &MasterKey) -> Self {
        Self {
            transform: Transform::rtp(master),
            tag: suite.rtp_tag(),
            rollovers: 0,
            last: None,
        }
    }

    /// Seals the packet in the first `length` bytes of the buffer and says how long it has become. The buffer must have room for
    /// `RTP_GROWTH` more, and the packet must be one of ours.
    pub fn seal(&mut self, buffer: &mut [u8], length: usize) -> usize {
        let (sequence, source) = sequence_and_source(buffer);
        if self.last.is_some_and(|last| sequence < last) {
            self.rollovers = self.rollovers.wrapping_add(1);
        }
        self.last = Some(sequence);
        let index = u64::from(self.rollovers) << 16 | u64::from(sequence);
        self.transform
            .crypt(source, index, &mut buffer[rtp::HEADER_BYTES..length]);
        let tag = self
            .transform
            .tag([&buffer[..length], &self.rollovers.to_be_bytes()])
            .finalize()
            .into_bytes();
        buffer[length..length + self.tag].copy_from_slice(&tag[..self.tag]);
        length + self.tag
    }
}

/// Seals the RTCP packets of one direction.
pub struct RtcpSealer {
    transform: Transform,
    index: u32,
}

impl RtcpSealer {
    pub fn new(master: &MasterKey) -> Self {
        Self {
            transform: Transform::rtcp(master),
            index: 0,
        }
    }

    /// Section 3.4. The packet must be a whole one of ours.
    pub fn seal(&mut self, packet: &mut Vec<u8>) {
        // The first index is 1, as other implementations do it; 2^31 reports are more than 300 years.
        self.index = (self.index + 1) & !ENCRYPTED;
        let source = u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]);
        self.transform
            .crypt(source, self.index.into(), &mut packet[RTCP_CLEAR..]);
        packet.extend((ENCRYPTED | self.index).to_be_bytes());
        let tag = self.transform.tag([packet, &[]]).finalize().into_bytes();
        packet.extend(&tag[..RTCP_TAG]);
    }
}

/// Opens what the peer has sealed, each packet once.
pub struct Opener {
    rtp: Transform,
    rtcp: Transform,
    tag: usize,
    sources: Vec<Source>,
}

/// The state of one source of the peer.
#[derive(Debug, Clone, Copy)]
struct Source {
    number: u32,
    rtp: Window,
    rtcp: Window,
}

impl Opener {
    pub fn new(suite: Suite, master: &MasterKey) -> Self {
        Self {
            rtp: Transform::rtp(master),
            rtcp: Transform::rtcp(master),
            tag: suite.rtp_tag(),
            sources: Vec::new(),
        }
    }

    /// The RTP packet in clear, or nothing if it is forged, broken or was accepted before.
    pub fn open_rtp<'a>(&mut self, sealed: &[u8], clear: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let header = rtp::header_length(sealed)?;
        let end = sealed
            .len()
            .checked_sub(self.tag)
            .filter(|end| *end >= header)?;
        let (sequence, number) = sequence_and_source(sealed);
        let mut source = self.source(number);
        let index = source.rtp.index_of(sequence)?;
        source.rtp.admit(index)?;
        let (packet, tag) = sealed.split_at(end);
        let rollovers = u32::try_from(index >> 16).ok()?.to_be_bytes();
        self.rtp
            .tag([packet, &rollovers])
            .verify_truncated_left(tag)
            .ok()?;
        self.remember(source);
        clear.clear();
        clear.extend_from_slice(packet);
        self.rtp.crypt(number, index, &mut clear[header..]);
        Some(clear)
    }

    /// The RTCP packet in clear, likewise.
    pub fn open_rtcp<'a>(&mut self, sealed: &[u8], clear: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let end = sealed
            .len()
            .checked_sub(RTCP_GROWTH)
            .filter(|end| *end >= RTCP_CLEAR)?;
        let (authentic, tag) = sealed.split_at(end + 4);
        let number = u32::from_be_bytes(sealed[4..8].try_into().ok()?);
        let index = u32::from_be_bytes(authentic[end..].try_into().ok()?);
        if index & ENCRYPTED == 0 {
            return None;
        }
        let index = u64::from(index & !ENCRYPTED);
        let mut source = self.source(number);
        source.rtcp.admit(index)?;
        self.rtcp
            .tag([authentic, &[]])
            .verify_truncated_left(tag)
            .ok()?;
        self.remember(source);
        clear.clear();
        clear.extend_from_slice(&sealed[..end]);
        self.rtcp.crypt(number, index, &mut clear[RTCP_CLEAR..]);
        Some(clear)
    }

    fn source(&self, number: u32) -> Source {
        let known = self.sources.iter().find(|known| known.number == number);
        known.copied().unwrap_or(Source {
            number,
            rtp: Window::default(),
            rtcp: Window::default(),
        })
    }

    /// Only what was authentic is remembered, so that nobody else can fill the table.
    fn remember(&mut self, source: Source) {
        let known = self
            .sources
            .iter_mut()
            .find(|known| known.number == source.number);
        if let Some(known) = known {
            *known = source;
            return;
        }
        if self.sources.len() == SOURCES {
            self.sources.remove(0);
        }
        self.sources.push(source);
    }
}

fn sequence_and_source(packet: &[u8]) -> (u16, u32) {
    (
        u16::from_be_bytes([packet[2], packet[3]]),
        u32::from_be_bytes([packet[8], packet[9], packet[10], packet[11]]),
    )
}

macro_rules! without_keys {
    ($($name:ident),*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}
without_keys!(RtpSealer, RtcpSealer, Opener);

#[cfg(test)]
mod tests;
mod window;
