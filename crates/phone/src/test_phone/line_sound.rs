//! Sounds that telephones and networks make, as far as tests and the test phone need them: tones, pauses, and something like a voice.

use std::f64::consts::TAU;
use std::time::Duration;

use g711::EncodedAudio;

const RATE: f64 = 8000.0;
const SAMPLES_A_MILLI: usize = 8;
/// A tone of -14 dB of full scale, or two of -20 dB.
const LOUDNESS: f64 = 0.28;
/// A voice is a row of harmonics, in syllables that rise and fall.
const PITCH: f64 = 140.0;
const HARMONICS: u32 = 20;
const SYLLABLE_MILLIS: usize = 200;
const VOICE: f64 = 0.09;

/// Samples of 8 kHz, full scale being 1; each verb adds to them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LineSound {
    samples: Vec<f64>,
}

impl LineSound {
    /// "Hello?", and silence.
    pub fn person() -> Self {
        Self::default().silence(400).voice(500).silence(10_000)
    }

    /// Somebody is not at home: five seconds of voice, a beep, and silence.
    pub fn machine() -> Self {
        let greeting = Self::default().silence(300).voice(5000).silence(600);
        greeting.tone(&[1000.0], 500).silence(20_000)
    }

    /// Four seconds of a voice that pauses now and then.
    pub fn announcement() -> Self {
        let phrase = |sound: Self| sound.voice(800).silence(200);
        (0..4).fold(Self::default(), |sound, _| phrase(sound))
    }

    /// The busy tone of China.
    pub fn busy(times: usize) -> Self {
        Self::default().rhythm(&[450.0], 350, 350, times)
    }

    #[must_use]
    pub fn silence(mut self, millis: usize) -> Self {
        let length = self.samples.len() + millis * SAMPLES_A_MILLI;
        self.samples.resize(length, 0.0);
        self
    }

    /// These frequencies at once.
    #[must_use]
    pub fn tone(mut self, hertz: &[f64], millis: usize) -> Self {
        let loudness = LOUDNESS / hertz.len().max(1) as f64;
        for place in 0..millis * SAMPLES_A_MILLI {
            let turns = hertz.iter().map(|hertz| hertz * place as f64 / RATE);
            let sum: f64 = turns.map(|turns| (turns * TAU).sin()).sum();
            self.samples.push(sum * loudness);
        }
        self
    }

    /// A tone and a pause, so often.
    #[must_use]
    pub fn rhythm(self, hertz: &[f64], tone: usize, pause: usize, times: usize) -> Self {
        (0..times).fold(self, |sound, _| sound.tone(hertz, tone).silence(pause))
    }

    /// Something like a voice.
    #[must_use]
    pub fn voice(mut self, millis: usize) -> Self {
        let syllable = SYLLABLE_MILLIS * SAMPLES_A_MILLI;
        for place in 0..millis * SAMPLES_A_MILLI {
            let within = (place % syllable) as f64 / syllable as f64;
            let envelope = (within * TAU / 2.0).sin();
            let turns = PITCH * place as f64 / RATE;
            let harmonics = (1..=HARMONICS).map(f64::from);
            let sum: f64 = harmonics
                .map(|harmonic| (turns * harmonic * TAU).sin() / harmonic.sqrt())
                .sum();
            self.samples.push(sum * envelope * VOICE);
        }
        self
    }

    /// All of it louder or softer.
    #[must_use]
    pub fn louder(mut self, decibels: f64) -> Self {
        let gain = 10_f64.powf(decibels / 20.0);
        for sample in &mut self.samples {
            *sample *= gain;
        }
        self
    }

    pub fn length(&self) -> Duration {
        Duration::from_secs_f64(self.samples.len() as f64 / RATE)
    }

    #[expect(clippy::cast_possible_truncation, reason = "it saturates")]
    pub fn samples(&self) -> Vec<i16> {
        let whole = |sample: &f64| (sample * 32_767.0) as i16;
        self.samples.iter().map(whole).collect()
    }

    pub fn encode(&self) -> EncodedAudio {
        EncodedAudio::encode(&self.samples())
    }
}
