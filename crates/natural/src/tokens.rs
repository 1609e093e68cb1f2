//! Phonemes as the model's tokens, in chunks that it can speak.

/// What the model has learnt. A phoneme that is not here is left out.
const VOCABULARY: &[(char, i64)] = &[
    (';', 1),
    (':', 2),
    (',', 3),
    ('.', 4),
    ('!', 5),
    ('?', 6),
    ('—', 9),
    ('…', 10),
    ('"', 11),
    ('(', 12),
    (')', 13),
    ('“', 14),
    ('”', 15),
    (' ', 16),
    ('\u{303}', 17),
    ('ʣ', 18),
    ('ʥ', 19),
    ('ʦ', 20),
    ('ʨ', 21),
    ('ᵝ', 22),
    ('ꭧ', 23),
    ('A', 24),
    ('I', 25),
    ('O', 31),
    ('Q', 33),
    ('S', 35),
    ('T', 36),
    ('W', 39),
    ('Y', 41),
    ('ᵊ', 42),
    ('a', 43),
    ('b', 44),
    ('c', 45),
    ('d', 46),
    ('e', 47),
    ('f', 48),
    ('h', 50),
    ('i', 51),
    ('j', 52),
    ('k', 53),
    ('l', 54),
    ('m', 55),
    ('n', 56),
    ('o', 57),
    ('p', 58),
    ('q', 59),
    ('r', 60),
    ('s', 61),
    ('t', 62),
    ('u', 63),
    ('v', 64),
    ('w', 65),
    ('x', 66),
    ('y', 67),
    ('z', 68),
    ('ɑ', 69),
    ('ɐ', 70),
    ('ɒ', 71),
    ('æ', 72),
    ('β', 75),
    ('ɔ', 76),
    ('ɕ', 77),
    ('ç', 78),
    ('ɖ', 80),
    ('ð', 81),
    ('ʤ', 82),
    ('ə', 83),
    ('ɚ', 85),
    ('ɛ', 86),
    ('ɜ', 87),
    ('ɟ', 90),
    ('ɡ', 92),
    ('ɥ', 99),
    ('ɨ', 101),
    ('ɪ', 102),
    ('ʝ', 103),
    ('ɯ', 110),
    ('ɰ', 111),
    ('ŋ', 112),
    ('ɳ', 113),
    ('ɲ', 114),
    ('ɴ', 115),
    ('ø', 116),
    ('ɸ', 118),
    ('θ', 119),
    ('œ', 120),
    ('ɹ', 123),
    ('ɾ', 125),
    ('ɻ', 126),
    ('ʁ', 128),
    ('ɽ', 129),
    ('ʂ', 130),
    ('ʃ', 131),
    ('ʈ', 132),
    ('ʧ', 133),
    ('ʊ', 135),
    ('ʋ', 136),
    ('ʌ', 138),
    ('ɣ', 139),
    ('ɤ', 140),
    ('χ', 142),
    ('ʎ', 143),
    ('ʒ', 147),
    ('ʔ', 148),
    ('ˈ', 156),
    ('ˌ', 157),
    ('ː', 158),
    ('ʰ', 162),
    ('ʲ', 164),
    ('↓', 169),
    ('→', 171),
    ('↗', 172),
    ('↘', 173),
    ('ᵻ', 177),
];

/// A longer text is cut off by the model without a word. Its styles are as many.
pub const MAX_TOKENS: usize = 510;

pub fn tokens(phonemes: &str) -> Vec<i64> {
    let token = |letter: char| {
        let known = VOCABULARY.iter().find(|(known, _)| *known == letter);
        known.map(|(_, token)| *token)
    };
    phonemes.chars().filter_map(token).collect()
}

/// Parts that the model can speak, divided behind a mark if there is one, or else between words.
pub fn chunks(phonemes: &str) -> Vec<&str> {
    let mut chunks = Vec::new();
    let mut rest = phonemes.trim();
    while !rest.is_empty() {
        let end = rest.char_indices().nth(MAX_TOKENS).map(|(end, _)| end);
        let end = end.map_or(rest.len(), |end| {
            let part = &rest[..end];
            let mark = part.rfind(['.', '?', '!', ',']).map(|at| at + 1);
            mark.or_else(|| part.rfind(' ')).unwrap_or(end)
        });
        let (chunk, others) = rest.split_at(end);
        chunks.push(chunk.trim());
        rest = others.trim_start();
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phonemes_have_tokens_and_what_the_model_does_not_know_is_left_out() {
        assert_eq!(tokens("ni↓ x"), [56, 51, 169, 16, 66]);
        assert_eq!(tokens("a中b"), [43, 44]);
        let mut known: Vec<_> = VOCABULARY.iter().map(|(_, token)| token).collect();
        known.dedup();
        assert_eq!(known.len(), VOCABULARY.len(), "each has a token of its own");
    }

    #[test]
    fn a_long_text_is_divided_where_people_breathe() {
        let text = "ab cd, ".repeat(200);
        let parts = chunks(&text);
        assert!(parts.len() > 1);
        for part in &parts {
            assert!(
                tokens(part).len() <= MAX_TOKENS && part.ends_with(','),
                "{part}"
            );
        }
        assert_eq!(parts.join(" "), text.trim());
        let words = chunks(&"abc ".repeat(300)).join(" ");
        assert_eq!(words, "abc ".repeat(300).trim());
        let unbroken = "a".repeat(1200);
        assert_eq!(chunks(&unbroken).concat(), unbroken);
        assert!(chunks(" ").is_empty());
    }
}
