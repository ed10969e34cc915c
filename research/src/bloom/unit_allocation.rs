//! The best choice of elastic units if the hotness of all tables is known.
//!
//! A lookup of an absent key in a table with `u` loaded units is a false-positive read with probability `q^u`, where
//! `q` is the rate of a unit. With `h` such lookups the next unit saves `h * q^u * (1 - q)` reads. The saving per byte
//! decreases from unit to unit, so repeatedly taking the best unit minimises the sum of false-positive reads. A store
//! does not know the hotness but estimates it; the experiment compares its choice with this one.

/// The elastic filter of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TableUnits {
    /// Lookups whose key the table does not have.
    pub(super) hotness: f64,
    /// Bytes of a unit.
    pub(super) unit_bytes: u64,
    /// False-positive rate of a unit.
    pub(super) unit_fpr: f64,
    /// Units on disk.
    pub(super) unit_count: u32,
}

impl TableUnits {
    /// Expected false-positive reads with a number of loaded units: their rates multiply.
    fn false_reads(&self, loaded_count: u32) -> f64 {
        self.hotness * self.unit_fpr.powi(loaded_count.min(self.unit_count).cast_signed())
    }

    /// The false-positive reads that the next unit saves.
    fn saving(&self, loaded_count: u32) -> f64 {
        self.false_reads(loaded_count) - self.false_reads(loaded_count + 1)
    }

    fn saving_per_byte(&self, loaded_count: u32) -> f64 {
        self.saving(loaded_count) / (self.unit_bytes as f64).max(1.0)
    }
}

/// The number of units to load per table for the least sum of false-positive reads within a budget.
pub(super) fn best_allocation(tables: &[TableUnits], budget_bytes: u64) -> Vec<u32> {
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

/// The table whose next unit saves most per byte, among those that fit.
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

#[cfg(test)]
mod tests;
