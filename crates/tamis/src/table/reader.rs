//! An open table: point reads, the n-th entry, cursors.
//!
//! Opening reads footer, directory, index and properties and verifies them; data blocks are verified when they are first
//! used. A point read looks at the index, one block (two where a key's versions go on in the next block) and copies
//! nothing but short values.

use std::sync::Arc;

use tamis_filter::Probe;

use super::{
    block::{Layout, RawEntry},
    data::{BlockRef, DataBlocks},
    environment::{ReadCost, TableEnvironment},
    filter_block::FilterBlock,
    filter_file::{FilterOwner, open_filter_file},
    format::{KIND_FILTER, KIND_INDEX, KIND_KEY_COLUMN, KIND_OWNER, KIND_PROPERTIES, TABLE_MAGIC},
    index::Index,
    key_column::KeyColumn,
    properties::TableProperties,
    section::{SectionRecord, Source},
};
use crate::{
    cache::account::{Kept, KeptRef},
    coding::Decoder,
    error::{Error, Result},
    file_name::FileName,
    key::{Kind, Sequence},
    slice::Slice,
};

/// The newest visible version of a key in a table.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) kind: Kind,
    #[cfg_attr(not(test), expect(dead_code, reason = "checked by the tests of tables"))]
    pub(crate) sequence: Sequence,
    pub(crate) value: Slice,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct TableReader {
    environment: Arc<TableEnvironment>,
    pub(super) data: DataBlocks,
    index: Kept<Index>,
    index_record: SectionRecord,
    block_count: usize,
    pub(super) properties: TableProperties,
    filter: Option<(FilterPlace, Kept<FilterBlock>)>,
    pub(super) records: Vec<SectionRecord>,
}

impl TableReader {
    /// Opens table `number` of the environment's folder. A filter file, where one is in force, takes the place of the
    /// table's own filter.
    pub(crate) fn open(
        environment: &Arc<TableEnvironment>,
        number: u64,
        filter_file: Option<u64>,
    ) -> Result<Arc<Self>> {
        let source = environment.open_file(FileName::Table(number))?;
        let records = source.directory(TABLE_MAGIC, KIND_OWNER)?;
        let index_record = find_section(&source, &records, KIND_INDEX)?;
        let properties_record = find_section(&source, &records, KIND_PROPERTIES)?;
        let body = source.section(&properties_record)?;
        let properties = TableProperties::decode(&mut Decoder::new(body.as_ref()));
        let mut properties = properties.ok_or_else(|| {
            source.damaged(properties_record.offset, "properties", "possible properties", "others")
        })?;
        properties.summary.file_bytes = source.length;
        let index = open_index(&source, &index_record)?;
        let summary = &properties.summary;
        let counted = (index.block_count() as u64, index.entries_before(index.block_count()));
        if summary.number != number || counted != (summary.block_count, summary.entry_count) {
            let expected = format!("table {number} of {counted:?} blocks and entries");
            let got = format!("{} of {:?}", summary.number, (summary.block_count, summary.entry_count));
            return Err(source.damaged(properties_record.offset, "properties", expected, got));
        }
        let file = filter_file.map(|file| FilterPlace::File(file, FilterOwner::of(&properties)));
        let section =
            records.iter().find(|record| record.kind == KIND_FILTER).copied().map(FilterPlace::Section);
        let filter = open_filter(environment, &source, file, section);
        let (block_count, index_bytes) = (index.block_count(), index.memory_bytes());
        let index = keep(environment, &source, index, index_bytes);
        let data = DataBlocks::new(source, number, block_count);
        let environment = Arc::clone(environment);
        Ok(Arc::new(Self {
            environment,
            data,
            index,
            index_record,
            block_count,
            properties,
            filter,
            records,
        }))
    }

    pub(crate) fn properties(&self) -> &TableProperties {
        &self.properties
    }

    pub(super) fn environment(&self) -> &TableEnvironment {
        &self.environment
    }

    pub(super) fn data(&self) -> &DataBlocks {
        &self.data
    }

    pub(super) const fn block_count(&self) -> usize {
        self.block_count
    }

    /// The index, read again where it was dropped.
    #[inline]
    pub(super) fn index(&self) -> Result<KeptRef<'_, Index>> {
        self.index.get(|| {
            let index = open_index(&self.data.source, &self.index_record)?;
            if index.block_count() == self.block_count {
                return Ok(index);
            }
            let expected = format!("{} blocks", self.block_count);
            let got = index.block_count().to_string();
            Err(self.data.source.damaged(self.index_record.offset, "block index", expected, got))
        })
    }

    /// Whether the filter file in force can be used; opening the table passed over one that could not. One that
    /// is in use is read by [`TableReader::verify`].
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check_filter_file(&self, number: u64) -> Result<()> {
        if matches!(self.filter, Some((FilterPlace::File(..), _))) {
            return Ok(());
        }
        open_filter_file(&self.environment, number, FilterOwner::of(&self.properties)).map(drop)
    }

    /// Whether a filter is in force.
    pub(crate) fn has_point_filter(&self) -> bool {
        self.filter.is_some()
    }

    /// What filter is in force, for people; `None` where there is none, or it is not in memory.
    pub(crate) fn filter_design(&self) -> Option<String> {
        self.filter_at_hand().map(|filter| filter.design())
    }

    /// Brings what [`TableReader::may_contain`] needs into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, probe: &Probe<'_>) {
        if let Some(filter) = self.filter_at_hand() {
            filter.prefetch(probe);
        }
    }

    /// Whether the table may hold the key; `false` is certain. `true` where there is no filter.
    #[inline]
    pub(crate) fn may_contain(&self, probe: &Probe<'_>) -> bool {
        self.filter_at_hand().is_none_or(|filter| filter.may_contain(probe))
    }

    /// The filter. One that was dropped is read again only where it can stay: reading it for one question costs more
    /// than it saves.
    #[inline]
    fn filter_at_hand(&self) -> Option<KeptRef<'_, FilterBlock>> {
        let (place, kept) = self.filter.as_ref()?;
        kept.get_if_room(|| place.open(&self.environment, &self.data.source))
    }

    pub(super) fn extent(&self, index: &Index, block: usize) -> Result<(u64, u64)> {
        index.extent(block).ok_or_else(|| {
            self.data.source.damaged(0, "block index", "ascending positions", format!("block {block}"))
        })
    }

    pub(super) fn malformed(&self, offset: u64) -> Error {
        self.data.source.damaged(
            offset,
            "block",
            "entries within the block",
            "others, under a right checksum",
        )
    }

    pub(super) fn kind(&self, byte: u8, offset: u64) -> Result<Kind> {
        Kind::from_byte(byte).ok_or_else(|| Error::UnknownEntryKind {
            file: self.data.source.path.to_path_buf(),
            offset,
            kind: byte,
        })
    }

    /// The newest version of `key` at or below `sequence`. Filters are not asked: see [`TableReader::may_contain`].
    pub(crate) fn get(&self, key: &[u8], sequence: Sequence, cost: &mut ReadCost) -> Result<Option<Found>> {
        let index = self.index()?;
        let mut block = index.block_of(key, sequence);
        loop {
            let extent = self.extent(&index, block)?;
            let data = self.data.load(&self.environment, block, extent, true, cost)?;
            let content = data.content();
            let layout = Layout::parse(content).ok_or_else(|| self.malformed(extent.0))?;
            let entries = layout.over(content);
            let rank = entries.rank(key, Some(sequence)).ok_or_else(|| self.malformed(extent.0))?;
            if rank < layout.entry_count() {
                return match entries.entry_with_key(rank, key) {
                    Some(entry) => self.found(&data, &entry, extent.0).map(Some),
                    None => Ok(None),
                };
            }
            // All entries lie before: only a key whose versions go on in the next block can be there.
            block += 1;
            if !index.is_continued(block) {
                return Ok(None);
            }
        }
    }

    fn found(&self, data: &BlockRef<'_>, entry: &RawEntry<'_>, offset: u64) -> Result<Found> {
        Ok(Found {
            kind: self.kind(entry.kind, offset)?,
            sequence: entry.sequence,
            value: data.slice(&self.data.source.file, entry.value),
        })
    }

    /// All keys without their values, where the table was written so.
    pub(crate) fn key_column(&self) -> Result<Option<KeyColumn>> {
        let Some(record) = self.records.iter().find(|record| record.kind == KIND_KEY_COLUMN) else {
            return Ok(None);
        };
        let source = &self.data.source;
        let column = KeyColumn::open(source.section(record)?)
            .filter(|column| column.entry_count() as u64 == self.properties.summary.entry_count);
        column
            .ok_or_else(|| source.damaged(record.offset, "key column", "the keys of the table", "others"))
            .map(Some)
    }

    /// The filter in force, read anew; `None` where there is none.
    pub(super) fn read_filter(&self) -> Option<Result<FilterBlock>> {
        let (place, _) = self.filter.as_ref()?;
        Some(place.open(&self.environment, &self.data.source))
    }

    pub(super) fn damaged_key_column(&self) -> Error {
        self.data.source.damaged(0, "key column", "the keys of the table", "others, under a right checksum")
    }
}

/// Where the filter in force lies.
#[derive(Debug, Clone, Copy)]
enum FilterPlace {
    File(u64, FilterOwner),
    Section(SectionRecord),
}

impl FilterPlace {
    fn open(&self, environment: &Arc<TableEnvironment>, source: &Source) -> Result<FilterBlock> {
        match self {
            Self::File(number, owner) => open_filter_file(environment, *number, *owner),
            Self::Section(record) => FilterBlock::open(source.section(record)?)
                .map_err(|reason| source.damaged(record.offset, "filter", "a known family", reason)),
        }
    }
}

/// Opens the filter file in force, or the first filter of the table; one that can't be used is reported and passed over.
fn open_filter(
    environment: &Arc<TableEnvironment>,
    source: &Source,
    file: Option<FilterPlace>,
    section: Option<FilterPlace>,
) -> Option<(FilterPlace, Kept<FilterBlock>)> {
    for place in [file, section].into_iter().flatten() {
        match place.open(environment, source) {
            Ok(filter) => {
                let bytes = filter.memory_bytes();
                return Some((place, keep(environment, source, filter, bytes)));
            }
            Err(error) => environment.report_filter(&source.path, error.to_string()),
        }
    }
    None
}

/// A value of a mapped table always stays: it costs no memory of ours.
fn keep<T: std::fmt::Debug + Send + Sync + 'static>(
    environment: &TableEnvironment,
    source: &Source,
    value: T,
    bytes: u64,
) -> Kept<T> {
    if source.file.mapping().is_some() {
        return Kept::fixed(value);
    }
    Kept::counted(&environment.account, &source.path, value, bytes)
}

fn open_index(source: &Source, record: &SectionRecord) -> Result<Index> {
    Index::open(source.section(record)?)
        .ok_or_else(|| source.damaged(record.offset, "block index", "a possible index", "another"))
}

fn find_section(source: &Source, records: &[SectionRecord], kind: u32) -> Result<SectionRecord> {
    records.iter().find(|record| record.kind == kind).copied().ok_or_else(|| {
        source.damaged(source.length, "section directory", format!("a section of kind {kind}"), "none")
    })
}
