//! Keys and queries of the group.

use std::sync::Arc;

use tamis_workload::{
    KeySet as IntegerSet, NON_EMPTY_SEED, PUBLIC_KEY_SEED, QUERY_SEED, QuerySet, non_empty_ranges,
};

use crate::words::{key_set, words, words_input};
use tamis_bench::{
    BenchError, Context,
    filter::{FilterInput, Ranges},
};

/// The offsets of the seeds from the public ones: none, and those of the second column.
pub(super) const SEED_DISTANCES: [u64; 2] = [0, 100];
/// Number of queries per set.
const QUERY_COUNT: usize = 1_000_000;

/// Integer keys with the public seed plus a distance.
fn integers(set: IntegerSet, count: usize, distance: u64) -> Vec<u64> {
    set.generate(count, PUBLIC_KEY_SEED + distance)
}

/// An input of the reference program: keys, queries, and ranges with a key. `None` if the word list is not installed.
pub(super) fn published(
    context: &mut Context<'_>,
    (key_set_name, key_count): (&str, u64),
    query_set: &str,
    distance: u64,
) -> Result<Option<Arc<FilterInput>>, BenchError> {
    let name = format!("{key_set_name} {key_count} {query_set} {distance}");
    if key_set_name == "words" {
        let Some((keys, queries)) = words()? else { return Ok(None) };
        return context.input(&name, |_| words_input(&keys, &queries, query_set)).map(Some);
    }
    let set: IntegerSet = key_set_name.parse().map_err(BenchError::other)?;
    let of: QuerySet = query_set.parse().map_err(BenchError::other)?;
    let build = |_: &mut Context<'_>| {
        let keys = integers(set, key_count as usize, distance);
        let query_count = QUERY_COUNT.min(key_count as usize * 10);
        let queries =
            of.generate(set, &keys, query_count, QUERY_SEED + distance).map_err(BenchError::other)?;
        let present = non_empty_ranges(&keys, QUERY_COUNT / 10, NON_EMPTY_SEED + distance);
        let bytes: Vec<[u8; 8]> = keys.iter().map(|key| key.to_be_bytes()).collect();
        Ok(FilterInput {
            keys: key_set(bytes.iter().map(<[u8; 8]>::as_slice))?.into(),
            queries: Ranges::from_integers(&queries),
            samples: Ranges::default(),
            present: Ranges::from_integers(&present),
        })
    };
    context.input(&name, build).map(Some)
}
