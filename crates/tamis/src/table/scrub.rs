//! Scrub: scans a table once, checks all that can be checked, continues after each fault, and returns the readable entries and the
//! faults.
//!
//! 1. Every section has a correct checksum and valid content.
//! 2. Blocks are adjacent, their checksums are correct, their entries decode and ascend.
//! 3. If the table is open: the index separates and counts the entries correctly, no filter in use rejects a key of the table or a range
//!    that contains one, and the properties have the first and the last key.
//! 4. If no other fault is found: the footer has the checksum of all these checksums.
//!
//! A table that can't be opened, or whose index can't be read, is scrubbed as far as its parts can be found: sections as the directory
//! names them, blocks as the index names them, otherwise both by their own headers (`scavenge.rs`).
//!
//! An unreadable block is skipped as a whole; its keys are between the last key before it and the first key after it.
//!
//! Cost: the file is read once, and some sections twice. Without an index the file is read into memory as a whole, if it is not mapped.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use tamis_filter::{Digester, Probe};

use super::{
    block::Layout,
    data::DataBlocks,
    environment::TableEnvironment,
    filter_block::FilterBlock,
    filter_set::open_block,
    format::{FILTER_MAGIC, FOOTER_LENGTH, SectionKind, TABLE_MAGIC},
    index::Index,
    properties::{TableProperties, TableSummary},
    range_tombstones,
    read_ahead::ReadAhead,
    reader::{TableReader, open_index},
    scavenge::{BlockScavenger, Part},
    section::{ContentSum, SectionRecord, Source},
};
use crate::{
    cache::block::CachedBlock,
    coding::Decoder,
    error::{Error, Result},
    expiry,
    file_name::FileName,
    key::{Kind, Sequence, compare_entries},
};

/// Receives an entry: key, sequence number, kind, value.
type OnEntry<'a> = &'a mut dyn FnMut(&[u8], Sequence, Kind, &[u8]) -> Result<()>;

/// The result.
#[derive(Debug, Default)]
pub(crate) struct Scrubbed {
    pub(crate) bytes: u64,
    /// Entries of readable blocks.
    pub(crate) entry_count: u64,
    /// In the order of the file.
    pub(crate) faults: Vec<Error>,
    /// The ranges of keys that could not be read, both bounds included. Only of an open table.
    pub(crate) lost: Vec<(Vec<u8>, Vec<u8>)>,
}

impl TableReader {
    /// Every fault of the table; none for an intact one.
    pub(crate) fn verify(&self) -> Vec<Error> {
        self.scrub(&mut |_, _, _, _| Ok(())).map_or_else(|error| vec![error], |scrubbed| scrubbed.faults)
    }

    /// Scrubs the table, and calls `on_entry` with every readable entry, in order.
    ///
    /// # Errors
    /// Those of `on_entry`.
    pub(crate) fn scrub(&self, on_entry: OnEntry<'_>) -> Result<Scrubbed> {
        Scrub::new(&self.data, Some(self), on_entry).run()
    }
}

/// Scrubs table `number`, which can't be opened because of `why`.
pub(crate) fn scrub_unreadable(environment: &Arc<TableEnvironment>, number: u64, why: Error) -> Scrubbed {
    // A newer format, or an error of the system, does not mean that other parts are damaged.
    let source = match environment.open_file(FileName::Table(number)) {
        Ok(source) if matches!(why, Error::Corruption(_)) => source,
        _ => return Scrubbed { faults: vec![why], ..Scrubbed::default() },
    };
    let data = DataBlocks::new(source, number, 0);
    let ignore = &mut |_: &[u8], _, _, _: &[u8]| Ok(());
    let mut scrub = Scrub::new(&data, None, ignore);
    scrub.add_fault(why);
    scrub.run().unwrap_or_default()
}

/// Every fault of a filter file whose table can't be opened.
pub(crate) fn check_filter_file_alone(environment: &Arc<TableEnvironment>, number: u64) -> Vec<Error> {
    let checked = environment.open_file(FileName::Filter(number)).and_then(|source| {
        let records = source.directory(FILTER_MAGIC)?.records;
        Ok(records.iter().filter_map(|record| check_section(&source, record).err()).collect())
    });
    checked.unwrap_or_else(|error| vec![error])
}

/// Reads a section and opens its contents.
fn check_section(source: &Source, record: &SectionRecord) -> Result<()> {
    let damaged =
        |what| source.damaged(record.offset, what, "a valid one", "invalid ones with a correct checksum");
    match record.kind {
        SectionKind::Index => open_index(source, record).map(drop),
        SectionKind::Filter => open_block(source, record).map(drop),
        SectionKind::Properties => {
            let decoded = TableProperties::decode(&mut Decoder::new(source.section(record)?.as_ref()));
            decoded.map(drop).ok_or_else(|| damaged("properties"))
        }
        SectionKind::RangeTombstones => {
            let decoded = range_tombstones::decode(source.section(record)?.as_ref(), 0);
            decoded.map(drop).ok_or_else(|| damaged("range tombstones"))
        }
        _ => source.section(record).map(drop),
    }
}

/// An entry of a block, and where the content of the block has its value.
pub(super) struct BlockEntry {
    pub(super) key: Vec<u8>,
    pub(super) sequence: Sequence,
    pub(super) kind: Kind,
    pub(super) value: (usize, usize),
}

/// The entries of a block, whose content was verified. `shift`: added to all sequence numbers.
pub(super) fn entries_of(
    source: &Source,
    offset: u64,
    content: &[u8],
    shift: Sequence,
) -> Result<(Layout, Vec<BlockEntry>)> {
    let malformed = || source.malformed(offset);
    let layout = Layout::parse(content).ok_or_else(malformed)?;
    let entries = layout.over(content);
    let entry_of = |number| {
        let mut key = entries.prefix().to_vec();
        let entry = entries.entry(number).ok_or_else(malformed)?;
        entries.assemble_key(number, &entry, &mut key).ok_or_else(malformed)?;
        content.get(entry.value.0..entry.value.1).ok_or_else(malformed)?;
        let kind = source.kind(entry.kind, offset)?;
        Ok(BlockEntry { key, sequence: entry.sequence.wrapping_add(shift), kind, value: entry.value })
    };
    let all = (0..layout.entry_count()).map(entry_of).collect::<Result<_>>()?;
    Ok((layout, all))
}

fn offset_of(error: &Error) -> u64 {
    match error {
        Error::Corruption(found) => found.offset,
        Error::UnknownEntryKind { offset, .. } => *offset,
        _ => u64::MAX,
    }
}

struct Scrub<'a> {
    data: &'a DataBlocks,
    /// If it is open.
    table: Option<&'a TableReader>,
    filters: Vec<FilterBlock>,
    digester: Digester,
    on_entry: OnEntry<'a>,
    found: Scrubbed,
    /// Places of faults: a fault that several checks find is reported once.
    places: BTreeSet<(PathBuf, u64)>,
    /// The last entry of the last readable block.
    last: Option<(Vec<u8>, Sequence)>,
    /// The previous block has no fault.
    is_adjacent: bool,
    is_last_plain: bool,
    /// The previous block is not readable.
    is_behind_loss: bool,
}

impl<'a> Scrub<'a> {
    fn new(data: &'a DataBlocks, table: Option<&'a TableReader>, on_entry: OnEntry<'a>) -> Self {
        Self {
            data,
            table,
            filters: Vec::new(),
            digester: Digester::new(0),
            on_entry,
            found: Scrubbed::default(),
            places: BTreeSet::new(),
            last: None,
            is_adjacent: false,
            is_last_plain: false,
            is_behind_loss: false,
        }
    }

    /// Blocks without the program's decompressor are one fault of the table.
    fn add_fault(&mut self, error: Error) {
        let place = match &error {
            Error::Corruption(found) => Some((found.file.clone(), found.offset)),
            Error::ZstdUnavailable { .. } => Some((PathBuf::new(), 0)),
            _ => None,
        };
        if place.is_none_or(|place| self.places.insert(place)) {
            self.found.faults.push(error);
        }
    }

    fn run(mut self) -> Result<Scrubbed> {
        let source = &self.data.source;
        let directory = source.directory(TABLE_MAGIC).map_err(|error| self.add_fault(error)).ok();
        let records = directory.as_ref().map_or(&[][..], |directory| directory.records.as_slice());
        let index = self.sections(records);
        let filters = self.table.into_iter().flat_map(|table| table.read_filters());
        for filter in filters {
            match filter {
                Ok(filter) => self.filters.push(filter),
                Err(error) => self.add_fault(error),
            }
        }
        self.found.bytes = source.length;
        match &index {
            Some(index) => self.indexed_blocks(index)?,
            None => self.scavenged_parts(records.iter().map(|record| record.offset).min())?,
        }
        if let (Some(table), Some((key, _)), true) = (self.table, &self.last, self.is_adjacent)
            && *key != table.properties.summary.largest_key
        {
            self.add_fault(source.damaged(0, "properties", "the largest key", "another key"));
        }
        if let (Some(index), Some(directory), true) = (index, directory, self.found.faults.is_empty()) {
            let blocks = (0..index.block_count()).filter_map(|block| index.extent(block));
            let parts = blocks.map(|(start, _)| start).chain(directory.offsets);
            self.check_content(parts, directory.content).unwrap_or_else(|error| self.add_fault(error));
        }
        self.found.faults.sort_by_key(offset_of);
        Ok(self.found)
    }

    /// Checks all sections, and returns the index if it can be read.
    fn sections(&mut self, records: &[SectionRecord]) -> Option<Index> {
        let source = &self.data.source;
        let mut index = None;
        for record in records {
            let checked = match (record.kind, self.table) {
                (SectionKind::Index, Some(table)) => table.load_index().map(|found| index = Some(found)),
                (SectionKind::Index, None) => open_index(source, record).map(|found| index = Some(found)),
                // Those that are in use are opened; the others were reported when the table was opened.
                (SectionKind::Filter, Some(_)) => source.section(record).map(drop),
                _ => check_section(source, record),
            };
            checked.unwrap_or_else(|error| self.add_fault(error));
        }
        index
    }

    /// Compares the checksums of all blocks and sections with the checksum of them in the footer.
    fn check_content(&self, parts: impl Iterator<Item = u64>, stored: u64) -> Result<()> {
        let source = &self.data.source;
        let mut content = ContentSum::default();
        for offset in parts {
            let mut sum = [0; 8];
            source.read(offset, &mut sum)?;
            content.add(&sum);
        }
        let computed = content.finish();
        if stored == computed {
            return Ok(());
        }
        let (expected, got) = (format!("checksum {stored:#018x}"), format!("{computed:#018x}"));
        Err(source.damaged(source.length - FOOTER_LENGTH as u64, "content", expected, got))
    }

    /// All blocks that an index names.
    fn indexed_blocks(&mut self, index: &Index) -> Result<()> {
        let mut ahead = ReadAhead::of_job();
        let mut position = 0;
        for block in 0..index.block_count() {
            let Some((start, end)) = index.extent(block).filter(|(start, _)| *start == position) else {
                let expected = format!("block {block} at {position}");
                self.add_fault(self.data.source.damaged(position, "block index", expected, "another place"));
                self.lose();
                // Positions that are not in order could name the same bytes many times.
                return Ok(());
            };
            position = end;
            let data = self.data.load_and_verify(index, block, (start, end), &mut ahead);
            self.block(start, Some((index, block)), data)?;
        }
        Ok(())
    }

    /// All parts that their own headers show, up to the first section.
    fn scavenged_parts(&mut self, first_section: Option<u64>) -> Result<()> {
        let source = &self.data.source;
        let whole = match source.bytes(0, source.length) {
            Ok(whole) => whole,
            Err(error) => {
                self.add_fault(error);
                return Ok(());
            }
        };
        let footer = source.length.saturating_sub(FOOTER_LENGTH as u64);
        let end = first_section.unwrap_or(footer).min(footer) as usize;
        for part in BlockScavenger::new(whole.as_ref().get(..end).unwrap_or_default()) {
            let expected = "a block or section with a correct checksum";
            let (start, got) = match part {
                Part::Block(start, end) => {
                    let raw = whole.as_ref().get(start..end).unwrap_or_default();
                    self.block(start as u64, None, self.data.decode(start as u64, raw))?;
                    continue;
                }
                Part::Section(record) => {
                    check_section(source, &record).unwrap_or_else(|error| self.add_fault(error));
                    continue;
                }
                Part::Damaged(start, end) => (start, format!("neither in the bytes up to {end}")),
                Part::Unsearched(start) => {
                    let got = "too many bytes that look like one; the rest was not searched";
                    (start, got.to_owned())
                }
            };
            self.add_fault(source.damaged(start as u64, "part of the table", expected, got));
            self.lose();
        }
        Ok(())
    }

    /// Checks a block, whose place in the index may be known, and passes its entries on if it is readable.
    fn block(
        &mut self,
        offset: u64,
        place: Option<(&Index, usize)>,
        data: Result<CachedBlock>,
    ) -> Result<()> {
        let shift = self.table.map_or(0, |table| table.sequence_shift);
        let read = data.and_then(|data| {
            let (layout, entries) = entries_of(&self.data.source, offset, data.content(), shift)?;
            Ok((data, layout, entries))
        });
        let read = read.and_then(|read| match self.do_ascend(&read.2) {
            true => Ok(read),
            false => Err(self.data.source.malformed(offset)),
        });
        let (data, layout, entries) = match read {
            Ok(read) => read,
            Err(error) => {
                self.add_fault(error);
                self.lose();
                return Ok(());
            }
        };
        let compared = match (self.table, place) {
            (Some(table), Some(place)) => {
                self.compare(table, offset, place, (&layout, &entries, data.content()))
            }
            _ => Ok(()),
        };
        self.is_adjacent = compared.is_ok();
        compared.unwrap_or_else(|error| self.add_fault(error));
        if let (true, Some((_, upper)), Some(first)) =
            (self.is_behind_loss, self.found.lost.last_mut(), entries.first())
        {
            upper.clone_from(&first.key);
        }
        self.is_behind_loss = false;
        self.is_last_plain = layout.is_plain();
        self.found.entry_count += entries.len() as u64;
        for BlockEntry { key, sequence, kind, value } in &entries {
            let value = data.content().get(value.0..value.1).unwrap_or_default();
            (self.on_entry)(key, *sequence, *kind, value)?;
        }
        self.last = entries
            .into_iter()
            .next_back()
            .map(|last| (last.key, last.sequence))
            .or_else(|| self.last.take());
        Ok(())
    }

    /// Whether entries ascend, and are behind the last readable one.
    fn do_ascend(&self, entries: &[BlockEntry]) -> bool {
        let last = self.last.iter().map(|(key, sequence)| (key.as_slice(), *sequence));
        let all = last.chain(entries.iter().map(|entry| (entry.key.as_slice(), entry.sequence)));
        all.is_sorted_by(|left, right| compare_entries(*left, *right).is_lt())
    }

    /// Records that the keys of a block are lost.
    fn lose(&mut self) {
        if let (Some(table), false) = (self.table, self.is_behind_loss) {
            let summary = &table.properties.summary;
            let lower = self.last.as_ref().map_or(&summary.smallest_key, |(key, _)| key);
            self.found.lost.push((lower.clone(), summary.largest_key.clone()));
        }
        self.is_behind_loss = true;
        self.is_adjacent = false;
    }

    /// Compares a block with the index, the properties and the filters of its table.
    fn compare(
        &self,
        table: &TableReader,
        offset: u64,
        (index, block): (&Index, usize),
        (layout, entries, content): (&Layout, &[BlockEntry], &[u8]),
    ) -> Result<()> {
        let summary = &table.properties.summary;
        let counted = index.entries_before(block + 1).checked_sub(index.entries_before(block));
        let last = self.last.as_ref().filter(|_| self.is_adjacent).map(|(key, _)| key.as_slice());
        let first = entries.first().map(|entry| entry.key.as_slice()).unwrap_or_default();
        let is_separated = last.map_or(block > 0 || first == summary.smallest_key, |last| {
            index.separates(block, Some(last), first)
        });
        let sequences = summary.smallest_sequence..=summary.largest_sequence;
        let are_counted = entries
            .iter()
            .all(|entry| sequences.contains(&entry.sequence) && is_timed(summary, entry, content));
        let repeats_key = !entries.is_sorted_by(|left, right| left.key != right.key);
        let is_wrongly_plain = layout.is_plain()
            && (repeats_key || entries.iter().any(|entry| entry.kind != Kind::Put))
            || last == Some(first) && (layout.is_plain() || self.is_last_plain);
        if counted != Some(entries.len() as u64) || !is_separated || !are_counted || is_wrongly_plain {
            return Err(self.data.source.malformed(offset));
        }
        for BlockEntry { key, .. } in entries {
            let probe = Probe::new(key, &self.digester);
            if self.filters.iter().any(|filter| !filter.admits(&probe, &self.digester)) {
                let (expected, key) = ("a filter that admits every key", key.escape_ascii().to_string());
                return Err(self.data.source.damaged(offset, "filter", expected, key));
            }
        }
        Ok(())
    }
}

/// Whether an entry expires as the summary says, by which whole tables are dropped.
fn is_timed(summary: &TableSummary, entry: &BlockEntry, content: &[u8]) -> bool {
    let [first, .., last] = summary.expires_at;
    let value = content.get(entry.value.0..entry.value.1).unwrap_or_default();
    match entry.kind {
        Kind::ExpiringPut => expiry::split(value).is_some_and(|(time, _)| (first..=last).contains(&time)),
        _ => summary.expiring_count < summary.entry_count,
    }
}
