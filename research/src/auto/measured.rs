//! Builds filters and counts their probes and false positives.

use std::sync::Arc;

use tamis_filter::{
    AnyFilter, Budget, Digester, Filter as _, KeyRange, KeySet, Probe, RangeProbe, Samples,
    auto::{Effort, Part, Pause, Prices, ProbeTime, Query, QueryKind, Request, Workload},
};

use crate::inputs::OwnedQuery;
use tamis_bench::BenchError;

const SEED: u64 = 7;

/// The measured behaviour of the filters of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    /// Mean time of the probes of a query.
    pub(super) probe_ns: f64,
    pub(super) bits_per_key: f64,
    /// Share of false positives.
    pub(super) rate: f64,
}

impl Measured {
    /// Mean cost of an empty query: probes, reads for false positives, and memory.
    pub(super) fn cost_ns(&self, prices: &Prices) -> f64 {
        self.probe_ns + self.rate * prices.read_ns + self.bits_per_key * prices.bit_ns
    }
}

/// Filters as text: `FAMILY[:PARAMETERS][@BITS]`, several separated by ` + `.
pub(super) fn parts(text: &str) -> Result<Vec<Part>, BenchError> {
    let part = |text: &str| {
        let (spec, bits) = text.split_once('@').map_or((text, None), |(spec, bits)| (spec, Some(bits)));
        let bits_per_key = bits.map(str::parse).transpose().map_err(BenchError::other)?;
        Ok(Part { spec: spec.parse()?, bits_per_key })
    };
    text.split(" + ").filter(|text| !text.is_empty()).map(part).collect()
}

/// The text of filters.
pub(super) fn text_of(parts: &[Part]) -> String {
    let one = |part: &Part| {
        let bits = part.bits_per_key.map_or(String::new(), |bits| format!("@{bits:.1}"));
        format!("{}{bits}", part.spec)
    };
    if parts.is_empty() { "none".to_owned() } else { parts.iter().map(one).collect::<Vec<_>>().join(" + ") }
}

/// The sample as a choice takes it; every query counts alike.
pub(super) fn sampled(queries: &[OwnedQuery]) -> Vec<Query<'_>> {
    queries.iter().map(|query| Query { kind: query.kind, range: query.range(), weight: 1.0 }).collect()
}

/// A request for the filters of a new table.
pub(super) fn request<'a>(
    queries: &'a [Query<'a>],
    prices: Prices,
    bits_per_key_max: f64,
    effort: Effort,
) -> Request<'a> {
    Request {
        workload: Workload { queries },
        prices,
        bits_per_key_max,
        overlapping_tables: 1,
        current: None,
        effort,
        seed: 5,
        pause: Pause::default(),
    }
}

/// Builds filters with a sample and probes them with empty queries.
pub(super) fn measure(
    keys: &Arc<KeySet>,
    parts: &[Part],
    sample: &[OwnedQuery],
    queries: &[OwnedQuery],
) -> Result<Measured, BenchError> {
    let ranges: Vec<KeyRange<'_>> = sample.iter().map(OwnedQuery::range).collect();
    let mut filters = Vec::new();
    for part in parts {
        let mut builder = part.spec.builder(SEED)?;
        builder.add_all(keys)?;
        let budget = part.bits_per_key.map_or(Ok(Budget::BY_PARAMETERS), Budget::bits_per_key)?;
        let bytes = builder.finish(budget, Samples { queries: &ranges })?;
        filters.push(AnyFilter::open(bytes).map_err(BenchError::other)?);
    }
    let bytes: u64 = filters.iter().map(AnyFilter::encoded_bytes).sum();
    let digester = Digester::new(SEED);
    let (mut ns, mut positives) = (0.0, 0_u32);
    // As in the store, points probe only the point filter, if there is one.
    let has_point_filter = filters.iter().any(|filter| !filter.family().answers_ranges());
    for query in queries {
        let is_point = query.kind == QueryKind::Point;
        let passes = filters.iter().all(|filter| {
            if is_point && has_point_filter && filter.family().answers_ranges() {
                return true;
            }
            let time = ProbeTime::of(filter.family());
            let (passes, first, probes) = if is_point {
                let probe = Probe::new(&query.lower, &digester);
                (filter.may_contain(&probe), time.point_ns, probe.probe_count())
            } else {
                let probe = RangeProbe::new(query.range(), &digester);
                (filter.may_contain_range(&probe), time.range_ns, probe.probe_count())
            };
            ns += time.further_ns.mul_add(f64::from(probes.saturating_sub(1)), first);
            passes
        });
        positives += u32::from(passes);
    }
    let count = queries.len().max(1) as f64;
    Ok(Measured {
        probe_ns: ns / count,
        bits_per_key: bytes as f64 * 8.0 / keys.len().max(1) as f64,
        rate: f64::from(positives) / count,
    })
}
