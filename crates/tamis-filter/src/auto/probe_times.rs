//! The time of a probe by family: constants, so that equal inputs give equal choices on every machine and under load.
//!
//! `research run auto-probe-times --size medium` measures them, with filters of a million keys.

use crate::Family;

/// The range probes that take as long as the candidate of an open seek: each level of a trie is a cache miss, then the bytes of the candidate are
/// collected, and the table takes part in the merge twice.
pub(super) const CANDIDATE_RANGES: f64 = 30.0;

/// The time of a probe of one family, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbeTime {
    /// A point.
    pub point_ns: f64,
    /// A range.
    pub range_ns: f64,
    /// Each further prefix or trie level that a query looks up.
    pub further_ns: f64,
}

impl ProbeTime {
    /// The time of a family.
    pub const fn of(family: Family) -> Self {
        let (point_ns, range_ns, further_ns) = match family {
            Family::BlockedBloom => (6.0, 1.0, 0.0),
            Family::Elastic => (10.0, 1.0, 0.0),
            Family::Prefix => (8.0, 10.0, 5.0),
            Family::Surf | Family::SurfBase | Family::SurfHash | Family::SurfReal | Family::SurfMixed => {
                (25.0, 30.0, 5.0)
            }
            Family::Rosetta => (20.0, 40.0, 8.0),
            Family::Proteus | Family::OnePrefixBloom | Family::TwoPrefixBloom => (10.0, 12.0, 8.0),
            Family::Grafite => (45.0, 50.0, 0.0),
        };
        Self { point_ns, range_ns, further_ns }
    }
}
