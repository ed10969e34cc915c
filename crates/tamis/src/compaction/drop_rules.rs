//! The drop rules of flushes and compactions: which entries are obsolete. Pure: they see entries in order and the read points.
//!
//! The read points (snapshots, and the visible sequence number when the job began) divide the sequence numbers into strata:
//! stratum `i` holds the numbers above point `i - 1` up to point `i`.
//!
//! 1. Of a key, the newest entry of each stratum is kept, because its read point sees it. Older ones of the stratum are dropped: no
//!    reader sees them.
//! 2. Entries above the last point are all kept: a snapshot may still be taken between any two of them.
//! 3. A tombstone is dropped if it is in the lowest stratum (rule 1 then drops every older entry of its key in the job) and no older
//!    entry of its key can exist outside of the job. Readers at every point find nothing, with it or without it.
//! 4. An entry is dropped if a newer range tombstone of its stratum covers it.
//! 5. Of the range tombstones that cover a key, the newest of each stratum is kept. One of the lowest stratum is dropped where no
//!    older entry in its span can exist outside of the job.
//! 6. A range tombstone that is kept gets the least sequence number of its stratum that is above those of all older entries outside of the
//!    job: it deletes the same ones, and the entries of the job that it deletes are dropped. Range tombstones of one stratum then mostly
//!    have one number, and adjacent ones become one.
//! 7. Below an operand rule 1 does not drop: the next older entry of its stratum is kept, too, down to the first one that is no operand
//!    ([`super::operand_fold`]). An entry with the number of the previous entry is the same entry.

use crate::{
    key::{Kind, Sequence},
    range_tombstone::{Fragment, Fragments, RangeTombstone, fragment, is_below_upper},
    sync::sim_fault,
};

/// The fate of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Drop,
    Keep,
    /// It is kept, or folded with the next older entries.
    Operand {
        is_newest: bool,
    },
    /// It is kept, or folded with the operands before it, which apply to it.
    Base,
    /// It is dropped, and the operands before it apply to no value.
    NoBase,
    /// As `Base`; it is the result of the operand before it, which has the same number: a repair may find both.
    Folded,
}

impl Decision {
    /// Whether an entry that is not folded is kept.
    pub(crate) const fn is_kept(self) -> bool {
        !matches!(self, Self::Drop | Self::NoBase)
    }
}

/// See the head of this file. Entries are passed in order: keys ascending, versions newest first.
#[derive(Debug)]
pub(crate) struct DropRules {
    /// Ascending; the last one is the visible number when the job began.
    read_points: Vec<Sequence>,
    key: Vec<u8>,
    /// The stratum of the last entry of `key`; `None` before the first entry.
    stratum: Option<usize>,
    /// The sequence number of the last entry, if it is a kept operand to which rule 7 applies.
    operand: Option<Sequence>,
    /// The range tombstones of the job, without those that no reader can distinguish.
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
        Self::of_fragments(read_points, range_tombstones)
    }

    /// The rules of a job whose range tombstones are already fragmented, for the same read points.
    pub(crate) const fn of_fragments(read_points: Vec<Sequence>, range_tombstones: Fragments) -> Self {
        Self {
            read_points,
            key: Vec::new(),
            stratum: None,
            operand: None,
            range_tombstones,
            fragment_index: 0,
        }
    }

    /// The range tombstones of the job.
    pub(crate) const fn range_tombstones(&self) -> &Fragments {
        &self.range_tombstones
    }

    /// The range tombstones to keep, in key order. `older` returns the bounds (included, excluded) of all tables that may hold older
    /// entries in a span, and `older_sequence` is at or above the sequence numbers of all these entries.
    pub(crate) fn kept_range_tombstones(
        &self,
        older: impl Fn(&[u8], &[u8]) -> Option<(Vec<u8>, Vec<u8>)>,
        older_sequence: Sequence,
    ) -> Vec<Fragment> {
        let lowest = self.read_points.first().copied().unwrap_or(0);
        let kept = self.range_tombstones.list().iter().flat_map(|fragment| {
            let is_needed = |sequence: &Sequence| *sequence > lowest;
            let newer: Vec<Sequence> = fragment.sequences.iter().copied().filter(is_needed).collect();
            if newer.len() == fragment.sequences.len() {
                return vec![fragment.clone()];
            }
            let range = older(&fragment.lower, &fragment.upper);
            let with = |lower: &[u8], upper: &[u8], sequences: &[Sequence]| {
                let is_empty = sequences.is_empty() || !is_below_upper(lower, upper);
                (!is_empty).then(|| Fragment {
                    lower: lower.to_vec(),
                    upper: upper.to_vec(),
                    sequences: sequences.to_vec(),
                })
            };
            let Some((lower, upper)) = range else {
                return with(&fragment.lower, &fragment.upper, &newer).into_iter().collect();
            };
            // Outside of these bounds only tombstones above the lowest read point are needed.
            let before = with(&fragment.lower, &lower, &newer).filter(|_| !lower.is_empty());
            let within = with(&lower, &upper, &fragment.sequences);
            let behind = with(&upper, &fragment.upper, &newer).filter(|_| !upper.is_empty());
            before.into_iter().chain(within).chain(behind).collect()
        });
        let mut joined: Vec<Fragment> = Vec::new();
        for mut fragment in kept {
            self.lower_sequences(&mut fragment.sequences, older_sequence);
            match joined.last_mut() {
                Some(last) if last.upper == fragment.lower && last.sequences == fragment.sequences => {
                    last.upper = fragment.upper;
                }
                _ => joined.push(fragment),
            }
        }
        joined
    }

    /// Rule 6.
    fn lower_sequences(&self, sequences: &mut [Sequence], older_sequence: Sequence) {
        for sequence in sequences {
            let stratum = self.read_points.partition_point(|&point| point < *sequence);
            if stratum < self.read_points.len() {
                let below = stratum.checked_sub(1).and_then(|below| self.read_points.get(below)).copied();
                let least = below.unwrap_or(0).max(older_sequence).saturating_add(1);
                *sequence = least.min(*sequence);
            }
        }
    }

    /// Whether rule 4 drops all entries of a table: it need not be read.
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

    /// Decides about the next entry. `is_lowest` returns whether no older entry of the key can exist outside of the job; it is called
    /// only for tombstones.
    #[inline]
    pub(crate) fn decide(
        &mut self,
        key: &[u8],
        sequence: Sequence,
        kind: Kind,
        is_lowest: impl FnOnce() -> bool,
    ) -> Decision {
        let stratum = self.read_points.partition_point(|&point| point < sequence);
        let is_same_key = self.stratum.is_some() && self.key == key;
        let is_covered = is_same_key && self.stratum == Some(stratum) && stratum < self.read_points.len();
        let newer_operand = self.operand.take().filter(|_| is_covered);
        if !is_same_key {
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        self.stratum = Some(stratum);
        if let Some(newer) = newer_operand {
            return self.decide_below_operand((key, sequence, kind), newer, stratum, is_lowest);
        }
        if is_covered || self.is_range_deleted(key, sequence, stratum) {
            return Decision::Drop;
        }
        if kind == Kind::Operand && stratum < self.read_points.len() {
            self.operand = Some(sequence);
            return Decision::Operand { is_newest: true };
        }
        let is_dropped =
            kind == Kind::Tombstone && stratum == 0 && (is_lowest() || sim_fault!("drop-tombstone-early"));
        if is_dropped { Decision::Drop } else { Decision::Keep }
    }

    /// Rule 7.
    #[cold]
    fn decide_below_operand(
        &mut self,
        (key, sequence, kind): (&[u8], Sequence, Kind),
        newer: Sequence,
        stratum: usize,
        is_lowest: impl FnOnce() -> bool,
    ) -> Decision {
        if sequence == newer && kind != Kind::Operand {
            return Decision::Folded;
        }
        if sequence >= newer || kind == Kind::Operand && sim_fault!("drop-an-operand") {
            self.operand = Some(newer);
            return Decision::Drop;
        }
        if self.is_range_deleted(key, sequence, stratum) {
            return Decision::NoBase;
        }
        match kind {
            Kind::Operand => {
                self.operand = Some(sequence);
                Decision::Operand { is_newest: false }
            }
            Kind::Tombstone if stratum == 0 && is_lowest() => Decision::NoBase,
            _ => Decision::Base,
        }
    }
}

#[cfg(test)]
mod tests;
