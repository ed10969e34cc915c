//! A sample of the queries of one keyspace, from which its filters are chosen.
//!
//! Of each kind of reads that reach tables, all of the first ones are sampled, then 1 of n, where n doubles with the number of these reads up to
//! 128 ([`QuerySample::sampling`]). The sampled ones are spread evenly and follow no period of the workload. A sampled query has the
//! weight n: the weights of all sampled queries add up to about the number of reads.
//!
//! Cost of a read that is not sampled: a multiplication and a comparison. A sampled one copies its bounds and takes a lock; if
//! another thread holds the lock, the query is left out. So sampling costs less than 1 % of the time of reads, apart from the
//! first few thousand.
//!
//! When the losses of filters show that the queries have changed, the sample *begins again* ([`QuerySample::restart`]): all reads are
//! sampled as at first, and when there are enough of them the earlier queries are dropped.
//!
//! A query with a bound of more than [`SAMPLED_BOUND_BYTES_MAX`] bytes is counted and not sampled: a truncated bound would query other keys.
//! A read that a memtable answers reads no table and is not sampled.
//!
//! Jobs share the queries with the sample and copy none (`query_sample/recent.rs`), whose memory is a part of `Options::cache_bytes`.

pub(crate) mod format;
mod recent;

use std::{
    ops::{AddAssign, Bound},
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use crate::sync::Mutex;
use tamis_filter::{
    KeyRange, Upper,
    auto::{Query, QueryKind},
};

pub(crate) use self::recent::{SampleMemory, SharedQueries};
use self::{format::StoredSample, recent::RecentQueries};

/// Queries that are kept; a new one replaces the oldest.
pub(crate) const QUERIES_MAX: usize = 20_000;
/// The greatest number of bytes of a bound of a query in the sample ([`crate::SampleStatistics::too_long`]).
pub const SAMPLED_BOUND_BYTES_MAX: usize = 256;
/// The greatest number of reads of which one is sampled, as a power of two.
const INTERVAL_BITS_MAX: u32 = 7;
/// The greatest number of reads of which one is counted per table, as a power of two.
const TALLY_BITS_MAX: u32 = 3;
/// Reads that are all sampled. After that the interval doubles whenever the number of reads does.
pub(crate) const ALL_SAMPLED: u64 = 2_048;

/// The number of kinds of queries.
pub(crate) const KIND_COUNT: usize = 5;

/// The position of a kind in arrays and in files.
pub(crate) const fn position_of(kind: QueryKind) -> usize {
    match kind {
        QueryKind::Point => 0,
        QueryKind::Range => 1,
        QueryKind::Prefix => 2,
        QueryKind::SeekForward => 3,
        QueryKind::SeekBackward => 4,
    }
}

/// The binary logarithm of the number of reads of which one is sampled, after `number` reads, of which the first `all_sampled` were sampled.
const fn interval_bits(number: u64, all_sampled: u64) -> u32 {
    let doublings = u64::BITS - (number / all_sampled).leading_zeros();
    if doublings < INTERVAL_BITS_MAX { doublings } else { INTERVAL_BITS_MAX }
}

/// How one read is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sampling {
    /// The number of reads that it represents in the sample; 0: it is not sampled.
    pub(crate) weight: u32,
    /// The number of reads that it represents in the counters of tables (`version/filter_tally.rs`); 0: it is not counted.
    pub(crate) tally_weight: u32,
}

impl Sampling {
    /// That of a read with this number, while one of 2^`bits` reads is sampled.
    #[inline]
    const fn of(number: u64, bits: u32) -> Self {
        let tally_bits = if bits < TALLY_BITS_MAX { bits } else { TALLY_BITS_MAX };
        // 2^64 divided by the golden ratio: multiples of it are spread evenly, modulo 2^64.
        let rank = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).leading_zeros();
        Self {
            weight: if rank < bits { 0 } else { 1 << bits },
            tally_weight: if rank < tally_bits { 0 } else { 1 << tally_bits },
        }
    }
}

/// Whether a table that its filters admitted has a key of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Positive {
    True,
    False,
}

impl Positive {
    /// That of a table in which the query found this.
    #[inline]
    pub(crate) const fn of<T>(found: Option<&T>) -> Self {
        match found {
            Some(_) => Self::True,
            None => Self::False,
        }
    }
}

/// The answers of the filters of the tables in reach of one query, as far as known when the read ended. Tables that an evicted filter
/// admitted are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct QueryOutcome {
    /// Tables whose filters rejected the query.
    pub(crate) rejected: u16,
    /// Tables that the filters admitted and that had a key of the query.
    pub(crate) there: u16,
    /// Tables that the filters admitted and that had no key of the query.
    pub(crate) nothing_there: u16,
}

impl QueryOutcome {
    #[inline]
    pub(crate) const fn add_rejected(&mut self) {
        self.rejected = self.rejected.saturating_add(1);
    }

    #[inline]
    pub(crate) const fn add_positive(&mut self, positive: Positive) {
        let counter = match positive {
            Positive::True => &mut self.there,
            Positive::False => &mut self.nothing_there,
        };
        *counter = counter.saturating_add(1);
    }
}

impl AddAssign for QueryOutcome {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.rejected = self.rejected.saturating_add(other.rejected);
        self.there = self.there.saturating_add(other.there);
        self.nothing_there = self.nothing_there.saturating_add(other.nothing_there);
    }
}

/// The lower end of a sampled query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LowerKind {
    Open = 0,
    Included = 1,
    Excluded = 2,
}

/// The upper end of a sampled query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UpperKind {
    Open = 0,
    Included = 1,
    Excluded = 2,
    /// All keys that begin with the lower end.
    Prefix = 3,
    /// The same key as the lower end.
    Point = 4,
}

/// One query as it was executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SampledQuery {
    /// The lower bound, then the upper one. A prefix and a point are stored once.
    bytes: Box<[u8]>,
    lower_length: u16,
    lower: LowerKind,
    upper: UpperKind,
    pub(crate) kind: QueryKind,
    /// The number of executed queries that it represents.
    pub(crate) weight: u32,
    pub(crate) outcome: QueryOutcome,
}

impl SampledQuery {
    /// Copies a query; `None` if a bound is too long.
    pub(crate) fn new(
        kind: QueryKind,
        range: &KeyRange<'_>,
        weight: u32,
        outcome: QueryOutcome,
    ) -> Option<Self> {
        let (lower, lower_bytes) = match range.lower {
            Bound::Unbounded => (LowerKind::Open, &[][..]),
            Bound::Included(key) => (LowerKind::Included, key),
            Bound::Excluded(key) => (LowerKind::Excluded, key),
        };
        let (upper, upper_bytes) = match range.upper {
            Upper::Open => (UpperKind::Open, &[][..]),
            Upper::Included(key) if lower == LowerKind::Included && key == lower_bytes => {
                (UpperKind::Point, &[][..])
            }
            Upper::Included(key) => (UpperKind::Included, key),
            Upper::Excluded(key) => (UpperKind::Excluded, key),
            Upper::Prefix(prefix) if lower == LowerKind::Included && prefix == lower_bytes => {
                (UpperKind::Prefix, &[][..])
            }
            // Only scans of a prefix from its first key on are executed.
            Upper::Prefix(_) => return None,
        };
        if lower_bytes.len().max(upper_bytes.len()) > SAMPLED_BOUND_BYTES_MAX {
            return None;
        }
        let lower_length = u16::try_from(lower_bytes.len()).ok()?;
        let bytes = [lower_bytes, upper_bytes].concat().into_boxed_slice();
        Some(Self { bytes, lower_length, lower, upper, kind, weight: weight.max(1), outcome })
    }

    /// The bytes of both bounds.
    fn bounds(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at_checked(usize::from(self.lower_length)).unwrap_or((&[], &[]))
    }

    /// The queried range. An open seek reaches up to the key that it found, if it found one.
    pub(crate) fn range(&self) -> KeyRange<'_> {
        let (lower, upper) = self.bounds();
        KeyRange {
            lower: match self.lower {
                LowerKind::Open => Bound::Unbounded,
                LowerKind::Included => Bound::Included(lower),
                LowerKind::Excluded => Bound::Excluded(lower),
            },
            upper: match self.upper {
                UpperKind::Open => Upper::Open,
                UpperKind::Included => Upper::Included(upper),
                UpperKind::Excluded => Upper::Excluded(upper),
                UpperKind::Prefix => Upper::Prefix(lower),
                UpperKind::Point => Upper::Included(lower),
            },
        }
    }

    /// The query as filters take it.
    pub(crate) fn as_query(&self) -> Query<'_> {
        Query { kind: self.kind, range: self.range(), weight: self.weight as f32 }
    }

    /// Whether the query reaches the keys from `smallest` to `largest`.
    pub(crate) fn reaches(&self, smallest: &[u8], largest: &[u8]) -> bool {
        let range = self.range();
        let begins = match range.lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => lower <= largest,
            Bound::Excluded(lower) => lower < largest,
        };
        begins && !KeyRange { lower: Bound::Included(smallest), upper: range.upper }.is_empty()
    }
}

/// The sampled queries of a keyspace at one time ([`crate::Db::sampled_queries`]).
#[derive(Debug, Clone, Default)]
pub struct SampledQueries(SharedQueries);

impl SampledQueries {
    /// The queries, the oldest first, as [`tamis_filter::auto::choose`] takes them.
    pub fn queries(&self) -> Vec<Query<'_>> {
        self.0.iter().map(SampledQuery::as_query).collect()
    }
}

/// The kept queries of a kind, and the sums of their outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct KeptQueries {
    pub(crate) count: u64,
    pub(crate) rejected: u64,
    pub(crate) there: u64,
    pub(crate) nothing_there: u64,
}

/// The reads of which one is sampled, by kind, as powers of two. Every read loads one: they share their cache line with nothing that changes
/// often.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Intervals {
    bits: [AtomicU32; KIND_COUNT],
}

/// The reads since the sample last began.
#[derive(Debug)]
struct Begun {
    /// Sums of weights by kind.
    reads: [u64; KIND_COUNT],
    /// Of each kind, so many are all sampled.
    all_sampled: u64,
    /// Queries to sample before those of the last beginning are dropped.
    left: u64,
    /// Queries that were kept since.
    kept: usize,
    /// How often the sample has begun again, and has dropped the queries before.
    restarts: u64,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct QuerySample {
    memory: Arc<SampleMemory>,
    queries: Arc<Mutex<RecentQueries>>,
    /// Whether queries are kept ([`crate::Options::sample_queries`]).
    keeps_queries: bool,
    intervals: Intervals,
    begun: Mutex<Begun>,
    /// Sums of weights by kind.
    seen: [AtomicU64; KIND_COUNT],
    /// Queries with too long bounds.
    too_long: AtomicU64,
}

/// A sample without a limit on its memory.
#[cfg(test)]
impl Default for QuerySample {
    fn default() -> Self {
        Self::new(&Arc::default(), true)
    }
}

impl QuerySample {
    /// An empty sample.
    pub(crate) fn new(memory: &Arc<SampleMemory>, keeps_queries: bool) -> Self {
        Self {
            memory: Arc::clone(memory),
            queries: memory.add_sample(),
            keeps_queries,
            intervals: Intervals::default(),
            begun: Mutex::new(Begun {
                reads: [0; KIND_COUNT],
                all_sampled: ALL_SAMPLED,
                left: 0,
                kept: 0,
                restarts: 0,
            }),
            seen: Default::default(),
            too_long: AtomicU64::new(0),
        }
    }

    /// How a read of a kind is sampled; `number`: its number in any order that does not repeat soon.
    #[inline]
    pub(crate) fn sampling(&self, kind: QueryKind, number: u64) -> Sampling {
        Sampling::of(number, self.interval_bits(kind))
    }

    #[inline]
    fn interval_bits(&self, kind: QueryKind) -> u32 {
        self.intervals.bits.get(position_of(kind)).map_or(0, |bits| bits.load(Ordering::Relaxed))
    }

    /// The number of reads of a kind of which one is sampled.
    pub(crate) fn interval(&self, kind: QueryKind) -> u32 {
        1 << self.interval_bits(kind)
    }

    /// Samples all reads again, at least `count` of them, and then drops the queries before these. Does nothing while it does, and if no
    /// queries are kept.
    pub(crate) fn restart(&self, count: u64) {
        let mut begun = self.begun.lock();
        if begun.left == 0 && self.keeps_queries {
            let all_sampled = count.max(ALL_SAMPLED);
            *begun =
                Begun { reads: [0; KIND_COUNT], all_sampled, left: count, kept: 0, restarts: begun.restarts };
            self.intervals.bits.iter().for_each(|bits| bits.store(0, Ordering::Relaxed));
        }
    }

    /// Whether the sample begins again, and still has the queries before.
    pub(crate) fn is_restarting(&self) -> bool {
        self.begun.lock().left > 0
    }

    /// How often the sample has begun again, and has dropped the queries before.
    pub(crate) fn restarts(&self) -> u64 {
        self.begun.lock().restarts
    }

    /// Counts a sampled read; the last one of a beginning drops all queries before it. Another thread that counts at the same time does not
    /// wait, and its read is left out.
    fn count(&self, queries: &mut RecentQueries, kind: QueryKind, weight: u32, is_kept: bool) {
        let Some(mut begun) = self.begun.try_lock() else { return };
        begun.kept += usize::from(is_kept);
        if begun.left > 0 {
            begun.left -= 1;
            if begun.left == 0 {
                begun.restarts += 1;
                queries.drop_oldest(queries.len().saturating_sub(begun.kept));
            }
        }
        let all_sampled = begun.all_sampled;
        if let Some((reads, bits)) =
            begun.reads.get_mut(position_of(kind)).zip(self.intervals.bits.get(position_of(kind)))
        {
            *reads += u64::from(weight);
            bits.store(interval_bits(*reads, all_sampled), Ordering::Relaxed);
        }
    }

    /// Keeps a sampled query.
    pub(crate) fn record(&self, kind: QueryKind, range: &KeyRange<'_>, weight: u32, outcome: QueryOutcome) {
        self.add_seen(kind, weight);
        let query = SampledQuery::new(kind, range, weight, outcome).filter(|_| self.keeps_queries);
        self.too_long.fetch_add(u64::from(query.is_none() && self.keeps_queries), Ordering::Relaxed);
        // A read never waits for another thread.
        let Some(mut queries) = self.queries.try_lock() else { return };
        let has_query = query.is_some();
        let is_kept = query.is_some_and(|query| queries.push(query));
        self.count(&mut queries, kind, weight, is_kept);
        drop(queries);
        if has_query && !is_kept {
            self.memory.free_some();
        }
    }

    fn add_seen(&self, kind: QueryKind, weight: u32) {
        if let Some(seen) = self.seen.get(position_of(kind)) {
            seen.fetch_add(u64::from(weight), Ordering::Relaxed);
        }
    }

    /// The sample as it is stored.
    pub(crate) fn stored(&self, keyspace: u32) -> StoredSample {
        StoredSample {
            keyspace,
            seen: self.seen.each_ref().map(|seen| seen.load(Ordering::Relaxed)),
            too_long: self.too_long(),
            queries: self.shared(),
        }
    }

    /// Adds a stored sample before the queries that were recorded since.
    pub(crate) fn restore(&self, stored: StoredSample) {
        for (seen, stored) in self.seen.iter().zip(stored.seen) {
            seen.fetch_add(stored, Ordering::Relaxed);
        }
        self.too_long.fetch_add(stored.too_long, Ordering::Relaxed);
        let mut queries = self.queries.lock();
        let since = queries.share();
        queries.drop_oldest(since.len());
        let replaced = (stored.queries.len() + since.len()).saturating_sub(QUERIES_MAX);
        for query in stored.queries.iter().skip(replaced).chain(since.iter()) {
            if !queries.push(query.clone()) {
                queries.free_oldest_chunk();
                queries.push(query.clone());
            }
        }
    }

    /// The queries for programs.
    pub(crate) fn for_programs(&self) -> SampledQueries {
        SampledQueries(self.shared())
    }

    /// All queries that are kept, the oldest first. Copies none of them.
    pub(crate) fn shared(&self) -> SharedQueries {
        self.queries.lock().share()
    }

    /// About how many queries of a kind reached tables; exact while all of them are sampled.
    pub(crate) fn seen(&self, kind: QueryKind) -> u64 {
        self.seen.get(position_of(kind)).map_or(0, |seen| seen.load(Ordering::Relaxed))
    }

    /// The queries that are kept, by kind in the order of [`position_of`].
    pub(crate) fn kept(&self) -> [KeptQueries; KIND_COUNT] {
        let mut kept = [KeptQueries::default(); KIND_COUNT];
        for query in self.shared().iter() {
            if let Some(kind) = kept.get_mut(position_of(query.kind)) {
                let outcome = query.outcome;
                kind.count += 1;
                kind.rejected += u64::from(outcome.rejected);
                kind.there += u64::from(outcome.there);
                kind.nothing_there += u64::from(outcome.nothing_there);
            }
        }
        kept
    }

    /// Sampled queries that were left out because a bound is longer than [`SAMPLED_BOUND_BYTES_MAX`] bytes.
    pub(crate) fn too_long(&self) -> u64 {
        self.too_long.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
