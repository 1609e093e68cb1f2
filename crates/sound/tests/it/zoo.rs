//! Every kind of WAV file that people have, made here. What is refused is in `refusals`.

use sound::wav::{Wav, WavLimits, mono_16_bit};

use super::measure::{db, noise_against_tone, rms};
use super::support::{File, chunk, played, sine};

/// Away from the edges, where a sine that begins and ends suddenly is no sine.
fn middle(samples: &[f32]) -> &[f32] {
    &samples[samples.len() / 5..samples.len() * 4 / 5]
}

/// Kinds with the noise that their own precision allows, in dB against the tone.
const KINDS: [(u16, u16, f64); 8] = [
    (1, 8, -44.0),
    (1, 16, -90.0),
    (1, 24, -110.0),
    (1, 32, -110.0),
    (3, 32, -110.0),
    (3, 64, -110.0),
    (6, 8, -33.0),
    (7, 8, -33.0),
];

#[test]
fn every_kind_of_sample_is_read_at_its_own_precision() {
    for (tag, bits, floor) in KINDS {
        for (channels, extensible) in [(1, false), (2, false), (6, true)] {
            let file = File {
                extensible,
                ..File::new(tag, bits, channels, 8000)
            };
            let samples = played(&file.with(&sine(1000.0, 8000, 0.5, 0.5)));
            let noise = noise_against_tone(&samples, 1000.0, 8000.0);
            assert!(
                noise < floor,
                "{tag}/{bits} in {channels} channels: {noise:.1} dB"
            );
            assert_eq!(samples.len(), 4000);
        }
    }
}

#[test]
fn any_rate_arrives_at_8_khz_clean_level_and_to_the_sample() {
    for rate in [
        2000, 4000, 6000, 7350, 8000, 11_025, 11_127, 12_000, 16_000, 22_050, 24_000, 32_000,
        37_800, 44_056, 44_100, 44_101, 47_952, 48_000, 50_000, 88_200, 96_000, 176_400, 192_000,
        384_000,
    ] {
        let tone = sine(700.0, rate, 1.0, 0.5);
        let samples = played(&File::new(3, 32, 1, rate).with(&tone));
        assert_eq!(samples.len(), 8000, "{rate}");
        let noise = noise_against_tone(middle(&samples), 700.0, 8000.0);
        assert!(noise < -80.0, "{rate}: {noise:.1} dB");
        let level = db(rms(middle(&samples)) / (0.5 / 2_f64.sqrt()));
        assert!(level.abs() < 0.05, "{rate}: {level:.2} dB");
        // The beginning is where it was: no delay is left over.
        let expected = sine(700.0, 8000, 1.0, 0.5);
        let error: Vec<f64> = middle(&samples)
            .iter()
            .zip(&expected[1600..])
            .map(|(heard, sent)| f64::from(*heard) - sent)
            .collect();
        let worst = error
            .iter()
            .fold(0.0_f64, |worst, error| error.abs().max(worst));
        assert!(db(worst) < -60.0, "{rate}: {:.1} dB", db(worst));
    }
}

#[test]
fn what_the_line_can_carry_passes_and_what_it_cannot_does_not_come_back_as_another_tone() {
    for rate in [16_000, 22_050, 44_100, 48_000] {
        for frequency in [50.0, 300.0, 1000.0, 2000.0, 3000.0, 3400.0, 3700.0] {
            let samples = played(&File::new(3, 32, 1, rate).with(&sine(frequency, rate, 1.0, 0.5)));
            let level = db(rms(middle(&samples)) / (0.5 / 2_f64.sqrt()));
            assert!(level.abs() < 0.1, "{frequency} Hz of {rate}: {level:.2} dB");
        }
        for frequency in [4100.0, 4500.0, 5000.0, 6000.0, 7000.0, 7900.0] {
            let samples = played(&File::new(3, 32, 1, rate).with(&sine(frequency, rate, 1.0, 0.5)));
            let level = db(rms(middle(&samples)) / (0.5 / 2_f64.sqrt()));
            assert!(level < -80.0, "{frequency} Hz of {rate}: {level:.1} dB");
        }
    }
}

#[test]
fn nothing_clips_however_loud_the_file_is() {
    for strength in [1.0, 2.0, 12.0] {
        let tone = sine(1000.0, 44_100, 0.5, strength);
        let samples = played(&File::new(3, 32, 1, 44_100).with(&tone));
        let peak = samples
            .iter()
            .fold(0.0_f32, |peak, sample| sample.abs().max(peak));
        assert!(peak <= 0.951, "{strength}: {peak}");
        // One gain for all: a sine stays one.
        let noise = noise_against_tone(middle(&samples), 1000.0, 8000.0);
        assert!(noise < -80.0, "{strength}: {noise:.1} dB");
    }
    let square: Vec<f64> = (0..44_100)
        .map(|at| if at / 50 % 2 == 0 { 1.0 } else { -1.0 })
        .collect();
    let samples = played(&File::pcm16(44_100).with(&square));
    assert!(samples.iter().all(|sample| sample.abs() <= 0.951));
}

#[test]
fn broken_float_samples_are_silence_and_not_noise_for_ever() {
    let mut bytes: Vec<u8> = Vec::new();
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, 0.25] {
        for _ in 0..100 {
            bytes.extend(value.to_le_bytes());
        }
    }
    let samples = played(&File::new(3, 32, 1, 16_000).with_bytes(&bytes));
    assert!(
        samples
            .iter()
            .all(|sample| sample.is_finite() && sample.abs() <= 0.951)
    );
}

#[test]
fn lengths_that_are_wrong_and_chunks_that_are_odd_do_not_matter() {
    let tone = sine(440.0, 8000, 0.25, 0.5);
    let right = played(&File::pcm16(8000).with(&tone));
    let plain = File::pcm16(8000);
    let odd = chunk(*b"LIST", b"INFOIART\x03\0\0\0abc");
    let unpadded = [b"note\x03\0\0\0".as_slice(), b"abc"].concat();
    let files = [
        (
            "all ones",
            File {
                riff_length: Some(u32::MAX),
                data_length: Some(u32::MAX),
                ..plain.clone()
            },
        ),
        (
            "a pipe's",
            File {
                riff_length: Some(0x7fff_f024),
                data_length: Some(0x7fff_f000),
                ..plain.clone()
            },
        ),
        (
            "never filled in",
            File {
                riff_length: Some(0),
                data_length: Some(0),
                ..plain.clone()
            },
        ),
        (
            "no block size",
            File {
                block_align: Some(0),
                ..plain.clone()
            },
        ),
        (
            "chunks around",
            File {
                chunks_before: odd.clone(),
                chunks_behind: odd.clone(),
                ..plain.clone()
            },
        ),
        (
            "no padding",
            File {
                chunks_before: unpadded,
                ..plain.clone()
            },
        ),
        (
            "empty chunk",
            File {
                chunks_before: chunk(*b"JUNK", b""),
                ..plain
            },
        ),
    ];
    for (name, file) in files {
        assert_eq!(played(&file.with(&tone)), right, "{name}");
    }
    let mut rf64 = File {
        data_length: Some(u32::MAX),
        ..File::pcm16(8000)
    }
    .with(&tone);
    rf64[..4].copy_from_slice(b"RF64");
    assert_eq!(played(&rf64), right);
}

#[test]
fn a_file_cut_short_plays_as_far_as_it_goes() {
    let whole = File::new(1, 16, 2, 8000).with(&sine(440.0, 8000, 1.0, 0.5));
    for cut in [1, 2, 3, 4, 1000, 20_001] {
        let samples = played(&whole[..whole.len() - cut]);
        assert_eq!(samples.len(), (32_000 - cut) / 4, "{cut}");
    }
    // Any beginning of a file is played or refused.
    for length in 0..400 {
        let _ = Wav::read(&whole[..length], &WavLimits::default()).map(|wav| wav.for_the_line());
    }
}

#[test]
fn stereo_is_mixed_and_not_summed() {
    let mut bytes = Vec::new();
    for _ in 0..800 {
        bytes.extend(16_000_i16.to_le_bytes());
        bytes.extend(8_000_i16.to_le_bytes());
    }
    let samples = played(&File::new(1, 16, 2, 8000).with_bytes(&bytes));
    assert!(
        samples
            .iter()
            .all(|sample| (sample - 12_000.0 / 32768.0).abs() < 1e-6)
    );
}

#[test]
fn what_is_written_is_read_back() {
    let samples: Vec<i16> = (0..1000).map(|at| at * 31 - 15_000).collect();
    let read = played(&mono_16_bit(&samples, 8000));
    let expected: Vec<f32> = samples
        .iter()
        .map(|sample| f32::from(*sample) / 32768.0)
        .collect();
    assert_eq!(read, expected);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_played_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), at in 0..60_usize) {
        let mut file = File::new(1, 16, 2, 11_025).with(&[0.1; 40]);
        for (offset, byte) in bytes.iter().enumerate() {
            if let Some(place) = file.get_mut(at + offset) {
                *place = *byte;
            }
        }
        let limits = WavLimits { bytes: 10_000, seconds: 10 };
        if let Ok(wav) = Wav::read(&file, &limits) {
            proptest::prop_assert!(wav.for_the_line().iter().all(|sample| sample.abs() <= 0.951));
        }
    }
}
