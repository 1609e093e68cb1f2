//! When a call is dialled for the first time, and until when an attempt may begin.

use jiff::{SignedDuration, Timestamp, Zoned};

use crate::domain::call_window::CallWindow;
use crate::domain::notice::call_hours::CallHours;
use crate::domain::status_code::Refusal;

/// Both from the moment of the request on.
#[derive(Debug, Clone, Copy)]
pub struct PlacingTimes {
    pub pause: SignedDuration,
    pub valid_for: SignedDuration,
}

/// What the times of a request are reckoned by.
#[derive(Debug, Clone, Copy)]
pub struct RequestTimes<'a> {
    pub now: &'a Zoned,
    /// Of the account.
    pub hours: Option<&'a CallWindow>,
    /// How long a call is valid whose request does not say so.
    pub valid_for: SignedDuration,
}

impl RequestTimes<'_> {
    /// Of a request that says nothing of times.
    pub fn usual(&self) -> Result<PlacingTimes, Refusal> {
        let windows: Vec<_> = self.hours.into_iter().collect();
        self.within(&windows, self.now.timestamp(), self.valid_for)
    }

    /// Of one that shall be dialled within these hours, from the moment that is wished for.
    pub fn within(
        &self,
        windows: &[&CallWindow],
        wished: Timestamp,
        valid_for: SignedDuration,
    ) -> Result<PlacingTimes, Refusal> {
        let now = self.now.timestamp();
        let hours = CallHours {
            windows,
            zone: self.now.time_zone(),
        };
        let never = || {
            Refusal::field(
                "callWindow: within the hours of the account it is never open, so that nothing would be dialled",
            )
        };
        let begins = hours.next_open(wished).ok_or_else(never)?;
        let ends = hours.after(wished, valid_for).ok_or_else(never)?;
        let after = |moment: Timestamp| moment.duration_since(now);
        Ok(PlacingTimes {
            pause: after(begins),
            valid_for: after(ends),
        })
    }
}
