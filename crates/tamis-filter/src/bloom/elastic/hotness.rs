//! The hotness of new tables: the expected number of lookups of absent keys.
//!
//! A store loads the units of a table by its hotness, the decayed number of lookups whose key the table did not have.
//! A table that a compaction writes has no lookups yet; it inherits the hotness of its inputs.

/// An input table of a compaction, as seen from one output table.
#[derive(Debug, Clone, Copy)]
pub struct Ancestor {
    /// Its hotness.
    pub hotness: f64,
    /// Its keys.
    pub key_count: u64,
    /// Number of them in the range of the output table; an estimate is enough.
    pub shared_count: u64,
}

/// The initial hotness of an output table: the hotness per key of its inputs, averaged over the keys that it takes
/// from them.
pub fn inherited_hotness(key_count: u64, ancestors: &[Ancestor]) -> f64 {
    let shared: f64 = ancestors.iter().map(|ancestor| ancestor.shared_count as f64).sum();
    if shared == 0.0 {
        return 0.0;
    }
    let weighted: f64 = ancestors
        .iter()
        .map(|ancestor| {
            ancestor.hotness / (ancestor.key_count as f64).max(1.0) * ancestor.shared_count as f64
        })
        .sum();
    key_count as f64 * weighted / shared
}

#[cfg(test)]
mod tests;
