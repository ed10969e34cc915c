//! The filters that the automatic choice gives to the tables of one policy.
//!
//! Tables that are written one after another mostly have similar keys, and a search for the best filters takes several
//! times as long as the expected cost of given filters. So the filters of the last search are kept while they cost about as
//! much for the keys of the next table as they did when they were found, and the sample has few new queries.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tamis_filter::KeySet;
use tamis_filter::auto::{Part, Request, choose, score};

/// Filters that cost at most this multiple of what they cost when they were found are kept.
const COST_GROWTH_MAX: f64 = 1.1;

/// A search is repeated after so many new queries in the sample, or as many as it had.
const NEW_QUERIES_MAX: u64 = 1024;

/// The result of a search.
#[derive(Debug, Clone)]
struct Found {
    parts: Vec<Part>,
    cost_ns: f64,
    /// The number of queries that the sample had taken at that time.
    taken: u64,
}

/// The result of the last search.
#[derive(Debug, Default)]
pub(crate) struct LastChoice(Mutex<Option<Found>>);

impl LastChoice {
    /// The filters of a table, and whether they were searched for. `taken` is the number of queries that the sample has taken.
    pub(crate) fn parts(&self, keys: &Arc<KeySet>, request: &Request<'_>, taken: u64) -> (Vec<Part>, bool) {
        // The lock is not held during a search: tables are built at the same time.
        let last = self.locked().clone();
        let is_current =
            |found: &Found| taken.saturating_sub(found.taken) <= found.taken.min(NEW_QUERIES_MAX);
        if let Some(found) = last.filter(is_current) {
            let scored = score(keys, request, std::slice::from_ref(&found.parts));
            let is_good = |cost_ns: f64, bits: f64| {
                cost_ns <= found.cost_ns * COST_GROWTH_MAX && bits <= request.bits_per_key_max
            };
            if scored.first().is_some_and(|scored| is_good(scored.cost_ns, scored.bits_per_key)) {
                return (found.parts, false);
            }
        }
        let chosen = choose(keys, request).chosen;
        let found = Found { parts: chosen.parts.clone(), cost_ns: chosen.cost_ns, taken };
        *self.locked() = Some(found);
        (chosen.parts, true)
    }

    /// A panic of another thread leaves the value valid: it changes by one assignment.
    fn locked(&self) -> MutexGuard<'_, Option<Found>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
