//! Which entries a flush or compaction may leave out. Pure: it sees entries in order and knows the read points.
//!
//! The read points (snapshots, and what was visible when the job began) cut the sequence numbers into strata: stratum
//! `i` holds the numbers above point `i - 1` up to point `i`. Of a key,
//!
//! 1. the newest entry of each stratum is kept, because its read point sees it; older ones of the stratum are seen by
//!    nobody and go;
//! 2. entries above the last point are all kept: a snapshot may yet be taken between any two of them;
//! 3. a tombstone goes when it lies in the lowest stratum (so every older entry of its key in the job goes by rule 1)
//!    and nothing older of its key can lie outside of the job. Readers at every point then find nothing, as before.

use crate::key::{Kind, Sequence};

/// What to do with entries, given in order (key ascending, newest first).
#[derive(Debug)]
pub(crate) struct DropRules {
    /// Ascending, the last one is the visible number when the job began.
    read_points: Vec<Sequence>,
    key: Vec<u8>,
    /// The stratum of the last entry of `key`; `None` before the first entry.
    stratum: Option<usize>,
}

impl DropRules {
    pub(crate) const fn new(read_points: Vec<Sequence>) -> Self {
        Self { read_points, key: Vec::new(), stratum: None }
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
        if is_covered {
            return false;
        }
        !(kind == Kind::Tombstone && stratum == 0 && is_lowest())
    }
}

#[cfg(test)]
mod tests;
