//! When the call of a request is dialled for the first time, and until when an attempt may begin. Who may be called then is not decided here.

use jiff::{SignedDuration, Timestamp, Zoned};

use crate::domain::call_window::CallWindow;
use crate::domain::notice::call_hours::CallHours;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::domain::wording::wording;

/// Both counted from the moment of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    /// Of a code: when its seconds are over by the clock, it is worth nothing, whether or not the account could call meanwhile.
    pub fn of_code(&self) -> Result<PlacingTimes, Refusal> {
        let windows: Vec<_> = self.hours.into_iter().collect();
        let (now, hours) = (self.now.timestamp(), self.open_in(&windows));
        let pause = hours.next_open(now).map(|opens| opens.duration_since(now));
        let pause = pause.filter(|pause| *pause < self.valid_for);
        let closed = || {
            let seconds = self.valid_for.as_secs();
            let rule = wording!(
                "to: the call hours of the account stay closed for longer than a code is valid, which is {seconds} seconds",
                "账户的允许呼叫时段在有效期（{seconds} 秒）内不会开放"
            );
            Refusal::worded(StatusCode::FieldWrong, &rule)
        };
        Ok(PlacingTimes {
            pause: pause.ok_or_else(closed)?,
            valid_for: self.valid_for,
        })
    }

    /// Of a request whose calls have windows of their own. Only time in which all of them are open counts.
    pub fn within(
        &self,
        windows: &[&CallWindow],
        wished: Timestamp,
        valid_for: SignedDuration,
    ) -> Result<PlacingTimes, Refusal> {
        let (now, hours) = (self.now.timestamp(), self.open_in(windows));
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

    fn open_in<'a>(&'a self, windows: &'a [&'a CallWindow]) -> CallHours<'a> {
        CallHours {
            windows,
            zone: self.now.time_zone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 20:00 and some seconds of a Monday: the seconds until it is dialled, and those until it is too late.
    fn times(hours: &str, seconds: i8, is_code: bool) -> Result<(i64, i64), String> {
        let now = jiff::civil::date(2026, 11, 16).at(20, 0, seconds, 0);
        let request = RequestTimes {
            now: &now.in_tz("Asia/Shanghai").unwrap(),
            hours: Some(&hours.parse().unwrap()),
            valid_for: SignedDuration::from_secs(120),
        };
        let times = if is_code {
            request.of_code()
        } else {
            request.usual()
        };
        let times = times.map_err(|refusal| refusal.message)?;
        Ok((times.pause.as_secs(), times.valid_for.as_secs()))
    }

    #[test]
    fn a_code_is_valid_by_the_clock_and_not_by_the_hours_of_its_account() {
        let code = |hours, seconds| times(hours, seconds, true);
        let closed = "to: the call hours of the account stay closed for longer than a code is valid, which is 120 seconds";
        assert_eq!(code("0800-2100", 0), Ok((0, 120)));
        // They close a minute later, and open on the next day.
        assert_eq!(code("0800-2001", 0), Ok((0, 120)));
        assert_eq!(times("0800-2001", 0, false), Ok((0, 12 * 3600 + 60)));
        // It may wait for them, and no longer than it is valid.
        assert_eq!(code("2001-2100", 0), Ok((60, 120)));
        assert_eq!(code("2002-2100", 1), Ok((119, 120)));
        assert_eq!(code("2002-2100", 0), Err(closed.to_owned()));
        assert_eq!(code("0800-2000", 0), Err(closed.to_owned()));
        assert_eq!(
            times("0800-2000", 0, false),
            Ok((12 * 3600, 12 * 3600 + 120))
        );
    }
}
