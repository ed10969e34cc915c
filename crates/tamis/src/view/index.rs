//! The page index of a sorted view: where each page is, what is before it, and its separator (`docs/format/view.md`).
//!
//! `index_builder.rs` writes it, at the end of a view.

use tamis_bits::key_head;

use super::format::INDEX_HEADER_LENGTH;
use crate::{coding::Decoder, table::section::SectionBytes};

/// The separator of one page in this many is searched first, by its first eight bytes.
const SAMPLE_INTERVAL: usize = 8;
/// One page as the index describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRecord {
    pub(super) checksum: u64,
    pub(super) length: u64,
    pub(super) entry_count: u64,
    pub(super) live_count: u64,
}

/// A page index over verified bytes.
#[derive(Debug)]
pub(super) struct PageIndex {
    bytes: SectionBytes,
    page_count: usize,
    run_count: usize,
    searched: usize,
    checksums_start: usize,
    entries_start: usize,
    live_start: usize,
    positions_start: usize,
    ends_start: usize,
    separators_start: usize,
    prefix: Box<[u8]>,
    /// The first eight bytes after the prefix of one separator per interval.
    sample: Box<[u64]>,
}

impl PageIndex {
    /// Checks that all parts fill the bytes; `None` otherwise.
    pub(super) fn open(
        bytes: SectionBytes,
        page_count: usize,
        run_count: usize,
        searched: usize,
    ) -> Option<Self> {
        let mut source = Decoder::new(bytes.as_ref());
        let (prefix_length, zero) = (source.take_u32()? as usize, source.take_u32()?);
        let list_bytes = page_count.checked_add(1)?.checked_mul(8)?;
        let checksums_start = INDEX_HEADER_LENGTH.checked_add(list_bytes)?;
        let entries_start = checksums_start.checked_add(8 * page_count)?;
        let live_start = entries_start.checked_add(list_bytes)?;
        let positions_start = live_start.checked_add(list_bytes)?;
        let position_bytes = page_count.checked_mul(4)?.checked_mul(run_count)?;
        let ends_start = positions_start.checked_add(position_bytes)?;
        let prefix_start = ends_start.checked_add(4 * (page_count + 1))?;
        let separators_start = prefix_start.checked_add(prefix_length)?;
        let prefix = bytes.as_ref().get(prefix_start..separators_start)?.into();
        let mut index = Self {
            page_count,
            run_count,
            searched,
            checksums_start,
            entries_start,
            live_start,
            positions_start,
            ends_start,
            separators_start,
            prefix,
            sample: Box::default(),
            bytes,
        };
        let is_whole = separators_start + index.separator_end(page_count)? == index.bytes.as_ref().len();
        let is_possible = zero == 0 && searched <= page_count && (searched > 0 || page_count == 0);
        if !is_whole || !is_possible || !index.ascends() {
            return None;
        }
        let sampled = (0..searched).step_by(SAMPLE_INTERVAL);
        index.sample = sampled.map(|page| key_head(index.separator(page).1)).collect();
        Some(index)
    }

    /// Whether all cumulative numbers ascend.
    fn ascends(&self) -> bool {
        let lists = [INDEX_HEADER_LENGTH, self.entries_start, self.live_start];
        let ascend =
            |page: usize| lists.iter().all(|&start| self.sum(start, page) <= self.sum(start, page + 1));
        let ends = |page: usize| self.separator_end(page) <= self.separator_end(page + 1);
        (0..self.page_count).all(|page| ascend(page) && ends(page))
    }

    /// Bytes of offsets, checksums and counts; of positions; and of separators.
    pub(super) fn part_bytes(&self) -> (u64, u64, u64) {
        let end = self.bytes.as_ref().len();
        let bytes = [self.positions_start, self.ends_start - self.positions_start, end - self.ends_start];
        let [counts, positions, separators] = bytes.map(|bytes| bytes as u64);
        (counts, positions, separators)
    }

    pub(super) const fn searched(&self) -> usize {
        self.searched
    }

    fn sum(&self, start: usize, page: usize) -> u64 {
        let bytes = self.bytes.as_ref().get(start + 8 * page..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn u32_at(&self, offset: usize) -> Option<u32> {
        self.bytes.as_ref().get(offset..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// Start and end of a page in the file.
    #[inline]
    pub(super) fn extent(&self, page: usize) -> (u64, u64) {
        (self.sum(INDEX_HEADER_LENGTH, page), self.sum(INDEX_HEADER_LENGTH, page + 1))
    }

    pub(super) fn checksum(&self, page: usize) -> u64 {
        self.sum(self.checksums_start, page)
    }

    /// Entries before a page. For the page count: all entries.
    #[inline]
    pub(super) fn entries_before(&self, page: usize) -> u64 {
        self.sum(self.entries_start, page)
    }

    /// Keys before a page whose newest entry is a put.
    pub(super) fn live_before(&self, page: usize) -> u64 {
        self.sum(self.live_start, page)
    }

    /// The last page that does not have more than `number` of what a cumulative number counts before it.
    fn last_page_with(&self, number: u64, before: impl Fn(usize) -> u64) -> usize {
        let (mut low, mut high) = (0, self.page_count);
        while low < high {
            let middle = low.midpoint(high);
            if before(middle) <= number { low = middle + 1 } else { high = middle }
        }
        low.saturating_sub(1)
    }

    /// The page of the n-th entry.
    pub(super) fn page_of_entry(&self, entry: u64) -> usize {
        self.last_page_with(entry, |page| self.entries_before(page))
    }

    /// The page of the n-th key whose newest entry is a put.
    pub(super) fn page_of_live(&self, number: u64) -> usize {
        self.last_page_with(number, |page| self.live_before(page))
    }

    /// The ordinal of a run's first entry at or behind the start of a page.
    #[inline]
    pub(super) fn position(&self, page: usize, run: usize) -> u32 {
        self.u32_at(self.positions_start + 4 * (page * self.run_count + run)).unwrap_or_default()
    }

    /// The page that has the n-th entry of a run.
    pub(super) fn page_of_ordinal(&self, run: usize, ordinal: u64) -> usize {
        self.last_page_with(ordinal, |page| self.position(page, run).into())
    }

    fn separator_end(&self, number: usize) -> Option<usize> {
        Some(self.u32_at(self.ends_start + 4 * number)? as usize)
    }

    fn suffix(&self, page: usize) -> &[u8] {
        let range = self.separator_end(page).zip(self.separator_end(page + 1));
        let range = range.map(|(start, end)| self.separators_start + start..self.separators_start + end);
        range.and_then(|range| self.bytes.as_ref().get(range)).unwrap_or_default()
    }

    /// The separator of a page in two parts.
    pub(super) fn separator(&self, page: usize) -> (&[u8], &[u8]) {
        if page == 0 { (&[], &[]) } else { (&self.prefix, self.suffix(page)) }
    }

    /// A key without the bytes that all separators begin with. A key that begins with other bytes is below all separators, or above
    /// all: then the result is the page.
    fn rest_of<'k>(&self, key: &'k [u8]) -> Result<&'k [u8], usize> {
        key.strip_prefix(&*self.prefix)
            .ok_or_else(|| if key > &*self.prefix { self.searched.saturating_sub(1) } else { 0 })
    }

    /// Whether a page's separator is not above a key, whose rest this is.
    fn is_at_or_below(&self, page: usize, rest: &[u8]) -> bool {
        page == 0 || self.suffix(page) <= rest
    }

    /// The last searched page whose separator is not above a key, where that of the page `from` is known not to be.
    fn page_from(&self, from: usize, rest: &[u8]) -> usize {
        let (mut low, mut step) = (from, 1);
        while low + step < self.searched && self.is_at_or_below(low + step, rest) {
            low += step;
            step *= 2;
        }
        self.last_below(low, (low + step).min(self.searched), rest)
    }

    /// The pages between two samples that contain the last searched page whose separator is not above a key.
    fn sampled(&self, rest: &[u8]) -> (usize, usize) {
        let head = key_head(rest);
        // Equal heads decide nothing: the bytes behind them may be different.
        let below = self.sample.partition_point(|&sample| sample < head);
        let (low, high) = (below.saturating_sub(1), self.sample.partition_point(|&sample| sample <= head));
        (low * SAMPLE_INTERVAL, (high * SAMPLE_INTERVAL).clamp(1, self.searched.max(1)))
    }

    /// Prefetches the positions of a page.
    #[inline]
    pub(super) fn prefetch(&self, page: usize) {
        let start = self.positions_start + 4 * page * self.run_count;
        for line in (0..4 * self.run_count).step_by(tamis_bits::CACHE_LINE).take(2) {
            tamis_bits::prefetch(self.bytes.as_ref(), start + line);
        }
    }

    /// The last page from `low` to `high`, which is excluded, whose separator is not above a key.
    fn last_below(&self, mut low: usize, mut high: usize, rest: &[u8]) -> usize {
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.is_at_or_below(middle, rest) { low = middle } else { high = middle }
        }
        low
    }

    /// The last searched page whose separator is not above a key; 0 without pages. `near` is where the key may be.
    pub(super) fn page_of(&self, near: usize, key: &[u8]) -> usize {
        let rest = match self.rest_of(key) {
            Ok(rest) => rest,
            Err(page) => return page,
        };
        if near > 0 && near < self.searched && self.is_at_or_below(near, rest) {
            return self.page_from(near, rest);
        }
        let (low, high) = self.sampled(rest);
        self.last_below(low, high, rest)
    }
}
