//! What a call costs: by called prefix, per started unit, in exact amounts. Also what is reserved for a call before its cost is known.

use crate::domain::money::Money;
use crate::domain::outcome::Outcome;
pub use crate::domain::prefix::Prefix;
use crate::domain::wording::{Wording, wording};

/// A higher price per unit is a typing error.
const HIGHEST_PRICE: Money = Money::from_millionths(10_000_000_000);

/// What calls to a prefix cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rate {
    pub prefix: Prefix,
    pub unit_seconds: u32,
    /// Price of each unit that has begun.
    pub price: Money,
    /// Price of a call that rang, was busy or was declined, and was not answered.
    pub unanswered: Money,
}

impl Rate {
    pub const LONGEST_UNIT: u32 = 86_400;

    pub fn check(self) -> Result<Self, Wording> {
        let longest = Self::LONGEST_UNIT;
        if !(1..=longest).contains(&self.unit_seconds) {
            return Err(wording!(
                "a unit has 1 to {longest} seconds",
                "计费单元为 1 到 {longest} 秒"
            ));
        }
        for amount in [self.price, self.unanswered] {
            if amount < Money::ZERO || amount > HIGHEST_PRICE {
                return Err(wording!(
                    "a price is from 0 to {HIGHEST_PRICE}",
                    "价格为 0 到 {HIGHEST_PRICE}"
                ));
            }
        }
        Ok(self)
    }
}

/// The last columns of a line: the fee is always units times rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Charge {
    pub units: u32,
    pub rate: Money,
    pub fee: Money,
}

impl Charge {
    fn new(units: u32, rate: Money) -> Self {
        Self {
            units,
            rate,
            fee: rate.times(units),
        }
    }
}

impl Rate {
    fn units(&self, seconds: u32) -> u32 {
        // An answered call has begun its first unit, however short it is.
        seconds.div_ceil(self.unit_seconds).max(1)
    }

    /// Returns the charge of a call that ended this way.
    pub fn charge(&self, answered: bool, seconds: u32, outcome: Outcome) -> Charge {
        if answered {
            return Charge::new(self.units(seconds), self.price);
        }
        if self.unanswered > Money::ZERO && outcome.was_tried() {
            return Charge::new(1, self.unanswered);
        }
        Charge::new(0, self.price)
    }

    /// Reserves money for a call that may talk this long: as many units as `available` can pay, and at least one.
    pub fn reserve(&self, longest_talk: u32, available: Money) -> Option<Reservation> {
        let least = self.price.max(self.unanswered);
        if available < least {
            return None;
        }
        let wanted = self.units(longest_talk);
        let payable = available
            .millionths()
            .checked_div(self.price.millionths())
            .map_or(wanted, |units| u32::try_from(units).unwrap_or(u32::MAX));
        Some(self.reservation(wanted.min(payable)))
    }

    fn reservation(&self, units: u32) -> Reservation {
        Reservation {
            rate: self.clone(),
            units,
            amount: self.price.times(units).max(self.unanswered),
        }
    }

    pub fn is_free(&self) -> bool {
        self.price == Money::ZERO && self.unanswered == Money::ZERO
    }
}

/// Money that is reserved for one call of an account with a balance or a limit, with the rate of the time when the call was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    pub rate: Rate,
    pub units: u32,
    pub amount: Money,
}

impl Reservation {
    /// Returns the charge, which is never more than was reserved, so that no limit can be exceeded.
    pub fn charge(&self, answered: bool, seconds: u32, outcome: Outcome) -> Charge {
        let charge = self.rate.charge(answered, seconds, outcome);
        if answered && charge.units > self.units {
            return Charge::new(self.units, self.rate.price);
        }
        charge
    }

    /// Returns the longest talk that is paid for, or `None` if talking costs nothing.
    pub fn longest_talk(&self) -> Option<u32> {
        (self.rate.price > Money::ZERO).then(|| self.units.saturating_mul(self.rate.unit_seconds))
    }

    /// Reduces the reservation to what a talk of this length needs.
    #[must_use]
    pub fn tightened(&self, longest_talk: u32) -> Self {
        self.rate
            .reservation(self.units.min(self.rate.units(longest_talk)))
    }
}

/// What an account can still spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Funds {
    pub balance: Option<Money>,
    pub spending_limit: Option<Money>,
    pub spent: Money,
    pub reserved: Money,
}

/// Why a call is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    Balance,
    SpendingLimit,
}

impl Funds {
    /// Whether there is anything that could be exceeded.
    pub fn is_limited(&self) -> bool {
        self.balance.is_some() || self.spending_limit.is_some()
    }

    pub fn reserve(&self, rate: &Rate, longest_talk: u32) -> Result<Reservation, Shortage> {
        let mut available = Money::MAX;
        if let Some(balance) = self.balance {
            available = balance.minus(self.reserved);
            rate.reserve(longest_talk, available)
                .ok_or(Shortage::Balance)?;
        }
        if let Some(limit) = self.spending_limit {
            available = available.min(limit.minus(self.spent).minus(self.reserved));
        }
        rate.reserve(longest_talk, available)
            .ok_or(Shortage::SpendingLimit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(unit_seconds: u32, price: &str, unanswered: &str) -> Rate {
        Rate {
            prefix: Prefix::default(),
            unit_seconds,
            price: price.parse().unwrap(),
            unanswered: unanswered.parse().unwrap(),
        }
    }

    fn fee(rate: &Rate, answered: bool, seconds: u32, outcome: Outcome) -> (u32, String) {
        let charge = rate.charge(answered, seconds, outcome);
        (charge.units, charge.fee.to_string())
    }

    #[test]
    fn a_call_costs_every_unit_that_has_begun() {
        let rate = rate(60, "0.055", "0");
        for (seconds, units, wanted) in [
            (0, 1, "0.055"),
            (1, 1, "0.055"),
            (60, 1, "0.055"),
            (61, 2, "0.11"),
            (3600, 60, "3.30"),
        ] {
            assert_eq!(
                fee(&rate, true, seconds, Outcome::Talked),
                (units, wanted.to_owned())
            );
        }
    }

    #[test]
    fn what_was_not_answered_is_free_unless_it_was_tried_and_has_a_price() {
        let free = rate(60, "1", "0");
        assert_eq!(fee(&free, false, 0, Outcome::Busy), (0, "0.00".to_owned()));
        let paid = rate(60, "1", "0.01");
        assert_eq!(fee(&paid, false, 0, Outcome::Busy), (1, "0.01".to_owned()));
        for outcome in [
            Outcome::TrunkFailure,
            Outcome::Expired,
            Outcome::Interrupted,
            Outcome::Cancelled,
        ] {
            assert_eq!(fee(&paid, false, 0, outcome).1, "0.00", "{outcome:?}");
        }
    }

    #[test]
    fn a_poor_account_reserves_what_it_can_pay_and_is_refused_without_one_unit() {
        let rate = rate(60, "0.5", "0");
        let funds = |balance: &str, limit: &str| Funds {
            balance: balance.parse().ok(),
            spending_limit: limit.parse().ok(),
            spent: "1".parse().unwrap(),
            reserved: "1".parse().unwrap(),
        };
        let units = |funds: Funds| funds.reserve(&rate, 600).map(|held| held.units);
        assert_eq!(units(funds("100", "")), Ok(10));
        assert_eq!(units(funds("2.3", "")), Ok(2));
        assert_eq!(units(funds("1.4", "")), Err(Shortage::Balance));
        assert_eq!(units(funds("", "2.6")), Ok(1));
        assert_eq!(units(funds("100", "2.4")), Err(Shortage::SpendingLimit));
    }

    proptest! {
        #[test]
        fn a_charge_never_exceeds_its_reservation(
            unit in 1u32..600, price in 0i64..10_000_000, unanswered in 0i64..1_000_000, longest in 1u32..7200,
            available in 0i64..100_000_000, tight in 1u32..7200, answered: bool, seconds in 0u32..10_000,
        ) {
            let rate = Rate {
                prefix: Prefix::default(),
                unit_seconds: unit,
                price: Money::from_millionths(price),
                unanswered: Money::from_millionths(unanswered),
            };
            let available = Money::from_millionths(available);
            if let Some(held) = rate.reserve(longest, available) {
                prop_assert!(held.amount <= available);
                let outcome = if answered { Outcome::Talked } else { Outcome::Busy };
                let tightened = held.tightened(tight);
                prop_assert!(tightened.amount <= held.amount);
                for held in [held, tightened] {
                    let charge = held.charge(answered, seconds, outcome);
                    prop_assert!(charge.fee <= held.amount);
                    prop_assert_eq!(charge.fee, charge.rate.times(charge.units));
                    if held.longest_talk().is_none_or(|longest| seconds <= longest) {
                        prop_assert_eq!(charge, held.rate.charge(answered, seconds, outcome));
                    }
                }
            }
        }
    }
}
