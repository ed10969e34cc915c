//! The word list of the references, their keys, points and ranges, and the unit in which their times are told.

use tamis_filter::KeySet;

use crate::{
    BenchError,
    filter::{FilterInput, Ranges},
};

/// The word list of the package wamerican-insane: the string set of the references.
const WORD_FILE: &str = "/usr/share/dict/american-english-insane";

/// Why nothing is measured where the list is not installed.
pub(super) const MISSING: &str = "install the package wamerican-insane for the words";

/// The references' calibration unit was taken with a million keys: so is ours for the words, of which there are fewer.
pub(super) const UNIT_KEY_COUNT: usize = 1_000_000;

/// The calibration unit where the references were measured.
pub(super) const fn reference_unit_ns(key_count: u64) -> f64 {
    if key_count > 3_000_000 { 540.0 } else { 160.0 }
}

/// Keys in order as a filter takes them.
pub(super) fn key_set<'a>(keys: impl IntoIterator<Item = &'a [u8]>) -> Result<KeySet, BenchError> {
    let mut set = KeySet::new();
    keys.into_iter().try_for_each(|key| set.push(key))?;
    Ok(set)
}

pub(super) type Lines = Vec<Vec<u8>>;

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
pub(super) fn words_input(keys: &Lines, queries: &Lines, query_set: &str) -> Result<FilterInput, BenchError> {
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
