//! A range of keys around the position of a scan in which the memtables have no entry, and the entries of memtables at its ends.
//!
//! Memtables have few entries, tables have many: a scan of a view mostly takes several steps before it reaches the next key of a memtable.
//! Within the gap the view alone has the entries of the scan. At an end of it, the memtables say which version of the key the snapshot
//! sees, and the next gap begins behind the key. Entries that memtables get later are newer than the snapshot, or equal to entries of
//! another memtable that the scan knows: if they end the gap, it is only smaller than necessary.
//!
//! Cost: a search in each memtable for an end of the gap, at a seek and at a change of direction. Forward, the next gap costs a step.

use crate::{
    cursor::Cursor as _,
    error::Result,
    key::{AFTER_ALL, Kind, SEQUENCE_MAX, Sequence},
    keyspace_state::ReadState,
    memtable::MemtableCursor,
    slice::Slice,
};

/// An end of the gap.
enum End {
    /// It was not searched yet.
    Unknown,
    /// There is no entry on this side.
    Open,
    /// The nearest entry has this key.
    At(Vec<u8>),
}

impl End {
    fn key(&self) -> Option<&[u8]> {
        match self {
            Self::At(key) => Some(key),
            _ => None,
        }
    }
}

/// The version of a key in the memtables that a snapshot sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// A put, which [`MemtableGap::entry`] returns until the next movement.
    Put,
    Deleted,
    /// All versions are newer than the snapshot.
    Hidden,
}

/// See the head of this file.
pub(super) struct MemtableGap {
    /// Of the memtables that have entries.
    cursors: Vec<MemtableCursor>,
    lower: End,
    upper: End,
    /// Each cursor is at its first entry at or behind the upper end.
    is_at_upper: bool,
    /// The cursor at the entry that was shown last.
    shown: usize,
}

impl MemtableGap {
    pub(super) fn new(read_state: &ReadState) -> Self {
        let filled = read_state.memtables().filter(|memtable| memtable.memtable.entry_count() > 0);
        let cursors: Vec<_> = filled.map(|memtable| memtable.memtable.cursor()).collect();
        Self { cursors, lower: End::Open, upper: End::Open, is_at_upper: false, shown: 0 }
    }

    /// Begins a forward movement from a key on, included if `is_inclusive`, or from the first one.
    pub(super) fn begin_forward(&mut self, from: Option<(&[u8], bool)>) -> Result<()> {
        if !self.cursors.is_empty() {
            self.lower = End::Unknown;
            let place = |(key, is_inclusive)| (key, if is_inclusive { SEQUENCE_MAX } else { AFTER_ALL });
            self.find_upper(from.map(place))?;
        }
        Ok(())
    }

    /// Begins a backward movement from a key on, included if `is_inclusive`, or from the last one.
    pub(super) fn begin_backward(&mut self, from: Option<(&[u8], bool)>) -> Result<()> {
        if !self.cursors.is_empty() {
            self.upper = End::Unknown;
            self.find_lower(from)?;
        }
        Ok(())
    }

    /// Prepares a step forward from a key within the gap. The key is passed: a memtable may have got a later entry of it.
    #[inline]
    pub(super) fn continue_forward(&mut self, key: &[u8]) -> Result<()> {
        if matches!(self.upper, End::Unknown) { self.find_upper(Some((key, AFTER_ALL))) } else { Ok(()) }
    }

    /// Prepares a step backward from a key within the gap.
    #[inline]
    pub(super) fn continue_backward(&mut self, key: &[u8]) -> Result<()> {
        if matches!(self.lower, End::Unknown) { self.find_lower(Some((key, false))) } else { Ok(()) }
    }

    /// The next key of a memtable in a forward movement, after [`MemtableGap::continue_forward`].
    pub(super) fn upper(&self) -> Option<&[u8]> {
        self.upper.key()
    }

    /// The key of a memtable that a forward movement to `reached`, or to the end, has met.
    #[inline]
    pub(super) fn met_forward(&self, reached: Option<&[u8]>) -> Option<&[u8]> {
        self.upper.key().filter(|key| reached.is_none_or(|reached| reached >= *key))
    }

    /// As [`MemtableGap::met_forward`], for a backward movement.
    #[inline]
    pub(super) fn met_backward(&self, reached: Option<&[u8]>) -> Option<&[u8]> {
        self.lower.key().filter(|key| reached.is_none_or(|reached| reached <= *key))
    }

    /// The version of the key at an end of the gap that a snapshot sees.
    pub(super) fn show(&mut self, is_forward: bool, snapshot: Sequence) -> Result<Shown> {
        let Self { cursors, lower, upper, shown, .. } = self;
        let end = if is_forward { upper } else { lower };
        let Some(key) = end.key() else { return Ok(Shown::Hidden) };
        let mut newest = None;
        for (number, cursor) in cursors.iter_mut().enumerate() {
            if is_forward && self.is_at_upper {
                while cursor.is_valid() && cursor.sequence() > snapshot && cursor.key() == key {
                    cursor.next()?;
                }
            } else {
                cursor.seek(key, snapshot)?;
            }
            let is_newest =
                newest.is_none_or(|(sequence, _)| cursor.is_valid() && cursor.sequence() > sequence);
            if is_newest && cursor.is_valid() && cursor.key() == key {
                newest = Some((cursor.sequence(), cursor.kind()));
                *shown = number;
            }
        }
        self.is_at_upper = is_forward;
        Ok(match newest {
            None => Shown::Hidden,
            Some((_, Kind::Put)) => Shown::Put,
            Some((_, Kind::Tombstone | Kind::RangeTombstone)) => Shown::Deleted,
        })
    }

    /// The key and the value of the entry that was shown last.
    pub(super) fn entry(&self) -> (&[u8], &[u8]) {
        self.cursors.get(self.shown).map_or((&[], &[]), |cursor| (cursor.key(), cursor.value()))
    }

    /// The value of [`MemtableGap::entry`] as an owned slice.
    pub(super) fn value_slice(&self) -> Slice {
        self.cursors.get(self.shown).map_or_else(|| Slice::from([].as_slice()), |cursor| cursor.value_slice())
    }

    /// Passes the key at an end of the gap, after [`MemtableGap::show`]: the next gap begins behind it. Returns the key.
    pub(super) fn pass(&mut self, is_forward: bool) -> Result<Vec<u8>> {
        let end = if is_forward { &mut self.upper } else { &mut self.lower };
        let End::At(key) = std::mem::replace(end, End::Unknown) else { return Ok(Vec::new()) };
        if !is_forward {
            self.upper = End::Unknown;
            self.find_lower(Some((&key, false)))?;
            return Ok(key);
        }
        self.lower = End::Unknown;
        let pass = |cursor: &mut MemtableCursor| {
            while cursor.is_valid() && cursor.key() == key.as_slice() {
                cursor.next()?;
            }
            Ok(())
        };
        self.upper = nearest(&mut self.cursors, pass, |key, other| key < other)?;
        Ok(key)
    }

    /// The first entries from a key and sequence number on, in the order of entries: of one key, the newest is first.
    #[cold]
    fn find_upper(&mut self, from: Option<(&[u8], Sequence)>) -> Result<()> {
        let seek = |cursor: &mut MemtableCursor| match from {
            Some((key, sequence)) => cursor.seek(key, sequence),
            None => cursor.seek_first(),
        };
        self.upper = nearest(&mut self.cursors, seek, |key, other| key < other)?;
        self.is_at_upper = true;
        Ok(())
    }

    #[cold]
    fn find_lower(&mut self, from: Option<(&[u8], bool)>) -> Result<()> {
        let seek = |cursor: &mut MemtableCursor| match from {
            Some((key, is_inclusive)) => cursor.seek_for_prev(key, is_inclusive),
            None => cursor.seek_last(),
        };
        self.lower = nearest(&mut self.cursors, seek, |key, other| key > other)?;
        self.is_at_upper = false;
        Ok(())
    }
}

/// The nearest of the keys to which a movement leads in each memtable.
fn nearest(
    cursors: &mut [MemtableCursor],
    go: impl Fn(&mut MemtableCursor) -> Result<()>,
    is_nearer: impl Fn(&[u8], &[u8]) -> bool,
) -> Result<End> {
    let mut end = End::Open;
    for cursor in cursors {
        go(cursor)?;
        let is_nearest = match &end {
            End::At(key) => cursor.is_valid() && is_nearer(cursor.key(), key),
            _ => cursor.is_valid(),
        };
        if is_nearest {
            end = End::At(cursor.key().to_vec());
        }
    }
    Ok(end)
}
