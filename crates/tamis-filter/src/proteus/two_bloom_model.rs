//! The false positive rate of two Bloom filters, in closed form.
//!
//! The first filter contains prefixes of `t` bits at rate `p1`, the second prefixes of `l` bits at rate `p2`. A query covers `n` prefixes of
//! `t` bits. Below the first and the last of them are `L` and `R` of its prefixes of `l` bits, below each other one `D = 2^(l - t)`. A prefix
//! passes the first filter with probability 1 if a key has it, which is possible only for the first and the last, and `p1` otherwise. So the
//! query is rejected with probability
//!
//! ```text
//! end(L) * end(R) * ((1 - p1) + p1 (1 - p2)^D)^(n - 2)      end(M) = (1 - q) + q (1 - p2)^M, q = 1 or p1
//! ```
//!
//! and `1 - q + q (1 - p2)^M` if one prefix covers it. The power is the closed form of the binomial sum over the number of middle prefixes
//! that pass, and can't overflow. A query with `l` common bits with a key is never rejected.
//!
//! **Cap.** A query takes `n` tests in the first filter; a query whose tests in the second exceed the rest of the cap passes. If all of its
//! prefixes together are within the cap, the formula holds. Otherwise each combination of ends that pass leaves room for a number of middle
//! prefixes, and the binomial sum ends at that number.

use super::counts::Query;

/// Standard deviations from the mean at which a binomial distribution is negligible.
const FAR: f64 = 6.0;
/// Distributions with a greater mean are approximated by a normal distribution.
const SUMMED_MEAN: f64 = 400.0;

/// Two lengths, two rates, and the values that follow from them for all queries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    first: u32,
    second: u32,
    p1: f64,
    p2: f64,
    log_miss: f64,
    /// Prefixes of the second length below one of the first.
    below: u64,
    /// Logarithm of the probability that a middle prefix is rejected.
    log_middle: f64,
    /// The share of rejected middle prefixes that pass the first filter.
    passing: f64,
    /// Tests in the second filter per middle prefix.
    middle_probes: f64,
    cap: u64,
}

/// The expected result of a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Expected {
    /// The probability that it passes.
    pub(super) rate: f64,
    /// Tests in the first filter and in the second.
    pub(super) probes: [f64; 2],
}

/// The first or last prefix of a query.
#[derive(Debug, Clone, Copy)]
struct End {
    /// Prefixes of the second length below it.
    members: u64,
    /// The probability that it passes the first filter, and that the second then rejects all prefixes below it.
    passes: f64,
    miss: f64,
}

impl Pair {
    pub(super) fn new((first, p1): (u32, f64), (second, p2): (u32, f64), cap: u64) -> Self {
        let log_miss = (-p2.min(1.0)).ln_1p();
        let below = 1_u64.checked_shl(second - first).unwrap_or(u64::MAX);
        // A middle prefix that exceeds the cap makes the query pass, without tests.
        let miss = if below > cap { 0.0 } else { (log_miss * below as f64).exp() };
        let denied = 1.0 - p1 * (1.0 - miss);
        let middle_probes = if below > cap { 0.0 } else { p1 * (1.0 - miss) / p2.max(1e-12) };
        let log_middle = (-p1 * (1.0 - miss)).ln_1p();
        let passing = if denied > 0.0 { p1 * miss / denied } else { 0.0 };
        Self { first, second, p1, p2, log_miss, below, log_middle, passing, middle_probes, cap }
    }

    /// The expected result of a query.
    pub(super) fn expected(&self, query: &Query<'_>) -> Expected {
        let prefix_count = query.prefix_count(self.first);
        let Some(room) = self.cap.checked_sub(prefix_count) else {
            return Expected { rate: 1.0, probes: [0.0; 2] };
        };
        if query.near() >= self.second {
            return Expected { rate: 1.0, probes: [1.0; 2] };
        }
        if prefix_count == 1 {
            let end = self.end(query.near() >= self.first, query.prefix_count(self.second));
            let denied = 1.0 - end.passes + if end.members <= room { end.passes * end.miss } else { 0.0 };
            return Expected { rate: 1.0 - denied, probes: [1.0, self.probes(&end, room)] };
        }
        let (left, right) = query.end_counts(self.first, self.second);
        let left = self.end(query.shared_left >= self.first, left);
        let right = self.end(query.shared_right >= self.first, right);
        let between = prefix_count - 2;
        let second =
            self.probes(&left, room) + self.probes(&right, room) + between as f64 * self.middle_probes;
        let rate = 1.0 - self.denied(&left, &right, between, room);
        Expected { rate, probes: [prefix_count as f64, second] }
    }

    fn end(&self, is_key: bool, members: u64) -> End {
        let passes = if is_key { 1.0 } else { self.p1 };
        End { members, passes, miss: (self.log_miss * members as f64).exp() }
    }

    /// Tests in the second filter for an end.
    fn probes(&self, end: &End, room: u64) -> f64 {
        let asked = if end.members <= room { (1.0 - end.miss) / self.p2.max(1e-12) } else { 0.0 };
        end.passes * asked
    }

    /// The probability that all prefixes are rejected with at most `room` tests in the second filter.
    fn denied(&self, left: &End, right: &End, between: u64, room: u64) -> f64 {
        let all = self.below.saturating_mul(between);
        if left.members.saturating_add(right.members).saturating_add(all) <= room {
            let end = |end: &End| 1.0 - end.passes * (1.0 - end.miss);
            return end(left) * end(right) * self.between(between, between);
        }
        let ways = |end: &End| [(1.0 - end.passes, 0), (end.passes * end.miss, end.members)];
        let mut denied = 0.0;
        for (left_share, left_members) in ways(left) {
            for (right_share, right_members) in ways(right) {
                let share = left_share * right_share;
                if let Some(room) = room.checked_sub(left_members.saturating_add(right_members))
                    && share > 0.0
                {
                    denied += share * self.between(between, room / self.below);
                }
            }
        }
        denied
    }

    /// The probability that `count` middle prefixes are rejected and at most `most` of them pass the first filter.
    fn between(&self, count: u64, most: u64) -> f64 {
        let denied = (self.log_middle * count as f64).exp();
        if most >= count || denied == 0.0 {
            return denied;
        }
        denied * at_most(most as f64, count as f64, self.passing)
    }
}

/// The probability that at most `most` of `count` pass, each with probability `passing`.
fn at_most(most: f64, count: f64, passing: f64) -> f64 {
    let mean = count * passing;
    let deviation = (mean * (1.0 - passing)).sqrt();
    if most > FAR.mul_add(deviation, mean) + FAR {
        return 1.0;
    }
    if most + 1.0 < FAR.mul_add(-deviation, mean) - FAR {
        return 0.0;
    }
    if mean > SUMMED_MEAN {
        let distance = (most + 0.5 - mean) / deviation.max(1e-12);
        // The normal distribution, with an error of at most 1/3,000.
        let slope = (2.0 / std::f64::consts::PI).sqrt() * (distance + 0.044_715 * distance.powi(3));
        return 0.5 * (1.0 + slope.tanh());
    }
    let odds = passing / (1.0 - passing).max(1e-300);
    let mut term = (count * (-passing).ln_1p()).exp();
    let mut sum = term;
    for number in 1..=most as u64 {
        term *= odds * (count - number as f64 + 1.0) / number as f64;
        sum += term;
    }
    sum.min(1.0)
}
