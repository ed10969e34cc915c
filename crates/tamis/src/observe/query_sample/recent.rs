//! The kept queries of a sample, the oldest first: chunks that are filled once and then only read, so that jobs share them.
//!
//! [`RecentQueries::share`] copies pointers to the chunks, of which there are at most about [`QUERIES_MAX`] / [`CHUNK_QUERIES_MAX`]; queries that
//! are added later go to free places, which the copy leaves out. A chunk is freed when its queries were replaced, and no job has it.
//!
//! The memory of all samples is a part of the budget of the store ([`SampleMemory`]): if it is used up, the sample with the most bytes loses its
//! oldest chunk, so that a busy keyspace does not keep others from having a sample. While a job has that chunk, new queries are left out.

use std::{
    collections::VecDeque,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{QUERIES_MAX, SampledQuery};
use crate::{store::memory_budget::MemoryBudget, sync::Mutex};

/// Queries of a chunk: as many as the sample has, within these bounds.
const CHUNK_QUERIES_MIN: usize = 16;
const CHUNK_QUERIES_MAX: usize = 256;
/// Memory of an allocation in addition to its bytes.
const ALLOCATION_BYTES: usize = 16;

/// The samples of all keyspaces of a store, and their budget.
#[derive(Debug, Default)]
pub(crate) struct SampleMemory {
    budget: Arc<MemoryBudget>,
    samples: Mutex<Vec<Weak<Mutex<RecentQueries>>>>,
}

impl SampleMemory {
    pub(crate) fn new(budget: &Arc<MemoryBudget>) -> Arc<Self> {
        Arc::new(Self { budget: Arc::clone(budget), samples: Mutex::default() })
    }

    /// The empty sample of a keyspace.
    pub(super) fn add_sample(self: &Arc<Self>) -> Arc<Mutex<RecentQueries>> {
        let sample =
            Arc::new(Mutex::new(RecentQueries { memory: Arc::clone(self), ..RecentQueries::default() }));
        let mut samples = self.samples.lock();
        samples.retain(|other| other.strong_count() > 0);
        samples.push(Arc::downgrade(&sample));
        sample
    }

    /// Frees the oldest chunk of the sample with the most bytes, unless a thread uses it. The caller has locked no sample.
    pub(super) fn free_some(&self) {
        let Some(samples) = self.samples.try_lock() else { return };
        let bytes = |sample: &Arc<Mutex<RecentQueries>>| sample.try_lock().map_or(0, |locked| locked.bytes());
        let largest = samples.iter().filter_map(Weak::upgrade).max_by_key(bytes);
        if let Some(mut queries) = largest.as_ref().and_then(|sample| sample.try_lock()) {
            queries.free_oldest_chunk();
        }
    }
}

/// Queries that are filled in order.
#[derive(Debug)]
struct Chunk {
    queries: Box<[OnceLock<SampledQuery>]>,
    bytes: AtomicU64,
    budget: Arc<MemoryBudget>,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.budget.remove_sample(self.bytes.load(Ordering::Relaxed));
    }
}

impl Chunk {
    /// `None` if the budget has no room for it.
    fn new(capacity: usize, budget: &Arc<MemoryBudget>) -> Option<Arc<Self>> {
        let bytes = (capacity * size_of::<OnceLock<SampledQuery>>() + ALLOCATION_BYTES) as u64;
        budget.add_sample(bytes).then(|| {
            let queries = (0..capacity).map(|_| OnceLock::new()).collect();
            Arc::new(Self { queries, bytes: AtomicU64::new(bytes), budget: Arc::clone(budget) })
        })
    }

    /// Fills a place that is free; `false` if the budget has no room.
    fn fill(&self, place: usize, query: SampledQuery) -> bool {
        let bytes = (query.bytes.len() + ALLOCATION_BYTES) as u64;
        if !self.budget.add_sample(bytes) {
            return false;
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.queries.get(place).is_some_and(|free| free.set(query).is_ok())
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct RecentQueries {
    chunks: VecDeque<Arc<Chunk>>,
    /// Queries of the first chunk that were replaced, and filled places of the last one.
    replaced: usize,
    filled: usize,
    count: usize,
    memory: Arc<SampleMemory>,
}

impl RecentQueries {
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.bytes.load(Ordering::Relaxed)).sum()
    }

    /// Adds a query, in place of the oldest one if there are [`QUERIES_MAX`]; `false` if the budget has no room.
    pub(super) fn push(&mut self, query: SampledQuery) -> bool {
        if self.chunks.back().is_none_or(|last| last.queries.len() == self.filled) {
            let capacity = self.count.clamp(CHUNK_QUERIES_MIN, CHUNK_QUERIES_MAX);
            let Some(chunk) = Chunk::new(capacity, &self.memory.budget) else { return false };
            self.chunks.push_back(chunk);
            self.filled = 0;
        }
        if !self.chunks.back().is_some_and(|last| last.fill(self.filled, query)) {
            return false;
        }
        self.filled += 1;
        self.count += 1;
        self.drop_oldest(self.count.saturating_sub(QUERIES_MAX));
        true
    }

    /// Removes the oldest queries.
    pub(super) fn drop_oldest(&mut self, count: usize) {
        self.count -= count;
        self.replaced += count;
        while let Some(first) = self.chunks.pop_front_if(|first| first.queries.len() <= self.replaced) {
            self.replaced -= first.queries.len();
        }
        if self.count == 0 {
            self.chunks.clear();
            (self.replaced, self.filled) = (0, 0);
        }
    }

    /// Frees memory, unless a thread uses the chunk.
    pub(super) fn free_oldest_chunk(&mut self) {
        if let Some(first) = self.chunks.front().filter(|first| Arc::strong_count(first) == 1) {
            self.drop_oldest(self.count.min(first.queries.len() - self.replaced));
        }
    }

    /// All queries, shared.
    pub(super) fn share(&self) -> SharedQueries {
        SharedQueries {
            chunks: self.chunks.iter().cloned().collect(),
            skipped: self.replaced,
            count: self.count,
        }
    }
}

/// Queries of a sample at one time, the oldest first, which a job shares with the sample.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedQueries {
    chunks: Arc<[Arc<Chunk>]>,
    skipped: usize,
    count: usize,
}

impl SharedQueries {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &SampledQuery> {
        let queries = self.chunks.iter().flat_map(|chunk| chunk.queries.iter().filter_map(OnceLock::get));
        queries.skip(self.skipped).take(self.count)
    }

    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl PartialEq for SharedQueries {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for SharedQueries {}

/// Queries that belong to no sample, outside of every budget.
impl FromIterator<SampledQuery> for SharedQueries {
    fn from_iter<I: IntoIterator<Item = SampledQuery>>(queries: I) -> Self {
        let queries: Box<[_]> = queries.into_iter().map(OnceLock::from).collect();
        let count = queries.len();
        let chunk = Chunk { queries, bytes: AtomicU64::new(0), budget: Arc::default() };
        Self { chunks: [Arc::new(chunk)].into(), skipped: 0, count }
    }
}
