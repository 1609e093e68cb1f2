//! Tunes of our own, slow and sparse, in the middle of what a telephone carries.

use super::canvas::{Canvas, Timbre};

const PIANO: Timbre = Timbre {
    partials: &[
        (1.0, 1.0, 1.0),
        (2.0, 0.45, 1.4),
        (3.0, 0.2, 1.9),
        (4.0, 0.1, 2.6),
        (5.0, 0.05, 3.0),
    ],
    rise: 0.006,
    ring: 2.6,
};
const BOX: Timbre = Timbre {
    partials: &[(1.0, 1.0, 1.0), (2.0, 0.25, 1.5), (3.0, 0.12, 2.5)],
    rise: 0.003,
    ring: 2.2,
};
const MARIMBA: Timbre = Timbre {
    partials: &[(1.0, 1.0, 1.0), (3.93, 0.25, 3.0)],
    rise: 0.004,
    ring: 0.9,
};
const CHIME: Timbre = Timbre {
    partials: &[
        (1.0, 1.0, 1.0),
        (2.0, 0.5, 1.3),
        (3.01, 0.25, 1.8),
        (4.2, 0.1, 2.5),
    ],
    rise: 0.004,
    ring: 2.0,
};

/// Semitones above the A of 220 Hz.
fn pitch(semitones: i8) -> f32 {
    220.0 * 2.0_f32.powf(f32::from(semitones) / 12.0)
}

/// Broken chords, two seconds each: C, A minor, F, G and back another way.
pub(super) fn piano() -> Vec<f32> {
    const CHORDS: [[i8; 4]; 8] = [
        [3, 7, 10, 15],
        [0, 3, 7, 12],
        [-4, 3, 8, 12],
        [-2, 2, 5, 10],
        [3, 10, 15, 19],
        [0, 7, 12, 15],
        [-4, 3, 8, 15],
        [-2, 5, 10, 14],
    ];
    let mut canvas = Canvas::of_seconds(20.0);
    for (place, chord) in (0_u8..).zip(CHORDS) {
        for (step, semitones) in (0_u8..).zip([chord[0], chord[1], chord[2], chord[3], chord[2]]) {
            let at = f32::from(place) * 2.5 + f32::from(step) * 0.5;
            let strength = if step == 0 { 0.5 } else { 0.32 };
            canvas.record(at, pitch(semitones), strength, &PIANO);
        }
    }
    canvas.samples
}

/// A few high notes of a pentatonic scale, as from a box that is nearly run down.
pub(super) fn music_box() -> Vec<f32> {
    const NOTES: [(f32, i8); 22] = [
        (0.0, 27),
        (0.7, 31),
        (1.4, 34),
        (2.8, 31),
        (3.5, 29),
        (4.9, 27),
        (5.6, 24),
        (7.0, 27),
        (7.7, 29),
        (8.4, 31),
        (9.8, 34),
        (10.5, 36),
        (11.9, 34),
        (12.6, 31),
        (13.3, 29),
        (14.7, 31),
        (15.4, 27),
        (16.8, 24),
        (17.5, 22),
        (18.2, 24),
        (19.6, 27),
        (20.3, 22),
    ];
    let mut canvas = Canvas::of_seconds(22.4);
    for (at, semitones) in NOTES {
        canvas.record(at, pitch(semitones), 0.4, &BOX);
    }
    canvas.samples
}

/// Four long chords that grow out of each other.
pub(super) fn strings() -> Vec<f32> {
    const CHORDS: [[i8; 4]; 4] = [
        [-9, 3, 7, 10],
        [-12, 0, 3, 7],
        [-4, 0, 3, 8],
        [-2, 2, 5, 10],
    ];
    let mut canvas = Canvas::of_seconds(24.0);
    for (place, chord) in (0_u8..).zip(CHORDS) {
        let at = f32::from(place) * 6.0;
        for semitones in chord {
            for (detune, partial, strength) in [
                (0.997, 1.0, 0.3),
                (1.003, 1.0, 0.3),
                (0.999, 2.0, 0.14),
                (1.002, 2.0, 0.14),
                (1.0, 3.0, 0.08),
                (1.0, 4.0, 0.04),
            ] {
                canvas.swell(at, 11.0, pitch(semitones) * detune * partial, strength);
            }
        }
    }
    canvas.samples
}

/// A light figure on wooden bars.
pub(super) fn marimba() -> Vec<f32> {
    const FIGURE: [i8; 16] = [3, 10, 15, 10, 7, 10, 19, 10, 5, 8, 17, 12, 5, 10, 14, 10];
    let mut canvas = Canvas::of_seconds(16.0);
    for beat in 0..40_u8 {
        let semitones = FIGURE[usize::from(beat) % FIGURE.len()];
        // The last of each five rests, so that the figure breathes.
        if beat % 5 == 4 {
            continue;
        }
        let strength = if beat % 4 == 0 { 0.5 } else { 0.35 };
        canvas.record(f32::from(beat) * 0.4, pitch(semitones), strength, &MARIMBA);
    }
    canvas.samples
}

/// Up, about, and home.
pub(super) fn test_tune() -> Vec<f32> {
    const NOTES: [(f32, i8, f32); 16] = [
        (0.1, 15, 0.5),
        (0.5, 19, 0.5),
        (0.9, 22, 0.5),
        (1.3, 27, 0.6),
        (2.1, 24, 0.5),
        (2.5, 22, 0.5),
        (2.9, 19, 0.5),
        (3.3, 20, 0.5),
        (3.7, 17, 0.6),
        (4.5, 15, 0.5),
        (4.9, 17, 0.5),
        (5.3, 19, 0.6),
        (5.7, 10, 0.5),
        (6.1, 15, 0.6),
        (6.1, 7, 0.4),
        (6.1, 3, 0.4),
    ];
    let mut canvas = Canvas::of_seconds(8.2);
    for (at, semitones, strength) in NOTES {
        canvas.record(at, pitch(semitones), strength, &CHIME);
    }
    canvas.samples
}
