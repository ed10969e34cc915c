//! Which units of which tables are worth their memory: pure decisions.
//!
//! A lookup of an absent key in a table with `u` loaded units reads the table in vain with probability `q^u`, where `q` is the
//! rate of a unit. With `h` such lookups in the time that is looked at, the next unit saves `h * q^u * (1 - q)` reads. What
//! it saves for each byte falls from unit to unit, so taking the best unit again and again ends at the least sum of false
//! reads ([`best_allocation`]): where the hotness of all tables is known, that is what to load. A running store has to learn it, and
//! shares its memory with other things; it weighs each unit by the same sum, unit against unit.

/// How a table's units stand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TableUnits {
    /// Lookups whose key the table did not have, decayed over time. Lookups that found their key do not count: no filter
    /// would have saved them anything.
    pub hotness: f64,
    /// Bytes of a unit.
    pub unit_bytes: u64,
    /// Rate of false positives of a unit.
    pub unit_fpr: f64,
    /// Units on disk.
    pub unit_count: u32,
}

impl TableUnits {
    /// False reads to be expected with so many units: their rates multiply, nearly where keys set parts of bits in them.
    pub fn false_reads(&self, loaded_count: u32) -> f64 {
        self.hotness * self.unit_fpr.powi(loaded_count.min(self.unit_count).cast_signed())
    }

    /// What the unit after so many others saves.
    fn saving(&self, loaded_count: u32) -> f64 {
        self.false_reads(loaded_count) - self.false_reads(loaded_count + 1)
    }

    fn saving_per_byte(&self, loaded_count: u32) -> f64 {
        self.saving(loaded_count) / (self.unit_bytes as f64).max(1.0)
    }
}

/// How many units of each table make the sum of false reads least within a budget.
pub fn best_allocation(tables: &[TableUnits], budget_bytes: u64) -> Vec<u32> {
    let mut loaded = vec![0; tables.len()];
    let mut free_bytes = budget_bytes;
    while let Some(index) = best_next(tables, &loaded, free_bytes)
        && let (Some(table), Some(loaded)) = (tables.get(index), loaded.get_mut(index))
    {
        *loaded += 1;
        free_bytes -= table.unit_bytes;
    }
    loaded
}

/// The table whose next unit saves most for its bytes, among those that fit.
fn best_next(tables: &[TableUnits], loaded: &[u32], free_bytes: u64) -> Option<usize> {
    let mut best = None;
    for (index, (table, loaded_count)) in tables.iter().zip(loaded).enumerate() {
        let saving = table.saving_per_byte(*loaded_count);
        let is_possible = *loaded_count < table.unit_count && table.unit_bytes <= free_bytes;
        if is_possible && saving > best.map_or(0.0, |(_, saving)| saving) {
            best = Some((index, saving));
        }
    }
    best.map(|(index, _)| index)
}

/// A table that went into a compaction, as seen from one table that came out.
#[derive(Debug, Clone, Copy)]
pub struct Ancestor {
    /// Its hotness.
    pub hotness: f64,
    /// Its keys.
    pub key_count: u64,
    /// How many of them lie in the range of the new table (an estimate will do).
    pub shared_count: u64,
}

/// The hotness that a new table starts with: that of its ancestors for each key, averaged over the keys it has from them.
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
