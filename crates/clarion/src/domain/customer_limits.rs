//! How many calls of an account and of an application may be under way at once and start in a second, counted over all nodes where calls are
//! claimed.

use std::collections::HashMap;

use super::account::{AccountSid, AppId};

/// Calls at once, and calls started a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    pub at_once: u32,
    pub per_second: u32,
}

impl CallLimits {
    pub const NONE: Self = Self {
        at_once: u32::MAX,
        per_second: u32::MAX,
    };
}

/// Whose limits they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Customer {
    Account(AccountSid),
    App(AppId),
}

impl Customer {
    /// Its name in a table that holds both kinds.
    pub fn key(&self) -> String {
        match self {
            Self::Account(sid) => format!("account {sid}"),
            Self::App(id) => format!("app {id}"),
        }
    }
}

/// What may start now, in thousandths: a second brings as many as the limit says, and no more than a second's worth is saved up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartTokens {
    pub thousandths: i64,
    /// In milliseconds of the store's clock.
    pub counted_at: i64,
}

impl StartTokens {
    pub fn full(limits: CallLimits, now: i64) -> Self {
        Self {
            thousandths: i64::from(limits.per_second) * 1000,
            counted_at: now,
        }
    }

    fn at(self, limits: CallLimits, now: i64) -> Self {
        let rate = i64::from(limits.per_second);
        // One call a second is one thousandth of a call a millisecond.
        let brought = (now - self.counted_at).clamp(0, 1000) * rate;
        Self {
            thousandths: (self.thousandths + brought).min(rate * 1000),
            counted_at: now,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Left {
    limits: CallLimits,
    at_once: u32,
    tokens: StartTokens,
}

impl Left {
    fn calls(&self) -> u32 {
        let starts = u32::try_from(self.tokens.thousandths / 1000).unwrap_or(0);
        self.at_once.min(starts)
    }
}

/// What is left of the limits of some customers while calls of theirs are being claimed.
#[derive(Debug, Clone, Default)]
pub struct LimitLedger {
    left: HashMap<Customer, Left>,
}

impl LimitLedger {
    /// A customer with so many calls under way, and the tokens that it had when they were last counted.
    pub fn add(
        &mut self,
        customer: Customer,
        limits: CallLimits,
        under_way: u32,
        tokens: Option<StartTokens>,
        now: i64,
    ) {
        let tokens = tokens.unwrap_or_else(|| StartTokens::full(limits, now));
        let left = Left {
            limits,
            at_once: limits.at_once.saturating_sub(under_way),
            tokens: tokens.at(limits, now),
        };
        self.left.insert(customer, left);
    }

    /// How many more calls may be claimed. None of a customer that is not known.
    pub fn left(&self, account: &AccountSid, app: &AppId) -> u32 {
        let of = |customer| self.left.get(&customer).map_or(0, Left::calls);
        of(Customer::Account(account.clone())).min(of(Customer::App(app.clone())))
    }

    pub fn take(&mut self, account: &AccountSid, app: &AppId) {
        let customers = [
            Customer::Account(account.clone()),
            Customer::App(app.clone()),
        ];
        for customer in customers {
            if let Some(left) = self.left.get_mut(&customer) {
                left.at_once = left.at_once.saturating_sub(1);
                left.tokens.thousandths -= 1000;
            }
        }
    }

    /// What is to be written down: the tokens of customers whose starts are limited.
    pub fn tokens(&self) -> impl Iterator<Item = (&Customer, StartTokens)> {
        let limited = self
            .left
            .iter()
            .filter(|(_, left)| left.limits.per_second < u32::MAX);
        limited.map(|(customer, left)| (customer, left.tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(number: u8) -> T {
        format!("{number:032}").parse().unwrap()
    }

    const LIMITS: CallLimits = CallLimits {
        at_once: 10,
        per_second: 3,
    };

    fn ledger(under_way: u32, tokens: Option<StartTokens>, now: i64) -> LimitLedger {
        let mut ledger = LimitLedger::default();
        ledger.add(Customer::Account(id(1)), LIMITS, under_way, tokens, now);
        ledger.add(Customer::App(id(2)), CallLimits::NONE, under_way, None, now);
        ledger
    }

    #[test]
    fn calls_are_bounded_at_once_and_a_second() {
        let mut ledger = ledger(8, None, 0);
        assert_eq!(ledger.left(&id(1), &id(2)), 2, "ten at once");
        ledger.take(&id(1), &id(2));
        assert_eq!(ledger.left(&id(1), &id(2)), 1);
        assert_eq!(ledger.left(&id(1), &id(9)), 0, "an unknown application");
    }

    #[test]
    fn a_second_brings_as_many_starts_as_the_limit_says_and_no_more_are_saved_up() {
        let mut first = ledger(0, None, 1000);
        (0..3).for_each(|_| first.take(&id(1), &id(2)));
        assert_eq!(first.left(&id(1), &id(2)), 0);
        let kept: Vec<_> = first.tokens().collect();
        assert_eq!(kept.len(), 1, "only what is limited is kept");
        let tokens = Some(kept[0].1);
        let left = |now| ledger(0, tokens, now).left(&id(1), &id(2));
        assert_eq!((left(1333), left(1334)), (0, 1));
        assert_eq!((left(2000), left(99_000)), (3, 3));
        assert_eq!(left(0), 0, "a clock that was set back brings nothing");
    }
}
