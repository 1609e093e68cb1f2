//! The ports of a range that are free, like a deck of cards: one is drawn at random, so that nobody outside knows where the next call
//! listens, and drawing costs the same however few are left.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A port that comes back is left alone for this long, unless no other is left: stray packets of the call before must not be received in
/// the next one.
const REST: Duration = Duration::from_secs(4);

#[derive(Debug)]
pub struct PortDeck {
    free: Vec<u16>,
    /// The one that came back first stands first.
    resting: VecDeque<(u16, Instant)>,
}

impl PortDeck {
    pub fn new(ports: impl Iterator<Item = u16>) -> Self {
        Self {
            free: ports.collect(),
            resting: VecDeque::new(),
        }
    }

    /// A free port; `None` if all are in use.
    pub fn draw(&mut self, now: Instant) -> Option<u16> {
        while let Some((port, since)) = self.resting.front()
            && now.saturating_duration_since(*since) >= REST
        {
            self.free.push(*port);
            self.resting.pop_front();
        }
        if self.free.is_empty() {
            return self.resting.pop_front().map(|(port, _)| port);
        }
        let place = rand::random_range(0..self.free.len());
        Some(self.free.swap_remove(place))
    }

    pub fn put_back(&mut self, port: u16, now: Instant) {
        self.resting.push_back((port, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw_all(deck: &mut PortDeck, now: Instant) -> Vec<u16> {
        std::iter::from_fn(|| deck.draw(now)).collect()
    }

    #[test]
    fn ports_come_in_no_order_and_each_once() {
        let now = Instant::now();
        let all: Vec<u16> = (10_000..20_000).collect();
        let mut deck = PortDeck::new(all.iter().copied());
        let drawn = draw_all(&mut deck, now);
        let mut sorted = drawn.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, all);
        // Ports in their turn would follow one another 9,999 times; at random it is about once.
        let followed = drawn.windows(2).filter(|two| two[0] + 1 == two[1]);
        assert!(followed.count() < 100, "{:?}", &drawn[..20]);
        assert_eq!(deck.draw(now), None);
    }

    #[test]
    fn a_port_rests_before_it_is_used_again_unless_no_other_is_left() {
        let now = Instant::now();
        let mut deck = PortDeck::new([2, 4, 6].into_iter());
        let first = deck.draw(now).unwrap();
        deck.put_back(first, now);
        let others = [deck.draw(now).unwrap(), deck.draw(now).unwrap()];
        assert!(!others.contains(&first));
        assert_eq!(deck.draw(now), Some(first));
        assert_eq!(deck.draw(now), None);
        deck.put_back(others[0], now);
        deck.put_back(others[1], now + REST);
        assert_eq!(deck.draw(now + REST), Some(others[0]));
    }
}
