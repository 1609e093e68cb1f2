//! Which characters mean something to a voice.

/// A character made plain, or a blank where a voice has nothing to say to it.
pub(super) fn plain(character: char) -> char {
    match character {
        // Full-width forms are the same characters, wider.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(character) - 0xfee0).unwrap_or(' '),
        '\u{ffe5}' => '¥',
        '\u{ffe1}' => '£',
        '\u{ffe0}' => '¢',
        '。' | '｡' | '…' => '.',
        // A heading in brackets is set apart by the voice as it is by the eye.
        '、' | '،' | '】' => ',',
        '‘' | '’' | 'ʼ' => '\'',
        '–' | '—' | '−' | '‐' | '‑' => '-',
        '〜' | '∼' | '≈' => '~',
        'µ' => 'μ',
        '≧' => '≥',
        '≦' => '≤',
        '\n' | '\r' => '\n',
        '➕' => '+',
        _ if "℃℉°€£¥¢‰×÷≥≤±²³㎡μΩ".contains(character) => character,
        _ if is_han(character) || is_latin(character) => character,
        '!'..='~' => character,
        _ => ' ',
    }
}

/// Characters that join what stands before and behind them, and are not even a blank.
pub(super) fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{20e3}' | '\u{ad}')
}

pub fn is_han(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}' | '〇' | '々')
}

pub(super) fn is_latin(character: char) -> bool {
    character.is_ascii_alphabetic() || matches!(character, 'À'..='Ö' | 'Ø'..='ö' | 'ø'..='\u{24f}')
}
