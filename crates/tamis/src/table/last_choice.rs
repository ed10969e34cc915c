//! The last filters that were chosen for the tables of one level of a keyspace, for new tables or by checks of tables.
//!
//! A search for the best filters takes longer than writing the table, several times as long as the expected cost of given filters. Tables
//! that are written one after another mostly have similar keys. So the filters of the last search are used again while nothing has
//! changed much ([`Circumstances::are_like`]), and they cost about as much for the keys of the new table as for those for which they were
//! found. Their rates are computed for each table; the runners-up are those of the search. A refill of the sample, which shows that the
//! queries have changed, ends their use.
//!
//! A search while a table is written is quick ([`Effort::Quick`]): it compares the last filters with those that need no search over a model.
//! Its table, and those that use its filters, are checked soon (`compaction/filter_check.rs`). The check searches thoroughly, and the next tables use
//! the filters that it finds.
//!
//! For a small table even the computation of the rates takes as long as writing it, and few of the sampled queries reach it, so that a search
//! would mostly see the assumed workload. A flush of the partitioned layout writes many such tables. Small tables take the choice and the rates
//! of the last search, which is repeated once for so many of their keys that it takes about a tenth of the time in which they are written, and
//! for a table that overlaps so many others that its filters would have too many false positives.

use std::sync::Arc;

use tamis_filter::{
    KeySet,
    auto::{self, Choice, Effort, Part, Request, Scored},
};

use crate::{query_sample::SampleAge, sync::Mutex};

/// Filters that cost at most this multiple of the cost when they were found are used again: less than the multiple at which a check replaces
/// filters that were searched thoroughly.
const COST_GROWTH_MAX: f64 = 1.25;
/// Prices and numbers of keys are alike within this factor, budgets within the next one.
const LIKE: f64 = 2.0;
const LIKE_BITS: f64 = 1.25;
/// New sampled queries after which a search is repeated, or as many as it had.
const NEW_QUERIES_MAX: u64 = 2_000;
/// Tables after which a search is repeated: the keys may change slowly.
const USES_MAX: u32 = 32;
/// A table with fewer keys is small.
pub(crate) const SMALL_KEYS: usize = 16_384;
/// The choice for a small table serves tables with at most so many times its keys.
const SERVED_GROWTH_MAX: f64 = 4.0;
/// Keys of small tables after which a search is repeated.
const SMALL_KEYS_MAX: usize = 65_536;

/// The numbers on which a search depends besides keys and queries.
#[derive(Debug, Clone, Copy)]
struct Circumstances {
    key_count: f64,
    bits_per_key_max: f64,
    read_ns: f64,
    bit_ns: f64,
    overlapping_tables: u32,
    sample: SampleAge,
}

impl Circumstances {
    fn of(key_count: usize, request: &Request<'_>, sample: SampleAge) -> Self {
        Self {
            key_count: key_count as f64,
            bits_per_key_max: request.bits_per_key_max,
            read_ns: request.prices.read_ns,
            bit_ns: request.prices.bit_ns,
            overlapping_tables: request.overlapping_tables,
            sample,
        }
    }

    fn are_like(&self, found: &Self) -> bool {
        self.have_like_prices(found)
            && self.is_within(found, |one| one.key_count, LIKE)
            && self.is_within(found, |one| one.bits_per_key_max, LIKE_BITS)
            && self.is_within(found, |one| one.overlapping_tables.into(), LIKE)
    }

    /// Whether prices and queries have not changed much.
    fn have_like_prices(&self, found: &Self) -> bool {
        let new_queries = self.sample.sampled_count.saturating_sub(found.sample.sampled_count);
        self.is_within(found, |one| one.read_ns, LIKE)
            && self.is_within(found, |one| one.bit_ns, LIKE)
            && self.sample.refills == found.sample.refills
            && new_queries <= found.sample.sampled_count.min(NEW_QUERIES_MAX)
    }

    fn is_within(&self, found: &Self, of: fn(&Self) -> f64, factor: f64) -> bool {
        let ratio = of(self) / of(found);
        (1.0 / factor..=factor).contains(&ratio)
    }
}

/// The result of a search.
#[derive(Debug, Clone)]
struct Found {
    choice: Choice,
    circumstances: Circumstances,
    /// By a check, or for a small table.
    is_thorough: bool,
    use_count: u32,
    /// Keys of small tables for which it was used.
    small_keys: usize,
}

impl Found {
    /// Whether a small table takes the choice without a computation.
    fn serves_small(&self, key_count: usize, circumstances: &Circumstances) -> bool {
        self.small_keys + key_count <= SMALL_KEYS_MAX
            && circumstances.key_count <= SERVED_GROWTH_MAX * self.circumstances.key_count
            && circumstances.have_like_prices(&self.circumstances)
            && self.choice.chosen.bits_per_key <= circumstances.bits_per_key_max
            && self.serves_overlap(circumstances.overlapping_tables)
    }

    /// Whether its filters have few enough false positives in so many tables, or a search found none that have. A search for more tables serves fewer
    /// ones, so that tables with different numbers do not repeat it in turn.
    fn serves_overlap(&self, overlapping_tables: u32) -> bool {
        let own = self.circumstances.overlapping_tables;
        let meets_targets = |count| auto::meets_targets(&self.choice.chosen.false_positive_rates, count);
        self.choice.empty_queries < auto::SAMPLE_MIN
            || meets_targets(overlapping_tables)
            || !meets_targets(own) && f64::from(overlapping_tables) <= LIKE * f64::from(own)
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct LastChoice(Mutex<Option<Found>>);

impl LastChoice {
    /// The filters for these keys: those of the last search, or of a new one. A new small table was asked for before
    /// ([`LastChoice::for_small`]).
    /// Also returns whether they are those of the last search.
    pub(super) fn choose(
        &self,
        keys: &Arc<KeySet>,
        request: &Request<'_>,
        sample: SampleAge,
    ) -> (Choice, bool) {
        let circumstances = Circumstances::of(keys.len(), request, sample);
        // Not locked during a search: several tables may be written at once.
        if (keys.len() >= SMALL_KEYS || request.current.is_some())
            && let Some(choice) = self.use_again(keys, request, &circumstances)
        {
            return (choice, true);
        }
        (self.search(keys, request, sample), false)
    }

    /// The filters of a new search, which the next tables use. A quick search compares them with the last ones.
    pub(super) fn search(&self, keys: &Arc<KeySet>, request: &Request<'_>, sample: SampleAge) -> Choice {
        let is_thorough = request.effort == Effort::Background
            || request.effort == Effort::Write && keys.len() < SMALL_KEYS;
        let last = if request.effort != Effort::Quick || request.current.is_some() {
            None
        } else {
            self.0.lock().clone()
        };
        let choice = last
            .map(|last| {
                let current = Some(&last.choice.chosen.parts[..]);
                auto::choose(keys, &Request { current, ..*request })
            })
            // Without sampled queries among the keys the last filters would be kept.
            .filter(|choice| choice.empty_queries > 0)
            .unwrap_or_else(|| auto::choose(keys, request));
        // Without sampled queries among its keys a table keeps the filters that it has.
        if request.current.is_none() || choice.empty_queries > 0 {
            let circumstances = Circumstances::of(keys.len(), request, sample);
            self.note(keys.len(), &choice, circumstances, is_thorough);
        }
        choice
    }

    /// Keeps the choice of a search, unless it says little about other tables.
    fn note(&self, key_count: usize, choice: &Choice, circumstances: Circumstances, is_thorough: bool) {
        let mut last = self.0.lock();
        let is_based_on_queries = |choice: &Choice| choice.empty_queries >= auto::SAMPLE_MIN;
        match &mut *last {
            // The queries reach other small tables than this one, whose choice is for the assumed workload.
            Some(found)
                if key_count < SMALL_KEYS
                    && is_based_on_queries(&found.choice)
                    && !is_based_on_queries(choice)
                    && circumstances.have_like_prices(&found.circumstances) =>
            {
                found.small_keys = 0;
            }
            _ => {
                let choice = Choice { was_cut: choice.was_cut && !is_thorough, ..choice.clone() };
                *last = Some(Found { choice, circumstances, is_thorough, use_count: 0, small_keys: 0 });
            }
        }
    }

    /// The filters for so many keys, if they are few and the last search serves them. The queries of the request are not needed.
    pub(super) fn for_small(
        &self,
        key_count: usize,
        request: &Request<'_>,
        sample: SampleAge,
    ) -> Option<Choice> {
        if key_count >= SMALL_KEYS {
            return None;
        }
        let circumstances = Circumstances::of(key_count, request, sample);
        let mut last = self.0.lock();
        let found = last.as_mut().filter(|found| found.serves_small(key_count, &circumstances))?;
        found.small_keys += key_count;
        Some(found.choice.clone())
    }

    fn use_again(
        &self,
        keys: &Arc<KeySet>,
        request: &Request<'_>,
        circumstances: &Circumstances,
    ) -> Option<Choice> {
        let last = self.0.lock().clone()?;
        let is_like = last.use_count < USES_MAX
            && (last.is_thorough || request.effort != Effort::Background)
            // The search for a small table was a short one.
            && (last.circumstances.key_count >= SMALL_KEYS as f64 || keys.len() < SMALL_KEYS)
            && circumstances.are_like(&last.circumstances);
        let choice = is_like.then(|| again(keys, request, last)).flatten()?;
        if let Some(last) = &mut *self.0.lock() {
            last.use_count += 1;
        }
        Some(choice)
    }
}

/// The choice of filters that were found for other keys, if they cost about as much for these, and have few enough false positives.
fn again(keys: &Arc<KeySet>, request: &Request<'_>, last: Found) -> Option<Choice> {
    let Found { choice: found, circumstances, .. } = last;
    let parts: &[Part] = &found.chosen.parts;
    let (chosen, empty_queries) = auto::price(keys, request, parts);
    let is_sampled = empty_queries >= auto::SAMPLE_MIN;
    let meets_targets = |scored: &Scored, overlapping_tables: u32| {
        !is_sampled || auto::meets_targets(&scored.false_positive_rates, overlapping_tables)
    };
    let is_like = chosen.cost_ns <= found.chosen.cost_ns * COST_GROWTH_MAX
        && chosen.bits_per_key <= request.bits_per_key_max
        && is_sampled == (found.empty_queries >= auto::SAMPLE_MIN)
        // The search found none that do, or none that cost little.
        && (meets_targets(&chosen, request.overlapping_tables)
            || !meets_targets(&found.chosen, circumstances.overlapping_tables));
    is_like.then(|| {
        let current =
            request.current.map_or_else(|| chosen.clone(), |parts| auto::price(keys, request, parts).0);
        Choice { current, chosen, empty_queries, ..found }
    })
}

#[cfg(test)]
mod tests;
