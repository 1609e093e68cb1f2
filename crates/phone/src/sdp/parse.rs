//! What of a peer's text reaches the library that reads it.

use std::borrow::Cow;

use bytesstr::BytesStr;
use ezk_sdp_types::SessionDescription;

use super::{MasterKey, SdpError};

/// More than any description of one call; what is longer is not looked at.
pub const LONGEST: usize = 16 * 1024;

/// A peer's description: the session with its audio streams, and every media line in its place.
#[derive(Debug)]
pub struct Description {
    pub session: SessionDescription,
    pub lines: Vec<MediaLine>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum MediaLine {
    /// The place among the streams of the session.
    Audio(usize),
    /// Fax, video and the like, as we refuse it: the library does not know them all, and we want none of them.
    Other { refusal: String },
}

pub fn parse(text: &[u8]) -> Result<Description, SdpError> {
    if text.len() > LONGEST {
        return Err(SdpError::Unreadable("it is too long".to_owned()));
    }
    let (mut ours, mut lines) = (String::new(), Vec::new());
    for line in String::from_utf8_lossy(text).lines() {
        if line.contains('\r') {
            return Err(SdpError::Unreadable(
                "a line breaks in the middle".to_owned(),
            ));
        }
        if let Some(media) = line.strip_prefix("m=") {
            let audio = lines
                .iter()
                .filter(|line| matches!(line, MediaLine::Audio(_)));
            lines.push(if media.starts_with("audio ") {
                MediaLine::Audio(audio.count())
            } else {
                refusal(media)?
            });
        }
        let is_ours = !matches!(lines.last(), Some(MediaLine::Other { .. }));
        if let Some(line) = understood(line).filter(|_| is_ours) {
            ours += &line;
            ours += "\r\n";
        }
    }
    SessionDescription::parse(&BytesStr::from(ours.as_str()))
        .map(|session| Description { session, lines })
        .map_err(|error| SdpError::Unreadable(error.to_string()))
}

/// The same line with port 0 (RFC 3264 section 6).
fn refusal(media: &str) -> Result<MediaLine, SdpError> {
    let words: Vec<_> = media.split_ascii_whitespace().collect();
    let is_plain = |word: &&str| word.bytes().all(|byte| byte.is_ascii_graphic());
    match &words[..] {
        [kind, _, protocol, formats @ ..] if !formats.is_empty() && words.iter().all(is_plain) => {
            let formats = formats.join(" ");
            Ok(MediaLine::Other {
                refusal: format!("m={kind} 0 {protocol} {formats}\r\n"),
            })
        }
        _ => Err(SdpError::Unreadable("a media line is broken".to_owned())),
    }
}

/// Only lines that we understand reach the library: one attribute that it cannot read, and that means nothing to us, would cost the call.
fn understood(line: &str) -> Option<Cow<'_, str>> {
    let Some(attribute) = line.strip_prefix("a=") else {
        return ["v=", "o=", "s=", "c=", "t=", "m="]
            .iter()
            .any(|kind| line.starts_with(kind))
            .then_some(line.into());
    };
    match attribute.split(':').next()? {
        "rtpmap" | "rtcp" | "rtcp-mux" | "sendrecv" | "sendonly" | "recvonly" | "inactive"
        | "ptime" | "maxptime" => Some(line.into()),
        "crypto" => {
            let crypto = plain_crypto(attribute.strip_prefix("crypto:")?)?;
            Some(format!("a=crypto:{crypto}").into())
        }
        _ => None,
    }
}

/// A key line that we can use, in its shortest form (RFC 4568 section 9.2). What asks for more than we do is no line for us: master key
/// identifiers, several keys, parameters other than a hint. A lifetime is longer than any call, and is left out because the library cannot
/// count to 2^48.
fn plain_crypto(line: &str) -> Option<String> {
    let mut words = line.split_ascii_whitespace();
    let (tag, suite) = (words.next()?, words.next()?);
    let mut key = words.next()?.strip_prefix("inline:")?.split('|');
    let master = key.next()?;
    let usable = MasterKey::from_base64(master).is_some()
        && key.all(|lifetime| !lifetime.contains(':'))
        && words.all(|parameter| parameter.starts_with("WSH="));
    usable.then(|| format!("{tag} {suite} inline:{master}"))
}
