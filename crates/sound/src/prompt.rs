//! What is played in one call: pieces in order, the whole of it several times. A repetition is a step, not a copy.

use std::sync::Arc;
use std::time::Duration;

use g711::EncodedAudio;

/// Sounds ready to be played. Cloning shares them.
#[derive(Debug, Clone)]
pub struct Playlist {
    sequence: Arc<[EncodedAudio]>,
    plays: u8,
    gap: Duration,
    voice: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaylistItem<'a> {
    Sound(&'a EncodedAudio),
    Silence(Duration),
}

impl Playlist {
    /// At least once, whatever is said.
    pub fn new(sequence: Vec<EncodedAudio>, plays: u8, gap: Duration) -> Self {
        Self {
            sequence: sequence.into(),
            plays: plays.max(1),
            gap,
            voice: None,
        }
    }

    /// The same, of which it is known who has spoken its text.
    #[must_use]
    pub fn spoken_by(mut self, voice: Option<Arc<str>>) -> Self {
        self.voice = voice;
        self
    }

    /// Who has spoken its text, if it has one.
    pub fn voice(&self) -> Option<&str> {
        self.voice.as_deref()
    }

    /// Every play of the sequence, with the gap between plays and none behind the last.
    pub fn steps(&self) -> impl Iterator<Item = PlaylistItem<'_>> {
        (0..self.plays).flat_map(move |play| {
            let gap = (play > 0 && !self.gap.is_zero()).then_some(PlaylistItem::Silence(self.gap));
            gap.into_iter()
                .chain(self.sequence.iter().map(PlaylistItem::Sound))
        })
    }

    /// All of it as somebody at the other end of the line hears it.
    pub fn heard(&self) -> Vec<i16> {
        let mut samples = Vec::new();
        for step in self.steps() {
            match step {
                PlaylistItem::Sound(sound) => samples.extend(sound.decode()),
                PlaylistItem::Silence(gap) => {
                    let millis = usize::try_from(gap.as_millis()).unwrap_or(0);
                    samples.resize(samples.len() + millis * crate::RATE as usize / 1000, 0);
                }
            }
        }
        samples
    }

    /// How long all of it lasts.
    pub fn seconds(&self) -> f64 {
        let step = |step| match step {
            PlaylistItem::Sound(sound) => EncodedAudio::seconds(sound),
            PlaylistItem::Silence(gap) => gap.as_secs_f64(),
        };
        self.steps().map(step).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_shares_its_sounds_and_is_parted_by_the_gap() {
        let (speech, file) = (
            EncodedAudio::encode(&[1; 160]),
            EncodedAudio::encode(&[2; 320]),
        );
        let gap = Duration::from_secs(1);
        let list = Playlist::new(vec![speech.clone(), file.clone()], 3, gap);
        let steps: Vec<_> = list.steps().collect();
        let (speech, file, gap) = (
            PlaylistItem::Sound(&speech),
            PlaylistItem::Sound(&file),
            PlaylistItem::Silence(gap),
        );
        assert_eq!(steps, [speech, file, gap, speech, file, gap, speech, file]);
        let [
            PlaylistItem::Sound(first),
            _,
            _,
            PlaylistItem::Sound(again),
            ..,
        ] = steps[..]
        else {
            panic!("{steps:?}");
        };
        assert!(Arc::ptr_eq(
            first.bytes(g711::Codec::Pcma),
            again.bytes(g711::Codec::Pcma)
        ));
        assert!((list.seconds() - 2.18).abs() < 1e-6);
    }
}
