//! When the worker looks for what is due. Once everything that is due has been started, or has no place, it does not look until the next is due, unless
//! somebody owes something: what its own process owes, it is told, and then it need not look either. What has no place waits until a delivery of
//! its account ends: however much an account owes to receivers that do not answer, it makes nobody look. A look may have several parts: what is
//! told between two of them may be due where it has looked already, so no quiet time follows such a look.

use std::collections::HashSet;
use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::Instant;

use super::owed::{MOST, NewlyOwed, OwedReceiver};
use crate::domain::account::AccountSid;
use crate::domain::callback::DueReceiver;

/// A time in which nothing is due but what the worker was told, and what has no place.
#[derive(Debug, Default)]
pub struct QuietTime {
    until: Option<Instant>,
    known: HashSet<OwedReceiver>,
    /// Accounts with something due for which there was no place.
    passed_over: HashSet<AccountSid>,
    /// Something may be due that the look under way has passed by.
    is_disturbed: bool,
}

/// What the worker does next.
#[derive(Debug, PartialEq, Eq)]
pub enum NextLook {
    /// Nothing for so long.
    Rest(Duration),
    /// It claims from these, which are all that have something due; the next is due after so long.
    Known(Vec<DueReceiver>, Duration),
    Look,
}

impl QuietTime {
    /// Everything that is due has been started, as far as was seen; the next is due then.
    pub fn begin(&mut self, until: Instant) {
        self.until = Some(until).filter(|_| !self.is_disturbed);
    }

    /// All will be looked at, from the beginning.
    pub fn begin_look(&mut self) {
        self.passed_over.clear();
        self.is_disturbed = false;
    }

    /// Something was told since the look began: the next look comes soon.
    pub fn is_disturbed(&self) -> bool {
        self.is_disturbed
    }

    /// These have something due for which there is no place.
    pub fn pass_over(&mut self, accounts: impl IntoIterator<Item = AccountSid>) {
        self.passed_over.extend(accounts);
    }

    /// A place that a callback of this account had is free again.
    pub fn is_free(&mut self, account: &AccountSid) {
        if self.passed_over.contains(account) {
            self.end();
        }
    }

    /// Anything may be due.
    pub fn end(&mut self) {
        self.is_over();
        self.is_disturbed = true;
    }

    /// Its time has passed.
    pub fn is_over(&mut self) {
        self.until = None;
        self.known.clear();
    }

    /// Something will be due then.
    pub fn is_due_at(&mut self, due: Instant) {
        self.until = self.until.map(|until| until.min(due));
    }

    pub fn hear(&mut self, newly: NewlyOwed) {
        match newly {
            NewlyOwed::Only(owed) if self.until.is_some() => self.known.extend(owed),
            _ => self.end(),
        }
        if self.known.len() > MOST {
            self.end();
        }
    }

    /// What is told does not put off what is due: it looks as soon as the quiet time is over, however much it knows.
    pub fn next(&mut self, now: Instant) -> NextLook {
        let Some(until) = self.until.filter(|until| now < *until) else {
            self.is_over();
            return NextLook::Look;
        };
        let left = until - now;
        if self.known.is_empty() {
            return NextLook::Rest(left);
        }
        let known = self.known.drain().map(|owed| DueReceiver {
            account: owed.account,
            app: owed.app,
            receiver: owed.receiver,
            overdue: SignedDuration::ZERO,
        });
        let known = known.collect();
        // Until they have been claimed.
        self.is_over();
        NextLook::Known(known, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn owed(host: &str) -> OwedReceiver {
        OwedReceiver {
            account: "aa11".repeat(8).parse().unwrap(),
            app: "bb22".repeat(8).parse().unwrap(),
            receiver: host.to_owned(),
        }
    }

    fn only(hosts: &[&str]) -> NewlyOwed {
        NewlyOwed::Only(hosts.iter().map(|host| owed(host)).collect())
    }

    /// How many receivers are known, if that is all that is due.
    fn known(next: &NextLook) -> Option<usize> {
        match next {
            NextLook::Known(known, _) => Some(known.len()),
            _ => None,
        }
    }

    #[test]
    fn what_is_told_in_a_quiet_time_is_all_that_is_due() {
        let (mut quiet, now) = (QuietTime::default(), Instant::now());
        assert_eq!(quiet.next(now), NextLook::Look, "nobody knows");
        quiet.begin(now + SECOND);
        assert_eq!(quiet.next(now), NextLook::Rest(SECOND));
        quiet.hear(only(&["a", "b"]));
        quiet.hear(only(&["a"]));
        assert_eq!(known(&quiet.next(now)), Some(2));
        assert_eq!(quiet.next(now), NextLook::Look, "they are not claimed yet");
        quiet.hear(only(&["a"]));
        assert_eq!(quiet.next(now), NextLook::Look, "it was not quiet");
    }

    #[test]
    fn what_has_no_place_waits_for_one_of_its_account() {
        let (mut quiet, now) = (QuietTime::default(), Instant::now());
        let other: AccountSid = "cc33".repeat(8).parse().unwrap();
        assert_eq!(quiet.next(now), NextLook::Look);
        quiet.pass_over([owed("a").account]);
        quiet.begin(now + SECOND);
        quiet.is_free(&other);
        assert_eq!(quiet.next(now), NextLook::Rest(SECOND), "another account's");
        // What is claimed meanwhile changes nothing about it.
        quiet.hear(only(&["b"]));
        assert_eq!(known(&quiet.next(now)), Some(1));
        quiet.begin(now + SECOND);
        quiet.is_free(&owed("a").account);
        assert_eq!(quiet.next(now), NextLook::Look);
        quiet.begin_look();
        quiet.begin(now + SECOND);
        quiet.is_free(&owed("a").account);
        let rest = NextLook::Rest(SECOND);
        assert_eq!(quiet.next(now), rest, "this look passed nobody over");
    }

    #[test]
    fn what_is_told_between_two_parts_of_a_look_is_not_slept_over() {
        let tellings: [fn(&mut QuietTime); 3] = [
            |quiet| quiet.hear(only(&["b"])),
            |quiet| quiet.is_free(&owed("a").account),
            QuietTime::end,
        ];
        for tell in tellings {
            let (mut quiet, now) = (QuietTime::default(), Instant::now());
            quiet.begin_look();
            quiet.pass_over([owed("a").account]);
            tell(&mut quiet);
            assert_eq!(quiet.next(now), NextLook::Look, "the next part");
            quiet.begin(now + SECOND);
            assert!(quiet.is_disturbed());
            assert_eq!(quiet.next(now), NextLook::Look, "from the beginning");
            quiet.begin_look();
            assert_eq!(quiet.next(now), NextLook::Look, "the next part");
            quiet.is_over();
            quiet.begin(now + SECOND);
            let rest = NextLook::Rest(SECOND);
            assert_eq!(quiet.next(now), rest, "nobody has said anything");
        }
    }

    #[test]
    fn what_is_told_does_not_put_off_what_is_due() {
        let (mut quiet, now) = (QuietTime::default(), Instant::now());
        quiet.begin(now + SECOND);
        quiet.is_due_at(now + SECOND / 2);
        quiet.hear(only(&["a"]));
        assert_eq!(quiet.next(now + SECOND / 2), NextLook::Look);
    }

    #[test]
    fn who_is_told_too_much_or_nothing_certain_looks() {
        let (mut quiet, now) = (QuietTime::default(), Instant::now());
        for newly in [
            NewlyOwed::Anything,
            NewlyOwed::Only((0..=MOST).map(|n| owed(&n.to_string())).collect()),
        ] {
            quiet.begin_look();
            quiet.begin(now + SECOND);
            quiet.hear(only(&["a"]));
            quiet.hear(newly);
            assert_eq!(quiet.next(now), NextLook::Look);
        }
    }
}
