//! Point lookups in a memtable.

use std::sync::Arc;

use super::Memtable;
use crate::{
    cursor::Cursor,
    error::Result,
    key::{Kind, Sequence},
    merge_operator::{FoldStep, Operands},
};

impl Memtable {
    /// The newest version of a key at `sequence`, with its kind; `None` if the memtable has none.
    #[inline(never)]
    pub(crate) fn look_up(&self, key: &[u8], sequence: Sequence) -> Option<(Kind, &[u8])> {
        let covered = self.range_tombstones().sequence_at(key, sequence);
        match self.get(key, sequence) {
            Some((kind, found, value)) if found >= covered => Some((kind, value)),
            _ if covered > 0 => Some((Kind::RangeTombstone, &[])),
            _ => None,
        }
    }

    /// Adds the versions of a key at `sequence` to the operands of newer memtables, down to a full value. Returns this value, which may be `None`, or that
    /// older entries decide.
    pub(crate) fn add_versions(
        self: &Arc<Self>,
        (key, sequence): (&[u8], Sequence),
        operands: &mut Operands,
        time: &dyn Fn() -> u64,
    ) -> Result<Option<Option<Vec<u8>>>> {
        let covered = self.range_tombstones().sequence_at(key, sequence);
        let mut cursor = self.cursor();
        cursor.seek(key, sequence)?;
        while cursor.is_valid() && cursor.key() == key && cursor.sequence() >= covered {
            let entry = (cursor.sequence(), cursor.kind());
            if let FoldStep::Base(base) = operands.add(entry, cursor.value(), time) {
                return Ok(Some(base.map(<[u8]>::to_vec)));
            }
            cursor.next()?;
        }
        Ok((covered > 0).then_some(None))
    }
}
