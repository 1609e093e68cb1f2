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
                ("VOICE_SPEED", speech.voice.speed.to_string()),
                ("VOICE_PITCH", speech.voice.pitch.to_string()),
            ],
            time: self.time,
            deadline: time.within(self.time).deadline(),
            byte_limit: self.limits.bytes,
        };
        let bytes = program.run(speech.text.clone().into_bytes())?;
        played(&self.program, &bytes, &self.limits)
    }
}

pub(super) fn played(who: &str, bytes: &[u8], limits: &WavLimits) -> Result<Vec<f32>, SpeechError> {
    let wav = Wav::read(bytes, limits).map_err(|error| SpeechError::NotWav {
        who: who.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(wav.for_the_line())
}
