//! How Chinese words sound where their characters do not tell: characters with several readings, by the word they stand in, and the tones of
//! 一 and 不, which follow the next syllable. Third tones in a row are left to the engines: they know how they group words.

mod words;

use pinyin::ToPinyin;
use words::WORDS;

pub use super::characters::is_han;

/// A character, and its sound where that was decided here: pinyin with the number of its tone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Syllable {
    pub character: char,
    pub sound: Option<&'static str>,
}

impl Syllable {
    /// Its sound, or the usual sound of its character. `None` for what is no Han character that is known.
    pub fn usual_sound(&self) -> Option<&'static str> {
        let usual = || Some(self.character.to_pinyin()?.with_tone_num_end());
        self.sound.or_else(usual)
    }

    /// From 1 to 4; 5 is none.
    fn tone(&self) -> Option<u8> {
        let last = self.usual_sound()?.bytes().next_back()?;
        Some(match last {
            b'1'..=b'4' => last - b'0',
            _ => 5,
        })
    }
}

/// Behind these, 一 is a figure of a number, or that of a key.
const NUMERALS: &str = "零一二三四五六七八九十百千万亿点第幺两按";
/// Before these too: a figure, a month, a day.
const FIGURES: &str = "零一二三四五六七八九十点月号日";
/// Words at whose end 一 keeps its tone.
const ENDING_IN_ONE: [&str; 12] = [
    "周一",
    "星期一",
    "礼拜一",
    "统一",
    "唯一",
    "之一",
    "万一",
    "单一",
    "同一",
    "逐一",
    "初一",
    "任一",
];
/// Words in which it is a number although none stands before it.
const ORDINALS: [&str; 6] = ["一楼", "一级", "一等", "一区", "一班", "一期"];

/// Every character of a text with its sound. At each place the longest word that fits counts.
pub fn syllables(text: &str) -> Vec<Syllable> {
    let mut syllables = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let fitting = WORDS.iter().filter(|(word, _)| rest.starts_with(word));
        let taken = if let Some((word, sounds)) = fitting.max_by_key(|(word, _)| word.len()) {
            let known = word.chars().zip(sounds.split(' '));
            syllables.extend(known.map(|(character, sound)| Syllable {
                character,
                sound: Some(sound),
            }));
            word.len()
        } else {
            syllables.push(Syllable {
                character: first,
                sound: None,
            });
            first.len_utf8()
        };
        rest = &rest[taken..];
    }
    change_tones(&mut syllables);
    syllables
}

fn change_tones(syllables: &mut [Syllable]) {
    for at in 0..syllables.len() {
        let Syllable { character, sound } = syllables[at];
        let next = syllables.get(at + 1).filter(|next| is_han(next.character));
        let (None, Some(next)) = (sound, next) else {
            continue;
        };
        syllables[at].sound = match character {
            '一' if !is_figure(syllables, at) => one_before(next),
            '不' if at > 0 && syllables[at - 1].character == next.character => Some("bu5"),
            '不' if next.tone() == Some(4) => Some("bu2"),
            _ => None,
        };
    }
}

fn one_before(next: &Syllable) -> Option<&'static str> {
    match next.tone()? {
        4 | 5 => Some("yi2"),
        _ => Some("yi4"),
    }
}

/// Whether the 一 at a place is a figure, which keeps its tone.
fn is_figure(syllables: &[Syllable], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| syllables[before].character);
    let next = syllables.get(at + 1).map(|next| next.character);
    let nearby = |from: usize, to: usize| -> String {
        let part = &syllables[from..to.min(syllables.len())];
        part.iter().map(|syllable| syllable.character).collect()
    };
    let (until, from) = (nearby(at.saturating_sub(2), at + 1), nearby(at, at + 2));
    before.is_some_and(|c| NUMERALS.contains(c))
        || next.is_some_and(|c| FIGURES.contains(c))
        || ENDING_IN_ONE.iter().any(|word| until.ends_with(word))
        || ORDINALS.contains(&from.as_str())
}

/// A text for a voice that reads Han characters and pinyin: pinyin where the characters do not tell.
pub fn by_sound(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut in_pinyin = false;
    for syllable in syllables(text) {
        match syllable.sound {
            Some(sound) => {
                if in_pinyin {
                    written.push(' ');
                }
                written.push_str(sound);
            }
            None => written.push(syllable.character),
        }
        in_pinyin = syllable.sound.is_some();
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_get_their_own_reading_and_numbers_keep_theirs() {
        for (text, sound) in [
            (
                "您的银行还款金额为一百元",
                "您的yin2 hang2 huan2 kuan3金额wei2 yi4百元",
            ),
            ("为了行程，因为", "wei4 le5行程，yin1 wei4"),
            ("二十一元，第一次，一个", "二十一元，第一次，yi2个"),
            ("目的地，项目的确认", "mu4 di4 di4，xiang4 mu4 de5确认"),
            ("不是，不能，是不是，不", "bu2是，不能，是bu5是，不"),
            ("周一上午，一月一日，一九二", "周一上午，一月一日，一九二"),
            (
                "一天，一年，一直，一起，一定",
                "yi4天，yi4年，yi4直，yi4起，yi2定",
            ),
            ("没收到，没收", "mei2 shou1 dao4，mo4 shou1"),
        ] {
            assert_eq!(by_sound(text), sound);
        }
    }

    #[test]
    fn every_word_has_a_sound_for_each_character() {
        for (word, sounds) in WORDS {
            assert_eq!(word.chars().count(), sounds.split(' ').count(), "{word}");
            for sound in sounds.split(' ') {
                let (letters, tone) = sound.split_at(sound.len() - 1);
                assert!(letters.bytes().all(|c| c.is_ascii_lowercase()), "{sound}");
                assert!(("1"..="5").contains(&tone), "{word}: {sound}");
            }
        }
        let mut words: Vec<_> = WORDS.iter().map(|(word, _)| word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), WORDS.len());
    }
}
