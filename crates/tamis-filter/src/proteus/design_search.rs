//! Searches the designs of a family and keeps the cheapest one, or all.
//!
//! Integers: every depth whose set fits, with every longer prefix length.
//!
//! Strings: the lengths that keys and queries distinguish ([`Model::lengths`]). Of more than [`ALL_LENGTHS`], first [`COARSE`] lengths, some
//! evenly spaced and some at which queries of the sample differ from the keys and in their ends, and some set depths. Then the lengths between
//! the neighbours of the best one, with a set and without, in up to [`FINER_ROUNDS`] rounds.
//!
//! 2PBF: all pairs of lengths on a few queries of the sample, the best of them with other shares of the budget on more queries, the best of
//! those on all. Of strings, pairs of coarse lengths first, then pairs near the best.

use std::ops::Range;

use super::bloom::best_rate;
use super::design::{BloomLayout, Design, Prediction, Prices, Stage, WHOLE_KEYS};
use super::keys::Keys;
use super::model::{ALL_LENGTHS, Model, is_surely_best, set_lines, whole_set};
use super::query_histogram::{Histogram, QueryHistogram};
use super::sizes::{SetSize, estimated_size};
use super::two_bloom_model::{Expected, Pair};
use crate::{Budget, BuildError, Family, steps};

/// Prefix lengths of the first round for longer strings.
const COARSE: usize = 192;
/// Set depths of the first round for strings, besides those of whole bytes, which are the most compact.
const COARSE_SETS: usize = 12;
/// The size of a set takes a scan of the keys. The first round has more depths for few keys, so that it scans about this many keys.
const SET_KEYS: usize = 1 << 26;
/// Lengths of strings in the first pairs, and lengths of each filter near the best pair.
const COARSE_PAIRS: usize = 48;
const FINER_PAIRS: usize = 16;
/// Rounds of finer lengths: three reach all lengths between two coarse ones for keys of some kilobytes.
const FINER_ROUNDS: usize = 3;
/// Depths from the best one on whose exact size is computed.
const EXACT_DEPTHS: u32 = 3;

/// How many designs the search for an automatic choice tries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuickSearch {
    /// Prefix lengths and set depths of the first round, those of each finer round, and the number of finer rounds.
    lengths: usize,
    depths: usize,
    finer: usize,
    rounds: usize,
    /// Of two Bloom filters, the designs that reach the next round, and the shares.
    pair_designs: [usize; 2],
    pair_shares: usize,
}

impl QuickSearch {
    /// While a table is written.
    pub(crate) const FEW: Self =
        Self { lengths: 20, depths: 12, finer: 6, rounds: 2, pair_designs: [6, 4], pair_shares: 3 };
    /// In the background: takes about four times as long.
    pub(crate) const MANY: Self =
        Self { lengths: 40, depths: 24, finer: 12, rounds: 3, pair_designs: [16, 6], pair_shares: 5 };
}

const QUICK_DEPTH_STEP: u32 = 4;
const QUICK_PAIR_QUERIES: [usize; 3] = [192, 1024, usize::MAX];

/// Sample queries of each round of 2PBF, designs that reach the next round, and shares of the first filter.
const PAIR_QUERIES: [usize; 3] = [192, 1024, usize::MAX];
const PAIR_DESIGNS: [usize; 2] = [24, 6];
const PAIR_SHARES: [f64; 7] = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8];
/// Number of shares for the list of all designs: those of the paper.
const LISTED_SHARES: usize = 3;

impl Model<'_> {
    /// Every design of a family of this module within a budget, each with its prediction. For byte strings: the designs that the search
    /// prices. Without sample queries: the default design in each layout.
    pub fn designs(
        &self,
        family: Family,
        budget: Budget,
        prices: &Prices,
    ) -> Result<Vec<(Design, Prediction)>, BuildError> {
        let mut search = Search::all(self, family, self.budget_bytes(family, budget)?, prices);
        search.run();
        Ok(search.finish_all())
    }

    /// The cheapest design. Without sample queries: the default design, see the module's documentation.
    pub fn choose(
        &self,
        family: Family,
        budget: Budget,
        prices: &Prices,
    ) -> Result<(Design, Prediction), BuildError> {
        self.choose_in(None, family, budget, prices)
    }

    /// [`Model::choose`] with fewer lengths, all of which the parameters of a filter can express: takes a tenth of the time or half.
    pub(crate) fn choose_quickly(
        &self,
        quick: QuickSearch,
        family: Family,
        budget: Budget,
        prices: &Prices,
    ) -> Option<Design> {
        let prices = &prices.usable();
        let budget_bytes = self.budget_bytes(family, budget).ok()?;
        let whole = whole_set(family, &self.keys, budget_bytes, prices);
        if let Some((design, _)) = whole.filter(|(_, whole)| is_surely_best(whole, prices)) {
            return Some(design);
        }
        let mut search = Search { quick: Some(quick), ..Search::best(self, family, budget_bytes, prices) };
        search.run();
        search.best.map(|(_, design, _)| design)
    }

    /// [`Model::choose`], restricted to a layout if one is given.
    pub(super) fn choose_in(
        &self,
        layout: Option<BloomLayout>,
        family: Family,
        budget: Budget,
        prices: &Prices,
    ) -> Result<(Design, Prediction), BuildError> {
        let prices = &prices.usable();
        let budget_bytes = self.budget_bytes(family, budget)?;
        if let Some(whole) = whole_set(family, &self.keys, budget_bytes, prices)
            && (self.counts.queries.is_empty() || is_surely_best(&whole.1, prices))
        {
            return Ok(whole);
        }
        let mut search = Search::best(self, family, budget_bytes, prices).with_layout(layout);
        search.run();
        Ok(search.finish_best())
    }

    /// The prediction for a design; `None` if it exceeds the budget or is not one of the family, and without sample queries.
    pub fn predict(
        &self,
        family: Family,
        design: &Design,
        budget: Budget,
        prices: &Prices,
    ) -> Result<Option<Prediction>, BuildError> {
        let mut search = Search::all(self, family, self.budget_bytes(family, budget)?, prices);
        search.only(design);
        let mut found = search.finish_all();
        found.retain(|(found, _)| found.layout == design.layout);
        Ok(found.pop().map(|(_, prediction)| prediction))
    }
}

/// A search of the designs.
pub(super) struct Search<'m, 'a> {
    model: &'m Model<'a>,
    family: Family,
    budget_bytes: u64,
    prices: Prices,
    /// The possible layouts of the second stage.
    layouts: &'static [BloomLayout],
    keeps_all: bool,
    /// See [`Model::choose_quickly`].
    quick: Option<QuickSearch>,
    all: Vec<(Design, Prediction)>,
    best: Option<(f64, Design, Prediction)>,
    /// The cheapest design without a set, and with one.
    best_kinds: [Option<(f64, Design)>; 2],
}

impl<'m, 'a> Search<'m, 'a> {
    /// Keeps the cheapest design.
    pub(super) fn best(model: &'m Model<'a>, family: Family, budget_bytes: u64, prices: &Prices) -> Self {
        let (prices, layouts) = (prices.usable(), &BloomLayout::ALL[..]);
        Self {
            model,
            family,
            budget_bytes,
            prices,
            layouts,
            keeps_all: false,
            quick: None,
            all: Vec::new(),
            best: None,
            best_kinds: [None; 2],
        }
    }

    /// Restricts the search to a layout, if one is given.
    pub(super) fn with_layout(self, layout: Option<BloomLayout>) -> Self {
        let layouts = match layout {
            Some(BloomLayout::Spread) => &[BloomLayout::Spread][..],
            Some(BloomLayout::Lines) => &[BloomLayout::Lines],
            None => self.layouts,
        };
        Self { layouts, ..self }
    }

    /// Keeps all designs.
    pub(super) fn all(model: &'m Model<'a>, family: Family, budget_bytes: u64, prices: &Prices) -> Self {
        Self { keeps_all: true, ..Self::best(model, family, budget_bytes, prices) }
    }

    pub(super) fn finish_all(self) -> Vec<(Design, Prediction)> {
        self.all
    }

    /// The cheapest design; if none fits, the empty one, which passes all queries.
    pub(super) fn finish_best(self) -> (Design, Prediction) {
        let nothing = Design { first: Stage::None, prefix: 0, layout: BloomLayout::Spread };
        let prediction =
            Prediction { fpr: 1.0, probes: 0.0, cost: self.prices.read, first_bytes: 0, bloom_bytes: 0 };
        self.best.map_or((nothing, prediction), |(_, design, prediction)| (design, prediction))
    }

    /// Prices the designs of the family.
    pub(super) fn run(&mut self) {
        if self.model.counts.queries.is_empty() {
            return self.run_without_sample();
        }
        if let Some(quick) = self.quick {
            return self.run_quickly(quick);
        }
        match &*self.model.keys {
            Keys::Words(fixed, _) => {
                let lengths: Vec<u32> = (1..=fixed.bit_count()).collect();
                if self.family == Family::TwoPrefixBloom {
                    self.run_pairs(&pairs(&lengths, &lengths));
                }
                let mut sets = self.integer_sets(&lengths);
                self.run_sets(&sets, &lengths);
                if self.refine_sets(&mut sets) {
                    self.best = None;
                    self.all.clear();
                    self.run_sets(&sets, &lengths);
                }
            }
            Keys::Strings(..) => self.run_strings(),
        }
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
    pub(super) fn only(&mut self, design: &Design) {
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

    /// All sets of integers that fit; sizes of tries are estimated.
    fn integer_sets(&self, lengths: &[u32]) -> Vec<(u32, SetSize)> {
        if self.family != Family::Proteus {
            return Vec::new();
        }
        let size =
            |depth: &u32| Some((*depth, estimated_size(&self.model.keys, &self.model.counts, *depth)?));
        lengths.iter().filter_map(size).filter(|(_, size)| size.bytes <= self.budget_bytes).collect()
    }

    /// Computes the exact sizes of the depths from the best one on; returns whether one changed.
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
            let Some(exact) = self.model.set_size(depth) else { continue };
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

    /// Prices few lengths and set depths, then some near the best.
    fn run_quickly(&mut self, quick: QuickSearch) {
        let lengths = self.coarse_lengths(quick.lengths);
        if self.family == Family::TwoPrefixBloom {
            return self.run_string_pairs(&lengths);
        }
        let deepest = self.deepest_quick_set();
        let depths = evenly_spaced(deepest, quick.depths);
        let finer = Finer { rounds: quick.rounds, lengths: quick.finer, depths: quick.finer };
        self.run_near_best((depths, deepest), lengths, finer);
    }

    /// The greatest depth whose set fits, to a multiple of [`QUICK_DEPTH_STEP`].
    fn deepest_quick_set(&self) -> u32 {
        if self.family != Family::Proteus {
            return 0;
        }
        let (mut fits, mut fails) = (0, self.model.bit_count() / QUICK_DEPTH_STEP + 1);
        while fits + 1 < fails {
            let middle = u32::midpoint(fits, fails);
            if self.exact_set(middle * QUICK_DEPTH_STEP).is_some() { fits = middle } else { fails = middle }
        }
        fits * QUICK_DEPTH_STEP + QUICK_DEPTH_STEP - 1
    }

    /// Prices coarse lengths, then those near the best.
    fn run_strings(&mut self) {
        if self.family == Family::TwoPrefixBloom {
            self.run_string_pairs(&self.coarse_lengths(COARSE_PAIRS));
        }
        let all = self.model.lengths();
        let mut lengths =
            if all.len() <= ALL_LENGTHS as usize { all.to_vec() } else { self.coarse_lengths(COARSE) };
        let deepest = if self.family == Family::Proteus { self.deepest_set() } else { 0 };
        let whole_bytes: Vec<u32> = (8..=deepest).step_by(8).collect();
        let mut depths = evenly_spaced(deepest, COARSE_SETS.max(SET_KEYS / self.model.keys.len().max(1)));
        depths.extend(thin(&whole_bytes, COARSE_SETS));
        depths.sort_unstable();
        depths.dedup();
        lengths.push(WHOLE_KEYS);
        let finer = Finer { rounds: FINER_ROUNDS, lengths: COARSE, depths: COARSE_SETS };
        self.run_near_best((depths, deepest), lengths, finer);
    }

    /// Prices sets of some depths up to `deepest` with some lengths, then depths and lengths near the best, in some rounds.
    fn run_near_best(&mut self, (mut depths, deepest): (Vec<u32>, u32), mut lengths: Vec<u32>, count: Finer) {
        let mut sets = self.exact_sets(&depths);
        self.run_sets(&sets, &lengths);
        for _ in 0..count.rounds {
            let (mut finer_lengths, mut finer_depths) = (Vec::new(), Vec::new());
            for (_, best) in self.best_kinds.into_iter().flatten() {
                finer_lengths.extend(self.finer_lengths(&lengths, best.prefix, count.lengths));
                if let Stage::Set { depth, .. } = best.first {
                    finer_depths = finer(&depths, depth, deepest, count.depths);
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

    /// Prices pairs of coarse lengths, then pairs near the best.
    fn run_string_pairs(&mut self, lengths: &[u32]) {
        let (mut firsts, mut seconds) = (lengths.to_vec(), lengths.to_vec());
        self.run_pairs(&pairs(&firsts, &seconds));
        let (rounds, finer_count) =
            self.quick.map_or((FINER_ROUNDS, FINER_PAIRS), |quick| (quick.rounds - 1, quick.finer));
        for _ in 0..rounds {
            let Some((_, Design { first: Stage::Bloom { depth, .. }, prefix, .. }, _)) = self.best else {
                return;
            };
            let mut finer_firsts = self.finer_lengths(&firsts, depth, finer_count);
            let mut finer_seconds = self.finer_lengths(&seconds, prefix, finer_count);
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

    /// The greatest depth whose set fits; sizes almost always grow with the depth.
    fn deepest_set(&self) -> u32 {
        let (mut fits, mut fails) = (0, self.model.bit_count() + 1);
        // Steps up from 0, because sizing a set that is far too large is expensive.
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
        let (counts, [to_second, to_third], share_count) = match self.quick {
            Some(quick) => (QUICK_PAIR_QUERIES, quick.pair_designs, quick.pair_shares),
            None => (PAIR_QUERIES, PAIR_DESIGNS, PAIR_SHARES.len()),
        };
        let [few, some, all] = counts.map(|count| self.some_queries(count));
        let by_rank = |left: &PairDesign, right: &PairDesign| left.rank.total_cmp(&right.rank);
        // The best lengths hardly depend on the layout.
        let one_layout = self.layouts.get(..1).unwrap_or_default();
        let mut first: Vec<PairDesign> =
            pairs.iter().flat_map(|pair| self.pair_designs(*pair, 0.5, one_layout, &few)).collect();
        first.sort_by(by_rank);
        // If cache lines are free, the layout with the lowest rate is never worse.
        let layouts = if self.prices.probe > 0.0 && self.quick.is_none() { self.layouts } else { one_layout };
        let shares = |design: &PairDesign| {
            let shares = PAIR_SHARES.iter().take(share_count);
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

/// The rounds of a search near the best design, and the new lengths and depths of each.
#[derive(Debug, Clone, Copy)]
struct Finer {
    rounds: usize,
    lengths: usize,
    depths: usize,
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
