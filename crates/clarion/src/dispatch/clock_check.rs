//! Compares this machine's clock with the database's at every heartbeat. What is due and what has expired goes by the database's, but times
//! in callbacks and bills are this machine's.

use jiff::SignedDuration;

use crate::claim_holds::{ClaimHolds, HoldKind};

/// An operator should look at a clock that is off by more than this.
const NOTICEABLE: SignedDuration = SignedDuration::from_secs(1);

#[derive(Debug)]
pub struct ClockCheck {
    lease: SignedDuration,
    holds: ClaimHolds,
}

impl ClockCheck {
    pub fn new(lease: SignedDuration, holds: &ClaimHolds) -> Self {
        Self {
            lease,
            holds: holds.clone(),
        }
    }

    /// What is wrong, where the clock is off by so much that this node must not serve.
    pub fn refusal(&self, database_ahead: SignedDuration) -> Option<String> {
        (database_ahead.abs() > self.lease).then(|| {
            format!(
                "{}: more than a lease ({} s); set it right, for instance with chrony or systemd-timesyncd",
                describe(database_ahead),
                self.lease.as_secs()
            )
        })
    }

    /// Warns, or holds claims, as far off as the clock is. True if it is off: the next time says nothing new.
    pub fn judge(&self, database_ahead: SignedDuration, was_off: bool) -> bool {
        metrics::gauge!("clarion_clock_offset_seconds").set(database_ahead.as_secs_f64());
        self.holds
            .set(HoldKind::Clock, self.refusal(database_ahead));
        let is_off = database_ahead.abs() > NOTICEABLE;
        if is_off && !was_off {
            tracing::warn!("{}", describe(database_ahead));
        }
        is_off
    }
}

fn describe(database_ahead: SignedDuration) -> String {
    let (by, side) = (
        database_ahead.abs().as_secs_f64(),
        if database_ahead.is_negative() {
            "ahead of"
        } else {
            "behind"
        },
    );
    format!("this machine's clock is {by:.1} s {side} the database's")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_off_by_more_than_a_lease_may_not_serve() {
        let check = ClockCheck::new(SignedDuration::from_secs(15), &ClaimHolds::default());
        let millis = SignedDuration::from_millis;
        assert!(!check.judge(millis(900), false));
        assert!(check.judge(millis(-1100), false) && !check.holds.is_held());
        assert!(check.judge(millis(-7_200_000), true));
        let told = check.holds.reasons();
        let said =
            "this machine's clock is 7200.0 s ahead of the database's: more than a lease (15 s)";
        assert!(told[&HoldKind::Clock].starts_with(said), "{told:?}");
        assert!(check.refusal(millis(16_000)).unwrap().contains("behind"));
        assert!(!check.judge(SignedDuration::ZERO, true) && !check.holds.is_held());
    }
}
