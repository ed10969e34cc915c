//! The pinned cache: memory for indexes and filters. Blocks use what it leaves of the byte budget.
//!
//! A [`Pinned`] value can be loaded again from its file. The [`PinnedCache`] decides which values stay in memory:
//!
//! 1. The cached values together never exceed the capacity. No size is an error: a value that does not fit is loaded for
//!    the read that needs it, and an event reports it once.
//! 2. Values are pinned by benefit per byte: their [`Hotness`], cached or not, divided by their bytes. A value evicts others
//!    only if each of them has clearly less ([`HYSTERESIS`]): values of equal hotness would evict each other again and again,
//!    and each load costs reads. So a large scan over rarely used tables evicts nothing, a value that becomes popular counts
//!    its accesses until it is admitted, and one that was popular is evicted as its hotness decays.
//! 3. A part of a whole ([`Pinned::shared`]: a unit of an elastic filter) has a share of the benefit of the whole: of the
//!    false positives that it saves.
//! 4. Blocks use the rest of the budget (`store/memory_budget.rs`).
//! 5. Values in mapped files take none of our memory and take no part ([`Pinned::fixed`]).
//!
//! Cost: access to a cached value is one atomic load and a count without a locked instruction (a lost count is harmless).
//! Admission compares a value with a sample of the cached ones ([`SAMPLE_LENGTH`]), the next ones in a circle: its cost does not
//! depend on the number of tables. The admission of a value that a read can do without is tried at every [`RETRY_INTERVAL`]th access only.

use std::{
    collections::VecDeque,
    ops::Deref,
    path::Path,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use arc_swap::{ArcSwapOption, Guard};

use super::hotness::{Epoch, Hotness};
use crate::{
    error::Result,
    observe::{
        events::{Event, EventListener},
        metrics::Metrics,
    },
    store::memory_budget::MemoryBudget,
    sync::Mutex,
};

/// Accesses of a value that is not cached between two tries to admit it.
const RETRY_INTERVAL: u64 = 32;

/// A value evicts others only if its benefit per byte is this many times theirs.
const HYSTERESIS: f64 = 1.5;

/// Cached values that are compared at once with a value that needs room. If those with less benefit are too small, the next ones are compared,
/// until none of a sample has less.
const SAMPLE_LENGTH: usize = 64;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct PinnedCache {
    capacity_bytes: u64,
    epoch: Epoch,
    cached: Mutex<CachedValues>,
    budget: Arc<MemoryBudget>,
    metrics: Arc<Metrics>,
    listener: Option<Arc<dyn EventListener>>,
}

/// A value that can be evicted.
trait Member: std::fmt::Debug + Send + Sync {
    /// In accesses.
    fn benefit(&self) -> f64;
    fn bytes(&self) -> u64;
    fn release(&self);
}

/// The cached values in a circle. Values that were dropped are removed as they are found.
#[derive(Debug, Default)]
struct CachedValues(VecDeque<Weak<dyn Member>>);

impl CachedValues {
    fn add(&mut self, member: Weak<dyn Member>) {
        // Two cached values are examined for each one that is added, so that few dropped values stay in the list.
        for _ in 0..2 {
            let next = self.take_next();
            self.put_back(next);
        }
        self.0.push_back(member);
    }

    /// The next value, unless it was dropped.
    fn take_next(&mut self) -> Option<Arc<dyn Member>> {
        self.0.pop_front()?.upgrade()
    }

    fn put_back(&mut self, members: impl IntoIterator<Item = Arc<dyn Member>>) {
        self.0.extend(members.into_iter().map(|member| Arc::downgrade(&member)));
    }

    /// Takes values with less benefit per byte than `offered` that have `missing` bytes together: those with the least of each sample. `None` if a
    /// sample has no such value, or all together have too few bytes.
    fn take_victims(&mut self, offered: f64, mut missing: u64) -> Option<Vec<Arc<dyn Member>>> {
        let mut unexamined = self.0.len();
        let mut victims = Vec::new();
        while missing > 0 {
            let sample_length = unexamined.min(SAMPLE_LENGTH);
            unexamined -= sample_length;
            let mut sample: Vec<_> = (0..sample_length)
                .filter_map(|_| self.take_next())
                .map(|member| (per_byte(member.benefit(), member.bytes()), member))
                .collect();
            sample.sort_by(|(left, _), (right, _)| left.total_cmp(right));
            let count_before = victims.len();
            for (benefit, member) in sample {
                if missing > 0 && benefit < offered {
                    missing = missing.saturating_sub(member.bytes());
                    victims.push(member);
                } else {
                    self.put_back([member]);
                }
            }
            if missing > 0 && victims.len() == count_before {
                self.put_back(victims);
                return None;
            }
        }
        Some(victims)
    }
}

fn per_byte(benefit: f64, bytes: u64) -> f64 {
    benefit / (bytes as f64).max(1.0)
}

impl PinnedCache {
    pub(crate) fn new(
        capacity_bytes: u64,
        budget: &Arc<MemoryBudget>,
        metrics: &Arc<Metrics>,
        listener: Option<Arc<dyn EventListener>>,
    ) -> Arc<Self> {
        let (budget, metrics) = (Arc::clone(budget), Arc::clone(metrics));
        let (epoch, cached) = (Epoch::default(), Mutex::default());
        Arc::new(Self { capacity_bytes, epoch, cached, budget, metrics, listener })
    }

    /// The memory of the cached values, sampled queries and blocks.
    pub(crate) const fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// Bytes of the cached values.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.budget.pinned_bytes()
    }

    /// The epoch of all hotness counts.
    pub(crate) const fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// Takes the values to evict so that `needed` bytes fit; `None` if a sample of them has more benefit than the value gains.
    fn take_victims(
        &self,
        cached: &mut CachedValues,
        benefit: f64,
        needed: u64,
    ) -> Option<Vec<Arc<dyn Member>>> {
        let capacity_bytes = self.capacity_bytes.min(self.budget.pinned_bytes_max());
        let available = capacity_bytes.saturating_sub(self.used_bytes());
        let missing = needed.saturating_sub(available);
        if needed > capacity_bytes { None } else { cached.take_victims(per_byte(benefit, needed), missing) }
    }

    fn would_admit(&self, benefit: f64, needed: u64) -> bool {
        let mut cached = self.cached.lock();
        let victims = self.take_victims(&mut cached, benefit, needed);
        let would_admit = victims.is_some();
        // In front, for the admission that follows.
        victims.into_iter().flatten().for_each(|victim| cached.0.push_front(Arc::downgrade(&victim)));
        would_admit
    }
}

/// A value that is cached while the pinned cache has room for it, and loaded again otherwise.
#[derive(Debug)]
pub(crate) enum Pinned<T> {
    Fixed(T),
    Counted(Arc<Counted<T>>),
}

/// A value with its bookkeeping.
#[derive(Debug)]
pub(crate) struct Counted<T> {
    this: Weak<Self>,
    pinned_cache: Arc<PinnedCache>,
    file: Arc<Path>,
    value: ArcSwapOption<T>,
    loading: Mutex<()>,
    bytes: AtomicU64,
    demand: Demand,
    is_reported: AtomicBool,
}

/// The source of a value's benefit.
#[derive(Debug)]
enum Demand {
    /// Its own accesses.
    Own(Hotness),
    /// A share of the benefit of a whole; and the number of accesses.
    Share(Share, AtomicU64),
}

/// The benefit of a part of a whole.
#[derive(Debug)]
pub(crate) struct Share {
    /// The hotness of the whole: lookups of absent keys.
    pub(crate) hotness: Arc<Hotness>,
    /// The part of these lookups for which it saves a read.
    pub(crate) saved: f64,
}

/// A value for the time of one read.
#[derive(Debug)]
pub(crate) enum PinnedRef<'a, T> {
    Fixed(&'a T),
    Guarded(Guard<Option<Arc<T>>>),
    Loaded(Arc<T>),
}

impl<T> Deref for PinnedRef<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            Self::Fixed(value) => value,
            Self::Guarded(guard) => guard.as_ref().expect("a guard is made for an existing value"),
            Self::Loaded(value) => value,
        }
    }
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for PinnedRef<'_, T> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        (**self).as_ref()
    }
}

impl<T: std::fmt::Debug + Send + Sync + 'static> Pinned<T> {
    /// A value that always stays in memory.
    pub(crate) const fn fixed(value: T) -> Self {
        Self::Fixed(value)
    }

    /// A value of this size that was just loaded from `file`.
    pub(crate) fn counted(pinned_cache: &Arc<PinnedCache>, file: &Arc<Path>, value: T, bytes: u64) -> Self {
        let demand = Hotness::default();
        demand.set(1.0, pinned_cache.epoch.now());
        let counted = Counted::new(pinned_cache, file, bytes, Demand::Own(demand));
        counted.admit(&Arc::new(value));
        Self::Counted(counted)
    }

    /// A part of this size that is not loaded yet.
    pub(crate) fn shared(
        pinned_cache: &Arc<PinnedCache>,
        file: &Arc<Path>,
        share: Share,
        bytes: u64,
    ) -> Self {
        Self::Counted(Counted::new(pinned_cache, file, bytes, Demand::Share(share, AtomicU64::new(1))))
    }

    /// The value if it always stays in memory.
    #[inline]
    pub(crate) const fn as_fixed(&self) -> Option<&T> {
        match self {
            Self::Fixed(value) => Some(value),
            Self::Counted(_) => None,
        }
    }

    /// Whether the value is in memory.
    pub(crate) fn is_cached(&self) -> bool {
        match self {
            Self::Fixed(_) => true,
            Self::Counted(counted) => counted.is_cached(),
        }
    }

    /// The value if it is in memory. Not counted as an access: for optional uses and prefetches.
    #[inline]
    pub(crate) fn get_if_cached(&self) -> Option<PinnedRef<'_, T>> {
        match self {
            Self::Fixed(value) => Some(PinnedRef::Fixed(value)),
            Self::Counted(counted) => counted.cached().map(PinnedRef::Guarded),
        }
    }

    /// The value, if it is admitted; loaded now.
    pub(crate) fn load_if_admitted(&self, load: impl FnOnce() -> Result<T>) -> Option<PinnedRef<'_, T>> {
        match self {
            Self::Fixed(value) => Some(PinnedRef::Fixed(value)),
            Self::Counted(counted) => counted.load_if_admitted(load).map(PinnedRef::Loaded),
        }
    }

    /// The value; loaded if it is not cached.
    #[inline]
    pub(crate) fn get(&self, load: impl FnOnce() -> Result<T>) -> Result<PinnedRef<'_, T>> {
        let counted = match self {
            Self::Fixed(value) => return Ok(PinnedRef::Fixed(value)),
            Self::Counted(counted) => counted,
        };
        counted.count();
        counted.get(load)
    }

    /// As [`Pinned::get`], without counting an access: for a read that counts it elsewhere.
    #[inline]
    pub(crate) fn get_uncounted(&self, load: impl FnOnce() -> Result<T>) -> Result<PinnedRef<'_, T>> {
        match self {
            Self::Fixed(value) => Ok(PinnedRef::Fixed(value)),
            Self::Counted(counted) => counted.get(load),
        }
    }

    /// The value if it is cached, or if it is admitted and can be loaded. For values that a read can do without.
    #[inline]
    pub(crate) fn get_if_admitted(&self, load: impl FnOnce() -> Result<T>) -> Option<PinnedRef<'_, T>> {
        let counted = match self {
            Self::Fixed(value) => return Some(PinnedRef::Fixed(value)),
            Self::Counted(counted) => counted,
        };
        let count = counted.count();
        if let Some(guard) = counted.cached() {
            return Some(PinnedRef::Guarded(guard));
        }
        let is_due = count.is_multiple_of(RETRY_INTERVAL);
        if is_due { counted.load_if_admitted(load).map(PinnedRef::Loaded) } else { None }
    }
}

impl<T: std::fmt::Debug + Send + Sync + 'static> Counted<T> {
    /// A value that is not loaded.
    fn new(pinned_cache: &Arc<PinnedCache>, file: &Arc<Path>, bytes: u64, demand: Demand) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Self>| Self {
            this: Weak::clone(this),
            pinned_cache: Arc::clone(pinned_cache),
            file: Arc::clone(file),
            value: ArcSwapOption::empty(),
            loading: Mutex::default(),
            bytes: AtomicU64::new(bytes),
            demand,
            is_reported: AtomicBool::new(false),
        })
    }

    /// The benefit for which others may be evicted.
    fn offered_benefit(&self) -> f64 {
        self.benefit() / HYSTERESIS
    }

    fn load_if_admitted(&self, load: impl FnOnce() -> Result<T>) -> Option<Arc<T>> {
        if !self.pinned_cache.would_admit(self.offered_benefit(), self.bytes()) {
            return None;
        }
        self.load(load).ok()
    }

    /// Counts an access; returns how many there were.
    #[inline]
    fn count(&self) -> u64 {
        match &self.demand {
            Demand::Own(hotness) => hotness.record_access(&self.pinned_cache.epoch),
            Demand::Share(_, count) => {
                let next = count.load(Ordering::Relaxed) + 1;
                count.store(next, Ordering::Relaxed);
                next
            }
        }
    }

    fn is_cached(&self) -> bool {
        self.value.load().is_some()
    }

    #[inline]
    fn cached(&self) -> Option<Guard<Option<Arc<T>>>> {
        let guard = self.value.load();
        guard.is_some().then_some(guard)
    }

    #[inline]
    fn get(&self, load: impl FnOnce() -> Result<T>) -> Result<PinnedRef<'_, T>> {
        match self.cached() {
            Some(guard) => Ok(PinnedRef::Guarded(guard)),
            None => self.load(load).map(PinnedRef::Loaded),
        }
    }

    fn load(&self, load: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let _loading = self.loading.lock();
        if let Some(value) = self.value.load_full() {
            return Ok(value);
        }
        let value = Arc::new(load()?);
        self.admit(&value);
        Ok(value)
    }

    /// Caches the value if there is room. Called by one thread at a time for each value.
    fn admit(&self, value: &Arc<T>) {
        let bytes = self.bytes();
        let mut cached = self.pinned_cache.cached.lock();
        if let Some(victims) = self.pinned_cache.take_victims(&mut cached, self.offered_benefit(), bytes) {
            victims.iter().for_each(|victim| victim.release());
            self.pinned_cache.budget.add_pinned(bytes);
            self.value.store(Some(Arc::clone(value)));
            cached.add(Weak::clone(&self.this) as Weak<dyn Member>);
            drop(cached);
            self.pinned_cache.budget.adapt_blocks();
            return;
        }
        drop(cached);
        // Some parts are meant to stay on disk.
        if matches!(self.demand, Demand::Own(_)) && !self.is_reported.swap(true, Ordering::Relaxed) {
            self.pinned_cache.metrics.cache_too_small.add(1);
            if let Some(listener) = &self.pinned_cache.listener {
                listener.on_event(&Event::CacheTooSmall { file: self.file.to_path_buf(), bytes });
            }
        }
    }
}

impl<T: std::fmt::Debug + Send + Sync> Member for Counted<T> {
    fn benefit(&self) -> f64 {
        let now = self.pinned_cache.epoch.now();
        match &self.demand {
            Demand::Own(hotness) => hotness.at(now),
            Demand::Share(share, _) => share.hotness.at(now) * share.saved,
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn release(&self) {
        if self.value.swap(None).is_some() {
            self.pinned_cache.budget.remove_pinned(self.bytes());
        }
    }
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        if self.value.swap(None).is_some() {
            self.pinned_cache.budget.remove_pinned(self.bytes.load(Ordering::Relaxed));
            self.pinned_cache.budget.adapt_blocks();
        }
    }
}

#[cfg(test)]
mod tests;
