//! Searches the levels and their bits with the least expected cost of a query.
//!
//! The cost function is cheap but has many local minima. The search starts with the best single level, with the best
//! ladder (equal small shares for some depths right above the deepest level, the shape that the theory predicts for
//! large ranges) and with the best pair of levels, and improves each of them: it adds levels, moves bits between
//! levels, and moves levels to other depths, in decreasing steps. Of the designs near the least cost it returns the
//! one with the fewest levels and cache lines.
//!
//! Evaluations count as steps, and their number is limited (`search_limit.rs`).

use super::LEVELS_MAX;
use super::layout::BitLayout;
use super::model::{BITS_MIN, Expected, Model, Share, Unseen};
use super::prices::Prices;
use super::search_limit::SearchLimit;
use crate::empty_query::EmptyQuery;
use crate::prefix_counts::PrefixCounts;

/// Steps that a search usually takes per query.
pub(super) const STEPS_PER_CASE: u64 = 4000;

/// A change must lower the cost to this share.
const GAIN: f64 = 0.9995;

/// A further level must lower the cost to this share.
const LEVEL_GAIN: f64 = 0.998;

/// Costs up to this multiple of the least are near it. Smaller savings are ignored: the model is not more precise than
/// that, each level costs a pass through the keys at build time, and each line costs a read.
const NEAR: f64 = 1.02;

/// Shares of the bits for the upper level of a pair.
const PARTS: [f64; 2] = [0.3, 0.6];

/// Pairs have levels at every third depth.
const PAIR_STEP: usize = 3;

/// Shares of the bits for a further level.
const NEW_PARTS: [f64; 2] = [0.15, 0.4];

/// Distances by which a level moves to other depths.
const OFFSETS: [isize; 6] = [-4, -2, -1, 1, 2, 4];

/// Steps of bits end below this share of all bits.
const STEP_MIN: f64 = 0.004;

/// Bits per key of each level of a ladder.
const RUNGS: [f64; 3] = [1.44, 2.0, 2.5];

/// Maximum number of depths beyond 64 bits.
const LONG_DEPTHS_MAX: u32 = 64;

/// Depths of which this share of all possible prefixes exists get no level: it would reject next to nothing.
const FULL_SHARE: f64 = 0.9;

/// Where probes cost almost nothing, this share of the cost is used as the price of a line, to find the fastest of
/// several designs with nearly equal rates.
const EASING: f64 = 0.008;

/// Probes cost almost nothing if they are less than this share of the cost.
const EASY_SHARE: f64 = 0.0005;

/// The input of a search.
#[derive(Debug, Clone)]
pub(super) struct Problem<'a> {
    /// The thinned queries.
    pub(super) cases: Vec<EmptyQuery<'a>>,
    pub(super) counts: &'a PrefixCounts,
    /// Length of all keys in bits, 0 for several lengths.
    pub(super) key_bits: u32,
    /// Bits of the whole filter.
    pub(super) bits: f64,
    pub(super) unseen: Unseen,
    pub(super) prices: Prices,
    /// Possible depths of levels of prefixes, ascending.
    pub(super) depths: Vec<u32>,
    pub(super) limit: &'a SearchLimit,
}

/// A design and its cost.
#[derive(Debug, Clone)]
struct Found {
    shares: Vec<Share>,
    cost: f64,
}

fn sort(found: &mut [Found]) {
    found.sort_by(|left, right| left.cost.total_cmp(&right.cost));
}

/// Possible depths of levels of prefixes: without those that are full and those that no query needs.
pub(super) fn possible_depths(counts: &PrefixCounts, key_bits: u32, deepest: u32) -> Vec<u32> {
    let last = if key_bits == 0 { deepest.min(counts.depth_max().max(64) + 8) } else { key_bits - 1 };
    let is_sparse = |depth: &u32| {
        *depth >= 64 || (counts.at(*depth) as f64) < FULL_SHARE * 2.0_f64.powi(depth.cast_signed())
    };
    let first = (1..=last.min(64)).filter(is_sparse);
    // Very long keys use only some of their depths.
    let long = last / 8;
    let step = (long.saturating_sub(8) / LONG_DEPTHS_MAX).max(1);
    first
        .chain(
            (9..=long)
                .rev()
                .step_by(step as usize)
                .map(|bytes| bytes * 8)
                .collect::<Vec<_>>()
                .into_iter()
                .rev(),
        )
        .collect()
}

impl Problem<'_> {
    fn model(&self, shares: &[Share]) -> Model {
        let filter = |share: &Share| self.limit.filter(share, self.counts);
        let mut model = Model::new(shares, filter, self.key_bits, self.unseen, self.prices.probe_cap);
        // Points get a separate level, so that they cost one digest only.
        model.needs_full = true;
        model
    }

    fn expected(&self, shares: &[Share]) -> Expected {
        self.limit.add(self.cases.len() * shares.len());
        self.model(shares).expected(&self.cases)
    }

    /// The design with its cost, if that is less than `bound`. Its evaluation ends as soon as the cost of the first
    /// queries exceeds the bound.
    fn found_below(&self, shares: Vec<Share>, bound: f64) -> Option<Found> {
        let model = self.model(&shares);
        let weight: f64 = self.cases.iter().map(|case| case.weight).sum();
        let (mut sum, mut count) = (0.0, 0);
        for case in &self.cases {
            sum += model.of(case).cost(&self.prices) * case.weight;
            count += 1;
            if sum >= bound * weight {
                break;
            }
        }
        self.limit.add(count * shares.len());
        let cost = if self.cases.is_empty() { self.cost(&shares) } else { sum / weight };
        (cost < bound).then_some(Found { shares, cost })
    }

    /// The cheapest of several designs.
    fn cheapest(&self, designs: impl Iterator<Item = Vec<Share>>) -> Option<Found> {
        let mut best: Option<Found> = None;
        for shares in designs {
            if self.limit.is_reached() {
                break;
            }
            let bound = best.as_ref().map_or(f64::INFINITY, |best| best.cost);
            best = self.found_below(shares, bound).or(best);
        }
        best
    }

    /// The expected cost of a design.
    pub(super) fn cost(&self, shares: &[Share]) -> f64 {
        self.expected(shares).cost(&self.prices)
    }

    /// Passes through the keys at build time and lines of a query.
    fn effort(&self, shares: &[Share]) -> f64 {
        shares.len() as f64 + self.expected(shares).lines
    }

    fn found(&self, shares: Vec<Share>) -> Found {
        let cost = self.cost(&shares);
        Found { shares, cost }
    }

    /// A level with its bits; `None` is the full level.
    pub(super) fn share(&self, depth: Option<u32>, bits: f64) -> Share {
        let is_full = depth.is_none();
        let depth = depth.unwrap_or(if self.key_bits == 0 { u32::MAX } else { self.key_bits });
        Share { depth, is_full, layout: BitLayout::Standard, bits }
    }

    /// The design with the least effort among those near the least cost.
    pub(super) fn solve(&self) -> Vec<Share> {
        let mut designs: Vec<Found> =
            self.starts().into_iter().flat_map(|start| self.descend(start)).collect();
        sort(&mut designs);
        for (index, found) in designs.iter_mut().enumerate() {
            // The best design always gets its layouts.
            if index == 0 || !self.limit.is_reached() {
                self.choose_layouts(found);
            }
        }
        sort(&mut designs);
        let eased = self.eased(&designs);
        designs.extend(eased);
        let least = designs.iter().map(|found| found.cost).fold(f64::INFINITY, f64::min);
        let near = designs.into_iter().filter(|found| found.cost <= least * NEAR);
        let with_effort = near.map(|found| (self.effort(&found.shares), found.shares));
        let easiest = with_effort.min_by(|(left, _), (right, _)| left.total_cmp(right));
        easiest.map(|(_, shares)| shares).unwrap_or_default()
    }

    /// Whether the lines of a design are almost nothing in its cost.
    fn is_easy(&self, found: &Found) -> bool {
        self.expected(&found.shares).lines * self.prices.probe_ns <= found.cost * EASY_SHARE
    }

    /// Designs near the best with fewer lines, for a price that does not ignore lines.
    fn eased(&self, designs: &[Found]) -> Vec<Found> {
        let Some(best) = designs.first().filter(|best| self.is_easy(best)) else { return Vec::new() };
        let prices = Prices { probe_ns: self.prices.probe_ns + best.cost * EASING, ..self.prices };
        let easier = Self { prices, ..self.clone() };
        let start = easier.found(best.shares.clone());
        let layouts = |mut found: Found| {
            easier.choose_layouts(&mut found);
            self.found(found.shares)
        };
        easier.descend(start).into_iter().map(layouts).collect()
    }

    /// The best single level, the best ladder, and the best pair of levels.
    fn starts(&self) -> Vec<Found> {
        let all = std::iter::once(None).chain(self.depths.iter().copied().map(Some));
        let mut singles: Vec<Found> =
            all.map(|depth| self.found(vec![self.share(depth, self.bits)])).collect();
        sort(&mut singles);
        let mut bottoms: Vec<Share> = singles.iter().take(2).flat_map(|found| found.shares.clone()).collect();
        bottoms.push(self.share(None, self.bits));
        singles.truncate(1);
        let mut starts = singles;
        starts.extend(self.cheapest(bottoms.iter().flat_map(|bottom| self.ladders(bottom))));
        starts.extend(self.cheapest(self.pairs().into_iter()));
        sort(&mut starts);
        starts
    }

    /// Two levels, of every third depth.
    fn pairs(&self) -> Vec<Vec<Share>> {
        let offset = self.depths.len() % PAIR_STEP;
        let some = self.depths.iter().skip(offset).step_by(PAIR_STEP).copied().map(Some);
        let depths: Vec<Option<u32>> = some.chain([None]).collect();
        let mut pairs = Vec::new();
        for (index, upper) in depths.iter().enumerate() {
            for lower in depths.iter().skip(index + 1) {
                for part in PARTS {
                    let upper = self.share(*upper, self.bits * part);
                    pairs.push(vec![upper, self.share(*lower, self.bits * (1.0 - part))]);
                }
            }
        }
        pairs
    }

    /// A deepest level and levels right above it with a few bits per key each.
    fn ladders(&self, bottom: &Share) -> Vec<Vec<Share>> {
        let mut ladders = Vec::new();
        for rung in RUNGS {
            let mut shares = vec![*bottom];
            let above = self.depths.iter().rev().filter(|depth| **depth < bottom.depth);
            for depth in above.take(LEVELS_MAX - 1) {
                let bits = rung * self.counts.at(*depth) as f64;
                let rest = shares.first().map_or(0.0, |share| share.bits) - bits;
                if rest < self.bits * 0.2 {
                    break;
                }
                if let Some(first) = shares.first_mut() {
                    first.bits = rest;
                }
                shares.push(self.share(Some(*depth), bits));
                ladders.push(shares.clone());
            }
        }
        ladders
    }

    /// The best design that descends from a start, and those before it with fewer levels.
    fn descend(&self, start: Found) -> Vec<Found> {
        let mut found = start;
        self.polish(&mut found);
        let mut way = Vec::new();
        while found.shares.len() < LEVELS_MAX {
            let Some(mut next) = self.with_another_level(&found) else { break };
            self.polish(&mut next);
            if next.cost > found.cost * LEVEL_GAIN {
                break;
            }
            way.push(std::mem::replace(&mut found, next));
        }
        way.push(found);
        way
    }

    /// The best design with one more level, whose bits all others give in proportion. It may cost a little more than the previous one:
    /// its bits are not moved yet.
    fn with_another_level(&self, found: &Found) -> Option<Found> {
        let is_free = |share: &Share| {
            !found.shares.iter().any(|old| (old.depth, old.is_full) == (share.depth, share.is_full))
        };
        let all = std::iter::once(None).chain(self.depths.iter().copied().map(Some));
        let levels = all.flat_map(|depth| NEW_PARTS.map(|part| (part, self.share(depth, self.bits * part))));
        let designs = levels.filter(|(_, share)| is_free(share)).map(|(part, share)| {
            let mut shares = found.shares.clone();
            shares.iter_mut().for_each(|share| share.bits *= 1.0 - part);
            shares.push(share);
            shares.sort_by_key(|share| (share.is_full, share.depth));
            shares
        });
        self.cheapest(designs)
    }

    /// Moves bits and levels as long as the cost decreases.
    fn polish(&self, found: &mut Found) {
        let mut step = 0.25;
        while step >= STEP_MIN && !self.limit.is_reached() {
            let is_better = self.move_bits(found, step * self.bits) | self.move_levels(found);
            if !is_better {
                step /= 2.0;
            }
        }
    }

    fn accept(&self, found: &mut Found, shares: Vec<Share>) -> bool {
        let next = (!self.limit.is_reached()).then(|| self.found_below(shares, found.cost * GAIN)).flatten();
        let is_better = next.is_some();
        if let Some(next) = next {
            *found = next;
        }
        is_better
    }

    fn move_bits(&self, found: &mut Found, amount: f64) -> bool {
        let mut is_better = false;
        let count = found.shares.len();
        for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
            let mut shares = found.shares.clone();
            let Some(source) = shares.get_mut(from).filter(|_| from != to) else { continue };
            // Moves all bits if the rest would be too small for a level.
            let moved = if source.bits - amount < BITS_MIN { source.bits } else { amount };
            source.bits -= moved;
            let Some(target) = shares.get_mut(to) else { continue };
            target.bits += moved;
            if moved > 0.0 && self.accept(found, shares) {
                is_better = true;
            }
        }
        let before = found.shares.len();
        found.shares.retain(|share| share.bits >= BITS_MIN);
        is_better || found.shares.len() != before
    }

    fn move_levels(&self, found: &mut Found) -> bool {
        let mut is_better = false;
        for index in 0..found.shares.len() {
            for offset in OFFSETS {
                let Some(old) = found.shares.get(index).filter(|share| !share.is_full) else { continue };
                let place = self.depths.binary_search(&old.depth).ok();
                let place = place.and_then(|place| place.checked_add_signed(offset));
                let Some(depth) = place.and_then(|place| self.depths.get(place)) else { continue };
                if found.shares.iter().any(|share| share.depth == *depth) {
                    continue;
                }
                let mut shares = found.shares.clone();
                if let Some(share) = shares.get_mut(index) {
                    share.depth = *depth;
                }
                is_better |= self.accept(found, shares);
            }
        }
        is_better
    }

    /// Changes the layouts of levels where that lowers the cost. With one bit per node both layouts cost the same;
    /// blocked is preferred, since siblings then share a line.
    fn choose_layouts(&self, found: &mut Found) {
        for index in 0..found.shares.len() {
            let mut shares = found.shares.clone();
            let Some(share) = shares.get_mut(index) else { continue };
            let is_line = share.layout != BitLayout::Blocked;
            share.layout = if is_line { BitLayout::Blocked } else { BitLayout::Standard };
            let is_one = is_line && share.filter(self.counts).probe_count == 1 && !share.is_full;
            let next = self.found(shares);
            if next.cost < found.cost * if is_line { 1.0 } else { GAIN }
                || is_one && next.cost <= found.cost * 1.001
            {
                *found = next;
            }
        }
    }
}

#[cfg(test)]
mod tests;
