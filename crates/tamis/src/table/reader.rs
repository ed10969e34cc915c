//! An open table: point reads, the n-th entry, cursors.
//!
//! Opening reads and verifies footer, directory, index and properties; data blocks are verified when they are first used. A
//! point read uses the index and one block (two if the versions of a key continue in the next block) and copies only short
//! values.

use std::sync::Arc;

use tamis_filter::{Candidate, Direction, Probe, RangeProbe};

use super::{
    block::{Layout, Lookup, RawEntry},
    data::{BlockRef, DataBlocks},
    environment::{ReadCost, TableEnvironment},
    filter_block::FilterBlock,
    filter_choice::FilterChoice,
    filter_file::FilterOwner,
    filter_set::{FilterQuery, FilterSet},
    format::{FOOTER_LENGTH, SectionKind, TABLE_MAGIC, VERSION_OUTSIDE},
    index::Index,
    properties::{TableIdentity, TableOrigin, TableProperties, TableSummary},
    range_tombstones,
    section::{SectionRecord, Source},
};
use crate::{
    cache::{
        hotness::Hotness,
        pinned_cache::{Pinned, PinnedRef},
    },
    coding::Decoder,
    error::{Error, Result},
    file_name::FileName,
    key::{Kind, Sequence},
    options::TableFilter,
    range_tombstone::Fragments,
    slice::Slice,
};

/// The newest visible version of a key in a table.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) kind: Kind,
    pub(crate) sequence: Sequence,
    pub(crate) value: Slice,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct TableReader {
    environment: Arc<TableEnvironment>,
    pub(super) data: DataBlocks,
    index: Pinned<Index>,
    index_record: SectionRecord,
    block_count: usize,
    pub(super) properties: TableProperties,
    /// Added to the sequence numbers in the file: 0 except for a table that was built outside of the store.
    pub(super) sequence_shift: Sequence,
    filters: FilterSet,
    range_tombstones: Option<Arc<Fragments>>,
}

/// The known facts about a table before it is opened.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KnownTable {
    /// Without a number, the table's own number is used.
    pub(super) number: Option<u64>,
    /// The filter file that replaces the table's own filters.
    pub(super) filter_file: Option<u64>,
    /// The sequence number of the entries of a table that was built outside of the store.
    pub(super) sequence: Option<Sequence>,
    /// A table with another one is an error.
    pub(super) identity: Option<TableIdentity>,
}

impl TableReader {
    /// Opens table `number` of the environment's folder, which this store wrote. The filters of a filter file replace the
    /// table's own.
    #[cfg(any(test, feature = "bench-internals", feature = "fuzz-internals"))]
    pub(crate) fn open(
        environment: &Arc<TableEnvironment>,
        number: u64,
        filter_file: Option<u64>,
    ) -> Result<Arc<Self>> {
        let source = environment.open_file(FileName::Table(number))?;
        let known = KnownTable { number: Some(number), filter_file, ..KnownTable::default() };
        Self::open_source(environment, source, known, &Arc::default())
    }

    /// Opens a table that no version names. The entries of one that was built outside of the store get this sequence number.
    pub(crate) fn open_unnamed(
        environment: &Arc<TableEnvironment>,
        number: u64,
        sequence: Sequence,
    ) -> Result<Arc<Self>> {
        let source = environment.open_file(FileName::Table(number))?;
        let known = KnownTable { number: Some(number), sequence: Some(sequence), ..KnownTable::default() };
        Self::open_source(environment, source, known, &Arc::default())
    }

    /// Opens a table that was built outside of the store, and no other, before it is ingested.
    pub(crate) fn open_outside(environment: &Arc<TableEnvironment>, number: u64) -> Result<Arc<Self>> {
        let source = environment.open_file(FileName::Table(number))?;
        if source.directory(TABLE_MAGIC)?.version != VERSION_OUTSIDE {
            let offset = source.length.saturating_sub(FOOTER_LENGTH as u64);
            let expected = "a table that was built outside of a store";
            return Err(source.damaged(offset, "kind of table", expected, "a table of a store"));
        }
        let known = KnownTable { number: Some(number), sequence: Some(0), ..KnownTable::default() };
        Self::open_source(environment, source, known, &Arc::default())
    }

    /// Opens a table.
    pub(super) fn open_source(
        environment: &Arc<TableEnvironment>,
        source: Source,
        known: KnownTable,
        hotness: &Arc<Hotness>,
    ) -> Result<Arc<Self>> {
        let KnownTable { number, filter_file, sequence, identity } = known;
        let directory = source.directory(TABLE_MAGIC)?;
        let (version, records) = (directory.version, directory.records);
        let found = TableIdentity { file_bytes: source.length, checksum: directory.footer_checksum };
        if let Some(expected) = identity.filter(|expected| *expected != found) {
            let expected = format!("the table that the manifest names, {expected}");
            let got = format!("another one, {found}");
            return Err(source.damaged(source.length - FOOTER_LENGTH as u64, "table", expected, got));
        }
        let index_record = find_section(&source, &records, SectionKind::Index)?;
        let properties_record = find_section(&source, &records, SectionKind::Properties)?;
        let body = source.section(&properties_record)?;
        let properties = TableProperties::decode(&mut Decoder::new(body.as_ref()));
        let mut properties = properties.ok_or_else(|| {
            source.damaged(properties_record.offset, "properties", "valid properties", "invalid ones")
        })?;
        properties.summary.file_bytes = found.file_bytes;
        properties.summary.checksum = found.checksum;
        let is_from_outside = version == VERSION_OUTSIDE;
        let number = number.unwrap_or(properties.summary.number);
        let sequence_shift = if is_from_outside {
            let found = found_outside(&source, &properties, properties_record.offset, sequence)?;
            properties.summary = TableSummary {
                number,
                smallest_sequence: found,
                largest_sequence: found,
                ..properties.summary
            };
            found
        } else {
            0
        };
        let index = open_index(&source, &index_record)?;
        let summary = &properties.summary;
        let counted = (index.block_count() as u64, index.entries_before(index.block_count()));
        if summary.number != number || counted != (summary.block_count, summary.entry_count) {
            let (blocks, entries) = counted;
            let expected = format!("table {number} of {blocks} blocks and {entries} entries");
            let TableSummary { number, block_count, entry_count, .. } = summary;
            let got = format!("table {number} of {block_count} blocks and {entry_count} entries");
            return Err(source.damaged(properties_record.offset, "properties", expected, got));
        }
        let range_tombstones = read_range_tombstones(&source, &records, &properties, sequence_shift)?;
        let file = filter_file.map(|number| (number, FilterOwner::of(&properties)));
        let filters = FilterSet::open(environment, &source, &records, file, hotness);
        let (block_count, index_bytes) = (index.block_count(), index.memory_bytes());
        let index = environment.pin(&source, index, index_bytes);
        let data = DataBlocks::new(source, number, block_count);
        let environment = Arc::clone(environment);
        Ok(Arc::new(Self {
            environment,
            data,
            index,
            index_record,
            block_count,
            properties,
            sequence_shift,
            filters,
            range_tombstones,
        }))
    }

    /// The range tombstones, if the table has any. They apply even if its filters reject the key.
    #[inline]
    pub(crate) const fn range_tombstones(&self) -> Option<&Arc<Fragments>> {
        self.range_tombstones.as_ref()
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

    /// Whether its blocks are used in place in a mapping.
    #[inline]
    pub(crate) fn is_mapped(&self) -> bool {
        self.data.is_mapped()
    }

    pub(super) const fn block_count(&self) -> usize {
        self.block_count
    }

    /// The index, loaded again if it was evicted.
    #[inline]
    pub(super) fn index(&self) -> Result<PinnedRef<'_, Index>> {
        self.index.get(|| self.load_index())
    }

    /// As [`TableReader::index`], for a search before a block is loaded: the load counts the access.
    #[inline]
    pub(super) fn index_for_search(&self) -> Result<PinnedRef<'_, Index>> {
        self.index.get_uncounted(|| self.load_index())
    }

    pub(super) fn load_index(&self) -> Result<Index> {
        let index = open_index(&self.data.source, &self.index_record)?;
        if index.block_count() == self.block_count {
            return Ok(index);
        }
        let expected = format!("{} blocks", self.block_count);
        let got = index.block_count().to_string();
        Err(self.data.source.damaged(self.index_record.offset, "block index", expected, got))
    }

    /// Checks the filter file if its filters are not all in use: unusable ones were skipped when the table was opened.
    /// Filters in use are read by [`TableReader::verify`].
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn check_filter_file(&self, number: u64) -> Result<()> {
        self.filters.check_file(&self.environment, number, FilterOwner::of(&self.properties))
    }

    /// Whether a filter is in use.
    #[inline]
    pub(crate) fn has_filter(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Whether a filter is in use that can reject ranges of more than one key.
    pub(crate) fn has_range_filter(&self) -> bool {
        self.filters.answers_ranges()
    }

    /// Descriptions of the filters in use, and their bytes in memory; those that are not in memory are left out.
    pub(crate) fn filter_designs(&self) -> Vec<(String, u64)> {
        self.filters.designs()
    }

    /// Why the store chose the filters in use; `None` if it did not, or if that can't be read. The first call reads it.
    pub(crate) fn filter_choice(&self) -> Option<&FilterChoice> {
        self.filters.choice(&self.environment, &self.data.source)
    }

    /// Bytes of the block index.
    #[cfg(feature = "bench-internals")]
    pub(crate) const fn index_bytes(&self) -> u64 {
        self.index_record.length
    }

    /// The filters in use as the store chose them. `None` if it did not, or if some of them are not in use: they could not be built, or are
    /// damaged.
    pub(crate) fn chosen_filters(&self) -> Option<&[TableFilter]> {
        let filters = &self.filter_choice()?.chosen.filters;
        (filters.len() == self.filters.len() && !self.has_damaged_filter()).then_some(filters)
    }

    /// Whether a filter, or the filter file, can't be used, as far as it was read.
    pub(crate) fn has_damaged_filter(&self) -> bool {
        self.filters.is_damaged()
    }

    /// Bytes of the filters in use.
    pub(crate) fn filter_bytes(&self) -> u64 {
        self.filters.bytes()
    }

    /// Prefetches the cache lines that [`TableReader::may_contain`] reads.
    #[inline]
    pub(crate) fn prefetch(&self, probe: &Probe<'_>) {
        self.filters.prefetch(probe);
    }

    /// Whether the table may have the key; `false` is certain. `true` without a filter.
    #[inline]
    pub(crate) fn may_contain(&self, probe: &Probe<'_>) -> bool {
        self.filters.may_contain(&self.environment, &self.data.source, probe)
    }

    /// Records a key that [`TableReader::may_contain`] admitted and the table does not have.
    #[inline]
    pub(crate) fn record_false_positive(&self) {
        self.filters.record_false_positive(&self.environment);
    }

    /// Whether the table may have a key of the range; `false` is certain. `true` without a filter.
    pub(crate) fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        self.filters.may_contain_range(&self.environment, &self.data.source, probe)
    }

    /// Whether none of the filters that a query asks is evicted: only then its answer counts for their rate. Asked after the query, because
    /// the query may load a filter.
    #[inline]
    pub(crate) fn are_filters_asked(&self, query: FilterQuery) -> bool {
        self.filters.are_all_asked(query)
    }

    /// The first key of a range in a direction, as far as the table's filters know.
    pub(crate) fn candidate(&self, probe: &RangeProbe<'_>, direction: Direction) -> Candidate {
        self.filters.candidate(&self.environment, &self.data.source, probe, direction)
    }

    pub(super) fn extent(&self, index: &Index, block: usize) -> Result<(u64, u64)> {
        index.extent(block).ok_or_else(|| {
            self.data.source.damaged(0, "block index", "ascending positions", format!("block {block}"))
        })
    }

    /// The error for a block that was verified and has invalid entries. A mapped block may have changed since: then the error is
    /// that of its checksum.
    pub(super) fn malformed(&self, offset: u64) -> Error {
        self.verify_again(offset).err().unwrap_or_else(|| self.data.source.malformed(offset))
    }

    /// The kind of an entry of the block at `offset`. An unknown one is an error as in [`TableReader::malformed`].
    pub(super) fn kind(&self, byte: u8, offset: u64) -> Result<Kind> {
        let kind = self.data.source.kind(byte, offset);
        kind.map_err(|unknown| self.verify_again(offset).err().unwrap_or(unknown))
    }

    /// Reads the block at `offset` again. Cost: the index is searched entry by entry, because errors are rare.
    fn verify_again(&self, offset: u64) -> Result<()> {
        let index = self.index()?;
        let mut extents = (0..self.block_count).filter_map(|block| index.extent(block));
        match extents.find(|(start, _)| *start == offset) {
            Some(extent) => self.data.verify_again(extent),
            None => Ok(()),
        }
    }

    /// Number of entries before the key, accurate to half a block: no block is read.
    pub(crate) fn entries_about_before(&self, key: &[u8]) -> Result<f64> {
        let index = self.index()?;
        let block = index.block_of(key, Sequence::MAX);
        let (first, end) = (index.entries_before(block), index.entries_before(block + 1));
        Ok((first + end) as f64 / 2.0)
    }

    /// The newest version of `key` at or below `sequence`. Does not use filters: see [`TableReader::may_contain`].
    pub(crate) fn get(&self, key: &[u8], sequence: Sequence, cost: &mut ReadCost) -> Result<Option<Found>> {
        // All entries of a table that was ingested later are newer.
        let Some(sequence) = sequence.checked_sub(self.sequence_shift) else { return Ok(None) };
        let index = self.index()?;
        let mut block = index.block_of(key, sequence);
        loop {
            let extent = self.extent(&index, block)?;
            let data = self.data.load(&self.environment, block, extent, cost)?;
            let content = data.content();
            let found = Layout::parse(content).and_then(|layout| layout.over(content).find(key, sequence));
            match found.ok_or_else(|| self.malformed(extent.0))? {
                Lookup::Found(entry) => return self.found(&data, &entry, extent.0).map(Some),
                // Only a key whose versions continue in the next block can be there.
                Lookup::Behind if index.is_continued(block + 1) => block += 1,
                Lookup::Absent | Lookup::Behind => return Ok(None),
            }
        }
    }

    fn found(&self, data: &BlockRef<'_>, entry: &RawEntry<'_>, offset: u64) -> Result<Found> {
        Ok(Found {
            kind: self.kind(entry.kind, offset)?,
            sequence: entry.sequence.wrapping_add(self.sequence_shift),
            value: data.slice(&self.data.source.file, entry.value),
        })
    }

    /// The filters in use, read again.
    pub(super) fn read_filters(&self) -> impl Iterator<Item = Result<FilterBlock>> {
        self.filters.read_all(&self.environment, &self.data.source)
    }
}

/// The range tombstones of a table, compared with its properties.
pub(super) fn read_range_tombstones(
    source: &Source,
    records: &[SectionRecord],
    properties: &TableProperties,
    sequence_shift: Sequence,
) -> Result<Option<Arc<Fragments>>> {
    let summary = &properties.summary;
    let record = records.iter().find(|record| record.kind == SectionKind::RangeTombstones);
    let Some(record) = record else {
        if summary.range_tombstone_count == 0 {
            return Ok(None);
        }
        let expected = format!("{} range tombstones", summary.range_tombstone_count);
        return Err(source.damaged(source.length, "section directory", expected, "no section of them"));
    };
    let body = source.section(record)?;
    let fragments = range_tombstones::decode(body.as_ref(), sequence_shift).filter(|fragments| {
        let (first, last) = (fragments.list().first(), fragments.list().last());
        let count = fragments.list().len() as u64;
        let begins_within = first.is_some_and(|first| first.lower >= summary.smallest_key);
        let ends = last.map(|last| last.upper.as_slice());
        count == summary.range_tombstone_count
            && begins_within
            && ends == Some(summary.range_tombstone_upper.as_slice())
    });
    let damaged = || {
        let expected = "the range tombstones that the properties describe";
        source.damaged(record.offset, "range tombstones", expected, "others")
    };
    fragments.map(|fragments| Some(Arc::new(fragments))).ok_or_else(damaged)
}

/// The sequence number of the entries of a table that was built outside of the store.
fn found_outside(
    source: &Source,
    properties: &TableProperties,
    offset: u64,
    sequence: Option<Sequence>,
) -> Result<Sequence> {
    let TableProperties { origin, summary } = properties;
    let stored = (summary.number, summary.smallest_sequence, summary.largest_sequence);
    if stored != (0, 0, 0) || *origin != TableOrigin::default() {
        let got =
            format!("number {} and sequence numbers up to {}", summary.number, summary.largest_sequence);
        return Err(source.damaged(offset, "properties", "those of a table built outside of a store", got));
    }
    sequence.ok_or_else(|| {
        let expected = "a sequence number in the manifest";
        source.damaged(offset, "properties", expected, "a table built outside of a store, which has none")
    })
}

pub(super) fn open_index(source: &Source, record: &SectionRecord) -> Result<Index> {
    Index::open(source.section(record)?)
        .ok_or_else(|| source.damaged(record.offset, "block index", "a valid index", "an invalid one"))
}

fn find_section(source: &Source, records: &[SectionRecord], kind: SectionKind) -> Result<SectionRecord> {
    records.iter().find(|record| record.kind == kind).copied().ok_or_else(|| {
        source.damaged(
            source.length,
            "section directory",
            format!("a section of kind {}", kind as u32),
            "none",
        )
    })
}
