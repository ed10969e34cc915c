//! Writes a view: entries in view order become segments, pages and sections.
//!
//! 1. `begin_key` begins a key, `add_version` adds its entries, newest first. A key that is not the first of its segment need
//!    not be known: its difference and infix suffice ([`ViewWriter::needs_key`]).
//! 2. A complete key joins the current segment, or begins the next one if it does not fit. A key with more versions than a
//!    segment holds gets segments for itself, which are written while versions arrive.
//! 3. Twice a page of segments is collected; then the first page is written. The segments that remain before a copied page, or at the end,
//!    are split evenly, so that repeated rebuilds do not leave tiny pages.
//! 4. `copy_page` writes a page of an old view as it is.
//!
//! Memory: two pages of segments with their first keys, and at most 6 MiB for the page index, in a view of any size.

use super::{
    format::{
        HEADER_LENGTH, HEADER_RUN_LENGTH, RUN_COUNT_MAX, SAME_KEY, SEGMENT_SIZES, VIEW_MIXED, is_plain,
        kind_number, kind_of, segments_per_page, selector_bits,
    },
    index::PageRecord,
    index_builder::IndexBuilder,
    output::Output,
    page_builder::{PageFormat, Segment, Slot, encode_page},
};
use crate::{
    coding::{checksum, length_u32, put_u32, put_u64},
    error::{Error, Result},
    key::{Kind, Sequence},
    table::{format::SectionKind, section::Sink},
};

/// The file that a view is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ViewOwner {
    pub(crate) database_id: u64,
    pub(crate) keyspace_id: u64,
    /// The file's number.
    pub(crate) number: u64,
}

/// Parameters of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ViewOptions {
    /// Entries of a segment: 16, 32 or 64.
    pub(crate) segment_size: usize,
    pub(crate) owner: ViewOwner,
}

impl Default for ViewOptions {
    fn default() -> Self {
        Self { segment_size: 32, owner: ViewOwner::default() }
    }
}

/// A run as a view names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunSummary {
    /// Never used twice, and another one when the run's tables change.
    pub(crate) id: u64,
    pub(crate) largest_sequence: Sequence,
    pub(crate) entry_count: u64,
}

/// Where a key differs from the key before it in the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyHead {
    pub(super) difference: u32,
    pub(super) infix: u8,
}

/// The key whose versions are added.
#[derive(Debug, Default)]
struct CurrentKey {
    key: Vec<u8>,
    slots: Vec<Slot>,
    /// It has segments for itself, and the last of them were written.
    is_long: bool,
}

/// See the head of this file.
pub(super) struct ViewWriter<'a> {
    options: ViewOptions,
    format: PageFormat,
    segments_per_page: usize,
    runs: Vec<RunSummary>,
    output: Output<'a>,
    current: CurrentKey,
    segment: Segment,
    segments: Vec<Segment>,
    index: IndexBuilder,
    /// Entries of each run in the pages that were written.
    positions: Vec<u32>,
    key_count: u64,
    /// [`VIEW_MIXED`], if an entry is an operand or an expiring put.
    flags: u8,
}

/// Checks the limits of a view (`docs/format/view.md`, "Limits").
fn check_limits(options: &ViewOptions, runs: &[RunSummary]) -> Result<()> {
    let refused = |what, got: String, expected: &str| {
        Err(Error::InvalidArgument { what, got, expected: expected.to_owned() })
    };
    if runs.len() > RUN_COUNT_MAX {
        return refused("runs of a sorted view", runs.len().to_string(), "use at most 65,535 runs");
    }
    if let Some(run) = runs.iter().find(|run| u32::try_from(run.entry_count).is_err()) {
        let got = format!("{} entries in run {}", run.entry_count, run.id);
        return refused("runs of a sorted view", got, "use runs of at most 4,294,967,295 entries");
    }
    if !SEGMENT_SIZES.contains(&options.segment_size) {
        return refused("segment size", options.segment_size.to_string(), "use 16, 32 or 64");
    }
    Ok(())
}

impl<'a> ViewWriter<'a> {
    pub(super) fn new(options: ViewOptions, runs: Vec<RunSummary>, sink: &'a mut Sink<'a>) -> Result<Self> {
        check_limits(&options, &runs)?;
        let format =
            PageFormat { segment_size: options.segment_size, selector_bits: selector_bits(runs.len()) };
        Ok(Self {
            options,
            format,
            segments_per_page: segments_per_page(runs.len()),
            positions: vec![0; runs.len()],
            runs,
            output: Output::new(sink),
            current: CurrentKey::default(),
            segment: Segment::default(),
            segments: Vec::new(),
            index: IndexBuilder::new(),
            key_count: 0,
            flags: 0,
        })
    }

    /// Bytes that it has collected and not written, without those of the page index.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> u64 {
        let slots = |slots: &Vec<Slot>| slots.capacity() * size_of::<Slot>();
        let segment = |segment: &Segment| slots(&segment.slots) + segment.key.capacity();
        let segments = self.segments.iter().chain([&self.segment]).map(segment).sum::<usize>();
        let current = slots(&self.current.slots) + self.current.key.capacity();
        (segments + current + self.output.memory_bytes()) as u64
    }

    /// Whether a key with this many versions begins a segment, if it is the next one. The key before it is complete.
    pub(super) fn needs_key(&self, version_count: usize) -> bool {
        self.segment.slots.is_empty() || self.segment.slots.len() + version_count > self.options.segment_size
    }

    /// Some entries of copied pages may be operands or expiring puts.
    pub(super) const fn set_mixed(&mut self) {
        self.flags = VIEW_MIXED;
    }

    fn note_kind(&mut self, kind: Kind) {
        if !is_plain(kind) {
            self.set_mixed();
        }
    }

    /// Ends the versions of the current key.
    pub(super) fn end_key(&mut self) -> Result<()> {
        if self.current.slots.is_empty() {
            return Ok(());
        }
        if self.current.is_long {
            self.take_long_segment();
            return self.write_full_pages();
        }
        if self.segment.slots.len() + self.current.slots.len() > self.options.segment_size {
            self.end_segment();
        }
        if self.segment.slots.is_empty() {
            std::mem::swap(&mut self.segment.key, &mut self.current.key);
        }
        self.segment.slots.append(&mut self.current.slots);
        self.write_full_pages()
    }

    /// Begins the next key. Its bytes must be there if [`ViewWriter::needs_key`] returns `true` for it.
    pub(super) fn begin_key(&mut self, head: KeyHead, key: Option<&[u8]>) -> Result<()> {
        self.end_key()?;
        self.current.key.clear();
        self.current.key.extend_from_slice(key.unwrap_or_default());
        self.current.is_long = false;
        self.key_count += 1;
        let KeyHead { difference, infix } = head;
        self.current.slots.push(Slot { run: 0, kind: 0, difference, infix });
        Ok(())
    }

    /// Begins with further versions of the key before a copied page.
    pub(super) fn continue_key(&mut self, key: &[u8]) {
        self.current.key.clear();
        self.current.key.extend_from_slice(key);
        self.current.is_long = true;
    }

    /// Adds the newest entry of the key that was begun.
    pub(super) fn add_newest(&mut self, run: usize, kind: Kind) {
        self.note_kind(kind);
        if let Some(slot) = self.current.slots.last_mut() {
            (slot.run, slot.kind) = (run as u16, kind_number(kind));
        }
    }

    /// Adds the next older entry of the key.
    pub(super) fn add_old(&mut self, run: usize, kind: Kind) -> Result<()> {
        self.note_kind(kind);
        if self.current.slots.len() == self.options.segment_size {
            if !self.current.is_long {
                self.end_segment();
            }
            self.take_long_segment();
            self.current.is_long = true;
            self.write_full_pages()?;
        }
        let (run, kind) = (run as u16, kind_number(kind));
        self.current.slots.push(Slot { run, kind, difference: SAME_KEY, infix: 0 });
        Ok(())
    }

    /// Makes the versions of the current key a segment.
    fn take_long_segment(&mut self) {
        let slots = std::mem::take(&mut self.current.slots);
        let is_continuation = slots.first().is_some_and(|slot| slot.difference == SAME_KEY);
        self.segments.push(Segment { slots, is_continuation, key: self.current.key.clone() });
    }

    fn end_segment(&mut self) {
        if !self.segment.slots.is_empty() {
            self.segments.push(std::mem::take(&mut self.segment));
        }
    }

    fn write_full_pages(&mut self) -> Result<()> {
        while self.segments.len() >= 2 * self.segments_per_page {
            self.write_page(self.segments_per_page)?;
        }
        Ok(())
    }

    /// Writes all segments that were collected.
    fn write_rest(&mut self) -> Result<()> {
        self.end_key()?;
        self.end_segment();
        if self.segments.len() > self.segments_per_page {
            self.write_page(self.segments.len() / 2)?;
        }
        if self.segments.is_empty() { Ok(()) } else { self.write_page(self.segments.len()) }
    }

    fn write_page(&mut self, segment_count: usize) -> Result<()> {
        let rest = self.segments.split_off(segment_count);
        let segments = std::mem::replace(&mut self.segments, rest);
        let page = encode_page(&segments, self.format);
        let slots = || segments.iter().flat_map(|segment| &segment.slots);
        let entry_count = slots().count() as u64;
        let is_live = |slot: &&Slot| slot.difference != SAME_KEY && kind_of(slot.kind) != Kind::Tombstone;
        let record = PageRecord {
            checksum: checksum(0, &page),
            length: page.len() as u64,
            entry_count,
            live_count: slots().filter(is_live).count() as u64,
        };
        let head = segments.iter().find(|segment| !segment.is_continuation);
        self.index.add(record, &self.positions, head.map(Segment::anchor))?;
        for slot in slots() {
            if let Some(position) = self.positions.get_mut(usize::from(slot.run)) {
                *position = position.saturating_add(1);
            }
        }
        self.output.put(&page)
    }

    /// Writes a page of another view. `run_counts` are its entries by run.
    pub(super) fn copy_page(
        &mut self,
        page: &[u8],
        record: PageRecord,
        key_count: u64,
        run_counts: impl Iterator<Item = u32>,
        separator: Option<&[u8]>,
    ) -> Result<()> {
        self.write_rest()?;
        self.index.add(record, &self.positions, separator)?;
        let positions = self.positions.iter_mut().zip(run_counts);
        positions.for_each(|(position, count)| *position = position.saturating_add(count));
        self.key_count += key_count;
        self.output.put(page)
    }

    fn header(&self) -> Vec<u8> {
        let owner = &self.options.owner;
        let entry_count = self.runs.iter().map(|run| run.entry_count).sum();
        let mut body = Vec::with_capacity(HEADER_LENGTH + HEADER_RUN_LENGTH * self.runs.len());
        let numbers = [
            owner.database_id,
            owner.keyspace_id,
            owner.number,
            entry_count,
            self.key_count,
            self.index.live_count(),
        ];
        numbers.into_iter().for_each(|number| put_u64(&mut body, number));
        put_u32(&mut body, length_u32(self.runs.len()));
        put_u32(&mut body, self.index.page_count() as u32);
        put_u32(&mut body, self.index.searched() as u32);
        body.push(self.options.segment_size as u8);
        body.push(self.flags);
        body.resize(HEADER_LENGTH, 0);
        for run in &self.runs {
            put_u64(&mut body, run.id);
            put_u64(&mut body, run.largest_sequence);
            put_u64(&mut body, run.entry_count);
        }
        body
    }

    /// Writes the rest of the view. Refuses runs that did not have the entries that their summaries say.
    pub(super) fn finish(mut self) -> Result<()> {
        self.write_rest()?;
        for (run, &found) in self.runs.iter().zip(&self.positions) {
            if run.entry_count != u64::from(found) {
                return Err(Error::InvalidArgument {
                    what: "runs of a sorted view",
                    got: format!("{found} entries in run {}", run.id),
                    expected: format!("it has {} entries", run.entry_count),
                });
            }
        }
        let header = self.header();
        self.output.put_section((SectionKind::View, 0), &header);
        self.output.put_section((SectionKind::PageIndex, 0), &self.index.finish());
        self.output.finish()
    }
}
