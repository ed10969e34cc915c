//! The output side of flushes and compactions: a sorted stream of entries becomes tables.
//!
//! 1. Entries that nothing needs are left out ([`super::drop_rules`]).
//! 2. A table is cut when it has its size, when it would overlap too much of the level below its own (so that its
//!    own compaction later stays bounded), and before given keys ([`TableSink::split_at`]); never within the versions of one key.
//! 3. On an error, or when the job is cancelled, the tables written so far are removed: no edit names them.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tamis_vfs::Vfs;

use super::{drop_rules::DropRules, level_filter_bits::bits_of_level};
use crate::{
    cursor::Cursor,
    error::{Error, Result},
    events::EventListener,
    file_name::FileName,
    key::Sequence,
    metrics::LEVEL_COUNT_MAX,
    options::{Compression, KeyspaceOptions, TableFilter, per_level},
    range_tombstone::Fragment,
    table::{
        properties::{TableOrigin, TableSummary},
        writer::{TableOptions, TableWriter},
    },
    version::{edit::RunPlace, handle::Table, version::KeyspaceVersion},
};

/// A table that overlaps more than this many times its own size of the level below is cut.
const OVERLAP_RATIO_MAX: u64 = 10;

/// What a job needs from the database.
#[derive(Clone)]
pub(crate) struct JobContext<'a> {
    pub(crate) vfs: &'a Arc<dyn Vfs>,
    pub(crate) folder: &'a Path,
    /// The keyspace as it was when the job was planned.
    pub(crate) version: &'a KeyspaceVersion,
    pub(crate) database_id: u64,
    pub(crate) filter_seed: u64,
    /// Whether tables are written past the page cache.
    pub(crate) is_direct: bool,
    pub(crate) listener: Option<Arc<dyn EventListener>>,
    pub(crate) next_number: &'a dyn Fn() -> u64,
    /// See [`DropRules`].
    pub(crate) read_points: Vec<Sequence>,
    pub(crate) is_cancelled: &'a AtomicBool,
    /// Called before each table.
    pub(crate) between_tables: &'a dyn Fn(),
}

impl JobContext<'_> {
    /// How tables are written that hold `key_count` keys in all; `depth` is the position in per-level options.
    pub(crate) fn table_options(&self, origin: &TableOrigin, depth: usize, key_count: u64) -> TableOptions {
        let options: &KeyspaceOptions = &self.version.options;
        let level = usize::from(origin.level);
        let filters = match options.filters.optimal_bits_per_key() {
            Some(bits) => match bits_of_level(self.version, level, key_count, &origin.replaced, bits) {
                0.0 => Vec::new(),
                bits => vec![TableFilter::bits(bits)],
            },
            None => options.filters.of_level(depth, level == LEVEL_COUNT_MAX - 1).to_vec(),
        };
        TableOptions {
            block_bytes: options.block_bytes,
            compression: per_level(&options.compression, depth).unwrap_or(Compression::None),
            filters,
            filter_seed: self.filter_seed,
            key_column: options.key_column,
            origin: origin.clone(),
            is_direct: self.is_direct,
            listener: self.listener.clone(),
        }
    }

    /// What tables of a run say of where they come from.
    pub(crate) fn origin(&self, partition: u64, place: RunPlace, replaced: Vec<u64>) -> TableOrigin {
        let index = self.version.partitions.iter().position(|other| other.id == partition).unwrap_or(0);
        let partition = self.version.partitions.get(index);
        TableOrigin {
            database_id: self.database_id,
            keyspace_id: self.version.id,
            keyspace_name: self.version.name.to_string(),
            partition_lower: partition.map(|partition| partition.lower.clone()).unwrap_or_default(),
            partition_upper: self.version.upper_of(index).unwrap_or_default().to_vec(),
            level: place.level,
            run_age: place.run_age,
            replaced,
        }
    }
}

/// What the tables of a job have, once they are written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    /// Data blocks.
    pub(crate) blocks: u64,
}

impl Written {
    pub(crate) fn add(&mut self, summary: &TableSummary) {
        self.bytes += summary.file_bytes;
        self.blocks += summary.block_count;
    }
}

/// Where a table ends: before the first key that is not below `key`.
pub(crate) struct SplitPoint {
    pub(crate) key: Vec<u8>,
    /// Whether the tables behind it are written past the page cache.
    pub(crate) is_direct: bool,
}

/// The tables of a job while they are written.
pub(crate) struct TableSink<'a> {
    context: &'a JobContext<'a>,
    options: TableOptions,
    /// Tables of the level below the outputs, in order of keys.
    grandparents: &'a [Arc<Table>],
    grandparent_index: usize,
    overlapped_bytes: u64,
    /// In order of their keys.
    split_points: VecDeque<SplitPoint>,
    rules: DropRules,
    /// Fragments of range tombstones that begin behind the last key, in key order.
    pending: VecDeque<Fragment>,
    /// The fragment that the current table is within.
    open: Option<Fragment>,
    last_key: Vec<u8>,
    current: Option<TableWriter>,
    finished: Vec<TableSummary>,
}

impl<'a> TableSink<'a> {
    /// TableSink of `key_count` keys at most, at a level whose position in per-level options is `depth`.
    pub(crate) fn new(
        context: &'a JobContext<'a>,
        origin: &TableOrigin,
        (depth, key_count): (usize, u64),
        grandparents: &'a [Arc<Table>],
        rules: DropRules,
    ) -> Self {
        Self {
            context,
            options: context.table_options(origin, depth, key_count),
            grandparents,
            grandparent_index: 0,
            overlapped_bytes: 0,
            split_points: VecDeque::new(),
            rules,
            pending: VecDeque::new(),
            open: None,
            last_key: Vec::new(),
            current: None,
            finished: Vec::new(),
        }
    }

    /// Cuts here too; the keys are in order, and behind those given before.
    pub(crate) fn split_at(&mut self, split_points: impl IntoIterator<Item = SplitPoint>) {
        self.split_points.extend(split_points);
    }

    /// Takes all entries of `cursor` below `upper` (all when `None`) from where it stands. `is_lowest` says whether nothing
    /// older of a key can lie outside of the job.
    pub(crate) fn consume(
        &mut self,
        cursor: &mut impl Cursor,
        upper: Option<&[u8]>,
        is_lowest: &dyn Fn(&[u8]) -> bool,
    ) -> Result<()> {
        while cursor.is_valid() {
            let key = cursor.key();
            if upper.is_some_and(|upper| key >= upper) {
                break;
            }
            if self.rules.keeps(key, cursor.sequence(), cursor.kind(), || is_lowest(key)) {
                self.add(cursor)?;
            }
            cursor.next()?;
        }
        Ok(())
    }

    /// Takes range tombstones, which are written with the entries between their bounds; before the first entry.
    pub(crate) fn take_range_tombstones(&mut self, fragments: Vec<Fragment>) {
        self.pending = fragments.into();
    }

    fn add(&mut self, cursor: &impl Cursor) -> Result<()> {
        let key = cursor.key();
        if self.last_key != key {
            self.note_overlap(key);
            self.advance_to(Some(key))?;
            if self.current.as_ref().is_some_and(|table| self.is_full(table)) {
                self.finish_table_before(key)?;
            }
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
        }
        self.table()?.add(key, cursor.sequence(), cursor.kind(), cursor.value())
    }

    /// The current table, begun where there is none.
    fn table(&mut self) -> Result<&mut TableWriter> {
        match &mut self.current {
            Some(table) => Ok(table),
            none => Ok(none.insert(Self::begin(self.context, &self.options)?)),
        }
    }

    /// Ends fragments and tables, and begins fragments, in key order before `key` (all that are left for `None`). A fragment that
    /// begins at `key` begins behind its entry.
    fn advance_to(&mut self, key: Option<&[u8]>) -> Result<()> {
        loop {
            let is_passed = |bound: &[u8]| key.is_none_or(|key| bound <= key);
            let end = self.open.as_ref().map(|open| open.upper.as_slice()).filter(|end| !end.is_empty());
            let end = end.filter(|end| is_passed(end));
            let cut = self.split_points.front().map(|cut| cut.key.as_slice()).filter(|cut| is_passed(cut));
            let start = self.pending.front().map(|fragment| fragment.lower.as_slice());
            let start = start.filter(|start| key.is_none_or(|key| *start < key));
            let is_first = |bound: &[u8], others: [Option<&[u8]>; 2]| {
                others.into_iter().flatten().all(|other| bound <= other)
            };
            if end.is_some_and(|end| is_first(end, [cut, start])) {
                let open = self.open.take();
                open.map_or(Ok(()), |open| self.table()?.add_range_tombstones(open))?;
            } else if cut.is_some_and(|cut| is_first(cut, [start, None])) {
                let Some(cut) = self.split_points.pop_front() else { return Ok(()) };
                self.finish_table_before(&cut.key)?;
                self.options.is_direct = cut.is_direct;
            } else if start.is_some() {
                let Some(fragment) = self.pending.pop_front() else { return Ok(()) };
                // Never within the versions of one key.
                let is_behind_last = self.last_key < fragment.lower;
                if is_behind_last && self.current.as_ref().is_some_and(|table| self.is_full(table)) {
                    self.finish_table_before(&fragment.lower)?;
                }
                self.table()?.begin_range_tombstones(&fragment)?;
                self.open = Some(fragment);
            } else {
                return Ok(());
            }
        }
    }

    fn begin(context: &JobContext<'_>, options: &TableOptions) -> Result<TableWriter> {
        (context.between_tables)();
        if context.is_cancelled.load(Ordering::Relaxed) {
            return Err(Error::Closed);
        }
        TableWriter::create(context.vfs, context.folder, (context.next_number)(), options.clone())
    }

    /// Counts the tables of the level below that end before `key`.
    fn note_overlap(&mut self, key: &[u8]) {
        while let Some(table) = self.grandparents.get(self.grandparent_index) {
            if !table.ends_before(key) {
                break;
            }
            if self.current.is_some() {
                self.overlapped_bytes += table.file_bytes();
            }
            self.grandparent_index += 1;
        }
    }

    fn is_full(&self, table: &TableWriter) -> bool {
        let limit = self.context.version.options.table_bytes;
        table.estimated_bytes() >= limit || self.overlapped_bytes > OVERLAP_RATIO_MAX * limit
    }

    /// Ends the table that is written. A fragment that reaches over `key` goes on in the next one.
    fn finish_table_before(&mut self, key: &[u8]) -> Result<()> {
        if let Some(open) = self.open.take() {
            let first = Fragment { upper: key.to_vec(), ..open.clone() };
            if first.lower < first.upper {
                self.table()?.add_range_tombstones(first)?;
            }
            self.pending.push_front(Fragment { lower: key.to_vec(), ..open });
        }
        self.finish_table()
    }

    fn finish_table(&mut self) -> Result<()> {
        self.overlapped_bytes = 0;
        if let Some(table) = self.current.take() {
            self.finished.push(table.finish()?);
        }
        Ok(())
    }

    /// Ends the last table; the summaries of all, in order of keys.
    pub(crate) fn finish(mut self) -> Result<Vec<TableSummary>> {
        self.advance_to(None)?;
        if let Some(open) = self.open.take() {
            self.table()?.add_range_tombstones(open)?;
        }
        self.finish_table()?;
        Ok(std::mem::take(&mut self.finished))
    }
}

impl Drop for TableSink<'_> {
    fn drop(&mut self) {
        // Not finished: nothing names these tables. One that can't be removed is swept at the next open.
        if let Some(table) = self.current.take() {
            let _ = table.abandon();
        }
        for summary in &self.finished {
            let _ = self.context.vfs.remove(&FileName::Table(summary.number).path(self.context.folder));
        }
    }
}
