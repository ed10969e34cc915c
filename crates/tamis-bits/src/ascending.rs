//! Input of sorted structures: ascending integers in batches.

/// Ascending integers. Every iterator implements it; sources that produce many integers without a branch for each
/// override `fill`.
pub trait Ascending {
    /// Fills the front of the batch with the next integers and returns their number, which may be less than the batch;
    /// 0 after the last.
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
