//! The voice options of a request, and what they mean. `docs/sound.md` has the same as a table; tests measure it.

use crate::level::{SPEECH_DB, from_db};

/// Zero everywhere is the natural voice. Values beyond the ranges count as their ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct VoiceOptions {
    /// -500 to 500.
    pub speed: i16,
    /// -20 to 20.
    pub volume: i8,
    /// -500 to 500.
    pub pitch: i16,
    /// 0 is none, 1 to 6 are the background sounds.
    pub background: u8,
}

/// Each unit of volume is this many dB: 10 up and 10 down over the whole range.
const DB_A_UNIT: f32 = 0.5;

/// From its natural pitch to either end.
const OCTAVES: f32 = 0.55;

impl VoiceOptions {
    /// How much faster than natural: from half to twice as fast, each 100 by the same ratio.
    pub fn tempo(self) -> f32 {
        2.0_f32.powf(f32::from(self.speed.clamp(-500, 500)) / 500.0)
    }

    /// The pitch from -1 to 1, 0 being natural.
    pub fn height(self) -> f32 {
        f32::from(self.pitch.clamp(-500, 500)) / 500.0
    }

    /// How much higher than natural, for voices whose sound is made higher: about as much as the embedded voice follows the same value.
    pub fn pitch_factor(self) -> f32 {
        2.0_f32.powf(self.height() * OCTAVES)
    }

    /// The loudness of the voice while it speaks, full scale being 1.
    pub fn loudness(self) -> f32 {
        let units = f32::from(self.volume.clamp(-20, 20));
        from_db(SPEECH_DB + units * DB_A_UNIT)
    }
}
