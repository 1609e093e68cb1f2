//! An external command as a voice: text on its standard input, a WAV file on its standard output.

use std::time::Duration;

use super::process::Program;
use super::{SpeakingTime, SpeechEngine, SpeechError, Utterance};
use crate::wav::{Wav, WavLimits};

/// The program and its arguments are the operator's; the text reaches neither. Speed and pitch stand in its environment as
/// `VOICE_SPEED` and `VOICE_PITCH`, in the numbers of the request.
#[derive(Debug, Clone)]
pub struct CommandEngine {
    pub program: String,
    pub arguments: Vec<String>,
    pub time: Duration,
    pub limits: WavLimits,
    /// Changed by the operator when the voice behind the command changes, so that old prompts are not played again.
    pub version: String,
}

impl SpeechEngine for CommandEngine {
    fn identity(&self) -> String {
        format!(
            "command {:?} {:?} {}",
            self.program, self.arguments, self.version
        )
    }

    fn speak(
        &self,
        speech: &Utterance,
        time: &mut SpeakingTime<'_>,
    ) -> Result<Vec<f32>, SpeechError> {
        let program = Program {
            path: &self.program,
            arguments: self.arguments.iter().map(Into::into).collect(),
            environment: vec![
                ("VOICE_SPEED", speech.options.speed.to_string()),
                ("VOICE_PITCH", speech.options.pitch.to_string()),
            ],
            time: self.time,
            deadline: time.within(self.time).deadline(),
            byte_limit: self.limits.bytes,
            gives_way: time.gives_way(),
        };
        let bytes = program.run(speech.text.clone().into_bytes())?;
        played(&self.program, speech, &bytes, self.limits)
    }
}

/// No voice takes longer for a character, whatever its speed, nor for what stands around a text.
const SECONDS_A_CHARACTER: usize = 2;
const SECONDS_AROUND: usize = 10;

/// The sound that somebody made of a text.
pub(super) fn played(
    who: &str,
    speech: &Utterance,
    bytes: &[u8],
    limits: WavLimits,
) -> Result<Vec<f32>, SpeechError> {
    let refused = |reason: String| SpeechError::NotWav {
        who: who.to_owned(),
        reason,
    };
    let longest = speech.text.chars().count() * SECONDS_A_CHARACTER + SECONDS_AROUND;
    let longest = u32::try_from(longest).unwrap_or(u32::MAX);
    let limits = WavLimits {
        seconds: limits.seconds.min(longest),
        ..limits
    };
    let wav = Wav::read(bytes, &limits).map_err(|error| refused(error.to_string()))?;
    if wav.is_cut() {
        return Err(refused("it breaks off before its end".to_owned()));
    }
    Ok(wav.for_the_line())
}
