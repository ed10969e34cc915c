//! Known gaps of one table, or of the runs of a sorted view: pairs of neighbouring keys that have no key between them.
//!
//! A range that a filter admitted and that has no key in the table is in such a gap. A table or a view never changes, so the gap is valid as
//! long as its file exists, and later ranges and points within it are rejected before a block is read. So no filter repeats a false
//! positive ([`crate::Options::gap_cache`]).
//!
//! 1. A gap is read from the table itself: its ends are keys of adjacent entries, of all versions. It never depends on a snapshot.
//! 2. All gaps of a store share one budget. A gap that needs room evicts others, of one table after the other: those that rejected
//!    nothing since the last turn of the table's clock.
//! 3. If few gaps of a table are hit, only some of its false positives are recorded.
//!
//! Cost: one relaxed load without gaps; otherwise a shared lock and a search in a tree, after the filters and before a block is
//! read. Point reads that find their key would be slower by a search, too. So points search only while they recently found gaps or
//! false positives of points were recorded ([`GapCache::may_reject_points`]).

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};
use tamis_filter::{KeyRange, Upper};

/// Memory of a gap, besides its keys.
const GAP_BYTES: u64 = 96;
/// Gaps with longer ends are not recorded.
const END_BYTES_MAX: usize = 1024;
/// False positives that are all recorded.
const ALL_RECORDED: u32 = 1024;
/// After that all are recorded while this share of them is hit.
const HITS_PER_GAP: u32 = 8;
/// Otherwise one of this number.
const RECORDED_INTERVAL: u32 = 16;
/// The number of point searches that a recorded gap, or a hit, allows.
const POINT_CREDIT: i32 = 4;
const POINT_CREDIT_MAX: i32 = 256;

/// Memory for the gaps of all tables of a store.
#[derive(Debug, Default)]
pub(crate) struct GapBudget {
    bytes_max: u64,
    bytes: AtomicU64,
    /// The tables with gaps, in the order in which they evict one.
    holders: Mutex<VecDeque<Weak<GapCache>>>,
}

impl GapBudget {
    /// 0 bytes: no gaps are recorded.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// Bytes in use.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn try_take(&self, bytes: u64) -> bool {
        let is_taken = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.bytes_max;
        if !is_taken {
            self.release(bytes);
        }
        is_taken
    }

    fn release(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn add_holder(&self, cache: &Arc<GapCache>) {
        let mut holders = self.holders.lock();
        holders.push_back(Arc::downgrade(cache));
        // Removed tables are dropped from the list before it has doubled.
        if holders.len().is_power_of_two() {
            holders.retain(|holder| holder.strong_count() > 0);
        }
    }

    /// Takes bytes for a gap of a table whose gaps are locked by the caller, after evicting gaps if needed; `false` if that fails.
    fn take_after_evictions(&self, bytes: u64, own: &GapCache, own_gaps: &mut Gaps) -> bool {
        // A turn evicts one gap. Tables that are locked by others are skipped.
        let mut turns = 2 * self.holders.lock().len() + (bytes / GAP_BYTES) as usize;
        let mut is_taken = self.try_take(bytes);
        while !is_taken && turns > 0 {
            turns -= 1;
            let Some(holder) = self.holders.lock().pop_front() else { break };
            let Some(cache) = holder.upgrade() else { continue };
            if std::ptr::eq(&*cache, own) {
                own_gaps.evict();
            } else if let Some(mut gaps) = cache.gaps.try_write() {
                gaps.evict();
                cache.count.store(gaps.by_predecessor.len(), Ordering::Relaxed);
            }
            self.holders.lock().push_back(holder);
            is_taken = self.try_take(bytes);
        }
        is_taken
    }
}

#[derive(Debug)]
struct Gap {
    /// The next key of the table.
    successor: Box<[u8]>,
    /// It rejected a query since the last turn of the clock.
    is_used: AtomicBool,
}

impl Gap {
    fn bytes(&self, predecessor: &[u8]) -> u64 {
        (predecessor.len() + self.successor.len()) as u64 + GAP_BYTES
    }
}

#[derive(Debug, Default)]
struct Gaps {
    /// By their predecessors, which are keys of the table.
    by_predecessor: BTreeMap<Box<[u8]>, Gap>,
    /// The clock continues at this predecessor.
    hand: Box<[u8]>,
    bytes: u64,
    budget: Option<Arc<GapBudget>>,
}

impl Gaps {
    /// Evicts a gap that was not used since the last turn; `false` without gaps.
    fn evict(&mut self) -> bool {
        let mut turns = 2 * self.by_predecessor.len();
        while turns > 0 {
            turns -= 1;
            let from = (Bound::Excluded(&*self.hand), Bound::Unbounded);
            let next = self.by_predecessor.range::<[u8], _>(from).next();
            let Some((predecessor, gap)) = next.or_else(|| self.by_predecessor.first_key_value()) else {
                return false;
            };
            self.hand = predecessor.clone();
            if turns > 0 && gap.is_used.swap(false, Ordering::Relaxed) {
                continue;
            }
            if let Some((predecessor, gap)) = self.by_predecessor.remove_entry(&self.hand) {
                self.release(gap.bytes(&predecessor));
            }
            return true;
        }
        false
    }

    fn release(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.budget.iter().for_each(|budget| budget.release(bytes));
    }
}

impl Drop for Gaps {
    fn drop(&mut self) {
        self.budget.iter().for_each(|budget| budget.release(self.bytes));
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct GapCache {
    count: AtomicUsize,
    point_credit: AtomicI32,
    false_positives: AtomicU32,
    hits: AtomicU32,
    gaps: RwLock<Gaps>,
}

impl GapCache {
    /// Whether a known gap has all keys of a range.
    #[inline]
    pub(crate) fn rejects(&self, range: &KeyRange<'_>) -> bool {
        self.count.load(Ordering::Relaxed) > 0 && self.search(range)
    }

    /// Whether points should be searched for.
    #[inline]
    pub(crate) fn may_reject_points(&self) -> bool {
        self.point_credit.load(Ordering::Relaxed) > 0
    }

    /// As [`GapCache::rejects`], for a key.
    pub(crate) fn rejects_point(&self, key: &[u8]) -> bool {
        let is_rejected = self.rejects(&KeyRange::point(key));
        self.add_point_credit(if is_rejected { POINT_CREDIT } else { -1 });
        is_rejected
    }

    fn add_point_credit(&self, credit: i32) {
        // Two threads may lose a change of each other, which only changes the number of searches.
        let changed = self.point_credit.load(Ordering::Relaxed).saturating_add(credit);
        self.point_credit.store(changed.clamp(0, POINT_CREDIT_MAX), Ordering::Relaxed);
    }

    fn search(&self, range: &KeyRange<'_>) -> bool {
        let (lower, is_excluded) = match range.lower {
            Bound::Unbounded => return false,
            Bound::Included(lower) => (lower, false),
            Bound::Excluded(lower) => (lower, true),
        };
        let gaps = self.gaps.read();
        let before = (Bound::Unbounded, Bound::Included(lower));
        let Some((predecessor, gap)) = gaps.by_predecessor.range::<[u8], _>(before).next_back() else {
            return false;
        };
        if !is_excluded && **predecessor == *lower {
            return false;
        }
        let successor = &*gap.successor;
        let is_within = match range.upper {
            Upper::Open => false,
            Upper::Included(upper) => upper < successor,
            Upper::Excluded(upper) => upper <= successor,
            Upper::Prefix(prefix) => prefix < successor && !successor.starts_with(prefix),
        };
        if is_within {
            gap.is_used.store(true, Ordering::Relaxed);
            self.hits.fetch_add(1, Ordering::Relaxed);
        }
        is_within
    }

    /// Counts a false positive; whether its gap should be recorded.
    pub(crate) fn should_record(&self, budget: &GapBudget) -> bool {
        let number = self.false_positives.fetch_add(1, Ordering::Relaxed);
        budget.bytes_max > 0
            && (number < ALL_RECORDED
                || self.hits.load(Ordering::Relaxed) >= number / HITS_PER_GAP
                || number.is_multiple_of(RECORDED_INTERVAL))
    }

    /// Lets the next points search for gaps: a false positive of a point was recorded.
    pub(crate) fn expect_points(&self) {
        self.add_point_credit(POINT_CREDIT);
    }

    /// Records that the table has no key between two keys of adjacent entries.
    pub(crate) fn record(self: &Arc<Self>, budget: &Arc<GapBudget>, predecessor: &[u8], successor: &[u8]) {
        if predecessor.len() + successor.len() > END_BYTES_MAX {
            return;
        }
        // A read never waits for another one that records a gap.
        let Some(mut gaps) = self.gaps.try_write() else { return };
        if gaps.by_predecessor.contains_key(predecessor) {
            return;
        }
        let gap = Gap { successor: successor.into(), is_used: AtomicBool::new(false) };
        let bytes = gap.bytes(predecessor);
        if bytes > budget.bytes_max {
            return;
        }
        if gaps.budget.is_none() {
            gaps.budget = Some(Arc::clone(budget));
            budget.add_holder(self);
        }
        if budget.take_after_evictions(bytes, self, &mut gaps) {
            gaps.bytes += bytes;
            gaps.by_predecessor.insert(predecessor.into(), gap);
        }
        self.count.store(gaps.by_predecessor.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
