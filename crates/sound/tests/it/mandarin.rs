//! Mandarin. No recogniser for it is at hand, so this measures what can be measured: the syllables asked for with their tones, how
//! many are heard, and whether the pitch moves as the tones say. It does not show that a listener understands.

use std::process::Command;

use sound::VoiceOptions;
use sound::text::{Language, phrases};

use super::measure::{median, pitch_contour};
use super::support::heard;

/// What espeak-ng intends to say, in its own letters; the digits are the tones.
fn phonemes(text: &str) -> String {
    let output = Command::new("espeak-ng")
        .args(["-q", "-x", "-v", "cmn-latn-pinyin", "--", text])
        .output();
    String::from_utf8(
        output
            .expect("espeak-ng is missing: run `make setup`")
            .stdout,
    )
    .unwrap()
}

/// The contour of each syllable, from 1 (low) to 5 (high): 55 is level, 35 rises, 21 or 214 is low, 51 falls; others are light.
fn tones(text: &str) -> Vec<String> {
    let asked = phonemes(text);
    let syllables = asked
        .split("_|")
        .map(|syllable| syllable.chars().filter(char::is_ascii_digit).collect());
    syllables.filter(|tone: &String| !tone.is_empty()).collect()
}

#[test]
fn a_syllable_with_its_tone_is_asked_for_for_each_character() {
    for (text, expected) in [
        ("妈麻马骂", ["55", "35", "21", "51"].as_slice()),
        ("中国", &["55", "35"]),
        ("验证码", &["51", "51", "214"]),
        (
            "您的快递已经到达",
            &["35", "33", "51", "51", "21", "55", "51", "35"],
        ),
    ] {
        assert_eq!(tones(text), expected, "{text}: {}", phonemes(text));
    }
    // Two third tones in a row: the first rises.
    assert_eq!(tones("你好")[0], "35");
}

#[test]
fn numbers_reach_the_engine_as_chinese_words_and_never_as_figures() {
    let said: String =
        phrases("您的验证码是123456，金额¥128.50，2026-11-15 15:30前有效，电话13800138000。")
            .iter()
            .map(|phrase| {
                assert_eq!(phrase.language, Language::Chinese);
                phrase.text.clone()
            })
            .collect();
    assert_eq!(
        said,
        "您的验证码是幺二三，四五六，金额一百二十八元五角，二零二六年十一月十五日十五点三十分前有效，电话幺三八，零零幺三，八零零零。"
    );
    let syllables = said.chars().filter(|c| !"，。".contains(*c)).count();
    let asked = tones(&said).len();
    assert!(
        asked.abs_diff(syllables) <= syllables / 20,
        "{asked} for {syllables} characters"
    );
}

#[test]
fn a_longer_text_takes_longer_syllable_by_syllable() {
    let seconds = |text: &str| heard(text, VoiceOptions::default()).len() as f64 / 8000.0;
    let (short, long) = (seconds("您的快递"), seconds("您的快递您的快递您的快递"));
    let each = (long - short) / 8.0;
    // Read aloud, Mandarin has four to five syllables a second.
    assert!((0.19..=0.27).contains(&each), "{each:.3} s a syllable");
}

/// The pitch of a syllable said alone, slowly enough to be followed.
fn contour(syllable: &str) -> Vec<f64> {
    let slowly = VoiceOptions {
        speed: -300,
        ..VoiceOptions::default()
    };
    let contour = pitch_contour(&heard(syllable, slowly)).into_iter();
    let contour: Vec<_> = contour.map(|(_, hertz)| hertz).collect();
    assert!(contour.len() >= 9, "{syllable}: {contour:?}");
    contour
}

/// In its first third, and where it ends.
fn movement(contour: &[f64]) -> (f64, f64) {
    let (begin, end) = (&contour[..contour.len() / 3], &contour[contour.len() - 3..]);
    (median(begin.to_vec()), median(end.to_vec()))
}

/// Where it is highest, and where it ends. The consonant before a falling tone rises, and the line takes the lowest end of the fall away.
fn fall(contour: &[f64]) -> (f64, f64) {
    let mut sorted = contour.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted[sorted.len() - 2], movement(contour).1)
}

#[test]
fn the_pitch_moves_as_the_tones_say() {
    let [first, second, third] = ["妈", "麻", "马"].map(|syllable| movement(&contour(syllable)));
    let ratio = |(begin, end): (f64, f64)| end / begin;
    assert!((0.9..=1.15).contains(&ratio(first)), "level: {first:?}");
    assert!(ratio(second) > 1.2, "rising: {second:?}");
    let [level, fourth] = ["妈", "骂"].map(|syllable| fall(&contour(syllable)));
    assert!(ratio(level) > 0.95, "level: {level:?}");
    assert!(ratio(fourth) < 0.85, "falling: {fourth:?}");
    let mean = |(begin, end): (f64, f64)| f64::midpoint(begin, end);
    assert!(
        mean(third) < mean(first) * 0.9,
        "low: {third:?} against {first:?}"
    );
}
