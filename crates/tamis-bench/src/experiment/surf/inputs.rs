//! Keys and queries of the group.

use std::sync::Arc;

use tamis_filter::KeySet;
use tamis_workload::{
    KeySet as IntegerSet, NON_EMPTY_SEED, PUBLIC_KEY_SEED, QUERY_SEED, QuerySet, non_empty_ranges,
};

use crate::{
    BenchError, Context,
    filter::{FilterInput, Ranges},
};

/// The word list of the package wamerican-insane: the string set of the reference.
const WORD_FILE: &str = "/usr/share/dict/american-english-insane";
/// The public seeds and those of the second column, as their distance from the public ones.
pub(super) const SEED_DISTANCES: [u64; 2] = [0, 100];
/// Queries of a set.
const QUERY_COUNT: usize = 1_000_000;

/// Keys in order as a filter takes them.
pub(super) fn key_set<'a>(keys: impl IntoIterator<Item = &'a [u8]>) -> Result<KeySet, BenchError> {
    let mut set = KeySet::new();
    keys.into_iter().try_for_each(|key| set.push(key))?;
    Ok(set)
}

/// Integer keys; the public seed and a distance.
fn integers(set: IntegerSet, count: usize, distance: u64) -> Vec<u64> {
    set.generate(count, PUBLIC_KEY_SEED + distance)
}

/// A set of the reference: its keys, its queries, and ranges that hold a key. `None` where the word list is not installed.
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

type Lines = Vec<Vec<u8>>;

/// Every second word as a key, the others as queries; `None` without the list.
pub(super) fn words() -> Result<Option<(Lines, Lines)>, BenchError> {
    let path = std::path::Path::new(WORD_FILE);
    if !path.exists() {
        return Ok(None);
    }
    let text = std::fs::read(path).map_err(BenchError::io(path))?;
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    lines.dedup();
    let every_second = |first: usize| lines.iter().skip(first).step_by(2).map(|line| line.to_vec()).collect();
    Ok(Some((every_second(0), every_second(1))))
}

/// Points, or ranges from a word to the word with its last byte raised by one, as far as they hold no key. All keys are present.
fn words_input(keys: &Lines, queries: &Lines, query_set: &str) -> Result<FilterInput, BenchError> {
    let mut ranges = Ranges::default();
    let mut present: Ranges = keys.iter().map(|key| (key.as_slice(), key.as_slice())).collect();
    for word in queries {
        let mut upper = word.clone();
        if query_set == "words_ranges" {
            upper.iter_mut().next_back().into_iter().for_each(|last| *last = last.saturating_add(1));
        }
        let behind = keys.get(keys.partition_point(|key| key < word));
        let target = if behind.is_some_and(|key| *key <= upper) { &mut present } else { &mut ranges };
        target.push(word, &upper);
    }
    Ok(FilterInput {
        keys: key_set(keys.iter().map(Vec::as_slice))?.into(),
        queries: ranges,
        samples: Ranges::default(),
        present,
    })
}
