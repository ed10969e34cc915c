//! Histograms of the sample queries by the number of prefixes that they test, for each set depth and prefix length.
//!
//! For one query, with `near` the common bits of the query and a key, and `ends` the common bits of its ends:
//!
//! - a set of `t > near` bits rejects it;
//! - a Bloom filter of `l <= near` bits passes it at any rate;
//! - otherwise it tests `N` prefixes. For `t <= ends` these are all of its `|Q_l|` prefixes, for every such `t`: the query is
//!   counted in the row of the deepest one, and rows are added up from the deepest. For `t > ends` these are the prefixes below
//!   its first and last prefix of `t` bits that the set contains, counted in a separate row for each such `t`.
//!
//! `N` is 1 for all `l` up to `ends`: one increment and one decrement in a row of differences. For longer prefixes `N` doubles with each
//! bit, so that it exceeds the cap soon, and the query passes.
//!
//! **Bins.** A rate `1 - (1 - p)^N` is smooth in the logarithm of `N`. Queries are collected in bins with count and sum, one bin for each
//! `N` from 1 to 7, then four per doubling. The rate is computed once at the mean of a bin; the error is less than 0.001.

use super::counts::Query;
use super::model::Near;
use crate::steps;

/// Queries with about the same number of prefixes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bin {
    count: u64,
    sum: u64,
}

/// Smaller numbers of prefixes have a bin each.
const SMALL: u64 = 8;

#[inline]
fn bin_index(prefix_count: u64) -> usize {
    if prefix_count < SMALL {
        return prefix_count as usize;
    }
    let octave = prefix_count.ilog2();
    (SMALL + u64::from(octave - 3) * 4 + (prefix_count >> (octave - 2) & 3)) as usize
}

/// The sample queries under one pair of lengths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Histogram<'a> {
    /// All queries.
    pub(super) total: u64,
    /// Queries that pass at any rate of the Bloom filter.
    pub(super) certain: u64,
    /// Those of `certain` that have a common prefix with a key, and so test at least once.
    pub(super) sharing: u64,
    bins: &'a [Bin],
}

impl Histogram<'_> {
    /// The rate of false positives, and the mean number of tests in a Bloom filter of rate `p`.
    pub(super) fn rate_and_probes(&self, p: f64) -> (f64, f64) {
        let log_miss = (-p).ln_1p();
        let mut positives = 0.0;
        let mut probes = 0.0;
        for bin in self.bins.iter().filter(|bin| bin.count > 0) {
            let count = bin.count as f64;
            let mean = bin.sum as f64 / count;
            let rate = if p >= 1.0 { 1.0 } else { -(log_miss * mean).exp_m1() };
            positives += count * rate;
            // The mean of a geometric distribution that is cut off at `mean`.
            probes += count * if p > 1e-12 { rate / p } else { mean };
        }
        let total = (self.total as f64).max(1.0);
        ((positives + self.certain as f64) / total, (probes + self.sharing as f64) / total)
    }
}

/// Histograms for some depths and prefix lengths.
#[derive(Debug)]
pub(super) struct QueryHistogram<'n> {
    /// Ascending; the first is 0, which means no set.
    depths: Vec<u32>,
    /// Ascending.
    prefixes: Vec<u32>,
    cap: u64,
    bin_count: usize,
    total: u64,
    /// All queries by their common bits with a key.
    near: &'n Near,
    /// Rows to be added up: a query is in the row of the deepest set with one prefix that contains it.
    within: Vec<Bin>,
    /// Differences between the numbers of queries of a row that test one prefix.
    single: Vec<i64>,
    /// Rows of queries over several prefixes of the set; empty if there are none.
    across: Vec<Vec<Bin>>,
}

impl<'n> QueryHistogram<'n> {
    /// For the depths (0 is added) and prefix lengths, with at most `cap` tests per query. The caller adds all queries of `near`.
    pub(super) fn new(depths: &[u32], prefixes: &[u32], near: &'n Near, cap: u64) -> Self {
        let depths: Vec<u32> = std::iter::once(0).chain(depths.iter().copied()).collect();
        let bin_count = bin_index(cap.max(1)) + 1;
        let rows = depths.len();
        Self {
            prefixes: prefixes.to_vec(),
            cap,
            bin_count,
            total: 0,
            near,
            within: vec![Bin::default(); rows * prefixes.len() * bin_count],
            single: vec![0; rows * (prefixes.len() + 1)],
            across: vec![Vec::new(); rows],
            depths,
        }
    }

    pub(super) fn add(&mut self, query: &Query<'_>) {
        let near = query.near();
        self.total += 1;
        let mut visited = 1;
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
            visited += 1;
            if count > self.cap {
                break;
            }
            put(bins, count);
        }
        steps::count(visited);
        self.add_across(query, row + 1, from);
    }

    /// The rows of the depths at which the ends of the query differ and a key has a common prefix with one of them.
    fn add_across(&mut self, query: &Query<'_>, first_row: usize, from: usize) {
        let near = query.near();
        let mut visited = 0;
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
                visited += 1;
                if count > self.cap {
                    break;
                }
                put(bins, count);
            }
        }
        steps::count(visited);
    }

    /// Calls `visit` for each depth, from the deepest to 0, and each longer prefix length.
    pub(super) fn for_each(mut self, mut visit: impl FnMut(u32, u32, &Histogram<'_>)) {
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
                steps::count(self.bin_count);
                visit(*depth, *prefix, &self.histogram(*depth, *prefix, &bins));
            }
        }
    }

    fn histogram<'b>(&self, depth: u32, prefix: u32, bins: &'b [Bin]) -> Histogram<'b> {
        let resolved = if depth == 0 { 0 } else { self.total - self.near.reached(depth) };
        let sharing = self.near.reached(prefix);
        let asked: u64 = bins.iter().map(|bin| bin.count).sum();
        let certain = self.total - resolved - asked;
        Histogram { total: self.total, certain, sharing: sharing.min(certain), bins }
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
