//! Formulas of false-positive rates. `c` is bits per key, `k` the number of bits that a key sets.

/// Lines with more keys than this on average are treated as if all had that average: the spread of their numbers hardly
/// changes the rate, and `e^-average` is no normal number any more.
const SPREAD_KEYS_MAX: f64 = 600.0;

/// The rate of a line of `line_bits` bits with `keys_per_line` keys on average, each with `k` bits in it.
pub fn blocked_fpr(line_bits: f64, keys_per_line: f64, k: u32) -> f64 {
    let log_clear_per_key = f64::from(k) * (-1.0 / line_bits).ln_1p();
    let rate = |clear: f64| (1.0 - clear).powi(k.cast_signed());
    if keys_per_line > SPREAD_KEYS_MAX {
        return rate((log_clear_per_key * keys_per_line).exp());
    }
    // The sum over the keys of a line, whose number has a Poisson distribution: ten standard deviations suffice. Each
    // term follows from the previous one by multiplication, since the design of a filter evaluates thousands of sums.
    let clear_per_key = log_clear_per_key.exp();
    let (mut probability, mut clear, mut sum) = ((-keys_per_line).exp(), 1.0_f64, 0.0);
    for j in 0..=(keys_per_line + 10.0 * keys_per_line.sqrt() + 20.0) as u32 {
        sum += probability * rate(clear);
        probability *= keys_per_line / f64::from(j + 1);
        clear *= clear_per_key;
    }
    sum.min(1.0)
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
