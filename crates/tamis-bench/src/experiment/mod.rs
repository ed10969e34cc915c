//! All experiments. Each group is a folder with a list of its [`Definition`]s, one file per experiment or figure.

mod auto;
mod bloom;
mod end_to_end;
mod inputs;
mod layouts;
mod proteus;
mod rosetta;
mod sorted_view;
mod store;
mod surf;
mod words;

use crate::{BenchError, Definition};

/// The lists of the groups in print order.
const GROUPS: &[&[&Definition]] = &[
    store::EXPERIMENTS,
    auto::EXPERIMENTS,
    bloom::EXPERIMENTS,
    surf::EXPERIMENTS,
    rosetta::EXPERIMENTS,
    proteus::EXPERIMENTS,
    end_to_end::EXPERIMENTS,
    sorted_view::EXPERIMENTS,
    layouts::EXPERIMENTS,
];

/// All experiments, by group.
pub fn all() -> impl Iterator<Item = &'static Definition> {
    GROUPS.iter().copied().flatten().copied()
}

/// Returns the experiment with this name.
///
/// # Errors
/// [`BenchError::Unknown`] with the known names.
pub fn find(name: &str) -> Result<&'static Definition, BenchError> {
    all().find(|definition| definition.name == name).ok_or_else(|| BenchError::Unknown {
        kind: "experiment",
        name: name.to_owned(),
        names: all().map(|definition| definition.name).collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests;
