//! The places that one account has taken: at its receivers, and at the addresses that they lead to.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Instant;

use super::super::EVENTS_AT;

/// Maximum number of receivers of one account that are remembered. A forgotten one only gets a few tries at once.
pub(super) const REMEMBERED: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct AccountPlaces {
    pub(super) under_way: u32,
    pub(super) receivers: HashMap<String, Receiver>,
    pub(super) addresses: HashMap<AddressKey, Address>,
}

#[derive(Debug, Default)]
pub(super) struct Receiver {
    pub(super) under_way: u32,
    pub(super) manner: ReceiverManner,
    pub(super) address: Option<AddressKey>,
    pub(super) paused_until: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ReceiverManner {
    #[default]
    Unknown,
    Answers,
    Silent,
}

#[derive(Debug, Default)]
pub(super) struct Address {
    pub(super) under_way: u32,
    /// Of those, the ones to receivers that may be silent.
    pub(super) doubtful: u32,
    /// Receivers here that do not answer.
    pub(super) silent: u32,
}

/// Events have places of their own. Of IPv6, a network of 64 bits counts as one address: whoever has one of its addresses has them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AddressKey {
    pub(super) is_event: bool,
    pub(super) address: IpAddr,
}

impl AddressKey {
    pub(super) fn new(receiver: &str, address: IpAddr) -> Self {
        let address = match address.to_canonical() {
            IpAddr::V6(v6) => {
                let network = v6.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
            v4 @ IpAddr::V4(_) => v4,
        };
        Self {
            is_event: receiver.starts_with(EVENTS_AT),
            address,
        }
    }

    /// Of a receiver that is written as an address, which needs no look-up.
    pub(super) fn written(receiver: &str) -> Option<Self> {
        let host = receiver.strip_prefix(EVENTS_AT).unwrap_or(receiver);
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let address = host.parse().ok()?;
        Some(Self::new(receiver, address))
    }
}

impl AccountPlaces {
    /// As far as it is known.
    pub(super) fn address_of(&self, receiver: &str) -> Option<AddressKey> {
        let known = self.receivers.get(receiver);
        let address = known.and_then(|known| known.address);
        address.or_else(|| AddressKey::written(receiver))
    }

    pub(super) fn has_room_at(&self, address: AddressKey, receiver: &str, limit: u32) -> bool {
        let Some(known) = self.addresses.get(&address) else {
            return true;
        };
        known.under_way < limit && !(self.is_doubtful(address, receiver) && known.doubtful > 0)
    }

    /// Whether a delivery there may be waiting for nothing: the receiver is silent, or new at an address where others are.
    pub(super) fn is_doubtful(&self, address: AddressKey, receiver: &str) -> bool {
        let manner = self.receivers.get(receiver).map(|known| known.manner);
        match manner.unwrap_or_default() {
            ReceiverManner::Silent => true,
            ReceiverManner::Answers => false,
            ReceiverManner::Unknown => self.addresses.get(&address).is_some_and(|at| at.silent > 0),
        }
    }

    /// Returns whether the delivery counts as doubtful.
    pub(super) fn enter(&mut self, address: AddressKey, receiver: &str) -> bool {
        let doubtful = self.is_doubtful(address, receiver);
        let at = self.addresses.entry(address).or_default();
        at.under_way += 1;
        at.doubtful += u32::from(doubtful);
        doubtful
    }

    pub(super) fn leave(&mut self, address: AddressKey, doubtful: bool) {
        if let Some(at) = self.addresses.get_mut(&address) {
            at.under_way -= 1;
            at.doubtful -= u32::from(doubtful);
        }
        self.forget_idle(address);
    }

    pub(super) fn learn(&mut self, receiver: &str, address: AddressKey) {
        let known = self.receivers.entry(receiver.to_owned()).or_default();
        let (before, manner) = (known.address.replace(address), known.manner);
        if manner == ReceiverManner::Silent && before != Some(address) {
            self.count_silent(before, -1);
            self.count_silent(Some(address), 1);
        }
    }

    pub(super) fn behaves(&mut self, receiver: &str, manner: ReceiverManner) {
        let Some(known) = self.receivers.get_mut(receiver) else {
            return;
        };
        let (before, address) = (std::mem::replace(&mut known.manner, manner), known.address);
        let silent = |manner| i32::from(manner == ReceiverManner::Silent);
        self.count_silent(address, silent(manner) - silent(before));
    }

    fn count_silent(&mut self, address: Option<AddressKey>, change: i32) {
        if let Some(address) = address {
            let at = self.addresses.entry(address).or_default();
            at.silent = at.silent.saturating_add_signed(change);
            self.forget_idle(address);
        }
    }

    fn forget_idle(&mut self, address: AddressKey) {
        let is_idle = |at: &Address| at.under_way == 0 && at.silent == 0;
        if self.addresses.get(&address).is_some_and(is_idle) {
            self.addresses.remove(&address);
        }
    }

    /// Receivers that answer are forgotten before those that do not.
    pub(super) fn forget_some(&mut self) {
        for keep_silent in [true, false] {
            if self.receivers.len() <= REMEMBERED {
                return;
            }
            let is_kept = |known: &Receiver| {
                known.under_way > 0 || keep_silent && known.manner == ReceiverManner::Silent
            };
            let forgotten = self.receivers.extract_if(|_, known| !is_kept(known));
            for (_, known) in forgotten.collect::<Vec<_>>() {
                if known.manner == ReceiverManner::Silent {
                    self.count_silent(known.address, -1);
                }
            }
        }
    }
}
