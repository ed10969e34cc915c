//! Builds the page index of a view in bounded memory (`docs/format/view.md`, "Page index section").
//!
//! The section has its lists one after the other, but each page adds to all of them. So the lists grow together. Once they take as much
//! as a part of the spool, each list is pushed to it as one part. At the end all parts of the first list are read, then those of the
//! second one, and so on.
//!
//! Separators are stored without the prefix that all of them begin with. It is known at the end only, and removed then.
//!
//! Memory: that of the spool, and two parts: the lists while they grow, later a part that is read from the spool's file, and the bytes
//! built from it.

use std::borrow::Cow;

use super::{index::PageRecord, spool::Spool};
use crate::{
    coding::{Decoder, length_u32, put_u32, put_u64},
    error::{Error, Result},
    table::section::Sink,
};

/// Offsets, checksums, entries before, live before and positions, as the section has them; lengths of separators; separators.
const LIST_COUNT: usize = 7;
const SEPARATOR_LENGTHS: usize = 5;
const SEPARATORS: usize = 6;

/// Collects one record per page.
pub(super) struct IndexBuilder {
    spool: Spool,
    /// The records since the last part.
    lists: [Vec<u8>; LIST_COUNT],
    page_count: u64,
    page_bytes: u64,
    entry_count: u64,
    live_count: u64,
    /// Pages at the end that have no head segment: they get the separator of the next page that has one.
    pending: u64,
    /// Pages that have a separator.
    searched: u64,
    separator_bytes: u64,
    separator_bytes_max: u64,
    /// The bytes that all separators begin with, except that of the first page.
    prefix: Vec<u8>,
}

impl IndexBuilder {
    /// An index whose lists wait in `spool`.
    pub(super) fn new(spool: Spool) -> Self {
        let mut lists: [Vec<u8>; LIST_COUNT] = Default::default();
        // Nothing is before the first page.
        let [offsets, _, entries, live, ..] = &mut lists;
        [offsets, entries, live].into_iter().for_each(|sums| put_u64(sums, 0));
        Self {
            spool,
            lists,
            page_count: 0,
            page_bytes: 0,
            entry_count: 0,
            live_count: 0,
            pending: 0,
            searched: 0,
            separator_bytes: 0,
            separator_bytes_max: u32::MAX.into(),
            prefix: Vec::new(),
        }
    }

    /// A smaller limit than the default one, which is the width of the separators' ends.
    #[cfg(test)]
    pub(super) const fn with_separator_bytes_max(mut self, bytes: u64) -> Self {
        self.separator_bytes_max = bytes;
        self
    }

    pub(super) const fn page_count(&self) -> u64 {
        self.page_count
    }

    pub(super) const fn live_count(&self) -> u64 {
        self.live_count
    }

    pub(super) const fn searched(&self) -> u64 {
        self.searched
    }

    /// Bytes of the separators and their prefix in the section.
    pub(super) const fn separator_bytes(&self) -> u64 {
        let prefix_length = self.prefix.len() as u64;
        self.separator_bytes + prefix_length - prefix_length * self.searched.saturating_sub(1)
    }

    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> u64 {
        let lists = self.lists.iter().map(Vec::capacity).sum::<usize>() + self.prefix.capacity();
        (lists + self.spool.memory_bytes()) as u64
    }

    /// Bytes of the largest part, after [`IndexBuilder::finish`].
    #[cfg(test)]
    pub(super) fn part_bytes_max(&self) -> u64 {
        let parts = (0..self.spool.len()).map(|number| self.spool.part(number));
        parts.map(|part| part.map_or(0, |part| part.len() as u64)).max().unwrap_or_default()
    }

    /// Adds a page; the separator is `None` for a page without a head segment.
    ///
    /// # Errors
    /// More bytes of separators than the limit; those of the spool.
    pub(super) fn add(
        &mut self,
        page: PageRecord,
        positions: &[u32],
        separator: Option<&[u8]>,
    ) -> Result<()> {
        self.page_count += 1;
        self.page_bytes += page.length;
        self.entry_count += page.entry_count;
        self.live_count += page.live_count;
        let [offsets, checksums, entries, live, positions_of_all, ..] = &mut self.lists;
        put_u64(offsets, self.page_bytes);
        put_u64(checksums, page.checksum);
        put_u64(entries, self.entry_count);
        put_u64(live, self.live_count);
        positions.iter().for_each(|&position| put_u32(positions_of_all, position));
        self.pending += 1;
        if let Some(separator) = separator {
            for _ in 0..std::mem::take(&mut self.pending) {
                self.add_separator(separator)?;
            }
        }
        self.push_full_lists()
    }

    /// Adds the separator of the next page that has none yet.
    fn add_separator(&mut self, separator: &[u8]) -> Result<()> {
        // All but the first page: the empty key is not below the first separator.
        let separator = if self.searched == 0 { &[][..] } else { separator };
        if self.searched == 1 {
            self.prefix = separator.to_vec();
        }
        let shared = tamis_bits::common_prefix_length(&self.prefix, separator);
        self.prefix.truncate(shared);
        self.searched += 1;
        self.separator_bytes += separator.len() as u64;
        if self.separator_bytes > self.separator_bytes_max {
            return Err(Error::InvalidArgument {
                what: "runs of a sorted view",
                got: format!("{} bytes of separators", self.separator_bytes),
                expected: "use runs whose keys share fewer bytes, or fewer entries".to_owned(),
            });
        }
        self.put_separator(separator)
    }

    fn put_separator(&mut self, separator: &[u8]) -> Result<()> {
        let [.., lengths, separators] = &mut self.lists;
        put_u32(lengths, length_u32(separator.len()));
        separators.extend_from_slice(separator);
        self.push_full_lists()
    }

    fn push_full_lists(&mut self) -> Result<()> {
        if self.lists.iter().map(Vec::len).sum::<usize>() > self.spool.part_bytes() {
            self.push_lists()
        } else {
            Ok(())
        }
    }

    fn push_lists(&mut self) -> Result<()> {
        for list in &mut self.lists {
            let part = std::mem::take(list);
            self.spool.push(part)?;
        }
        Ok(())
    }

    /// Ends the index. No page is added afterwards.
    pub(super) fn finish(&mut self) -> Result<()> {
        for _ in 0..std::mem::take(&mut self.pending) {
            self.put_separator(&[])?;
        }
        self.push_lists()
    }

    /// Passes the body of the section to `sink`, after [`IndexBuilder::finish`].
    pub(super) fn write(&self, sink: &mut Sink<'_>) -> Result<()> {
        let prefix_length = length_u32(self.prefix.len());
        sink(&prefix_length.to_le_bytes())?;
        sink(&0_u32.to_le_bytes())?;
        for list in 0..SEPARATOR_LENGTHS {
            self.parts(list).try_for_each(|part| sink(&part?))?;
        }
        let mut end = 0_u32;
        sink(&end.to_le_bytes())?;
        for lengths in self.parts(SEPARATOR_LENGTHS) {
            let lengths = lengths?;
            let mut ends = Vec::with_capacity(lengths.len());
            for length in numbers(&lengths) {
                end += length.saturating_sub(prefix_length);
                put_u32(&mut ends, end);
            }
            sink(&ends)?;
        }
        sink(&self.prefix)?;
        for (lengths, separators) in self.parts(SEPARATOR_LENGTHS).zip(self.parts(SEPARATORS)) {
            let (lengths, separators) = (lengths?, separators?);
            let mut suffixes = Vec::with_capacity(separators.len());
            let mut separators = Decoder::new(&separators);
            for length in numbers(&lengths) {
                let separator = separators.take(length as usize).unwrap_or_default();
                suffixes.extend_from_slice(separator.get(self.prefix.len()..).unwrap_or_default());
            }
            sink(&suffixes)?;
        }
        Ok(())
    }

    /// The parts of a list, in order.
    fn parts(&self, list: usize) -> impl Iterator<Item = Result<Cow<'_, [u8]>>> {
        (list..self.spool.len()).step_by(LIST_COUNT).map(|number| self.spool.part(number))
    }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes))
}
