//! What is on the line: tones of the network, a fax, a person, an answering machine and its beep. Sample by sample; it knows no packets and keeps no sound.
//!
//! Every 20 ms a spectrum says how loud the line is and whether it has a tone (`spectrum`). Tones are put together to bursts (`tone_runs`), and bursts to what the
//! network says by them (`line_tones`). What is loud and no tone is a voice: how long and in how many words it speaks before it waits for an answer tells a
//! person from a machine (`greeting`).

mod greeting;
mod line_tones;
mod spectrum;
mod tone_runs;

use std::time::Duration;

use self::greeting::{Beep, CalleeGreeting};
use self::line_tones::LineTones;
use self::spectrum::{FRAME, SoundFrame, Spectrum};
use self::tone_runs::ToneRuns;

const FRAME_TIME: Duration = Duration::from_millis(20);
/// What a peer leaves out for longer than this is no longer counted.
const LONGEST_PAUSE: u32 = 10 * 8000;
/// Shorter tones are parts of a voice.
const SHORTEST_TONE: u32 = 4;
/// A voice that says so much before the answer makes an announcement.
const ANNOUNCEMENT: Duration = Duration::from_secs(2);
const WORDS_OF_ANNOUNCEMENT: u32 = 3;

/// Who has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answerer {
    Human,
    /// An answering machine, or a fax.
    Machine,
    /// The call was over before it was known, or nobody had answered but the network.
    Unknown,
}

/// What the network says, or a fax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineTone {
    Busy,
    Congestion,
    Dial,
    /// Three rising tones before an announcement (ITU-T E.180, SIT).
    Special,
    /// A fax that calls (CNG) or answers (CED), by ITU-T T.30.
    Fax,
    /// A voice before the answer, and then a refusal.
    Announcement,
}

/// What the ears know so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EarReport {
    /// Known to be a human or a machine.
    pub answerer: Option<Answerer>,
    pub tone: Option<LineTone>,
    /// How much sound it took to know the first of these.
    pub after: Duration,
    /// The machine records now: its beep is over, or it has been silent for long.
    pub takes_message: bool,
    /// How long a voice has spoken, and in how many words.
    pub spoken: Duration,
    pub words: u32,
}

impl EarReport {
    /// Whether a voice has said more than a ringing line has.
    pub fn is_announcement(&self) -> bool {
        self.spoken >= ANNOUNCEMENT && self.words >= WORDS_OF_ANNOUNCEMENT
    }
}

#[derive(Debug, Default)]
pub struct Ears {
    spectrum: Spectrum,
    runs: ToneRuns,
    tones: LineTones,
    greeting: CalleeGreeting,
    beep: Beep,
    /// Heard so far.
    frames: u32,
    report: EarReport,
}

impl Ears {
    /// Takes the next sample. Returns true if more is known than before.
    #[inline]
    pub fn hear(&mut self, sample: i16) -> bool {
        match self.spectrum.hear(sample) {
            Some(frame) => self.judge(frame),
            None => false,
        }
    }

    /// So many samples of silence pass.
    pub fn pass(&mut self, samples: u32) -> bool {
        let frames = samples.min(LONGEST_PAUSE) as usize / FRAME;
        (0..frames).fold(false, |knows_more, _| {
            self.judge(SoundFrame::SILENCE) || knows_more
        })
    }

    pub fn report(&self) -> EarReport {
        self.report
    }

    fn judge(&mut self, frame: SoundFrame) -> bool {
        self.frames = self.frames.saturating_add(1);
        let burst = self.runs.hear(frame);
        let sounding = self.runs.sounding();
        let is_tone = sounding.is_some_and(|(_, length)| length >= SHORTEST_TONE);
        self.greeting.hear(frame.level, is_tone);
        let is_beep = self.beep.hear(burst, sounding);
        let before = self.report;
        let report = &mut self.report;
        report.spoken = FRAME_TIME * self.greeting.spoken();
        report.words = self.greeting.words();
        report.tone = report.tone.or_else(|| self.tones.hear(burst, sounding));
        let is_greeted = report.words > 0;
        report.answerer = match report.answerer {
            None if report.tone == Some(LineTone::Fax) => Some(Answerer::Machine),
            None if is_beep && is_greeted => Some(Answerer::Machine),
            None => self.greeting.answerer(),
            known => known,
        };
        if report.answerer == Some(Answerer::Machine) {
            report.takes_message |= is_beep || self.greeting.is_over();
        }
        if before.tone.is_none() && before.answerer.is_none() {
            report.after = FRAME_TIME * self.frames;
        }
        (before.tone, before.answerer, before.takes_message)
            != (report.tone, report.answerer, report.takes_message)
    }
}

#[cfg(test)]
mod tests;
