//! What a point lookup costs by the model of the hash sharing paper (Section 3, Equations 3 to 5): digests and reads, the rest taken
//! for nothing. With the term that Equations 4 and 5 drop: of the filters asked, the one that holds the key can't err (Equation 8).

/// A tree and a workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct CostModel {
    pub(super) level_count: u32,
    pub(super) size_ratio: u64,
    /// Of the lookups, those whose key is there: 0 to 1.
    pub(super) present: f64,
    /// Of the filters that don't hold the key, those that pass it.
    pub(super) fpr: f64,
    /// Of one digest.
    pub(super) hash_ns: f64,
    /// Of one read.
    pub(super) read_ns: f64,
}

impl CostModel {
    /// Filters that a lookup asks: all levels down to the one that holds the key. Keys lie in levels by their sizes.
    pub(super) fn filters(&self) -> f64 {
        let size = |level: u32| (self.size_ratio as f64).powi(level.cast_signed());
        let sum: f64 = (0..self.level_count).map(size).sum();
        let mut reaching = 1.0;
        let mut filters = 0.0;
        for level in 0..self.level_count {
            filters += reaching;
            reaching -= self.present * size(level) / sum;
        }
        filters
    }

    fn reads_ns(&self) -> f64 {
        (self.present + (self.filters() - self.present) * self.fpr) * self.read_ns
    }

    /// A lookup that computes the digest for each filter (Equation 4).
    pub(super) fn unshared_ns(&self) -> f64 {
        self.filters() * self.hash_ns + self.reads_ns()
    }

    /// A lookup that computes it once (Equation 5).
    pub(super) fn shared_ns(&self) -> f64 {
        self.hash_ns + self.reads_ns()
    }

    /// Hashing without sharing, of the whole.
    pub(super) fn hash_share_percent(&self) -> f64 {
        100.0 * self.filters() * self.hash_ns / self.unshared_ns().max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests;
