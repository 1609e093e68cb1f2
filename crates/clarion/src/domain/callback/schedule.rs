//! When a callback that was not delivered is tried again.

use jiff::SignedDuration;

use super::{DeliveryResult, NextDelivery};

#[derive(Debug, Clone)]
pub struct RetrySchedule {
    /// The waits from one attempt to the next. After the last one the callback is given up.
    pub waits: Vec<SignedDuration>,
    /// The fraction of a wait that may be added to it.
    pub jitter: f64,
    /// The longest wait that a receiver may ask for.
    pub longest_asked: SignedDuration,
}

impl RetrySchedule {
    /// Decides what follows an attempt. `failures` is the number of failed attempts before this one, `asked` is the receiver's Retry-After,
    /// `random` is from 0 to 1. A receiver can ask for more time than the schedule gives it, not for less. What would come after `time_left`
    /// does not come.
    pub fn next(
        &self,
        verdict: DeliveryResult,
        failures: u32,
        time_left: Option<SignedDuration>,
        asked: Option<SignedDuration>,
        random: f64,
    ) -> NextDelivery {
        if verdict == DeliveryResult::Delivered {
            return NextDelivery::Delivered;
        }
        let place = usize::try_from(failures).unwrap_or(usize::MAX);
        match self.waits.get(place) {
            Some(wait) if verdict != DeliveryResult::Blocked => {
                let asked = asked.unwrap_or_default().min(self.longest_asked);
                let wait = stretched(*wait, self.jitter * random).max(asked);
                if time_left.is_some_and(|left| wait > left) {
                    return NextDelivery::GivenUp;
                }
                NextDelivery::RetryAfter(wait)
            }
            _ => NextDelivery::GivenUp,
        }
    }
}

fn stretched(wait: SignedDuration, part: f64) -> SignedDuration {
    SignedDuration::try_from_secs_f64(wait.as_secs_f64() * (1.0 + part)).unwrap_or(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule() -> RetrySchedule {
        RetrySchedule {
            waits: [5, 30, 120, 600, 1800, 7200, 18_000, 36_000, 86_400]
                .map(SignedDuration::from_secs)
                .to_vec(),
            jitter: 0.1,
            longest_asked: SignedDuration::from_hours(24),
        }
    }

    fn wait(
        verdict: DeliveryResult,
        failures: u32,
        asked: Option<i64>,
        random: f64,
    ) -> Option<i64> {
        let asked = asked.map(SignedDuration::from_secs);
        let next = schedule().next(verdict, failures, None, asked, random);
        next.wait()
            .map(|wait| i64::try_from(wait.as_millis()).unwrap())
    }

    #[test]
    fn nine_retries_and_then_it_is_given_up() {
        let waits: Vec<_> = (0..11)
            .map_while(|failures| wait(DeliveryResult::TimedOut, failures, None, 0.0))
            .collect();
        let seconds = [5, 30, 120, 600, 1800, 7200, 18_000, 36_000, 86_400];
        assert_eq!(waits, seconds.map(|wait| wait * 1000));
        assert_eq!(wait(DeliveryResult::TimedOut, u32::MAX, None, 0.0), None);
    }

    #[test]
    fn jitter_only_makes_it_later() {
        assert_eq!(wait(DeliveryResult::BadStatus, 0, None, 1.0), Some(5500));
        assert_eq!(wait(DeliveryResult::BadStatus, 1, None, 0.5), Some(31_500));
    }

    #[test]
    fn a_receiver_may_ask_for_more_time_within_bounds_and_not_for_less() {
        assert_eq!(
            wait(DeliveryResult::BadStatus, 0, Some(60), 0.0),
            Some(60_000)
        );
        assert_eq!(
            wait(DeliveryResult::BadStatus, 1, Some(1), 0.0),
            Some(30_000)
        );
        assert_eq!(
            wait(DeliveryResult::BadStatus, 0, Some(i64::MAX), 0.0),
            Some(86_400_000)
        );
        assert_eq!(
            wait(DeliveryResult::BadStatus, 0, Some(i64::MIN), 0.0),
            Some(5_000)
        );
    }

    #[test]
    fn what_is_delivered_or_blocked_is_not_tried_again() {
        let next = |verdict| schedule().next(verdict, 0, None, None, 0.0);
        assert_eq!(next(DeliveryResult::Delivered), NextDelivery::Delivered);
        assert_eq!(next(DeliveryResult::Blocked), NextDelivery::GivenUp);
    }

    #[test]
    fn what_has_a_limit_is_given_up_when_the_next_attempt_would_come_after_it() {
        let next = |failures, left, asked| {
            let (left, asked) = (
                SignedDuration::from_secs(left),
                SignedDuration::from_secs(asked),
            );
            let verdict = DeliveryResult::BadStatus;
            schedule().next(verdict, failures, Some(left), Some(asked), 0.0)
        };
        let after = |seconds| NextDelivery::RetryAfter(SignedDuration::from_secs(seconds));
        assert_eq!(next(0, 60, 0), after(5));
        assert_eq!(next(1, 54, 0), after(30));
        assert_eq!(next(1, 29, 0), NextDelivery::GivenUp);
        assert_eq!(next(0, 60, 61), NextDelivery::GivenUp);
        assert_eq!(next(0, -1, 0), NextDelivery::GivenUp);
    }
}
