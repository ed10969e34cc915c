//! The last filters that were chosen for the tables of one level of a keyspace: for new tables, or by urgent checks of tables.
//!
//! A search for the best filters takes longer than writing the table, several times as long as the expected cost of given filters. Tables
//! that are written one after another mostly have similar keys. So the filters of the last search are used again while nothing has
//! changed much ([`Circumstances::are_like`]), and they cost about as much for the keys of the new table as for those for which they were
//! found. Their rates are computed for each table; the runners-up are those of the search. A refill of the sample, which shows that the
//! queries have changed, ends their use.

use std::sync::Arc;

use parking_lot::Mutex;
use tamis_filter::{
    KeySet,
    auto::{self, Choice, Part, Request},
};

use crate::query_sample::SampleAge;

/// Filters that cost at most this multiple of the cost when they were found are used again: less than the multiple at which a check replaces
/// them.
const COST_GROWTH_MAX: f64 = 1.25;
/// Prices and numbers of keys are alike within this factor, budgets within the next one.
const LIKE: f64 = 2.0;
const LIKE_BITS: f64 = 1.25;
/// New sampled queries after which a search is repeated, or as many as it had.
const NEW_QUERIES_MAX: u64 = 2_000;
/// Tables after which a search is repeated: the keys may change slowly.
const USES_MAX: u32 = 32;

/// The numbers on which a search depends besides keys and queries.
#[derive(Debug, Clone, Copy)]
struct Circumstances {
    key_count: f64,
    bits_per_key_max: f64,
    read_ns: f64,
    bit_ns: f64,
    sample: SampleAge,
}

impl Circumstances {
    fn are_like(&self, found: &Self) -> bool {
        let within = |of: fn(&Self) -> f64, factor: f64| {
            let ratio = of(self) / of(found);
            (1.0 / factor..=factor).contains(&ratio)
        };
        let new_queries = self.sample.sampled_count.saturating_sub(found.sample.sampled_count);
        within(|one| one.key_count, LIKE)
            && within(|one| one.read_ns, LIKE)
            && within(|one| one.bit_ns, LIKE)
            && within(|one| one.bits_per_key_max, LIKE_BITS)
            && self.sample.refills == found.sample.refills
            && new_queries <= found.sample.sampled_count.min(NEW_QUERIES_MAX)
    }
}

/// The result of a search.
#[derive(Debug, Clone)]
struct Found {
    choice: Choice,
    circumstances: Circumstances,
    use_count: u32,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct LastChoice(Mutex<Option<Found>>);

impl LastChoice {
    /// The filters for these keys: those of the last search, or of a new one.
    pub(super) fn choose(&self, keys: &Arc<KeySet>, request: &Request<'_>, sample: SampleAge) -> Choice {
        let circumstances = Circumstances {
            key_count: keys.len() as f64,
            bits_per_key_max: request.bits_per_key_max,
            read_ns: request.prices.read_ns,
            bit_ns: request.prices.bit_ns,
            sample,
        };
        // Not locked during a search: several tables may be written at once.
        let last = self.0.lock().clone();
        let last =
            last.filter(|last| last.use_count < USES_MAX && circumstances.are_like(&last.circumstances));
        if let Some(choice) = last.and_then(|last| again(keys, request, last.choice)) {
            if let Some(last) = &mut *self.0.lock() {
                last.use_count += 1;
            }
            return choice;
        }
        let choice = auto::choose(keys, request);
        *self.0.lock() = Some(Found { choice: choice.clone(), circumstances, use_count: 0 });
        choice
    }
}

/// The choice of filters that were found for other keys, if they cost about as much for these.
fn again(keys: &Arc<KeySet>, request: &Request<'_>, found: Choice) -> Option<Choice> {
    let parts: &[Part] = &found.chosen.parts;
    let (chosen, empty_queries) = auto::price(keys, request, parts);
    let is_like = chosen.cost_ns <= found.chosen.cost_ns * COST_GROWTH_MAX
        && chosen.bits_per_key <= request.bits_per_key_max
        && (empty_queries < auto::SAMPLE_MIN) == (found.empty_queries < auto::SAMPLE_MIN);
    is_like.then(|| {
        let current =
            request.current.map_or_else(|| chosen.clone(), |parts| auto::price(keys, request, parts).0);
        Choice { current, chosen, empty_queries, ..found }
    })
}

#[cfg(test)]
mod tests;
