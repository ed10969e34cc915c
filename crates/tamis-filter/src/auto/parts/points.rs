//! Filters for points: blocked Bloom filters.

use super::ASSUMED_POINT_BITS;
use crate::auto::Part;
use crate::auto::candidates::{Predicted, Problem};
use crate::bloom::formula::{blocked_fpr, standard_best_k, standard_fpr};
use crate::bloom::{LINE_BITS, best_probe_count};
use crate::{Family, FilterSpec};

/// Bits per key of blocked Bloom filters.
const BLOOM_BITS: [f64; 11] = [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0];

fn bloom(bits: f64) -> Part {
    Part { spec: FilterSpec::new(Family::BlockedBloom), bits_per_key: Some(bits) }
}

impl Problem<'_> {
    pub(super) fn point_parts(&self) -> Vec<Predicted> {
        let (has_points, _) = self.has_points_and_others();
        if !has_points {
            return Vec::new();
        }
        let max = self.bits_max();
        let sizes = if self.cases.is_assumed { &ASSUMED_POINT_BITS[..] } else { &BLOOM_BITS };
        let budgets = sizes.iter().copied().filter(|bits| *bits < max).chain([max]);
        budgets.map(bloom).filter_map(|part| self.predict_point(&part)).collect()
    }

    /// The prediction for a blocked Bloom filter.
    pub(in crate::auto) fn predict_bloom(&self, bits: f64) -> Option<Predicted> {
        self.predict_point(&bloom(bits))
    }

    pub(super) fn predict_point(&self, part: &Part) -> Option<Predicted> {
        let bits = part.bits_per_key.filter(|bits| *bits > 0.0)?;
        let rate = match part.spec.family() {
            Family::BlockedBloom => self.blocked_rate(bits),
            _ => standard_fpr(bits, standard_best_k(bits, 32)),
        };
        let rate = |is_point: bool| if is_point { rate } else { 1.0 };
        Some(self.prediction(part.spec.clone(), part.bits_per_key, bits, |case| rate(case.is_point)))
    }

    /// The rate of a blocked Bloom filter, which has whole lines, and at least one. The last line is within the slack of a budget.
    fn blocked_rate(&self, bits: f64) -> f64 {
        let count = self.counts.key_count as f64;
        let per_line = count / (bits * count / LINE_BITS).ceil().max(1.0);
        blocked_fpr(LINE_BITS, per_line, best_probe_count(per_line))
    }
}
