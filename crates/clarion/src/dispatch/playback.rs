//! What is sent after the answer, how long that is, and how long a call may last.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use phone::media::stream::PlaybackItem;
use sound::renderer::Requester;
use sound::{Playlist, PlaylistItem, PromptError, PromptRenderer};
use supervisor::Supervisor;

use crate::audio_files::{AudioFiles, prompts};
use crate::config::Config;
use crate::domain::account::AccountSid;
use crate::domain::call::NewCall;
use crate::domain::prompt::Prompt;

const FRAME: Duration = Duration::from_millis(g711::FRAME_MILLIS as u64);
/// Many a telephone plays a packet only when the next one comes: the last words must not be the last packets.
const LEAD_OUT: Duration = Duration::from_millis(300);
/// A key lasts a tenth of a second, and as much follows before the next.
const FRAMES_A_KEY: usize = 10;

/// The pauses around a message, and the longest call.
#[derive(Debug, Clone, Copy)]
pub struct PlaybackTimes {
    pub lead_in: Duration,
    /// Before and after the keys of an extension.
    pub extension_wait: Duration,
    pub longest_talk: Duration,
}

/// Where prompts come from. A simulation brings its own.
#[async_trait]
pub trait PromptSource: fmt::Debug + Send + Sync {
    /// Accounts take turns.
    async fn playlist(
        &self,
        account: &AccountSid,
        prompt: &Prompt,
    ) -> Result<Playlist, PromptError>;
}

/// Prompts made by the renderer.
#[derive(Debug)]
pub struct RenderedPrompts {
    renderer: PromptRenderer,
    audio_files: AudioFiles,
}

impl RenderedPrompts {
    pub fn open(
        config: &Config,
        audio_files: AudioFiles,
        supervisor: &Supervisor,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            renderer: prompts::open(supervisor, config)?,
            audio_files,
        })
    }
}

#[async_trait]
impl PromptSource for RenderedPrompts {
    async fn playlist(
        &self,
        account: &AccountSid,
        prompt: &Prompt,
    ) -> Result<Playlist, PromptError> {
        let requester = Requester(account.as_str());
        prompts::make_ready(&self.renderer, &self.audio_files, requester, prompt).await
    }
}

#[derive(Debug)]
pub struct Playback {
    pub prompts: Arc<dyn PromptSource>,
    pub times: PlaybackTimes,
}

/// Everything that is sent after the answer, in order.
#[derive(Debug, Clone)]
pub struct PlaybackPlan {
    pub items: Vec<PlaybackItem>,
}

impl PlaybackPlan {
    /// How long it lasts, rounded up.
    pub fn seconds(&self) -> u32 {
        let frames: usize = self
            .items
            .iter()
            .map(|item| match item {
                PlaybackItem::Silence { frames } => *frames as usize,
                PlaybackItem::Sound(sound) => sound.frames(),
                PlaybackItem::Keys(keys) => keys.len() * FRAMES_A_KEY,
            })
            .sum();
        let per_second = 1000 / g711::FRAME_MILLIS as usize;
        u32::try_from(frames.div_ceil(per_second)).unwrap_or(u32::MAX)
    }
}

impl Playback {
    /// A moment of silence, the keys of an extension, the prompt, and a moment of silence again.
    pub async fn plan(&self, call: &NewCall) -> Result<PlaybackPlan, PromptError> {
        let playlist = self.prompts.playlist(&call.account, &call.prompt).await?;
        let mut items = vec![silence(self.times.lead_in)];
        if let Some(extension) = call.number.extension() {
            items.push(silence(self.times.extension_wait));
            items.push(PlaybackItem::Keys(extension.to_owned()));
            items.push(silence(self.times.extension_wait));
        }
        items.extend(playlist.steps().map(|item| match item {
            PlaylistItem::Silence(gap) => silence(gap),
            PlaylistItem::Sound(sound) => PlaybackItem::Sound(sound.clone()),
        }));
        items.push(silence(LEAD_OUT));
        items.retain(|item| !matches!(item, PlaybackItem::Silence { frames: 0 }));
        Ok(PlaybackPlan { items })
    }

    /// The shortest of what the platform allows, what the request asks for, and what is paid for.
    pub fn talk_time(&self, asked: Option<u32>, paid: Option<u32>) -> Duration {
        let limits = [asked, paid].into_iter().flatten();
        limits
            .map(|seconds| Duration::from_secs(seconds.into()))
            .fold(self.times.longest_talk, Ord::min)
    }

    /// Renders a prompt before its call's turn comes.
    pub async fn render_ahead(&self, account: &AccountSid, prompt: &Prompt) {
        if let Err(error) = self.prompts.playlist(account, prompt).await {
            tracing::debug!(%error, "a prompt could not be rendered ahead");
        }
    }
}

fn silence(time: Duration) -> PlaybackItem {
    let frames = time.as_millis().div_ceil(FRAME.as_millis());
    PlaybackItem::Silence {
        frames: u32::try_from(frames).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use g711::EncodedAudio;

    use super::*;

    #[test]
    fn a_plan_lasts_as_long_as_its_parts_rounded_up() {
        let items = [
            silence(Duration::from_millis(500)),
            PlaybackItem::Keys("12".to_owned()),
            PlaybackItem::Sound(EncodedAudio::encode(&[0; 8000])),
            silence(Duration::from_millis(1)),
        ];
        let plan = PlaybackPlan {
            items: items.into(),
        };
        assert_eq!(plan.seconds(), 2, "0.5 + 0.4 + 1 + 0.02");
        let empty = PlaybackPlan { items: vec![] };
        assert_eq!(empty.seconds(), 0);
    }
}
