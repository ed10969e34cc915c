//! All experiments. A group is a folder with a list; an experiment is a file of its own with a [`Definition`] that its group
//! names in that list.

mod bloom;
mod proteus;
mod rosetta;
mod store;
mod surf;
mod words;

use crate::{BenchError, Definition};

/// The lists of the groups, in the order in which they are shown.
const GROUPS: &[&[&Definition]] =
    &[store::EXPERIMENTS, bloom::EXPERIMENTS, surf::EXPERIMENTS, rosetta::EXPERIMENTS, proteus::EXPERIMENTS];

/// All experiments, by group.
pub fn all() -> impl Iterator<Item = &'static Definition> {
    GROUPS.iter().copied().flatten().copied()
}

/// The experiment of a name.
///
/// # Errors
/// [`BenchError::Unknown`] with the names there are.
pub fn find(name: &str) -> Result<&'static Definition, BenchError> {
    all().find(|definition| definition.name == name).ok_or_else(|| BenchError::Unknown {
        kind: "experiment",
        name: name.to_owned(),
        names: all().map(|definition| definition.name).collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests;
