//! Scans: the entries of a key range in both directions, at one point in time.
//!
//! A scan holds the memtables and the version with which it began. It borrows nothing, may move to another thread, and may
//! outlive the database. The first step creates one cursor for each memtable and for each run with a table in the range; a loser
//! tree merges them. Of each key the scan returns the newest version at or below its sequence number, and skips tombstones.
//!
//! If the range is strictly inside one table of a run, the table may still hold no key of it. The table's filter is checked then
//! ([`super::select_runs`]); a table whose filter rejects the range gets no cursor. An empty range that all filters reject reads
//! no block.
//!
//! Steps from the front and from the back use one cursor each, created when first needed. The scan ends where they meet.

use std::{
    fmt,
    iter::FusedIterator,
    ops::Bound,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use tamis_filter::{Digester, RangeProbe, Upper, auto::QueryKind};

use super::{
    DeletedRanges, ReadPath,
    gaps::record_gap,
    scan_query::ScanQuery,
    select_runs::{RunSelector, SelectedRun},
    select_views::{SelectedView, Selection, is_covered, open_views},
};
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
        view_source::{ViewInput, ViewSource},
        visible::VisibleCursor,
    },
    error::{Error, Result},
    key::Sequence,
    keyspace_state::{KeyspaceState, ReadState},
    slice::Slice,
    table::read_ahead::Limits,
    version::{level::Run, version::Partition},
};

type Visible = VisibleCursor<MergeCursor<Source>>;

/// The entries of a key range at the time when the scan was created.
///
/// As an iterator it returns `Result<(key, value)>` from either end; an error ends it. For long scans use [`Scan::move_next`] with
/// [`Scan::key`] and [`Scan::value`]: they return the same entries without a copy. [`Scan::move_prev`] and the `seek` methods
/// move in both directions.
///
/// Cost: the first step reads one block of each run that overlaps the range (two if the range begins between blocks), and none
/// of a run whose filter rejects the range. After that each block is read once.
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

/// The inputs of the cursors.
pub(crate) struct ScanSource {
    read_state: Arc<ReadState>,
    tables: Arc<TableCache>,
    sequence: Sequence,
    range: Arc<KeyRange>,
    /// The range is a prefix: the prefix is its lower bound.
    is_prefix: bool,
    digester: Digester,
    /// The runs and views to read, once the filters were checked.
    selection: OnceLock<Selection>,
    deleted_ranges: Arc<DeletedRanges>,
    /// Only the first cursor counts false positives of the filters.
    has_counted_outcomes: AtomicBool,
    query: ScanQuery,
}

impl Drop for ScanSource {
    fn drop(&mut self) {
        self.tables.metrics().scans_ended.add(1);
        if let Some(selection) = self.selection.get() {
            self.query.record(&self.read_state.query_sample, &self.filter_range());
            if self.query.kind().is_some() {
                count_merged(selection, None, self.query.tally_weight());
            }
        }
    }
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
        self.selection().run(run_index).expect("cursors exist only for selected runs")
    }

    fn tables(&self) -> &TableCache {
        &self.tables
    }

    fn record_damaged_view(&self, view_index: usize, error: &Error) {
        if let Some(view) = self.selection().views.get(view_index) {
            self.report_damaged_view(view, error);
        }
    }

    fn record_filter_outcome(&self, run_index: usize, is_there: bool) {
        let Some(run) = self.selection().runs.get(run_index) else { return };
        let Some(table) = run.run.tables().get(run.tables.start) else { return };
        if run.is_checked {
            if let Some(counters) = self.tables.metrics().filters.get(run.level) {
                let counter =
                    if is_there { &counters.range_true_positive } else { &counters.range_false_positive };
                counter.add(1);
            }
            self.query.add_outcome(is_there);
            if !is_there {
                record_gap(table, &self.tables, as_slice(&self.range.lower), false);
            }
        }
        let weight = self.query.tally_weight();
        if let Some(kind) = self.query.kind()
            && weight > 0
        {
            table.filter_tally().of(kind).add_outcome(is_there, weight);
        }
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
        let selection = self.selection();
        for (run_index, run) in selection.runs.iter().enumerate() {
            let base: Arc<dyn ScanContext> = Arc::<Self>::clone(self);
            let cursor = RunCursor::new(RunTables::of_scan(base, run_index, run.tables.clone()));
            let source = if (run.is_checked || run.lacks_filter) && !has_counted_outcomes {
                let (scan, range) = (Arc::<Self>::clone(self), Arc::clone(&self.range));
                Source::FilterChecked(cursor, Some(Box::new(FilterOutcome { scan, run_index, range })))
            } else {
                Source::Run(cursor)
            };
            sources.push((memtable_count + run.rank, source));
        }
        if !selection.views.is_empty() {
            let views = selection.views.iter().enumerate();
            sources.extend(
                views.map(|(index, view)| (memtable_count + view.rank(), self.view_source(index, view))),
            );
            sources.sort_by_key(|(rank, _)| *rank);
        }
        let merge = MergeCursor::ranked(sources).within(Arc::clone(&self.range));
        VisibleCursor::new(merge, self.sequence, Arc::clone(&self.range)).with_coverage(self.coverage())
    }

    fn view_source(self: &Arc<Self>, view_index: usize, selected: &SelectedView) -> Source {
        Source::View(Box::new(ViewSource::new(ViewInput {
            scan: Arc::<Self>::clone(self),
            view: Arc::clone(&selected.view),
            view_index,
            first_run: selected.first_run,
            hides_tombstones: selected.hides_tombstones,
            snapshot: self.sequence,
        })))
    }

    fn report_damaged_view(&self, selected: &SelectedView, error: &Error) {
        if selected.named.set_failed() {
            self.tables.environment().report_view(selected.view.path(), error.to_string());
        }
    }

    /// The range as filters take it.
    fn filter_range(&self) -> tamis_filter::KeyRange<'_> {
        match as_slice(&self.range.lower) {
            Bound::Included(prefix) if self.is_prefix => tamis_filter::KeyRange::prefix(prefix),
            lower => tamis_filter::KeyRange::new(lower, as_slice(&self.range.upper)),
        }
    }

    /// Counts a seek of a cursor to `sought`, or to an end of the range.
    fn record_seek(&self, kind: QueryKind, sought: Option<&[u8]>, cursor: &Visible) {
        let found = cursor.is_valid().then(|| cursor.key());
        let (metrics, sample) = (self.tables.metrics(), &self.read_state.query_sample);
        let weight = self.query.record_seek(kind, metrics, sample, || {
            let range = self.filter_range();
            let sought = sought.filter(|key| !self.range.is_below(key) && !self.range.is_above(key));
            let (lower, upper) = match kind {
                QueryKind::SeekForward => (sought, found),
                _ => (found, sought),
            };
            tamis_filter::KeyRange {
                lower: lower.map_or(range.lower, Bound::Included),
                upper: upper.map_or(range.upper, Upper::Included),
            }
        });
        if let Some(selection) = self.selection.get().filter(|_| weight > 0) {
            count_merged(selection, found.or(sought), weight);
        }
    }

    /// Counts the first step of a cursor from an end of the range, which is an open seek unless the range has two bounds.
    fn record_first_step(&self, kind: QueryKind, cursor: &Visible) {
        if self.query.kind().is_none() {
            self.record_seek(kind, None, cursor);
        }
    }

    /// Records the deleted keys that the last step of a cursor has passed, if they are many.
    #[inline]
    fn note_step(&self, cursor: &Visible) {
        if self.deleted_ranges.is_worth_recording(cursor.passed_key_count()) {
            self.deleted_ranges.record(&self.read_state, self.sequence, cursor.passed_range());
        }
    }

    /// The range tombstones of all sources, including those of runs whose filters reject the range.
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

    fn partitions_within(&self) -> &[Arc<Partition>] {
        let bounds = (as_slice(&self.range.lower), as_slice(&self.range.upper));
        self.read_state.version.partitions_within(bounds)
    }

    /// The runs of the partitions that the range touches, newest first in each.
    pub(super) fn runs_within(&self) -> impl Iterator<Item = (usize, &Arc<Run>)> {
        self.partitions_within().iter().flat_map(|partition| partition.runs())
    }

    /// The runs and views to read; the filters are checked once.
    fn selection(&self) -> &Selection {
        self.selection.get_or_init(|| self.select_in_range())
    }

    fn select_in_range(&self) -> Selection {
        if self.range.is_empty() {
            return Selection::default();
        }
        let views = open_views(self.partitions_within());
        let is_open = self.query.kind().is_none();
        let probe = self.range_probe();
        let runs = self.runs_within().enumerate().filter(|(rank, _)| !is_open || !is_covered(&views, *rank));
        let runs = runs.filter_map(|(rank, (level, run))| self.select(rank, (level, run), &probe)).collect();
        self.tables.metrics().digests.add(u64::from(probe.digest_count()));
        if is_open { Selection::of_open(runs, views) } else { self.selection_of_closed(runs, views) }
    }

    fn selection_of_closed(&self, runs: Vec<SelectedRun>, views: Vec<SelectedView>) -> Selection {
        let report = |view: &SelectedView, error: &Error| self.report_damaged_view(view, error);
        Selection::of_closed(runs, views, &self.range, self.sequence, report)
    }

    fn select(
        &self,
        rank: usize,
        (level, run): (usize, &Arc<Run>),
        probe: &RangeProbe<'_>,
    ) -> Option<SelectedRun> {
        let bounds = (as_slice(&self.range.lower), as_slice(&self.range.upper));
        let (tables, query) = (&*self.tables, &self.query);
        RunSelector { tables, range: &self.range, probe, query }.select(rank, level, run, bounds)
    }

    /// The run at a position among those that the range touches, if it is read; its filter is checked now.
    pub(super) fn select_run(&self, rank: usize, probe: &RangeProbe<'_>) -> Option<SelectedRun> {
        self.runs_within().nth(rank).and_then(|run| self.select(rank, run, probe))
    }

    /// Sets the runs to read, whose filters were checked. Views replace some of them.
    pub(super) fn set_runs(&self, runs: Vec<SelectedRun>) {
        // Only a cursor sets them too, and none exists yet.
        let _ = self.selection.set(self.selection_of_closed(runs, open_views(self.partitions_within())));
    }

    /// A probe for the filters of all runs.
    pub(super) fn range_probe(&self) -> RangeProbe<'_> {
        RangeProbe::new(self.filter_range(), &self.digester)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    pub(super) fn lower(&self) -> Bound<&[u8]> {
        as_slice(&self.range.lower)
    }
}

/// Counts a seek for the runs that it merges with others, near `key` if there is one: a view would save it.
fn count_merged(selection: &Selection, key: Option<&[u8]>, weight: u32) {
    let count = selection.merged_runs(key).count();
    if weight > 0 && count + selection.views.len() > 1 {
        selection.merged_runs(key).for_each(|run| run.add_merged_seeks(weight.into()));
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// The position of a cursor relative to the entries that the scan has returned and will return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Before the first entry.
    Start,
    /// The cursor is on the entry that `move_next` returns next.
    Before,
    /// The cursor is on the entry that was returned last.
    On,
    /// The cursor is on the entry that `move_prev` returns next.
    After,
    /// After the last entry.
    End,
}

/// One end of a scan.
struct Side {
    cursor: Option<Visible>,
    position: Position,
    /// The last step failed: the position of the cursor is undefined until a seek.
    is_failed: bool,
}

impl Side {
    const fn new(position: Position) -> Self {
        Self { cursor: None, position, is_failed: false }
    }

    fn cursor(&mut self, source: &Arc<ScanSource>) -> &mut Visible {
        self.cursor.get_or_insert_with(|| source.cursor())
    }

    /// Moves to the next entry; returns `false` after the last one.
    fn move_next(&mut self, source: &Arc<ScanSource>) -> Result<bool> {
        let position = self.position;
        let cursor = self.cursor(source);
        match position {
            Position::Start => {
                cursor.seek_first()?;
                source.record_first_step(QueryKind::SeekForward, cursor);
            }
            Position::Before => {}
            Position::On | Position::After => cursor.next()?,
            Position::End => return Ok(false),
        }
        source.note_step(cursor);
        let is_valid = cursor.is_valid();
        self.position = if is_valid { Position::On } else { Position::End };
        Ok(is_valid)
    }

    /// Moves to the previous entry; returns `false` before the first one.
    fn move_prev(&mut self, source: &Arc<ScanSource>) -> Result<bool> {
        let position = self.position;
        let cursor = self.cursor(source);
        match position {
            Position::Start => return Ok(false),
            Position::Before | Position::On => cursor.prev()?,
            Position::After => {}
            Position::End => {
                cursor.seek_last()?;
                source.record_first_step(QueryKind::SeekBackward, cursor);
            }
        }
        source.note_step(cursor);
        let is_valid = cursor.is_valid();
        self.position = if is_valid { Position::On } else { Position::Start };
        Ok(is_valid)
    }

    /// The entry that was returned last.
    fn entry(&self) -> Option<&Visible> {
        let is_on = self.position == Position::On && !self.is_failed;
        self.cursor.as_ref().filter(|cursor| is_on && cursor.is_valid())
    }
}

impl Scan {
    pub(crate) const fn new(source: Result<Arc<ScanSource>>) -> Self {
        Self { source, front: Side::new(Position::Start), back: Side::new(Position::End), is_ended: false }
    }

    /// Moves to the next entry in key order, whose key and value can then be read in place; returns `false` at the end.
    ///
    /// # Errors
    /// [`crate::Error::Io`], [`crate::Error::Corruption`] from the tables; [`crate::Error::KeyspaceDropped`] if the keyspace was
    /// dropped before the scan was created. The scan is finished then.
    pub fn move_next(&mut self) -> Result<bool> {
        self.step(Side::move_next, true)
    }

    /// Moves to the previous entry; returns `false` at the beginning.
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    pub fn move_prev(&mut self) -> Result<bool> {
        self.step(Side::move_prev, true)
    }

    /// Positions the scan at `key`: [`Scan::move_next`] then returns the first entry at or after it, [`Scan::move_prev`] the last
    /// entry before it. Keys outside of the scan's range are clamped to its ends.
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        let kind = QueryKind::SeekForward;
        self.seek_with((kind, key), |cursor| cursor.seek(key), Position::Before, Position::End)
    }

    /// Positions the scan at `key`: [`Scan::move_prev`] then returns the last entry at or before it, [`Scan::move_next`] the first
    /// entry after it.
    ///
    /// # Errors
    /// As [`Scan::move_next`].
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        let seek = |cursor: &mut Visible| cursor.seek_for_prev(key, true);
        self.seek_with((QueryKind::SeekBackward, key), seek, Position::After, Position::Start)
    }

    /// Positions the scan before its first entry, so that [`Scan::move_next`] returns it. Reads nothing.
    pub fn seek_to_first(&mut self) {
        self.move_to(Position::Start);
    }

    /// Positions the scan after its last entry, so that [`Scan::move_prev`] returns it. Reads nothing.
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
        (kind, sought): (QueryKind, &[u8]),
        seek: impl FnOnce(&mut Visible) -> Result<()>,
        found: Position,
        none: Position,
    ) -> Result<()> {
        let source = match &self.source {
            Ok(source) => source,
            Err(error) => return Err(error.clone()),
        };
        let cursor = self.front.cursor(source);
        let result = seek(cursor).inspect(|()| {
            source.record_seek(kind, Some(sought), cursor);
            source.note_step(cursor);
        });
        let is_valid = cursor.is_valid();
        self.front.is_failed = result.is_err();
        self.front.position = if is_valid { found } else { none };
        self.is_ended = false;
        result
    }

    /// The key of the current entry; empty if the last [`Scan::move_next`] or [`Scan::move_prev`] returned `false`.
    pub fn key(&self) -> &[u8] {
        self.front_entry().map_or(&[], |cursor| cursor.key())
    }

    /// The value of the current entry; empty if the last [`Scan::move_next`] or [`Scan::move_prev`] returned `false`.
    pub fn value(&self) -> &[u8] {
        self.front_entry().map_or(&[], |cursor| cursor.value())
    }

    fn front_entry(&self) -> Option<&Visible> {
        self.front.entry().filter(|_| !self.is_ended)
    }

    /// Moves one end and checks whether it has met the other.
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

    /// Whether the other end has returned the current entry already.
    fn have_met(&self) -> bool {
        if self.front.position == Position::End || self.back.position == Position::Start {
            return true;
        }
        match (self.front.entry(), self.back.entry()) {
            (Some(front), Some(back)) => front.key() >= back.key(),
            _ => false,
        }
    }

    fn entry_of(side: &Side) -> Option<(Slice, Slice)> {
        side.entry().map(|cursor| (Slice::from(cursor.key()), cursor.value_slice()))
    }
}

impl Iterator for Scan {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.step(Side::move_next, true) {
            Ok(true) => Self::entry_of(&self.front).map(Ok),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl DoubleEndedIterator for Scan {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self.step(Side::move_prev, false) {
            Ok(true) => Self::entry_of(&self.back).map(Ok),
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

impl ReadPath {
    /// A scan of `bounds` at `snapshot`, or now. `is_prefix`: the bounds are those of all keys with a prefix.
    pub(crate) fn scan(
        &self,
        keyspace: &KeyspaceState,
        bounds: Bounds,
        is_prefix: bool,
        snapshot: Option<Sequence>,
    ) -> Scan {
        if let Err(error) = self.context.check_open().and_then(|()| keyspace.check()) {
            return Scan::new(Err(error));
        }
        let (read_state, visible) = keyspace.read_point(&self.snapshots);
        let sequence = snapshot.unwrap_or(visible);
        Scan::new(Ok(Arc::new(self.scan_source(read_state, bounds, is_prefix, sequence))))
    }

    pub(super) fn scan_source(
        &self,
        read_state: Arc<ReadState>,
        bounds: Bounds,
        is_prefix: bool,
        sequence: Sequence,
    ) -> ScanSource {
        let query = ScanQuery::new(&bounds, is_prefix, &self.metrics, self.samples_queries);
        ScanSource {
            read_state,
            tables: Arc::clone(&self.tables),
            sequence,
            range: Arc::new(KeyRange { lower: bounds.0, upper: bounds.1 }),
            is_prefix,
            digester: self.digester.clone(),
            selection: OnceLock::new(),
            deleted_ranges: Arc::clone(&self.deleted_ranges),
            has_counted_outcomes: AtomicBool::new(false),
            query,
        }
    }
}
