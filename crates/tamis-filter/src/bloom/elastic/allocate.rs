//! Which units of which tables are worth their memory: pure decisions.
//!
//! A lookup of an absent key in a table with `u` loaded units reads the table in vain with probability `q^u`, where `q` is the
//! rate of a unit. With `h` such lookups in the time that is looked at, the next unit saves `h * q^u * (1 - q)` reads. What
//! it saves for each byte falls from unit to unit, so taking the best unit again and again ends at the least sum of false
//! reads ([`best_allocation`]). A running store moves towards it step by step ([`next_move`]), and only where the gain is
//! clearly above the loss, since loading a unit costs a read.

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
    /// Units in memory.
    pub loaded_count: u32,
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

    fn next_saving_per_byte(&self) -> f64 {
        self.saving_per_byte(self.loaded_count)
    }

    fn last_saving_per_byte(&self) -> f64 {
        self.loaded_count.checked_sub(1).map_or(f64::INFINITY, |last| self.saving_per_byte(last))
    }

    fn loaded_bytes(&self) -> u64 {
        self.unit_bytes.saturating_mul(u64::from(self.loaded_count))
    }
}

/// How a running store should change what it has in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// Tables whose last unit is to be dropped; a table may stand here more than once.
    pub unload: Vec<usize>,
    /// The table whose next unit is to be loaded afterwards.
    pub load: Option<usize>,
}

/// How many units of each table make the sum of false reads least within a budget; what is loaded now does not matter.
pub fn best_allocation(tables: &[TableUnits], budget_bytes: u64) -> Vec<u32> {
    let mut tables = tables.to_vec();
    tables.iter_mut().for_each(|table| table.loaded_count = 0);
    let mut free_bytes = budget_bytes;
    while let Some(index) = best_next(&tables, free_bytes)
        && let Some(table) = tables.get_mut(index)
    {
        table.loaded_count += 1;
        free_bytes -= table.unit_bytes;
    }
    tables.iter().map(|table| table.loaded_count).collect()
}

/// The next change on the way to the best allocation, or `None` where none is worth it. A unit replaces others only where it
/// saves at least `hysteresis` times (1.5 to 2) what they do. The caller limits how many moves it makes in a time.
pub fn next_move(tables: &[TableUnits], budget_bytes: u64, hysteresis: f64) -> Option<Move> {
    let loaded_bytes: u64 = tables.iter().map(TableUnits::loaded_bytes).fold(0, u64::saturating_add);
    if loaded_bytes > budget_bytes {
        let victim = worst_last(tables, None)?;
        return Some(Move { unload: vec![victim], load: None });
    }
    let free_bytes = budget_bytes - loaded_bytes;
    if let Some(load) = best_next(tables, free_bytes) {
        return Some(Move { unload: Vec::new(), load: Some(load) });
    }
    let load = best_next(tables, budget_bytes)?;
    replace(tables, load, free_bytes, hysteresis)
}

/// The units that would have to go for the next one of a table, if they are worth less.
fn replace(tables: &[TableUnits], load: usize, free_bytes: u64, hysteresis: f64) -> Option<Move> {
    let wanted = tables.get(load)?;
    let gain = wanted.saving(wanted.loaded_count);
    let mut tables = tables.to_vec();
    let (mut unload, mut loss, mut free_bytes) = (Vec::new(), 0.0, free_bytes);
    while free_bytes < wanted.unit_bytes {
        let victim = worst_last(&tables, Some(load))?;
        let table = tables.get_mut(victim)?;
        table.loaded_count -= 1;
        loss += table.saving(table.loaded_count);
        if gain <= loss * hysteresis {
            return None;
        }
        free_bytes = free_bytes.saturating_add(table.unit_bytes);
        unload.push(victim);
    }
    Some(Move { unload, load: Some(load) })
}

/// The table whose next unit saves most for its bytes, among those that fit.
fn best_next(tables: &[TableUnits], free_bytes: u64) -> Option<usize> {
    let mut best = None;
    for (index, table) in tables.iter().enumerate() {
        let saving = table.next_saving_per_byte();
        let is_possible = table.loaded_count < table.unit_count && table.unit_bytes <= free_bytes;
        if is_possible && saving > best.map_or(0.0, |(_, saving)| saving) {
            best = Some((index, saving));
        }
    }
    best.map(|(index, _)| index)
}

/// The table whose last unit saves least for its bytes.
fn worst_last(tables: &[TableUnits], but: Option<usize>) -> Option<usize> {
    let loaded =
        tables.iter().enumerate().filter(|(index, table)| table.loaded_count > 0 && Some(*index) != but);
    let worst = loaded
        .min_by(|(_, left), (_, right)| left.last_saving_per_byte().total_cmp(&right.last_saving_per_byte()));
    worst.map(|(index, _)| index)
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
