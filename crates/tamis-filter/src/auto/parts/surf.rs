//! SuRF: exact predictions, since its trie is deterministic.
//!
//! A leaf of `e` bytes and `r` key bits cannot reject a query whose end shares `8 e + r` bits with its key. Call the greatest
//! number of bits that an end shares with the key next to it beyond the leaf the *excess* of a query: the filter passes it if
//! the excess is at least `r`, and a point in addition only if `h` digest bits agree.

use super::parameter;
use crate::auto::Part;
use crate::auto::candidates::{Predicted, Problem};
use crate::auto::cases::{Case, WHOLE};
use crate::auto::key_counts::TrieSize;
use crate::{Family, FilterSpec};

/// Suffix widths that are tried.
const WIDTHS: [u32; 9] = [0, 4, 8, 2, 6, 10, 12, 16, 20];
/// The widest suffix.
const WIDTH_MAX: u32 = 64;
/// The excess of a query that meets a leaf without a suffix.
const NO_SUFFIX: u32 = u32::MAX;

/// Digest bits and key bits of a suffix.
type Suffix = (u32, u32);

impl Problem<'_> {
    pub(super) fn surf_parts(&self) -> Vec<Predicted> {
        let (has_points, has_others) = self.has_points_and_others();
        let mut parts: Vec<Part> = Vec::new();
        if let Some(trie) = self.counts.whole_trie(true) {
            let excess = self.excess(usize::MAX);
            let widest = self.range_budgets().into_iter().fold(0.0, f64::max);
            let allowed = self.counts.surf_bytes(widest);
            for width in WIDTHS.into_iter().filter(|width| trie.filter_bytes(*width) <= allowed) {
                let best = self.best_split(&excess, width);
                let mut splits = vec![best];
                if has_points && has_others && best.0 > 0 {
                    // With a filter for points next to it, all bits are for ranges.
                    splits.push((0, width));
                }
                parts
                    .extend(splits.into_iter().map(|suffix| Part { spec: spec(suffix), bits_per_key: None }));
            }
            for budget in self.range_budgets() {
                if self.counts.surf_bytes(budget) < trie.filter_bytes(0) {
                    let spec = FilterSpec::new(Family::Surf).with("truncate", "yes");
                    parts.push(Part { spec, bits_per_key: Some(budget) });
                }
            }
        }
        let parts = parts.into_iter().filter(|_| self.work.take(self.cases.empty.len() * 8));
        parts.filter_map(|part| self.predict_surf(&part)).collect()
    }

    pub(super) fn predict_surf(&self, part: &Part) -> Option<Predicted> {
        let bits = |name: &str| parameter::<u32>(&part.spec, name);
        let family = part.spec.family();
        let given = match family {
            Family::SurfBase => Some((0, 0)),
            Family::SurfHash => bits("bits").map(|bits| (bits, 0)),
            Family::SurfReal => bits("bits").map(|bits| (0, bits)),
            Family::SurfMixed => match (bits("hash"), bits("real")) {
                (None, None) => None,
                (hash, real) => Some((hash.unwrap_or(0), real.unwrap_or(0))),
            },
            _ => None,
        };
        let whole = self.counts.whole_trie(given != Some((0, 0)))?;
        if let Some(suffix) = given {
            return Some(self.surf(part, &whole, usize::MAX, suffix));
        }
        let allowed = self.counts.surf_bytes(part.bits_per_key?);
        let (trie, height) = match whole.widest_suffix(allowed) {
            Some(_) => (whole, usize::MAX),
            None => {
                let trie = self.counts.truncated_trie(allowed)?;
                (trie, trie.height)
            }
        };
        let width = trie.widest_suffix(allowed)?;
        let suffix = match family {
            Family::SurfHash => (width, 0),
            Family::SurfReal => (0, width),
            Family::Surf => self.best_split(&self.excess(height), width),
            _ => (width - width / 2, width / 2),
        };
        Some(self.surf(part, &trie, height, suffix))
    }

    fn surf(&self, part: &Part, trie: &TrieSize, height: usize, (hash, real): Suffix) -> Predicted {
        let size = self.counts.bits_per_key(trie.filter_bytes(hash + real));
        let result = |case: &Case<'_>| match excess(case, height) {
            Some(NO_SUFFIX) => 1.0,
            Some(excess) if excess >= real => {
                if case.is_point {
                    0.5_f64.powi(hash.cast_signed())
                } else {
                    1.0
                }
            }
            _ => 0.0,
        };
        self.prediction(part.spec.clone(), part.bits_per_key, size, result)
    }

    /// The weight of the empty points and of the other queries by their excess, without those whose answer does not depend on the suffix.
    fn excess(&self, height: usize) -> [Vec<f64>; 2] {
        let mut weights = [(); 2].map(|()| vec![0.0; WIDTH_MAX as usize + 1]);
        let cases = self.cases.designed_for();
        for case in cases.iter().filter(|case| case.is_closed()) {
            let [points, others] = &mut weights;
            let target = if case.is_point { points } else { others };
            if let Some(excess) = excess(case, height).filter(|excess| *excess != NO_SUFFIX)
                && let Some(weight) = target.get_mut(excess.min(WIDTH_MAX) as usize)
            {
                *weight += case.weight;
            }
        }
        weights
    }

    /// The division of a suffix with the fewest false positives, as the builder divides it.
    fn best_split(&self, [points, others]: &[Vec<f64>; 2], width: u32) -> Suffix {
        let passed = |weights: &[f64], real: u32| weights.iter().skip(real as usize).sum::<f64>();
        let positives = |real: &u32| {
            passed(points, *real) * 0.5_f64.powi((width - real).cast_signed()) + passed(others, *real)
        };
        let best =
            (0..=width).min_by(|left, right| positives(left).total_cmp(&positives(right))).unwrap_or(0);
        (width - best, best)
    }
}

/// The bits that an end of a query shares with a key beyond its leaf; `None` if the trie rejects the query.
fn excess(case: &Case<'_>, height: usize) -> Option<u32> {
    let beyond = |shared: u32, leaf: u32| {
        if (leaf as usize) > height {
            // The leaf represents several keys and has no suffix.
            return (shared as usize >= height * 8).then_some(NO_SUFFIX);
        }
        if leaf == WHOLE { None } else { shared.checked_sub(leaf * 8) }
    };
    let query = case.query?;
    beyond(query.shared_left, case.leaf_left).max(beyond(query.shared_right, case.leaf_right))
}

fn spec((hash, real): Suffix) -> FilterSpec {
    match (hash, real) {
        (0, 0) => FilterSpec::new(Family::SurfBase),
        (hash, 0) => FilterSpec::new(Family::SurfHash).with("bits", &hash.to_string()),
        (0, real) => FilterSpec::new(Family::SurfReal).with("bits", &real.to_string()),
        (hash, real) => {
            FilterSpec::new(Family::SurfMixed).with("hash", &hash.to_string()).with("real", &real.to_string())
        }
    }
}
