//! Experiments of the group auto: the filters that the store chooses, compared with every family.

mod accuracy;
mod candidates;
mod measured;
mod probe_times;
mod strings;

use tamis_bench::Definition;

/// The experiments of the group.
pub(super) const EXPERIMENTS: &[&Definition] =
    &[&accuracy::ACCURACY, &candidates::CANDIDATES, &strings::STRINGS, &probe_times::PROBE_TIMES];
