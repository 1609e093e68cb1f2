//! txtSpeed, txtVolume, txtPitch and txtBgsound do what `docs/sound.md` says, over their whole range, as heard at the other end.

use sound::VoiceOptions;
use sound::background::NAMES;

use super::measure::{db, median_pitch, rms};
use super::support::heard;

const ENGLISH: &str = "Your order has been shipped and will arrive tomorrow afternoon.";
const CHINESE: &str = "您的快递已经到达，请及时领取。";

fn natural() -> VoiceOptions {
    VoiceOptions::default()
}

fn loudness(samples: &[f32]) -> f64 {
    f64::from(sound::loudness::integrated(samples).unwrap())
}

#[test]
fn each_hundred_of_speed_is_audibly_faster_from_half_to_twice_the_pace() {
    for text in [ENGLISH, CHINESE] {
        let lengths: Vec<f64> = (-5..=5)
            .map(|step| {
                heard(
                    text,
                    VoiceOptions {
                        speed: step * 100,
                        ..natural()
                    },
                )
                .len() as f64
                    / 8000.0
            })
            .collect();
        println!("seconds at each 100 of speed: {lengths:.2?}");
        for pair in lengths.windows(2) {
            // Somebody notices a change of pace of about five percent.
            assert!(pair[1] < pair[0] * 0.95, "{lengths:.2?}");
        }
        let (slow, fast) = (lengths[0] / lengths[5], lengths[5] / lengths[10]);
        assert!(
            (1.6..=2.5).contains(&slow) && (1.6..=2.5).contains(&fast),
            "{slow:.2} {fast:.2}"
        );
    }
}

#[test]
fn each_four_of_volume_is_audibly_louder_and_nothing_clips() {
    for text in [ENGLISH, CHINESE] {
        let levels: Vec<f64> = (-5..=5)
            .map(|step| {
                let samples = heard(
                    text,
                    VoiceOptions {
                        volume: step * 4,
                        ..natural()
                    },
                );
                assert!(samples.iter().all(|sample| sample.abs() < 0.98));
                loudness(&samples)
            })
            .collect();
        println!("LUFS at each 4 of volume: {levels:.1?}");
        for pair in levels.windows(2) {
            assert!((0.5..=3.0).contains(&(pair[1] - pair[0])), "{levels:.1?}");
        }
        assert!((levels[5] - -23.0).abs() < 1.0, "{levels:.1?}");
        assert!((levels[0] - -33.0).abs() < 1.0, "{levels:.1?}");
        assert!(levels[10] > -16.5, "{levels:.1?}");
    }
}

#[test]
fn each_hundred_of_pitch_is_audibly_higher() {
    for text in [ENGLISH, CHINESE] {
        let pitches: Vec<f64> = (-5..=5)
            .map(|step| {
                median_pitch(&heard(
                    text,
                    VoiceOptions {
                        pitch: step * 100,
                        ..natural()
                    },
                ))
            })
            .collect();
        println!("Hz at each 100 of pitch: {pitches:.0?}");
        for pair in pitches.windows(2) {
            // Half a semitone is three percent.
            assert!(pair[1] > pair[0] * 1.03, "{pitches:.0?}");
        }
        assert!(pitches[10] / pitches[0] > 1.6, "{pitches:.0?}");
    }
}

#[test]
fn the_options_do_not_spoil_each_other() {
    let plain = heard(ENGLISH, natural());
    let low = heard(
        ENGLISH,
        VoiceOptions {
            pitch: -500,
            ..natural()
        },
    );
    let loud = heard(
        ENGLISH,
        VoiceOptions {
            volume: 20,
            ..natural()
        },
    );
    let lengths = [
        low.len() as f64 / plain.len() as f64,
        loud.len() as f64 / plain.len() as f64,
    ];
    assert!(
        lengths.iter().all(|ratio| (0.93..=1.07).contains(ratio)),
        "{lengths:?}"
    );
    assert!((loudness(&low) - loudness(&plain)).abs() < 1.0);
    let (heard_loud, heard_plain) = (median_pitch(&loud), median_pitch(&plain));
    assert!((heard_loud / heard_plain - 1.0).abs() < 0.05);
}

#[test]
fn each_background_is_heard_alone_gives_way_to_the_voice_and_fades() {
    let alone = heard(ENGLISH, natural());
    for number in 1..=6_u8 {
        let name = NAMES[usize::from(number) - 1];
        let samples = heard(
            ENGLISH,
            VoiceOptions {
                background: number,
                ..natural()
            },
        );
        assert_eq!(samples.len(), 4800 + alone.len() + 8000, "{name}");
        // The same code mixes it under silence: what is there beside the voice is the background.
        let voice = &samples[4800..4800 + alone.len()];
        let beside: Vec<f32> = voice
            .iter()
            .zip(&alone)
            .map(|(both, voice)| both - voice)
            .collect();
        let (under, lead) = (db(rms(&beside)), db(rms(&samples[3200..4200])));
        let voice = loudness(&alone);
        assert!(
            (-30.0..=-15.0).contains(&(under - voice)),
            "{name}: {under:.1} under {voice:.1}"
        );
        assert!(
            (-24.0..=-6.0).contains(&(lead - voice)),
            "{name}: {lead:.1} before {voice:.1}"
        );
        assert!(
            db(rms(&samples[..80])) < voice - 35.0,
            "{name} begins suddenly"
        );
        assert!(
            db(rms(&samples[samples.len() - 80..])) < voice - 35.0,
            "{name} ends suddenly"
        );
    }
    // A number nobody knows is none.
    assert_eq!(
        heard(
            ENGLISH,
            VoiceOptions {
                background: 7,
                ..natural()
            }
        ),
        alone
    );
}

#[test]
fn the_background_keeps_its_distance_from_a_quiet_voice() {
    let levels = [-20, 0].map(|volume| {
        let samples = heard(
            ENGLISH,
            VoiceOptions {
                volume,
                background: 5,
                ..natural()
            },
        );
        db(rms(&samples[3200..4200]))
    });
    assert!((levels[1] - levels[0] - 10.0).abs() < 2.0, "{levels:?}");
}

#[test]
fn text_that_mixes_everything_speaks_and_never_fails() {
    let syllables = "您好 Mr. Wang，您的 iPhone 15 已于 2026-11-15 15:30 发货🎉，运费¥12.50，电话13800138000。Thank you!";
    let mixed = heard(syllables, natural());
    assert!(
        (10.0..40.0).contains(&(mixed.len() as f64 / 8000.0)),
        "{}",
        mixed.len()
    );
    for text in [
        "",
        " ",
        "🎉🎉",
        "。。。",
        "-v en --stdout",
        "<speak><voice name='en'>x</voice></speak>",
        "[[aI]]",
        "\u{1}5S",
        "\0",
        "&lt;&#60;",
        "ありがとう",
        "Привет",
        "مرحبا",
        "\u{202e}abc",
        "𠮷野家",
        "ﷺ",
        "a\u{300}\u{301}",
        "'",
        "0",
        "٣",
        "Ⅷ",
        "½",
    ] {
        let samples = heard(text, natural());
        assert!(
            (1000..400_000).contains(&samples.len()),
            "{text:?}: {}",
            samples.len()
        );
    }
    // Nobody says an emoji, so it changes nothing.
    assert_eq!(heard("恭喜🎉您", natural()), heard("恭喜您", natural()));
}
