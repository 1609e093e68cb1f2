//! How many calls may start now, and whose: limits on calls at once and on starts a second, shared out fairly.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use crate::domain::account::{AccountSid, AppId};
use crate::domain::token_bucket::TokenBucket;

/// Limits on calls at once and calls started a second. Accounts, applications and trunks each have one.
#[derive(Debug)]
pub struct Capacity {
    at_once: u32,
    per_second: u32,
    in_use: u32,
    starts: TokenBucket,
}

impl Capacity {
    pub fn new(at_once: u32, per_second: u32, now: Instant) -> Self {
        Self {
            at_once,
            per_second,
            in_use: 0,
            starts: TokenBucket::new(per_second, now),
        }
    }

    /// The limits may change while calls are under way; those calls finish.
    pub fn resize(&mut self, at_once: u32, per_second: u32) {
        (self.at_once, self.per_second) = (at_once, per_second);
    }

    /// How many more may start now.
    pub fn left(&mut self, now: Instant) -> u32 {
        let starts = self.starts.available(self.per_second, now);
        starts.min(self.at_once.saturating_sub(self.in_use))
    }

    pub fn take(&mut self, now: Instant) -> bool {
        let is_taken = self.left(now) > 0 && self.starts.take(self.per_second, now);
        self.in_use += u32::from(is_taken);
        is_taken
    }

    /// Counts a call that has started, whatever the limits say now: it was let through a moment ago.
    pub fn count(&mut self, now: Instant) {
        self.starts.take_anyway(self.per_second, now);
        self.in_use += 1;
    }

    pub fn give_back(&mut self) {
        self.in_use = self.in_use.saturating_sub(1);
    }

    pub fn in_use(&self) -> u32 {
        self.in_use
    }
}

/// An application with calls in the queue, and how many of them its account's limits and its own let start now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub account: AccountSid,
    pub account_left: u32,
    pub app: AppId,
    pub app_left: u32,
}

/// Shares `free` out among accounts, and within each among its applications: one each in turn, so that a hundred thousand calls of one do
/// not delay the single call of another. Who is first in one round comes last in the next (`turn`).
pub fn fair_shares(free: u32, waiting: Vec<Waiting>, turn: usize) -> Vec<(AppId, u32)> {
    let mut accounts: BTreeMap<AccountSid, (u32, VecDeque<Share>)> = BTreeMap::new();
    for of in waiting {
        let (_, apps) = accounts
            .entry(of.account)
            .or_insert_with(|| (of.account_left, VecDeque::new()));
        apps.push_back(Share {
            app: of.app,
            left: of.app_left,
            taken: 0,
        });
    }
    let mut accounts: Vec<_> = accounts.into_values().collect();
    if accounts.is_empty() {
        return Vec::new();
    }
    let start = turn % accounts.len();
    accounts.rotate_left(start);
    for (_, apps) in &mut accounts {
        let start = turn % apps.len();
        apps.rotate_left(start);
    }
    let mut left = free;
    loop {
        let before = left;
        for (own, apps) in &mut accounts {
            if left > 0 && *own > 0 && take_turn(apps) {
                *own -= 1;
                left -= 1;
            }
        }
        if left == before || left == 0 {
            break;
        }
    }
    let shares = accounts.into_iter().flat_map(|(_, apps)| apps);
    shares
        .filter(|share| share.taken > 0)
        .map(|share| (share.app, share.taken))
        .collect()
}

struct Share {
    app: AppId,
    left: u32,
    taken: u32,
}

/// One call for the next application that may start one; it goes to the end of the row. False if none has.
fn take_turn(apps: &mut VecDeque<Share>) -> bool {
    let Some(next) = apps.iter().position(|share| share.left > 0) else {
        return false;
    };
    apps.rotate_left(next);
    apps[0].left -= 1;
    apps[0].taken += 1;
    apps.rotate_left(1);
    true
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(number: u8) -> T {
        format!("{number:032}").parse().unwrap()
    }

    /// An application of an account, with what is left of both.
    fn waiting(account: u8, account_left: u32, app: u8, app_left: u32) -> Waiting {
        Waiting {
            account: id(account),
            account_left,
            app: id(app),
            app_left,
        }
    }

    #[test]
    fn capacity_is_bounded_at_once_and_a_second() {
        let start = Instant::now();
        let mut capacity = Capacity::new(3, 2, start);
        assert!(capacity.take(start) && capacity.take(start));
        assert!(!capacity.take(start), "two a second");
        let later = start + Duration::from_secs(1);
        assert!(capacity.take(later));
        assert!(!capacity.take(later), "three at once");
        capacity.give_back();
        assert!(capacity.take(later));
        assert_eq!(capacity.in_use(), 3);
        capacity.resize(0, 2);
        assert_eq!(capacity.left(later + Duration::from_secs(9)), 0);
    }

    #[test]
    fn nobody_waits_behind_somebody_elses_thousands() {
        let many = u32::MAX;
        let three = vec![
            waiting(1, 100_000, 1, many),
            waiting(2, 1, 2, many),
            waiting(3, 3, 3, many),
        ];
        let shares = fair_shares(10, three, 0);
        assert_eq!(shares, [(id(1), 6), (id(2), 1), (id(3), 3)]);
        let two = vec![waiting(1, 9, 1, many), waiting(2, 9, 2, many)];
        assert_eq!(fair_shares(1, two, 1), [(id(2), 1)], "the turn goes round");
        assert!(fair_shares(5, vec![], 3).is_empty());
        assert!(fair_shares(5, vec![waiting(1, 0, 1, many)], 0).is_empty());
    }

    #[test]
    fn applications_share_what_their_account_has() {
        let apps = vec![
            waiting(1, 8, 1, 100),
            waiting(1, 8, 2, 1),
            waiting(1, 8, 3, 100),
            waiting(2, 100, 4, 2),
        ];
        let mut shares = fair_shares(20, apps, 0);
        shares.sort();
        assert_eq!(shares, [(id(1), 4), (id(2), 1), (id(3), 3), (id(4), 2)]);
    }
}
