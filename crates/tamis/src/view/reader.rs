//! An open view: verified as a whole when it is opened, then used in place.
//!
//! Opening reads every byte and compares all checksums, so that later reads check bounds only. It does not read the runs: the
//! caller compares the ids of the runs with those of the header.

use std::{path::Path, sync::Arc};

use super::{
    format::{HEADER_RUN_LENGTH, SEGMENT_SIZES, VIEW_MAGIC, VIEW_MIXED},
    index::{PageIndex, PageRecord},
    page::{Page, PageLayout},
    writer::{RunSummary, ViewOptions, ViewOwner},
};
use crate::{
    coding::{Decoder, checksum},
    error::{Error, Result},
    file_name::FileName,
    key::Sequence,
    table::{
        environment::TableEnvironment,
        format::{SECTION_PASSABLE, SectionKind},
        section::{SectionBytes, SectionRecord, Source},
    },
};

/// The kinds of sections that views have.
const KINDS: [SectionKind; 2] = [SectionKind::View, SectionKind::PageIndex];

/// The decoded header.
#[derive(Debug)]
struct Header {
    options: ViewOptions,
    entry_count: u64,
    key_count: u64,
    live_count: u64,
    page_count: usize,
    searched: usize,
    is_mixed: bool,
    runs: Vec<RunSummary>,
}

impl Header {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut source = Decoder::new(bytes);
        let mut number = || source.take_u64();
        let owner = ViewOwner { database_id: number()?, keyspace_id: number()?, number: number()? };
        let (entry_count, key_count, live_count) = (number()?, number()?, number()?);
        let (run_count, page_count) = (source.take_u32()? as usize, source.take_u32()? as usize);
        let searched = source.take_u32()? as usize;
        let segment_size = usize::from(source.take_u8()?);
        let flags = source.take_u8()?;
        let zeros = source.take(2)?;
        let is_whole = source.rest().len() == HEADER_RUN_LENGTH.checked_mul(run_count)?;
        let mut runs = Vec::new();
        while let (Some(id), Some(largest_sequence), Some(entry_count)) =
            (source.take_u64(), source.take_u64(), source.take_u64())
        {
            runs.push(RunSummary { id, largest_sequence, entry_count });
        }
        let is_possible = SEGMENT_SIZES.contains(&segment_size) && zeros == [0; 2] && flags <= VIEW_MIXED;
        let sum = runs.iter().try_fold(0_u64, |sum, run| sum.checked_add(run.entry_count))?;
        let options = ViewOptions { segment_size, owner };
        let header = Self {
            options,
            entry_count,
            key_count,
            live_count,
            page_count,
            searched,
            is_mixed: flags != 0,
            runs,
        };
        (is_possible && is_whole && sum == entry_count).then_some(header)
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct View {
    source: Source,
    header: Header,
    pub(super) index: PageIndex,
    index_record: SectionRecord,
    pages: SectionBytes,
    largest_sequence: Sequence,
}

impl View {
    /// Opens view `number` of the environment's folder.
    pub(crate) fn open(environment: &TableEnvironment, number: u64) -> Result<Arc<Self>> {
        let view = Self::open_source(environment.open_file(FileName::View(number))?)?;
        if view.header.options.owner.number == number {
            return Ok(Arc::new(view));
        }
        let got = view.header.options.owner.number.to_string();
        Err(view.source.damaged(0, "view header", format!("view {number}"), got))
    }

    fn open_source(source: Source) -> Result<Self> {
        let view = Self::open_parts(source)?;
        view.check_pages()?;
        Ok(view)
    }

    /// Opens header and page index; the pages are not verified.
    pub(super) fn open_parts(source: Source) -> Result<Self> {
        let records = source.directory(VIEW_MAGIC)?.records;
        let is_unknown =
            |record: &&SectionRecord| record.flags & SECTION_PASSABLE == 0 && !KINDS.contains(&record.kind);
        if let Some(SectionRecord { kind, .. }) = records.iter().find(is_unknown) {
            let file = source.path.to_path_buf();
            return Err(Error::UnknownFormat {
                file,
                found: *kind as u32,
                known: SectionKind::PageIndex as u32,
            });
        }
        let find = |kind: SectionKind| {
            records.iter().find(|record| record.kind == kind).copied().ok_or_else(|| {
                let expected = format!("a section of kind {}", kind as u32);
                source.damaged(source.length, "section directory", expected, "none")
            })
        };
        let (header_record, index_record) = (find(SectionKind::View)?, find(SectionKind::PageIndex)?);
        let damaged = |record: &SectionRecord, what| {
            source.damaged(record.offset, what, "valid fields", "invalid ones with a correct checksum")
        };
        let header = Header::decode(source.section(&header_record)?.as_ref())
            .ok_or_else(|| damaged(&header_record, "view header"))?;
        let index = source.section(&index_record)?;
        let index = PageIndex::open(index, header.page_count, header.runs.len(), header.searched)
            .filter(|index| {
                let end = index.extent(header.page_count.saturating_sub(1)).1;
                let pages_end = if header.page_count == 0 { 0 } else { end };
                pages_end.next_multiple_of(64) == header_record.offset
                    && index.entries_before(header.page_count) == header.entry_count
                    && index.live_before(header.page_count) == header.live_count
            })
            .ok_or_else(|| damaged(&index_record, "page index"))?;
        let pages = source.bytes(0, header_record.offset)?;
        let largest_sequence = header.runs.iter().map(|run| run.largest_sequence).max().unwrap_or_default();
        Ok(Self { source, header, index, index_record, pages, largest_sequence })
    }

    /// Compares the checksum of a page with the page index.
    pub(super) fn compare_checksum(&self, number: usize) -> Result<()> {
        let (stored, computed) = (self.index.checksum(number), checksum(0, self.page_bytes(number)));
        if stored != computed {
            let (expected, got) = (format!("checksum {stored:#018x}"), format!("{computed:#018x}"));
            return Err(self.source.damaged(self.index.extent(number).0, "page", expected, got));
        }
        Ok(())
    }

    /// Compares the checksum of the page index, which a mapping may have changed since it was opened.
    pub(super) fn compare_index_checksum(&self) -> Result<()> {
        self.source.section(&self.index_record).map(drop)
    }

    /// Checks a page and compares its checksum and its counts with the page index. Returns the keys that begin in it.
    pub(super) fn check_page(&self, number: usize) -> Result<u64> {
        self.compare_checksum(number)?;
        let layout = PageLayout::parse_and_check(self.page_bytes(number), self.header.options.segment_size);
        let page = self.page(number, layout.ok_or_else(|| self.malformed(number))?);
        let (offset, run_count) = (self.index.extent(number).0, self.header.runs.len());
        if let Some(segment) = page.find_unknown_run(run_count) {
            let (expected, got) =
                (format!("runs below {run_count}"), format!("another one in segment {segment}"));
            return Err(self.source.damaged(offset, "selector of a view page", expected, got));
        }
        if page.is_mixed() && !self.header.is_mixed {
            return Err(self.malformed(number));
        }
        let entry_count = page.layout.entry_count();
        let counts = (entry_count as u64, page.live_before(entry_count) as u64);
        let record = self.record(number);
        if counts != (record.entry_count, record.live_count) || !page.has_clear_ends() {
            return Err(self.malformed(number));
        }
        Ok(page.key_count())
    }

    /// Checks all pages.
    fn check_pages(&self) -> Result<()> {
        let mut key_count = 0;
        for number in 0..self.page_count() {
            key_count += self.check_page(number)?;
        }
        let end = self.page_count().checked_sub(1).map_or(0, |last| self.index.extent(last).1);
        let padding = self.pages.as_ref().get(end as usize..).unwrap_or_default();
        if key_count != self.header.key_count || padding.iter().any(|&byte| byte != 0) {
            return Err(self.malformed(self.page_count()));
        }
        Ok(())
    }

    /// The error for a page that no writer can have written.
    pub(super) fn malformed(&self, page: usize) -> Error {
        let expected = "valid entries";
        self.source.damaged(
            self.index.extent(page).0,
            "page",
            expected,
            "invalid ones with a correct checksum",
        )
    }

    pub(super) fn page_bytes(&self, page: usize) -> &[u8] {
        let (start, end) = self.index.extent(page);
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        range.and_then(|(start, end)| self.pages.as_ref().get(start..end)).unwrap_or_default()
    }

    /// Prefetches a page with its positions. A search reads most parts of the page, one after the other.
    #[inline]
    pub(super) fn prefetch_page(&self, page: usize) {
        self.index.prefetch(page);
        let bytes = self.page_bytes(page);
        for line in 0..bytes.len().div_ceil(tamis_bits::CACHE_LINE).min(32) {
            tamis_bits::prefetch(bytes, line * tamis_bits::CACHE_LINE);
        }
    }

    /// Parses the header of a page, whose number is below the page count.
    #[inline]
    pub(super) fn parse(&self, page: usize) -> Result<PageLayout> {
        let layout = PageLayout::parse(self.page_bytes(page), self.header.options.segment_size);
        layout.ok_or_else(|| self.malformed(page))
    }

    /// A page that was parsed before.
    #[inline]
    pub(super) fn page(&self, page: usize, layout: PageLayout) -> Page<'_> {
        layout.over(self.page_bytes(page))
    }

    pub(super) const fn page_count(&self) -> usize {
        self.header.page_count
    }

    /// The record of a page in the page index. Numbers that change in a mapping give 0.
    pub(super) fn record(&self, page: usize) -> PageRecord {
        let (start, end) = self.index.extent(page);
        let difference = |before: &dyn Fn(usize) -> u64| before(page + 1).saturating_sub(before(page));
        PageRecord {
            checksum: self.index.checksum(page),
            length: end.saturating_sub(start),
            entry_count: difference(&|page| self.index.entries_before(page)),
            live_count: difference(&|page| self.index.live_before(page)),
        }
    }

    /// Entries of a run in a page.
    pub(super) fn run_count_in(&self, page: usize, run: usize) -> u32 {
        let all = self.header.runs.get(run).map_or(0, |run| run.entry_count as u32);
        let end = if page + 1 == self.page_count() { all } else { self.index.position(page + 1, run) };
        end.saturating_sub(self.index.position(page, run))
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.source.path
    }

    /// Bytes of the file.
    pub(crate) const fn file_bytes(&self) -> u64 {
        self.source.length
    }

    pub(crate) fn options(&self) -> &ViewOptions {
        &self.header.options
    }

    /// The runs that the view names, in the order of its selectors.
    pub(crate) fn runs(&self) -> &[RunSummary] {
        &self.header.runs
    }

    pub(crate) const fn entry_count(&self) -> u64 {
        self.header.entry_count
    }

    /// Distinct keys.
    pub(crate) const fn key_count(&self) -> u64 {
        self.header.key_count
    }

    /// Whether entries may be operands or expiring puts.
    pub(crate) const fn is_mixed(&self) -> bool {
        self.header.is_mixed
    }

    /// Keys whose newest entry is no tombstone.
    pub(crate) const fn live_count(&self) -> u64 {
        self.header.live_count
    }

    /// The largest sequence number of the runs: readers at or above it see the newest entries.
    pub(crate) const fn largest_sequence(&self) -> Sequence {
        self.largest_sequence
    }

    /// Whether a reader at this snapshot sees the newest version of each key.
    pub(crate) const fn shows_newest_at(&self, snapshot: Sequence) -> bool {
        snapshot >= self.largest_sequence
    }
}
