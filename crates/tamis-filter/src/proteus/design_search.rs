//! Searches the designs of a family and keeps the cheapest one, or all.
//!
//! First the lengths that keys and queries distinguish ([`Model::lengths`]) with set depths, all of them or, of long strings, some: evenly spaced ones
//! and those at which queries of the sample differ from the keys and in their ends. Then, in some rounds, the lengths and depths between the neighbours of
//! the best design, with a set and without.
//!
//! 2PBF: pairs of lengths on a few queries of the sample, the best of them with other shares of the budget on more queries, the best of
//! those on all; then pairs near the best.

use std::ops::Range;

use super::bloom::best_rate;
use super::design::{BloomLayout, Design, Prediction, Prices, Stage, WHOLE_KEYS};
use super::keys::Keys;
use super::model::{ALL_LENGTHS, Model, is_surely_best, set_lines, whole_set};
use super::query_histogram::{Histogram, QueryHistogram};
use super::sizes::SetSize;
use super::two_bloom_model::{Expected, Pair};
use crate::{Budget, BuildError, Family, steps};

/// Lengths of integers: all pairs of them are tried.
const ALL_PAIRED: u32 = 64;
/// The size of a set takes a scan of the keys. The first round has more depths for few keys, so that it scans about this many keys.
const SET_KEYS: usize = 1 << 26;

/// How many designs a search tries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Breadth {
    /// All designs that a filter may have, with all lengths of short keys. Otherwise those that the parameters of a filter can express.
    is_full: bool,
    /// Prefix lengths, set depths and lengths of pairs of the first round.
    lengths: usize,
    depths: usize,
    pair_lengths: usize,
    /// Depths are searched up to a multiple of this.
    depth_unit: u32,
    /// Finer rounds, and the lengths and depths of each.
    rounds: usize,
    finer: usize,
    finer_depths: usize,
    /// Finer rounds of pairs, and the lengths of each filter in them.
    pair_rounds: usize,
    finer_pairs: usize,
    /// Of two Bloom filters, the designs that reach the next round, and the shares.
    pair_designs: [usize; 2],
    pair_shares: usize,
}

impl Breadth {
    /// For a filter that chooses its own design. Three rounds reach all lengths between two of the first ones for keys of some kilobytes.
    pub(super) const FULL: Self = Self {
        is_full: true,
        lengths: 192,
        depths: 12,
        pair_lengths: 48,
        depth_unit: 1,
        rounds: 3,
        finer: 192,
        finer_depths: 12,
        pair_rounds: 3,
        finer_pairs: 16,
        pair_designs: [24, 6],
        pair_shares: PAIR_SHARES.len(),
    };
    /// For the automatic choice in the background.
    pub(crate) const MANY: Self = Self {
        is_full: false,
        lengths: 40,
        depths: 24,
        pair_lengths: 40,
        depth_unit: 4,
        finer: 12,
        pair_rounds: 2,
        finer_pairs: 12,
        pair_designs: [16, 6],
        pair_shares: 5,
        ..Self::FULL
    };
    /// While a table is written: takes about a quarter of the time.
    pub(crate) const FEW: Self = Self {
        lengths: 20,
        depths: 12,
        pair_lengths: 20,
        rounds: 2,
        finer: 6,
        finer_depths: 6,
        pair_rounds: 1,
        finer_pairs: 6,
        pair_designs: [6, 4],
        pair_shares: 3,
        ..Self::MANY
    };
}

/// Sample queries of each round of 2PBF, and shares of the first filter.
const PAIR_QUERIES: [usize; 3] = [192, 1024, usize::MAX];
const PAIR_SHARES: [f64; 7] = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8];
/// Number of shares for the list of all designs: those of the paper.
const LISTED_SHARES: usize = 3;

impl<'a> Model<'a> {
    /// Every design of a family of this module within a budget, each with its prediction. For byte strings: the designs that the search
    /// prices. Without sample queries: the default design in each layout.
    pub fn designs(
        &self,
        family: Family,
        budget: Budget,
        prices: &Prices,
    ) -> Result<Vec<(Design, Prediction)>, BuildError> {
        let mut search = Search { keeps_all: true, ..self.search(family, budget, prices)? };
        search.run();
        Ok(search.all)
    }

    /// The cheapest design. Without sample queries: the default design, see the module's documentation.
    pub fn choose(
        &self,
        family: Family,
        budget: Budget,
        prices: &Prices,
    ) -> Result<(Design, Prediction), BuildError> {
        self.choose_in(Breadth::FULL, None, family, budget, prices)
    }

    /// [`Model::choose`] among fewer designs, and restricted to a layout if one is given. If no design fits: the empty one, which passes all
    /// queries.
    pub(crate) fn choose_in(
        &self,
        breadth: Breadth,
        layout: Option<BloomLayout>,
        family: Family,
        budget: Budget,
        prices: &Prices,
    ) -> Result<(Design, Prediction), BuildError> {
        let mut search = Search { breadth, ..self.search(family, budget, prices)? };
        search.layouts = match layout {
            Some(BloomLayout::Spread) => &[BloomLayout::Spread],
            Some(BloomLayout::Lines) => &[BloomLayout::Lines],
            None => search.layouts,
        };
        let prices = search.prices;
        if let Some(whole) = whole_set(family, &self.keys, search.budget_bytes, &prices)
            && (self.counts.queries.is_empty() || is_surely_best(&whole.1, &prices))
        {
            return Ok(whole);
        }
        search.run();
        let nothing = Design { first: Stage::None, prefix: 0, layout: BloomLayout::Spread };
        let passing = Prediction { fpr: 1.0, probes: 0.0, cost: prices.read, first_bytes: 0, bloom_bytes: 0 };
        Ok(search.best.map_or((nothing, passing), |(_, design, prediction)| (design, prediction)))
    }

    /// The prediction for a design; `None` if it exceeds the budget or is not one of the family, and without sample queries.
    pub fn predict(
        &self,
        family: Family,
        design: &Design,
        budget: Budget,
        prices: &Prices,
    ) -> Result<Option<Prediction>, BuildError> {
        let mut search = Search { keeps_all: true, ..self.search(family, budget, prices)? };
        search.only(design);
        let mut found = search.all;
        found.retain(|(found, _)| found.layout == design.layout);
        Ok(found.pop().map(|(_, prediction)| prediction))
    }

    /// A search of all designs, which keeps the cheapest one.
    fn search(&self, family: Family, budget: Budget, prices: &Prices) -> Result<Search<'_, 'a>, BuildError> {
        Ok(Search {
            model: self,
            family,
            budget_bytes: self.budget_bytes(family, budget)?,
            prices: prices.usable(),
            layouts: &BloomLayout::ALL,
            keeps_all: false,
            breadth: Breadth::FULL,
            all: Vec::new(),
            best: None,
            best_kinds: [None; 2],
        })
    }
}

/// A search of the designs.
struct Search<'m, 'a> {
    model: &'m Model<'a>,
    family: Family,
    budget_bytes: u64,
    prices: Prices,
    /// The possible layouts of the second stage.
    layouts: &'static [BloomLayout],
    keeps_all: bool,
    breadth: Breadth,
    all: Vec<(Design, Prediction)>,
    best: Option<(f64, Design, Prediction)>,
    /// The cheapest design without a set, and with one.
    best_kinds: [Option<(f64, Design)>; 2],
}

impl Search<'_, '_> {
    /// Prices the designs of the family.
    fn run(&mut self) {
        if self.model.counts.queries.is_empty() {
            return self.run_without_sample();
        }
        let breadth = self.breadth;
        if self.family == Family::TwoPrefixBloom {
            let all_max = if breadth.is_full { ALL_PAIRED } else { 0 };
            self.run_pairs_near_best(self.first_lengths(breadth.pair_lengths, all_max));
            if !breadth.is_full {
                return;
            }
        }
        let mut lengths = self.first_lengths(breadth.lengths, if breadth.is_full { ALL_LENGTHS } else { 0 });
        if breadth.is_full && matches!(&*self.model.keys, Keys::Strings(..)) {
            lengths.push(WHOLE_KEYS);
        }
        let deepest = if self.family == Family::Proteus { self.deepest_set() } else { 0 };
        self.run_near_best((self.first_depths(deepest), deepest), lengths);
    }

    /// The default: whole keys.
    fn run_without_sample(&mut self) {
        let prefix = match &*self.model.keys {
            Keys::Words(fixed, _) => fixed.bit_count(),
            Keys::Strings(..) => WHOLE_KEYS,
        };
        for layout in self.layouts.iter().copied() {
            let count = self.prefix_count(prefix);
            let Some(bloom) = best_rate(layout, self.budget_bytes, count) else { continue };
            let cost = bloom.rate * self.prices.read + self.prices.probe * layout.lines_touched();
            let prediction =
                Prediction { fpr: bloom.rate, probes: 1.0, cost, first_bytes: 0, bloom_bytes: bloom.bytes };
            self.keep(cost, Design { first: Stage::None, prefix, layout }, prediction);
        }
    }

    /// Prices one design, if it is one of the family and the sample has queries.
    fn only(&mut self, design: &Design) {
        let depth = design.first.depth();
        let is_own = match design.first {
            Stage::None => true,
            Stage::Set { .. } => self.family == Family::Proteus,
            Stage::Bloom { .. } => self.family == Family::TwoPrefixBloom,
        };
        if !is_own || self.model.counts.queries.is_empty() {
            return;
        }
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
                self.run_sets(&sets, &lengths);
                self.all.retain(|(found, _)| found.first.depth() == depth && found.prefix == design.prefix);
            }
        }
    }

    /// Most tests in Bloom filters per query.
    fn cap(&self) -> u64 {
        self.prices.bloom_cap(self.family == Family::Proteus)
    }

    fn prefix_count(&self, prefix: u32) -> u64 {
        if prefix == WHOLE_KEYS { self.model.keys.len() as u64 } else { self.model.prefix_count(prefix) }
    }

    fn exact_set(&self, depth: u32) -> Option<(u32, SetSize)> {
        let size = self.model.set_size(depth)?;
        (size.bytes <= self.budget_bytes).then_some((depth, size))
    }

    /// Prices sets alone, and all combinations of a set (or none) and a prefix length.
    fn run_sets(&mut self, sets: &[(u32, SetSize)], lengths: &[u32]) {
        sets.iter().for_each(|set| self.price_set(set));
        self.run_lengths(sets, lengths, true);
    }

    /// Prices all combinations of a set and a prefix length, and with `has_none` the lengths without a set.
    fn run_lengths(&mut self, sets: &[(u32, SetSize)], lengths: &[u32], has_none: bool) {
        let depths: Vec<u32> = sets.iter().map(|(depth, _)| *depth).collect();
        let prefixes: Vec<u32> = lengths.iter().copied().filter(|length| *length != WHOLE_KEYS).collect();
        if lengths.contains(&WHOLE_KEYS) {
            let none = has_none.then_some(None);
            for set in none.into_iter().chain(sets.iter().map(Some)) {
                self.price_whole(set);
            }
        }
        if prefixes.is_empty() {
            return;
        }
        let mut histograms = QueryHistogram::new(&depths, &prefixes, &self.model.near, self.cap());
        self.model.counts.queries.iter().for_each(|query| histograms.add(query));
        histograms.for_each(|depth, prefix, histogram| {
            let set = sets.iter().find(|(found, _)| *found == depth);
            if has_none || set.is_some() {
                self.price_histogram(set, prefix, histogram);
            }
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

    /// A Bloom filter of whole strings, which tests points only.
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

    fn price_histogram(&mut self, set: Option<&(u32, SetSize)>, prefix: u32, histogram: &Histogram<'_>) {
        let near = &self.model.near;
        let hidden_set = set.map_or(0.0, |(depth, _)| near.hidden(*depth));
        let hidden = near.hidden(prefix);
        self.price_layouts(set, prefix, |p| {
            let (rate, probes) = histogram.rate_and_probes(p);
            (rate, probes, hidden + p * hidden_set)
        });
    }

    /// Prices the layouts of a Bloom filter. From its rate, `rate` computes the rate of false positives, the tests per query, and the
    /// rate that is expected beyond the sample.
    fn price_layouts(
        &mut self,
        set: Option<&(u32, SetSize)>,
        prefix: u32,
        rate: impl Fn(f64) -> (f64, f64, f64),
    ) {
        let (first, first_bytes, set_lines) = Self::stage(set);
        let count = self.prefix_count(prefix);
        let left = self.budget_bytes - first_bytes;
        for layout in self.layouts.iter().copied() {
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

    /// Whether lines can be cheaper than the best design: their rate is at least that of a spread filter of the same size, which is computed
    /// faster.
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

    /// `rank` is the cost, including the expected false positives beyond the sample.
    fn keep(&mut self, rank: f64, design: Design, prediction: Prediction) {
        let prediction = Prediction { cost: rank, ..prediction };
        if self.keeps_all {
            self.all.push((design, prediction));
        }
        if self.best.is_none_or(|(best, ..)| rank < best) {
            self.best = Some((rank, design, prediction));
        }
        let [without, with] = &mut self.best_kinds;
        let kind = if matches!(design.first, Stage::Set { .. }) { with } else { without };
        if kind.is_none_or(|(best, _)| rank < best) {
            *kind = Some((rank, design));
        }
    }

    /// All lengths that are distinguished, or if they are more than `all_max`, some.
    fn first_lengths(&self, count: usize, all_max: u32) -> Vec<u32> {
        let all = self.model.lengths();
        if all.len() <= all_max as usize { all.to_vec() } else { self.coarse_lengths(count) }
    }

    /// Depths of sets of the first round. Those of whole bytes are the most compact. The sizes of most sets of integers are known without a scan.
    fn first_depths(&self, deepest: u32) -> Vec<u32> {
        let count = self.breadth.depths;
        if !self.breadth.is_full {
            return evenly_spaced(deepest, count);
        }
        if matches!(&*self.model.keys, Keys::Words(..)) {
            return (1..=deepest).collect();
        }
        let mut depths = evenly_spaced(deepest, count.max(SET_KEYS / self.model.keys.len().max(1)));
        depths.extend(thin(&(8..=deepest).step_by(8).collect::<Vec<_>>(), count));
        depths.sort_unstable();
        depths.dedup();
        depths
    }

    /// Prices sets of some depths up to `deepest` with some lengths, then depths and lengths near the best, in some rounds.
    fn run_near_best(&mut self, (mut depths, deepest): (Vec<u32>, u32), mut lengths: Vec<u32>) {
        let breadth = self.breadth;
        let mut sets = self.exact_sets(&depths);
        self.run_sets(&sets, &lengths);
        for _ in 0..breadth.rounds {
            let (mut finer_lengths, mut finer_depths) = (Vec::new(), Vec::new());
            for (_, best) in self.best_kinds.into_iter().flatten() {
                finer_lengths.extend(self.finer_lengths(&lengths, best.prefix, breadth.finer));
                if let Stage::Set { depth, .. } = best.first {
                    finer_depths = finer(&depths, depth, deepest, breadth.finer_depths);
                }
            }
            finer_lengths.sort_unstable();
            finer_lengths.dedup();
            if finer_lengths.is_empty() && finer_depths.is_empty() {
                return;
            }
            // The known sets with the new lengths, then the new sets with all lengths.
            self.run_lengths(&sets, &finer_lengths, true);
            lengths.extend(finer_lengths);
            lengths.sort_unstable();
            let finer_sets = self.exact_sets(&finer_depths);
            finer_sets.iter().for_each(|set| self.price_set(set));
            self.run_lengths(&finer_sets, &lengths, false);
            depths.extend(finer_depths);
            sets.extend(finer_sets);
            sets.sort_by_key(|(depth, _)| *depth);
        }
    }

    /// The sets of some depths that fit.
    fn exact_sets(&self, depths: &[u32]) -> Vec<(u32, SetSize)> {
        depths.iter().filter_map(|depth| self.exact_set(*depth)).collect()
    }

    /// Prices pairs of some lengths, then pairs near the best.
    fn run_pairs_near_best(&mut self, lengths: Vec<u32>) {
        let (mut firsts, mut seconds) = (lengths.clone(), lengths);
        self.run_pairs(&pairs(&firsts, &seconds));
        for _ in 0..self.breadth.pair_rounds {
            let Some((_, Design { first: Stage::Bloom { depth, .. }, prefix, .. }, _)) = self.best else {
                return;
            };
            let count = self.breadth.finer_pairs;
            let mut finer_firsts = self.finer_lengths(&firsts, depth, count);
            let mut finer_seconds = self.finer_lengths(&seconds, prefix, count);
            if finer_firsts.is_empty() && finer_seconds.is_empty() {
                return;
            }
            firsts.extend(&finer_firsts);
            seconds.extend(&finer_seconds);
            finer_firsts.push(depth);
            finer_seconds.push(prefix);
            let mut near = pairs(&finer_firsts, &finer_seconds);
            near.retain(|pair| *pair != (depth, prefix));
            self.run_pairs(&near);
        }
    }

    /// The greatest depth whose set fits, and the depths up to the next multiple of the unit; sizes almost always grow with the depth.
    fn deepest_set(&self) -> u32 {
        let unit = self.breadth.depth_unit;
        let has_set = |depth: u32| self.exact_set(depth * unit).is_some();
        let (mut fits, mut fails) = (0, self.model.bit_count() / unit + 1);
        // Steps up from 0, because sizing a set that is far too large is expensive.
        let mut step = 16;
        while fits + step < fails {
            if !has_set(fits + step) {
                fails = fits + step;
                break;
            }
            fits += step;
            step *= 2;
        }
        while fits + 1 < fails {
            let middle = u32::midpoint(fits, fails);
            if has_set(middle) { fits = middle } else { fails = middle }
        }
        (fits + 1) * unit - 1
    }

    /// Evenly spaced lengths, and lengths just beyond the common prefixes of queries and keys and of the ends of queries.
    fn coarse_lengths(&self, count: usize) -> Vec<u32> {
        let all = self.model.lengths();
        let queries = &self.model.counts.queries;
        let mut near: Vec<u32> = queries.iter().map(|query| query.near() + 1).collect();
        let mut ends: Vec<u32> = queries.iter().map(|query| query.shared_ends).collect();
        let even = evenly_spaced(all.len() as u32, count / 3);
        let length_at = |place: u32| all.get(place as usize - 1).copied();
        let mut lengths: Vec<u32> = even.into_iter().filter_map(length_at).collect();
        steps::count(2 * queries.len());
        for list in [&mut near, &mut ends] {
            list.sort_unstable();
            let step = (list.len() / (count / 3)).max(1);
            lengths.extend(list.iter().step_by(step).chain(list.last()));
        }
        lengths.retain(|length| (1..=self.model.bit_count()).contains(length));
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// At most `count` evenly spaced lengths between the neighbours of a length in a list; none if it is no prefix length.
    fn finer_lengths(&self, lengths: &[u32], length: u32, count: usize) -> Vec<u32> {
        let all = self.model.lengths();
        let between = between(lengths, length, self.model.bit_count());
        let first = all.partition_point(|other| *other < between.start);
        let inside = all.iter().skip(first).copied().take_while(|other| *other < between.end);
        let new: Vec<u32> = inside.filter(|other| !lengths.contains(other)).collect();
        steps::count(new.len() * lengths.len());
        thin(&new, count)
    }

    /// Prices two Bloom filters of these lengths.
    fn run_pairs(&mut self, pairs: &[(u32, u32)]) {
        if self.keeps_all {
            let every: Vec<usize> = (0..self.model.counts.queries.len()).collect();
            for share in PAIR_SHARES.iter().take(LISTED_SHARES) {
                pairs.iter().for_each(|pair| self.price_pair(*pair, *share, &every));
            }
            return;
        }
        let Breadth { is_full, pair_designs: [to_second, to_third], pair_shares, .. } = self.breadth;
        let [few, some, all] = PAIR_QUERIES.map(|count| self.some_queries(count));
        let by_rank = |left: &PairDesign, right: &PairDesign| left.rank.total_cmp(&right.rank);
        // The best lengths hardly depend on the layout.
        let one_layout = self.layouts.get(..1).unwrap_or_default();
        let mut first: Vec<PairDesign> =
            pairs.iter().flat_map(|pair| self.pair_designs(*pair, 0.5, one_layout, &few)).collect();
        first.sort_by(by_rank);
        // If cache lines are free, the layout with the lowest rate is never worse.
        let layouts = if self.prices.probe > 0.0 && is_full { self.layouts } else { one_layout };
        let shares = |design: &PairDesign| {
            let shares = PAIR_SHARES.iter().take(pair_shares);
            shares
                .flat_map(|share| self.pair_designs(design.lengths, *share, layouts, &some))
                .collect::<Vec<_>>()
        };
        let mut second: Vec<PairDesign> = first.iter().take(to_second).flat_map(shares).collect();
        second.sort_by(by_rank);
        for PairDesign { lengths, share, layout, .. } in second.iter().take(to_third) {
            if let Some(design) = self.pair_design(*lengths, *share, *layout, &all) {
                self.keep_pair(&design);
            }
        }
    }

    /// The indices of `count` queries, evenly spaced in the sample.
    fn some_queries(&self, count: usize) -> Vec<usize> {
        let total = self.model.counts.queries.len();
        let taken = count.min(total);
        (0..taken).map(|index| index * total / taken.max(1)).collect()
    }

    fn price_pair(&mut self, lengths: (u32, u32), share: f64, queries: &[usize]) {
        for design in self.pair_designs(lengths, share, self.layouts, queries) {
            self.keep_pair(&design);
        }
    }

    fn keep_pair(&mut self, pair: &PairDesign) {
        let first = Stage::Bloom { depth: pair.lengths.0, share: pair.share };
        self.keep(pair.rank, Design { first, prefix: pair.lengths.1, layout: pair.layout }, pair.prediction);
    }

    /// Two filters on some sample queries, the second in some layouts.
    fn pair_designs(
        &self,
        lengths: (u32, u32),
        share: f64,
        layouts: &[BloomLayout],
        queries: &[usize],
    ) -> Vec<PairDesign> {
        layouts.iter().filter_map(|layout| self.pair_design(lengths, share, *layout, queries)).collect()
    }

    /// Two filters on some sample queries; the first is always spread.
    fn pair_design(
        &self,
        lengths @ (first, second): (u32, u32),
        share: f64,
        layout: BloomLayout,
        queries: &[usize],
    ) -> Option<PairDesign> {
        let first_bytes = (self.budget_bytes as f64 * share) as u64;
        let one = best_rate(BloomLayout::Spread, first_bytes, self.prefix_count(first))?;
        let rest = self.budget_bytes - one.bytes;
        let two = best_rate(layout, rest, self.prefix_count(second))?;
        let pair = Pair::new((first, one.rate), (second, two.rate), self.cap());
        let (mut fpr, mut probes, mut lines) = (0.0, 0.0, 0.0);
        steps::count(queries.len());
        for index in queries {
            let Some(query) = self.model.counts.queries.get(*index) else { continue };
            let Expected { rate, probes: [to_first, to_second] } = pair.expected(query);
            fpr += rate;
            probes += to_first + to_second;
            lines += to_first * BloomLayout::Spread.lines_touched() + to_second * layout.lines_touched();
        }
        let total = (queries.len() as f64).max(1.0);
        let (fpr, probes, lines) = (fpr / total, probes / total, lines / total);
        let hidden = self.model.near.hidden(second) + two.rate * self.model.near.hidden(first);
        let rank = (fpr + hidden) * self.prices.read + self.prices.probe * lines;
        let (first_bytes, bloom_bytes) = (one.bytes, two.bytes);
        let prediction = Prediction { fpr, probes, cost: rank, first_bytes, bloom_bytes };
        Some(PairDesign { lengths, share, layout, rank, prediction })
    }
}

/// Two Bloom filters and their prediction.
#[derive(Debug, Clone, Copy)]
struct PairDesign {
    lengths: (u32, u32),
    share: f64,
    layout: BloomLayout,
    rank: f64,
    prediction: Prediction,
}

/// All pairs of a first length and a longer second one.
fn pairs(firsts: &[u32], seconds: &[u32]) -> Vec<(u32, u32)> {
    let behind = |first: &u32| {
        let first = *first;
        seconds.iter().filter(move |second| first < **second).map(move |second| (first, *second))
    };
    firsts.iter().flat_map(behind).collect()
}

/// At most `count` evenly spaced lengths from 1 to `longest`, the longest included.
fn evenly_spaced(longest: u32, count: usize) -> Vec<u32> {
    let count = (count as u32).clamp(1, longest.max(1));
    let mut lengths: Vec<u32> =
        (1..=count).map(|index| (u64::from(index) * u64::from(longest) / u64::from(count)) as u32).collect();
    lengths.retain(|length| *length > 0);
    lengths
}

/// The numbers between the neighbours of a length in a list; empty if it is no prefix length.
fn between(lengths: &[u32], length: u32, longest: u32) -> Range<u32> {
    if length == 0 || length == WHOLE_KEYS {
        return 0..0;
    }
    let below = lengths.iter().copied().filter(|other| *other < length).max().unwrap_or(0);
    let above = lengths.iter().copied().filter(|other| *other > length).min().unwrap_or(longest);
    below + 1..above.min(longest) + 1
}

/// At most `count` evenly spaced depths between the neighbours of a depth in a list.
fn finer(depths: &[u32], depth: u32, deepest: u32, count: usize) -> Vec<u32> {
    let new: Vec<u32> = between(depths, depth, deepest).filter(|other| !depths.contains(other)).collect();
    steps::count(new.len() * depths.len());
    thin(&new, count)
}

/// At most `count` evenly spaced elements of a list.
fn thin(list: &[u32], count: usize) -> Vec<u32> {
    list.iter().copied().step_by(list.len().div_ceil(count).max(1)).collect()
}
