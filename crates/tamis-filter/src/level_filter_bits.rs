//! Allocates filter memory to levels so that the expected number of false-positive reads is minimal.
//!
//! A lookup of an absent key queries one filter of each level; each has its false-positive rate. The rate is convex in
//! the bits per key (elsewhere its convex hull is used), so it is optimal to give the next bits to the level where
//! they save most per byte. Small levels get more bits per key than large ones, and a level that is too large gets
//! none: its filter would save less than the other levels lose.

use crate::bloom::{best_probe_count, formula::blocked_fpr};

/// Input for a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelLoad {
    /// Keys in the level.
    pub key_count: u64,
    /// Relative number of lookups that reach the level and do not find their key there; 1 for each if unknown.
    pub weight: f64,
}

/// Granularity of the result in bits per key.
const STEP_BITS: f64 = 0.25;

/// Shares of a level that are tried.
const TRY_COUNT: u32 = 32;

/// Maximum number of bits per key of a level.
pub const LEVEL_BITS_MAX: f64 = 32.0;

/// A point of the convex hull of the rate: bits per key and rate.
type Corner = (f64, f64);

/// The lower convex hull of the rate of blocked filters over bits per key.
fn rate_hull() -> Vec<Corner> {
    let mut hull: Vec<Corner> = vec![(0.0, 1.0)];
    for step in 1..=(LEVEL_BITS_MAX / STEP_BITS) as u32 {
        let bits = f64::from(step) * STEP_BITS;
        let point = (bits, blocked_bloom_fpr(bits));
        while let [.., before, last] = hull.as_slice()
            && slope(*before, *last) >= slope(*last, point)
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

fn slope(from: Corner, to: Corner) -> f64 {
    (to.1 - from.1) / (to.0 - from.0)
}

/// The rate of a blocked filter; 1 without bits.
pub fn blocked_bloom_fpr(bits_per_key: f64) -> f64 {
    if bits_per_key <= 0.0 {
        return 1.0;
    }
    let keys_per_line = 512.0 / bits_per_key;
    blocked_fpr(512.0, keys_per_line, best_probe_count(keys_per_line))
}

/// Bits per key of each level, in total at most `total_bits`. Deterministic. Memory that no level can use remains.
pub fn allocate_bits(levels: &[LevelLoad], total_bits: f64) -> Vec<f64> {
    let hull = rate_hull();
    let first = buy(&hull, levels, total_bits, None);
    let Some((index, edge)) = first.cut.filter(|(_, edge)| edge.1 - edge.0 > STEP_BITS) else {
        return first.bits;
    };
    // The memory ended within an edge of the hull that bridges a part of the curve that is not convex: half of such an
    // edge saves less than half of its saving. Try the effect of other shares of that level.
    let false_reads = |bits: &[f64]| -> f64 {
        levels.iter().zip(bits).map(|(level, bits)| level.weight * blocked_bloom_fpr(*bits)).sum()
    };
    let mut best = (false_reads(&first.bits), first.bits);
    for try_index in 0..=TRY_COUNT {
        let bits = edge.0 + (edge.1 - edge.0) * f64::from(try_index) / f64::from(TRY_COUNT);
        let other = buy(&hull, levels, total_bits, Some((index, bits)));
        let reads = false_reads(&other.bits);
        if reads < best.0 {
            best = (reads, other.bits);
        }
    }
    best.1
}

/// The allocation, and the level and edge at which the memory ended.
struct Bought {
    bits: Vec<f64>,
    cut: Option<(usize, (f64, f64))>,
}

/// Allocates edges of the hull in descending order of their saving per bit; a level may be fixed beforehand.
fn buy(hull: &[Corner], levels: &[LevelLoad], total_bits: f64, fixed: Option<(usize, f64)>) -> Bought {
    let mut purchases: Vec<(f64, usize, (f64, f64))> = Vec::new();
    let is_open = |index: &usize| fixed.is_none_or(|(level, _)| level != *index);
    for (index, level) in levels.iter().enumerate().filter(|(index, _)| is_open(index)) {
        if level.key_count > 0 && level.weight > 0.0 {
            purchases.extend(hull.windows(2).filter_map(|edge| {
                let [from, to] = edge else { return None };
                let saving = -slope(*from, *to) * level.weight / level.key_count as f64;
                Some((saving, index, (from.0, to.0)))
            }));
        }
    }
    // Savings decrease along a hull, so this order respects the order of the edges within a level.
    purchases.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    let mut bits = vec![0.0; levels.len()];
    let mut rest = total_bits;
    if let Some((index, fixed_bits)) = fixed
        && let (Some(level), Some(bits)) = (levels.get(index), bits.get_mut(index))
    {
        // The memory ended at the fixed level, so it has less than the whole edge.
        *bits = fixed_bits.min(rest / level.key_count as f64);
        rest -= *bits * level.key_count as f64;
    }
    for (_, index, edge) in purchases {
        let (Some(level), Some(level_bits)) = (levels.get(index), bits.get_mut(index)) else { continue };
        let price = (edge.1 - edge.0) * level.key_count as f64;
        if rest < price {
            *level_bits += rest.max(0.0) / level.key_count as f64;
            return Bought { bits, cut: Some((index, edge)) };
        }
        *level_bits = edge.1;
        rest -= price;
    }
    Bought { bits, cut: None }
}

#[cfg(test)]
mod tests;
