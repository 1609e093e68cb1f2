//! Names of files as other systems write them: in UTF-8, or in GBK, as Chinese Windows does.

use std::borrow::Cow;

use encoding_rs::GB18030;

/// `None` if it is neither. Some names in GBK happen to be UTF-8 too, of letters that nobody would put together: these are read as GBK.
pub fn decode(bytes: &[u8]) -> Option<String> {
    let utf8 = std::str::from_utf8(bytes).ok();
    if let Some(text) = utf8.filter(|text| is_plausible(text)) {
        return Some(text.to_owned());
    }
    let gbk = GB18030.decode_without_bom_handling_and_without_replacement(bytes);
    let gbk = gbk.filter(|_| utf8.is_none() || is_simplified(bytes));
    let gbk = gbk.map(Cow::into_owned);
    gbk.or_else(|| utf8.map(str::to_owned))
}

/// Whether all its Chinese is of the first standard (GB2312), in which both bytes are high: what people write.
fn is_simplified(bytes: &[u8]) -> bool {
    let mut high = bytes.iter().filter(|byte| !byte.is_ascii());
    high.all(|byte| *byte >= 0xa1)
}

/// Whether its letters of two bytes are of one kind that names are written in: Latin, Greek or Cyrillic. All others cannot be taken for GBK so easily.
fn is_plausible(text: &str) -> bool {
    let (mut alphabet, mut before) = (None, ' ');
    for letter in text.chars() {
        let own = match u32::from(letter) {
            0..0x80 | 0x800.. => None,
            // An accent of its own, as macOS writes it.
            0x300..0x370 if before.is_ascii_alphabetic() => None,
            0xa0..0x250 => Some(1),
            0x370..0x400 => Some(2),
            0x400..0x530 => Some(3),
            _ => return false,
        };
        if own.is_some() && alphabet.is_some() && own != alphabet {
            return false;
        }
        (alphabet, before) = (own.or(alphabet), letter);
    }
    true
}

#[cfg(test)]
mod tests {
    use encoding_rs::GBK;

    use super::*;

    #[test]
    fn a_name_is_read_in_the_encoding_that_it_was_written_in() {
        for name in [
            "a.wav",
            "欢迎.wav",
            "通知.wav",
            "联通.wav",
            "停电通知 2.wav",
        ] {
            let (gbk, ..) = GBK.encode(name);
            assert_eq!(decode(&gbk).as_deref(), Some(name));
            assert_eq!(decode(name.as_bytes()).as_deref(), Some(name));
        }
        for name in [
            "café.wav",
            "cafe\u{301}.wav",
            "Привет.wav",
            "γειά.wav",
            "🔔.wav",
        ] {
            assert_eq!(decode(name.as_bytes()).as_deref(), Some(name));
        }
        for bytes in [&b"\xff\xff.wav"[..], b"\xbb.wav"] {
            assert_eq!(decode(bytes), None, "{bytes:?}");
        }
    }
}
