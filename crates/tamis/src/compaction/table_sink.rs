//! The output side of flushes and compactions: writes a sorted stream of entries into tables.
//!
//! 1. Obsolete and expired entries are dropped ([`super::drop_rules`]), and operands are folded ([`super::operand_fold`]).
//! 2. A table ends when it is full, when it would overlap too many bytes of the level below (which bounds the cost of
//!    its later compaction), and at split points ([`TableSink::split_at`]). All versions of a key are in one table.
//! 3. After an error, or when the job is cancelled, the tables written so far are removed: no edit names them.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
};

use super::{
    drop_rules::{Decision, DropRules},
    job_context::JobContext,
    operand_fold::OperandFold,
};
use crate::{
    cursor::Cursor,
    error::{Error, Result},
    file_name::FileName,
    key::Kind,
    merge_operator::FoldStep,
    range_tombstone::Fragment,
    table::{
        properties::{TableOrigin, TableSummary},
        writer::{TableEntry, TableOptions, TableWriter},
    },
    version::handle::Table,
};

/// The size of the tables that a job has written.
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

/// A key before which a table ends: no table holds keys on both sides of it.
pub(crate) struct SplitPoint {
    pub(crate) key: Vec<u8>,
    /// Whether the tables after it are written with direct I/O.
    pub(crate) is_direct: bool,
}

/// See the head of this file.
pub(crate) struct TableSink<'a> {
    context: &'a JobContext<'a>,
    options: TableOptions,
    /// Tables of the level below the outputs, in key order.
    grandparents: &'a [Arc<Table>],
    grandparent_index: usize,
    overlapped_bytes: u64,
    /// In key order.
    split_points: VecDeque<SplitPoint>,
    rules: DropRules,
    fold: OperandFold,
    /// Fragments of range tombstones that begin after the last key, in key order.
    pending: VecDeque<Fragment>,
    /// The fragment that covers the end of the current table.
    open: Option<Fragment>,
    last_key: Vec<u8>,
    current: Option<TableWriter>,
    finished: Vec<TableSummary>,
    /// Whether all entries become one table, of any size.
    is_one_table: bool,
}

impl<'a> TableSink<'a> {
    /// A sink for at most `key_count` keys, at a level whose position in per-level options is `depth`.
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
            fold: OperandFold::default(),
            pending: VecDeque::new(),
            open: None,
            last_key: Vec::new(),
            current: None,
            finished: Vec::new(),
            is_one_table: false,
        }
    }

    /// Writes one table, of any size. Estimates are of bytes before compression: tables that are joined because their files fit into
    /// one would be divided again, again and again.
    pub(crate) const fn write_one_table(&mut self) {
        self.is_one_table = true;
    }

    /// Adds split points; their keys ascend, also from call to call.
    pub(crate) fn split_at(&mut self, split_points: impl IntoIterator<Item = SplitPoint>) {
        self.split_points.extend(split_points);
    }

    /// Writes the entries of `cursor` from its position up to `upper`, which is excluded (`None`: all). `is_lowest` returns
    /// whether no older version of a key can exist outside of the job.
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
            let (sequence, mut kind, mut value) = (cursor.sequence(), cursor.kind(), cursor.value());
            if kind == Kind::ExpiringPut && self.context.is_expired(value) {
                (kind, value) = (Kind::Tombstone, &[]);
            }
            let decision = self.rules.decide(key, sequence, kind, || is_lowest(key));
            let entry = TableEntry { key, sequence, kind, value };
            if decision == Decision::Keep && self.fold.is_empty() {
                self.add(&entry)?;
            } else if decision != Decision::Drop {
                self.fold(decision, &entry, is_lowest)?;
            }
            cursor.next()?;
        }
        self.end_fold(None, is_lowest)
    }

    /// Adds an entry of which the operands are folded with others.
    #[cold]
    fn fold(
        &mut self,
        decision: Decision,
        entry: &TableEntry<'_>,
        is_lowest: &dyn Fn(&[u8]) -> bool,
    ) -> Result<()> {
        let &TableEntry { key, sequence, kind, value } = entry;
        let base = match decision {
            Decision::Operand { is_newest: false } => {
                if self.fold.push(sequence, value) {
                    return Ok(());
                }
                // Each of both parts fits into a value.
                self.write_fold(FoldStep::Continue)?;
                self.fold.begin(key, sequence, value);
                return Ok(());
            }
            Decision::Folded => {
                self.fold.pop();
                if self.fold.is_empty() {
                    return self.add(entry);
                }
                FoldStep::Base(Some(value))
            }
            Decision::Base if kind == Kind::Put => FoldStep::Base(Some(value)),
            Decision::Base if kind == Kind::Tombstone => FoldStep::Base(None),
            Decision::NoBase => FoldStep::Base(None),
            Decision::Operand { .. } => {
                self.end_fold(Some(key), is_lowest)?;
                self.fold.begin(key, sequence, value);
                return Ok(());
            }
            Decision::Base | Decision::Keep | Decision::Drop => {
                self.end_fold(Some(key), is_lowest)?;
                return self.add(entry);
            }
        };
        if self.write_fold(base)? || decision == Decision::NoBase { Ok(()) } else { self.add(entry) }
    }

    /// Ends the fold before the entry of a key, or at the end: older entries of the fold's key follow, are elsewhere, or do not exist.
    fn end_fold(&mut self, next: Option<&[u8]>, is_lowest: &dyn Fn(&[u8]) -> bool) -> Result<()> {
        if self.fold.is_empty() {
            return Ok(());
        }
        let has_no_older = next != Some(self.fold.key()) && is_lowest(self.fold.key());
        self.write_fold(if has_no_older { FoldStep::Base(None) } else { FoldStep::Continue }).map(drop)
    }

    fn write_fold(&mut self, base: FoldStep<'_>) -> Result<bool> {
        let mut fold = std::mem::take(&mut self.fold);
        let operator = self.context.version.options.merge.as_ref();
        let is_folded = fold.end(operator, base, &mut |key, sequence, kind, value| {
            self.add(&TableEntry { key, sequence, kind, value })
        });
        self.fold = fold;
        is_folded
    }

    /// Adds range tombstones, which are written with the entries in their range. Must be called before the first entry.
    pub(crate) fn take_range_tombstones(&mut self, fragments: Vec<Fragment>) {
        self.pending = fragments.into();
    }

    fn add(&mut self, entry: &TableEntry<'_>) -> Result<()> {
        let key = entry.key;
        if self.last_key != key {
            self.note_overlap(key);
            self.advance_to(Some(key))?;
            if self.current.as_ref().is_some_and(|table| self.is_full(table)) {
                self.finish_table_before(key)?;
            }
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
        }
        let newer = self.open.as_ref().and_then(|open| open.oldest_above(entry.sequence));
        self.table()?.add_hidden(entry, newer)
    }

    /// The current table; a new one is begun if there is none.
    fn table(&mut self) -> Result<&mut TableWriter> {
        match &mut self.current {
            Some(table) => Ok(table),
            none => Ok(none.insert(Self::begin(self.context, &self.options)?)),
        }
    }

    /// Ends fragments and tables and begins fragments, in key order, up to `key` (excluded; `None`: all that are left). A fragment
    /// that begins at `key` begins after its entry.
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
                // All versions of a key are in one table.
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
        if (context.between_tables)().is_break() || context.is_cancelled.load(Ordering::Relaxed) {
            return Err(Error::Closed);
        }
        TableWriter::create(context.folder, (context.next_number)(), options.clone())
    }

    /// Adds the bytes of the tables of the level below that end before `key`.
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
        !self.is_one_table
            // Or when it overlaps ten times the table size of the level below.
            && (table.estimated_bytes() >= limit || self.overlapped_bytes > 10 * limit)
    }

    /// Finishes the current table. A fragment that reaches over `key` continues in the next table.
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
            self.finished.push(table.finish_without_folder_sync()?);
        }
        Ok(())
    }

    /// Finishes the last table, syncs the folder, and returns the summaries of all tables, in key order.
    pub(crate) fn finish(mut self) -> Result<Vec<TableSummary>> {
        self.finish_last()?;
        if !self.finished.is_empty() {
            self.context.sync_folder()?;
        }
        Ok(std::mem::take(&mut self.finished))
    }

    /// As [`Self::finish`], without the sync: the caller calls [`JobContext::sync_folder`] after its last sink.
    pub(crate) fn finish_without_folder_sync(mut self) -> Result<Vec<TableSummary>> {
        self.finish_last()?;
        Ok(std::mem::take(&mut self.finished))
    }

    fn finish_last(&mut self) -> Result<()> {
        self.advance_to(None)?;
        if let Some(open) = self.open.take() {
            self.table()?.add_range_tombstones(open)?;
        }
        self.finish_table()
    }
}

impl Drop for TableSink<'_> {
    fn drop(&mut self) {
        // Not finished: no edit names these tables. One that can't be removed is deleted at the next open.
        if let Some(table) = self.current.take() {
            let _ = table.abandon();
        }
        for summary in &self.finished {
            let _ = self.context.folder.remove(&FileName::Table(summary.number).path(self.context.folder));
        }
    }
}
