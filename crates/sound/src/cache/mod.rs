//! Caches rendered sounds, by what they were rendered from, in memory and on disk. Both are bounded; the least recently used goes first.

pub(crate) mod disk;
pub(crate) mod lru;

use std::fmt;

use sha2::{Digest, Sha256};

/// Raised whenever this crate renders the same request in another way, so that old sounds are not played again.
const VERSION: &str = "2";

/// Names a sound by everything that went into it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key([u8; 32]);

impl Key {
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in [VERSION.as_bytes()].iter().chain(parts) {
            // The length before each part keeps it apart from the next.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    pub fn name(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub fn by_name(name: &str) -> Option<Self> {
        let mut key = [0; 32];
        if name.len() != 64 || !name.is_ascii() {
            return None;
        }
        for (byte, at) in key.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&name[at..at + 2], 16).ok()?;
        }
        Some(Self(key))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name()[..12])
    }
}
