use super::*;
use g711::Codec;
use proptest::prelude::*;

/// What a line carries, as samples.
#[derive(Debug, Clone)]
struct Line {
    samples: Vec<f64>,
    random: u64,
}

/// One tone: hertz and dBm0.
type Sine = (f64, f64);

impl Line {
    /// Begins with 50 ms of silence and some samples more, so that tones begin anywhere in a window.
    fn new(offset: usize) -> Self {
        Self {
            samples: vec![0.0; 400 + offset],
            random: 1,
        }
    }

    fn silence(mut self, millis: usize) -> Self {
        self.samples.extend(std::iter::repeat_n(0.0, millis * 8));
        self
    }

    fn sines(mut self, sines: &[Sine], millis: usize) -> Self {
        let turn = |hertz: f64, index: usize| hertz * index as f64 / 8000.0 * std::f64::consts::TAU;
        for index in 0..millis * 8 {
            let sines = sines.iter();
            let sum = sines.map(|(hertz, level)| amplitude(*level) * turn(*hertz, index).sin());
            self.samples.push(sum.sum());
        }
        self
    }

    fn key(self, key: char, millis: usize) -> Self {
        let [low, high] = tones(key);
        self.sines(&[(low, -10.0), (high, -10.0)], millis)
    }

    /// Noise over everything, as loud as a tone of this level.
    fn noise(mut self, level: f64) -> Self {
        let rms = amplitude(level) / 2.0_f64.sqrt();
        for place in 0..self.samples.len() {
            // The sum of twelve even numbers is nearly normal.
            let sum: f64 = (0..12).map(|_| self.random()).sum();
            self.samples[place] += (sum - 6.0) * rms;
        }
        self
    }

    fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The keys that are heard, with a silence behind them.
    fn heard(self, codec: Codec) -> String {
        let mut detector = ToneDetector::default();
        let samples = self.silence(100).samples.into_iter();
        #[expect(clippy::cast_possible_truncation, reason = "it saturates")]
        let on_the_line = samples.map(|sample| codec.decode(codec.encode(sample as i16)));
        on_the_line
            .filter_map(|sample| detector.hear(sample))
            .collect()
    }
}

/// The largest sample is 3.14 dBm0.
fn amplitude(level: f64) -> f64 {
    22_827.0 * 10.0_f64.powf(level / 20.0)
}

fn keys() -> impl Iterator<Item = char> {
    PAD.into_iter().flatten()
}

fn tones(key: char) -> [f64; 2] {
    let place = keys().position(|known| known == key).unwrap();
    [LOW[place / 4].into(), HIGH[place % 4].into()]
}

/// Where in a window a tone may begin.
fn offsets() -> impl Iterator<Item = usize> {
    (0..HOP).step_by(9)
}

/// Asserts that every key is heard once, or not at all, with these levels and errors of its low and its high tone.
fn check(heard: bool, millis: usize, levels: [f64; 2], errors: [f64; 2]) {
    for (key, offset) in keys().flat_map(|key| offsets().map(move |offset| (key, offset))) {
        let [low, high] = tones(key);
        let sines = [
            (low * (1.0 + errors[0]), levels[0]),
            (high * (1.0 + errors[1]), levels[1]),
        ];
        let line = Line::new(offset).sines(&sines, millis);
        let expected = if heard {
            key.to_string()
        } else {
            String::new()
        };
        assert_eq!(
            line.heard(Codec::Pcma),
            expected,
            "{key} at {offset}, {millis} ms, {levels:?} dBm0, {errors:?}"
        );
    }
}

#[test]
fn every_key_is_heard_once_in_both_codecs_however_long_it_is_pressed() {
    for codec in Codec::ALL {
        for key in keys() {
            for millis in [40, 65, 100, 1000] {
                let heard = Line::new(7).key(key, millis).heard(codec);
                assert_eq!(heard, key.to_string(), "{codec:?} {millis} ms");
            }
        }
    }
}

#[test]
fn tones_are_heard_from_a_certain_loudness_on() {
    for level in [0.0, -10.0, -25.0, -30.0] {
        check(true, 40, [level; 2], [0.0; 2]);
    }
    for level in [-36.0, -45.0] {
        check(false, 100, [level; 2], [0.0; 2]);
    }
}

#[test]
fn one_tone_may_be_stronger_than_the_other_but_not_by_much() {
    check(true, 40, [-8.0, -4.0], [0.0; 2]);
    check(true, 40, [-8.0, -16.0], [0.0; 2]);
    check(false, 100, [-12.0, -4.0], [0.0; 2]);
    check(false, 100, [-8.0, -20.0], [0.0; 2]);
}

#[test]
fn frequencies_are_right_within_one_and_a_half_percent_and_wrong_beyond_three_and_a_half() {
    for (low, high) in [
        (0.015, 0.015),
        (-0.015, 0.015),
        (0.015, -0.015),
        (-0.015, -0.015),
    ] {
        check(true, 40, [-10.0; 2], [low, high]);
    }
    for error in [0.035, -0.035, 0.045, -0.045] {
        check(false, 100, [-10.0; 2], [error, 0.0]);
        check(false, 100, [-10.0; 2], [0.0, error]);
    }
}

#[test]
fn forty_milliseconds_are_a_key_and_twenty_three_are_not() {
    check(true, 40, [-8.0, -6.0], [0.0; 2]);
    for millis in [10, 23, 25] {
        check(false, millis, [-8.0, -6.0], [0.0; 2]);
    }
}

#[test]
fn keys_are_heard_through_noise() {
    for (key, offset) in keys().flat_map(|key| offsets().map(move |offset| (key, offset))) {
        // The two tones together are 3 dB stronger than one.
        let line = Line::new(offset).key(key, 40).silence(60).key(key, 70);
        let heard = line.silence(200).noise(-7.0 - 15.0).heard(Codec::Pcma);
        assert_eq!(heard, [key; 2].iter().collect::<String>());
    }
}

#[test]
fn a_pause_makes_two_keys_and_an_interruption_does_not() {
    for (key, offset) in keys().flat_map(|key| offsets().map(move |offset| (key, offset))) {
        let line = |gap| {
            let line = Line::new(offset).key(key, 50).silence(gap).key(key, 50);
            line.heard(Codec::Pcma)
        };
        for gap in [5, 10] {
            assert_eq!(line(gap), key.to_string(), "{gap} ms");
        }
        for gap in [40, 60, 500] {
            assert_eq!(line(gap).len(), 2, "{gap} ms");
        }
    }
}

#[test]
fn a_key_may_follow_another_without_a_pause() {
    let line = Line::new(3).key('1', 60).key('2', 60).key('1', 60);
    assert_eq!(line.heard(Codec::Pcma), "121");
}

#[test]
fn a_burst_of_noise_does_not_make_two_keys_of_one() {
    let mut line = Line::new(0).key('5', 600);
    let burst = Line::new(0).silence(100).noise(-8.0).samples;
    for place in [1600, 3000] {
        for (sample, noise) in line.samples[place..].iter_mut().zip(&burst) {
            *sample += noise;
        }
    }
    assert_eq!(line.heard(Codec::Pcma), "5");
}

#[test]
fn a_key_that_fades_is_one() {
    let [low, high] = tones('7');
    let line = (0..8).fold(Line::new(0), |line, step| {
        let level = -4.0 - 3.0 * f64::from(step);
        line.sines(&[(low, level), (high, level)], 50)
    });
    assert_eq!(line.heard(Codec::Pcma), "7");
}

#[test]
fn the_tones_of_the_network_are_no_keys() {
    let tones: [&[Sine]; 14] = [
        &[(450.0, -10.0)],
        &[(425.0, -10.0)],
        &[(400.0, -10.0), (450.0, -10.0)],
        &[(350.0, -13.0), (440.0, -13.0)],
        &[(440.0, -13.0), (480.0, -13.0)],
        &[(480.0, -13.0), (620.0, -13.0)],
        &[(950.0, -10.0)],
        &[(1400.0, -10.0)],
        &[(1800.0, -10.0)],
        &[(1100.0, -10.0)],
        &[(2100.0, -10.0)],
        &[(697.0, -6.0)],
        &[(1209.0, -6.0)],
        &[(697.0, -10.0), (770.0, -10.0)],
    ];
    for sines in tones {
        let line = (0..4).fold(Line::new(0), |line, _| line.sines(sines, 350).silence(350));
        assert_eq!(line.heard(Codec::Pcma), "", "{sines:?}");
    }
}

/// Two notes at once, each with its harmonics, from A3 to A6.
#[test]
fn chords_are_no_keys() {
    let note = |number: i32| 220.0 * 2.0_f64.powf(f64::from(number) / 12.0);
    for lower in 0..36 {
        for upper in lower + 1..36 {
            let notes = [note(lower), note(upper)];
            let harmonics = notes.iter().flat_map(|hertz| {
                (1..5).map(move |times| {
                    let level = -12.0 - 20.0 * f64::from(times).log10();
                    (hertz * f64::from(times), level)
                })
            });
            let chord: Vec<_> = harmonics.filter(|(hertz, _)| *hertz < 3400.0).collect();
            let heard = Line::new(0).sines(&chord, 120).heard(Codec::Pcma);
            assert_eq!(heard, "", "{notes:?}");
        }
    }
}

/// How a throat answers a frequency: a resonance at each formant, over a voice that falls by 6 dB an octave. In dB.
fn throat(hertz: f64, formants: [f64; 4]) -> f64 {
    let resonance = |formant: f64| {
        let times = hertz / formant;
        let damping = times * 90.0 / formant;
        -10.0 * ((1.0 - times * times).powi(2) + damping * damping).log10()
    };
    formants.into_iter().map(resonance).sum::<f64>() - 20.0 * hertz.log10()
}

/// The first two formants of English vowels, of men and of women (Peterson and Barney, 1952).
const VOWELS: [[f64; 2]; 20] = [
    [270.0, 2290.0],
    [390.0, 1990.0],
    [530.0, 1840.0],
    [660.0, 1720.0],
    [730.0, 1090.0],
    [570.0, 840.0],
    [440.0, 1020.0],
    [300.0, 870.0],
    [640.0, 1190.0],
    [490.0, 1350.0],
    [310.0, 2790.0],
    [430.0, 2480.0],
    [610.0, 2330.0],
    [860.0, 2050.0],
    [850.0, 1220.0],
    [590.0, 920.0],
    [470.0, 1160.0],
    [370.0, 950.0],
    [760.0, 1400.0],
    [500.0, 1640.0],
];

/// On every pitch, without the lowest harmonics, which a line does not carry.
#[test]
fn vowels_are_no_keys() {
    for ([first, second], pitch) in
        (VOWELS.into_iter()).flat_map(|vowel| (80..400).step_by(7).map(move |pitch| (vowel, pitch)))
    {
        let harmonics = (1..).map(|times| f64::from(times * pitch));
        let mut vowel: Vec<_> = harmonics
            .skip_while(|hertz| *hertz < 300.0)
            .take_while(|hertz| *hertz < 3400.0)
            .map(|hertz| (hertz, throat(hertz, [first, second, 2500.0, 3300.0])))
            .collect();
        let loudest = vowel.iter().map(|sine| sine.1).fold(f64::MIN, f64::max);
        for (_, level) in &mut vowel {
            *level -= loudest + 8.0;
        }
        let heard = Line::new(0).sines(&vowel, 60).heard(Codec::Pcma);
        assert_eq!(heard, "", "{first} Hz, {second} Hz, pitch {pitch} Hz");
    }
}

#[test]
fn noise_is_no_key() {
    for level in [0.0, -10.0, -30.0] {
        let heard = Line::new(0).silence(5000).noise(level).heard(Codec::Pcma);
        assert_eq!(heard, "", "{level} dBm0");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_pressed_is_heard(
        pressed in "[0-9A-D*#]{1,6}",
        millis in 40_usize..150,
        pause in 40_usize..150,
        level in -25.0..-4.0,
        twist in -7.0..3.5,
        error in -0.014..0.014,
        offset in 0..HOP,
        codec in prop_oneof![Just(Codec::Pcma), Just(Codec::Pcmu)],
    ) {
        let line = pressed.chars().fold(Line::new(offset), |line, key| {
            let [low, high] = tones(key);
            let sines = [(low * (1.0 + error), level), (high * (1.0 - error), level + twist)];
            line.sines(&sines, millis).silence(pause)
        });
        prop_assert_eq!(line.heard(codec), pressed);
    }

    #[test]
    fn nothing_makes_it_panic(samples in proptest::collection::vec(any::<i16>(), 0..2000)) {
        let mut detector = ToneDetector::default();
        for sample in samples {
            detector.hear(sample);
        }
    }
}
