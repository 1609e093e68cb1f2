//! Whether anybody is still there. A far end that dies in mid-call says nothing of it; sound that stops is a hint and no proof. So a far end
//! that is quiet is asked by OPTIONS, and what has shown before that it would answer, and does not, is gone.

use std::pin::Pin;
use std::time::Instant;

use crate::media::inbound_handle::InboundHandle;
use crate::signalling::{ByeAnswer, Presence, PresenceCheck};

/// So many questions of one that has only shown by its sound, or by a port that was open, that it is there: it may drop all questions, and
/// send nothing while it is silent.
const QUESTIONS: u32 = 2;

pub(super) struct FarEnd {
    check: PresenceCheck,
    packets: InboundHandle,
    asking: Option<Pin<Box<dyn Future<Output = Presence> + Send>>>,
    asked_at: Instant,
    /// It has answered a question of ours before.
    answers: bool,
    /// So many questions in a row got no answer.
    unanswered: u32,
    /// Its last sign of life in the signalling.
    seen: Instant,
    /// Since then our sound comes to a closed port: until then somebody had it open.
    closed: Option<Instant>,
}

impl FarEnd {
    /// It has just answered the call.
    pub fn new(check: PresenceCheck, packets: InboundHandle, answered_at: Instant) -> Self {
        Self {
            check,
            packets,
            asking: None,
            asked_at: answered_at,
            answers: false,
            unanswered: 0,
            seen: answered_at,
            closed: None,
        }
    }

    /// It has asked for something.
    pub fn seen(&mut self) {
        self.seen = Instant::now();
    }

    /// Our sound comes to a closed port.
    pub fn port_closed(&mut self) {
        self.closed.get_or_insert_with(Instant::now);
        self.ask();
    }

    /// Nothing has come for some time, and our sound comes to no closed port, or not any more.
    pub fn quiet(&mut self) {
        self.closed = None;
        self.ask();
    }

    fn ask(&mut self) {
        if self.asking.is_none() {
            let check = self.check.clone();
            self.asked_at = Instant::now();
            self.asking = Some(Box::pin(async move { check.ask().await }));
        }
    }

    /// Comes back when it is known to be gone. May be dropped and asked again at any time.
    pub async fn gone(&mut self) {
        loop {
            let Some(asking) = &mut self.asking else {
                return std::future::pending().await;
            };
            let presence = asking.await;
            self.asking = None;
            if presence == Presence::There {
                self.answers = true;
                self.seen();
            }
            // What has come since the question says more than what became of it.
            if self.last_sign() >= self.asked_at {
                self.unanswered = 0;
                continue;
            }
            self.unanswered += 1;
            let enough = match presence {
                Presence::There | Presence::Gone => return,
                Presence::Silent if self.answers => 1,
                Presence::Silent | Presence::Unreached => QUESTIONS,
            };
            // Of one that never sends sound and does not answer questions nobody can know, while its port is open.
            if self.would_answer() {
                if self.unanswered >= enough {
                    return;
                }
                // What somebody on the way has had a moment ago, he still has: that is asked again when it has been quiet for longer.
                if presence == Presence::Silent || self.closed.is_some() {
                    self.ask();
                }
            }
        }
    }

    /// The moment until which it was there, if we hung up now and got this answer.
    pub fn there_until(&self, now: Instant, bye: ByeAnswer) -> Option<Instant> {
        let gone = bye == ByeAnswer::Missing && self.would_answer();
        gone.then(|| self.last_there().min(now))
    }

    /// The last moment in which it is known to have been there. One that never sends sound has been so for as long as its port was open.
    pub fn last_there(&self) -> Instant {
        let open_until = self.closed.filter(|_| self.packets.heard().is_none());
        self.last_sign().max(open_until.unwrap_or(self.seen))
    }

    fn last_sign(&self) -> Instant {
        let heard = self.packets.heard().unwrap_or(self.seen);
        heard.max(self.seen)
    }

    /// One that has shown itself after the answer does so again, unless it is gone. So does one that has closed its port and is there.
    fn would_answer(&self) -> bool {
        self.answers || self.packets.heard().is_some() || self.closed.is_some()
    }
}
