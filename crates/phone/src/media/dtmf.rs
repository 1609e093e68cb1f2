//! Keys pressed: telephone-event packets (RFC 4733), and tones for peers that do not offer them.

use std::time::Duration;

use g711::{Codec, FRAME_BYTES, FRAME_MILLIS};

/// Samples in a frame of 20 ms.
const FRAME_SAMPLES: u16 = 160;
/// Shorter than 40 ms is not heard (ITU-T Q.24), and longer than a few seconds is no dialling; an event could count to 8 seconds.
const FRAMES: std::ops::RangeInclusive<u128> = 2..=250;
/// The end of an event is sent three times, in case one packet is lost (RFC 4733 section 2.5.1.4).
pub const END_PACKETS: u8 = 3;
const VOLUME: u8 = 10;
/// Five seconds: a timestamp further back than this is not a late packet, but another count.
const RECENT_SAMPLES: u32 = 40_000;
const END: u8 = 0x80;

/// How long a key is pressed, and how long the pause after it is, in whole frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyTiming {
    tone: u16,
    pause: u16,
}

impl KeyTiming {
    /// Rounded up to frames of 20 ms, and kept between 40 ms and 5 s.
    pub fn new(tone: Duration, pause: Duration) -> Self {
        let frames = |time: Duration| {
            let frames = time.as_millis().div_ceil(FRAME_MILLIS.into());
            let frames = frames.clamp(*FRAMES.start(), *FRAMES.end());
            u16::try_from(frames).unwrap_or(u16::MAX)
        };
        Self {
            tone: frames(tone),
            pause: frames(pause),
        }
    }

    pub fn tone_samples(self) -> u16 {
        self.tone * FRAME_SAMPLES
    }

    /// From the end of a key to the next one. The repeated ends of an event fall into it.
    pub fn pause_bytes(self) -> usize {
        usize::from(self.pause) * FRAME_BYTES
    }
}

/// 100 ms each, which every switchboard understands.
impl Default for KeyTiming {
    fn default() -> Self {
        Self { tone: 5, pause: 5 }
    }
}

/// Event code of a key: 0 to 9, then `*`, `#`, A to D.
pub fn event_of(key: char) -> Option<u8> {
    match key {
        '0'..='9' => Some(key as u8 - b'0'),
        '*' => Some(10),
        '#' => Some(11),
        'A'..='D' => Some(key as u8 - b'A' + 12),
        _ => None,
    }
}

pub fn key_of(event: u8) -> Option<char> {
    "0123456789*#ABCD".chars().nth(usize::from(event))
}

/// The payload of one telephone-event packet.
pub fn payload(event: u8, duration: u16, end: bool) -> [u8; 4] {
    let [high, low] = duration.to_be_bytes();
    [event, VOLUME | if end { END } else { 0 }, high, low]
}

/// Finds keys in the peer's packets: each event once, whatever was lost or sent again.
#[derive(Debug, Default)]
pub struct KeyListener {
    last: Option<u32>,
}

impl KeyListener {
    /// All packets of one event carry the same timestamp, which tells it from the next one; a packet with an older one is late and was
    /// counted before.
    pub fn receive(&mut self, timestamp: u32, payload: &[u8]) -> Option<char> {
        let [event, ..] = payload else { return None };
        let repeats = |last: u32| last.wrapping_sub(timestamp) < RECENT_SAMPLES;
        if payload.len() < 4 || self.last.is_some_and(repeats) {
            return None;
        }
        self.last = Some(timestamp);
        key_of(*event)
    }
}

/// The frequencies of the rows and of the columns of the pad (ITU-T Q.23).
pub const LOW: [f32; 4] = [697.0, 770.0, 852.0, 941.0];
pub const HIGH: [f32; 4] = [1209.0, 1336.0, 1477.0, 1633.0];
pub const PAD: [[char; 4]; 4] = [
    ['1', '2', '3', 'A'],
    ['4', '5', '6', 'B'],
    ['7', '8', '9', 'C'],
    ['*', '0', '#', 'D'],
];

/// The two frequencies of a key.
fn frequencies(event: u8) -> (f64, f64) {
    let key = key_of(event);
    let mut keys = PAD.as_flattened().iter();
    let place = keys.position(|known| Some(*known) == key).unwrap_or(0);
    (LOW[place / 4].into(), HIGH[place % 4].into())
}

/// A key as sound, encoded, in whole frames: the tone and the pause after it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the sum of two sines of 8000 fits a sample"
)]
pub fn tone(event: u8, codec: Codec, timing: KeyTiming) -> Vec<u8> {
    let (low, high) = frequencies(event);
    let sample = |index: u16| {
        let time = f64::from(index) / 8000.0 * std::f64::consts::TAU;
        ((low * time).sin() * 8000.0 + (high * time).sin() * 8000.0) as i16
    };
    let mut bytes: Vec<_> = (0..timing.tone_samples())
        .map(|index| codec.encode(sample(index)))
        .collect();
    bytes.resize(
        usize::from(timing.tone + timing.pause) * FRAME_BYTES,
        codec.silence(),
    );
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_events_belong_together() {
        for key in "0123456789*#ABCD".chars() {
            assert_eq!(key_of(event_of(key).unwrap()), Some(key));
        }
        assert_eq!((event_of('x'), key_of(16)), (None, None));
    }

    #[test]
    fn a_key_is_heard_once_however_often_its_packets_come() {
        let mut listener = KeyListener::default();
        let five = payload(5, 160, false);
        assert_eq!(listener.receive(1000, &five), Some('5'));
        for _ in 0..5 {
            assert_eq!(listener.receive(1000, &payload(5, 800, true)), None);
        }
        assert_eq!(listener.receive(2600, &five), Some('5'), "pressed again");
        assert_eq!(listener.receive(1000, &five), None, "that was late");
        assert_eq!(listener.receive(4200, &payload(99, 160, false)), None);
        assert_eq!(listener.receive(5000, &[5]), None);
        let elsewhere = 5_000_u32.wrapping_sub(100_000);
        assert_eq!(
            listener.receive(elsewhere, &five),
            Some('5'),
            "another count"
        );
    }

    #[test]
    fn times_are_whole_frames_within_reason() {
        let timing = |tone, pause| {
            let timing = KeyTiming::new(Duration::from_millis(tone), Duration::from_millis(pause));
            (timing.tone, timing.pause)
        };
        assert_eq!(timing(100, 100), (5, 5));
        assert_eq!(timing(41, 70), (3, 4));
        assert_eq!(timing(0, 3_600_000), (2, 250));
        let short = KeyTiming::new(Duration::ZERO, Duration::ZERO);
        assert_eq!(tone(1, Codec::Pcmu, short).len(), 4 * FRAME_BYTES);
    }

    /// Power of one frequency in the tone (Goertzel).
    fn power(samples: &[f64], frequency: f64) -> f64 {
        let coefficient = 2.0 * (std::f64::consts::TAU * frequency / 8000.0).cos();
        let (mut first, mut second) = (0.0, 0.0);
        for sample in samples {
            (second, first) = (first, sample + coefficient * first - second);
        }
        first * first + second * second - coefficient * first * second
    }

    #[test]
    fn a_tone_has_the_two_frequencies_of_its_key() {
        for key in "0123456789*#ABCD".chars() {
            let event = event_of(key).unwrap();
            let bytes = tone(event, Codec::Pcma, KeyTiming::default());
            let samples: Vec<f64> = bytes[..800]
                .iter()
                .map(|byte| f64::from(Codec::Pcma.decode(*byte)))
                .collect();
            let (low, high) = frequencies(event);
            let all = [697.0, 770.0, 852.0, 941.0, 1209.0, 1336.0, 1477.0, 1633.0];
            let weakest = power(&samples, low).min(power(&samples, high));
            for other in all
                .into_iter()
                .filter(|other| (other - low).abs() > 1.0 && (other - high).abs() > 1.0)
            {
                assert!(weakest > 50.0 * power(&samples, other), "{key}: {other} Hz");
            }
        }
    }
}
