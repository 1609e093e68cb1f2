//! Pinyin in the letters of the International Phonetic Alphabet that the model has learnt, with arrows for the tones.

/// Beginnings of syllables, longer ones first.
const INITIALS: [(&str, &str); 21] = [
    ("zh", "ꭧ"),
    ("ch", "ꭧʰ"),
    ("sh", "ʂ"),
    ("b", "p"),
    ("p", "pʰ"),
    ("m", "m"),
    ("f", "f"),
    ("d", "t"),
    ("t", "tʰ"),
    ("n", "n"),
    ("l", "l"),
    ("g", "k"),
    ("k", "kʰ"),
    ("h", "x"),
    ("j", "ʨ"),
    ("q", "ʨʰ"),
    ("x", "ɕ"),
    ("r", "ɻ"),
    ("z", "ʦ"),
    ("c", "ʦʰ"),
    ("s", "s"),
];

/// Ends of syllables: before the tone, and behind it. ü is written v.
const FINALS: [(&str, &str, &str); 36] = [
    ("a", "a", ""),
    ("ai", "ai", ""),
    ("an", "a", "n"),
    ("ang", "a", "ŋ"),
    ("ao", "au", ""),
    ("e", "ɤ", ""),
    ("ei", "ei", ""),
    ("en", "ə", "n"),
    ("eng", "ə", "ŋ"),
    ("er", "ɚ", ""),
    ("i", "i", ""),
    ("ia", "ja", ""),
    ("ian", "jɛ", "n"),
    ("iang", "ja", "ŋ"),
    ("iao", "jau", ""),
    ("ie", "je", ""),
    ("in", "i", "n"),
    ("ing", "i", "ŋ"),
    ("iong", "jʊ", "ŋ"),
    ("iu", "jou", ""),
    ("o", "wo", ""),
    ("ong", "ʊ", "ŋ"),
    ("ou", "ou", ""),
    ("u", "u", ""),
    ("ua", "wa", ""),
    ("uai", "wai", ""),
    ("uan", "wa", "n"),
    ("uang", "wa", "ŋ"),
    ("ui", "wei", ""),
    ("un", "wə", "n"),
    ("uo", "wo", ""),
    ("ueng", "wə", "ŋ"),
    ("v", "y", ""),
    ("van", "ɥɛ", "n"),
    ("ve", "ɥe", ""),
    ("vn", "y", "n"),
];

/// The phonemes of a syllable such as `zhong1`; nothing where it is none.
pub fn phonemes(pinyin: &str) -> Option<String> {
    let (letters, tone) = match pinyin.bytes().next_back()? {
        tone @ b'1'..=b'5' => (&pinyin[..pinyin.len() - 1], tone),
        _ => (pinyin, b'5'),
    };
    let letters = letters.replace('ü', "v").replace("u:", "v");
    let tone = match tone {
        b'1' => "→",
        b'2' => "↗",
        b'3' => "↓",
        b'4' => "↘",
        _ => "",
    };
    let (initial, rest) = split(&spelled_out(&letters));
    let initial_sound = INITIALS.iter().find(|(name, _)| *name == initial);
    let initial_sound = initial_sound.map_or("", |(_, sound)| sound);
    // zhi, chi, shi, ri, zi, ci, si have no vowel of their own.
    if rest == "i" && matches!(initial.as_str(), "zh" | "ch" | "sh" | "r" | "z" | "c" | "s") {
        return Some(format!("{initial_sound}ɨ{tone}"));
    }
    let (_, before, behind) = FINALS.iter().find(|(name, ..)| *name == rest)?;
    Some(format!("{initial_sound}{before}{tone}{behind}"))
}

/// Syllables that begin with y or w, or have ü behind j, q, x, in the spelling that the tables have.
fn spelled_out(letters: &str) -> String {
    let rest = |from: usize| &letters[from..];
    match letters {
        "yi" | "yin" | "ying" => rest(1).to_owned(),
        "you" => "iu".to_owned(),
        "wei" => "ui".to_owned(),
        "wen" => "un".to_owned(),
        "wu" => "u".to_owned(),
        "weng" => "ueng".to_owned(),
        "yong" => "iong".to_owned(),
        _ if letters.starts_with("yu") => format!("v{}", rest(2)),
        _ if letters.starts_with('y') => format!("i{}", rest(1)),
        _ if letters.starts_with('w') => format!("u{}", rest(1)),
        _ if letters.starts_with(['j', 'q', 'x']) && letters[1..].starts_with('u') => {
            format!("{}v{}", &letters[..1], rest(2))
        }
        _ => letters.to_owned(),
    }
}

/// The beginning and the end of a syllable.
fn split(letters: &str) -> (String, String) {
    let initial = INITIALS.iter().find_map(|(name, _)| {
        let rest = letters.strip_prefix(name)?;
        Some(((*name).to_owned(), rest.to_owned()))
    });
    initial.unwrap_or_else(|| (String::new(), letters.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syllables_become_phonemes_with_their_tones() {
        for (pinyin, sound) in [
            ("ni3", "ni↓"),
            ("hao3", "xau↓"),
            ("zhong1", "ꭧʊ→ŋ"),
            ("guo2", "kwo↗"),
            ("shi4", "ʂɨ↘"),
            ("zi5", "ʦɨ"),
            ("yi1", "i→"),
            ("you3", "jou↓"),
            ("yuan2", "ɥɛ↗n"),
            ("xue2", "ɕɥe↗"),
            ("ju4", "ʨy↘"),
            ("lv4", "ly↘"),
            ("lüe4", "lɥe↘"),
            ("wei2", "wei↗"),
            ("wen4", "wə↘n"),
            ("wo3", "wo↓"),
            ("bo1", "pwo→"),
            ("er4", "ɚ↘"),
            ("yin2", "i↗n"),
            ("hang2", "xa↗ŋ"),
            ("jiong3", "ʨjʊ↓ŋ"),
            ("de", "tɤ"),
        ] {
            assert_eq!(phonemes(pinyin).as_deref(), Some(sound), "{pinyin}");
        }
        assert_eq!(phonemes("xyz1"), None);
        assert_eq!(phonemes(""), None);
    }
}
