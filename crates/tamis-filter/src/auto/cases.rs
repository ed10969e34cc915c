//! The sampled queries that reach a table, and their position among its keys.
//!
//! An empty query is between two neighbouring keys. All formulas need only the bits that its ends have in common with these
//! keys and with each other, and how deep the leaves of these keys are in a trie.

use std::ops::Bound;

use super::{QueryKind, Request, SAMPLE_MIN, Workload};
use crate::bit_string::advance;
use crate::empty_query::EmptyQuery;
use crate::trie::shared_bytes;
use crate::{KeyRange, KeySet, mix64, steps};

/// Maximum number of queries that are used, and the number of keys per query of smaller tables.
const QUERIES_MAX: usize = 4000;
const KEYS_PER_QUERY: usize = 16;
/// Small tables use this many queries.
const QUERIES_MIN: usize = 2000;

/// Synthetic queries: one for this many of the sample, and their number in the assumed workload.
const SAMPLED_PER_SYNTHETIC: usize = 20;
const SYNTHETIC_MIN: usize = 32;
const ASSUMED_COUNT: usize = 512;

/// Of eight synthetic queries of a kind, those that are right after a key: of integers, and of longer keys.
const NEAR: usize = 4;
const LONG_NEAR: usize = 1;
/// And those that differ from a key of more than eight bytes as much as the keys differ from each other.
const LONG_ALIKE: usize = 4;

/// Greatest distance from a key of a synthetic query right after it, and the longest synthetic range of integers.
const SYNTHETIC_DISTANCE_MAX: u64 = 1024;
const SYNTHETIC_LENGTH_MAX: u64 = 32;
/// Without a sample, the longest one: lengths are powers of two up to it. Ranges of longer keys have such shares of their gap.
const SYNTHETIC_LENGTH_BITS: u64 = 20;
const SYNTHETIC_SHARE_BITS: u64 = 16;

/// The leaf of a key that a trie stores whole.
pub(super) const WHOLE: u32 = u32::MAX;

/// A query in the reach of the keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) kind: QueryKind,
    pub(super) range: KeyRange<'a>,
    pub(super) weight: f64,
    pub(super) is_point: bool,
    /// Whether it holds a key: every filter passes it. The other fields of such a query are not set.
    pub(super) is_hit: bool,
    /// The position among the keys; `None` for an open seek, and for a range that no key of the table's length can be in.
    pub(super) query: Option<EmptyQuery<'a>>,
    /// Bytes of these two keys in a trie that stores each up to the first byte that distinguishes it; [`WHOLE`] for a key that is
    /// a prefix of the next one.
    pub(super) leaf_left: u32,
    pub(super) leaf_right: u32,
}

impl<'a> Case<'a> {
    /// `None` for a query outside of the reach of the keys.
    fn new(keys: &KeySet, kind: QueryKind, range: KeyRange<'a>, weight: f64) -> Option<Self> {
        if range.is_empty() || !(weight.is_finite() && weight > 0.0) {
            return None;
        }
        let mut case = Self {
            kind,
            range,
            weight,
            is_point: !kind.is_seek() && range.as_point().is_some(),
            is_hit: false,
            query: None,
            leaf_left: 0,
            leaf_right: 0,
        };
        steps::count(2 * keys.len().max(1).ilog2() as usize);
        let index = keys.lower_index(&range);
        let next = keys.get(index);
        let is_open = match kind {
            QueryKind::SeekForward => range.upper_bytes().is_none(),
            QueryKind::SeekBackward => range.lower == Bound::Unbounded,
            _ => false,
        };
        if !is_open && next.is_some_and(|next| range.contains(next)) {
            return Some(Self { is_hit: true, ..case });
        }
        if is_open {
            // A table with keys after the bound is probed for its candidate.
            let has_key =
                if kind == QueryKind::SeekForward { next.is_some() } else { keys.has_key_in(&range) };
            return has_key.then_some(case);
        }
        let before = index.checked_sub(1).filter(|_| next.is_some())?;
        case.query = EmptyQuery::new(keys, &range);
        case.leaf_left = leaf(keys, before);
        case.leaf_right = leaf(keys, index);
        Some(case)
    }

    /// Whether its answer depends on the bounds of a range: it is neither a key nor an open seek.
    pub(super) const fn is_closed(&self) -> bool {
        self.query.is_some()
    }

    /// The longest common prefix of the query and a key, in bits.
    pub(super) fn near(&self) -> u32 {
        self.query.map_or(0, |query| query.near())
    }
}

/// Bytes of a key in a trie.
fn leaf(keys: &KeySet, index: usize) -> u32 {
    let Some(key) = keys.get(index) else { return 0 };
    let before = index.checked_sub(1).and_then(|before| keys.get(before));
    let before = before.map_or(0, |before| shared_bytes(before, key));
    let after = keys.get(index + 1).map_or(0, |after| shared_bytes(key, after));
    if after == key.len() { WHOLE } else { before.max(after) as u32 + 1 }
}

/// The usable queries.
#[derive(Debug)]
pub(super) struct Cases<'a> {
    /// Queries without a key: of the sample, then the synthetic ones.
    pub(super) empty: Vec<Case<'a>>,
    /// Number of empty queries of the sample.
    pub(super) sampled: usize,
    /// Weight of the queries that hold a key: points, ranges and seeks.
    pub(super) hits: [f64; 3],
    /// Whether the synthetic queries are those of the assumed workload, because the sample is small or empty.
    pub(super) is_assumed: bool,
}

impl<'a> Cases<'a> {
    /// With the assumed workload if the sample has few queries without a key.
    pub(super) fn of_sample<R>(
        keys: &KeySet,
        request: &Request<'_>,
        work: impl FnOnce(&Cases<'_>) -> R,
    ) -> R {
        let (workload, seed) = (request.workload, request.seed);
        let max = (keys.len() / KEYS_PER_QUERY).clamp(QUERIES_MIN, QUERIES_MAX);
        if workload.queries.len() >= SAMPLE_MIN {
            let synthetic = SyntheticQueries::like(keys, workload, seed);
            let cases = Cases::new(keys, workload, max, &synthetic);
            if cases.sampled >= SAMPLE_MIN {
                return work(&cases);
            }
        }
        let assumed = SyntheticQueries::assumed(keys, seed);
        work(&Cases::new(keys, workload, max, &assumed))
    }

    /// With at most `max` queries of the sample. Costs two binary searches and four comparisons of keys per query.
    fn new(keys: &KeySet, workload: Workload<'a>, max: usize, synthetic: &'a SyntheticQueries) -> Self {
        let sampled = thinned(workload.queries, max);
        let cases = sampled.filter_map(|query| Case::new(keys, query.kind, query.range, query.weight.into()));
        let (mut empty, mut hits) = (Vec::new(), [0.0; 3]);
        for case in cases {
            match (case.is_hit, case.is_point, case.kind.is_seek()) {
                (false, ..) => empty.push(case),
                (true, true, _) => hits[0] += case.weight,
                (true, false, false) => hits[1] += case.weight,
                (true, false, true) => hits[2] += case.weight,
            }
        }
        let sampled = empty.len();
        let is_assumed = synthetic.is_assumed;
        if sampled == 0 {
            hits = [0.0; 3];
        }
        let synthetic = synthetic.ranges().filter_map(|(kind, range)| Case::new(keys, kind, range, 1.0));
        empty.extend(synthetic.filter(|case| !case.is_hit));
        Self { empty, sampled, hits, is_assumed }
    }

    /// The empty queries that designs shall fit: of the sample, or else the assumed ones.
    pub(super) fn designed_for(&self) -> &[Case<'a>] {
        if self.sampled > 0 { self.sample() } else { self.synthetic() }
    }

    /// The empty queries of the sample.
    pub(super) fn sample(&self) -> &[Case<'a>] {
        self.empty.get(..self.sampled).unwrap_or_default()
    }

    pub(super) fn synthetic(&self) -> &[Case<'a>] {
        self.empty.get(self.sampled..).unwrap_or_default()
    }
}

/// At most `max` elements, one from each of `max` equal parts. Their positions within the parts differ: a sample may alternate
/// between kinds of queries.
fn thinned<T>(elements: &[T], max: usize) -> impl Iterator<Item = &T> {
    let taken = elements.len().min(max);
    let step = elements.len() as f64 / taken.max(1) as f64;
    (0..taken).filter_map(move |number| {
        let offset = if step > 1.0 { (number as f64 * 0.618_033_988_749_895).fract() } else { 0.0 };
        elements.get(((number as f64 + offset) * step) as usize)
    })
}

/// Bounds of synthetic queries: half of them anywhere between two neighbouring keys, half right after a key. Next to a sample, against
/// designs that fit the sample only: points and ranges as often as in the sample. Next to a small one and without one, the assumed
/// workload (`docs/design/0012-automatic-filters.md`): half points, half ranges of all lengths up to 2^20.
#[derive(Debug, Default)]
pub(super) struct SyntheticQueries {
    bounds: Vec<(QueryKind, Vec<u8>, Vec<u8>)>,
    is_assumed: bool,
}

impl SyntheticQueries {
    /// Queries of the kinds of a sample.
    fn like(keys: &KeySet, workload: Workload<'_>, seed: u64) -> Self {
        let sampled = workload.queries.len().min(QUERIES_MAX);
        Self::draw(keys, workload, (sampled / SAMPLED_PER_SYNTHETIC).max(SYNTHETIC_MIN), seed)
    }

    /// Those of the assumed workload.
    fn assumed(keys: &KeySet, seed: u64) -> Self {
        Self::draw(keys, Workload::default(), ASSUMED_COUNT, seed)
    }

    fn draw(keys: &KeySet, workload: Workload<'_>, count: usize, seed: u64) -> Self {
        let is_assumed = workload.queries.is_empty();
        let mut random = seed;
        let mut next = || {
            random = random.wrapping_add(1);
            mix64(random, 0x1eaf)
        };
        let mut bounds = Vec::new();
        for number in 0..count {
            let pair = keys.len().checked_sub(1).and_then(|gaps| next().checked_rem(gaps as u64));
            let Some(index) = pair.map(|index| index as usize) else { break };
            let (Some(before), Some(after)) = (keys.get(index), keys.get(index + 1)) else { break };
            let modelled = (next() as usize).checked_rem(workload.queries.len());
            let kind = match modelled.and_then(|index| workload.queries.get(index)).map(|query| query.kind) {
                Some(kind) if !kind.is_seek() => kind,
                _ if number % 2 == 0 => QueryKind::Point,
                _ => QueryKind::Range,
            };
            let (near, alike) = if before.len() > 8 { (LONG_NEAR, LONG_ALIKE) } else { (NEAR, 0) };
            let place = number / 2 % 8;
            let lower = if place < near {
                right_after(before, 1 + next() % SYNTHETIC_DISTANCE_MAX)
            } else if place < near + alike {
                let other = keys.get((next() % keys.len() as u64) as usize).unwrap_or_default();
                alike_key(before, leaf(keys, index), other)
            } else {
                between(before, after, next())
            };
            let place = keys.lower_index(&KeyRange::point(&lower));
            let after = keys.get(place).unwrap_or(after);
            let (length, bits) = (1 + next() % (SYNTHETIC_LENGTH_MAX - 1), next());
            let upper = match kind {
                QueryKind::Range if is_assumed && before.len() > 8 => {
                    between(&lower, after, next() >> (bits % SYNTHETIC_SHARE_BITS))
                }
                QueryKind::Range if is_assumed => plus(&lower, 1 << (bits % (SYNTHETIC_LENGTH_BITS + 1))),
                QueryKind::Range => plus(&lower, length),
                _ => lower.clone(),
            };
            bounds.push((kind, lower, upper));
        }
        Self { bounds, is_assumed }
    }

    fn ranges(&self) -> impl Iterator<Item = (QueryKind, KeyRange<'_>)> {
        self.bounds.iter().map(|(kind, lower, upper)| match kind {
            QueryKind::Prefix => (*kind, KeyRange::prefix(lower)),
            _ => (*kind, KeyRange::closed(lower, upper)),
        })
    }
}

/// A string of the length of the smaller key between two keys: as a number, at a random share of their distance.
fn between(before: &[u8], after: &[u8], random: u64) -> Vec<u8> {
    let shared = shared_bytes(before, after);
    let word = |key: &[u8]| tamis_bits::key_head(key.get(shared..).unwrap_or_default());
    let (low, high) = (word(before), word(after));
    let distance = high.saturating_sub(low).max(1);
    let drawn = low.saturating_add(((u128::from(random) * u128::from(distance)) >> 64) as u64);
    let length = before.len().max(shared + 1);
    let mut key = before.get(..shared).unwrap_or_default().to_vec();
    key.extend(drawn.to_be_bytes());
    key.resize(length, (random >> 8) as u8);
    key
}

/// A string that has the first bytes of a key up to the one that distinguishes it, and then those of another key.
fn alike_key(key: &[u8], leaf: u32, other: &[u8]) -> Vec<u8> {
    let shared = (leaf as usize).min(key.len()).saturating_sub(1);
    let tail = other.get(shared..).filter(|tail| !tail.is_empty()).unwrap_or(other);
    [key.get(..shared).unwrap_or_default(), tail].concat()
}

/// A string a distance after a key: of up to eight bytes as a number; of longer keys, another last byte.
fn right_after(key: &[u8], distance: u64) -> Vec<u8> {
    if key.len() <= 8 { plus(key, distance) } else { plus(key, 1 + distance % 8) }
}

/// A key plus a number, as a big-endian integer; the greatest key does not change.
fn plus(key: &[u8], amount: u64) -> Vec<u8> {
    let mut sum = key.to_vec();
    if advance(&mut sum, 0, amount) { sum } else { key.to_vec() }
}
