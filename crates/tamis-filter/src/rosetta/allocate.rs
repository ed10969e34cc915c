//! The paper's strategies to allocate bits to levels, with its formulas corrected.
//!
//! Levels are counted from the deepest one up, `r = 0, 1, ...`; `n[r]` is the number of prefixes of a level, and
//! `c[r]` the average number of its dyadic intervals per query. A level of `m` bits has the false-positive rate
//! `exp(-m / n ln^2 2)`.

use std::f64::consts::LN_2;

/// ln^2 2: bits per prefix times this is the logarithm of 1 / rate.
const LN2_SQUARED: f64 = LN_2 * LN_2;

/// The number of probes of each level if every level above has the rate 1/2: the sums of `c` from each level on.
pub(super) fn frequencies(counts: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let mut frequencies: Vec<f64> = counts
        .iter()
        .rev()
        .map(|count| {
            sum += count;
            sum
        })
        .collect();
    frequencies.reverse();
    frequencies
}

/// All bits in the deepest level.
pub(super) fn single(level_count: usize, bits: f64) -> Vec<f64> {
    let mut shares = vec![0.0; level_count];
    if let Some(first) = shares.first_mut() {
        *first = bits;
    }
    shares
}

/// All nodes pass with the same probability, their descendants included: `1 / (2 - e)` for levels above the deepest,
/// whose rate is `e`. Bisection finds the `e` that uses exactly the given bits.
pub(super) fn first_cut(prefixes: &[f64], bits: f64) -> Vec<f64> {
    let of = |rate: f64| -> Vec<f64> {
        let log = |index: usize| if index == 0 { -rate.ln() } else { (2.0 - rate).ln() };
        prefixes.iter().enumerate().map(|(index, count)| count * log(index) / LN2_SQUARED).collect()
    };
    let (mut low, mut high) = (-700.0_f64, 0.0_f64);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if of(middle.exp()).iter().sum::<f64>() > bits { low = middle } else { high = middle }
    }
    scaled(of(high.exp()), bits)
}

/// The minimum of the sum of weight times rate: every level with bits has the same `weight * rate / prefixes`, levels
/// without bits at most that. Drops levels whose rate would exceed 1 and solves the others again.
pub(super) fn optimised(weights: &[f64], prefixes: &[f64], bits: f64) -> Vec<f64> {
    let mut is_active: Vec<bool> =
        weights.iter().zip(prefixes).map(|(weight, count)| *weight > 0.0 && *count > 0.0).collect();
    loop {
        let shares = solved(weights, prefixes, &is_active, bits);
        if !drop_negative(&mut is_active, &shares) {
            return scaled(shares, bits);
        }
    }
}

/// As [`optimised`], with each level weighted by the frequencies of all levels from it upwards. A level without bits
/// is dropped, and its weight is added once more to those below.
pub(super) fn variable(frequencies: &[f64], prefixes: &[f64], bits: f64) -> Vec<f64> {
    let mut weights = self::frequencies(frequencies);
    let mut is_active = vec![true; weights.len()];
    loop {
        let shares = solved(&weights, prefixes, &is_active, bits);
        // One level at a time, from the top: a dropped level adds to the weights below.
        let dropped = (0..shares.len()).rev().find(|index| {
            is_active.get(*index) == Some(&true) && shares.get(*index).is_some_and(|share| *share <= 0.0)
        });
        let Some(dropped) = dropped else { return scaled(shares, bits) };
        if is_active.iter().filter(|is_active| **is_active).count() == 1 {
            return single(weights.len(), bits);
        }
        if let Some(flag) = is_active.get_mut(dropped) {
            *flag = false;
        }
        let weight = weights.get(dropped).copied().unwrap_or(0.0);
        weights.iter_mut().take(dropped).for_each(|below| *below += weight);
    }
}

/// The solution without the constraint that bits are not negative: `ln C = (sum n ln(w / n) - bits ln^2 2) / sum n`,
/// `rate = C n / w`.
fn solved(weights: &[f64], prefixes: &[f64], is_active: &[bool], bits: f64) -> Vec<f64> {
    let levels = || weights.iter().zip(prefixes).zip(is_active);
    let (mut logs, mut total) = (0.0, 0.0);
    for ((weight, count), _) in levels().filter(|(_, is_active)| **is_active) {
        logs += count * (weight / count).ln();
        total += count;
    }
    let log_c = (logs - bits * LN2_SQUARED) / total;
    levels()
        .map(
            |((weight, count), is_active)| {
                if *is_active { count * ((weight / count).ln() - log_c) / LN2_SQUARED } else { 0.0 }
            },
        )
        .collect()
}

/// Drops levels with negative bits; returns whether there were any.
fn drop_negative(is_active: &mut [bool], shares: &[f64]) -> bool {
    let mut has_dropped = false;
    for (is_active, share) in is_active.iter_mut().zip(shares) {
        if *is_active && *share < 0.0 {
            *is_active = false;
            has_dropped = true;
        }
    }
    has_dropped
}

/// Corrects rounding: the sum is exactly the budget.
fn scaled(mut shares: Vec<f64>, bits: f64) -> Vec<f64> {
    let sum: f64 = shares.iter().sum();
    if sum > 0.0 {
        shares.iter_mut().for_each(|share| *share *= bits / sum);
    }
    let rest: f64 = shares.iter().skip(1).sum();
    if let Some(first) = shares.first_mut() {
        *first = (bits - rest).max(0.0);
    }
    shares
}

#[cfg(test)]
mod tests;
