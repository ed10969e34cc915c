//! The queries that a filter is designed for.

use super::keys::key_bytes;
use crate::bit_string::advance;
use crate::empty_query::EmptyQuery;
use crate::{KeyRange, KeySet};

/// With fewer usable queries than this, generated ones are added.
const SAMPLES_MIN: usize = 32;

/// Samples of more than one query per this number of keys, and of more than this number of queries, are thinned.
const KEYS_PER_SAMPLE: usize = 4;
const SAMPLES_MAX_MIN: usize = 2048;

/// Number of generated queries: as many as have this number of bytes in total, within these limits.
const SYNTHETIC_BYTES: usize = 1 << 17;
const SYNTHETIC_MIN: usize = 8;
const SYNTHETIC_FEW: usize = 64;
const SYNTHETIC_MAX: usize = 512;

/// Longest generated range of integers, in keys: the longest of the paper's short ranges.
const SYNTHETIC_SIZE_MAX: u64 = 64;

/// The usable queries of a sample. Takes every n-th query if the sample is large in relation to the keys, since each
/// query costs a binary search.
pub(super) fn sampled_cases<'a>(keys: &KeySet, queries: &'a [KeyRange<'a>]) -> Vec<EmptyQuery<'a>> {
    let most = (keys.len() / KEYS_PER_SAMPLE).max(SAMPLES_MAX_MIN);
    let step = queries.len().div_ceil(most).max(1);
    queries.iter().step_by(step).filter_map(|range| EmptyQuery::new(keys, range)).collect()
}

/// Whether a number of queries suffices to design a filter.
pub(super) const fn is_enough(case_count: usize) -> bool {
    case_count >= SAMPLES_MIN
}

/// Bounds of generated queries.
#[derive(Debug, Default)]
pub(super) struct SyntheticQueries {
    bounds: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl SyntheticQueries {
    /// As many points as ranges, each right after a key: the most difficult queries. Ranges of integers have up to 64
    /// keys, other ranges are prefixes next to a key.
    pub(super) fn new(keys: &KeySet) -> Self {
        let mut bounds = Vec::new();
        let mut random = 0x5eed_u64;
        let mut next = || {
            random = random.wrapping_add(1);
            crate::mix64(random, 0)
        };
        let longest = keys.get(0).map_or(0, <[u8]>::len);
        let most = if keys.len() < 4000 { SYNTHETIC_FEW } else { SYNTHETIC_MAX };
        let count = (SYNTHETIC_BYTES / (longest + 1)).clamp(SYNTHETIC_MIN, most);
        for number in 0..count {
            let Some(index) = next().checked_rem(keys.len() as u64) else { break };
            let Some(key) = keys.get(index as usize) else { break };
            let is_range = number % 2 == 0;
            let (distance, size) = (1 + next() % SYNTHETIC_SIZE_MAX, 2 + next() % (SYNTHETIC_SIZE_MAX - 1));
            let mut lower = key.to_vec();
            advance(&mut lower, 0, if key_bytes(keys) == 0 { 1 } else { distance });
            let upper = (is_range && key_bytes(keys) != 0).then(|| {
                let mut upper = lower.clone();
                advance(&mut upper, 0, size - 1);
                upper
            });
            match (is_range, upper) {
                (false, _) => bounds.push((lower.clone(), Some(lower))),
                (true, upper) => bounds.push((lower, upper)),
            }
        }
        Self { bounds }
    }

    pub(super) fn ranges(&self) -> Vec<KeyRange<'_>> {
        self.bounds
            .iter()
            .map(|(lower, upper)| match upper {
                Some(upper) => KeyRange::closed(lower, upper),
                None => KeyRange::prefix(lower),
            })
            .collect()
    }
}

/// The greatest depth that is useful for the queries: a few bits deeper than the bits that they share with keys.
pub(super) fn useful_depth(cases: &[EmptyQuery<'_>]) -> u32 {
    cases.iter().map(EmptyQuery::near).max().unwrap_or(0).saturating_add(32)
}
