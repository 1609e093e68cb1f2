//! Limits the deliveries under way to each receiver. A receiver that does not answer gets a single place until it answers, so that even
//! many dead receivers leave places for the others.

use std::collections::HashMap;

/// Maximum number of silent hosts that are remembered. A forgotten one only gets a few tries at once.
const REMEMBERED: usize = 10_000;

#[derive(Debug)]
pub struct Hosts {
    per_host: u32,
    known: HashMap<String, Host>,
}

#[derive(Debug, Default)]
struct Host {
    under_way: u32,
    silent: bool,
}

impl Hosts {
    pub fn new(per_host: u32) -> Self {
        Self {
            per_host,
            known: HashMap::new(),
        }
    }

    pub fn begin(&mut self, host: &str) {
        self.known.entry(host.to_owned()).or_default().under_way += 1;
    }

    pub fn end(&mut self, host: &str, answered: bool) {
        if let Some(known) = self.known.get_mut(host) {
            known.under_way = known.under_way.saturating_sub(1);
            known.silent = !answered;
            if known.under_way == 0 && answered {
                self.known.remove(host);
            }
        }
        if self.known.len() > REMEMBERED {
            self.known.retain(|_, host| host.under_way > 0);
        }
    }

    /// Returns the hosts that have less capacity than usual.
    pub fn capacity(&self) -> HashMap<String, u32> {
        let capacity = |host: &Host| {
            let limit = if host.silent { 1 } else { self.per_host };
            limit.saturating_sub(host.under_way)
        };
        self.known
            .iter()
            .map(|(name, host)| (name.clone(), capacity(host)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_its_places_and_a_silent_one_a_single_one_until_it_answers() {
        let mut hosts = Hosts::new(3);
        let capacity = |hosts: &Hosts| hosts.capacity().get("h:80").copied();
        assert_eq!(capacity(&hosts), None);
        hosts.begin("h:80");
        hosts.begin("h:80");
        assert_eq!(capacity(&hosts), Some(1));
        hosts.end("h:80", false);
        assert_eq!(capacity(&hosts), Some(0));
        hosts.end("h:80", false);
        assert_eq!(capacity(&hosts), Some(1), "it is remembered");
        hosts.begin("h:80");
        hosts.end("h:80", true);
        assert_eq!(capacity(&hosts), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut hosts = Hosts::new(3);
        for number in 0..=REMEMBERED {
            hosts.begin(&number.to_string());
            hosts.end(&number.to_string(), false);
        }
        assert!(hosts.known.len() <= REMEMBERED);
    }
}
