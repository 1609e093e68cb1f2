//! A speech server as a voice: JSON in, a WAV file out. The sockets are somebody else's (`docs/decisions/0006`).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::command::played;
use super::{NativeOptions, SpeakingTime, SpeechEngine, SpeechError, Utterance};
use crate::wav::WavLimits;

/// Posts JSON and hands back the body of a successful answer. Whoever implements this keeps the limits, and knows the key of the server.
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

/// What is written to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestForm {
    /// Our own: `{"text":…,"speed":…,"pitch":…}`, with the numbers of the request.
    Json,
    /// `POST /v1/audio/speech`, which many speech servers understand.
    OpenAi {
        model: String,
        speaker: String,
        /// The server follows `speed`; not all do.
        has_speed: bool,
    },
}

impl RequestForm {
    fn body(&self, speech: &Utterance) -> Value {
        match self {
            Self::Json => json!({
                "text": speech.text,
                "speed": speech.options.speed,
                "pitch": speech.options.pitch,
            }),
            Self::OpenAi {
                model,
                speaker,
                has_speed,
            } => {
                let mut body = json!({
                    "model": model,
                    "input": speech.text,
                    "voice": speaker,
                    "response_format": "wav",
                });
                if *has_speed {
                    body["speed"] = json!(hundredths(speech.options.tempo()));
                }
                body
            }
        }
    }

    fn native(&self) -> NativeOptions {
        match self {
            Self::Json => NativeOptions::ALL,
            Self::OpenAi { has_speed, .. } => NativeOptions {
                speed: *has_speed,
                pitch: false,
            },
        }
    }
}

/// As people write it: 1.15, not 1.1486983.
fn hundredths(factor: f32) -> f64 {
    (f64::from(factor) * 100.0).round() / 100.0
}

#[derive(Clone)]
pub struct HttpEngine {
    pub url: String,
    pub form: RequestForm,
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
        format!("http {} {:?} {}", self.url, self.form, self.version)
    }

    fn native(&self) -> NativeOptions {
        self.form.native()
    }

    fn speak(
        &self,
        speech: &Utterance,
        time: &mut SpeakingTime<'_>,
    ) -> Result<Vec<f32>, SpeechError> {
        const WHO: &str = "the speech server";
        let json = self.form.body(speech).to_string();
        let deadline = time.within(self.time).deadline();
        let time = deadline.saturating_duration_since(Instant::now());
        let bytes = self
            .transport
            .post(&self.url, json, self.limits.bytes, time)
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
        played(WHO, speech, &bytes, self.limits)
    }
}
