//! How a door tells the dispatcher that it has accepted a call: the dispatcher wakes, and the prompt is rendered while the call waits.
//!
//! Nothing depends on it. A call whose announcement is lost is found in the queue a second later.

use std::sync::Arc;

use tokio::sync::{Notify, mpsc};

use crate::domain::account::AccountSid;
use crate::domain::prompt::Prompt;

/// Prompts that wait for being rendered ahead of their calls.
const MAX_AHEAD: usize = 256;

/// A prompt, and whose call it belongs to.
pub type AcceptedPrompt = (AccountSid, Prompt);

/// The door's end. Cloning it makes another one.
#[derive(Debug, Clone)]
pub struct Announcer {
    queued: Arc<Notify>,
    prompts: mpsc::Sender<AcceptedPrompt>,
}

impl Announcer {
    /// Wakes `queued` for every call; the receiver gets the prompts.
    pub fn new(queued: Arc<Notify>) -> (Self, mpsc::Receiver<AcceptedPrompt>) {
        let (prompts, accepted) = mpsc::channel(MAX_AHEAD);
        (Self { queued, prompts }, accepted)
    }

    /// A call is durable and waits in the queue.
    pub fn call_accepted(&self, account: AccountSid, prompt: Prompt) {
        self.queued.notify_one();
        // Where too many wait already, this one is rendered when the call's turn comes.
        let _ = self.prompts.try_send((account, prompt));
    }
}
