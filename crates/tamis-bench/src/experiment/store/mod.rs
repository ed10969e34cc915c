//! Experiments of the group store: what operations on whole stores cost.

use crate::Definition;

/// The group.
pub(super) const EXPERIMENTS: &[&Definition] = &[];
