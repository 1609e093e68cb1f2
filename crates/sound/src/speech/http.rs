//! An HTTP endpoint as a voice: JSON in, a WAV file out. The sockets are somebody else's (`docs/decisions/0006`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::command::played;
use super::{Engine, Mute, Speech};
use crate::wav::Limits;

/// Posts JSON and hands back the body of a successful answer. Whoever implements this keeps the limits.
pub trait Transport: Send + Sync {
    fn post(
        &self,
        url: &str,
        json: String,
        most_bytes: usize,
        time: Duration,
    ) -> Result<Vec<u8>, String>;
}

impl<F> Transport for F
where
    F: Fn(&str, String, usize, Duration) -> Result<Vec<u8>, String> + Send + Sync,
{
    fn post(
        &self,
        url: &str,
        json: String,
        most_bytes: usize,
        time: Duration,
    ) -> Result<Vec<u8>, String> {
        self(url, json, most_bytes, time)
    }
}

#[derive(Clone)]
pub struct Http {
    pub url: String,
    pub transport: Arc<dyn Transport>,
    pub time: Duration,
    pub limits: Limits,
    /// Changed by the operator when the voice behind the address changes, so that old prompts are not played again.
    pub version: String,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may carry a key.
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

impl Engine for Http {
    fn identity(&self) -> String {
        format!("http {} {}", self.url, self.version)
    }

    fn speak(&self, speech: &Speech) -> Result<Vec<f32>, Mute> {
        const WHO: &str = "the HTTP voice";
        let json = serde_json::json!({
            "text": speech.text,
            "speed": speech.voice.speed,
            "pitch": speech.voice.pitch,
        });
        let bytes = self
            .transport
            .post(&self.url, json.to_string(), self.limits.bytes, self.time)
            .map_err(|reason| Mute::Failed {
                who: WHO.into(),
                reason,
            })?;
        if bytes.len() > self.limits.bytes {
            return Err(Mute::TooMuch {
                who: WHO.into(),
                most: self.limits.bytes,
            });
        }
        played(WHO, &bytes, &self.limits)
    }
}
