//! Experiments of the group bloom: filters of points.

mod rate_by_bits;

use crate::Definition;

/// The group.
pub(super) const EXPERIMENTS: &[&Definition] = &[&rate_by_bits::RATE_BY_BITS];
