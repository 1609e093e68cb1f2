//! The chunks of a RIFF file, with the mistakes that programs make in their lengths.

use super::AudioError;

#[derive(Clone, Copy)]
pub(super) struct Chunk<'a> {
    pub id: [u8; 4],
    pub bytes: &'a [u8],
    /// What the length field says.
    pub promised: usize,
}

impl Chunk<'_> {
    /// The length field promised more than the file has.
    pub fn is_cut(&self) -> bool {
        self.promised > self.bytes.len()
    }
}

pub(super) struct RiffChunks<'a> {
    rest: &'a [u8],
}

impl<'a> RiffChunks<'a> {
    /// The length of the whole in the RIFF header is never believed: programs that write into a pipe cannot know it.
    pub fn of(bytes: &'a [u8]) -> Result<Self, AudioError> {
        let Some((head, rest)) = bytes.split_first_chunk::<12>() else {
            return Err(AudioError::NotWav { kind: kind(bytes) });
        };
        // RF64 is RIFF for more than 4 GB: its lengths are all ones, which means "to the end" here as well.
        let is_riff = head.starts_with(b"RIFF") || head.starts_with(b"RF64");
        if !is_riff || !head.ends_with(b"WAVE") {
            return Err(AudioError::NotWav { kind: kind(bytes) });
        }
        Ok(Self { rest })
    }
}

impl<'a> Iterator for RiffChunks<'a> {
    type Item = Chunk<'a>;

    fn next(&mut self) -> Option<Chunk<'a>> {
        let (head, body) = self.rest.split_first_chunk::<8>()?;
        let [a, b, c, d, length @ ..] = *head;
        let id = [a, b, c, d];
        let promised = u32::from_le_bytes(length) as usize;
        // A program that was stopped before it could fill in the length leaves zero there.
        let never_filled_in = id == *b"data" && promised == 0 && !begins_a_chunk(body);
        let length = if never_filled_in {
            body.len()
        } else {
            promised.min(body.len())
        };
        let (bytes, rest) = body.split_at(length);
        self.rest = after_padding(length, rest);
        Some(Chunk {
            id,
            bytes,
            promised,
        })
    }
}

/// An odd chunk is followed by a byte of padding, which some programs forget.
fn after_padding(length: usize, rest: &[u8]) -> &[u8] {
    match rest {
        [_, padded @ ..]
            if length % 2 == 1 && (begins_a_chunk(padded) || !begins_a_chunk(rest)) =>
        {
            padded
        }
        _ => rest,
    }
}

/// Four printable characters, and a length that the file has room for (or that of samples written into a pipe).
fn begins_a_chunk(bytes: &[u8]) -> bool {
    let Some((head, body)) = bytes.split_first_chunk::<8>() else {
        return false;
    };
    let [id @ .., e, f, g, h] = *head;
    let fits = u32::from_le_bytes([e, f, g, h]) as usize <= body.len();
    id.iter().all(|byte| matches!(byte, b' '..=b'~')) && (fits || id == *b"data")
}

/// What people upload instead of WAV, by its first bytes.
fn kind(bytes: &[u8]) -> &'static str {
    const KNOWN: [(usize, &[u8], &str); 13] = [
        (0, b"ID3", "an MP3 file"),
        (0, b"\xff\xfb", "an MP3 file"),
        (0, b"\xff\xf3", "an MP3 file"),
        (0, b"OggS", "an Ogg file"),
        (0, b"fLaC", "a FLAC file"),
        (0, b"#!AMR", "an AMR file"),
        (4, b"ftyp", "an MP4 file"),
        (0, b"FORM", "an AIFF file"),
        (0, b"RIFX", "a big-endian WAV file (RIFX)"),
        (0, b"RIFF", "a RIFF file without sound"),
        (0, b"\x30\x26\xb2\x75", "a Windows Media file"),
        (0, b"PK\x03\x04", "a zip file"),
        (0, b".snd", "a Sun audio file"),
    ];
    let named = |(at, mark, name): &(usize, &[u8], &'static str)| {
        bytes.get(*at..)?.starts_with(mark).then_some(*name)
    };
    KNOWN
        .iter()
        .find_map(named)
        .unwrap_or("not a sound file we know")
}
