//! The only source of randomness: the operating system's, or a seed in simulations.

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that asks for randomness"
)]
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[cfg(debug_assertions)]
    if seeded::fill(&mut bytes) {
        return bytes;
    }
    getrandom::fill(&mut bytes).expect("the operating system always has randomness after boot");
    bytes
}

/// 32 hex digits: an identifier or a token.
pub fn id() -> String {
    hex::encode(bytes::<16>())
}

/// For simulations: what is drawn on this thread follows from a seed.
#[cfg(debug_assertions)]
pub mod seeded {
    use std::cell::Cell;

    thread_local! {
        static STATE: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// `None`: from the operating system again.
    pub fn set(seed: Option<u64>) {
        STATE.set(seed);
    }

    pub(super) fn fill(bytes: &mut [u8]) -> bool {
        let Some(mut state) = STATE.get() else {
            return false;
        };
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&next(&mut state).to_le_bytes()[..chunk.len()]);
        }
        STATE.set(Some(state));
        true
    }

    /// SplitMix64.
    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
