//! Measures the times of probes on this machine.
//!
//! 1. A small filter of each kind of structure is built from the same synthetic keys, and probed with absent points and ranges.
//! 2. The least time of several rounds counts: other threads only lengthen a round.
//! 3. Its ratio to the time of the same filter on the reference machine is a factor, at least 1 / [`FACTOR_MAX`] and at most
//!    [`FACTOR_MAX`]. A time that is implausible (a clock that does not advance, a thread that lost its processor in all rounds) so changes
//!    no price by more.
//! 4. The shipped times of the families with this structure, which are those of filters of a million keys, are multiplied by it.
//!
//! Takes about 10 milliseconds in all, and at most 4 for a structure. `examples/measure_probe_times.rs` prints the factors.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use super::ProbeTimes;
use super::probe_times::ProbeTime;
use crate::{
    AnyFilter, Budget, BuildError, Digester, Family, Filter as _, FilterSpec, KeyRange, KeySet, Probe,
    RangeProbe, Samples, mix64,
};

/// The greatest change of a shipped time.
const FACTOR_MAX: f64 = 4.0;

const KEY_COUNT: u64 = 1 << 14;
const QUERY_COUNT: u64 = 1 << 10;
const ROUND_COUNT: usize = 5;
const SEED: u64 = 7;
/// Integers in a range.
const RANGE_LENGTH: u64 = 16;

/// A kind of structure: its filter, and the time of a probe of it on the reference machine.
struct Structure {
    families: &'static [Family],
    /// Parameters of the first family.
    parameters: &'static [(&'static str, &'static str)],
    bits_per_key: Option<f64>,
    point_ns: f64,
    /// `None`: it answers no ranges.
    range_ns: Option<f64>,
}

const STRUCTURES: [Structure; 7] = [
    Structure {
        families: &[Family::BlockedBloom],
        parameters: &[],
        bits_per_key: Some(16.0),
        point_ns: 6.0,
        range_ns: None,
    },
    Structure {
        families: &[Family::Elastic],
        parameters: &[],
        bits_per_key: Some(16.0),
        point_ns: 15.0,
        range_ns: None,
    },
    Structure {
        families: &[Family::Prefix],
        parameters: &[("bits", "44")],
        bits_per_key: Some(16.0),
        point_ns: 11.5,
        range_ns: Some(28.0),
    },
    Structure {
        families: &[Family::SurfReal, Family::Surf, Family::SurfBase, Family::SurfHash, Family::SurfMixed],
        parameters: &[("bits", "4")],
        bits_per_key: None,
        point_ns: 12.5,
        range_ns: Some(23.5),
    },
    Structure {
        families: &[Family::Rosetta],
        // Without a price of probes whole keys are the only level.
        parameters: &[("probe-cost", "0")],
        bits_per_key: Some(16.0),
        point_ns: 13.0,
        range_ns: Some(370.0),
    },
    Structure {
        families: &[Family::Proteus, Family::OnePrefixBloom, Family::TwoPrefixBloom],
        parameters: &[("trie", "12"), ("prefix", "44")],
        bits_per_key: Some(16.0),
        point_ns: 15.5,
        range_ns: Some(27.0),
    },
    Structure {
        families: &[Family::Grafite],
        parameters: &[],
        bits_per_key: Some(16.0),
        point_ns: 85.0,
        range_ns: Some(102.0),
    },
];

/// Synthetic queries.
struct Queries {
    digester: Digester,
    /// Lower and upper bounds of ranges; the lower ones are points, too.
    bounds: Vec<([u8; 8], [u8; 8])>,
}

impl ProbeTimes {
    /// The times on this machine. `now` is a clock that never decreases; `between` is called between the measurements of two structures, some
    /// milliseconds apart.
    pub fn measure(now: &dyn Fn() -> Duration, between: &dyn Fn()) -> Self {
        let mut keys: Vec<u64> = (0..KEY_COUNT).map(|number| mix64(number, SEED)).collect();
        keys.sort_unstable();
        let mut set = KeySet::new();
        for key in keys {
            // Ascending keys are always accepted; without them the times are the shipped ones.
            let _ = set.push(&key.to_be_bytes());
        }
        let set = Arc::new(set);
        let bound = |number: u64| {
            let lower = mix64((1 << 40) + number, SEED);
            (lower.to_be_bytes(), lower.saturating_add(RANGE_LENGTH - 1).to_be_bytes())
        };
        let queries =
            Queries { digester: Digester::new(SEED), bounds: (0..QUERY_COUNT).map(bound).collect() };
        let mut times = Self::default();
        for structure in &STRUCTURES {
            if let Ok((point, range)) = structure.factors(&set, &queries, now) {
                structure.families.iter().for_each(|family| times.scale(*family, point, range));
            }
            between();
        }
        times
    }

    fn scale(&mut self, family: Family, point: f64, range: f64) {
        let ProbeTime { point_ns, range_ns, further_ns } = Self::default().get(family);
        let scaled = ProbeTime {
            point_ns: point_ns * point,
            range_ns: range_ns * range,
            further_ns: further_ns * range,
        };
        self.set(family, scaled);
    }
}

impl Structure {
    /// The factors of the times of points and ranges.
    fn factors(
        &self,
        keys: &Arc<KeySet>,
        queries: &Queries,
        now: &dyn Fn() -> Duration,
    ) -> Result<(f64, f64), BuildError> {
        let [family, ..] = self.families else { return Ok((1.0, 1.0)) };
        let spec = FilterSpec::new(*family);
        let spec = self.parameters.iter().fold(spec, |spec, (name, value)| spec.with(name, value));
        let mut builder = spec.builder(SEED)?;
        builder.add_all(keys)?;
        let budget = self.bits_per_key.map_or(Ok(Budget::BY_PARAMETERS), Budget::bits_per_key)?;
        let Ok(filter) = AnyFilter::open(builder.finish(budget, Samples::NONE)?) else {
            return Ok((1.0, 1.0));
        };
        let digester = &queries.digester;
        let point = factor(self.point_ns, now, || {
            for (lower, _) in &queries.bounds {
                black_box(filter.may_contain(&Probe::new(black_box(lower), digester)));
            }
        });
        let range = self.range_ns.map(|range_ns| {
            factor(range_ns, now, || {
                for (lower, upper) in &queries.bounds {
                    let range = KeyRange::closed(black_box(lower), upper);
                    black_box(filter.may_contain_range(&RangeProbe::new(range, digester)));
                }
            })
        });
        Ok((point, range.unwrap_or(point)))
    }
}

/// The ratio of the measured time of a query to that of the reference machine, within its bounds; 1 if no time passed.
fn factor(reference_ns: f64, now: &dyn Fn() -> Duration, mut round: impl FnMut()) -> f64 {
    let times = (0..ROUND_COUNT).map(|_| {
        let began = now();
        round();
        now().saturating_sub(began)
    });
    let least = times.min().unwrap_or_default().as_nanos() as f64 / QUERY_COUNT as f64;
    if least == 0.0 { 1.0 } else { (least / reference_ns).clamp(1.0 / FACTOR_MAX, FACTOR_MAX) }
}

#[cfg(test)]
mod tests;
