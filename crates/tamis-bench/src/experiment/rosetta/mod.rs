//! Experiments of the group rosetta: Rosetta.

use crate::Definition;

/// The group.
pub(super) const EXPERIMENTS: &[&Definition] = &[];
