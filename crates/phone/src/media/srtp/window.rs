//! Which packets of one source were accepted.

/// Replay protection: the highest index and which of the 64 up to it were seen (section 3.3.2).
#[derive(Debug, Clone, Copy, Default)]
pub struct Window {
    highest: Option<u64>,
    seen: u64,
}

impl Window {
    /// The index nearest to the highest that ends in this sequence number (appendix A).
    pub fn index_of(&self, sequence: u16) -> Option<u64> {
        let Some(highest) = self.highest else {
            return Some(sequence.into());
        };
        let distance = sequence
            .wrapping_sub((highest & 0xffff) as u16)
            .cast_signed();
        highest.checked_add_signed(distance.into())
    }

    /// Notes an index, or `None` if it was seen or is too old to tell.
    pub fn admit(&mut self, index: u64) -> Option<()> {
        let Some(highest) = self.highest else {
            (self.highest, self.seen) = (Some(index), 1);
            return Some(());
        };
        if index > highest {
            let ahead = u32::try_from(index - highest).unwrap_or(u32::MAX);
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.highest = Some(index);
            return Some(());
        }
        let bit = 1_u64.checked_shl(u32::try_from(highest - index).ok()?)?;
        if self.seen & bit != 0 {
            return None;
        }
        self.seen |= bit;
        Some(())
    }
}
