//! What callees hear: of a call, of an audio file, of any prompt. Nothing of it is stored anew.

use natural::Installation;
use sound::Playlist;
use sound::renderer::Requester;
use supervisor::Supervisor;

use super::change::NotedChange;
use super::{Management, ManagementError};
use crate::audio_files::prompts;
use crate::dispatch::{KeyPrompts, LEAD_OUT};
use crate::domain::account::AppId;
use crate::domain::call::{CallKind, CallSid};
use crate::domain::prompt::Prompt;
use crate::domain::wording::wording;

/// Operators take turns with accounts.
const OPERATOR: &str = "the operator";

impl Management {
    /// Samples, 8,000 a second, as the callee hears them.
    pub async fn heard(&self, prompt: &Prompt) -> Result<Vec<i16>, ManagementError> {
        Ok(self.rendered(prompt).await?.heard())
    }

    /// A prompt as it is played, and who speaks in it.
    pub async fn rendered(&self, prompt: &Prompt) -> Result<Playlist, ManagementError> {
        let requester = Requester(OPERATOR);
        let rendered = if let Some(server) = &self.server {
            server.prompts.playlist_for(requester, prompt).await
        } else {
            // The prompts on disk belong to the server, which may be running.
            let mut config = (*self.config).clone();
            config.prompts.disk_bytes = None;
            let renderer = prompts::open(&Supervisor::new(), &config)?;
            prompts::make_ready(&renderer, &self.audio_files()?, requester, prompt).await
        };
        rendered.map_err(|error| ManagementError::rule(error.to_string()))
    }

    /// Fetches the natural voice for this machine. `tell` hears of each step.
    pub async fn install_natural_voice(
        &self,
        mut tell: impl FnMut(&str) + Send + 'static,
    ) -> Result<Installation, ManagementError> {
        let change = NotedChange::new("voice install").on("natural");
        let folder = self.config.speech.natural_folder.clone();
        let install = async {
            let installing =
                tokio::task::spawn_blocking(move || natural::install::install(&folder, &mut tell));
            installing.await.map_err(anyhow::Error::from)?
        };
        self.noted(change, install).await
    }

    /// The message of a call, and what asks for a key after it. What a code says is a secret, also of operators.
    pub async fn heard_in_call(&self, sid: &CallSid) -> Result<Vec<i16>, ManagementError> {
        let accepted = self.store.accepted_call(sid).await?;
        let missing = || ManagementError::missing(format!("call {sid}"));
        let call = accepted.ok_or_else(missing)?;
        if call.kind == CallKind::Verification {
            return Err(ManagementError::rule(wording!(
                "what a code says is not told",
                "验证码内容不予播放"
            )));
        }
        let mut heard = self.heard(&call.prompt).await?;
        if let Some(keys) = call.keys() {
            let prompts = KeyPrompts::new(&self.config.calls.sentences);
            let question = prompts.question(&call, keys);
            let pause = LEAD_OUT.as_millis() as usize * sound::RATE as usize / 1000;
            heard.resize(heard.len() + pause, 0);
            let words = match &question.words {
                Some(words) => self.heard(words).await.ok(),
                None => None,
            };
            // As in the call: words that cannot be spoken keep nobody from the message.
            heard.extend(words.unwrap_or_else(|| question.tone.decode()));
        }
        Ok(heard)
    }

    /// An audio file, as a call would play it.
    pub async fn heard_in_file(
        &self,
        app: Option<AppId>,
        name: &str,
    ) -> Result<Vec<i16>, ManagementError> {
        let owner = self.audio_owner(app).await?;
        let prompt = Prompt {
            speech: None,
            files: vec![self.audio_file(&owner, name).await?],
            code: None,
            plays: 1,
        };
        self.heard(&prompt).await
    }
}
