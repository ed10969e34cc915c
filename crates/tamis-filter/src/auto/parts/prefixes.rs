//! Bloom filters of prefixes, at the lengths that the sample shows.

use std::collections::BTreeMap;

use super::parameter;
use crate::auto::candidates::{Predicted, Problem};
use crate::auto::cases::Case;
use crate::auto::{Part, QueryKind};
use crate::bloom::formula::blocked_fpr;
use crate::bloom::{LINE_BITS, best_probe_count};
use crate::{Family, FilterSpec};

/// A range over more prefixes passes.
const PREFIXES_MAX: u64 = 16;
/// Most bits of the filter per prefix.
const BITS_PER_PREFIX_MAX: f64 = 64.0;
/// Lengths that are tried, the most frequent in the sample.
const LENGTHS_MAX: usize = 4;
/// Budgets that are tried, as shares of the maximum.
const SHARES: [f64; 5] = [1.0, 0.7, 0.5, 0.35, 0.2];

impl Problem<'_> {
    pub(super) fn prefix_parts(&self) -> Vec<Predicted> {
        let lengths = self.prefix_lengths();
        let parts = lengths.iter().flat_map(|bytes| {
            SHARES.map(|share| Part {
                spec: FilterSpec::new(Family::Prefix).with("bytes", &bytes.to_string()),
                bits_per_key: Some(share * self.bits_max()),
            })
        });
        let parts = parts.filter(|_| self.work.take(self.cases.empty.len() * 4));
        parts.filter_map(|part| self.predict_prefix(&part)).collect()
    }

    /// The lengths of sampled prefixes, and the common bytes of the ends of ranges.
    fn prefix_lengths(&self) -> Vec<usize> {
        let mut weights: BTreeMap<usize, f64> = BTreeMap::new();
        for case in self.cases.sample().iter().filter(|case| !case.is_point && case.is_closed()) {
            let bytes = match case.kind {
                QueryKind::Prefix => case.range.lower_bytes().len(),
                _ => (case.shared_ends / 8) as usize,
            };
            *weights.entry(bytes).or_default() += case.weight;
        }
        let mut lengths: Vec<(usize, f64)> =
            weights.into_iter().filter(|(bytes, _)| (1..=1024).contains(bytes)).collect();
        lengths.sort_by(|left, right| right.1.total_cmp(&left.1));
        lengths.into_iter().take(LENGTHS_MAX).map(|(bytes, _)| bytes).collect()
    }

    pub(super) fn predict_prefix(&self, part: &Part) -> Option<Predicted> {
        let budget = part.bits_per_key.filter(|bits| *bits > 0.0)?;
        let bits: u32 = parameter(&part.spec, "bits")
            .or_else(|| parameter::<u32>(&part.spec, "bytes").map(|bytes| bytes * 8))
            .unwrap_or(32);
        let prefix_count = self.counts.prefix_count(bits.div_ceil(8) as usize) as f64;
        let total = (budget * self.counts.key_count as f64).min(prefix_count * BITS_PER_PREFIX_MAX);
        let per_line = prefix_count / (total / LINE_BITS).ceil().max(1.0);
        let rate = blocked_fpr(LINE_BITS, per_line, best_probe_count(per_line));
        // At least one line, whatever the budget.
        let size = (total / LINE_BITS).floor().max(1.0) * LINE_BITS / (self.counts.key_count as f64).max(1.0);
        let result = |case: &Case<'_>| prefix_result(case, bits, rate);
        let predicted = self.prediction(part.spec.clone(), part.bits_per_key, size, result);
        Some(predicted)
    }
}

fn prefix_result(case: &Case<'_>, bits: u32, rate: f64) -> f64 {
    if case.shared_left.max(case.shared_right) >= bits {
        return 1.0;
    }
    if case.is_point || case.shared_ends >= bits {
        return rate;
    }
    let words = if bits <= 64 { case.range.word_bounds() } else { None };
    let count = words.map_or(u64::MAX, |(lower, upper)| (upper >> (64 - bits)) - (lower >> (64 - bits)));
    if count >= PREFIXES_MAX { 1.0 } else { 1.0 - (1.0 - rate).powi(count as i32 + 1) }
}
