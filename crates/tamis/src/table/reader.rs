//! An open table: point reads, the n-th entry, cursors.
//!
//! Opening reads footer, directory, index and properties and verifies them; data blocks are verified when they are first
//! used. A point read looks at the index, one block (two where a key's versions go on in the next block) and copies
//! nothing but short values.

use std::sync::Arc;

use tamis_filter::{Probe, RangeProbe};

use super::{
    block::{Layout, RawEntry},
    data::{BlockRef, DataBlocks},
    environment::{ReadCost, TableEnvironment},
    filter_block::FilterBlock,
    filter_file::FilterOwner,
    filter_set::FilterSet,
    format::{KIND_INDEX, KIND_KEY_COLUMN, KIND_OWNER, KIND_PROPERTIES, TABLE_MAGIC},
    index::Index,
    key_column::KeyColumn,
    properties::TableProperties,
    section::{SectionRecord, Source},
};
use crate::{
    cache::{
        account::{Kept, KeptRef},
        hotness::Hotness,
    },
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
    filters: FilterSet,
    pub(super) records: Vec<SectionRecord>,
}

impl TableReader {
    /// Opens table `number` of the environment's folder. A filter file, where one is in force, takes the place of the
    /// table's own filters.
    #[cfg(any(test, feature = "fuzz-internals"))]
    pub(crate) fn open(
        environment: &Arc<TableEnvironment>,
        number: u64,
        filter_file: Option<u64>,
    ) -> Result<Arc<Self>> {
        Self::open_with(environment, number, filter_file, &Arc::default())
    }

    /// [`TableReader::open`], with the hotness that the table's filters go by.
    pub(crate) fn open_with(
        environment: &Arc<TableEnvironment>,
        number: u64,
        filter_file: Option<u64>,
        hotness: &Arc<Hotness>,
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
        let file = filter_file.map(|number| (number, FilterOwner::of(&properties)));
        let filters = FilterSet::open(environment, &source, &records, file, hotness);
        let (block_count, index_bytes) = (index.block_count(), index.memory_bytes());
        let index = environment.keep(&source, index, index_bytes);
        let data = DataBlocks::new(source, number, block_count);
        let environment = Arc::clone(environment);
        Ok(Arc::new(Self {
            environment,
            data,
            index,
            index_record,
            block_count,
            properties,
            filters,
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
        self.filters.check_file(&self.environment, number, FilterOwner::of(&self.properties))
    }

    /// Whether a filter is in force.
    pub(crate) fn has_filter(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Whether a filter is in force that can deny ranges of more than one key.
    pub(crate) fn has_range_filter(&self) -> bool {
        self.filters.answers_ranges()
    }

    /// What filters are in force, for people; those that are not in memory are left out.
    pub(crate) fn filter_designs(&self) -> Vec<String> {
        self.filters.designs(&self.environment, &self.data.source)
    }

    /// Brings what [`TableReader::may_contain`] needs into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, probe: &Probe<'_>) {
        self.filters.prefetch(&self.environment, &self.data.source, probe);
    }

    /// Whether the table may hold the key; `false` is certain. `true` where there is no filter.
    #[inline]
    pub(crate) fn may_contain(&self, probe: &Probe<'_>) -> bool {
        self.filters.may_contain(&self.environment, &self.data.source, probe)
    }

    /// Takes note of a key that [`TableReader::may_contain`] admitted and the table did not have.
    #[inline]
    pub(crate) fn note_in_vain(&self) {
        self.filters.note_in_vain(&self.environment);
    }

    /// Whether the table may hold a key of the range; `false` is certain. `true` where there is no filter.
    pub(crate) fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        self.filters.may_contain_range(&self.environment, &self.data.source, probe)
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

    /// The filters in force, read anew.
    pub(super) fn read_filters(&self) -> impl Iterator<Item = Result<FilterBlock>> {
        self.filters.read_all(&self.environment, &self.data.source)
    }

    pub(super) fn damaged_key_column(&self) -> Error {
        self.data.source.damaged(0, "key column", "the keys of the table", "others, under a right checksum")
    }
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
