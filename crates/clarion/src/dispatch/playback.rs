//! What is sent after the answer, how long that is, and how long a call may last.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use phone::call::{KeyMenu, LONGEST_CHECK, LONGEST_GREETING, MAX_REPLAYS, MachineAction};
use phone::media::stream::PlaybackItem;
use sound::renderer::Requester;
use sound::{Playlist, PlaylistItem, PromptError, PromptRenderer};
use supervisor::Supervisor;

use super::key_prompts::{KeyPrompt, KeyPrompts};
use crate::audio_files::{AudioFiles, prompts};
use crate::config::Config;
use crate::domain::account::AccountSid;
use crate::domain::call::NewCall;
use crate::domain::notice::keys::NoticeKeys;
use crate::domain::notice::machine::MachineDetection;
use crate::domain::prompt::Prompt;

const FRAME: Duration = Duration::from_millis(g711::FRAME_MILLIS as u64);
/// Many a telephone plays a packet only when the next one comes: the last words must not be the last packets.
pub const LEAD_OUT: Duration = Duration::from_millis(300);
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

    /// Requesters take turns.
    pub async fn playlist_for(
        &self,
        requester: Requester<'_>,
        prompt: &Prompt,
    ) -> Result<Playlist, PromptError> {
        prompts::make_ready(&self.renderer, &self.audio_files, requester, prompt).await
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
        self.playlist_for(requester, prompt).await
    }
}

#[derive(Debug)]
pub struct Playback {
    pub prompts: Arc<dyn PromptSource>,
    pub key_prompts: KeyPrompts,
    pub times: PlaybackTimes,
}

/// Everything that is sent after the answer, in order.
#[derive(Debug, Clone)]
pub struct PlaybackPlan {
    /// Before the message.
    pub opening: Vec<PlaybackItem>,
    pub message: Vec<PlaybackItem>,
    /// What is asked of the callee, if anything.
    pub menu: Option<KeyMenu>,
    /// What is done about a machine, where the request wants to know who answers.
    pub machine: Option<MachineAction>,
    /// Who has spoken the text of the message, if it has one.
    pub voice: Option<String>,
}

impl PlaybackPlan {
    /// How long it lasts at most, rounded up: with every replay that the callee may ask for, and with waiting for a machine.
    pub fn seconds(&self) -> u32 {
        let message = frames(&self.message);
        let mut frames = frames(&self.opening) + message;
        if let Some(menu) = &self.menu {
            let asked = frames_of(menu.wait) + self::frames(&menu.question);
            let replays = menu.replay.map_or(0, |_| usize::from(MAX_REPLAYS));
            frames += asked + replays * (message + asked);
            frames += self::frames(&menu.thanks);
        }
        frames += match self.machine {
            None | Some(MachineAction::Report) => 0,
            Some(MachineAction::HangUp) => frames_of(LONGEST_CHECK),
            Some(MachineAction::SpeakAfterBeep) => frames_of(LONGEST_CHECK + LONGEST_GREETING),
        };
        let per_second = 1000 / g711::FRAME_MILLIS as usize;
        u32::try_from(frames.div_ceil(per_second)).unwrap_or(u32::MAX)
    }
}

fn frames(items: &[PlaybackItem]) -> usize {
    let of_item = |item: &PlaybackItem| match item {
        PlaybackItem::Silence { frames } => *frames as usize,
        PlaybackItem::Sound(sound) => sound.frames(),
        PlaybackItem::Keys(keys) => keys.len() * FRAMES_A_KEY,
    };
    items.iter().map(of_item).sum()
}

impl Playback {
    /// A moment of silence, the keys of an extension, the prompt, and a moment of silence again.
    pub async fn plan(&self, call: &NewCall) -> Result<PlaybackPlan, PromptError> {
        let said = self.prompts.playlist(&call.account, &call.prompt).await?;
        let voice = said.voice().map(str::to_owned);
        let mut message = played(&said);
        let mut opening = vec![silence(self.times.lead_in)];
        if let Some(extension) = call.number.extension() {
            opening.push(silence(self.times.extension_wait));
            opening.push(PlaybackItem::Keys(extension.to_owned()));
            opening.push(silence(self.times.extension_wait));
        }
        opening.retain(|item| !matches!(item, PlaybackItem::Silence { frames: 0 }));
        message.push(silence(LEAD_OUT));
        let menu = match call.keys() {
            Some(keys) => Some(self.menu(call, keys).await?),
            None => None,
        };
        Ok(PlaybackPlan {
            opening,
            message,
            menu,
            machine: call.machine().map(machine_action),
            voice,
        })
    }

    async fn menu(&self, call: &NewCall, keys: &NoticeKeys) -> Result<KeyMenu, PromptError> {
        let question = self.key_prompts.question(call, keys);
        let thanks = if keys.confirm.is_empty() {
            Vec::new()
        } else {
            let thanks = self.key_prompts.thanks(call);
            self.said_or_tone(call, thanks).await?
        };
        Ok(KeyMenu {
            question: self.said_or_tone(call, question).await?,
            wait: Duration::from_secs(keys.wait.into()),
            confirm: keys.confirm.clone(),
            replay: keys.replay,
            stop: keys.stop,
            thanks,
        })
    }

    /// A message is not kept from anybody because what is said around it cannot be spoken.
    async fn said_or_tone(
        &self,
        call: &NewCall,
        prompt: KeyPrompt<'_>,
    ) -> Result<Vec<PlaybackItem>, PromptError> {
        let Some(words) = &prompt.words else {
            return Ok(prompt.tone());
        };
        match self.said(call, words).await {
            Err(PromptError::Busy) => Err(PromptError::Busy),
            Err(error) => {
                tracing::warn!(%error, "what asks for a key cannot be spoken; the callee hears a tone");
                Ok(prompt.tone())
            }
            said => said,
        }
    }

    async fn said(
        &self,
        call: &NewCall,
        prompt: &Prompt,
    ) -> Result<Vec<PlaybackItem>, PromptError> {
        let playlist = self.prompts.playlist(&call.account, prompt).await?;
        Ok(played(&playlist))
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
        let rendered = self.prompts.playlist(account, prompt).await;
        let result = match &rendered {
            Ok(_) => "rendered",
            Err(_) => "failed",
        };
        metrics::counter!("clarion_prompts_prerendered_total", "result" => result).increment(1);
        if let Err(error) = rendered {
            tracing::debug!(%error, "a prompt could not be rendered ahead");
        }
    }
}

fn machine_action(wanted: MachineDetection) -> MachineAction {
    match wanted {
        MachineDetection::Report => MachineAction::Report,
        MachineDetection::HangUp => MachineAction::HangUp,
        MachineDetection::AfterBeep => MachineAction::SpeakAfterBeep,
    }
}

fn played(playlist: &Playlist) -> Vec<PlaybackItem> {
    let items = playlist.steps().map(|item| match item {
        PlaylistItem::Silence(gap) => silence(gap),
        PlaylistItem::Sound(sound) => PlaybackItem::Sound(sound.clone()),
    });
    let has_length = |item: &PlaybackItem| !matches!(item, PlaybackItem::Silence { frames: 0 });
    items.filter(has_length).collect()
}

fn silence(time: Duration) -> PlaybackItem {
    PlaybackItem::Silence {
        frames: u32::try_from(frames_of(time)).unwrap_or(u32::MAX),
    }
}

fn frames_of(time: Duration) -> usize {
    let frames = time.as_millis().div_ceil(FRAME.as_millis());
    usize::try_from(frames).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use g711::EncodedAudio;

    use super::*;

    #[test]
    fn a_plan_lasts_as_long_as_its_parts_rounded_up() {
        let mut plan = PlaybackPlan {
            opening: vec![
                silence(Duration::from_millis(500)),
                PlaybackItem::Keys("12".to_owned()),
            ],
            message: vec![
                PlaybackItem::Sound(EncodedAudio::encode(&[0; 8000])),
                silence(Duration::from_millis(1)),
            ],
            menu: None,
            machine: None,
            voice: None,
        };
        assert_eq!(plan.seconds(), 2, "0.5 + 0.4 + 1 + 0.02");
        plan.menu = Some(KeyMenu {
            question: vec![silence(Duration::from_secs(2))],
            wait: Duration::from_secs(10),
            confirm: vec!['1'],
            replay: None,
            stop: None,
            thanks: vec![silence(Duration::from_secs(1))],
        });
        assert_eq!(plan.seconds(), 15, "1.92 + 2 + 10 + 1");
        plan.menu.as_mut().unwrap().replay = Some('2');
        assert_eq!(plan.seconds(), 81, "and five times 1.02 + 2 + 10");
        let mut empty = PlaybackPlan {
            opening: vec![],
            message: vec![],
            menu: None,
            machine: None,
            voice: None,
        };
        assert_eq!(empty.seconds(), 0);
        for (action, seconds) in [
            (MachineAction::Report, 0),
            (MachineAction::HangUp, 4),
            (MachineAction::SpeakAfterBeep, 49),
        ] {
            empty.machine = Some(action);
            assert_eq!(empty.seconds(), seconds, "{action:?}");
        }
    }
}
