//! Builds filters and counts their false positives: the measured cost of a choice.

use tamis_filter::auto::{Part, Prices};
use tamis_filter::{AnyFilter, Budget, BuildError, Digester, Filter, KeyRange, Probe, RangeProbe, Samples};

use super::workloads::{OwnedQuery, Workload};

const SEED: u64 = 7;

/// The measured behaviour of the filters of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    /// Mean cost of an empty query at the prices, the price of memory included.
    pub(crate) cost_ns: f64,
    pub(crate) bits_per_key: f64,
    /// Share of false positives.
    pub(crate) rate: f64,
}

/// A filter from the command line: `NAME[:PARAMETERS][@BITS]`, several separated by `+`.
pub(crate) fn parts(text: &str) -> Vec<Part> {
    let part = |text: &str| {
        let (spec, bits) = text.split_once('@').map_or((text, None), |(spec, bits)| (spec, Some(bits)));
        Part { spec: spec.parse().unwrap(), bits_per_key: bits.map(|bits| bits.parse().unwrap()) }
    };
    text.split('+').filter(|text| !text.is_empty()).map(part).collect()
}

pub(crate) fn to_text(parts: &[Part]) -> String {
    let one = |part: &Part| {
        let bits = part.bits_per_key.map_or(String::new(), |bits| format!("@{bits:.1}"));
        format!("{}{bits}", part.spec)
    };
    if parts.is_empty() { "none".to_owned() } else { parts.iter().map(one).collect::<Vec<_>>().join(" + ") }
}

/// Builds filters with a sample and asks queries without a key.
pub(crate) fn measure(
    workload: &Workload,
    parts: &[Part],
    sample: &[OwnedQuery],
    queries: &[OwnedQuery],
    prices: &Prices,
) -> Result<Measured, BuildError> {
    let ranges: Vec<KeyRange<'_>> = sample.iter().map(OwnedQuery::range).collect();
    let mut filters = Vec::new();
    for part in parts {
        let mut builder = part.spec.builder(SEED)?;
        builder.add_all(&workload.keys)?;
        let budget = part.bits_per_key.map_or(Ok(Budget::BY_PARAMETERS), Budget::bits_per_key)?;
        filters.push(AnyFilter::open(builder.finish(budget, Samples { queries: &ranges })?).unwrap());
    }
    let bytes: u64 = filters.iter().map(AnyFilter::encoded_bytes).sum();
    let bits_per_key = bytes as f64 * 8.0 / workload.keys.len() as f64;
    let digester = Digester::new(SEED);
    let (mut ns, mut positives) = (0.0, 0_u32);
    for query in queries {
        let is_positive = filters.iter().all(|filter| {
            let time = prices.probe.get(filter.family());
            let (passes, first, probes) =
                if query.lower == query.upper && query.kind != tamis_filter::auto::QueryKind::Prefix {
                    let probe = Probe::new(&query.lower, &digester);
                    (filter.may_contain(&probe), time.point_ns, probe.probe_count())
                } else {
                    let probe = RangeProbe::new(query.range(), &digester);
                    (filter.may_contain_range(&probe), time.range_ns, probe.probe_count())
                };
            ns += time.further_ns.mul_add(f64::from(probes.saturating_sub(1)), first);
            passes
        });
        positives += u32::from(is_positive);
    }
    let rate = f64::from(positives) / queries.len() as f64;
    let cost_ns = ns / queries.len() as f64 + rate * prices.read_ns + bits_per_key * prices.bit_ns;
    Ok(Measured { cost_ns, bits_per_key, rate })
}

/// Filters with which the choice is compared: every family alone at several budgets up to the maximum, with and without a
/// Bloom filter for points.
pub(crate) fn fixed_families(bits_per_key_max: f64) -> Vec<String> {
    let mut fixed = vec![String::new()];
    for bits in [10.0, bits_per_key_max] {
        for family in [
            "blocked-bloom",
            "surf:truncate=yes",
            "rosetta",
            "proteus",
            "1pbf",
            "2pbf",
            "prefix-bloom:bytes=4",
            "prefix-bloom:bytes=8",
        ] {
            fixed.push(format!("{family}@{bits}"));
        }
    }
    fixed.extend(
        ["surf-base", "surf-real:bits=4", "surf-hash:bits=4", "surf-mixed:hash=2,real=2"].map(String::from),
    );
    let rest = bits_per_key_max - 8.0;
    for range in ["proteus", "rosetta", "surf:truncate=yes", "prefix-bloom:bytes=8"] {
        fixed.push(format!("blocked-bloom@8+{range}@{rest}"));
    }
    fixed
}
