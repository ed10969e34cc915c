//! An open view: verified as a whole when it is opened, then used in place.
//!
//! Opening reads every byte and compares all checksums, so that later reads check bounds only. It does not read the runs: the
//! caller compares the ids of the runs with those of the header.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use tamis_filter::{Digester, KeyRange, Probe};

use super::{
    filters::{AskedPart, PartChoice, ViewFilters},
    format::{HEADER_RUN_LENGTH, SEGMENT_SIZES, VIEW_MAGIC},
    index::{PageIndex, PageRecord, index_bytes},
    page::{Page, PageLayout},
    size::ViewCounts,
    writer::{RunSummary, ViewOptions, ViewOwner},
};
use crate::{
    coding::{Decoder, checksum},
    error::{Error, Result},
    file_name::FileName,
    key::Sequence,
    query_sample::SampledQuery,
    table::{
        environment::TableEnvironment,
        filter_choice::NamedChoice,
        format::{
            KIND_FILTER, KIND_PAGE_INDEX, KIND_VIEW, KIND_VIEW_FILTER_CHOICES, KIND_VIEW_FILTER_PARTS,
            SECTION_PASSABLE,
        },
        section::{SectionBytes, SectionRecord, Source},
        view_budget::ViewMemory,
    },
};

/// The greatest kind of section that this version knows.
const KIND_LAST: u32 = KIND_VIEW_FILTER_CHOICES;
/// The kinds of sections that views have.
const KINDS: [u32; 5] =
    [KIND_FILTER, KIND_VIEW, KIND_PAGE_INDEX, KIND_VIEW_FILTER_PARTS, KIND_VIEW_FILTER_CHOICES];

/// Bytes of a cache line.
const CACHE_LINE: usize = 64;
/// Lines of a page that are prefetched.
const PREFETCHED_LINES: usize = 32;

/// The decoded header.
#[derive(Debug)]
struct Header {
    options: ViewOptions,
    entry_count: u64,
    key_count: u64,
    live_count: u64,
    page_count: usize,
    searched: usize,
    runs: Vec<RunSummary>,
}

impl Header {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut source = Decoder::new(bytes);
        let mut number = || source.take_u64();
        let owner = ViewOwner { database_id: number()?, keyspace_id: number()?, number: number()? };
        let (digest_seed, entry_count) = (number()?, number()?);
        let (key_count, live_count) = (number()?, number()?);
        let (run_count, page_count) = (source.take_u32()? as usize, source.take_u32()? as usize);
        let searched = source.take_u32()? as usize;
        let (segment_size, tag_bytes) = (usize::from(source.take_u8()?), source.take_u8()?);
        let zero = source.take_u16()?;
        let is_whole = source.rest().len() == HEADER_RUN_LENGTH.checked_mul(run_count)?;
        let mut runs = Vec::new();
        while let (Some(id), Some(largest_sequence), Some(entry_count)) =
            (source.take_u64(), source.take_u64(), source.take_u64())
        {
            runs.push(RunSummary { id, largest_sequence, entry_count });
        }
        let is_possible = SEGMENT_SIZES.contains(&segment_size) && tag_bytes <= 2 && zero == 0;
        let sum = runs.iter().try_fold(0_u64, |sum, run| sum.checked_add(run.entry_count))?;
        let options = ViewOptions { segment_size, tag_bytes, digest_seed, owner };
        let header = Self { options, entry_count, key_count, live_count, page_count, searched, runs };
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
    digester: Digester,
    largest_sequence: Sequence,
    pub(super) filters: ViewFilters,
    /// Why there are no filters, if there could be.
    filter_fault: Option<Error>,
    /// Its share of the memory for views; `None` for a view that is only inspected.
    memory: Option<ViewMemory>,
}

impl View {
    /// Opens view `number` of the environment's folder.
    pub(crate) fn open(environment: &TableEnvironment, number: u64) -> Result<Arc<Self>> {
        let mut view = Self::open_source(environment.open_file(FileName::View(number))?)?;
        view.memory = Some(environment.view_budget.take(view.source.memory_bytes()));
        if let Some(fault) = &view.filter_fault {
            environment.report_filter(view.path(), fault.to_string());
        }
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
        let records = source.directory(VIEW_MAGIC, KIND_LAST)?.records;
        let is_unknown =
            |record: &&SectionRecord| record.flags & SECTION_PASSABLE == 0 && !KINDS.contains(&record.kind);
        if let Some(SectionRecord { kind, .. }) = records.iter().find(is_unknown) {
            let file = source.path.to_path_buf();
            return Err(Error::UnknownFormat { file, found: *kind, known: KIND_LAST });
        }
        let find = |kind: u32| {
            records.iter().find(|record| record.kind == kind).copied().ok_or_else(|| {
                let expected = format!("a section of kind {kind}");
                source.damaged(source.length, "section directory", expected, "none")
            })
        };
        let (header_record, index_record) = (find(KIND_VIEW)?, find(KIND_PAGE_INDEX)?);
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
        let digester = Digester::new(header.options.digest_seed);
        let largest_sequence = header.runs.iter().map(|run| run.largest_sequence).max().unwrap_or_default();
        let (filters, filter_fault) = match ViewFilters::open(&source, &records, header.runs.len()) {
            Ok(filters) => (filters, None),
            Err(error) => (ViewFilters::default(), Some(error)),
        };
        Ok(Self {
            source,
            header,
            index,
            index_record,
            pages,
            digester,
            largest_sequence,
            filters,
            filter_fault,
            memory: None,
        })
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
        let options = &self.header.options;
        let layout =
            PageLayout::parse_and_check(self.page_bytes(number), options.segment_size, options.tag_bytes);
        let page = self.page(number, layout.ok_or_else(|| self.malformed(number))?);
        let (offset, run_count) = (self.index.extent(number).0, self.header.runs.len());
        if let Some(segment) = page.find_unknown_run(run_count) {
            let (expected, got) =
                (format!("runs below {run_count}"), format!("another one in segment {segment}"));
            return Err(self.source.damaged(offset, "selector of a view page", expected, got));
        }
        if let Some(kind) = page.find_reserved_kind() {
            return Err(Error::UnknownEntryKind { file: self.source.path.to_path_buf(), offset, kind });
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
        for line in 0..bytes.len().div_ceil(CACHE_LINE).min(PREFETCHED_LINES) {
            tamis_bits::prefetch(bytes, line * CACHE_LINE);
        }
    }

    /// Parses the header of a page, whose number is below the page count.
    #[inline]
    pub(super) fn parse(&self, page: usize) -> Result<PageLayout> {
        let options = &self.header.options;
        let layout = PageLayout::parse(self.page_bytes(page), options.segment_size, options.tag_bytes);
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

    /// Bytes of memory; 0 if it is mapped.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory.as_ref().map_or(0, ViewMemory::bytes)
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

    /// Keys whose newest entry is a put.
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

    pub(super) const fn filter_fault(&self) -> Option<&Error> {
        self.filter_fault.as_ref()
    }

    /// The digest function of tags and filters.
    pub(super) const fn digester(&self) -> &Digester {
        &self.digester
    }

    /// Whether the view has filters that can be used.
    pub(crate) const fn has_filter(&self) -> bool {
        !self.filters.is_empty()
    }

    /// The counts that determine its size.
    pub(crate) fn counts(&self) -> ViewCounts {
        let (page_count, run_count) = (self.page_count() as u64, self.header.runs.len() as u64);
        let (counts, positions, separators) = self.index.part_bytes();
        let mut sizes = ViewCounts {
            run_count,
            entry_count: self.header.entry_count,
            page_count,
            separator_bytes: (counts + positions + separators)
                .saturating_sub(index_bytes(page_count, run_count, 0)),
            page_bytes: self.page_count().checked_sub(1).map_or(0, |last| self.index.extent(last).1),
            ..ViewCounts::default()
        };
        self.filters.encoded().for_each(|filter| sizes.add_filter_section(filter.len() as u64));
        if self.has_filter() {
            sizes.add_filter_section(self.filters.parts_bytes());
        }
        self.filters.choices_bytes().into_iter().for_each(|bytes| sizes.add_filter_section(bytes));
        sizes
    }

    /// Bytes of the filters.
    pub(crate) fn filter_bytes(&self) -> u64 {
        self.filters.encoded().map(|filter| filter.len() as u64).sum()
    }

    /// The false positives of closed ranges that its filters expect; NaN if that is not known.
    pub(crate) fn expected_range_rate(&self) -> f64 {
        self.filters.expected_range_rate()
    }

    /// Why the filters of parts of its keys were chosen, each with about the number of entries of the part.
    pub(crate) fn filter_choices(&self) -> impl Iterator<Item = (u64, &NamedChoice)> {
        self.filters.named_choices().map(|PartChoice { runs, part_count, named }| {
            let of_group = self.header.runs.get(runs.start as usize..runs.end as usize).unwrap_or_default();
            let entry_count: u64 = of_group.iter().map(|run| run.entry_count).sum();
            (entry_count / part_count.max(1), named)
        })
    }

    /// The parts of its filters that admit the most queries: one of those that the store chose, and one of the others.
    pub(crate) fn most_asked_parts(&self, queries: &[SampledQuery]) -> Vec<AskedPart> {
        self.filters.most_asked_parts(queries, &self.digester)
    }

    /// The names of the families of its filters.
    pub(crate) fn filter_families(&self) -> BTreeSet<&'static str> {
        self.filters.families().collect()
    }

    /// Whether a run may have a key of a range with a lower bound, by the filters alone; `false` is certain.
    pub(super) fn filters_admit_range(&self, range: &KeyRange<'_>) -> bool {
        self.filters.may_contain_range(range, &self.digester)
    }

    /// Whether the filters admit a key of the view, as a point and as ranges that contain it.
    pub(crate) fn filters_admit_key(&self, key: &[u8]) -> bool {
        self.filters.admit_key(key, &self.digester)
    }

    /// Whether the tag of an entry and the filters admit a key.
    pub(super) fn admits(&self, tag: u16, probe: &Probe<'_>) -> bool {
        let tag_bytes = self.header.options.tag_bytes;
        let has_tag = tag_bytes == 0 || tag == tag_of(probe.digest(self.digester.seed()), tag_bytes);
        has_tag && (self.filters.is_empty() || self.filters.may_contain(probe))
    }

    /// The tag of a key.
    pub(super) fn tag(&self, key: &[u8]) -> u16 {
        tag(&self.digester, self.header.options.tag_bytes, key)
    }
}

/// The tag of a key: the low bits of its digest.
pub(super) fn tag(digester: &Digester, tag_bytes: u8, key: &[u8]) -> u16 {
    if tag_bytes == 0 { 0 } else { tag_of(digester.digest(key), tag_bytes) }
}

const fn tag_of(digest: u64, tag_bytes: u8) -> u16 {
    if tag_bytes == 1 { digest as u16 & 0xFF } else { digest as u16 }
}
