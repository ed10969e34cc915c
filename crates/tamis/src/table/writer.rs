//! Writes a table from entries in order.
//!
//! The file has a temporary name until [`TableWriter::finish`] syncs it, renames it and syncs the folder, so that a table is
//! visible as a whole or not at all. A writer that is dropped before leaves a temporary file: in a store the next open deletes
//! it, outside of a store the next writer of the same table uses it again. [`TableWriter::abandon`] removes it at once.
//!
//! Bytes are written in pieces of [`WRITE_BYTES`], each at a multiple of this size: the page cache then stores a piece in one
//! huge page, and a mapping of the file needs one TLB entry for it instead of 512. TLB misses are half the cost of random
//! reads over more data than the TLB covers.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis_vfs::{File, Folder, Vfs};

use super::{
    block_builder::BlockBuilder,
    expiry_times::ExpiryTimes,
    filter_block::{BuiltFilters, FiltersBuilder},
    filter_plan::FilterPlan,
    format::{
        BLOCK_HEADER_LENGTH, BLOCK_KIND_ENTRIES, SECTION_ALIGNMENT, SECTION_PASSABLE, SectionKind, StoredAs,
        TABLE_MAGIC, VERSION, VERSION_OUTSIDE,
    },
    index::{BlockPositions, IndexBuilder},
    properties::{TableOrigin, TableProperties, TableSummary},
    range_tombstones,
    refilter::refused,
    section::{ContentSum, SectionRecord, put_directory_and_footer, put_section},
    zstandard,
};
use crate::{
    admin::link::folder_of,
    coding::{checksum, length_u32},
    error::{Error, Result},
    expiry,
    file_name::FileName,
    key::{Kind, Sequence, check_key, check_value},
    observe::events::{Event, EventListener},
    options::Compression,
    range_tombstone::Fragment,
    sync::sim_fault,
};

/// Bytes that are buffered before a write: a huge page on most machines.
const WRITE_BYTES: usize = 2 << 20;

/// Suffix of a table outside of a store while it is written. No foreign file has this name.
const OUTSIDE_SUFFIX: &str = ".tamis-tmp";

/// An entry of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableEntry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) sequence: Sequence,
    pub(crate) kind: Kind,
    pub(crate) value: &'a [u8],
}

/// The options of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableOptions {
    /// Size of a data block on disk; a power of two from 4 KiB to 64 KiB.
    pub(crate) block_bytes: u32,
    pub(crate) compression: Compression,
    pub(crate) filters: FilterPlan,
    /// The seed of all filters of the database.
    pub(crate) filter_seed: u64,
    pub(crate) origin: TableOrigin,
    /// Writes without the page cache, for stores that read so.
    pub(crate) is_direct: bool,
    /// Receives an event for each filter that can't be built.
    pub(crate) listener: Option<Arc<dyn EventListener>>,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct TableWriter {
    vfs: Arc<dyn Vfs>,
    file: Arc<dyn File>,
    temporary: PathBuf,
    target: PathBuf,
    options: TableOptions,
    summary: TableSummary,
    block: BlockBuilder,
    index: IndexBuilder,
    filters: FiltersBuilder,
    /// Ascending and disjoint.
    range_tombstones: Vec<Fragment>,
    range_tombstone_bytes: usize,
    /// Bytes that are not written yet. They begin at offset `written` of the file.
    buffer: Vec<u8>,
    written: u64,
    content: Vec<u8>,
    content_sum: ContentSum,
    stored: Vec<u8>,
    /// The previous entry: its key and sequence number.
    last: Option<(Vec<u8>, Sequence)>,
    /// It is an operand, which hides no older version.
    is_last_operand: bool,
    expiry_times: ExpiryTimes,
    /// The last key of the previous block, if there is one.
    last_key_of_previous: Option<Vec<u8>>,
    first_of_block: (Vec<u8>, Sequence),
}

impl TableWriter {
    /// Begins table `number` in `folder`.
    pub(crate) fn create(folder: &Folder, number: u64, options: TableOptions) -> Result<Self> {
        let target = FileName::Table(number).path(folder);
        let temporary = FileName::Temporary(number).path(folder);
        let create = if options.is_direct { Vfs::create_direct } else { Vfs::create };
        Self::begin(folder.vfs(), |path| create(&**folder, path), temporary, target, number, options)
    }

    /// Begins a table outside of a store (`docs/format/table.md`): it has no number. The temporary file of a killed process
    /// is used again; that of another live writer is refused.
    pub(crate) fn create_outside(vfs: &Arc<dyn Vfs>, path: &Path, options: TableOptions) -> Result<Self> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(OUTSIDE_SUFFIX);
        Self::create_outside_as(vfs, temporary.into(), path, options)
    }

    /// As [`TableWriter::create_outside`], with the path of the temporary file.
    pub(crate) fn create_outside_as(
        vfs: &Arc<dyn Vfs>,
        temporary: PathBuf,
        path: &Path,
        options: TableOptions,
    ) -> Result<Self> {
        let create = |path: &Path| {
            vfs.create_exclusive(path).map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => io::Error::new(
                    ErrorKind::AlreadyExists,
                    "another writer is building a table of this name",
                ),
                _ => error,
            })
        };
        Self::begin(vfs, create, temporary, path.to_path_buf(), 0, options)
    }

    fn begin(
        vfs: &Arc<dyn Vfs>,
        create: impl FnOnce(&Path) -> io::Result<Arc<dyn File>>,
        temporary: PathBuf,
        target: PathBuf,
        number: u64,
        options: TableOptions,
    ) -> Result<Self> {
        let filters = FiltersBuilder::new(&options.filters, options.filter_seed).map_err(refused)?;
        let file = create(&temporary).map_err(|source| Error::io("create", &temporary, source))?;
        Ok(Self {
            vfs: Arc::clone(vfs),
            file,
            temporary,
            target,
            summary: TableSummary { number, smallest_sequence: Sequence::MAX, ..TableSummary::default() },
            block: BlockBuilder::default(),
            index: IndexBuilder::default(),
            filters,
            options,
            range_tombstones: Vec::new(),
            range_tombstone_bytes: 0,
            buffer: Vec::new(),
            written: 0,
            content: Vec::new(),
            content_sum: ContentSum::default(),
            stored: Vec::new(),
            last: None,
            is_last_operand: false,
            expiry_times: ExpiryTimes::default(),
            last_key_of_previous: None,
            first_of_block: (Vec::new(), 0),
        })
    }

    /// Adds the next entry. Refuses an entry that is not after the previous one in entry order.
    pub(crate) fn add(&mut self, key: &[u8], sequence: Sequence, kind: Kind, value: &[u8]) -> Result<()> {
        self.add_hidden(&TableEntry { key, sequence, kind, value }, None)
    }

    /// As [`TableWriter::add`], for an entry that the range tombstone of this number deletes, which is in the same table.
    pub(crate) fn add_hidden(
        &mut self,
        entry: &TableEntry<'_>,
        range_tombstone: Option<Sequence>,
    ) -> Result<()> {
        let &TableEntry { key, sequence, kind, value } = entry;
        check_key(key)?;
        check_value(value)?;
        let mut hidden_by = range_tombstone;
        let mut repeats_key = false;
        if let Some((last_key, last_sequence)) = &self.last {
            let by_key = last_key.as_slice().cmp(key);
            if by_key.is_gt() || by_key.is_eq() && *last_sequence <= sequence {
                return Err(Error::InvalidArgument {
                    what: "entry",
                    got: format!("{} at {sequence}", key.escape_ascii()),
                    expected: format!("give entries after {} at {last_sequence}", last_key.escape_ascii()),
                });
            }
            repeats_key = by_key.is_eq();
            if repeats_key && !self.is_last_operand {
                hidden_by = Some(hidden_by.map_or(*last_sequence, |other| other.min(*last_sequence)));
            }
        }
        if self.summary.entry_count >= u64::from(u32::MAX) {
            return Err(Error::InvalidArgument {
                what: "table",
                got: "4,294,967,296 entries".to_owned(),
                expected: "finish the table earlier".to_owned(),
            });
        }
        let limit = self.options.block_bytes as usize - BLOCK_HEADER_LENGTH;
        if repeats_key {
            self.block.repeat_key();
        }
        if !self.block.add(key, sequence, kind, value, limit) {
            self.finish_block(self.positions())?;
            self.block.add(key, sequence, kind, value, limit);
            if repeats_key {
                self.block.repeat_key();
            }
        }
        if self.block.entry_count() == 1 {
            self.first_of_block.0.clear();
            self.first_of_block.0.extend_from_slice(key);
            self.first_of_block.1 = sequence;
        }
        if !(sim_fault!("filter-without-a-key") && key.last().is_some_and(|last| last % 64 == 5)) {
            self.filters.add(key);
        }
        if let Some(hidden_by) = hidden_by {
            self.summary.obsolete_count += 1;
            self.summary.obsolete_since = self.summary.obsolete_since.max(hidden_by);
        }
        self.count(key, sequence, kind, value);
        Ok(())
    }

    /// Announces a fragment of range tombstones, whose entries are added before [`TableWriter::add_range_tombstones`]. Without an
    /// entry before, its lower bound is deleted by a point tombstone too: no fragment begins below the smallest key of its table.
    pub(crate) fn begin_range_tombstones(&mut self, fragment: &Fragment) -> Result<()> {
        if self.summary.entry_count > 0 {
            return Ok(());
        }
        let newest = fragment.sequences.first().copied().unwrap_or_default();
        self.add(&fragment.lower, newest, Kind::Tombstone, &[])
    }

    /// Adds the next fragment of range tombstones: after the previous fragment, and at or after the first entry.
    pub(crate) fn add_range_tombstones(&mut self, fragment: Fragment) -> Result<()> {
        debug_assert!(self.range_tombstones.last().is_none_or(|last| last.upper <= fragment.lower));
        let summary = &mut self.summary;
        for &sequence in &fragment.sequences {
            summary.smallest_sequence = summary.smallest_sequence.min(sequence);
            summary.largest_sequence = summary.largest_sequence.max(sequence);
        }
        summary.range_tombstone_count += 1;
        summary.range_tombstone_upper.clone_from(&fragment.upper);
        self.range_tombstone_bytes +=
            fragment.lower.len() + fragment.upper.len() + 8 * fragment.sequences.len();
        self.range_tombstones.push(fragment);
        Ok(())
    }

    fn count(&mut self, key: &[u8], sequence: Sequence, kind: Kind, value: &[u8]) {
        let summary = &mut self.summary;
        summary.entry_count += 1;
        summary.tombstone_count += u64::from(kind == Kind::Tombstone);
        self.is_last_operand = kind == Kind::Operand;
        if kind == Kind::ExpiringPut
            && let Some((expires_at, _)) = expiry::split(value)
        {
            self.expiry_times.add(expires_at);
        }
        summary.key_bytes += key.len() as u64;
        summary.value_bytes += value.len() as u64;
        summary.smallest_sequence = summary.smallest_sequence.min(sequence);
        summary.largest_sequence = summary.largest_sequence.max(sequence);
        match &mut self.last {
            Some((last_key, last_sequence)) => {
                last_key.clear();
                last_key.extend_from_slice(key);
                *last_sequence = sequence;
            }
            None => {
                summary.smallest_key = key.to_vec();
                self.last = Some((key.to_vec(), sequence));
            }
        }
    }

    /// Approximate length of the file if it ended now.
    pub(crate) fn estimated_bytes(&self) -> u64 {
        let sections =
            self.index.estimated_bytes() + self.filters.estimated_bytes() + self.range_tombstone_bytes;
        self.position() + self.block.content_length() as u64 + sections as u64
    }

    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn is_compressed(&self) -> bool {
        self.options.compression != Compression::None
    }

    /// Where blocks begin, except the only one of a table.
    fn positions(&self) -> BlockPositions {
        if self.is_compressed() { BlockPositions::Packed } else { BlockPositions::Aligned }
    }

    /// Encodes the pending entries as a block.
    fn finish_block(&mut self, positions: BlockPositions) -> Result<()> {
        let entry_count = self.block.entry_count() as u64;
        let entries_before = (self.summary.entry_count - entry_count) as u32;
        let (key, sequence) = &self.first_of_block;
        let last = self.last_key_of_previous.as_deref();
        self.index.add_block(last, (key, *sequence), self.position(), entries_before);
        self.content.clear();
        self.block.finish(&mut self.content);
        let compression = self.compress()?;
        let stored = if compression == StoredAs::Plain { &self.content } else { &self.stored };

        let offset = self.written + self.buffer.len() as u64;
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 8]);
        self.buffer.extend_from_slice(&(length_u32(self.content.len())).to_le_bytes());
        self.buffer.extend_from_slice(&[BLOCK_KIND_ENTRIES, compression as u8, 0, 0]);
        self.buffer.extend_from_slice(stored);
        if positions == BlockPositions::Aligned {
            let length = (self.buffer.len() - start).next_multiple_of(self.options.block_bytes as usize);
            self.buffer.resize(start + length, 0);
        }
        if let Some((target, covered)) =
            self.buffer.get_mut(start..).and_then(|block| block.split_first_chunk_mut::<8>())
        {
            *target = checksum(offset, covered).to_le_bytes();
            self.content_sum.add(target);
        }
        if let Some((last_key, _)) = &self.last {
            self.last_key_of_previous.get_or_insert_default().clone_from(last_key);
        }
        let whole = self.buffer.len() / WRITE_BYTES * WRITE_BYTES;
        if whole > 0 { self.write_out(whole) } else { Ok(()) }
    }

    /// Compresses `content` into `stored` if that saves an eighth; returns the compression that is used.
    fn compress(&mut self) -> Result<StoredAs> {
        self.stored.clear();
        let kind = match self.options.compression {
            Compression::None => return Ok(StoredAs::Plain),
            Compression::Lz4 => {
                self.stored.resize(lz4_flex::block::get_maximum_output_size(self.content.len()), 0);
                let length = lz4_flex::block::compress_into(&self.content, &mut self.stored)
                    .map_err(|error| Error::io("compress", &self.temporary, io::Error::other(error)))?;
                self.stored.truncate(length);
                StoredAs::Lz4
            }
            Compression::Zstd(level) => {
                zstandard::compress(&self.content, &mut self.stored, level, &self.temporary)?;
                StoredAs::Zstandard
            }
        };
        let saves = self.stored.len() <= self.content.len() - self.content.len() / 8;
        Ok(if saves { kind } else { StoredAs::Plain })
    }

    /// Writes the first `length` bytes of the buffer to the file.
    fn write_out(&mut self, length: usize) -> Result<()> {
        let bytes = self.buffer.get(..length).unwrap_or_default();
        self.file.append(bytes).map_err(|source| Error::io("write", &self.temporary, source))?;
        self.written += length as u64;
        self.buffer.drain(..length);
        Ok(())
    }

    fn put_section(&mut self, kind: SectionKind, flags: u32, body: &[u8]) -> SectionRecord {
        let padded = self.position().next_multiple_of(SECTION_ALIGNMENT as u64) - self.written;
        self.buffer.resize(padded as usize, 0);
        let offset = self.position();
        let record = put_section(&mut self.buffer, offset, kind, flags, body);
        self.content_sum.add(self.buffer.get(padded as usize..).unwrap_or_default());
        record
    }

    /// Finishes the table: all sections, sync, rename, sync of the folder. Refuses a table without entries. No file is left after an error.
    pub(crate) fn finish(self) -> Result<TableSummary> {
        let (vfs, target) = (Arc::clone(&self.vfs), self.target.clone());
        let summary = self.finish_without_folder_sync()?;
        let folder = folder_of(&target);
        let synced = vfs.sync_dir(folder).map_err(|source| Error::io("sync", folder, source));
        synced.inspect_err(|_| drop(vfs.remove(&target))).map(|()| summary)
    }

    /// As [`Self::finish`], without the sync of the folder: the caller syncs it once for many tables, before it needs them.
    pub(crate) fn finish_without_folder_sync(mut self) -> Result<TableSummary> {
        let finished = self.try_finish().and_then(|summary| self.publish().map(|()| summary));
        finished.inspect_err(|_| {
            // After a failed rename it may have either name. One that can't be removed is deleted at the next open.
            let _ = self.vfs.remove(&self.temporary);
            let _ = self.vfs.remove(&self.target);
        })
    }

    fn publish(&self) -> Result<()> {
        self.file.sync().map_err(|source| Error::io("sync", &self.temporary, source))?;
        let renamed = self.vfs.rename(&self.temporary, &self.target);
        renamed.map_err(|source| Error::io("rename", &self.temporary, source))
    }

    fn try_finish(&mut self) -> Result<TableSummary> {
        let Some((largest_key, _)) = self.last.clone() else {
            return Err(Error::InvalidArgument {
                what: "table",
                got: "no entries".to_owned(),
                expected: "add one, or abandon the table".to_owned(),
            });
        };
        // A table of few entries takes one page, instead of one for its block and one for its sections.
        let positions = if self.index.block_count() == 0 { BlockPositions::Packed } else { self.positions() };
        self.finish_block(positions)?;
        let mut summary = std::mem::take(&mut self.summary);
        (summary.expiring_count, summary.expires_at) =
            (self.expiry_times.count(), self.expiry_times.quartiles());
        summary.block_count = self.index.block_count() as u64;
        let shared = tamis_bits::common_prefix_length(&summary.smallest_key, &largest_key);
        let end = (self.position(), summary.entry_count as u32);
        let index =
            self.index.finish(&summary.smallest_key, shared, self.options.block_bytes, positions, end);
        summary.largest_key = largest_key;

        let mut records = vec![self.put_section(SectionKind::Index, 0, &index)];
        drop(index);
        if !self.range_tombstones.is_empty() {
            let body = range_tombstones::encode(&std::mem::take(&mut self.range_tombstones));
            records.push(self.put_section(SectionKind::RangeTombstones, 0, &body));
        }
        let BuiltFilters { filters, choice, refusals } =
            std::mem::take(&mut self.filters).finish((&summary.smallest_key, &summary.largest_key));
        for filter in filters {
            records.push(self.put_section(SectionKind::Filter, SECTION_PASSABLE, &filter));
        }
        if let Some(choice) = choice {
            records.push(self.put_section(SectionKind::FilterChoice, SECTION_PASSABLE, &choice.encode()));
        }
        let version = if summary.number == 0 { VERSION_OUTSIDE } else { VERSION };
        let properties = TableProperties { origin: std::mem::take(&mut self.options.origin), summary };
        let mut body = Vec::new();
        properties.encode(&mut body);
        records.push(self.put_section(SectionKind::Properties, 0, &body));
        let padded = self.position().next_multiple_of(SECTION_ALIGNMENT as u64) - self.written;
        self.buffer.resize(padded as usize, 0);
        let offset = self.position();
        let content = std::mem::take(&mut self.content_sum);
        put_directory_and_footer(&mut self.buffer, offset, TABLE_MAGIC, version, &records, Some(content));
        let checksum = self.buffer.last_chunk::<8>().copied().map_or(0, u64::from_le_bytes);
        self.write_out(self.buffer.len())?;
        self.report_unbuilt_filters(refusals);
        Ok(TableSummary { file_bytes: self.written, checksum, ..properties.summary })
    }

    /// Reports the filters that were not built.
    fn report_unbuilt_filters(&self, refusals: Vec<String>) {
        let Some(listener) = &self.options.listener else { return };
        for reason in refusals {
            listener.on_event(&Event::FilterBuildFailed { file: self.target.clone(), reason });
        }
    }

    /// Removes the temporary file.
    pub(crate) fn abandon(self) -> Result<()> {
        self.vfs.remove(&self.temporary).map_err(|source| Error::io("remove", &self.temporary, source))
    }
}
