//! What is sent after the answer, how long that is, and how long a call may last.

use std::time::Duration;

use phone::media::stream::PlaybackItem as Play;
use sound::PromptError;

use super::Dispatch;
use super::call_task::DialProgress;
use crate::audio_files::prompts;
use crate::store::StoreError;

const FRAME_MILLIS: u32 = 20;
const LEAD_OUT: Duration = Duration::from_millis(300);

impl Dispatch {
    /// Now that the length of the prompt is known, only so much money stays reserved; the seconds that it pays for, where money is a limit.
    pub(super) async fn paid_seconds(
        &self,
        progress: &DialProgress,
        plan: &[Play],
    ) -> Result<Option<u32>, StoreError> {
        let frames: usize = plan
            .iter()
            .map(|step| match step {
                Play::Silence { frames } => *frames as usize,
                Play::Sound(sound) => sound.frames(),
                // A tenth of a second for each key, and as much between them.
                Play::Keys(keys) => keys.len() * 10,
            })
            .sum();
        let seconds = u32::try_from(frames.div_ceil(50)).unwrap_or(u32::MAX);
        let (sid, lease) = (&progress.claimed.call.sid, &progress.claimed.lease);
        let paid = self
            .store
            .tighten_reservation(sid, lease, seconds.saturating_add(1))
            .await;
        if let Err(error) = &paid {
            tracing::error!(%error, "a reservation could not be tightened");
        }
        paid
    }

    pub(super) fn talk_time(&self, asked: Option<u32>, paid: Option<u32>) -> Duration {
        [asked, paid]
            .into_iter()
            .flatten()
            .map(|seconds| Duration::from_secs(seconds.into()))
            .fold(self.config.calls.max_talk, Duration::min)
    }

    /// Everything that is sent after the answer: a moment of silence, the keys of an extension, the prompt.
    pub(super) async fn plan(&self, progress: &DialProgress) -> Result<Vec<Play>, PromptError> {
        let call = &progress.claimed.call;
        let playlist = prompts::make_ready(&self.renderer, &self.audio_files, &call.prompt).await?;
        let silence = |time: Duration| {
            let millis = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
            Play::Silence {
                frames: millis.div_ceil(FRAME_MILLIS),
            }
        };
        let settings = &self.config.dispatch;
        let mut plan = vec![silence(settings.lead_in)];
        if let Some(extension) = call.number.extension() {
            plan.push(silence(settings.extension_wait));
            plan.push(Play::Keys(extension.to_owned()));
            plan.push(silence(settings.extension_wait));
        }
        for step in playlist.steps() {
            plan.push(match step {
                sound::PlaylistItem::Silence(gap) => silence(gap),
                sound::PlaylistItem::Sound(sound) => Play::Sound(sound.clone()),
            });
        }
        // Many a telephone gives a packet out only when another one comes: the last words must not be the last packets.
        plan.push(silence(LEAD_OUT));
        plan.retain(|step| !matches!(step, Play::Silence { frames: 0 }));
        Ok(plan)
    }
}
