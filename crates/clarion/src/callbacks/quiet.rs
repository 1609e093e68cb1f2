//! When the worker looks for what is due. Once everything that is due has been started, or has no place, it does not look until the next is due, unless
//! somebody owes something: what its own process owes, it is told, and then it need not look either. What has no place waits until there is one:
//! however much an account owes to receivers that do not answer, it makes nobody look.
//!
//! A look may have several parts. What happens between two of them is not told apart: then no quiet time follows.

use std::collections::{HashMap, HashSet};

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
    /// What is due and had no place.
    passed_over: HashMap<AccountSid, PassedOver>,
    /// In all of its parts so far, the look has left nothing that could be started, and nothing has happened since it began.
    sees_all: bool,
}

#[derive(Debug)]
enum PassedOver {
    /// Anywhere.
    Whole,
    At(HashSet<String>),
}

/// What the worker does next.
#[derive(Debug, PartialEq, Eq)]
pub enum NextLook {
    /// Nothing until then.
    Rest(Instant),
    /// It claims from these, which are all that have something due; the next is due then.
    Known(Vec<DueReceiver>, Instant),
    Look,
}

impl QuietTime {
    /// The look is over, or what was told has been claimed; the next is due then. Quiet only if nothing is left.
    pub fn begin(&mut self, until: Instant) {
        self.until = self.sees_all.then_some(until);
    }

    pub fn is_on(&self) -> bool {
        self.until.is_some()
    }

    /// All will be looked at, from the beginning.
    pub fn begin_look(&mut self) {
        self.passed_over.clear();
        self.sees_all = true;
    }

    /// Something that could be started is left.
    pub fn saw_less(&mut self) {
        self.sees_all = false;
    }

    /// At these receivers something is due for which there is no place.
    pub fn pass_over(&mut self, receivers: impl IntoIterator<Item = (AccountSid, String)>) {
        for (account, receiver) in receivers {
            let known = self.passed_over.entry(account);
            let known = known.or_insert_with(|| PassedOver::At(HashSet::new()));
            if let PassedOver::At(receivers) = known {
                receivers.insert(receiver);
                if receivers.len() > MOST {
                    *known = PassedOver::Whole;
                }
            }
        }
    }

    /// These have no place at all: nobody looks what is due.
    pub fn pass_over_all(&mut self, accounts: impl IntoIterator<Item = AccountSid>) {
        let accounts = accounts.into_iter();
        self.passed_over
            .extend(accounts.map(|account| (account, PassedOver::Whole)));
    }

    /// Places of this account are free again: at this receiver, or at some.
    pub fn have_room(&mut self, account: &AccountSid, has_room: impl Fn(Option<&str>) -> bool) {
        let is_of_use = match self.passed_over.get(account) {
            None => false,
            Some(PassedOver::Whole) => has_room(None),
            Some(PassedOver::At(receivers)) => receivers.iter().any(|one| has_room(Some(one))),
        };
        if is_of_use {
            self.end();
        }
    }

    /// Anything may be due.
    pub fn end(&mut self) {
        self.sees_all = false;
        self.until = None;
        self.known.clear();
    }

    /// Something will be due then.
    pub fn is_due_at(&mut self, due: Instant) {
        match &mut self.until {
            Some(until) => *until = due.min(*until),
            None => self.sees_all = false,
        }
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
            self.until = None;
            self.known.clear();
            return NextLook::Look;
        };
        if self.known.is_empty() {
            return NextLook::Rest(until);
        }
        // Until they have been claimed.
        self.until = None;
        let known = self.known.drain().map(|owed| DueReceiver {
            account: owed.account,
            app: owed.app,
            receiver: owed.receiver,
            overdue: SignedDuration::ZERO,
        });
        NextLook::Known(known.collect(), until)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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

    /// A quiet time of a second that follows a look.
    fn quiet(now: Instant) -> QuietTime {
        let mut quiet = QuietTime::default();
        quiet.begin_look();
        quiet.begin(now + SECOND);
        quiet
    }

    fn at(host: &str) -> (AccountSid, String) {
        (owed(host).account, host.to_owned())
    }

    #[test]
    fn what_is_told_in_a_quiet_time_is_all_that_is_due() {
        let now = Instant::now();
        assert_eq!(
            QuietTime::default().next(now),
            NextLook::Look,
            "nobody knows"
        );
        let mut quiet = quiet(now);
        assert_eq!(quiet.next(now), NextLook::Rest(now + SECOND));
        quiet.hear(only(&["a", "b"]));
        quiet.hear(only(&["a"]));
        assert_eq!(known(&quiet.next(now)), Some(2));
        assert_eq!(quiet.next(now), NextLook::Look, "they are not claimed yet");
        quiet.hear(only(&["a"]));
        assert_eq!(quiet.next(now), NextLook::Look, "it was not quiet");
    }

    #[test]
    fn what_has_no_place_waits_until_there_is_one() {
        let (now, rest) = (Instant::now(), NextLook::Rest);
        let mut quiet = quiet(now);
        let (account, other) = (owed("a").account, "cc33".repeat(8).parse().unwrap());
        quiet.pass_over([at("a")]);
        quiet.have_room(&other, |_| true);
        assert_eq!(quiet.next(now), rest(now + SECOND), "another account's");
        quiet.have_room(&account, |receiver| receiver != Some("a"));
        assert_eq!(quiet.next(now), rest(now + SECOND), "not where it waits");
        // What is claimed meanwhile changes nothing about it.
        quiet.hear(only(&["b"]));
        assert_eq!(known(&quiet.next(now)), Some(1));
        quiet.begin(now + SECOND);
        quiet.have_room(&account, |receiver| receiver == Some("a"));
        assert_eq!(quiet.next(now), NextLook::Look);
        quiet.begin_look();
        quiet.begin(now + SECOND);
        quiet.have_room(&account, |_| true);
        assert_eq!(
            quiet.next(now),
            rest(now + SECOND),
            "this look passed nobody over"
        );
    }

    #[test]
    fn who_is_passed_over_at_many_receivers_waits_for_any_place() {
        let now = Instant::now();
        let account = owed("a").account;
        let mut many = quiet(now);
        many.pass_over((0..=MOST).map(|number| at(&number.to_string())));
        let mut whole = quiet(now);
        whole.pass_over_all([account.clone()]);
        whole.pass_over([at("a")]);
        for mut quiet in [many, whole] {
            quiet.have_room(&account, |receiver| receiver.is_some());
            assert_eq!(quiet.next(now), NextLook::Rest(now + SECOND));
            quiet.have_room(&account, |receiver| receiver.is_none());
            assert_eq!(quiet.next(now), NextLook::Look);
        }
    }

    #[test]
    fn what_happens_between_two_parts_of_a_look_is_looked_for() {
        let now = Instant::now();
        let account = owed("a").account;
        let happenings: [&dyn Fn(&mut QuietTime); 5] = [
            &|quiet| quiet.hear(only(&["a"])),
            &|quiet| quiet.hear(NewlyOwed::Anything),
            &|quiet| quiet.is_due_at(now + SECOND),
            &|quiet| quiet.have_room(&account, |_| true),
            &QuietTime::saw_less,
        ];
        for happens in happenings {
            let mut quiet = QuietTime::default();
            quiet.begin_look();
            quiet.pass_over([at("a")]);
            assert_eq!(quiet.next(now), NextLook::Look, "the next part");
            happens(&mut quiet);
            assert_eq!(quiet.next(now), NextLook::Look, "the last part");
            quiet.begin(now + SECOND);
            assert_eq!(quiet.next(now), NextLook::Look, "it has not seen all");
            quiet.begin_look();
            quiet.begin(now + SECOND);
            assert_eq!(quiet.next(now), NextLook::Rest(now + SECOND));
        }
    }

    #[test]
    fn what_is_told_does_not_put_off_what_is_due() {
        let now = Instant::now();
        let mut quiet = quiet(now);
        quiet.is_due_at(now + SECOND / 2);
        quiet.hear(only(&["a"]));
        assert_eq!(quiet.next(now + SECOND / 2), NextLook::Look);
    }

    #[test]
    fn who_is_told_too_much_or_nothing_certain_looks() {
        let now = Instant::now();
        for newly in [
            NewlyOwed::Anything,
            NewlyOwed::Only((0..=MOST).map(|n| owed(&n.to_string())).collect()),
        ] {
            let mut quiet = quiet(now);
            quiet.hear(only(&["a"]));
            quiet.hear(newly);
            assert_eq!(quiet.next(now), NextLook::Look);
        }
    }
}
