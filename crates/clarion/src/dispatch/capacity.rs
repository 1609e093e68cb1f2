//! How many calls may start now, and whose: limits at once and a second, shared out fairly.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use crate::domain::account::{AccountSid, AppId};

/// So many at once, and so many a second. Used for accounts and for trunks alike.
#[derive(Debug)]
pub struct Capacity {
    at_once: u32,
    a_second: u32,
    in_use: u32,
    tokens: f64,
    refilled: Instant,
}

impl Capacity {
    pub fn new(at_once: u32, a_second: u32, now: Instant) -> Self {
        Self {
            at_once,
            a_second,
            in_use: 0,
            tokens: f64::from(a_second),
            refilled: now,
        }
    }

    /// CustomerLimits may change while calls are under way; those that are finish.
    pub fn resize(&mut self, at_once: u32, a_second: u32) {
        (self.at_once, self.a_second) = (at_once, a_second);
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.refilled).as_secs_f64();
        let limit = f64::from(self.a_second);
        self.tokens = (self.tokens + passed * limit).min(limit.max(1.0));
        self.refilled = now;
    }

    /// How many more may start now.
    pub fn left(&mut self, now: Instant) -> u32 {
        self.refill(now);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "never negative, and never more than a second's worth"
        )]
        let tokens = self.tokens as u32;
        tokens.min(self.at_once.saturating_sub(self.in_use))
    }

    pub fn take(&mut self, now: Instant) -> bool {
        if self.left(now) == 0 {
            return false;
        }
        self.tokens -= 1.0;
        self.in_use += 1;
        true
    }

    /// One has started, whatever the limits say now: it was let through a moment ago.
    pub fn count(&mut self, now: Instant) {
        self.refill(now);
        self.tokens = (self.tokens - 1.0).max(0.0);
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
    pub account_room: u32,
    pub app: AppId,
    pub app_room: u32,
}

/// Shares `room` out among accounts, and within each among its applications: one each in turn, so that a hundred thousand calls of one do
/// not delay the single call of another. Who is first in one round comes last in the next (`turn`).
pub fn fair_shares(room: u32, waiting: Vec<Waiting>, turn: usize) -> Vec<(AppId, u32)> {
    let mut accounts: BTreeMap<AccountSid, (u32, VecDeque<Share>)> = BTreeMap::new();
    for of in waiting {
        let (_, apps) = accounts
            .entry(of.account)
            .or_insert_with(|| (of.account_room, VecDeque::new()));
        apps.push_back(Share {
            app: of.app,
            left: of.app_room,
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
    let mut left = room;
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

/// One call for the next application that has room; it goes to the end of the row. False if none has.
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

    /// An application of an account, with the room of both.
    fn waiting(account: u8, account_room: u32, app: u8, app_room: u32) -> Waiting {
        Waiting {
            account: id(account),
            account_room,
            app: id(app),
            app_room,
        }
    }

    #[test]
    fn room_is_bounded_at_once_and_a_second() {
        let start = Instant::now();
        let mut room = Capacity::new(3, 2, start);
        assert!(room.take(start) && room.take(start));
        assert!(!room.take(start), "two a second");
        let later = start + Duration::from_secs(1);
        assert!(room.take(later));
        assert!(!room.take(later), "three at once");
        room.give_back();
        assert!(room.take(later));
        assert_eq!(room.in_use(), 3);
        room.resize(0, 2);
        assert_eq!(room.left(later + Duration::from_secs(9)), 0);
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
