//! The rate of two Bloom filters, in closed form.
//!
//! The first holds prefixes of `t` bits at rate `p1`, the second those of `l` bits at rate `p2`. A query covers `n` prefixes of `t`
//! bits; below the first and the last of them lie `L` and `R` of its prefixes of `l` bits, below each between `D = 2^(l - t)`. A
//! prefix passes the first filter with probability 1 where a key has it, which only the first and the last can be, and `p1`
//! otherwise. So the query is denied with probability
//!
//! ```text
//! end(L) * end(R) * ((1 - p1) + p1 (1 - p2)^D)^(n - 2)      end(M) = (1 - q) + q (1 - p2)^M, q = 1 or p1
//! ```
//!
//! and `1 - q + q (1 - p2)^M` alone where it lies within one prefix. The power is the binomial sum over how many prefixes between
//! pass: no sum is needed, and nothing overflows. A query within `l` bits of a key is never denied.

use super::counts::Query;

/// Two lengths, two rates, and what follows from them for all queries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    first: u32,
    second: u32,
    p1: f64,
    p2: f64,
    log_miss: f64,
    /// Logarithm of the probability that a prefix between the ends is denied.
    log_middle: f64,
    /// Questions that such a prefix costs the second filter.
    middle_probes: f64,
    cap: u64,
}

impl Pair {
    pub(super) fn new((first, p1): (u32, f64), (second, p2): (u32, f64), cap: u64) -> Self {
        let log_miss = (-p2.min(1.0)).ln_1p();
        let below = 2_f64.powi((second - first).min(1000) as i32);
        // More than the cap allows: such a prefix, if it passes, makes the query present.
        let miss = if below > cap as f64 { 0.0 } else { (log_miss * below).exp() };
        let log_middle = (-p1 * (1.0 - miss)).ln_1p();
        Self {
            first,
            second,
            p1,
            p2,
            log_miss,
            log_middle,
            middle_probes: p1 * (1.0 - miss) / p2.max(1e-12),
            cap,
        }
    }

    /// The probability that a query is taken for present, and how many questions it costs.
    pub(super) fn rate_and_probes(&self, query: &Query<'_>) -> (f64, f64) {
        let prefix_count = query.prefix_count(self.first);
        if prefix_count > self.cap {
            return (1.0, 0.0);
        }
        if query.near() >= self.second {
            return (1.0, 2.0);
        }
        if prefix_count == 1 {
            let below = query.prefix_count(self.second);
            let (miss, probes) = self.end(query.near() >= self.first, below, prefix_count);
            return (1.0 - miss, 1.0 + probes);
        }
        let (left, right) = query.end_counts(self.first, self.second);
        let (left, left_probes) = self.end(query.shared_left >= self.first, left, prefix_count);
        let (right, right_probes) = self.end(query.shared_right >= self.first, right, prefix_count);
        let between = (prefix_count - 2) as f64;
        let miss = left * right * (self.log_middle * between).exp();
        (1.0 - miss, prefix_count as f64 + left_probes + right_probes + between * self.middle_probes)
    }

    /// The probability that a prefix at an end is denied, and the questions it costs the second filter.
    #[inline]
    fn end(&self, is_key: bool, below: u64, prefix_count: u64) -> (f64, f64) {
        let passes = if is_key { 1.0 } else { self.p1 };
        if below.saturating_add(prefix_count) > self.cap {
            return (1.0 - passes, 0.0);
        }
        let hit = -(self.log_miss * below as f64).exp_m1();
        (1.0 - passes * hit, passes * hit / self.p2.max(1e-12))
    }
}
