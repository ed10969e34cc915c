//! Goes through the designs of a family, prices each, and keeps the cheapest or all.
//!
//! Integers: every depth whose set fits, every prefix length above it. Strings: up to [`COARSE`] lengths of each kind, spread evenly
//! and over those at which the sample's queries part from the keys and from each other; then all lengths between the
//! neighbours of the best. 2PBF: all pairs on few queries of the sample, the best of them with other shares of the budget on
//! more, the best of those on all.

use super::bloom::best_rate;
use super::design::{BloomLayout, Design, Prediction, Prices, Stage, WHOLE_KEYS};
use super::keys::Keys;
use super::model::{Model, set_lines};
use super::pair::Pair;
use super::sizes::{SetSize, quick_size, set_size};
use super::tally::{Cell, Tally};
use crate::Family;

/// Lengths of each kind that are looked at first, where there are more than fit into a word.
const COARSE: usize = 48;
/// Sets of strings that are looked at first: the size of each takes a pass over the keys.
const COARSE_SETS: usize = 12;
/// Depths below the best one whose exact size is taken.
const EXACT_DEPTHS: u32 = 3;

/// Queries of the sample that each round of 2PBF looks at, designs that go on to the next, and shares of the first filter there.
const PAIR_QUERIES: [usize; 3] = [192, 1024, usize::MAX];
const PAIR_DESIGNS: [usize; 2] = [24, 6];
const PAIR_SHARES: [f64; 7] = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8];
/// Those of the paper, for listing all designs.
const LISTED_SHARES: usize = 3;

/// A walk over the designs.
pub(super) struct Search<'m, 'a> {
    model: &'m Model<'a>,
    family: Family,
    budget_bytes: u64,
    prices: Prices,
    keeps_all: bool,
    all: Vec<(Design, Prediction)>,
    best: Option<(f64, Design, Prediction)>,
}

impl<'m, 'a> Search<'m, 'a> {
    /// Keeps the cheapest design.
    pub(super) fn best(model: &'m Model<'a>, family: Family, budget_bytes: u64, prices: &Prices) -> Self {
        let prices = *prices;
        Self { model, family, budget_bytes, prices, keeps_all: false, all: Vec::new(), best: None }
    }

    /// Keeps all designs.
    pub(super) fn all(model: &'m Model<'a>, family: Family, budget_bytes: u64, prices: &Prices) -> Self {
        Self { keeps_all: true, ..Self::best(model, family, budget_bytes, prices) }
    }

    pub(super) fn finish_all(self) -> Vec<(Design, Prediction)> {
        self.all
    }

    /// The cheapest; without any that fits, the design of nothing, which takes everything for present.
    pub(super) fn finish_best(self) -> (Design, Prediction) {
        let nothing = Design { first: Stage::None, prefix: 0, layout: BloomLayout::Spread };
        let prediction =
            Prediction { fpr: 1.0, probes: 0.0, cost: self.prices.read, first_bytes: 0, bloom_bytes: 0 };
        self.best.map_or((nothing, prediction), |(_, design, prediction)| (design, prediction))
    }

    /// Looks at the designs of the family.
    pub(super) fn run(&mut self) {
        if self.model.counts.queries.is_empty() {
            return self.run_without_sample();
        }
        match &*self.model.keys {
            Keys::Words(fixed, _) => {
                let lengths: Vec<u32> = (1..=fixed.bit_count()).collect();
                if self.family == Family::TwoPrefixBloom {
                    self.run_pairs(&lengths);
                }
                let mut sets = self.integer_sets(&lengths);
                self.run_lengths(&sets, &lengths);
                if self.refine_sets(&mut sets) {
                    self.best = None;
                    self.all.clear();
                    self.run_lengths(&sets, &lengths);
                }
            }
            Keys::Strings(..) => self.run_strings(),
        }
    }

    /// The stated default: whole keys.
    fn run_without_sample(&mut self) {
        let prefix = match &*self.model.keys {
            Keys::Words(fixed, _) => fixed.bit_count(),
            Keys::Strings(..) => WHOLE_KEYS,
        };
        for layout in [BloomLayout::Spread, BloomLayout::Lines] {
            let count = self.prefix_count(prefix);
            let Some(bloom) = best_rate(layout, self.budget_bytes, count) else { continue };
            let cost = bloom.rate * self.prices.read + self.prices.probe * layout.lines_touched();
            let prediction =
                Prediction { fpr: bloom.rate, probes: 1.0, cost, first_bytes: 0, bloom_bytes: bloom.bytes };
            self.keep(cost, Design { first: Stage::None, prefix, layout }, prediction);
        }
    }

    /// Looks at one design, in both layouts.
    pub(super) fn only(&mut self, design: &Design) {
        let depth = design.first.depth();
        match design.first {
            Stage::Bloom { share, .. } if depth < design.prefix => {
                let every: Vec<usize> = (0..self.model.counts.queries.len()).collect();
                self.price_pair((depth, design.prefix), share, &every);
            }
            Stage::Bloom { .. } => {}
            Stage::None | Stage::Set { .. } => {
                let sets: Vec<(u32, SetSize)> =
                    if depth > 0 { self.exact_set(depth).into_iter().collect() } else { Vec::new() };
                if depth > 0 && sets.is_empty() {
                    return;
                }
                let lengths: Vec<u32> = [design.prefix].into_iter().filter(|prefix| *prefix != 0).collect();
                self.run_lengths(&sets, &lengths);
                self.all.retain(|(found, _)| found.first.depth() == depth && found.prefix == design.prefix);
            }
        }
    }

    /// Questions to Bloom filters that one query may cost.
    fn cap(&self) -> u64 {
        self.prices.bloom_cap(self.family == Family::Proteus)
    }

    fn prefix_count(&self, prefix: u32) -> u64 {
        if prefix == WHOLE_KEYS { self.model.keys.len() as u64 } else { self.model.prefix_count(prefix) }
    }

    fn exact_set(&self, depth: u32) -> Option<(u32, SetSize)> {
        let size = set_size(&self.model.keys, &self.model.counts, depth)?;
        (size.bytes <= self.budget_bytes).then_some((depth, size))
    }

    /// All sets of integers that fit, tries by their estimate.
    fn integer_sets(&self, lengths: &[u32]) -> Vec<(u32, SetSize)> {
        if self.family != Family::Proteus {
            return Vec::new();
        }
        let size = |depth: &u32| Some((*depth, quick_size(&self.model.keys, &self.model.counts, *depth)?));
        lengths.iter().filter_map(size).filter(|(_, size)| size.bytes <= self.budget_bytes).collect()
    }

    /// Takes the exact sizes of the depths from the best one on, where a trie may be the smallest form; whether one changed.
    fn refine_sets(&self, sets: &mut Vec<(u32, SetSize)>) -> bool {
        let Some((_, design, _)) = &self.best else { return false };
        if self.family != Family::Proteus {
            return false;
        }
        let depth = design.first.depth();
        let mut is_changed = false;
        for depth in
            (depth..depth + EXACT_DEPTHS).filter(|depth| (1..=self.model.bit_count()).contains(depth))
        {
            let Some(exact) = set_size(&self.model.keys, &self.model.counts, depth) else { continue };
            let known = sets.iter().position(|(known, _)| *known == depth);
            if known.and_then(|index| sets.get(index)).is_some_and(|(_, size)| *size == exact) {
                continue;
            }
            if let Some(index) = known {
                sets.remove(index);
                is_changed = true;
            }
            if exact.bytes <= self.budget_bytes {
                sets.push((depth, exact));
                is_changed = true;
            }
        }
        sets.sort_by_key(|(depth, _)| *depth);
        is_changed
    }

    /// Prices all pairs of a set (or none) and a prefix length, and the sets alone.
    fn run_lengths(&mut self, sets: &[(u32, SetSize)], lengths: &[u32]) {
        let depths: Vec<u32> = sets.iter().map(|(depth, _)| *depth).collect();
        let prefixes: Vec<u32> = lengths.iter().copied().filter(|length| *length != WHOLE_KEYS).collect();
        for set in sets {
            self.price_set(set);
        }
        if lengths.contains(&WHOLE_KEYS) {
            for set in std::iter::once(None).chain(sets.iter().map(Some)) {
                self.price_whole(set);
            }
        }
        if prefixes.is_empty() {
            return;
        }
        let mut tally = Tally::new(&depths, &prefixes, self.model.bit_count(), self.cap());
        self.model.counts.queries.iter().for_each(|query| tally.add(query));
        tally.for_each(|depth, prefix, cell| {
            let set = sets.iter().find(|(found, _)| *found == depth);
            self.price_cell(set, prefix, cell);
        });
    }

    fn stage(set: Option<&(u32, SetSize)>) -> (Stage, u64, f64) {
        set.map_or((Stage::None, 0, 0.0), |(depth, size)| {
            (Stage::Set { depth: *depth, form: size.form }, size.bytes, set_lines(size.form, *depth))
        })
    }

    /// A set without a Bloom filter.
    fn price_set(&mut self, set: &(u32, SetSize)) {
        let (first, first_bytes, lines) = Self::stage(Some(set));
        let fpr = self.model.near.share(set.0);
        let cost = fpr * self.prices.read + self.prices.probe * lines;
        let rank = cost + self.model.near.hidden(set.0) * self.prices.read;
        let prediction = Prediction { fpr, probes: 1.0, cost, first_bytes, bloom_bytes: 0 };
        self.keep(rank, Design { first, prefix: 0, layout: BloomLayout::Spread }, prediction);
    }

    /// A Bloom filter of whole strings: it tells something about points only.
    fn price_whole(&mut self, set: Option<&(u32, SetSize)>) {
        let depth = set.map_or(0, |(depth, _)| *depth);
        let queries = &self.model.counts.queries;
        let is_open = |near: u32| depth == 0 || near >= depth;
        let open = queries.iter().filter(|query| is_open(query.near()));
        let (points, ranges) = open.fold((0_u64, 0_u64), |(points, ranges), query| {
            if query.is_point { (points + 1, ranges) } else { (points, ranges + 1) }
        });
        let total = queries.len() as f64;
        self.price_layouts(set, WHOLE_KEYS, |p| {
            ((points as f64 * p + ranges as f64) / total, points as f64 / total, 0.0)
        });
    }

    fn price_cell(&mut self, set: Option<&(u32, SetSize)>, prefix: u32, cell: &Cell<'_>) {
        let near = &self.model.near;
        let hidden_set = set.map_or(0.0, |(depth, _)| near.hidden(*depth));
        let hidden = near.hidden(prefix);
        self.price_layouts(set, prefix, |p| {
            let (rate, probes) = cell.rate_and_probes(p);
            (rate, probes, hidden + p * hidden_set)
        });
    }

    /// Prices both layouts of a Bloom filter: `rate` gives, for its rate, the share of positives, the questions, and what is to be
    /// expected beyond the sample.
    fn price_layouts(
        &mut self,
        set: Option<&(u32, SetSize)>,
        prefix: u32,
        rate: impl Fn(f64) -> (f64, f64, f64),
    ) {
        let (first, first_bytes, set_lines) = Self::stage(set);
        let count = self.prefix_count(prefix);
        let left = self.budget_bytes - first_bytes;
        for layout in [BloomLayout::Spread, BloomLayout::Lines] {
            if layout == BloomLayout::Lines && !self.may_lines_win(left, count, set_lines, &rate) {
                continue;
            }
            let Some(bloom) = best_rate(layout, left, count) else { continue };
            let (fpr, probes, hidden) = rate(bloom.rate);
            let lines = set_lines + probes * layout.lines_touched();
            let cost = fpr * self.prices.read + self.prices.probe * lines;
            let probes = probes + f64::from(u8::from(set.is_some()));
            let prediction = Prediction { fpr, probes, cost, first_bytes, bloom_bytes: bloom.bytes };
            self.keep(cost + hidden * self.prices.read, Design { first, prefix, layout }, prediction);
        }
    }

    /// Whether lines could be cheaper than the best so far: they have no lower rate than a spread filter of the same size, whose
    /// rate is found faster.
    fn may_lines_win(
        &self,
        bytes: u64,
        count: u64,
        set_lines: f64,
        rate: &impl Fn(f64) -> (f64, f64, f64),
    ) -> bool {
        let (Some((best, ..)), Some(bloom)) = (&self.best, best_rate(BloomLayout::Spread, bytes, count))
        else {
            return true;
        };
        let (fpr, probes, hidden) = rate(bloom.rate);
        let least = (fpr + hidden) * self.prices.read
            + self.prices.probe * (set_lines + probes * BloomLayout::Lines.lines_touched());
        self.keeps_all || least < *best
    }

    /// `rank`: the cost with what is to be expected beyond the sample.
    fn keep(&mut self, rank: f64, design: Design, prediction: Prediction) {
        let prediction = Prediction { cost: rank, ..prediction };
        if self.keeps_all {
            self.all.push((design, prediction));
        }
        if self.best.is_none_or(|(best, ..)| rank < best) {
            self.best = Some((rank, design, prediction));
        }
    }

    /// Few lengths over all, then all near the best.
    fn run_strings(&mut self) {
        let bit_count = self.model.bit_count();
        let mut lengths = self.coarse_lengths(COARSE);
        let deepest = if self.family == Family::Proteus { self.deepest_set() } else { 0 };
        let depths = spread(deepest, COARSE_SETS);
        let mut sets: Vec<(u32, SetSize)> =
            depths.iter().filter_map(|depth| self.exact_set(*depth)).collect();
        if self.family == Family::TwoPrefixBloom {
            self.run_pairs(&lengths);
        }
        lengths.push(WHOLE_KEYS);
        self.run_lengths(&sets, &lengths);
        let Some((_, best, _)) = &self.best else { return };
        let (depth, prefix) = (best.first.depth(), best.prefix);
        let finer = between(&lengths, prefix.min(bit_count), bit_count);
        if depth > 0 && matches!(best.first, Stage::Set { .. }) {
            let finer_sets = thin(&between(&depths, depth, deepest), COARSE_SETS);
            sets.extend(finer_sets.iter().filter_map(|depth| self.exact_set(*depth)));
            sets.sort_by_key(|(depth, _)| *depth);
            sets.dedup_by_key(|(depth, _)| *depth);
        }
        let finer: Vec<u32> = finer.into_iter().filter(|length| !lengths.contains(length)).collect();
        self.run_lengths(&sets, &thin(&finer, 2 * COARSE));
    }

    /// The greatest depth whose set fits: sizes hardly ever shrink with the depth.
    fn deepest_set(&self) -> u32 {
        let (mut fits, mut fails) = (0, self.model.bit_count() + 1);
        // From the near side: a set that is far too large costs as much to look at as one that fits.
        let mut step = 16;
        while fits + step < fails {
            if self.exact_set(fits + step).is_none() {
                fails = fits + step;
                break;
            }
            fits += step;
            step *= 2;
        }
        while fits + 1 < fails {
            let middle = u32::midpoint(fits, fails);
            if self.exact_set(middle).is_some() { fits = middle } else { fails = middle }
        }
        fits
    }

    /// Lengths that are spread evenly, and those just beyond what the sample's queries share with keys and their ends with each
    /// other.
    fn coarse_lengths(&self, count: usize) -> Vec<u32> {
        let bit_count = self.model.bit_count();
        let queries = &self.model.counts.queries;
        let mut near: Vec<u32> = queries.iter().map(|query| query.near() + 1).collect();
        let mut ends: Vec<u32> = queries.iter().map(|query| query.shared_ends).collect();
        let mut lengths = spread(bit_count, count / 3);
        for list in [&mut near, &mut ends] {
            list.sort_unstable();
            let step = (list.len() / (count / 3)).max(1);
            lengths.extend(list.iter().step_by(step).chain(list.last()));
        }
        lengths.retain(|length| (1..=bit_count).contains(length));
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// Two Bloom filters.
    fn run_pairs(&mut self, lengths: &[u32]) {
        let pairs: Vec<(u32, u32)> = lengths
            .iter()
            .flat_map(|first| {
                lengths.iter().filter(move |second| first < *second).map(|second| (*first, *second))
            })
            .collect();
        if self.keeps_all {
            let every: Vec<usize> = (0..self.model.counts.queries.len()).collect();
            for share in PAIR_SHARES.iter().take(LISTED_SHARES) {
                pairs.iter().for_each(|pair| self.price_pair(*pair, *share, &every));
            }
            return;
        }
        let [few, some, all] = PAIR_QUERIES.map(|count| self.some_queries(count));
        let [to_second, to_third] = PAIR_DESIGNS;
        let mut first: Vec<(f64, (u32, u32))> =
            pairs.iter().filter_map(|pair| Some((self.pair_cost(*pair, 0.5, &few)?.0, *pair))).collect();
        first.sort_by(|left, right| left.0.total_cmp(&right.0));
        let mut second: Vec<(f64, (u32, u32), f64)> = Vec::new();
        for (_, pair) in first.iter().take(to_second) {
            for share in PAIR_SHARES {
                second.extend(self.pair_cost(*pair, share, &some).map(|(cost, _)| (cost, *pair, share)));
            }
        }
        second.sort_by(|left, right| left.0.total_cmp(&right.0));
        for (_, pair, share) in second.iter().take(to_third) {
            self.price_pair(*pair, *share, &all);
        }
    }

    /// Numbers of so many queries, evenly spread over the sample.
    fn some_queries(&self, count: usize) -> Vec<usize> {
        let total = self.model.counts.queries.len();
        let taken = count.min(total);
        (0..taken).map(|index| index * total / taken.max(1)).collect()
    }

    fn price_pair(&mut self, pair: (u32, u32), share: f64, queries: &[usize]) {
        if let Some((cost, prediction)) = self.pair_cost(pair, share, queries) {
            let first = Stage::Bloom { depth: pair.0, share };
            self.keep(cost, Design { first, prefix: pair.1, layout: BloomLayout::Spread }, prediction);
        }
    }

    /// The price of two filters, on some queries of the sample.
    fn pair_cost(
        &self,
        (first, second): (u32, u32),
        share: f64,
        queries: &[usize],
    ) -> Option<(f64, Prediction)> {
        let first_bytes = (self.budget_bytes as f64 * share) as u64;
        let one = best_rate(BloomLayout::Spread, first_bytes, self.prefix_count(first))?;
        let rest = self.budget_bytes - one.bytes;
        let two = best_rate(BloomLayout::Spread, rest, self.prefix_count(second))?;
        let pair = Pair::new((first, one.rate), (second, two.rate), self.cap());
        let (mut fpr, mut probes) = (0.0, 0.0);
        for index in queries {
            let Some(query) = self.model.counts.queries.get(*index) else { continue };
            let (rate, asked) = pair.rate_and_probes(query);
            fpr += rate;
            probes += asked;
        }
        let total = (queries.len() as f64).max(1.0);
        let (fpr, probes) = (fpr / total, probes / total);
        let cost = fpr * self.prices.read + self.prices.probe * probes * BloomLayout::Spread.lines_touched();
        Some((cost, Prediction { fpr, probes, cost, first_bytes: one.bytes, bloom_bytes: two.bytes }))
    }
}

/// At most `count` lengths from 1 to `longest`, evenly spread, the longest among them.
fn spread(longest: u32, count: usize) -> Vec<u32> {
    let count = (count as u32).clamp(1, longest.max(1));
    let mut lengths: Vec<u32> =
        (1..=count).map(|index| (u64::from(index) * u64::from(longest) / u64::from(count)) as u32).collect();
    lengths.retain(|length| *length > 0);
    lengths
}

/// All lengths between the neighbours that one has in a list.
fn between(lengths: &[u32], length: u32, longest: u32) -> Vec<u32> {
    let below = lengths.iter().copied().filter(|other| *other < length).max().unwrap_or(0);
    let above = lengths.iter().copied().filter(|other| *other > length).min().unwrap_or(longest);
    (below + 1..=above.min(longest)).collect()
}

/// At most `count` of a list, evenly spread.
fn thin(list: &[u32], count: usize) -> Vec<u32> {
    list.iter().copied().step_by(list.len().div_ceil(count).max(1)).collect()
}
