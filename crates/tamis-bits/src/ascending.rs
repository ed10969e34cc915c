//! Integers on their way into a structure, many at a time.

/// Ascending integers. Every iterator is one; whoever finds many at once without a jump for each says how.
pub trait Ascending {
    /// Puts the next integers at the front of the batch, as many as there is room for or fewer, and tells how many; 0 behind the last.
    fn fill(&mut self, batch: &mut [u64]) -> usize;
}

impl<I: Iterator<Item = u64>> Ascending for I {
    #[inline(always)]
    fn fill(&mut self, batch: &mut [u64]) -> usize {
        let mut filled = 0;
        for (slot, integer) in batch.iter_mut().zip(self) {
            *slot = integer;
            filled += 1;
        }
        filled
    }
}
