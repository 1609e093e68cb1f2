//! Session refreshes (RFC 4028): who refreshes, how often, and when the other side counts as gone.

use std::time::Duration;

/// The shortest interval that a session may be refreshed in (RFC 4028 section 4).
pub const SHORTEST: u32 = 90;

/// What an answer has agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTimer {
    pub interval: Duration,
    pub ours: bool,
}

impl SessionTimer {
    /// Reads `Session-Expires` of an answer to our INVITE. Without a named refresher it is us (RFC 4028 section 7.2).
    pub fn from_answer(value: &str) -> Option<Self> {
        let mut fields = value.split(';').map(str::trim);
        let seconds: u32 = fields.next()?.parse().ok()?;
        let ours = !fields.any(|field| field.eq_ignore_ascii_case("refresher=uas"));
        Some(Self {
            // A shorter interval would be an attack or a mistake; it is refreshed at the shortest allowed one.
            interval: Duration::from_secs(seconds.max(SHORTEST).into()),
            ours,
        })
    }

    /// When there is something to do, counted from the last refresh: refresh at half the interval, or give up shortly before its end
    /// (RFC 4028 section 10).
    pub fn due(self) -> Duration {
        if self.ours {
            self.interval / 2
        } else {
            let margin = (self.interval / 3).min(Duration::from_secs(32));
            self.interval.saturating_sub(margin)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refresher_and_the_due_time_are_known() {
        let ours = SessionTimer::from_answer("1800;refresher=uac").unwrap();
        assert_eq!((ours.ours, ours.due()), (true, Duration::from_secs(900)));
        let theirs = SessionTimer::from_answer("1800 ; refresher=UAS").unwrap();
        assert_eq!(
            (theirs.ours, theirs.due()),
            (false, Duration::from_secs(1768))
        );
        assert!(SessionTimer::from_answer("1800").unwrap().ours);
        assert_eq!(
            SessionTimer::from_answer("1").unwrap().interval,
            Duration::from_secs(90)
        );
        assert_eq!(SessionTimer::from_answer("soon"), None);
    }
}
