//! What the line of a call tells, until it is recorded.

use phone::call::{AnswerRecorded, CallEvent};
use phone::signalling::DialogSnapshot;
use tokio::sync::mpsc;

/// What happens on the line, in its order.
#[derive(Debug)]
pub struct LineEvents {
    happened: mpsc::UnboundedReceiver<CallEvent>,
    /// What has come and is not recorded yet.
    arrived: Vec<CallEvent>,
    pub is_over: bool,
}

/// So many events are taken at once.
const MAX_EVENTS: usize = 16;

impl LineEvents {
    pub fn new(happened: mpsc::UnboundedReceiver<CallEvent>) -> Self {
        Self {
            happened,
            arrived: Vec::new(),
            is_over: false,
        }
    }

    /// Waits until something has come. False if nothing will any more.
    pub async fn wait(&mut self) -> bool {
        if self.arrived.is_empty() && !self.is_over {
            self.receive().await;
        }
        !(self.arrived.is_empty() && self.is_over)
    }

    pub fn take_arrived(&mut self) -> Vec<CallEvent> {
        std::mem::take(&mut self.arrived)
    }

    pub async fn receive(&mut self) {
        let count = self.happened.recv_many(&mut self.arrived, MAX_EVENTS).await;
        self.is_over = count == 0;
    }

    /// An answer that is neither written nor noted.
    pub fn answer(&mut self) -> Option<(Option<String>, &mut AnswerRecorded)> {
        self.arrived.iter_mut().find_map(|event| match event {
            CallEvent::Answered(dialog, recorded) if !recorded.is_done() => {
                Some((dialog.as_deref().and_then(stored), recorded))
            }
            _ => None,
        })
    }
}

/// A dialog as it is kept in the store.
pub fn stored(dialog: &DialogSnapshot) -> Option<String> {
    serde_json::to_string(dialog)
        .inspect_err(|error| tracing::error!(%error, "a dialog could not be written"))
        .ok()
}
