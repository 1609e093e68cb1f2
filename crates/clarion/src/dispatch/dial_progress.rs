//! How far a claimed call has come, in the hands of its task.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::domain::claim::{CallUpdate, ClaimedCall};
use crate::domain::leg::Leg;
use crate::domain::notice::keys::CalleeChoice;

/// What is known of a claimed call so far.
#[derive(Debug, Clone)]
pub struct DialProgress {
    pub claimed: ClaimedCall,
    pub claimed_at: Instant,
    pub trunk: Option<String>,
    /// Trunks that were tried for the call, also before it was claimed.
    pub tries: u32,
    pub dialled_at: Option<Timestamp>,
    pub rang_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    /// What the callee has said by keys; the first choice counts.
    pub choice: Option<CalleeChoice>,
    /// Who has spoken its text.
    pub voice: Option<String>,
    /// By the calling engine's own watch: what is written and confirmed afterwards does not lengthen a call.
    pub hung_up_at: Option<Timestamp>,
    /// Those that are over, in order.
    pub legs: Vec<Leg>,
    /// What the database did not take of the leg under way, and is tried again while it lasts.
    pub unwritten: Option<CallUpdate>,
}

impl DialProgress {
    pub fn new(claimed: ClaimedCall) -> Self {
        Self {
            tries: claimed.tries,
            claimed,
            claimed_at: Instant::now(),
            trunk: None,
            dialled_at: None,
            rang_at: None,
            answered_at: None,
            choice: None,
            voice: None,
            hung_up_at: None,
            legs: Vec::new(),
            unwritten: None,
        }
    }

    /// Its time is over, and nothing was dialled for this attempt: it must not begin any more.
    pub fn is_too_late(&self) -> bool {
        let left = self.claimed.time_left;
        let is_spent =
            |left| self.claimed_at.elapsed() >= Duration::try_from(left).unwrap_or_default();
        self.claimed.legs_before == 0 && self.legs.is_empty() && left.is_some_and(is_spent)
    }

    /// Trunks that were tried for this attempt.
    pub fn tries_of_attempt(&self) -> u32 {
        self.tries.saturating_sub(self.claimed.tries_before)
    }

    /// The talk is over. How long it was is known by the calling engine's own watch; when it began may have been noted late, so that it would end in
    /// the future.
    pub fn talked(&mut self, time: Duration, now: Timestamp) {
        let time = SignedDuration::try_from(time).unwrap_or_default();
        let dialled = self.dialled_at.unwrap_or(self.claimed.call.accepted_at);
        let noted = self.answered_at.unwrap_or(dialled);
        let answered = noted.min(now - time).max(dialled);
        self.answered_at = Some(answered);
        self.hung_up_at = Some(answered + time);
    }
}

/// A trunk that is tried for a call. It may have several addresses, and each INVITE to one is a leg.
#[derive(Debug, Clone)]
pub struct TrunkTry {
    /// Counted over all trunks and rounds of the call.
    pub number: u32,
    pub trunk: String,
}
