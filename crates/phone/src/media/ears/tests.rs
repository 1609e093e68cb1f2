use proptest::prelude::*;

use super::*;
use crate::test_phone::LineSound;

/// What the ears know after this.
fn heard(sound: &LineSound) -> EarReport {
    let mut ears = Ears::default();
    for sample in sound.encode().decode() {
        ears.hear(sample);
    }
    ears.report()
}

fn tone(sound: &LineSound) -> Option<LineTone> {
    heard(sound).tone
}

/// So many times a tone and a pause, beginning within a tone and within a pause.
fn rhythms(hertz: &[f64], tone: usize, pause: usize) -> [LineSound; 3] {
    let whole = || LineSound::default().silence(230);
    [
        whole().rhythm(hertz, tone, pause, 4),
        LineSound::default()
            .tone(hertz, tone / 3)
            .silence(pause)
            .rhythm(hertz, tone, pause, 3),
        LineSound::default()
            .silence(pause / 3)
            .rhythm(hertz, tone, pause, 4),
    ]
}

#[test]
fn busy_and_congestion_are_told_by_their_rhythm() {
    use LineTone::{Busy, Congestion};
    for (hertz, tone_millis, pause, expected) in [
        (&[450.0][..], 350, 350, Busy),
        (&[450.0], 700, 700, Congestion),
        (&[425.0], 500, 500, Busy),
        (&[425.0], 250, 250, Congestion),
        (&[425.0], 200, 200, Congestion),
        (&[400.0], 375, 375, Busy),
        (&[480.0, 620.0], 500, 500, Busy),
        (&[480.0, 620.0], 250, 250, Congestion),
    ] {
        for sound in rhythms(hertz, tone_millis, pause) {
            let heard = heard(&sound);
            let what = format!("{hertz:?} {tone_millis}/{pause}");
            assert_eq!(heard.tone, Some(expected), "{what}");
            assert_eq!(heard.answerer, None, "{what}");
            assert!(heard.after < Duration::from_secs(4), "{what}: {heard:?}");
        }
    }
}

#[test]
fn other_rhythms_say_nothing() {
    let ringing = LineSound::default().rhythm(&[450.0], 1000, 4000, 3);
    assert_eq!(tone(&ringing), None);
    let uneven = LineSound::default().rhythm(&[450.0], 350, 900, 5);
    assert_eq!(tone(&uneven), None);
    let high = LineSound::default().rhythm(&[1000.0], 350, 350, 5);
    assert_eq!(tone(&high), None);
    assert_eq!(tone(&LineSound::machine()), None);
}

#[test]
fn dial_tones_special_tones_and_faxes_are_known() {
    for hertz in [&[450.0][..], &[425.0], &[350.0, 440.0]] {
        let sound = LineSound::default().silence(200).tone(hertz, 3000);
        assert_eq!(tone(&sound), Some(LineTone::Dial), "{hertz:?}");
    }
    let three = |tones: [f64; 3], millis, pause| {
        let sound = LineSound::default().silence(200);
        let sound = tones.iter().fold(sound, |sound, hertz| {
            sound.tone(&[*hertz], millis).silence(pause)
        });
        sound.silence(300)
    };
    assert_eq!(
        tone(&three([950.0, 1400.0, 1800.0], 330, 20)),
        Some(LineTone::Special)
    );
    assert_eq!(
        tone(&three([985.2, 1428.5, 1776.7], 380, 0)),
        Some(LineTone::Special)
    );
    assert_eq!(
        tone(&three([913.8, 1370.6, 1776.7], 276, 0)),
        Some(LineTone::Special)
    );
    assert_eq!(tone(&three([1800.0, 1400.0, 950.0], 330, 20)), None);
    let calling = LineSound::default()
        .silence(900)
        .tone(&[1100.0], 500)
        .silence(1000);
    let answering = LineSound::default().silence(1800).tone(&[2100.0], 2600);
    for fax in [calling, answering] {
        let heard = heard(&fax);
        assert_eq!(heard.tone, Some(LineTone::Fax));
        assert_eq!(heard.answerer, Some(Answerer::Machine));
    }
}

#[test]
fn whoever_says_a_word_and_waits_is_a_human() {
    let heard = heard(&LineSound::person());
    assert_eq!(heard.answerer, Some(Answerer::Human));
    let after = heard.after.as_millis();
    assert!((1500..2000).contains(&after), "{after} ms");
    assert_eq!(heard.words, 1);
    let again = LineSound::default().silence(900).voice(400).silence(500);
    let again = self::heard(&again.voice(400).silence(1000));
    assert_eq!((again.answerer, again.words), (Some(Answerer::Human), 2));
}

#[test]
fn whoever_goes_on_speaking_is_a_machine_that_records_after_its_beep() {
    let greeting = LineSound::default().silence(300).voice(5000).silence(600);
    let before = heard(&greeting);
    assert_eq!(before.answerer, Some(Answerer::Machine));
    assert!(before.after < Duration::from_millis(2600), "{before:?}");
    assert!(!before.takes_message);
    for hertz in [440.0, 1000.0, 1400.0, 2000.0] {
        let beep = greeting.clone().tone(&[hertz], 300);
        assert!(!heard(&beep).takes_message, "{hertz} Hz are not over");
        assert!(heard(&beep.silence(1000)).takes_message, "{hertz} Hz");
    }
    // One that has no beep says nothing more.
    assert!(!heard(&greeting.clone().silence(3000)).takes_message);
    assert!(heard(&greeting.silence(5000)).takes_message);
}

#[test]
fn a_short_greeting_with_a_beep_is_a_machines() {
    let sound = LineSound::default().silence(300).voice(900).silence(300);
    let heard = heard(&sound.tone(&[1000.0], 400).silence(200));
    assert_eq!(heard.answerer, Some(Answerer::Machine));
    assert!(heard.takes_message);
}

#[test]
fn an_announcement_that_ends_in_busy_tones_has_no_beep() {
    let sound = LineSound::default().silence(300).voice(3000).silence(400);
    let heard = heard(&sound.rhythm(&[450.0], 350, 350, 4));
    assert_eq!(heard.tone, Some(LineTone::Busy));
    assert!(!heard.takes_message);
}

#[test]
fn silence_is_nobody() {
    for sound in [
        LineSound::default(),
        LineSound::default().silence(20_000),
        LineSound::person().louder(-40.0),
    ] {
        let heard = heard(&sound);
        assert_eq!((heard.answerer, heard.tone), (None, None));
    }
    assert!(heard(&LineSound::announcement()).is_announcement());
    assert!(!heard(&LineSound::person()).is_announcement());
}

#[test]
fn what_a_peer_leaves_out_is_silence() {
    let mut ears = Ears::default();
    for sample in LineSound::default().voice(500).samples() {
        assert!(!ears.hear(sample));
    }
    assert!(!ears.pass(8000 / 2));
    assert!(ears.pass(8000 / 2));
    assert_eq!(ears.report().answerer, Some(Answerer::Human));
    assert!(!ears.pass(u32::MAX));
}

proptest! {
    #[test]
    fn nothing_makes_them_panic(
        sounds in proptest::collection::vec((any::<i16>(), any::<i16>(), 1_usize..2000, any::<u32>()), 0..20),
    ) {
        let mut ears = Ears::default();
        for (one, other, length, pause) in sounds {
            for place in 0..length {
                ears.hear(if place % 7 < 3 { one } else { other });
            }
            ears.pass(pause);
        }
        ears.report();
    }
}
