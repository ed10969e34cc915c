//! Reads the readable entries of a damaged table, and reports the ranges of keys that are lost.
//!
//! Blocks are read one by one as the index names them. An unreadable block is skipped as a whole; its keys are between the
//! last key before it and the first key after it. Without a readable index nothing is read.

use super::{block::Layout, index::Index, read_ahead::ReadAhead, reader::TableReader};
use crate::{
    error::{Error, Result},
    key::{Kind, Sequence, compare_entries},
};

/// Receives an entry: key, sequence number, kind, value.
type OnEntry<'a> = &'a mut dyn FnMut(&[u8], Sequence, Kind, &[u8]) -> Result<()>;

impl TableReader {
    /// Calls `on_entry` with every readable entry, in order. Returns the ranges of keys (both bounds included) that could
    /// not be read.
    ///
    /// # Errors
    /// Those of `on_entry`, and an index that can't be read; [`Error::ZstdUnavailable`], because such blocks are not lost.
    pub(crate) fn salvage(&self, on_entry: OnEntry<'_>) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let index = self.index()?;
        let summary = &self.properties.summary;
        let mut lost: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut last: Option<(Vec<u8>, Sequence)> = None;
        let mut is_behind_loss = false;
        let mut ahead = ReadAhead::of_job();
        for block in 0..index.block_count() {
            let mut entries = Vec::new();
            let read = self.read_block(&index, block, &mut ahead, &mut entries);
            if let Err(error @ Error::ZstdUnavailable { .. }) = read {
                return Err(error);
            }
            let is_whole = read.is_ok() && entries_ascend(last.as_ref(), &entries);
            if !is_whole {
                if !is_behind_loss {
                    let lower =
                        last.as_ref().map_or_else(|| summary.smallest_key.clone(), |(key, _)| key.clone());
                    lost.push((lower, summary.largest_key.clone()));
                }
                is_behind_loss = true;
                continue;
            }
            if is_behind_loss
                && let (Some((_, upper)), Some((first, ..))) = (lost.last_mut(), entries.first())
            {
                upper.clone_from(first);
            }
            is_behind_loss = false;
            for (key, sequence, kind, value) in &entries {
                on_entry(key, *sequence, *kind, value)?;
            }
            last = entries.pop().map(|(key, sequence, ..)| (key, sequence)).or(last);
        }
        Ok(lost)
    }

    pub(super) fn read_block(
        &self,
        index: &Index,
        block: usize,
        ahead: &mut ReadAhead,
        target: &mut Vec<Entry>,
    ) -> Result<()> {
        let extent = self.extent(index, block)?;
        let malformed = || self.malformed(extent.0);
        let data = self.data.load_and_verify(index, block, extent, ahead)?;
        let layout = Layout::parse(data.content()).ok_or_else(malformed)?;
        let entries = layout.over(data.content());
        for number in 0..layout.entry_count() {
            let mut key = entries.prefix().to_vec();
            let entry = entries.entry(number).ok_or_else(malformed)?;
            entries.assemble_key(number, &entry, &mut key).ok_or_else(malformed)?;
            let kind = self.kind(entry.kind, extent.0)?;
            let value = data.content().get(entry.value.0..entry.value.1).ok_or_else(malformed)?;
            target.push((key, entry.sequence.wrapping_add(self.sequence_shift), kind, value.to_vec()));
        }
        Ok(())
    }
}

type Entry = (Vec<u8>, Sequence, Kind, Vec<u8>);

fn entries_ascend(last: Option<&(Vec<u8>, Sequence)>, entries: &[Entry]) -> bool {
    let is_behind = match (last, entries.first()) {
        (Some((key, sequence)), Some(first)) => {
            compare_entries((key, *sequence), (&first.0, first.1)).is_lt()
        }
        _ => true,
    };
    is_behind
        && entries.is_sorted_by(|left, right| compare_entries((&left.0, left.1), (&right.0, right.1)).is_lt())
}
