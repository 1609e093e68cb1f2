//! What networks and faxes say by tones: by their rhythm, or by their frequencies.
//!
//! Frequencies of busy and dial tones differ from country to country by less than their own tolerance (400, 425, 450 Hz), so the rhythm alone decides. China: busy
//! 350 ms and 350 ms, congestion 700 and 700. Elsewhere busy is 375 or 500 ms, and congestion 200 or 250 ms.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use super::LineTone;
use super::spectrum::Tone;
use super::tone_runs::Burst;

/// Tones of a rhythm, in frames of 20 ms.
const BUSY: RangeInclusive<u32> = 15..=30;
const QUICK: RangeInclusive<u32> = 7..=14;
const SLOW: RangeInclusive<u32> = 31..=42;
/// So many tones of a rhythm are heard before it is believed; of the slow one fewer, because they take longer.
const TONES: usize = 3;
const SLOW_TONES: usize = 2;
/// No ringing tone is as long as this.
const DIAL: u32 = 120;

/// The three tones of SIT, with their tolerance, length and longest pause (ITU-T E.180).
const SPECIAL: [f32; 3] = [950.0, 1400.0, 1800.0];
const SPECIAL_TOLERANCE: [f32; 3] = [0.07, 0.05, 0.035];
const SPECIAL_LENGTH: RangeInclusive<u32> = 8..=25;
const SPECIAL_PAUSE: u32 = 6;

/// CNG lasts half a second, CED three (ITU-T T.30).
const CALLING_FAX: f32 = 1100.0;
const CALLING_FAX_LENGTH: RangeInclusive<u32> = 20..=31;
const ANSWERING_FAX: f32 = 2100.0;
const ANSWERING_FAX_LENGTH: u32 = 50;
const FAX_TOLERANCE: f32 = 0.04;

#[derive(Debug, Default)]
pub struct LineTones {
    /// The last ones.
    bursts: VecDeque<Burst>,
}

impl LineTones {
    /// Takes a tone that has ended, and the one that is heard.
    pub fn hear(
        &mut self,
        ended: Option<Burst>,
        sounding: Option<(Tone, u32)>,
    ) -> Option<LineTone> {
        if let Some((tone, length)) = sounding {
            if length >= DIAL && tone.is_progress() {
                return Some(LineTone::Dial);
            }
            if length >= ANSWERING_FAX_LENGTH && tone.is_at(ANSWERING_FAX, FAX_TOLERANCE / 2.0) {
                return Some(LineTone::Fax);
            }
        }
        let ended = ended?;
        if self.bursts.len() == TONES {
            self.bursts.pop_front();
        }
        self.bursts.push_back(ended);
        self.fax(ended)
            .or_else(|| self.rhythm(ended))
            .or_else(|| self.special())
    }

    /// CNG comes first, and alone: a beep of the same frequency comes after other sound.
    fn fax(&self, ended: Burst) -> Option<LineTone> {
        let is_fax = self.bursts.len() == 1
            && ended.tone.is_at(CALLING_FAX, FAX_TOLERANCE)
            && CALLING_FAX_LENGTH.contains(&ended.length);
        is_fax.then_some(LineTone::Fax)
    }

    /// Tones and pauses that are all as long as the last tone.
    fn rhythm(&self, last: Burst) -> Option<LineTone> {
        let (said, tones) = if BUSY.contains(&last.length) {
            (LineTone::Busy, TONES)
        } else if QUICK.contains(&last.length) {
            (LineTone::Congestion, TONES)
        } else if SLOW.contains(&last.length) {
            (LineTone::Congestion, SLOW_TONES)
        } else {
            return None;
        };
        let first = self.bursts.len().checked_sub(tones)?;
        let is_equal = |frames: u32| frames.abs_diff(last.length) <= 2 + last.length / 8;
        let keeps = self
            .bursts
            .range(first..)
            .enumerate()
            .all(|(place, burst)| {
                let is_paused = place == 0 || is_equal(burst.pause);
                burst.tone.is_progress() && is_equal(burst.length) && is_paused
            });
        keeps.then_some(said)
    }

    fn special(&self) -> Option<LineTone> {
        let is_special = self.bursts.len() == TONES
            && self.bursts.iter().enumerate().all(|(place, burst)| {
                burst.tone.is_at(SPECIAL[place], SPECIAL_TOLERANCE[place])
                    && SPECIAL_LENGTH.contains(&burst.length)
                    && (place == 0 || burst.pause <= SPECIAL_PAUSE)
            });
        is_special.then_some(LineTone::Special)
    }
}
