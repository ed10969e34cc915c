//! Scans: the entries of a key range in both directions, as of one moment.
//!
//! A scan holds the memtables and the version it began with; it borrows nothing, may move to another thread and
//! outlive the database's handle. Nothing is read before the first step: then each memtable and each run with a table
//! in the range gives one cursor, a loser tree merges them, and of each key the newest version at or below the read
//! point is shown, tombstones left out.
//!
//! A range that lies within one table of a run, between two keys of it, may be empty there: such tables' filters are asked
//! ([`super::select_runs`]), and those that say no give no cursor. An empty range that all of them deny reads no block.
//!
//! Steps from the front and from the back have a cursor each, made when first needed; the two stop where they meet.

use std::{
    fmt,
    iter::FusedIterator,
    ops::Bound,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use tamis_filter::{Digester, RangeProbe};

use super::select_runs::{RunSelector, SelectedRun};
use crate::{
    cache::table::TableCache,
    cursor::{
        bounded::{Bounds, KeyRange},
        coverage::{CoverSource, Coverage},
        filter_outcome::FilterOutcome,
        merge::MergeCursor,
        run::RunCursor,
        run_tables::{RunTables, ScanContext},
        source::Source,
        visible::VisibleCursor,
    },
    engine::{Engine, KeyspaceState, ReadState},
    error::Result,
    key::Sequence,
    slice::Slice,
    table::read_ahead::Limits,
    version::level::Run,
};

type Visible = VisibleCursor<MergeCursor<Source>>;

/// The entries of a key range, as of the moment at which it was made.
///
/// As an iterator it gives `Result<(key, value)>` from either end; after an error it ends. For long scans
/// [`Scan::move_next`] with [`Scan::key`] and [`Scan::value`] gives the same entries without copying any bytes, and
/// [`Scan::move_prev`] and [`Scan::seek`] move back and forth.
///
/// Cost: one block of each run that overlaps the range for the first step (two where it falls between them), none of those
/// whose filter denies it; then each block once.
///
/// ```
/// # fn main() -> tamis::Result<()> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// # let db = tamis::Db::open(folder.path())?;
/// for number in 0..100_u32 {
///     db.put(number.to_be_bytes(), b"value")?;
/// }
/// let mut scan = db.range(10_u32.to_be_bytes()..20_u32.to_be_bytes());
/// let mut count = 0;
/// while scan.move_next()? {
///     assert_eq!(scan.value(), b"value");
///     count += 1;
/// }
/// assert_eq!(count, 10);
/// # Ok(())
/// # }
/// ```
pub struct Scan {
    source: Result<Arc<ScanSource>>,
    front: Side,
    back: Side,
    /// The two ends have met, or an error ended the scan.
    is_ended: bool,
}

/// What the cursors are made from.
pub(crate) struct ScanSource {
    read_state: Arc<ReadState>,
    tables: Arc<TableCache>,
    sequence: Sequence,
    range: Arc<KeyRange>,
    /// The range is that of a prefix: its lower bound.
    is_prefix: bool,
    digester: Digester,
    /// The runs that take part, once their filters were asked.
    runs: OnceLock<Vec<SelectedRun>>,
    /// The first cursor finds out whether the filters were right; a second one would count again.
    has_counted_outcomes: AtomicBool,
}

impl fmt::Debug for ScanSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ScanSource({:?})", self.range)
    }
}

impl Limits for ScanSource {
    fn lower(&self) -> Option<&[u8]> {
        Limits::lower(&*self.range)
    }

    fn upper(&self) -> Option<&[u8]> {
        Limits::upper(&*self.range)
    }
}

impl ScanContext for ScanSource {
    fn run(&self, run_index: usize) -> &Run {
        let run = self.selected_runs().get(run_index);
        &run.expect("cursors are made for runs that take part").run
    }

    fn tables(&self) -> &TableCache {
        &self.tables
    }
}

impl ScanSource {
    fn cursor(self: &Arc<Self>) -> Visible {
        let mut sources = Vec::new();
        let memtable_count = self.read_state.memtables().count();
        for (rank, memtable) in self.read_state.memtables().enumerate() {
            if memtable.memtable.entry_count() > 0 {
                sources.push((rank, Source::Memtable(memtable.memtable.cursor())));
            }
        }
        let has_counted_outcomes = self.has_counted_outcomes.swap(true, Ordering::Relaxed);
        for (run_index, run) in self.selected_runs().iter().enumerate() {
            let base: Arc<dyn ScanContext> = Arc::<Self>::clone(self);
            let cursor = RunCursor::new(RunTables::of_scan(base, run_index, run.tables.clone()));
            let source = match run.checked_level.filter(|_| !has_counted_outcomes) {
                None => Source::Run(cursor),
                Some(level) => {
                    let (metrics, range) = (Arc::clone(self.tables.metrics()), Arc::clone(&self.range));
                    Source::FilterChecked(cursor, Some(Box::new(FilterOutcome { metrics, level, range })))
                }
            };
            sources.push((memtable_count + run.rank, source));
        }
        VisibleCursor::new(MergeCursor::ranked(sources), self.sequence, Arc::clone(&self.range))
            .with_coverage(self.coverage())
    }

    /// The range tombstones of all sources, those of runs whose filters deny the range too.
    fn coverage(&self) -> Option<Coverage> {
        let mut sources = Vec::new();
        for (rank, memtable) in self.read_state.memtables().enumerate() {
            let tombstones = memtable.memtable.range_tombstones();
            if !tombstones.is_empty() {
                let spans = tombstones.spans_at(self.sequence);
                sources.extend((!spans.is_empty()).then_some((rank, CoverSource::Memtable(spans))));
            }
        }
        let memtable_count = self.read_state.memtables().count();
        let runs = self.runs_within().enumerate().filter(|(_, (_, run))| run.has_range_tombstones());
        sources
            .extend(runs.map(|(rank, (_, run))| (memtable_count + rank, CoverSource::Run(Arc::clone(run)))));
        Coverage::new(sources, &self.tables, self.sequence)
    }

    /// The runs of the partitions that the range touches, newest first in each.
    fn runs_within(&self) -> impl Iterator<Item = (usize, &Arc<Run>)> {
        let bounds = (as_slice(&self.range.lower), as_slice(&self.range.upper));
        self.read_state.version.partitions_within(bounds).iter().flat_map(|partition| partition.runs())
    }

    /// The runs that take part; their filters are asked once.
    fn selected_runs(&self) -> &[SelectedRun] {
        self.runs.get_or_init(|| self.select_runs_in_range())
    }

    fn select_runs_in_range(&self) -> Vec<SelectedRun> {
        if self.range.is_empty() {
            return Vec::new();
        }
        let bounds = (as_slice(&self.range.lower), as_slice(&self.range.upper));
        let range = match bounds.0 {
            Bound::Included(prefix) if self.is_prefix => tamis_filter::KeyRange::prefix(prefix),
            _ => tamis_filter::KeyRange::new(bounds.0, bounds.1),
        };
        let probe = RangeProbe::new(range, &self.digester);
        let selector = RunSelector { tables: &self.tables, range: &self.range, probe: &probe };
        let runs = self.runs_within().enumerate();
        let selected_runs = runs.filter_map(|(rank, (level, run))| selector.select(rank, level, run, bounds));
        let selected_runs = selected_runs.collect();
        self.tables.metrics().digests.add(u64::from(probe.digest_count()));
        selected_runs
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Where a cursor stands among the entries that were and will be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Before the first entry.
    Start,
    /// The cursor is on the entry that `move_next` gives next.
    Before,
    /// The cursor is on the entry that was given last.
    On,
    /// The cursor is on the entry that `move_prev` gives next.
    After,
    /// Behind the last entry.
    End,
}

/// One end of a scan.
struct Side {
    cursor: Option<Visible>,
    position: Position,
    /// The last step failed: where the cursor stands is not known until a seek.
    is_failed: bool,
}

impl Side {
    const fn new(position: Position) -> Self {
        Self { cursor: None, position, is_failed: false }
    }

    fn cursor(&mut self, source: &Arc<ScanSource>) -> &mut Visible {
        self.cursor.get_or_insert_with(|| source.cursor())
    }

    /// On to the next entry; `false` behind the last one.
    fn move_next(&mut self, source: &Arc<ScanSource>) -> Result<bool> {
        let position = self.position;
        let cursor = self.cursor(source);
        match position {
            Position::Start => cursor.seek_first()?,
            Position::Before => {}
            Position::On | Position::After => cursor.next()?,
            Position::End => return Ok(false),
        }
        let is_valid = cursor.is_valid();
        self.position = if is_valid { Position::On } else { Position::End };
        Ok(is_valid)
    }

    /// Back to the entry before; `false` before the first one.
    fn move_prev(&mut self, source: &Arc<ScanSource>) -> Result<bool> {
        let position = self.position;
        let cursor = self.cursor(source);
        match position {
            Position::Start => return Ok(false),
            Position::Before | Position::On => cursor.prev()?,
            Position::After => {}
            Position::End => cursor.seek_last()?,
        }
        let is_valid = cursor.is_valid();
        self.position = if is_valid { Position::On } else { Position::Start };
        Ok(is_valid)
    }

    /// The entry given last.
    fn entry(&self) -> Option<&Visible> {
        let is_on = self.position == Position::On && !self.is_failed;
        self.cursor.as_ref().filter(|cursor| is_on && cursor.is_valid())
    }
}

impl Scan {
    pub(crate) const fn new(source: Result<Arc<ScanSource>>) -> Self {
        Self { source, front: Side::new(Position::Start), back: Side::new(Position::End), is_ended: false }
    }

    /// To the next entry in order of keys, whose key and value can then be read in place; `false` at the end.
    ///
    /// # Errors
    /// [`crate::Error::Io`], [`crate::Error::Corruption`] from the tables; [`crate::Error::KeyspaceDropped`] where it was begun on a
    /// dropped keyspace. The scan has ended then.
    pub fn move_next(&mut self) -> Result<bool> {
        self.step(Side::move_next, true)
    }

    /// Back to the entry before; `false` at the beginning.
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    pub fn move_prev(&mut self) -> Result<bool> {
        self.step(Side::move_prev, true)
    }

    /// Moves, so that [`Scan::move_next`] gives the first entry at or after `key`, and [`Scan::move_prev`] the last one
    /// before it. Keys outside of the scan's range move to its ends.
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.seek_with(|cursor| cursor.seek(key.as_ref()), Position::Before, Position::End)
    }

    /// Moves, so that [`Scan::move_prev`] gives the last entry at or before `key`, and [`Scan::move_next`] the first one
    /// after it.
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.seek_with(|cursor| cursor.seek_for_prev(key.as_ref(), true), Position::After, Position::Start)
    }

    /// Moves before the first entry of the range, so that [`Scan::move_next`] gives it. Reads nothing.
    pub fn seek_to_first(&mut self) {
        self.move_to(Position::Start);
    }

    /// Moves behind the last entry of the range, so that [`Scan::move_prev`] gives it. Reads nothing.
    ///
    /// ```
    /// # fn main() -> tamis::Result<()> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let db = tamis::Db::open(folder.path())?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let mut scan = db.range::<&str>(..);
    /// scan.seek_to_last();
    /// assert!(scan.move_prev()?);
    /// assert_eq!(scan.key(), b"b");
    /// # Ok(())
    /// # }
    /// ```
    pub fn seek_to_last(&mut self) {
        self.move_to(Position::End);
    }

    const fn move_to(&mut self, position: Position) {
        self.front.position = position;
        self.front.is_failed = false;
        self.is_ended = false;
    }

    fn seek_with(
        &mut self,
        seek: impl FnOnce(&mut Visible) -> Result<()>,
        found: Position,
        none: Position,
    ) -> Result<()> {
        let source = match &self.source {
            Ok(source) => source,
            Err(error) => return Err(error.clone()),
        };
        let cursor = self.front.cursor(source);
        let result = seek(cursor);
        let is_valid = cursor.is_valid();
        self.front.is_failed = result.is_err();
        self.front.position = if is_valid { found } else { none };
        self.is_ended = false;
        result
    }

    /// The key of the entry that the last [`Scan::move_next`] or [`Scan::move_prev`] gave; empty when it gave none.
    pub fn key(&self) -> &[u8] {
        self.front_entry().map_or(&[], |cursor| cursor.key())
    }

    /// The value of the entry that the last [`Scan::move_next`] or [`Scan::move_prev`] gave; empty when it gave none.
    pub fn value(&self) -> &[u8] {
        self.front_entry().map_or(&[], |cursor| cursor.value())
    }

    fn front_entry(&self) -> Option<&Visible> {
        self.front.entry().filter(|_| !self.is_ended)
    }

    /// Moves one end and looks whether it met the other.
    fn step(
        &mut self,
        go: impl FnOnce(&mut Side, &Arc<ScanSource>) -> Result<bool>,
        is_front: bool,
    ) -> Result<bool> {
        if self.is_ended {
            return Ok(false);
        }
        let source = match &self.source {
            Ok(source) => source,
            Err(error) => {
                self.is_ended = true;
                return Err(error.clone());
            }
        };
        let side = if is_front { &mut self.front } else { &mut self.back };
        if side.is_failed {
            return Ok(false);
        }
        let is_valid = go(side, source).inspect_err(|_| {
            side.is_failed = true;
            self.is_ended = true;
        })?;
        if is_valid && self.back.cursor.is_some() && self.have_met() {
            self.is_ended = true;
            return Ok(false);
        }
        Ok(is_valid)
    }

    /// Whether the entry just given is one that the other end gave before.
    fn have_met(&self) -> bool {
        if self.front.position == Position::End || self.back.position == Position::Start {
            return true;
        }
        match (self.front.entry(), self.back.entry()) {
            (Some(front), Some(back)) => front.key() >= back.key(),
            _ => false,
        }
    }

    fn give(side: &Side) -> Option<(Slice, Slice)> {
        side.entry().map(|cursor| (Slice::from(cursor.key()), cursor.value_slice()))
    }
}

impl Iterator for Scan {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.step(Side::move_next, true) {
            Ok(true) => Self::give(&self.front).map(Ok),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl DoubleEndedIterator for Scan {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self.step(Side::move_prev, false) {
            Ok(true) => Self::give(&self.back).map(Ok),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl FusedIterator for Scan {}

impl fmt::Debug for Scan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Scan")
    }
}

impl Engine {
    /// A scan of `bounds` as of `snapshot`, or as of now. `is_prefix`: they are those of all keys with a prefix.
    pub(crate) fn scan(
        &self,
        keyspace: &KeyspaceState,
        bounds: Bounds,
        is_prefix: bool,
        snapshot: Option<Sequence>,
    ) -> Scan {
        if let Err(error) = self.check_open().and_then(|()| keyspace.check()) {
            return Scan::new(Err(error));
        }
        self.metrics.scans.add(1);
        let (read_state, visible) = keyspace.read_point(&self.snapshots);
        Scan::new(Ok(Arc::new(ScanSource {
            read_state,
            tables: Arc::clone(&self.tables),
            sequence: snapshot.unwrap_or(visible),
            range: Arc::new(KeyRange { lower: bounds.0, upper: bounds.1 }),
            is_prefix,
            digester: self.digester.clone(),
            runs: OnceLock::new(),
            has_counted_outcomes: AtomicBool::new(false),
        })))
    }
}
