//! Selects the tables of a store whose manifest is lost, by their properties. Pure.
//!
//! A compaction writes into each of its outputs which tables it replaces. It deletes its inputs only after its edit is installed.
//!
//! 1. A compaction *was installed* if one of its inputs is missing, if the readable part of the manifest names one of its
//!    outputs, or if one of its outputs was the input of another compaction.
//! 2. The inputs of an installed compaction are obsolete: the compaction may have dropped deletes that hide their entries.
//! 3. The outputs of a compaction that was not installed are leftovers, and may be incomplete. If an input cannot be read, the
//!    outputs are kept as well, to save as many entries as possible.
//!
//! Not detectable: an input that still exists although all tables that replaced it were replaced themselves and deleted. The
//! repair reports that this is possible.

use std::collections::{BTreeMap, BTreeSet};

/// Known facts about the tables in a folder.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// The tables that can be read, with the numbers of those that each replaces.
    pub(super) readable: BTreeMap<u64, Vec<u64>>,
    /// All existing tables.
    pub(super) present: BTreeSet<u64>,
    /// Those that the readable part of the manifest installs.
    pub(super) installed: BTreeSet<u64>,
}

/// Why a table is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exclusion {
    /// Rule 2.
    Obsolete {
        /// A table that contains its entries now.
        by: u64,
    },
    /// Rule 3.
    Leftover,
}

/// The tables that are left out.
pub(super) fn excluded_tables(tables: &Tables) -> BTreeMap<u64, Exclusion> {
    // Outputs of one compaction name the same inputs.
    let mut jobs: BTreeMap<Vec<u64>, Vec<u64>> = BTreeMap::new();
    for (&number, replaced) in tables.readable.iter().filter(|(_, replaced)| !replaced.is_empty()) {
        let mut inputs = replaced.clone();
        inputs.sort_unstable();
        jobs.entry(inputs).or_default().push(number);
    }
    let inputs_of_any: BTreeSet<u64> = jobs.keys().flatten().copied().collect();
    let mut left = BTreeMap::new();
    for (inputs, outputs) in &jobs {
        let was_installed = inputs.iter().any(|input| !tables.present.contains(input))
            || outputs
                .iter()
                .any(|output| tables.installed.contains(output) || inputs_of_any.contains(output));
        if was_installed {
            let by = outputs.first().copied().unwrap_or_default();
            left.extend(inputs.iter().map(|&input| (input, Exclusion::Obsolete { by })));
        } else if inputs.iter().all(|input| tables.readable.contains_key(input)) {
            left.extend(outputs.iter().map(|&output| (output, Exclusion::Leftover)));
        }
    }
    left.retain(|number, _| tables.readable.contains_key(number));
    left
}

#[cfg(test)]
mod tests;
