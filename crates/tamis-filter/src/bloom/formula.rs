//! Formulas of false-positive rates. `c` is bits per key, `k` the number of bits that a key sets.

/// Lines with more keys than this have every bit set.
const KEYS_PER_LINE_MAX: f64 = 100_000.0;

/// Up to this mean, `e^-mean` is a normal number, and Poisson probabilities need no logarithms.
const DIRECT_MEAN_MAX: f64 = 600.0;

/// Number of terms of a Poisson sum that matter: up to the mean plus ten standard deviations.
fn poisson_terms(mean: f64) -> u32 {
    (mean + 10.0 * mean.sqrt() + 20.0) as u32
}

/// Sum over `j` of the Poisson probability of `j` at `mean`, times `rate(j)`.
fn poisson_mean(mean: f64, rate: impl Fn(f64) -> f64) -> f64 {
    let first = (mean - 10.0 * mean.sqrt() - 20.0).max(0.0) as u32;
    // In logarithms, since e^-mean underflows for crowded lines.
    let mut log_probability = -mean;
    let mut sum = 0.0;
    for j in 0..=poisson_terms(mean) {
        if j > 0 {
            log_probability += (mean / f64::from(j)).ln();
        }
        if j >= first {
            sum += log_probability.exp() * rate(f64::from(j));
        }
    }
    sum
}

/// The rate of a line of `line_bits` bits with `keys_per_line` keys on average, each with `k` bits in it.
pub fn blocked_fpr(line_bits: f64, keys_per_line: f64, k: u32) -> f64 {
    if keys_per_line > DIRECT_MEAN_MAX {
        return blocked_rate(line_bits, keys_per_line, f64::from(k), f64::from(k));
    }
    // The design of a filter evaluates this thousands of times: each term follows from the previous one by
    // multiplication.
    let clear_per_key = (f64::from(k) * (-1.0 / line_bits).ln_1p()).exp();
    let (mut probability, mut clear, mut sum) = ((-keys_per_line).exp(), 1.0_f64, 0.0);
    for j in 0..=poisson_terms(keys_per_line) {
        sum += probability * (1.0 - clear).powi(k.cast_signed());
        probability *= keys_per_line / f64::from(j + 1);
        clear *= clear_per_key;
    }
    sum.min(1.0)
}

/// [`blocked_fpr`] if keys set `set` bits on average, and `asked` bits are tested.
pub(crate) fn blocked_rate(line_bits: f64, keys_per_line: f64, set: f64, asked: f64) -> f64 {
    if keys_per_line == 0.0 {
        return 0.0;
    }
    if keys_per_line > KEYS_PER_LINE_MAX {
        return 1.0;
    }
    let miss = (-1.0 / line_bits).ln_1p();
    poisson_mean(keys_per_line, |j| (-(set * j * miss).exp_m1()).powf(asked)).min(1.0)
}

/// The rate with bits scattered over the whole filter: `(1 - e^(-k / c))^k`.
pub fn standard_fpr(bits_per_key: f64, k: u32) -> f64 {
    (-(-f64::from(k) / bits_per_key).exp_m1()).powi(k as i32)
}

/// The `k` with the least rate for a standard filter, at least 1 and at most `k_max`.
pub fn standard_best_k(bits_per_key: f64, k_max: u32) -> u32 {
    let ideal = bits_per_key * std::f64::consts::LN_2;
    let below = (ideal as u32).clamp(1, k_max);
    let above = (below + 1).min(k_max);
    if standard_fpr(bits_per_key, above) < standard_fpr(bits_per_key, below) { above } else { below }
}

#[cfg(test)]
mod tests;
