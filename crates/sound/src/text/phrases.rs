//! Joins what was found to phrases: runs of one language, punctuation inside them, so that the voice changes only where the language does.

use super::scan::{Token, scan};
use super::{Language, Pause, chinese, english};

/// A phrase is ended at the next sentence beyond this, and at once beyond twice as much: no engine gets an unbounded text.
const LONG: usize = 200;
/// Each phrase is a process of the engine. Texts that people write change the language less often than this.
const MAX_RUNS: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    pub language: Language,
    /// Letters, Han characters, apostrophes and blanks, with `,.?!` in English and `，。？！` in Chinese.
    pub text: String,
    pub pause: Pause,
}

impl Phrase {
    fn characters(&self) -> usize {
        self.text.chars().count()
    }
}

/// At most `MAX_RUNS` phrases, and one more for every `LONG` characters. If the language changes more often, the shortest runs of English
/// are folded into the Chinese around them: the Chinese voice speaks Latin words too, if not well. The English voice speaks no Han.
pub fn phrases(text: &str) -> Vec<Phrase> {
    let runs = runs(text);
    let mut shortest = 0;
    loop {
        let phrases = joined(&runs, shortest);
        if phrases.len() <= limit(&phrases) {
            return phrases;
        }
        shortest += 1 + shortest / 4;
    }
}

/// The whole text in words, for a voice that speaks every language in it.
pub fn in_words(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for phrase in phrases(text) {
        let joins = |c: char| c.is_ascii_alphanumeric() || c.is_ascii_punctuation();
        if words.ends_with(joins) && phrase.text.starts_with(joins) {
            words.push(' ');
        }
        words.push_str(&phrase.text);
    }
    words
}

fn limit(phrases: &[Phrase]) -> usize {
    let characters: usize = phrases.iter().map(Phrase::characters).sum();
    MAX_RUNS + characters / LONG
}

/// Words of one language that follow each other, with their marks.
struct Run {
    language: Language,
    words: Vec<Spoken>,
    characters: usize,
}

enum Spoken {
    Word(String),
    Mark(char),
}

fn runs(text: &str) -> Vec<Run> {
    let tokens = scan(text);
    let whole = language_of(&tokens, Language::Chinese);
    let mut runs = Vec::new();
    for sentence in tokens.split_inclusive(|token| matches!(token, Token::Mark('.' | '?' | '!'))) {
        let language = language_of(sentence, whole);
        for token in sentence {
            match token {
                Token::Han(word) => add_word(&mut runs, Language::Chinese, word.clone()),
                Token::Latin(word) => add_word(&mut runs, Language::English, word.clone()),
                Token::Said(said) if language == Language::Chinese => {
                    add_chinese(&mut runs, &chinese::say(said));
                }
                Token::Said(said) => add_word(&mut runs, language, english::say(said)),
                Token::Mark(mark) => add_mark(&mut runs, *mark),
            }
        }
    }
    runs
}

/// Chinese words; the letters of units among them are said by the English voice.
fn add_chinese(runs: &mut Vec<Run>, words: &str) {
    let mut rest = words;
    while let Some(first) = rest.chars().next() {
        let is_letter = first.is_ascii();
        let end = rest.find(|c: char| c.is_ascii() != is_letter);
        let (part, others) = rest.split_at(end.unwrap_or(rest.len()));
        let language = if is_letter {
            Language::English
        } else {
            Language::Chinese
        };
        add_word(runs, language, part.to_owned());
        rest = others;
    }
}

fn add_word(runs: &mut Vec<Run>, language: Language, word: String) {
    if word.is_empty() {
        return;
    }
    if runs.last().is_none_or(|last| last.language != language) {
        runs.push(Run {
            language,
            words: Vec::new(),
            characters: 0,
        });
    }
    if let Some(run) = runs.last_mut() {
        run.characters += word.chars().count();
        run.words.push(Spoken::Word(word));
    }
}

/// A mark before the first word means nothing.
fn add_mark(runs: &mut [Run], mark: char) {
    if let Some(run) = runs.last_mut() {
        run.words.push(Spoken::Mark(mark));
    }
}

/// The runs as phrases. Runs of English that are shorter than `shortest` are spoken by the Chinese voice.
fn joined(runs: &[Run], shortest: usize) -> Vec<Phrase> {
    let mut joined = Joined::default();
    for run in runs {
        let folded = run.language == Language::English && run.characters < shortest;
        for word in &run.words {
            match word {
                Spoken::Word(word) if folded => joined.folded(word),
                Spoken::Word(word) => joined.word(run.language, word),
                Spoken::Mark(mark) => joined.mark(*mark),
            }
        }
    }
    joined.phrases
}

/// The language that figures are read in: Chinese where there are at least as many Han characters as other words.
fn language_of(tokens: &[Token], otherwise: Language) -> Language {
    let (mut han, mut latin) = (0, 0);
    for token in tokens {
        match token {
            Token::Han(word) => han += word.chars().count(),
            // What is spelled is one word, however many letters it has.
            Token::Latin(words) => {
                let whole = words.split(' ').filter(|word| word.len() > 1);
                latin += whole.count().max(1);
            }
            _ => {}
        }
    }
    match (han, latin) {
        (0, 0) => otherwise,
        _ if han >= latin => Language::Chinese,
        _ => Language::English,
    }
}

#[derive(Default)]
struct Joined {
    phrases: Vec<Phrase>,
}

impl Joined {
    /// A word of Latin letters for the Chinese voice.
    fn folded(&mut self, word: &str) {
        let before = self.phrases.last();
        let is_first =
            before.is_none_or(|last| last.language != Language::Chinese || is_full(last));
        let blank = if is_first { "" } else { " " };
        self.word(Language::Chinese, &format!("{blank}{word}"));
    }

    fn word(&mut self, language: Language, word: &str) {
        match self.phrases.last_mut() {
            Some(last) if last.language == language && !is_full(last) => {
                // Chinese words follow each other without a blank.
                if language == Language::English {
                    last.text.push(' ');
                }
                last.text.push_str(word);
                last.pause = Pause::None;
            }
            _ => self.phrases.push(Phrase {
                language,
                text: word.to_owned(),
                pause: Pause::None,
            }),
        }
    }

    /// Of several marks in a row the strongest counts.
    fn mark(&mut self, mark: char) {
        let Some(last) = self.phrases.last_mut() else {
            return;
        };
        let pause = if mark == ',' {
            Pause::Short
        } else {
            Pause::Long
        };
        if last.pause >= pause {
            return;
        }
        if last.pause != Pause::None {
            last.text.pop();
        }
        last.pause = pause;
        last.text.push(match (last.language, mark) {
            (Language::English, mark) => mark,
            (Language::Chinese, ',') => '，',
            (Language::Chinese, '?') => '？',
            (Language::Chinese, '!') => '！',
            (Language::Chinese, _) => '。',
        });
    }
}

fn is_full(phrase: &Phrase) -> bool {
    let length = phrase.characters();
    length > 2 * LONG || length > LONG && phrase.pause == Pause::Long
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Phrases in one line, English ones in brackets.
    fn said(text: &str) -> String {
        phrases(text)
            .iter()
            .map(|phrase| match phrase.language {
                Language::Chinese => phrase.text.clone(),
                Language::English => format!("[{}]", phrase.text),
            })
            .collect()
    }

    #[test]
    fn figures_are_said_as_people_say_them_in_chinese() {
        for (text, words) in [
            (
                "您的验证码是123456，请勿泄露。",
                "您的验证码是幺二三，四五六，请勿泄露。",
            ),
            ("请拨打13800138000", "请拨打幺三八，零零幺三，八零零零"),
            ("电话010-52823298", "电话零幺零，五二八二，三二九八"),
            ("客服400-810-1234", "客服四零零，八幺零，幺二三四"),
            ("请致电95588或10086", "请致电九五五八八或幺零零八六"),
            ("共10086人", "共一万零八十六人"),
            ("应付¥128.50", "应付一百二十八元五角"),
            ("￥１２８．０５", "一百二十八元零五分"),
            ("金额128元", "金额一百二十八元"),
            (
                "余额1,234,567.89元",
                "余额一百二十三万四千五百六十七元八角九分",
            ),
            ("$20.50左右", "二十点五美元左右"),
            ("1.5万元", "一点五万元"),
            ("2026-11-15", "二零二六年十一月十五日"),
            (
                "2026年11月15日15:30开会",
                "二零二六年十一月十五日十五点三十分开会",
            ),
            (
                "2026-11-15T09:05:07",
                "二零二六年十一月十五日九点零五分七秒",
            ),
            ("时间9:00-18:00", "时间九点整到十八点整"),
            ("14:00前到，2:00", "十四点整前到，两点整"),
            ("上涨3%", "上涨百分之三"),
            ("气温-5℃", "气温负五摄氏度"),
            ("2个苹果2月2日第2名", "两个苹果二月二日第二名"),
            ("3~5天", "三到五天"),
            ("3/4的人", "四分之三的人"),
            ("尾号0012", "尾号零零幺二"),
            ("手机138****8000", "手机幺三八八零零零"),
            ("航班CA1831", "航班[C A]幺八三幺"),
            ("京A12345", "京[A]幺二三四五"),
            ("请按#键", "请按井号键"),
            ("行驶5km", "行驶五公里"),
            ("取件码8-2-3045", "取件码八，二，三零四五"),
            ("￥12,345.67元", "一万两千三百四十五元六角七分"),
            ("服务器192.168.1.100", "服务器一九二点一六八点一点一零零"),
            ("转8001，A座1208室", "转八零零幺，[A]座幺二零八室"),
            ("评分4.8/5", "评分四点八，五"),
            ("【通知】您好", "通知，您好"),
            ("+8613800138000", "八六，幺三八，零零幺三，八零零零"),
        ] {
            assert_eq!(said(text), words, "{text}");
        }
    }

    #[test]
    fn figures_are_said_as_people_say_them_in_english() {
        for (text, words) in [
            ("Your code is 1234.", "[Your code is one two three four.]"),
            (
                "Call 13800138000 now",
                "[Call one three eight, zero zero one three, eight zero zero zero now]",
            ),
            ("You owe $20.50", "[You owe twenty dollars and fifty cents]"),
            ("It costs $1", "[It costs one dollar]"),
            (
                "Pay ¥128.50",
                "[Pay one hundred twenty eight point five yuan]",
            ),
            (
                "on 2026-11-15 at 15:30",
                "[on November fifteenth, twenty twenty six at three thirty P M]",
            ),
            ("at 3:05 p.m. today", "[at three oh five P M today]"),
            ("a 3% rise", "[a three percent rise]"),
            ("the 21st floor", "[the twenty first floor]"),
            (
                "1,234,567 users",
                "[one million two hundred thirty four thousand five hundred sixty seven users]",
            ),
            ("in 2026 we", "[in twenty twenty six we]"),
            ("Mr. Smith, No. 5", "[Mr Smith, number five]"),
            (
                "visit www.example.com today",
                "[visit w w w dot example dot com today]",
            ),
            (
                "mail bob_2@a-b.cn",
                "[mail bob underscore two at a dash b dot cn]",
            ),
            ("10 km away", "[ten kilometers away]"),
            (
                "on Nov 16, Sept. 3rd",
                "[on November sixteenth, September third]",
            ),
            (
                "March 5, 2026 at 9",
                "[March fifth, twenty twenty six at nine]",
            ),
            ("wind 15 km/h", "[wind fifteen kilometers per hour]"),
            ("version 2.10.3", "[version two point one zero point three]"),
            ("Tom & Ann's", "[Tom and Ann's]"),
            ("9:00-17:00", "九点整到十七点整"),
        ] {
            assert_eq!(said(text), words, "{text}");
        }
    }

    #[test]
    fn the_voice_changes_with_the_script_and_keeps_the_sentence_together() {
        assert_eq!(
            said("您好 Mr. Wang，您的 iPhone 15 已发货。Thank you!"),
            "您好[Mr Wang,]您的[iPhone]十五已发货。[Thank you!]"
        );
        assert_eq!(
            said("Dear 张三, your balance is 12.5 yuan"),
            "[Dear]张三，[your balance is twelve point five yuan]"
        );
    }

    #[test]
    fn a_text_in_words_is_one_text() {
        for (text, words) in [
            ("您的code是1234。OK", "您的code是幺二三四。O K"),
            ("Pay $5. Now.", "Pay five dollars. Now."),
            ("🎉", ""),
        ] {
            assert_eq!(in_words(text), words);
        }
    }

    #[test]
    fn emoji_and_signs_that_nobody_says_disappear() {
        assert_eq!(said("🎉恭喜👍🏽您❤️！！！"), "恭喜您！");
        assert_eq!(said("😀🇨🇳👨‍👩‍👧 ※☆→"), "");
        assert_eq!(said("<voice>[[a]]\u{1}`$(rm)` --x"), "[voice a, rm, x]");
        assert_eq!(said("-v zh"), "[v zh]");
        assert_eq!(said(""), "");
    }

    /// The words of a text, and not who speaks them.
    fn words(phrases: &[Phrase]) -> String {
        let texts = phrases.iter().map(|phrase| phrase.text.as_str());
        let is_word = |c: &char| !" ,.?!，。？！".contains(*c);
        texts.flat_map(str::chars).filter(is_word).collect()
    }

    #[test]
    fn a_text_that_changes_language_a_thousand_times_is_few_phrases_and_keeps_every_word() {
        for text in [
            "a中".repeat(1000),
            "中, a. ".repeat(285),
            "张三 and 李四 or ".repeat(100),
            format!(
                "{} A long sentence that is kept in English.",
                "好ok".repeat(500)
            ),
            "1中2 a 3, ".repeat(200),
        ] {
            let (all, folded) = (joined(&runs(&text), 0), phrases(&text));
            assert!(
                folded.len() <= limit(&folded) && limit(&folded) <= 64 + 20,
                "{}",
                folded.len()
            );
            assert!(all.len() > 150, "{text}");
            assert_eq!(words(&folded), words(&all), "{text}");
        }
        let mixed = phrases(&format!(
            "{}. A long sentence that is kept in English.",
            "好ok".repeat(500)
        ));
        assert_eq!(mixed.last().unwrap().language, Language::English);
    }

    #[test]
    fn texts_that_people_write_are_spoken_as_before() {
        assert_eq!(
            said("您的 iPhone 订单 A123 已发货"),
            "您的[iPhone]订单[A]幺二三已发货"
        );
        let list = "请带 iPad 和 Mac 来，".repeat(15);
        assert_eq!(phrases(&list).len(), 61);
        assert_eq!(said(&list), "请带[iPad]和[Mac]来，".repeat(15));
        // However long it is, a text of one language is cut by its length alone.
        let long = "This is a sentence. ".repeat(2_000);
        assert!(
            phrases(&long)
                .iter()
                .all(|phrase| phrase.language == Language::English)
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_more_phrases_than_its_length_allows_and_none_loses_a_word(text in "([a-z]{1,4}|[中国]{1,3}|[0-9]{1,3}|[ ,.]){0,600}") {
            let (all, folded) = (joined(&runs(&text), 0), phrases(&text));
            proptest::prop_assert!(folded.len() <= limit(&folded));
            proptest::prop_assert_eq!(words(&folded), words(&all));
        }

        #[test]
        fn any_text_becomes_words_and_marks(text in ".{0,80}|[0-9.,:/+¥$%年月日元a-zA-Z -]{0,60}") {
            for phrase in phrases(&text) {
                let is_ours = |c: char| match phrase.language {
                    Language::Chinese => super::super::characters::is_han(c) || "，。？！".contains(c),
                    Language::English => super::super::characters::is_latin(c) || " ',.?!".contains(c),
                };
                proptest::prop_assert!(phrase.text.chars().all(is_ours), "{:?}", phrase);
                proptest::prop_assert!(phrase.text.chars().any(|c| is_ours(c) && !" ',.?!，。？！".contains(c)), "{:?}", phrase);
                proptest::prop_assert!(phrase.text.chars().count() < 2000);
            }
        }
    }
}
