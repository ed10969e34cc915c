//! Experiments of the group surf: SuRF, and the trie as an index.

mod figures;
mod index;
mod inputs;
mod reference;

use tamis_bench::Definition;

/// The experiments of the group.
pub(super) const EXPERIMENTS: &[&Definition] =
    &[&reference::REFERENCE, &index::INDEX, &figures::FIGURE_3, &figures::FIGURE_4];

#[cfg(test)]
mod tests;
