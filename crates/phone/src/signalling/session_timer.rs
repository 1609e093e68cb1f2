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

/// What a change of the peer's asks for, and what we agree to (RFC 4028 section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AskedTimer {
    seconds: u32,
    by_us: bool,
    is_supported: bool,
}

impl AskedTimer {
    /// `supported` says what the peer knows. Whoever is named refreshes; without a name it is the side that asks, if it knows how to.
    pub fn of_request(session_expires: &str, supported: &str) -> Option<Self> {
        let mut fields = session_expires.split(';').map(str::trim);
        let seconds = fields.next()?.parse().ok()?;
        let mut known = supported.split(',').map(str::trim);
        let is_supported = known.any(|extension| extension.eq_ignore_ascii_case("timer"));
        let names_us = fields.any(|field| field.eq_ignore_ascii_case("refresher=uas"));
        Some(Self {
            seconds,
            by_us: names_us || !is_supported,
            is_supported,
        })
    }

    /// The value of `Session-Expires` in our response.
    pub fn answered(self) -> String {
        let refresher = if self.by_us { "uas" } else { "uac" };
        format!("{};refresher={refresher}", self.seconds)
    }

    /// Whether the response may require that the peer knows about it.
    pub fn is_required(self) -> bool {
        self.is_supported
    }

    pub fn timer(self) -> SessionTimer {
        SessionTimer {
            interval: Duration::from_secs(self.seconds.max(SHORTEST).into()),
            ours: self.by_us,
        }
    }
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
    fn what_a_change_asks_for_is_agreed_to() {
        for (asked, supported, answered, required) in [
            ("1800", "timer", "1800;refresher=uac", true),
            (
                "1800;refresher=uac",
                "100rel, Timer",
                "1800;refresher=uac",
                true,
            ),
            ("600; refresher=UAS", "timer", "600;refresher=uas", true),
            ("600", "100rel", "600;refresher=uas", false),
            ("600;refresher=uac", "", "600;refresher=uas", false),
        ] {
            let timer = AskedTimer::of_request(asked, supported).unwrap();
            assert_eq!(
                (&*timer.answered(), timer.is_required()),
                (answered, required),
                "{asked}"
            );
            assert_eq!(timer.timer().ours, answered.ends_with("uas"));
        }
        assert_eq!(AskedTimer::of_request("soon", "timer"), None);
    }

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
