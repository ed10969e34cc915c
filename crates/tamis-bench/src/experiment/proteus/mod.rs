//! Experiments of the group proteus: Proteus.

use crate::Definition;

/// The group.
pub(super) const EXPERIMENTS: &[&Definition] = &[];
