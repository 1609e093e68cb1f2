//! The head of a message, read without the library and without any memory: enough to tell whether a stranger speaks about a call of ours.
//! What it finds is compared with what we know, and nothing else depends on it; the library reads a message that passes anew.

/// A head that is longer than this says nothing to us.
const LONGEST: usize = 16 * 1024;

/// The parts of a head that tell which dialog it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageHead<'a> {
    is_response: bool,
    pub call_id: &'a [u8],
    from_tag: Option<&'a [u8]>,
    to_tag: Option<&'a [u8]>,
}

impl<'a> MessageHead<'a> {
    /// `None` if these bytes are no SIP message with a Call-ID.
    pub fn read(message: &'a [u8]) -> Option<Self> {
        let message = &message[..message.len().min(LONGEST)];
        let (first, mut rest) = split_line(message)?;
        let is_response = first.starts_with(b"SIP/2.0 ");
        if !is_response && !first.ends_with(b" SIP/2.0") {
            return None;
        }
        let (mut call_id, mut from, mut to) = (None, None, None);
        while (call_id.is_none() || from.is_none() || to.is_none())
            && let Some((header, after)) = split_header(rest)
            && !header.is_empty()
        {
            rest = after;
            let Some(colon) = header.iter().position(|byte| *byte == b':') else {
                continue;
            };
            let (name, value) = (header[..colon].trim_ascii(), &header[colon + 1..]);
            let place = match name {
                _ if is(name, b"Call-ID") || is(name, b"i") => &mut call_id,
                _ if is(name, b"From") || is(name, b"f") => &mut from,
                _ if is(name, b"To") || is(name, b"t") => &mut to,
                _ => continue,
            };
            place.get_or_insert(value.trim_ascii());
        }
        Some(Self {
            is_response,
            call_id: call_id.filter(|call_id| !call_id.is_empty())?,
            from_tag: from.and_then(tag),
            to_tag: to.and_then(tag),
        })
    }

    /// The tag of whoever receives it: From names who sent a request, To who is to get it, and a response repeats both.
    pub fn receivers_tag(&self) -> Option<&'a [u8]> {
        if self.is_response {
            self.from_tag
        } else {
            self.to_tag
        }
    }

    /// The tag of whoever sends it.
    pub fn senders_tag(&self) -> Option<&'a [u8]> {
        if self.is_response {
            self.to_tag
        } else {
            self.from_tag
        }
    }
}

fn is(name: &[u8], header: &[u8]) -> bool {
    name.eq_ignore_ascii_case(header)
}

/// The first line without its end, and what comes after it.
fn split_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let line = &text[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), &text[end + 1..]))
}

/// The first header, which goes on where a line begins with a blank (RFC 3261 section 7.3.1).
fn split_header(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (line, mut rest) = split_line(text)?;
    let mut end = line.len();
    while !line.is_empty() && rest.first().is_some_and(|byte| b" \t".contains(byte)) {
        let (next, after) = split_line(rest)?;
        end = text.len() - rest.len() + next.len();
        rest = after;
    }
    Some((&text[..end], rest))
}

/// The tag of From or To. Neither a name in quotes nor an address in brackets is looked into.
pub(super) fn tag(value: &[u8]) -> Option<&[u8]> {
    let (mut quoted, mut in_brackets, mut escaped) = (false, false, false);
    for (place, byte) in value.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'<' => in_brackets = true,
            b'>' => in_brackets = false,
            b';' if !in_brackets => {
                let tag = parameter(&value[place + 1..], b"tag");
                if tag.is_some() {
                    return tag;
                }
            }
            _ => {}
        }
    }
    None
}

/// The value of the parameter that stands here, if it has this name.
fn parameter<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let end = text.iter().position(|byte| b";,".contains(byte));
    let text = &text[..end.unwrap_or(text.len())];
    let equals = text.iter().position(|byte| *byte == b'=')?;
    let value = text[equals + 1..].trim_ascii();
    (is(text[..equals].trim_ascii(), name) && !value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Call-ID, the receiver's tag and the sender's tag; empty where there is none.
    fn read(text: &str) -> Option<[String; 3]> {
        let text = text.replace('\n', "\r\n");
        let head = MessageHead::read(text.as_bytes())?;
        let found = [Some(head.call_id), head.receivers_tag(), head.senders_tag()];
        Some(found.map(|part| String::from_utf8_lossy(part.unwrap_or_default()).into_owned()))
    }

    #[test]
    fn a_head_tells_its_call_and_whose_tags_it_has() {
        for (text, expected) in [
            (
                "BYE sip:a SIP/2.0\nFrom: <sip:b>;tag=theirs\nTo: <sip:a>;tag=ours\nCall-ID: x@y\n\n",
                ["x@y", "ours", "theirs"],
            ),
            (
                "SIP/2.0 200 OK\nf: <sip:a>;tag=ours\nt: sip:b;x=y;tag=theirs\ni:x\n\nTo: body",
                ["x", "ours", "theirs"],
            ),
            // A line that goes on, blanks, and the letters in any size.
            (
                "BYE sip:a SIP/2.0\nTO : <sip:a>\n ; TAG = ours\nfrom:<sip:b>\nCALL-ID:\n x\n\n",
                ["x", "ours", ""],
            ),
            // What stands in quotes, in brackets or in another parameter is no tag, and the first header of a name counts.
            (
                "BYE sip:a SIP/2.0\nTo: \"\\\";tag=no\" <sip:a;tag=no>;mytag=no\nTo: <sip:a>;tag=no\nCall-ID: x\n\n",
                ["x", "", ""],
            ),
        ] {
            let expected = expected.map(str::to_owned);
            assert_eq!(read(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "\n\n",
            "BYE sip:a SIP/2.0\n\nCall-ID: x\n",
            "BYE sip:a SIP/2.0\nCall-ID:\n\n",
            "GET / HTTP/1.1\nCall-ID: x\n\n",
            "BYE sip:a SIP/2.0\nCall-ID: x",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_head_without_an_end_is_not_read_on_and_on() {
        let mut text = b"OPTIONS sip:a SIP/2.0\r\n".to_vec();
        text.extend(b"X: y\r\n".repeat(10_000));
        text.extend(b"Call-ID: x\r\n\r\n");
        assert_eq!(MessageHead::read(&text), None);
    }
}
