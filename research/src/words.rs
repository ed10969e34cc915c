//! The word list of the reference programs, its keys and queries.

use std::path::Path;

use tamis_filter::KeySet;

use tamis_bench::{
    BenchError,
    filter::{FilterInput, Ranges},
};

/// The word list of the package wamerican-insane, which the reference programs were measured with.
const WORD_FILE: &str = "/usr/share/dict/american-english-insane";

/// The reason in the row if the list is not installed.
pub(super) const MISSING: &str = "the word list is not installed; install the package wamerican-insane";

/// Builds a key set from sorted keys.
pub(super) fn key_set<'a>(keys: impl IntoIterator<Item = &'a [u8]>) -> Result<KeySet, BenchError> {
    let mut set = KeySet::new();
    keys.into_iter().try_for_each(|key| set.push(key))?;
    Ok(set)
}

pub(super) type Lines = Vec<Vec<u8>>;

/// Whether the list is installed.
pub(super) fn are_installed() -> bool {
    Path::new(WORD_FILE).exists()
}

/// Returns every second word as a key and the others as queries.
pub(super) fn words() -> Result<(Lines, Lines), BenchError> {
    let path = Path::new(WORD_FILE);
    let text = std::fs::read(path).map_err(BenchError::io(path))?;
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    lines.dedup();
    let every_second = |first: usize| lines.iter().skip(first).step_by(2).map(|line| line.to_vec()).collect();
    Ok((every_second(0), every_second(1)))
}

/// One query in this many is in a sample; the others are measured. (The sample of the reference is unknown.)
const QUERIES_PER_SAMPLE: usize = 16;

/// The first words, and their queries without a key: points, or ranges from a word to the word with its last byte incremented. All keys
/// and the other queries must not be rejected.
pub(super) fn sampled_input(key_count: usize, query_set: &str) -> Result<FilterInput, BenchError> {
    let (mut keys, mut words) = words()?;
    keys.truncate(key_count);
    words.truncate(key_count);
    let (mut queries, mut samples) = (Ranges::default(), Ranges::default());
    let mut present: Ranges = keys.iter().map(|key| (key.as_slice(), key.as_slice())).collect();
    for word in words {
        let mut upper = word.clone();
        if query_set == "words_ranges" {
            upper.iter_mut().next_back().into_iter().for_each(|last| *last = last.saturating_add(1));
        }
        let behind = keys.get(keys.partition_point(|key| *key < word));
        let is_sample = (queries.len() + samples.len()).is_multiple_of(QUERIES_PER_SAMPLE);
        match behind.is_some_and(|key| *key <= upper) {
            true => present.push(&word, &upper),
            false => if is_sample { &mut samples } else { &mut queries }.push(&word, &upper),
        }
    }
    Ok(FilterInput { keys: key_set(keys.iter().map(Vec::as_slice))?.into(), queries, samples, present })
}
