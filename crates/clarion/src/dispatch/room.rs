//! How many calls may start now, and whose: limits at once and a second, shared out fairly.

use std::time::Instant;

use crate::domain::account::AccountSid;

/// So many at once, and so many a second. Used for accounts and for trunks alike.
#[derive(Debug)]
pub struct Room {
    at_once: u32,
    a_second: u32,
    in_use: u32,
    tokens: f64,
    refilled: Instant,
}

impl Room {
    pub fn new(at_once: u32, a_second: u32, now: Instant) -> Self {
        Self {
            at_once,
            a_second,
            in_use: 0,
            tokens: f64::from(a_second),
            refilled: now,
        }
    }

    /// Limits may change while calls are under way; those that are finish.
    pub fn resize(&mut self, at_once: u32, a_second: u32) {
        (self.at_once, self.a_second) = (at_once, a_second);
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.refilled).as_secs_f64();
        let most = f64::from(self.a_second);
        self.tokens = (self.tokens + passed * most).min(most.max(1.0));
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

    pub fn give_back(&mut self) {
        self.in_use = self.in_use.saturating_sub(1);
    }

    pub fn in_use(&self) -> u32 {
        self.in_use
    }
}

/// Shares `room` out among accounts that each have room of their own: one each in turn, so that a hundred thousand calls of one do
/// not delay the single call of another. Who is first in one round comes last in the next (`turn`).
pub fn fair_shares(
    room: u32,
    mut accounts: Vec<(AccountSid, u32)>,
    turn: usize,
) -> Vec<(AccountSid, u32)> {
    if accounts.is_empty() {
        return accounts;
    }
    let start = turn % accounts.len();
    accounts.rotate_left(start);
    let mut shares: Vec<(AccountSid, u32)> = accounts
        .iter()
        .map(|(account, _)| (account.clone(), 0))
        .collect();
    let mut left = room;
    while left > 0 {
        let before = left;
        for (share, (_, own)) in shares.iter_mut().zip(&mut accounts) {
            if left > 0 && *own > 0 {
                *own -= 1;
                share.1 += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
    shares.retain(|(_, share)| *share > 0);
    shares
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn account(number: u8) -> AccountSid {
        format!("{number:032}").parse().unwrap()
    }

    #[test]
    fn room_is_bounded_at_once_and_a_second() {
        let start = Instant::now();
        let mut room = Room::new(3, 2, start);
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
        let shares = fair_shares(
            10,
            vec![(account(1), 100_000), (account(2), 1), (account(3), 3)],
            0,
        );
        assert_eq!(shares, [(account(1), 6), (account(2), 1), (account(3), 3)]);
        let one = fair_shares(1, vec![(account(1), 9), (account(2), 9)], 1);
        assert_eq!(one, [(account(2), 1)], "the turn goes round");
        assert!(fair_shares(5, vec![], 3).is_empty());
        assert!(fair_shares(5, vec![(account(1), 0)], 0).is_empty());
    }
}
