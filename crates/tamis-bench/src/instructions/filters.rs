//! Probes of filters: points and closed empty ranges, over integers and over text.

use tamis_filter::{
    AlignedBytes, AnyFilter, Budget, Digester, Filter as _, FilterSpec, KeyRange, Probe, RangeProbe, Samples,
};
use tamis_workload::{KeySet, QUERY_SEED, QuerySet, RangeMax, TextQuerySet, TextSet};

use super::{Case, Work};
use crate::BenchError;

const KEY_COUNT: usize = 20_000;
const QUERY_COUNT: usize = 2_000;
const SEED: u64 = 42;
const BITS_PER_KEY: f64 = 14.0;

/// Families that answer points.
const POINTS: [&str; 6] = ["blocked-bloom", "elastic", "surf", "rosetta", "proteus", "2pbf"];
/// Families that answer ranges.
const RANGES: [&str; 6] = ["prefix-bloom:bytes=5", "surf", "rosetta", "proteus", "1pbf", "2pbf"];
/// Families that answer ranges of text, with bits per key: tries of text need more.
const TEXT_RANGES: [(&str, f64); 3] =
    [("surf-real:bits=8", 32.0), ("rosetta", BITS_PER_KEY), ("proteus", BITS_PER_KEY)];

pub(super) fn cases() -> Vec<Case> {
    let points = POINTS
        .iter()
        .map(|&spec| Case::new(format!("filter: {spec}, absent key"), QUERY_COUNT, move |_| points(spec)));
    let ranges = RANGES
        .iter()
        .map(|&spec| Case::new(format!("filter: {spec}, closed range"), QUERY_COUNT, move |_| ranges(spec)));
    let text = TEXT_RANGES.iter().map(|&(spec, bits)| {
        Case::new(format!("filter: {spec}, closed range of text"), QUERY_COUNT, move |_| {
            text_ranges(spec, bits)
        })
    });
    points.chain(ranges).chain(text).collect()
}

fn build<'a>(
    spec: &str,
    bits_per_key: f64,
    keys: impl Iterator<Item = &'a [u8]>,
) -> Result<AnyFilter<AlignedBytes>, BenchError> {
    let mut builder = spec.parse::<FilterSpec>()?.builder(SEED)?;
    for key in keys {
        builder.add(key)?;
    }
    let bytes = builder.finish(Budget::bits_per_key(bits_per_key)?, Samples::NONE)?;
    AnyFilter::open(AlignedBytes::from(bytes.as_slice())).map_err(BenchError::other)
}

fn integers(spec: &str) -> Result<(Vec<u64>, AnyFilter<AlignedBytes>), BenchError> {
    let keys = KeySet::Uniform.generate(KEY_COUNT, SEED);
    let bytes: Vec<[u8; 8]> = keys.iter().map(|key| key.to_be_bytes()).collect();
    let filter = build(spec, BITS_PER_KEY, bytes.iter().map(<[u8; 8]>::as_slice))?;
    Ok((keys, filter))
}

fn points(spec: &str) -> Result<Work, BenchError> {
    let (keys, filter) = integers(spec)?;
    let queries = QuerySet::Uniform(RangeMax::Point)
        .generate(KeySet::Uniform, &keys, QUERY_COUNT, QUERY_SEED)
        .map_err(BenchError::other)?;
    let digester = Digester::new(SEED);
    Ok(Box::new(move || {
        let is_present = |point: u64| filter.may_contain(&Probe::new(&point.to_be_bytes(), &digester));
        Ok(queries.iter().filter(|(point, _)| is_present(*point)).count() as u64)
    }))
}

fn ranges(spec: &str) -> Result<Work, BenchError> {
    let (keys, filter) = integers(spec)?;
    let queries = QuerySet::Uniform(RangeMax::R32)
        .generate(KeySet::Uniform, &keys, QUERY_COUNT, QUERY_SEED)
        .map_err(BenchError::other)?;
    let digester = Digester::new(SEED);
    Ok(Box::new(move || {
        let mut passed = 0;
        for (lower, upper) in &queries {
            let (lower, upper) = (lower.to_be_bytes(), upper.to_be_bytes());
            let probe = RangeProbe::new(KeyRange::closed(&lower, &upper), &digester);
            passed += u64::from(filter.may_contain_range(&probe));
        }
        Ok(passed)
    }))
}

fn text_ranges(spec: &str, bits_per_key: f64) -> Result<Work, BenchError> {
    let keys = TextSet::Domains.generate(KEY_COUNT, SEED);
    let filter = build(spec, bits_per_key, keys.iter().map(Vec::as_slice))?;
    let queries = TextQuerySet::Ranges
        .generate(TextSet::Domains, &keys, QUERY_COUNT, QUERY_SEED)
        .map_err(BenchError::other)?;
    let digester = Digester::new(SEED);
    Ok(Box::new(move || {
        let mut passed = 0;
        for (lower, upper) in &queries {
            let probe = RangeProbe::new(KeyRange::closed(lower, upper), &digester);
            passed += u64::from(filter.may_contain_range(&probe));
        }
        Ok(passed)
    }))
}
