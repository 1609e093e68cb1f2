//! Shares the places for deliveries: in turns between accounts, then between the receivers of an account (host and port), and between the
//! addresses that they resolve to.
//!
//! A receiver that does not answer gets a single place until it answers, and so do all receivers together that do not answer at one address:
//! ports and names cost nothing. Receivers that answer do not suffer from silent ones beside them. Nothing that one account does counts against
//! another one.

mod account;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use jiff::SignedDuration;

use self::account::{AccountPlaces, AddressKey, ReceiverManner};
use crate::domain::account::{AccountSid, AppId};

/// A receiver whose address had no place is left alone for so long: its name may lead elsewhere each time.
pub const PUT_BACK_PAUSE: Duration = Duration::from_secs(1);

/// The most deliveries under way, of one account.
#[derive(Debug, Clone, Copy)]
pub struct PlaceLimits {
    pub per_account: u32,
    pub per_receiver: u32,
    pub per_address: u32,
}

/// A receiver with callbacks of one application that are due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueReceiver {
    pub account: AccountSid,
    pub app: AppId,
    /// Where its callbacks wait (`CallbackKey::receiver`).
    pub receiver: String,
    /// How long the first has been due.
    pub overdue: SignedDuration,
}

/// How many callbacks of an application may be taken for a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverShare {
    pub app: AppId,
    pub receiver: String,
    pub limit: u32,
}

/// Names a delivery that has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlaceId(u64);

#[derive(Debug)]
pub struct DeliveryPlaces {
    limits: PlaceLimits,
    accounts: HashMap<AccountSid, AccountPlaces>,
    taken: HashMap<PlaceId, Taken>,
    next: u64,
}

#[derive(Debug)]
struct Taken {
    account: AccountSid,
    receiver: String,
    /// As far as it is known, and whether it has the one place there for receivers that may be silent.
    at: Option<(AddressKey, bool)>,
}

impl DeliveryPlaces {
    pub fn new(limits: PlaceLimits) -> Self {
        Self {
            limits,
            accounts: HashMap::new(),
            taken: HashMap::new(),
            next: 0,
        }
    }

    /// The accounts that can take no more places.
    pub fn full_accounts(&self) -> Vec<AccountSid> {
        let full = self.accounts.iter();
        let full = full.filter(|(_, places)| places.under_way >= self.limits.per_account);
        full.map(|(account, _)| account.clone()).collect()
    }

    /// Takes up to `free` places for what is due: the next place is for the account with the fewest, and within it for each receiver in
    /// turn. A place that is not needed is given back (`give_back`).
    pub fn take(
        &mut self,
        due: Vec<DueReceiver>,
        free: usize,
        now: Instant,
    ) -> Vec<(PlaceId, DueReceiver)> {
        let mut waiting = self.by_account(due);
        let mut turns: BinaryHeap<_> = waiting
            .iter()
            .filter_map(|(account, due)| Some(Reverse(self.turn(account, due.front()?))))
            .collect();
        let mut taken = Vec::new();
        while taken.len() < free
            && let Some(Reverse((_, _, account))) = turns.pop()
        {
            let Some(due) = waiting.get_mut(&account) else {
                continue;
            };
            if let Some(receiver) = self.next_with_room(&account, due, now) {
                taken.push((self.begin(&receiver), receiver.clone()));
                due.push_back(receiver);
                if let Some(first) = due.front() {
                    turns.push(Reverse(self.turn(&account, first)));
                }
            }
        }
        taken
    }

    /// The receivers of each account, in the order of their turns.
    fn by_account(&self, mut due: Vec<DueReceiver>) -> HashMap<AccountSid, VecDeque<DueReceiver>> {
        due.sort_by_cached_key(|due| self.order(due));
        let mut accounts: HashMap<AccountSid, VecDeque<DueReceiver>> = HashMap::new();
        for due in due {
            accounts
                .entry(due.account.clone())
                .or_default()
                .push_back(due);
        }
        accounts
    }

    /// The least busy receiver first, those that may be silent last, and then the one that has waited for longest. Of new receivers at an
    /// address with silent ones, the newest is tried first: one that answers must not wait until all others were found to be silent.
    fn order(&self, due: &DueReceiver) -> (u32, u8, SignedDuration) {
        let Some(places) = self.accounts.get(&due.account) else {
            return (0, 0, -due.overdue);
        };
        let known = places.receivers.get(&due.receiver);
        let under_way = known.map_or(0, |known| known.under_way);
        if known.is_some_and(|known| known.manner == ReceiverManner::Silent) {
            return (under_way, 2, -due.overdue);
        }
        match places.address_of(&due.receiver) {
            Some(at) if places.is_doubtful(at, &due.receiver) => (under_way, 1, due.overdue),
            _ => (under_way, 0, -due.overdue),
        }
    }

    /// Whose turn comes first: who has the fewest places, then who has waited for longest.
    fn turn(
        &self,
        account: &AccountSid,
        due: &DueReceiver,
    ) -> (u32, Reverse<SignedDuration>, AccountSid) {
        let places = self.accounts.get(account);
        let under_way = places.map_or(0, |places| places.under_way);
        (under_way, Reverse(due.overdue), account.clone())
    }

    fn next_with_room(
        &self,
        account: &AccountSid,
        due: &mut VecDeque<DueReceiver>,
        now: Instant,
    ) -> Option<DueReceiver> {
        while let Some(next) = due.pop_front() {
            if self.has_room(account, Some(&next.receiver), now) {
                return Some(next);
            }
        }
        None
    }

    /// Whether this account could take a place: at this receiver, or at one of which nothing is known.
    pub fn has_room(&self, account: &AccountSid, receiver: Option<&str>, now: Instant) -> bool {
        let Some(places) = self.accounts.get(account) else {
            return true;
        };
        if places.under_way >= self.limits.per_account {
            return false;
        }
        let Some(receiver) = receiver else {
            return true;
        };
        let known = places.receivers.get(receiver);
        if let Some(known) = known {
            let is_silent = known.manner == ReceiverManner::Silent;
            let limit = if is_silent {
                1
            } else {
                self.limits.per_receiver
            };
            if known.under_way >= limit || known.paused_until.is_some_and(|until| now < until) {
                return false;
            }
        }
        let address = places.address_of(receiver);
        address.is_none_or(|address| places.has_room_at(address, receiver, self.limits.per_address))
    }

    fn begin(&mut self, due: &DueReceiver) -> PlaceId {
        self.next += 1;
        let id = PlaceId(self.next);
        let places = self.accounts.entry(due.account.clone()).or_default();
        places.under_way += 1;
        let receiver = places.receivers.entry(due.receiver.clone()).or_default();
        receiver.under_way += 1;
        let written = AddressKey::written(&due.receiver);
        let address = receiver.address.or(written);
        receiver.address = address;
        let at = address.map(|address| (address, places.enter(address, &due.receiver)));
        let taken = Taken {
            account: due.account.clone(),
            receiver: due.receiver.clone(),
            at,
        };
        self.taken.insert(id, taken);
        id
    }

    /// The name of a delivery's receiver has led to this address. False if there is no place at it: the delivery must be put back.
    pub fn arrive(&mut self, id: PlaceId, address: IpAddr, now: Instant) -> bool {
        let Some(taken) = self.taken.get_mut(&id) else {
            return true;
        };
        let address = AddressKey::new(&taken.receiver, address);
        if taken.at.is_some_and(|(known, _)| known == address) {
            return true;
        }
        let Some(places) = self.accounts.get_mut(&taken.account) else {
            return true;
        };
        if let Some((old, doubtful)) = taken.at.take() {
            places.leave(old, doubtful);
        }
        places.learn(&taken.receiver, address);
        if !places.has_room_at(address, &taken.receiver, self.limits.per_address) {
            if let Some(receiver) = places.receivers.get_mut(&taken.receiver) {
                receiver.paused_until = Some(now + PUT_BACK_PAUSE);
            }
            return false;
        }
        taken.at = Some((address, places.enter(address, &taken.receiver)));
        true
    }

    /// A delivery is over.
    pub fn end(&mut self, id: PlaceId, answered: bool) {
        if let Some(taken) = self.leave(id) {
            let manner = if answered {
                ReceiverManner::Answers
            } else {
                ReceiverManner::Silent
            };
            let places = self.accounts.entry(taken.account).or_default();
            places.behaves(&taken.receiver, manner);
            places.forget_some();
        }
    }

    /// A place was not needed after all.
    pub fn give_back(&mut self, id: PlaceId) {
        self.leave(id);
    }

    fn leave(&mut self, id: PlaceId) -> Option<Taken> {
        let taken = self.taken.remove(&id)?;
        let places = self.accounts.get_mut(&taken.account)?;
        places.under_way -= 1;
        if let Some(receiver) = places.receivers.get_mut(&taken.receiver) {
            receiver.under_way -= 1;
        }
        if let Some((address, doubtful)) = taken.at {
            places.leave(address, doubtful);
        }
        Some(taken)
    }
}

/// What may be taken, from the places that were taken for it.
pub fn shares(taken: &[(PlaceId, DueReceiver)]) -> Vec<ReceiverShare> {
    let mut shares: HashMap<(&AppId, &str), ReceiverShare> = HashMap::new();
    for (_, due) in taken {
        let share = shares
            .entry((&due.app, &due.receiver))
            .or_insert_with(|| ReceiverShare {
                app: due.app.clone(),
                receiver: due.receiver.clone(),
                limit: 0,
            });
        share.limit += 1;
    }
    shares.into_values().collect()
}

#[cfg(test)]
mod tests;
