//! The times at which the entries of a table expire, for its summary: the exact ends, and the quartiles of a sample.

/// The most times of the sample.
const SAMPLE_COUNT_MAX: usize = 256;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct ExpiryTimes {
    count: u64,
    least: u64,
    greatest: u64,
    /// Every `2^stride_bits`-th time.
    sample: Vec<u64>,
    stride_bits: u32,
}

impl ExpiryTimes {
    pub(super) fn add(&mut self, time: u64) {
        self.least = if self.count == 0 { time } else { self.least.min(time) };
        self.greatest = self.greatest.max(time);
        if self.count.is_multiple_of(1 << self.stride_bits) {
            if self.sample.len() == SAMPLE_COUNT_MAX {
                let mut is_kept = false;
                self.sample.retain(|_| {
                    is_kept = !is_kept;
                    is_kept
                });
                self.stride_bits += 1;
            }
            if self.count.is_multiple_of(1 << self.stride_bits) {
                self.sample.push(time);
            }
        }
        self.count += 1;
    }

    /// How many there are.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// The least one, the quartiles, and the greatest one; 0 without any.
    pub(super) fn quartiles(&self) -> [u64; 5] {
        let mut sorted = self.sample.clone();
        sorted.sort_unstable();
        let at = |quarters: usize| sorted.get(sorted.len() * quarters / 4).copied().unwrap_or(self.greatest);
        [self.least, at(1), at(2), at(3), self.greatest]
    }
}

#[cfg(test)]
mod tests;
