//! Experiments of the group surf: SuRF.

use crate::Definition;

/// The group.
pub(super) const EXPERIMENTS: &[&Definition] = &[];
