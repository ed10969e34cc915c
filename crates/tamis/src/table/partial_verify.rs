//! Verifies the readable parts of a table that can't be opened, or whose index can't be read.
//!
//! 1. Sections, as the directory names them. If it, or the footer, is damaged: by their own headers (`scavenge.rs`).
//! 2. Blocks, as the index names them, or by their own headers: checksums are correct, entries decode, and ascend from
//!    block to block.
//!
//! Counts, filters and the key column are not compared with the entries: the number of blocks is lost.
//!
//! Cost: the file is read once; if it is not mapped, it is read into memory as a whole.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    block::Layout,
    data::DataBlocks,
    environment::TableEnvironment,
    filter_block::FilterBlock,
    format::{
        FILTER_MAGIC, FOOTER_LENGTH, KIND_FILTER, KIND_INDEX, KIND_KEY_COLUMN, KIND_LAST, KIND_PROPERTIES,
        KIND_RANGE_TOMBSTONES, TABLE_MAGIC,
    },
    index::Index,
    key_column::KeyColumn,
    properties::TableProperties,
    range_tombstones,
    scavenge::{BlockScavenger, Part},
    section::{SectionRecord, Source},
};
use crate::{
    coding::Decoder,
    error::{Error, Result},
    file_name::FileName,
    key::{Sequence, compare_entries},
};

/// The result.
#[derive(Debug, Default)]
pub(crate) struct PartialVerify {
    pub(crate) bytes: u64,
    /// Entries of readable blocks.
    pub(crate) entry_count: u64,
    /// In the order of the file.
    pub(crate) faults: Vec<Error>,
}

/// Checks table `number`, which can't be opened because of `why`.
pub(crate) fn verify_readable_parts(
    environment: &Arc<TableEnvironment>,
    number: u64,
    why: Error,
) -> PartialVerify {
    match environment.open_file(FileName::Table(number)) {
        Ok(source) => verify_readable_parts_of(&source, number, vec![why]),
        Err(_) => PartialVerify { faults: vec![why], ..PartialVerify::default() },
    }
}

/// The same for an open file and the faults found before; because of the last of them the table can't be read.
pub(super) fn verify_readable_parts_of(source: &Source, number: u64, faults: Vec<Error>) -> PartialVerify {
    // A newer format, or an error of the system, does not mean that other parts are damaged.
    let is_damage = matches!(faults.last(), Some(Error::Corruption(_)));
    let data = DataBlocks::new(source.clone(), number, 0);
    let mut check =
        Check { source, data, found: PartialVerify::default(), places: BTreeSet::new(), last: None };
    faults.into_iter().for_each(|error| check.add_fault(error));
    if is_damage && let Err(error) = check.check_all() {
        check.add_fault(error);
    }
    let mut found = check.found;
    found.faults.sort_by_key(offset_of);
    found
}

/// Every fault of a filter file whose table can't be opened.
pub(crate) fn check_filter_file_alone(environment: &Arc<TableEnvironment>, number: u64) -> Vec<Error> {
    let checked = environment.open_file(FileName::Filter(number)).and_then(|source| {
        let records = source.directory(FILTER_MAGIC, KIND_LAST)?.records;
        Ok(records.iter().filter_map(|record| check_section(&source, record).err()).collect())
    });
    checked.unwrap_or_else(|error| vec![error])
}

fn offset_of(error: &Error) -> u64 {
    match error {
        Error::Corruption(found) => found.offset,
        Error::UnknownEntryKind { offset, .. } => *offset,
        _ => u64::MAX,
    }
}

/// Reads a section and opens its contents.
fn check_section(source: &Source, record: &SectionRecord) -> Result<()> {
    let bytes = source.section(record)?;
    let damaged = |what, reason: String| source.damaged(record.offset, what, "a valid one", reason);
    let other = || "invalid ones with a correct checksum".to_owned();
    match record.kind {
        KIND_INDEX => open_index(source, record).map(drop),
        KIND_KEY_COLUMN => KeyColumn::open(bytes).map(drop).ok_or_else(|| damaged("key column", other())),
        KIND_FILTER => FilterBlock::open(bytes).map(drop).map_err(|reason| damaged("filter", reason)),
        KIND_PROPERTIES => {
            let decoded = TableProperties::decode(&mut Decoder::new(bytes.as_ref()));
            decoded.map(drop).ok_or_else(|| damaged("properties", other()))
        }
        KIND_RANGE_TOMBSTONES => {
            let decoded = range_tombstones::decode(bytes.as_ref(), 0);
            decoded.map(drop).ok_or_else(|| damaged("range tombstones", other()))
        }
        _ => Ok(()),
    }
}

pub(super) fn open_index(source: &Source, record: &SectionRecord) -> Result<Index> {
    Index::open(source.section(record)?)
        .ok_or_else(|| source.damaged(record.offset, "block index", "a valid index", "an invalid one"))
}

struct Check<'a> {
    source: &'a Source,
    data: DataBlocks,
    found: PartialVerify,
    /// Offsets of faults: a fault that several checks find is reported once.
    places: BTreeSet<u64>,
    /// The previous entry; `None` at the beginning and after a fault.
    last: Option<(Vec<u8>, Sequence)>,
}

impl Check<'_> {
    fn add_fault(&mut self, error: Error) {
        let is_new = match &error {
            Error::Corruption(found) => self.places.insert(found.offset),
            _ => true,
        };
        self.found.faults.extend(is_new.then_some(error));
    }

    /// # Errors
    /// The error because of which it can't continue.
    fn check_all(&mut self) -> Result<()> {
        let source = self.source;
        let records = match source.directory(TABLE_MAGIC, KIND_LAST) {
            Ok(directory) => Some(directory.records),
            Err(error) => {
                self.add_fault(error);
                None
            }
        };
        let mut index = None;
        for record in records.iter().flatten() {
            match check_section(source, record) {
                Ok(()) if record.kind == KIND_INDEX => index = open_index(source, record).ok(),
                Ok(()) => {}
                Err(error) => self.add_fault(error),
            }
        }
        let whole = read_whole(source)?;
        let bytes = match &whole {
            Some(bytes) => bytes.as_slice(),
            None => source.file.mapping().map(|bytes| &***bytes).unwrap_or_default(),
        };
        self.found.bytes = bytes.len() as u64;
        let footer = bytes.len().saturating_sub(FOOTER_LENGTH) as u64;
        let first_section = records.iter().flatten().map(|record| record.offset).min();
        let end = first_section.unwrap_or(footer).min(footer) as usize;
        match index {
            Some(index) => self.indexed_blocks(&index, bytes),
            None => self.scavenged_parts(bytes, end),
        }
        Ok(())
    }

    /// All blocks that an index names.
    fn indexed_blocks(&mut self, index: &Index, bytes: &[u8]) {
        let mut position = 0;
        for block in 0..index.block_count() {
            let Some((start, end)) = index.extent(block).filter(|(start, _)| *start == position) else {
                let expected = format!("block {block} at {position}");
                self.add_fault(self.source.damaged(position, "block index", expected, "another place"));
                // Positions that are not in order could name the same bytes many times.
                return;
            };
            position = end;
            let raw = bytes.get(start as usize..).and_then(|rest| rest.get(..(end - start) as usize));
            match raw {
                Some(raw) => self.block(start, raw),
                None => {
                    let got = format!("a block up to {end}");
                    return self.add_fault(self.source.damaged(
                        start,
                        "block index",
                        "positions within the file",
                        got,
                    ));
                }
            }
        }
    }

    /// All parts that their own headers show.
    fn scavenged_parts(&mut self, bytes: &[u8], end: usize) {
        let source = self.source;
        for part in BlockScavenger::new(bytes.get(..end).unwrap_or_default()) {
            match part {
                Part::Block(start, end) => {
                    self.block(start as u64, bytes.get(start..end).unwrap_or_default());
                }
                Part::Section(record) => {
                    check_section(source, &record).unwrap_or_else(|error| self.add_fault(error))
                }
                Part::Damaged(start, end) => {
                    self.last = None;
                    let got = format!("neither in the bytes up to {end}");
                    let expected = "a block or section with a correct checksum";
                    self.add_fault(source.damaged(start as u64, "part of the table", expected, got));
                }
                Part::Unsearched(start) => {
                    let expected = "a block or section with a correct checksum";
                    let got = "too many bytes that look like one; the rest was not searched";
                    self.add_fault(source.damaged(start as u64, "part of the table", expected, got));
                }
            }
        }
    }

    fn block(&mut self, offset: u64, raw: &[u8]) {
        let checked = self.data.decode(offset, raw).and_then(|data| self.entries(offset, data.content()));
        if let Err(error) = checked {
            self.last = None;
            self.add_fault(error);
        }
    }

    fn entries(&mut self, offset: u64, content: &[u8]) -> Result<()> {
        let malformed = || self.source.malformed(offset);
        let layout = Layout::parse(content).ok_or_else(malformed)?;
        let entries = layout.over(content);
        for number in 0..layout.entry_count() {
            let mut key = entries.prefix().to_vec();
            let entry = entries.entry(number).ok_or_else(malformed)?;
            entries.assemble_key(number, &entry, &mut key).ok_or_else(malformed)?;
            self.source.kind(entry.kind, offset)?;
            if let Some((last, sequence)) = &self.last
                && compare_entries((last, *sequence), (&key, entry.sequence)).is_ge()
            {
                return Err(malformed());
            }
            self.last = Some((key, entry.sequence));
        }
        self.found.entry_count += layout.entry_count() as u64;
        Ok(())
    }
}

/// The bytes of a file that is not mapped.
fn read_whole(source: &Source) -> Result<Option<Vec<u8>>> {
    if source.file.mapping().is_some() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let length = usize::try_from(source.length).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(length).map_err(|error| {
        Error::io("read", &source.path, std::io::Error::new(std::io::ErrorKind::OutOfMemory, error))
    })?;
    bytes.resize(length, 0);
    source.read(0, &mut bytes)?;
    Ok(Some(bytes))
}
