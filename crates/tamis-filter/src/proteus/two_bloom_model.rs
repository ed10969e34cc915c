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
//! **Cap.** A query takes `n` tests in the first filter, and passes if its tests in the second exceed the rest of the cap. So it passes if a
//! prefix passes the first filter that has more prefixes below it than those of keys leave of the cap, and is taken to pass if the mean number of
//! tests below the other prefixes exceeds it.

use crate::empty_query::EmptyQuery;

/// The expected result of a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Expected {
    /// The probability that it passes.
    pub(crate) rate: f64,
    /// Tests in the first of two Bloom filters, and in the second or only one.
    pub(super) tests: [f64; 2],
}

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
    cap: u64,
}

/// A prefix of the first length that has no key, or the first or last one of a query.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The probability that it is rejected.
    denied: f64,
    /// The mean number of tests in the second filter.
    tests: f64,
}

impl Pair {
    pub(super) fn new((first, p1): (u32, f64), (second, p2): (u32, f64), cap: u64) -> Self {
        let below = 1_u64.checked_shl(second - first).unwrap_or(u64::MAX);
        Self { first, second, p1, p2, log_miss: (-p2.min(1.0)).ln_1p(), below, cap }
    }

    /// The expected result of a query.
    pub(super) fn expected(&self, query: &EmptyQuery<'_>) -> Expected {
        let prefix_count = query.prefix_count(self.first);
        let passes = |tests: [f64; 2]| Expected { rate: 1.0, tests };
        let Some(mut room) = self.cap.checked_sub(prefix_count) else { return passes([0.0; 2]) };
        if query.near() >= self.second {
            return passes([1.0; 2]);
        }
        let mut part = |is_key: bool, members: u64| {
            let part = self.part(is_key, members, room);
            room = if is_key { room.saturating_sub(members) } else { room };
            part
        };
        if prefix_count == 1 {
            let only = part(query.near() >= self.first, query.prefix_count(self.second));
            return Expected { rate: 1.0 - only.denied, tests: [1.0, only.tests] };
        }
        let (left, right) = query.bounds.end_counts(self.first, self.second);
        let left = part(query.shared_left >= self.first, left);
        let right = part(query.shared_right >= self.first, right);
        let (middle, between) = (part(false, self.below), (prefix_count - 2) as f64);
        let tests = [prefix_count as f64, left.tests + right.tests + between * middle.tests];
        if self.below <= room && between * self.p1 * self.below as f64 > room as f64 {
            return passes(tests);
        }
        let denied = left.denied * right.denied * middle.denied.powf(between);
        Expected { rate: 1.0 - denied, tests }
    }

    /// A prefix with `members` prefixes of the second length below it that the query covers. If these are more than the room, the query passes
    /// where it passes the first filter.
    fn part(&self, is_key: bool, members: u64, room: u64) -> Part {
        let passes = if is_key { 1.0 } else { self.p1 };
        if members > room {
            return Part { denied: 1.0 - passes, tests: 0.0 };
        }
        let hit = -(self.log_miss * members as f64).exp_m1();
        Part { denied: 1.0 - passes * hit, tests: passes * hit / self.p2.max(1e-12) }
    }
}
