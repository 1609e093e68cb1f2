//! Whether anybody is still there. A far end that dies in mid-call says nothing of it; sound that stops is a hint and no proof. So a far end
//! that is quiet is asked by OPTIONS, and what has shown before that it would answer, and does not, is gone.

use std::pin::Pin;
use std::time::Instant;

use crate::media::inbound_handle::InboundHandle;
use crate::signalling::{ByeAnswer, Presence, PresenceCheck};

pub(super) struct FarEnd {
    check: PresenceCheck,
    packets: InboundHandle,
    asking: Option<Pin<Box<dyn Future<Output = Presence> + Send>>>,
    /// It has answered a question of ours before.
    answers: bool,
    /// The last question did not get through.
    unreached: bool,
    /// Its last sign of life in the signalling.
    seen: Instant,
}

impl FarEnd {
    /// It has just answered the call.
    pub fn new(check: PresenceCheck, packets: InboundHandle, answered_at: Instant) -> Self {
        Self {
            check,
            packets,
            asking: None,
            answers: false,
            unreached: false,
            seen: answered_at,
        }
    }

    /// It has asked for something.
    pub fn seen(&mut self) {
        self.seen = Instant::now();
    }

    pub fn ask(&mut self) {
        let check = self.check.clone();
        self.asking
            .get_or_insert_with(|| Box::pin(async move { check.ask().await }));
    }

    /// Comes back when it is known to be gone. May be dropped and asked again at any time.
    pub async fn gone(&mut self) {
        loop {
            let Some(asking) = &mut self.asking else {
                return std::future::pending().await;
            };
            let presence = asking.await;
            self.asking = None;
            let before = std::mem::replace(&mut self.unreached, presence == Presence::Unreached);
            match presence {
                Presence::There => {
                    self.answers = true;
                    self.seen();
                }
                Presence::Gone => return,
                Presence::Silent if self.would_answer() => return,
                Presence::Unreached if before && self.would_answer() => return,
                // It never sends sound, and it does not answer questions: nobody can know.
                Presence::Silent | Presence::Unreached => {}
            }
        }
    }

    /// The moment until which it was there, if we hung up now and got this answer.
    pub fn there_until(&self, now: Instant, bye: ByeAnswer) -> Option<Instant> {
        let gone = bye == ByeAnswer::Missing && self.would_answer();
        gone.then(|| self.last_sign().min(now))
    }

    pub fn last_sign(&self) -> Instant {
        let heard = self.packets.heard().unwrap_or(self.seen);
        heard.max(self.seen)
    }

    /// One that has shown itself after the answer does so again, unless it is gone.
    fn would_answer(&self) -> bool {
        self.answers || self.packets.heard().is_some()
    }
}
