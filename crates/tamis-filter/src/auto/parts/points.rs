//! Filters for points: blocked Bloom filters, and binary fuse filters in the deepest level.

use super::{ASSUMED_POINT_BITS, parameter};
use crate::auto::Part;
use crate::auto::candidates::{Predicted, Problem};
use crate::bloom::formula::{blocked_fpr, standard_best_k, standard_fpr};
use crate::bloom::{LINE_BITS, best_probe_count};
use crate::{Family, FilterSpec};

/// Bits per key of blocked Bloom filters.
const BLOOM_BITS: [f64; 11] = [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0];

/// Widths of fingerprints in bits.
const FUSE_WIDTHS: [u32; 2] = [8, 16];

fn bloom(bits: f64) -> Part {
    Part { spec: FilterSpec::new(Family::BlockedBloom), bits_per_key: Some(bits) }
}

impl Problem<'_> {
    pub(super) fn point_parts(&self) -> Vec<Predicted> {
        let (has_points, _) = self.has_points_and_others();
        if !has_points {
            return Vec::new();
        }
        let fuse = |width: u32| Part {
            spec: FilterSpec::new(Family::Fuse).with("bits", &width.to_string()),
            bits_per_key: None,
        };
        let max = self.bits_max();
        if self.cases.is_assumed {
            let budgets = ASSUMED_POINT_BITS.into_iter().filter(|bits| *bits < max).chain([max]);
            return budgets.map(bloom).filter_map(|part| self.predict_point(&part)).collect();
        }
        let budgets = BLOOM_BITS.into_iter().filter(|bits| *bits < max).chain([max]);
        let mut parts: Vec<Part> = budgets.map(bloom).collect();
        if self.request.is_deepest {
            parts.extend(FUSE_WIDTHS.map(fuse));
        }
        parts.iter().filter_map(|part| self.predict_point(part)).collect()
    }

    /// The prediction for a blocked Bloom filter.
    pub(in crate::auto) fn predict_bloom(&self, bits: f64) -> Option<Predicted> {
        self.predict_point(&bloom(bits))
    }

    pub(super) fn predict_point(&self, part: &Part) -> Option<Predicted> {
        let (bits, rate) = match part.spec.family() {
            Family::Fuse => {
                let budget = part.bits_per_key.unwrap_or(f64::INFINITY);
                let fits = |width: &u32| self.fuse_bits(*width) <= budget;
                let widest = || [32, 16, 8].into_iter().find(fits);
                let width = parameter(&part.spec, "bits").or_else(widest)?;
                (self.fuse_bits(width), 0.5_f64.powi(width.cast_signed()))
            }
            Family::BlockedBloom => {
                let bits = part.bits_per_key.filter(|bits| *bits > 0.0)?;
                (bits, self.blocked_rate(bits))
            }
            _ => {
                let bits = part.bits_per_key.filter(|bits| *bits > 0.0)?;
                (bits, standard_fpr(bits, standard_best_k(bits, 32)))
            }
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

    /// Bits per key of a binary fuse filter: small sets need more.
    fn fuse_bits(&self, width: u32) -> f64 {
        let count = (self.counts.key_count as f64).max(2.0);
        let factor = (0.875 + 0.25 * 1e6_f64.ln() / count.ln()).max(1.125);
        factor * f64::from(width)
    }
}
