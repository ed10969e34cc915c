//! The cost of a point lookup in the model of the hash sharing paper (Section 3, Equations 3 to 5): digests and reads only. It
//! includes the term that Equations 4 and 5 drop: the filter that contains the key has no false positive (Equation 8).

/// The parameters of the tree and the workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct CostModel {
    pub(super) level_count: u32,
    pub(super) size_ratio: u64,
    /// Share of lookups of present keys, 0 to 1.
    pub(super) present: f64,
    /// False positive rate of a filter.
    pub(super) fpr: f64,
    /// Nanoseconds per digest.
    pub(super) hash_ns: f64,
    /// Nanoseconds per read.
    pub(super) read_ns: f64,
}

impl CostModel {
    /// Mean number of filters per lookup: all levels down to the one with the key. Keys are distributed by the sizes of levels.
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

    /// Time of a lookup that computes a digest per filter (Equation 4).
    pub(super) fn unshared_ns(&self) -> f64 {
        self.filters() * self.hash_ns + self.reads_ns()
    }

    /// Time of a lookup that computes one digest (Equation 5).
    pub(super) fn shared_ns(&self) -> f64 {
        self.hash_ns + self.reads_ns()
    }

    /// Share of hashing in the time of a lookup without sharing.
    pub(super) fn hash_share_percent(&self) -> f64 {
        100.0 * self.filters() * self.hash_ns / self.unshared_ns().max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests;
