//! Values by key, up to a total weight; the least recently used is removed first.

use std::collections::{BTreeMap, HashMap};

use super::Key;

#[derive(Debug)]
pub(crate) struct Lru<V> {
    limit: u64,
    held: u64,
    /// Counts the uses, in place of a clock.
    now: u64,
    entries: HashMap<Key, Entry<V>>,
    order: BTreeMap<u64, Key>,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    weight: u64,
    asked: u64,
}

impl<V> Lru<V> {
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            held: 0,
            now: 0,
            entries: HashMap::new(),
            order: BTreeMap::new(),
        }
    }

    pub fn get(&mut self, key: &Key) -> Option<&V> {
        let entry = self.entries.get_mut(key)?;
        self.order.remove(&entry.asked);
        self.now += 1;
        entry.asked = self.now;
        self.order.insert(self.now, *key);
        Some(&entry.value)
    }

    /// Inserts a value and returns those that had to make room. A value that is too heavy alone is returned at once.
    pub fn insert(&mut self, key: Key, value: V, weight: u64) -> Vec<(Key, V)> {
        let mut gone = Vec::new();
        self.remove(&key);
        self.now += 1;
        self.order.insert(self.now, key);
        self.held += weight;
        let entry = Entry {
            value,
            weight,
            asked: self.now,
        };
        self.entries.insert(key, entry);
        while self.held > self.limit {
            let Some(oldest) = self.order.first_entry().map(|first| *first.get()) else {
                break;
            };
            gone.extend(self.remove(&oldest).map(|value| (oldest, value)));
        }
        gone
    }

    pub fn remove(&mut self, key: &Key) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.order.remove(&entry.asked);
        self.held -= entry.weight;
        Some(entry.value)
    }

    pub fn held(&self) -> u64 {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_longest_ago_makes_room() {
        let key = |name: u8| Key::of(&[&[name]]);
        let mut lru = Lru::new(10);
        assert!(lru.insert(key(1), 'a', 4).is_empty());
        assert!(lru.insert(key(2), 'b', 4).is_empty());
        assert_eq!(lru.get(&key(1)), Some(&'a'));
        assert_eq!(lru.insert(key(3), 'c', 4), [(key(2), 'b')]);
        assert_eq!(lru.insert(key(4), 'd', 11).len(), 3);
        assert_eq!((lru.held(), lru.get(&key(4))), (0, None));
    }
}
