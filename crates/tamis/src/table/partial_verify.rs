//! Checks what is left of a table that can't be opened, or whose index can't be read.
//!
//! 1. Sections, as the directory names them; where it, or the footer, is damaged, by their own headers (`scavenge.rs`).
//! 2. Blocks, as the index tells, or by their own headers: checksums hold, entries decode, and ascend from block to block.
//!
//! Counts, filters and the key column are not held against the entries here: what says how many blocks there are is lost.
//!
//! Cost: the file is read once; where it is not mapped, into memory as a whole.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    block::Layout,
    data::DataBlocks,
    environment::TableEnvironment,
    filter_block::FilterBlock,
    format::{
        FILTER_MAGIC, FOOTER_LENGTH, KIND_FILTER, KIND_INDEX, KIND_KEY_COLUMN, KIND_OWNER, KIND_PROPERTIES,
        TABLE_MAGIC,
    },
    index::Index,
    key_column::KeyColumn,
    properties::TableProperties,
    scavenge::{BlockScavenger, Part},
    section::{SectionRecord, Source},
};
use crate::{
    coding::Decoder,
    error::{Error, Result},
    file_name::FileName,
    key::{Sequence, compare_entries},
};

/// What was read and found.
#[derive(Debug, Default)]
pub(crate) struct PartialVerify {
    pub(crate) bytes: u64,
    /// Entries of blocks that can be read.
    pub(crate) entry_count: u64,
    /// In the order of the file.
    pub(crate) faults: Vec<Error>,
}

/// Checks table `number`, which can't be opened for this reason.
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

/// The same of an open file with what was found before; the last of that is why the table can't be read.
pub(super) fn verify_readable_parts_of(source: &Source, number: u64, faults: Vec<Error>) -> PartialVerify {
    // What a newer program wrote, or the system does not give, says nothing about what lies beside it.
    let is_damage = matches!(faults.last(), Some(Error::Corruption(_)));
    let data = DataBlocks::new(source.clone(), number, 0);
    let mut check =
        Check { source, data, found: PartialVerify::default(), places: BTreeSet::new(), last: None };
    faults.into_iter().for_each(|error| check.keep(error));
    if is_damage && let Err(error) = check.all() {
        check.keep(error);
    }
    let mut found = check.found;
    found.faults.sort_by_key(offset_of);
    found
}

/// Every fault of a filter file whose table can't be opened.
pub(crate) fn check_filter_file_alone(environment: &Arc<TableEnvironment>, number: u64) -> Vec<Error> {
    let checked = environment.open_file(FileName::Filter(number)).and_then(|source| {
        let records = source.directory(FILTER_MAGIC, KIND_OWNER)?.records;
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

/// Reads a section and opens what is in it.
fn check_section(source: &Source, record: &SectionRecord) -> Result<()> {
    let bytes = source.section(record)?;
    let damaged = |what, reason: String| source.damaged(record.offset, what, "what a writer makes", reason);
    let other = || "others, under a right checksum".to_owned();
    match record.kind {
        KIND_INDEX => open_index(source, record).map(drop),
        KIND_KEY_COLUMN => KeyColumn::open(bytes).map(drop).ok_or_else(|| damaged("key column", other())),
        KIND_FILTER => FilterBlock::open(bytes).map(drop).map_err(|reason| damaged("filter", reason)),
        KIND_PROPERTIES => {
            let decoded = TableProperties::decode(&mut Decoder::new(bytes.as_ref()));
            decoded.map(drop).ok_or_else(|| damaged("properties", other()))
        }
        _ => Ok(()),
    }
}

pub(super) fn open_index(source: &Source, record: &SectionRecord) -> Result<Index> {
    Index::open(source.section(record)?)
        .ok_or_else(|| source.damaged(record.offset, "block index", "a possible index", "another"))
}

struct Check<'a> {
    source: &'a Source,
    data: DataBlocks,
    found: PartialVerify,
    /// Where something is wrong: what one check has found, another need not tell again.
    places: BTreeSet<u64>,
    /// The entry before; `None` at the beginning and behind a fault.
    last: Option<(Vec<u8>, Sequence)>,
}

impl Check<'_> {
    fn keep(&mut self, error: Error) {
        let is_new = match &error {
            Error::Corruption(found) => self.places.insert(found.offset),
            _ => true,
        };
        self.found.faults.extend(is_new.then_some(error));
    }

    /// # Errors
    /// What keeps it from going on.
    fn all(&mut self) -> Result<()> {
        let source = self.source;
        let records = match source.directory(TABLE_MAGIC, KIND_OWNER) {
            Ok(directory) => Some(directory.records),
            Err(error) => {
                self.keep(error);
                None
            }
        };
        let mut index = None;
        for record in records.iter().flatten() {
            match check_section(source, record) {
                Ok(()) if record.kind == KIND_INDEX => index = open_index(source, record).ok(),
                Ok(()) => {}
                Err(error) => self.keep(error),
            }
        }
        let whole = read_whole(source)?;
        let bytes = match &whole {
            Some(bytes) => bytes.as_slice(),
            None => source.file.mapping().unwrap_or_default(),
        };
        self.found.bytes = bytes.len() as u64;
        let footer = bytes.len().saturating_sub(FOOTER_LENGTH) as u64;
        let first_section = records.iter().flatten().map(|record| record.offset).min();
        let end = first_section.unwrap_or(footer).min(footer) as usize;
        match index {
            Some(index) => self.indexed_blocks(&index, bytes),
            None => self.parts(bytes, end),
        }
        Ok(())
    }

    /// All blocks that an index names.
    fn indexed_blocks(&mut self, index: &Index, bytes: &[u8]) {
        let mut position = 0;
        for block in 0..index.block_count() {
            let Some((start, end)) = index.extent(block).filter(|(start, _)| *start == position) else {
                let expected = format!("block {block} at {position}");
                self.keep(self.source.damaged(position, "block index", expected, "another place"));
                // Places that are not in order could name the same bytes again and again.
                return;
            };
            position = end;
            let raw = bytes.get(start as usize..).and_then(|rest| rest.get(..(end - start) as usize));
            match raw {
                Some(raw) => self.block(start, raw),
                None => {
                    let got = format!("a block up to {end}");
                    return self.keep(self.source.damaged(
                        start,
                        "block index",
                        "positions within the file",
                        got,
                    ));
                }
            }
        }
    }

    /// All parts that are found by their own headers.
    fn parts(&mut self, bytes: &[u8], end: usize) {
        let source = self.source;
        for part in BlockScavenger::new(bytes.get(..end).unwrap_or_default()) {
            match part {
                Part::Block(start, end) => {
                    self.block(start as u64, bytes.get(start..end).unwrap_or_default());
                }
                Part::Section(record) => {
                    check_section(source, &record).unwrap_or_else(|error| self.keep(error))
                }
                Part::Damaged(start, end) => {
                    self.last = None;
                    let got = format!("neither in the bytes up to {end}");
                    let expected = "a block or section with a right checksum";
                    self.keep(source.damaged(start as u64, "part of the table", expected, got));
                }
                Part::Unsearched(start) => {
                    let expected = "a block or section with a right checksum";
                    let got = "too much that looks like one; the bytes behind were not searched";
                    self.keep(source.damaged(start as u64, "part of the table", expected, got));
                }
            }
        }
    }

    fn block(&mut self, offset: u64, raw: &[u8]) {
        let checked = self.data.decode(offset, raw).and_then(|data| self.entries(offset, data.content()));
        if let Err(error) = checked {
            self.last = None;
            self.keep(error);
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
