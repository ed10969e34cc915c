//! Ranges of keys in which scans have found no visible entry: hints in memory, so that later scans jump over deleted keys.
//!
//! A range is valid from the sequence number at which it was found empty, until something is put into it: readers at or above
//! that number find nothing in it, in any memtable and table. Deletes do not end it. Hints are never
//! stored, and every one of them may be dropped at any time.
//!
//! A scan publishes a *candidate*, looks for puts that are newer than its own sequence number, and confirms the candidate if there are
//! none. The range is valid from the number that is visible then, not from that of the scan: a compaction may have dropped a put
//! between the two with its delete, and other readers may still keep it. A writer inserts its entries, looks for ranges and candidates of their keys, and publishes its sequence numbers afterwards. A fence
//! between the two steps of both makes sure that one of them sees the other: either the scan finds the put, or the writer ends
//! the candidate. A reader loads the ranges after it has loaded its sequence number, so that it never sees a range that a put which
//! it must find has ended.
//!
//! Invariants: (1) ranges are disjoint and in key order; (2) no put of a range is newer than its sequence number, unless its writer has
//! not published it yet.
//!
//! Cost: one load per commit and per scan until the first range is noted; then a binary search per put.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering, fence},
};

use arc_swap::ArcSwap;

use crate::{
    key::{SEQUENCE_MAX, Sequence},
    range_tombstone::{Cover, compare_uppers, is_below_upper, key_after},
    sync::{self, sim_fault},
};

/// The maximum number of ranges; the oldest are dropped.
const RANGE_COUNT_MAX: usize = 64;

/// See the head of this file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EmptyRange {
    /// Included.
    pub(crate) lower: Vec<u8>,
    /// Excluded; empty: no end.
    pub(crate) upper: Vec<u8>,
    /// The number at which it was found empty.
    pub(crate) sequence: Sequence,
}

impl EmptyRange {
    fn has(&self, key: &[u8]) -> bool {
        self.lower.as_slice() <= key && is_below_upper(key, &self.upper)
    }

    /// Whether the ranges have a key in common or are adjacent.
    fn touches(&self, other: &Self) -> bool {
        let begins_within = |lower: &[u8], upper: &[u8]| upper.is_empty() || lower <= upper;
        begins_within(&self.lower, &other.upper) && begins_within(&other.lower, &self.upper)
    }

    /// One range for two that touch.
    fn joined(self, other: &Self) -> Self {
        let is_last = compare_uppers(&self.upper, &other.upper).is_ge();
        Self {
            lower: self.lower.min(other.lower.clone()),
            upper: if is_last { self.upper } else { other.upper.clone() },
            sequence: self.sequence.max(other.sequence),
        }
    }

    /// The parts before and behind a key of the range.
    fn around(&self, key: &[u8]) -> impl Iterator<Item = Arc<Self>> {
        let before = Self { upper: key.to_vec(), ..self.clone() };
        let behind = key_after(key).map(|after| Self { lower: after, ..self.clone() });
        let parts = [Some(before), behind].into_iter().flatten();
        parts.filter(|part| is_below_upper(&part.lower, &part.upper)).map(Arc::new)
    }
}

/// The ranges that a reader found when it loaded them.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownRanges {
    ranges: Vec<Arc<EmptyRange>>,
    candidate: Option<Arc<EmptyRange>>,
}

impl KnownRanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The first range with a key at or above `key`, which may be empty.
    pub(crate) fn first_from(&self, key: &[u8]) -> Option<&EmptyRange> {
        let ended = self.ranges.partition_point(|range| !is_below_upper(key, &range.upper));
        self.ranges.get(ended).map(Arc::as_ref)
    }

    /// The range that begins last at or before `key`, and the next one.
    fn around(&self, key: &[u8]) -> (Option<&EmptyRange>, Option<&EmptyRange>) {
        let begun = self.ranges.partition_point(|range| range.lower.as_slice() <= key);
        let at = |index: Option<usize>| self.ranges.get(index?).map(Arc::as_ref);
        (at(begun.checked_sub(1)), at(Some(begun)))
    }

    /// The range of `key`.
    pub(crate) fn range_of(&self, key: &[u8]) -> Option<&EmptyRange> {
        self.around(key).0.filter(|range| range.has(key))
    }

    /// The cover of `key`, which may be empty, for a reader at `snapshot`: all its visible entries count as deleted.
    pub(crate) fn cover_at(&self, key: &[u8], snapshot: Sequence) -> Cover<'_> {
        match self.around(key) {
            (Some(range), _) if range.has(key) => {
                let sequence = if range.sequence <= snapshot { SEQUENCE_MAX } else { 0 };
                Cover { sequence, lower: &range.lower, upper: &range.upper }
            }
            (before, next) => Cover {
                sequence: 0,
                lower: before.map_or(&[], |range| &range.upper),
                upper: next.map_or(&[], |range| &range.lower),
            },
        }
    }

    fn is_ended_by(&self, key: &[u8], sequence: Sequence) -> bool {
        let mut ranges = self.range_of(key).into_iter().chain(self.candidate.as_deref());
        ranges.any(|range| range.has(key) && range.sequence < sequence)
    }

    /// Without the key of a newer put.
    fn without(&self, key: &[u8], sequence: Sequence) -> Self {
        let is_ended = |range: &EmptyRange| range.has(key) && range.sequence < sequence;
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        for range in &self.ranges {
            if is_ended(range) {
                ranges.extend(range.around(key));
            } else {
                ranges.push(Arc::clone(range));
            }
        }
        Self { ranges, candidate: self.candidate.clone().filter(|range| !is_ended(range)) }.bounded()
    }

    /// With the candidate as a range that is valid from `sequence`.
    fn with_candidate(&self, sequence: Sequence) -> Self {
        let Some(candidate) = &self.candidate else { return self.clone() };
        let sequence = if sim_fault!("note-range-at-old-number") { candidate.sequence } else { sequence };
        let candidate = &EmptyRange { sequence, ..EmptyRange::clone(candidate) };
        let (touching, mut ranges): (Vec<_>, Vec<_>) =
            self.ranges.iter().cloned().partition(|range| range.touches(candidate));
        let joined = touching.iter().fold(EmptyRange::clone(candidate), |all, range| all.joined(range));
        let place = ranges.partition_point(|range| range.lower < joined.lower);
        ranges.insert(place, Arc::new(joined));
        Self { ranges, candidate: None }.bounded()
    }

    fn bounded(mut self) -> Self {
        while self.ranges.len() > RANGE_COUNT_MAX {
            let oldest = self.ranges.iter().enumerate().min_by_key(|(_, range)| range.sequence);
            let Some((index, _)) = oldest else { break };
            self.ranges.remove(index);
        }
        self
    }
}

/// The hints of a keyspace; see the head of this file.
#[derive(Debug, Default)]
pub(crate) struct EmptyRanges {
    is_used: AtomicBool,
    known: ArcSwap<KnownRanges>,
}

/// A range that is not valid yet. Dropping it gives it up.
pub(crate) struct Candidate<'a> {
    owner: &'a EmptyRanges,
    range: Arc<EmptyRange>,
}

impl EmptyRanges {
    /// The ranges that are valid now; `None` if there are none. A reader calls it after it has loaded its sequence number.
    pub(crate) fn load(&self) -> Option<Arc<KnownRanges>> {
        sync::point();
        let known = self.is_used.load(Ordering::Acquire).then(|| self.known.load_full());
        known.filter(|known| !known.is_empty())
    }

    /// Publishes a candidate, if there is no other one. The caller then looks for newer puts, and confirms it if it has found none.
    pub(crate) fn begin(&self, range: EmptyRange) -> Option<Candidate<'_>> {
        let range = Arc::new(range);
        self.is_used.store(true, Ordering::SeqCst);
        let before = self.known.rcu(|known| {
            let candidate = known.candidate.as_ref().unwrap_or(&range);
            KnownRanges { ranges: known.ranges.clone(), candidate: Some(Arc::clone(candidate)) }
        });
        fence(Ordering::SeqCst);
        sync::point();
        before.candidate.is_none().then_some(Candidate { owner: self, range })
    }

    /// Whether writers must call [`EmptyRanges::note_put`]. To be called after all entries of a commit were inserted, and before they
    /// are published.
    #[inline]
    pub(crate) fn are_used(&self) -> bool {
        sync::point();
        fence(Ordering::SeqCst);
        self.is_used.load(Ordering::Relaxed)
    }

    /// Ends the range of a key that was put.
    pub(crate) fn note_put(&self, key: &[u8], sequence: Sequence) {
        if self.known.load().is_ended_by(key, sequence) {
            self.known.rcu(|known| known.without(key, sequence));
        }
    }

    /// Ends all ranges. To be called after newer tables were installed, and before their entries are published.
    pub(crate) fn clear(&self) {
        if self.are_used() {
            self.known.store(Arc::default());
        }
    }
}

impl Candidate<'_> {
    pub(crate) fn range(&self) -> &EmptyRange {
        &self.range
    }

    /// Makes the range valid from `sequence`, which the caller has loaded after it has looked for newer puts; returns `false` if a writer
    /// has ended it meanwhile.
    pub(crate) fn confirm(&self, sequence: Sequence) -> bool {
        let is_current = |known: &KnownRanges| {
            known.candidate.as_ref().is_some_and(|candidate| Arc::ptr_eq(candidate, &self.range))
        };
        let before = self.owner.known.rcu(|known| match is_current(known) {
            true => Arc::new(known.with_candidate(sequence)),
            false => Arc::clone(known),
        });
        is_current(&before)
    }
}

impl Drop for Candidate<'_> {
    fn drop(&mut self) {
        self.owner.known.rcu(|known| match &known.candidate {
            Some(candidate) if Arc::ptr_eq(candidate, &self.range) => {
                Arc::new(KnownRanges { ranges: known.ranges.clone(), candidate: None })
            }
            _ => Arc::clone(known),
        });
    }
}

#[cfg(test)]
mod tests;
