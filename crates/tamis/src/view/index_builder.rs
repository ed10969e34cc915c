//! Builds the page index of a view (`docs/format/view.md`, "Page index section").
//!
//! The section has its lists one after the other, but each page adds to all of them. So the lists grow together, and are written at the
//! end. Separators are stored without the prefix that all of them begin with. It is known at the end only, and removed then.
//!
//! Memory: the section, about one percent of the view, which each reader of the view keeps, too.

use super::index::PageRecord;
use crate::{
    coding::{length_u32, put_u32, put_u64},
    error::{Error, Result},
};

/// Collects one record per page.
pub(super) struct IndexBuilder {
    offsets: Vec<u8>,
    checksums: Vec<u8>,
    entries_before: Vec<u8>,
    live_before: Vec<u8>,
    positions: Vec<u8>,
    separator_lengths: Vec<u32>,
    separators: Vec<u8>,
    page_count: u64,
    page_bytes: u64,
    entry_count: u64,
    live_count: u64,
    /// Pages at the end that have no head segment: they get the separator of the next page that has one.
    pending: u64,
    /// Pages that have a separator.
    searched: u64,
    separator_bytes_max: u64,
    /// The bytes that all separators begin with, except that of the first page.
    prefix: Vec<u8>,
}

impl IndexBuilder {
    pub(super) fn new() -> Self {
        let nothing_before = || 0_u64.to_le_bytes().to_vec();
        Self {
            offsets: nothing_before(),
            checksums: Vec::new(),
            entries_before: nothing_before(),
            live_before: nothing_before(),
            positions: Vec::new(),
            separator_lengths: Vec::new(),
            separators: Vec::new(),
            page_count: 0,
            page_bytes: 0,
            entry_count: 0,
            live_count: 0,
            pending: 0,
            searched: 0,
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

    /// Adds a page; the separator is `None` for a page without a head segment.
    ///
    /// # Errors
    /// More bytes of separators than the limit.
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
        put_u64(&mut self.offsets, self.page_bytes);
        put_u64(&mut self.checksums, page.checksum);
        put_u64(&mut self.entries_before, self.entry_count);
        put_u64(&mut self.live_before, self.live_count);
        positions.iter().for_each(|&position| put_u32(&mut self.positions, position));
        self.pending += 1;
        if let Some(separator) = separator {
            for _ in 0..std::mem::take(&mut self.pending) {
                self.add_separator(separator)?;
            }
        }
        Ok(())
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
        self.separator_lengths.push(length_u32(separator.len()));
        self.separators.extend_from_slice(separator);
        let separator_bytes = self.separators.len() as u64;
        if separator_bytes > self.separator_bytes_max {
            return Err(Error::InvalidArgument {
                what: "runs of a sorted view",
                got: format!("{separator_bytes} bytes of separators"),
                expected: "use runs whose keys share fewer bytes, or fewer entries".to_owned(),
            });
        }
        Ok(())
    }

    /// The body of the section. No page is added afterwards.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let pending = self.separator_lengths.len() + self.pending as usize;
        self.separator_lengths.resize(pending, 0);
        let mut body = Vec::new();
        put_u32(&mut body, length_u32(self.prefix.len()));
        put_u32(&mut body, 0);
        for list in [self.offsets, self.checksums, self.entries_before, self.live_before, self.positions] {
            body.extend_from_slice(&list);
        }
        let mut end = 0;
        put_u32(&mut body, end);
        for &length in &self.separator_lengths {
            end += length.saturating_sub(length_u32(self.prefix.len()));
            put_u32(&mut body, end);
        }
        body.extend_from_slice(&self.prefix);
        let mut rest = self.separators.as_slice();
        for &length in &self.separator_lengths {
            let (separator, after) = rest.split_at_checked(length as usize).unwrap_or_default();
            body.extend_from_slice(separator.get(self.prefix.len()..).unwrap_or_default());
            rest = after;
        }
        body
    }
}
