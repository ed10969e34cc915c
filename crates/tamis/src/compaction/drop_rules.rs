//! Which entries a flush or compaction may leave out. Pure: it sees entries in order and knows the read points.
//!
//! The read points (snapshots, and what was visible when the job began) cut the sequence numbers into strata: stratum
//! `i` holds the numbers above point `i - 1` up to point `i`. Of a key,
//!
//! 1. the newest entry of each stratum is kept, because its read point sees it; older ones of the stratum are seen by
//!    nobody and go;
//! 2. entries above the last point are all kept: a snapshot may yet be taken between any two of them;
//! 3. a tombstone goes when it lies in the lowest stratum (so every older entry of its key in the job goes by rule 1)
//!    and nothing older of its key can lie outside of the job. Readers at every point then find nothing, as before;
//! 4. an entry goes when a range tombstone of its stratum covers it;
//! 5. of range tombstones that cover a key the newest of each stratum is kept; one of the lowest stratum goes where nothing
//!    older within its span can lie outside of the job.

use crate::{
    key::{Kind, Sequence},
    range_tombstone::{Fragment, Fragments, RangeTombstone, fragment, is_below_upper},
};

/// What to do with entries, given in order (key ascending, newest first).
#[derive(Debug)]
pub(crate) struct DropRules {
    /// Ascending, the last one is the visible number when the job began.
    read_points: Vec<Sequence>,
    key: Vec<u8>,
    /// The stratum of the last entry of `key`; `None` before the first entry.
    stratum: Option<usize>,
    /// The range tombstones of the job, as far as some reader can tell them apart.
    range_tombstones: Fragments,
    /// The first fragment that does not end before the last entry.
    fragment_index: usize,
}

impl DropRules {
    pub(crate) fn new(
        read_points: Vec<Sequence>,
        range_tombstones: impl IntoIterator<Item = RangeTombstone>,
    ) -> Self {
        let range_tombstones = fragment(range_tombstones, &read_points);
        Self { read_points, key: Vec::new(), stratum: None, range_tombstones, fragment_index: 0 }
    }

    /// The range tombstones of the job.
    pub(crate) const fn range_tombstones(&self) -> &Fragments {
        &self.range_tombstones
    }

    /// What is kept of the range tombstones, in key order. `older` gives the hull of what may hold older entries within a span: an
    /// included and an excluded bound.
    pub(crate) fn kept_range_tombstones(
        &self,
        older: impl Fn(&[u8], &[u8]) -> Option<(Vec<u8>, Vec<u8>)>,
    ) -> Vec<Fragment> {
        let lowest = self.read_points.first().copied().unwrap_or(0);
        let kept = self.range_tombstones.list().iter().flat_map(|fragment| {
            let is_needed = |sequence: &Sequence| *sequence > lowest;
            let newer: Vec<Sequence> = fragment.sequences.iter().copied().filter(is_needed).collect();
            if newer.len() == fragment.sequences.len() {
                return vec![fragment.clone()];
            }
            let hull = older(&fragment.lower, &fragment.upper);
            let with = |lower: &[u8], upper: &[u8], sequences: &[Sequence]| {
                let is_empty = sequences.is_empty() || !is_below_upper(lower, upper);
                (!is_empty).then(|| Fragment {
                    lower: lower.to_vec(),
                    upper: upper.to_vec(),
                    sequences: sequences.to_vec(),
                })
            };
            let Some((lower, upper)) = hull else {
                return with(&fragment.lower, &fragment.upper, &newer).into_iter().collect();
            };
            // Before and behind the hull only what is above the lowest read point is needed.
            let before = with(&fragment.lower, &lower, &newer).filter(|_| !lower.is_empty());
            let within = with(&lower, &upper, &fragment.sequences);
            let behind = with(&upper, &fragment.upper, &newer).filter(|_| !upper.is_empty());
            before.into_iter().chain(within).chain(behind).collect()
        });
        kept.collect()
    }

    /// Whether all entries of a table go by rule 4: they need not be read.
    pub(crate) fn covers_all(&self, lower: &[u8], upper: &[u8], sequences: (Sequence, Sequence)) -> bool {
        let stratum = |sequence: Sequence| self.read_points.partition_point(|&point| point < sequence);
        let Some(&point) = self.read_points.get(stratum(sequences.1)) else { return false };
        stratum(sequences.0) == stratum(sequences.1)
            && self.range_tombstones.cover_all(lower, upper, sequences.1, point)
    }

    /// Rule 4.
    fn is_range_deleted(&mut self, key: &[u8], sequence: Sequence, stratum: usize) -> bool {
        let list = self.range_tombstones.list();
        while list.get(self.fragment_index).is_some_and(|fragment| !is_below_upper(key, &fragment.upper)) {
            self.fragment_index += 1;
        }
        let (Some(fragment), Some(&point)) = (list.get(self.fragment_index), self.read_points.get(stratum))
        else {
            return false;
        };
        fragment.lower.as_slice() <= key && fragment.newest_at(point) > sequence
    }

    /// Whether the entry is kept. `is_lowest` says whether nothing older of the key can lie outside of the job; it is
    /// asked for tombstones only.
    #[inline]
    pub(crate) fn keeps(
        &mut self,
        key: &[u8],
        sequence: Sequence,
        kind: Kind,
        is_lowest: impl FnOnce() -> bool,
    ) -> bool {
        let stratum = self.read_points.partition_point(|&point| point < sequence);
        let is_same_key = self.stratum.is_some() && self.key == key;
        let is_covered = is_same_key && self.stratum == Some(stratum) && stratum < self.read_points.len();
        if !is_same_key {
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        self.stratum = Some(stratum);
        if is_covered || self.is_range_deleted(key, sequence, stratum) {
            return false;
        }
        !(kind == Kind::Tombstone && stratum == 0 && is_lowest())
    }
}

#[cfg(test)]
mod tests;
