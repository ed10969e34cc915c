//! Our strategy: the levels and their bits with the least expected cost of a query.
//!
//! The cost is cheap to compute but has many valleys. The search begins with every single level, with ladders (equal small
//! shares for some depths right above the deepest level, the shape that the theory of large ranges gives) and with pairs of
//! levels, and climbs down from the best of each: it puts in one more level where that pays, moves bits between levels and levels between
//! depths, in steps that become smaller. Of what it finds near the least cost, the design with the fewest levels and lines is taken.

use super::LEVELS_MAX;
use super::keys::PrefixCounts;
use super::layout::BitLayout;
use super::model::{BITS_MIN, Expected, Model, Share, Unseen};
use super::sample::SampleQuery;
use super::strategy::Prices;

/// A change must lower the cost to this share.
const GAIN: f64 = 0.9995;

/// A further level must lower the cost to this share.
const LEVEL_GAIN: f64 = 0.998;

/// Costs up to this multiple of the least are near it. What saves less is left out: the search knows the cost of a query no better, and each
/// level takes a pass over the keys at the build, each line a read whatever it was priced.
const NEAR: f64 = 1.02;

/// So many of the best designs are polished once more when it is known how their levels lie.
const PROMISING: usize = 2;

/// Parts of the bits that the upper level of a pair gets.
const PARTS: [f64; 3] = [0.15, 0.4, 0.7];

/// Steps of bits end below this share of all bits.
const STEP_MIN: f64 = 0.004;

/// Bits per key that a rung of a ladder gets.
const RUNGS: [f64; 3] = [1.44, 2.0, 2.5];

/// Depths beyond 64 bits that are tried.
const LONG_DEPTHS_MAX: u32 = 64;

/// Prefixes that fill so much of their depth are no level: it would deny next to nothing.
const FULL_SHARE: f64 = 0.9;

/// Where probes cost nothing, or next to it, these parts of the cost are tried as the price of a line: so that of nearly equal
/// rates the one is found that is asked for quickly.
const EASING: [f64; 2] = [0.004, 0.012];

/// Probes that are less than this share of the cost count as next to nothing.
const EASY_SHARE: f64 = 0.0005;

/// What a design is searched for.
#[derive(Debug, Clone)]
pub(super) struct Problem<'a> {
    /// The queries, thinned.
    pub(super) cases: Vec<SampleQuery<'a>>,
    pub(super) counts: &'a PrefixCounts,
    /// Bits of all keys, 0 where they have several lengths.
    pub(super) key_bits: u32,
    /// All bits of the filter.
    pub(super) bits: f64,
    pub(super) unseen: Unseen,
    pub(super) prices: Prices,
    /// Depths that a level of prefixes may have, ascending.
    pub(super) depths: Vec<u32>,
    /// Whether a coarse search is enough: what the filter of a small table saves is not worth more.
    pub(super) is_small: bool,
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

/// Depths that levels of prefixes may have: not those that are full, nor those that no query needs.
pub(super) fn possible_depths(counts: &PrefixCounts, key_bits: u32, deepest: u32) -> Vec<u32> {
    let last = if key_bits == 0 { deepest.min(counts.depth_max() + 8) } else { key_bits - 1 };
    let is_sparse = |depth: &u32| {
        *depth >= 64 || (counts.at(*depth) as f64) < FULL_SHARE * 2.0_f64.powi(depth.cast_signed())
    };
    let first = (1..=last.min(64)).filter(is_sparse);
    // Of very long keys some depths must do.
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
    fn expected(&self, shares: &[Share]) -> Expected {
        let mut model = Model::new(shares, self.counts, self.key_bits, self.unseen, self.prices.probe_cap);
        // Points are served by a level of their own, so that one digest is all they cost.
        model.needs_full = true;
        model.expected(&self.cases)
    }

    /// What a design is expected to cost.
    pub(super) fn cost(&self, shares: &[Share]) -> f64 {
        self.expected(shares).cost(&self.prices)
    }

    /// Passes at the build and lines of a query.
    fn effort(&self, shares: &[Share]) -> f64 {
        shares.len() as f64 + self.expected(shares).lines
    }

    fn found(&self, shares: Vec<Share>) -> Found {
        let cost = self.cost(&shares);
        Found { shares, cost }
    }

    /// A level with all bits; without a depth the full one.
    pub(super) fn share(&self, depth: Option<u32>, bits: f64) -> Share {
        let is_full = depth.is_none();
        let depth = depth.unwrap_or(if self.key_bits == 0 { u32::MAX } else { self.key_bits });
        Share { depth, is_full, layout: BitLayout::Standard, bits }
    }

    /// Of the designs that cost nearly the least that is found the one with the least effort.
    pub(super) fn solve(&self) -> Vec<Share> {
        let mut designs: Vec<Found> =
            self.starts().into_iter().flat_map(|start| self.descend(start)).collect();
        for found in &mut designs {
            self.choose_layouts(found);
        }
        self.polish_lines(&mut designs);
        let eased = self.eased(&designs);
        designs.extend(eased);
        let least = designs.iter().map(|found| found.cost).fold(f64::INFINITY, f64::min);
        let near = designs.into_iter().filter(|found| found.cost <= least * NEAR);
        let with_effort = near.map(|found| (self.effort(&found.shares), found.shares));
        let easiest = with_effort.min_by(|(left, _), (right, _)| left.total_cmp(right));
        easiest.map(|(_, shares)| shares).unwrap_or_default()
    }

    /// Moves bits and levels of the best designs that have levels in lines: those were placed before it was known how they would lie.
    fn polish_lines(&self, designs: &mut [Found]) {
        sort(designs);
        let is_wanted = !self.is_small && designs.first().is_some_and(|best| !self.is_easy(best));
        let has_line =
            |found: &&mut Found| found.shares.iter().any(|share| share.layout == BitLayout::Blocked);
        for found in designs.iter_mut().filter(has_line).take(if is_wanted { PROMISING } else { 0 }) {
            self.polish(found);
            self.choose_layouts(found);
        }
    }

    /// Whether the lines of a design are next to nothing in its cost.
    fn is_easy(&self, found: &Found) -> bool {
        self.expected(&found.shares).lines * self.prices.probe_ns <= found.cost * EASY_SHARE
    }

    /// Designs near the best that take fewer lines, where the prices say nothing of lines.
    fn eased(&self, designs: &[Found]) -> Vec<Found> {
        let best = designs.iter().min_by(|left, right| left.cost.total_cmp(&right.cost));
        let Some(best) = best.filter(|best| !self.is_small && self.is_easy(best)) else { return Vec::new() };
        let eased = |part: f64| {
            let prices = Prices { probe_ns: self.prices.probe_ns + best.cost * part, ..self.prices };
            let easier = Self { prices, ..self.clone() };
            easier.descend(easier.found(best.shares.clone())).into_iter().map(move |mut found| {
                easier.choose_layouts(&mut found);
                self.found(found.shares)
            })
        };
        EASING.into_iter().flat_map(eased).collect()
    }

    /// The best single levels, ladders, and pairs of levels.
    fn starts(&self) -> Vec<Found> {
        let all = std::iter::once(None).chain(self.depths.iter().copied().map(Some));
        let mut singles: Vec<Found> =
            all.map(|depth| self.found(vec![self.share(depth, self.bits)])).collect();
        sort(&mut singles);
        let mut bottoms: Vec<Share> = singles.iter().take(2).flat_map(|found| found.shares.clone()).collect();
        bottoms.push(self.share(None, self.bits));
        let mut ladders: Vec<Found> = bottoms.iter().flat_map(|bottom| self.ladders(bottom)).collect();
        sort(&mut ladders);
        let mut pairs = if self.is_small { Vec::new() } else { self.pairs() };
        sort(&mut pairs);
        singles.truncate(1);
        ladders.truncate(1);
        // The second pair is one that differs in both depths from the first.
        let depths = |found: &Found| found.shares.iter().map(|share| share.depth).collect::<Vec<_>>();
        let first = pairs.first().map(depths).unwrap_or_default();
        let second =
            pairs.iter().find(|pair| depths(pair).iter().all(|depth| !first.contains(depth))).cloned();
        pairs.truncate(1);
        pairs.extend(second);
        let starts = [singles, ladders, pairs];
        starts.into_iter().flatten().collect()
    }

    /// Two levels, of every second depth.
    fn pairs(&self) -> Vec<Found> {
        let offset = self.depths.len() % 2;
        let some = self.depths.iter().skip(offset).step_by(2).copied().map(Some).chain([None]);
        let some: Vec<Option<u32>> = some.collect();
        let mut found = Vec::new();
        for (index, upper) in some.iter().enumerate() {
            for lower in some.iter().skip(index + 1) {
                for part in PARTS {
                    let shares = vec![
                        self.share(*upper, self.bits * part),
                        self.share(*lower, self.bits * (1.0 - part)),
                    ];
                    found.push(self.found(shares));
                }
            }
        }
        found
    }

    /// Levels right above a deepest one, with a few bits a key each.
    fn ladders(&self, bottom: &Share) -> Vec<Found> {
        let mut found = Vec::new();
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
                found.push(self.found(shares.clone()));
            }
        }
        found
    }

    /// The best design from a start on, and those on the way with fewer levels.
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

    /// The best design with one level more, whose bits all others give in proportion. It may be a little worse than the one
    /// before: the bits are not moved yet.
    fn with_another_level(&self, found: &Found) -> Option<Found> {
        let is_free = |share: &Share| {
            !found.shares.iter().any(|old| (old.depth, old.is_full) == (share.depth, share.is_full))
        };
        let all = std::iter::once(None).chain(self.depths.iter().copied().map(Some));
        let mut best: Option<Found> = None;
        for depth in all {
            let parts: &[f64] = if self.is_small { &[0.3] } else { &[0.1, 0.3, 0.6] };
            for part in parts {
                let share = self.share(depth, self.bits * part);
                if !is_free(&share) {
                    break;
                }
                let mut shares = found.shares.clone();
                shares.iter_mut().for_each(|share| share.bits *= 1.0 - part);
                shares.push(share);
                let next = self.found(shares);
                if best.as_ref().is_none_or(|best| next.cost < best.cost) {
                    best = Some(next);
                }
            }
        }
        best
    }

    /// Moves bits and levels until nothing becomes cheaper.
    fn polish(&self, found: &mut Found) {
        let mut step = 0.25;
        let step_min = if self.is_small { STEP_MIN * 10.0 } else { STEP_MIN };
        while step >= step_min {
            let is_better = self.move_bits(found, step * self.bits) | self.move_levels(found);
            if !is_better {
                step /= 2.0;
            }
        }
    }

    fn accept(&self, found: &mut Found, shares: Vec<Share>) -> bool {
        let next = self.found(shares);
        let is_better = next.cost < found.cost * GAIN;
        if is_better {
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
            // What would be left must be a level.
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
            for offset in [-4_isize, -2, -1, 1, 2, 4] {
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

    /// Levels in lines where that costs less, and the other way round. One bit a node costs the same either way, and there siblings
    /// share a line.
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
