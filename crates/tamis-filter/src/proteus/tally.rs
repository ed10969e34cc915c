//! Sample queries sorted into cells: for each depth of a set and each prefix length, how many prefixes they would ask for.
//!
//! For one query, with `near` the bits that it shares with a key and `ends` the bits that its ends share:
//!
//! - a set of `t > near` bits denies it;
//! - a Bloom filter of `l <= near` bits takes it for present, whatever its rate;
//! - otherwise it asks for `N` prefixes. Where `t <= ends` that is all of its `|Q_l|` prefixes, the same for each such `t`: so it is
//!   put into the row of the deepest one, and rows are summed up from the deepest on. Where `t > ends`, only what lies below
//!   its first and last prefix of `t` bits counts, if the set has them: a row of its own for each such `t`.
//!
//! `N` is 1 for all `l` up to `ends`: one step up and one step down in a row of differences. Beyond, `N` doubles with each bit,
//! so that few are left before it passes the cap, from where on the query counts as present.
//!
//! **Bins.** A rate `1 - (1 - p)^N` is smooth in the logarithm of `N`: queries are collected in bins, 1 to 7 each in one, then
//! four to a doubling, with count and sum, and the rate is taken once at the mean of a bin. That is off by less than 0.001.

use super::counts::Query;

/// Queries with about the same number of prefixes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bin {
    count: u64,
    sum: u64,
}

/// Numbers of prefixes below this have a bin each.
const SMALL: u64 = 8;

#[inline]
fn bin_index(prefix_count: u64) -> usize {
    if prefix_count < SMALL {
        return prefix_count as usize;
    }
    let octave = prefix_count.ilog2();
    (SMALL + u64::from(octave - 3) * 4 + (prefix_count >> (octave - 2) & 3)) as usize
}

/// What becomes of the sample's queries under one pair of lengths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<'a> {
    /// All queries of the sample.
    pub(super) total: u64,
    /// Those that ask the Bloom filter in vain, or are not let ask.
    pub(super) certain: u64,
    /// Those of `certain` that share a prefix with a key, and so ask at least once.
    pub(super) sharing: u64,
    bins: &'a [Bin],
}

impl Cell<'_> {
    /// The share of positives, and the mean number of questions to a Bloom filter of rate `p`.
    pub(super) fn rate_and_probes(&self, p: f64) -> (f64, f64) {
        let log_miss = (-p).ln_1p();
        let mut positives = 0.0;
        let mut probes = 0.0;
        for bin in self.bins.iter().filter(|bin| bin.count > 0) {
            let count = bin.count as f64;
            let mean = bin.sum as f64 / count;
            let rate = if p >= 1.0 { 1.0 } else { -(log_miss * mean).exp_m1() };
            positives += count * rate;
            // The mean of a geometric number that is cut off at `mean`.
            probes += count * if p > 1e-12 { rate / p } else { mean };
        }
        let total = (self.total as f64).max(1.0);
        ((positives + self.certain as f64) / total, (probes + self.sharing as f64) / total)
    }
}

/// The cells of some depths and some prefix lengths.
#[derive(Debug)]
pub(super) struct Tally {
    /// Ascending; the first is 0, which stands for no set.
    depths: Vec<u32>,
    /// Ascending.
    prefixes: Vec<u32>,
    cap: u64,
    bin_count: usize,
    total: u64,
    /// Queries by what they share with a key.
    near: Vec<u64>,
    /// Rows to be summed up: a query is in that of the deepest set whose prefixes it does not leave.
    within: Vec<Bin>,
    /// Differences of how many queries of a row ask for one prefix.
    single: Vec<i64>,
    /// Rows of queries that leave a prefix of the set; empty where there are none.
    across: Vec<Vec<Bin>>,
}

impl Tally {
    /// Cells of the depths (0 is added) and prefix lengths, for Bloom filters that are asked at most `cap` times.
    pub(super) fn new(depths: &[u32], prefixes: &[u32], bit_count: u32, cap: u64) -> Self {
        let depths: Vec<u32> = std::iter::once(0).chain(depths.iter().copied()).collect();
        let bin_count = bin_index(cap.max(1)) + 1;
        let rows = depths.len();
        Self {
            prefixes: prefixes.to_vec(),
            cap,
            bin_count,
            total: 0,
            near: vec![0; bit_count as usize + 1],
            within: vec![Bin::default(); rows * prefixes.len() * bin_count],
            single: vec![0; rows * (prefixes.len() + 1)],
            across: vec![Vec::new(); rows],
            depths,
        }
    }

    pub(super) fn add(&mut self, query: &Query<'_>) {
        let near = query.near();
        self.total += 1;
        if let Some(count) = self.near.get_mut(near as usize) {
            *count += 1;
        }
        let within = near.min(query.shared_ends);
        let row = self.depths.partition_point(|depth| *depth <= within).saturating_sub(1);
        let from = self.prefixes.partition_point(|prefix| *prefix <= near);
        let end = self.prefixes.partition_point(|prefix| *prefix <= query.shared_ends).max(from);
        if self.cap > 0 && end > from {
            let width = self.prefixes.len() + 1;
            for (index, step) in [(from, 1), (end, -1)] {
                if let Some(count) = self.single.get_mut(row * width + index) {
                    *count += step;
                }
            }
        }
        let cells = self.within.chunks_mut(self.bin_count).skip(row * self.prefixes.len() + end);
        for (prefix, bins) in self.prefixes.iter().skip(end).zip(cells) {
            let count = query.prefix_count(*prefix);
            if count > self.cap {
                break;
            }
            put(bins, count);
        }
        self.add_across(query, row + 1, from);
    }

    /// The rows of the depths that the query's ends do not share, though a key shares one of them.
    fn add_across(&mut self, query: &Query<'_>, first_row: usize, from: usize) {
        let near = query.near();
        let rows = self.depths.iter().zip(&mut self.across).skip(first_row);
        for (depth, bins) in rows.take_while(|(depth, _)| **depth <= near) {
            if bins.is_empty() {
                bins.resize(self.prefixes.len() * self.bin_count, Bin::default());
            }
            let cells = bins.chunks_mut(self.bin_count).skip(from);
            for (prefix, bins) in self.prefixes.iter().skip(from).zip(cells) {
                let (left, right) = query.end_counts(*depth, *prefix);
                let left = if query.shared_left >= *depth { left } else { 0 };
                let right = if query.shared_right >= *depth { right } else { 0 };
                let count = left.saturating_add(right);
                if count > self.cap {
                    break;
                }
                put(bins, count);
            }
        }
    }

    /// Calls for each depth, from the deepest to 0, and each prefix length above it.
    pub(super) fn for_each(mut self, mut visit: impl FnMut(u32, u32, &Cell<'_>)) {
        let row_bins = self.prefixes.len() * self.bin_count;
        let width = self.prefixes.len() + 1;
        let mut sums = vec![Bin::default(); row_bins];
        let mut single = vec![0_i64; width];
        let mut bins = vec![Bin::default(); self.bin_count];
        for (row, depth) in self.depths.iter().enumerate().rev() {
            let within = self.within.get(row * row_bins..).unwrap_or_default();
            sums.iter_mut().zip(within).for_each(|(sum, bin)| sum.merge(bin));
            let steps = self.single.get(row * width..).unwrap_or_default();
            single.iter_mut().zip(steps).for_each(|(sum, step)| *sum += step);
            let across = std::mem::take(self.across.get_mut(row).unwrap_or(&mut Vec::new()));
            let mut ones = 0;
            for (index, prefix) in self.prefixes.iter().enumerate() {
                ones += single.get(index).copied().unwrap_or(0);
                if *prefix <= *depth {
                    continue;
                }
                let place = index * self.bin_count;
                let own = across.get(place..).unwrap_or_default();
                let shared = sums.get(place..).unwrap_or_default();
                for (slot, (target, sum)) in bins.iter_mut().zip(shared).enumerate() {
                    *target = *sum;
                    if let Some(bin) = own.get(slot) {
                        target.merge(bin);
                    }
                }
                if let Some(bin) = bins.get_mut(1) {
                    bin.merge(&Bin { count: ones as u64, sum: ones as u64 });
                }
                visit(*depth, *prefix, &self.cell(*depth, *prefix, &bins));
            }
        }
    }

    fn cell<'b>(&self, depth: u32, prefix: u32, bins: &'b [Bin]) -> Cell<'b> {
        let resolved = if depth == 0 { 0 } else { self.nearer_than(depth) };
        let sharing = self.total - self.nearer_than(prefix);
        let asked: u64 = bins.iter().map(|bin| bin.count).sum();
        let certain = self.total - resolved - asked;
        Cell { total: self.total, certain, sharing: sharing.min(certain), bins }
    }

    /// Queries that share fewer bits than so many with every key.
    fn nearer_than(&self, bits: u32) -> u64 {
        self.near.iter().take(bits as usize).sum()
    }
}

impl Bin {
    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
    }
}

#[inline]
fn put(bins: &mut [Bin], count: u64) {
    if let Some(bin) = bins.get_mut(bin_index(count)) {
        bin.count += 1;
        bin.sum += count;
    }
}
