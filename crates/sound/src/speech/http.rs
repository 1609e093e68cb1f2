//! An HTTP endpoint as a voice: JSON in, a WAV file out. The sockets are somebody else's (`docs/decisions/0006`).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::command::played;
use super::{SpeakingTime, SpeechEngine, SpeechError, Utterance};
use crate::wav::WavLimits;

/// Posts JSON and hands back the body of a successful answer. Whoever implements this keeps the limits.
pub trait SpeechTransport: Send + Sync {
    fn post(
        &self,
        url: &str,
        json: String,
        byte_limit: usize,
        time: Duration,
    ) -> Result<Vec<u8>, String>;
}

impl<F> SpeechTransport for F
where
    F: Fn(&str, String, usize, Duration) -> Result<Vec<u8>, String> + Send + Sync,
{
    fn post(
        &self,
        url: &str,
        json: String,
        byte_limit: usize,
        time: Duration,
    ) -> Result<Vec<u8>, String> {
        self(url, json, byte_limit, time)
    }
}

#[derive(Clone)]
pub struct HttpEngine {
    pub url: String,
    pub transport: Arc<dyn SpeechTransport>,
    pub time: Duration,
    pub limits: WavLimits,
    /// Changed by the operator when the voice behind the address changes, so that old prompts are not played again.
    pub version: String,
}

impl fmt::Debug for HttpEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may carry a key.
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

impl SpeechEngine for HttpEngine {
    fn identity(&self) -> String {
        format!("http {} {}", self.url, self.version)
    }

    fn speak(
        &self,
        speech: &Utterance,
        time: &mut SpeakingTime<'_>,
    ) -> Result<Vec<f32>, SpeechError> {
        const WHO: &str = "the HTTP voice";
        let json = serde_json::json!({
            "text": speech.text,
            "speed": speech.voice.speed,
            "pitch": speech.voice.pitch,
        });
        let deadline = time.within(self.time).deadline();
        let time = deadline.saturating_duration_since(Instant::now());
        let bytes = self
            .transport
            .post(&self.url, json.to_string(), self.limits.bytes, time)
            .map_err(|reason| SpeechError::Failed {
                who: WHO.into(),
                reason,
            })?;
        if bytes.len() > self.limits.bytes {
            return Err(SpeechError::TooMuch {
                who: WHO.into(),
                limit: self.limits.bytes,
            });
        }
        played(WHO, &bytes, &self.limits)
    }
}
