//! The inputs of a scan: the memtables and the version with which it began, and what it reads of them.
//!
//! Both ends of a scan share one. The filters are checked and the views are selected when the scan is
//! created, or at the first movement of an open scan. It also records the scan: its
//! seeks as queries, the results of filters, and the deleted keys that it passes.
//!
//! A scan that touches several partitions has further ones, each for the part of the range in one partition
//! ([`super::partition_walk`]).

use std::{
    fmt,
    ops::{Bound, Range},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tamis_filter::{Digester, auto::QueryKind};

use super::{
    DeletedRanges, ReadPath, ReadTools,
    scan_query::ScanQuery,
    seek_answers::{count_seek, outcome_of_seek},
    select_range::RangeSelector,
    select_views::{SelectedView, Selection},
};
use crate::{
    cache::table::TableCache,
    cursor::{
        bounded::{KeyRange, Needed, as_slice},
        coverage::{CoverSource, Coverage, FIRST_RANK},
        filter_outcome::FilterOutcome,
        merge::MergeCursor,
        run::RunCursor,
        run_tables::{RunTables, ScanContext},
        source::Source,
        view_source::{ViewInput, ViewSource},
        visible::VisibleCursor,
    },
    empty_ranges::KnownRanges,
    error::Error,
    key::Sequence,
    keyspace_state::ReadState,
    metrics::ReadPlace,
    steps::{self, Step},
    sync::sim_fault,
    table::{
        lazy_reader::NamedTable as _, long_read::PlannedRead, planned_reads::ReadPlanner, read_ahead::Limits,
    },
    version::level::Run,
    view::run::entry_at,
};

/// A range of more tables of a run is not planned together with other ranges.
const TABLES_PLANNED_MAX: usize = 2;

/// The visible entries of a scan that merges its sources.
pub(super) type Visible = VisibleCursor<Source, Arc<ScanSource>>;

/// The inputs of the cursors.
pub(crate) struct ScanSource {
    pub(super) range: KeyRange,
    /// The range is a prefix: the prefix is its lower bound.
    is_prefix: bool,
    /// The positions of the partitions that the range touches.
    positions: Range<usize>,
    /// The runs and views to read, of which the filters were checked. None if the range touches several partitions: these have their own.
    selection: Selection,
    /// The reads that it shares with other ranges.
    planned_reads: Vec<Arc<PlannedRead>>,
    /// Only the first cursor counts false positives of the filters.
    has_counted_outcomes: AtomicBool,
    /// The next two are in reach of each step.
    sequence: Sequence,
    deleted_ranges: Arc<DeletedRanges>,
    scan: PartOf,
}

/// The parts of a scan that all its partitions share.
struct Shared {
    read_state: Arc<ReadState>,
    tools: Arc<ReadTools>,
    query: ScanQuery,
}

/// The scan that the inputs serve.
enum PartOf {
    Itself(Shared),
    /// A scan of several partitions, of which these inputs are one.
    Whole(Arc<ScanSource>),
}

impl Drop for ScanSource {
    fn drop(&mut self) {
        if let PartOf::Itself(shared) = &self.scan {
            shared.tools.tables.metrics().scans_ended.add(1);
            shared.query.record(&shared.read_state.query_sample, &self.selector().filter_range());
        }
        if self.query().kind().is_some() {
            count_merged(&self.selection, None, self.query().tally_weight());
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
        Limits::lower(&self.range)
    }

    fn upper(&self) -> Option<&[u8]> {
        Limits::upper(&self.range)
    }

    fn planned_read(&self, file_number: u64, block: usize) -> Option<&Arc<PlannedRead>> {
        self.planned_reads.iter().find(|read| read.has(file_number, block))
    }
}

impl AsRef<KeyRange> for ScanSource {
    fn as_ref(&self) -> &KeyRange {
        &self.range
    }
}

impl Needed for ScanSource {
    fn digester(&self) -> &Digester {
        &self.shared().tools.digester
    }
}

impl ScanContext for ScanSource {
    fn run(&self, run_index: usize) -> &Run {
        self.selection.run(run_index).expect("cursors exist only for selected runs")
    }

    fn place(&self, run_index: usize) -> Option<ReadPlace> {
        self.selection.level_of(run_index).map(|level| self.query().place(level))
    }

    fn tables(&self) -> &TableCache {
        &self.shared().tools.tables
    }

    fn record_damaged_view(&self, view_index: usize, error: &Error) {
        if let Some(view) = self.selection.views.get(view_index) {
            view.report_damage(self.shared().tools.tables.environment(), error);
        }
    }

    fn record_filter_outcome(&self, run_index: usize, is_there: bool) {
        let Some(run) = self.selection.runs.get(run_index) else { return };
        let Some(table) = run.run.tables().get(run.tables.start) else { return };
        if run.is_checked && run.is_tallied {
            let counters = self.shared().tools.tables.metrics().reads(self.query().place(run.level));
            counters.inspect(|reads| if is_there { &reads.right } else { &reads.wrong }.add(1));
            self.query().add_outcome(is_there);
        }
        let weight = self.query().tally_weight();
        if let Some(kind) = self.query().kind()
            && weight > 0
            && run.is_tallied
        {
            table.filter_tally().of(kind).add_outcome(is_there, weight);
        }
    }
}

impl ScanSource {
    /// The inputs for the part of a scan's range in the partition at `position`, one of those that the range touches.
    pub(super) fn of_partition(scan: &Arc<Self>, position: usize) -> Arc<Self> {
        let Some(touched) = scan.several_partitions() else { return Arc::clone(scan) };
        let version = &scan.read_state().version;
        let mut range = scan.range.clone();
        if position > touched.start
            && let Some(partition) = version.partitions.get(position)
        {
            range.lower = Bound::Included(partition.lower.clone());
        }
        if position + 1 < touched.end
            && let Some(upper) = version.upper_of(position)
        {
            range.upper = Bound::Excluded(upper.to_vec());
        }
        let mut part = Self {
            range,
            is_prefix: false,
            positions: position..position + 1,
            selection: Selection::default(),
            planned_reads: Vec::new(),
            has_counted_outcomes: AtomicBool::new(false),
            sequence: scan.sequence,
            deleted_ranges: Arc::clone(&scan.deleted_ranges),
            scan: PartOf::Whole(Arc::clone(scan)),
        };
        part.selection = part.selector().select();
        Arc::new(part)
    }

    #[inline]
    fn shared(&self) -> &Shared {
        match &self.scan {
            PartOf::Itself(shared) => shared,
            PartOf::Whole(scan) => scan.shared(),
        }
    }

    fn query(&self) -> &ScanQuery {
        &self.shared().query
    }

    #[inline]
    pub(super) fn read_state(&self) -> &Arc<ReadState> {
        &self.shared().read_state
    }

    /// The partitions that the range touches, if they are several: nothing is selected then for the scan as a whole.
    pub(super) fn several_partitions(&self) -> Option<Range<usize>> {
        (self.positions.len() > 1 && !self.range.is_empty()).then(|| self.positions.clone())
    }

    /// The partitions whose cursors the scan needs, at least one. If they are several, they select their runs and views themselves.
    pub(super) fn partitions(&self) -> Range<usize> {
        self.several_partitions().unwrap_or(self.positions.start..self.positions.start + 1)
    }

    pub(super) fn merged_cursor(self: &Arc<Self>) -> Visible {
        let selection = &self.selection;
        let first_run = FIRST_RANK + self.read_state().memtables().count();
        let count = first_run + selection.runs.len() + selection.views.len();
        let mut merge = MergeCursor::with_capacity(count).within(Arc::<Self>::clone(self));
        for (rank, memtable) in (FIRST_RANK..).zip(self.read_state().memtables()) {
            if memtable.memtable.entry_count() > 0 {
                merge.push(rank, Source::Memtable(memtable.memtable.cursor()));
            }
        }
        let has_counted_outcomes = self.has_counted_outcomes.swap(true, Ordering::Relaxed);
        for (run_index, run) in selection.runs.iter().enumerate() {
            let base: Arc<dyn ScanContext> = Arc::<Self>::clone(self);
            let cursor = RunCursor::new(RunTables::of_scan(base, run_index, run.tables.clone()));
            let source = if (run.is_checked || run.lacks_filter) && !has_counted_outcomes {
                let outcome = FilterOutcome::new(Arc::<Self>::clone(self), run_index);
                Source::FilterChecked(cursor, Some(Box::new(outcome)))
            } else {
                Source::Run(cursor)
            };
            merge.push(first_run + run.rank, source);
        }
        for (index, view) in selection.views.iter().enumerate() {
            merge.push(first_run + view.rank(), self.view_source(index, view));
        }
        if !selection.views.is_empty() {
            merge.sort();
        }
        steps::count(Step::MergedSource, merge.len());
        merge.set_coverage(self.coverage());
        VisibleCursor::new(merge, self.sequence, Arc::clone(self))
    }

    fn view_source(self: &Arc<Self>, view_index: usize, selected: &SelectedView) -> Source {
        let input = ViewInput {
            scan: Arc::<Self>::clone(self),
            bound: Arc::clone(&selected.bound),
            view_index,
            first_run: selected.first_run,
            first_rank: FIRST_RANK + self.read_state().memtables().count() + selected.first_rank(),
            snapshot: self.sequence,
        };
        Source::View(Box::new(ViewSource::new(input)))
    }

    /// Counts a seek to `sought`, or to an end of the range, that found this key of the range, in this partition.
    pub(super) fn record_seek(
        &self,
        kind: QueryKind,
        (sought, found): (Option<&[u8]>, Option<&[u8]>),
        partition: Option<(&Self, &Visible)>,
    ) {
        let merge = partition.map(|(_, merge)| merge);
        let (metrics, sample) = (self.shared().tools.tables.metrics(), &self.read_state().query_sample);
        let sampling = self.query().record_seek(kind, metrics, sample, || {
            let answered = self.start_of_seek(kind, sought).zip(merge);
            let outcome = answered.map(|(start, merge)| outcome_of_seek(kind, start, merge.source()));
            (self.range_of_seek(kind, sought, found), outcome.unwrap_or_default())
        });
        if let Some((partition, _)) = partition
            && sampling.weight > 0
        {
            count_merged(&partition.selection, found.or(sought), sampling.weight);
        }
        if sampling.tally_weight > 0
            && let Some(merge) = merge
            && let Some(start) = self.start_of_seek(kind, sought)
        {
            count_seek(kind, start, merge.source(), sampling.tally_weight);
        }
    }

    /// The keys of the range from the sought one to the one that was found, or to its end.
    fn range_of_seek<'a>(
        &'a self,
        kind: QueryKind,
        sought: Option<&'a [u8]>,
        found: Option<&'a [u8]>,
    ) -> tamis_filter::KeyRange<'a> {
        let sought = sought.filter(|key| !self.range.is_below(key) && !self.range.is_above(key));
        let (lower, upper) = match kind {
            QueryKind::SeekForward => (sought, found),
            _ => (found, sought),
        };
        let lower = lower.map_or(as_slice(&self.range.lower), Bound::Included);
        tamis_filter::KeyRange::new(lower, upper.map_or(as_slice(&self.range.upper), Bound::Included))
    }

    /// The key from which a seek to `sought`, or to an end of the range, searches; `None` for an end without a bound, and for a seek that
    /// finds nothing because all keys of the range are behind it.
    fn start_of_seek<'a>(&'a self, kind: QueryKind, sought: Option<&'a [u8]>) -> Option<&'a [u8]> {
        match sought {
            Some(key) if self.range.is_below(key) => {
                self.end_of(kind).filter(|_| kind == QueryKind::SeekForward)
            }
            Some(key) if self.range.is_above(key) => {
                self.end_of(kind).filter(|_| kind != QueryKind::SeekForward)
            }
            Some(key) => Some(key),
            None => self.end_of(kind),
        }
    }

    /// The bound of the range at which a seek from its end begins.
    fn end_of(&self, kind: QueryKind) -> Option<&[u8]> {
        let bound = if kind == QueryKind::SeekForward { &self.range.lower } else { &self.range.upper };
        match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        }
    }

    /// Counts the first step of a cursor from an end of the range, which is an open seek unless the range has two bounds.
    pub(super) fn record_first_step(
        &self,
        kind: QueryKind,
        found: Option<&[u8]>,
        partition: Option<(&Self, &Visible)>,
    ) {
        if self.query().kind().is_none() {
            self.record_seek(kind, (None, found), partition);
        }
    }

    /// Notes the deleted keys that the last step of a cursor has passed, if they are many.
    #[inline]
    pub(super) fn note_step(&self, cursor: &Visible) {
        if self.deleted_ranges.is_worth_noting(cursor.passed_key_count()) {
            self.deleted_ranges.note_passed(self.read_state(), self.sequence, cursor.passed_range());
        }
    }

    /// The range tombstones of all sources, including those of runs whose filters reject the range.
    fn coverage(&self) -> Option<Coverage> {
        let selector = self.selector();
        let is_selected =
            |run: &Arc<Run>| self.selection.runs.iter().any(|selected| Arc::ptr_eq(&selected.run, run));
        let runs = selector.runs_within().map(|(_, run)| run);
        let runs = runs.filter(|run| !sim_fault!("forget-rejected-range-tombstones") || is_selected(run));
        coverage_of(self.read_state(), &self.range, runs, &self.shared().tools.tables, self.sequence)
    }

    /// The selector of the runs and views to read.
    pub(super) fn selector(&self) -> RangeSelector<'_> {
        let Shared { read_state, tools, query } = self.shared();
        let ranges = (&self.range, self.is_prefix, self.positions.clone());
        tools.selector(read_state, ranges, query)
    }

    /// Sets the runs and views to read.
    pub(super) fn set_selection(&mut self, selection: Selection) {
        self.selection = selection;
    }

    /// Adds the blocks of open tables that the scan may read, if they are few.
    pub(super) fn add_reads<'a>(&'a self, range_number: usize, planner: &mut ReadPlanner<'a>) {
        let few = self.selection.runs.iter().filter(|selected| selected.tables.len() <= TABLES_PLANNED_MAX);
        let tables = few.filter_map(|selected| selected.run.tables().get(selected.tables.clone())).flatten();
        for table in tables.filter_map(|table| table.slot().get()) {
            planner.add(table, range_number, self);
        }
        for selected in &self.selection.views {
            self.add_reads_of_view(selected, range_number, planner);
        }
    }

    /// Those of the runs that a sorted view covers: the view knows which entries are in the range. A view that can't be searched reports
    /// its error to the scan.
    fn add_reads_of_view<'a>(
        &'a self,
        selected: &'a SelectedView,
        range_number: usize,
        planner: &mut ReadPlanner<'a>,
    ) {
        let (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) = (&self.range.lower, &self.range.upper)
        else {
            return;
        };
        let Ok(all) = selected.bound.view.ordinals_within(lower, upper) else { return };
        for ((_, run), ordinals) in selected.bound.runs.iter().zip(all).filter(|(_, all)| !all.is_empty()) {
            let before = run.entries_before();
            let tables = entry_at(before, ordinals.start).0..=entry_at(before, ordinals.end - 1).0;
            if tables.clone().count() > TABLES_PLANNED_MAX {
                continue;
            }
            for index in tables {
                let Some(&[start, end]) = before.get(index..).and_then(<[u64]>::first_chunk) else {
                    continue;
                };
                let numbers = ordinals.start.max(start) - start..ordinals.end.min(end) - start;
                if let Some(table) = run.tables().get(index).and_then(|table| table.slot().get()) {
                    planner.add_numbered(table, range_number, numbers);
                }
            }
        }
    }

    pub(super) fn set_planned_reads(&mut self, reads: Vec<Arc<PlannedRead>>) {
        self.planned_reads = reads;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    pub(super) fn lower(&self) -> Bound<&[u8]> {
        as_slice(&self.range.lower)
    }
}

/// The range tombstones of the memtables and of `runs`, which are in the order of their ranks, and the ranges without entries if some of
/// them are in `range`.
pub(super) fn coverage_of<'a>(
    read_state: &ReadState,
    range: &KeyRange,
    runs: impl Iterator<Item = &'a Arc<Run>>,
    tables: &Arc<TableCache>,
    sequence: Sequence,
) -> Option<Coverage> {
    let mut sources = Vec::new();
    let lower = match &range.lower {
        Bound::Unbounded => &[][..],
        Bound::Included(key) | Bound::Excluded(key) => key,
    };
    let is_within =
        |known: &Arc<KnownRanges>| known.first_from(lower).is_some_and(|first| !range.is_above(&first.lower));
    let known = read_state.empty_ranges.load().filter(is_within);
    sources.extend(known.map(|known| (0, CoverSource::Empty(known))));
    for (rank, memtable) in (FIRST_RANK..).zip(read_state.memtables()) {
        let tombstones = memtable.memtable.range_tombstones();
        if !tombstones.is_empty() {
            let spans = tombstones.spans_at(sequence);
            sources.extend((!spans.is_empty()).then_some((rank, CoverSource::Memtable(spans))));
        }
    }
    let first_run = FIRST_RANK + read_state.memtables().count();
    let runs = runs.enumerate().filter(|(_, run)| run.has_range_tombstones());
    sources.extend(runs.map(|(rank, run)| (first_run + rank, CoverSource::Run(Arc::clone(run)))));
    Coverage::new(sources, tables, sequence)
}

/// Counts a seek for the runs that it merges with others, near `key` if there is one: a view would save it.
fn count_merged(selection: &Selection, key: Option<&[u8]>, weight: u32) {
    let count = selection.merged_runs(key).count();
    if weight > 0 && count + selection.views.len() > 1 {
        selection.merged_runs(key).for_each(|run| run.add_merged_seeks(weight.into()));
    }
}

impl ReadPath {
    /// The inputs of a scan of this range. `selection`: the runs and views to read.
    pub(super) fn scan_source(
        &self,
        read_state: Arc<ReadState>,
        (range, is_prefix, positions): (KeyRange, bool, Range<usize>),
        sequence: Sequence,
        query: ScanQuery,
        selection: Selection,
    ) -> ScanSource {
        ScanSource {
            positions,
            range,
            is_prefix,
            selection,
            planned_reads: Vec::new(),
            has_counted_outcomes: AtomicBool::new(false),
            sequence,
            deleted_ranges: Arc::clone(&self.deleted_ranges),
            scan: PartOf::Itself(Shared { read_state, tools: Arc::clone(&self.tools), query }),
        }
    }
}

/// The positions of the partitions that a range touches.
pub(super) fn positions_within(read_state: &ReadState, range: &KeyRange) -> Range<usize> {
    read_state.version.positions_within((as_slice(&range.lower), as_slice(&range.upper)))
}
