//! The inputs of a scan: the memtables and the version with which it began, the runs and the view of them that it reads, and the cursor over these.
//!
//! Both ends of a scan share one. The filters are checked and the view is selected when the scan is
//! created, or at the first movement of an open scan. [`super::scan_record`] records it.
//!
//! A scan that touches several partitions has further ones, each for the part of the range in one partition
//! ([`super::partition_walk`]).

use std::{
    fmt,
    ops::{Bound, Range},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tamis_filter::Digester;

use super::{
    DeletedRanges, ReadPath, ReadTools, scan_coverage::coverage_of, scan_query::ScanQuery,
    select_range::RangeSelector, select_views::Selection, snapshot::SnapshotPoint,
    touched_range::TouchedRange,
};
use crate::{
    cache::table::TableCache,
    cursor::{
        bounded::{KeyRange, Needed},
        coverage::{Coverage, FIRST_RANK},
        filter_outcome::FilterOutcome,
        merge::MergeCursor,
        run::RunCursor,
        run_tables::{RunTables, ScanContext},
        source::Source,
        view_source::{ViewInput, ViewSource},
        visible::{Values, VisibleCursor},
    },
    error::{Error, Result},
    key::{ReadPoint, Sequence},
    merge_operator::Operands,
    observe::{
        metrics::{Metrics, ReadPlace},
        query_sample::Positive,
        steps::{self, Step},
    },
    store::keyspace_state::ReadState,
    sync::sim_fault,
    table::read_ahead::Limits,
    transaction::own_writes::OwnWrites,
    version::{bound_view::BoundView, level::Run, partition::Partition},
};

/// The visible entries of a scan that merges its sources.
pub(super) type Visible = VisibleCursor<Source, Arc<ScanSource>>;

/// The inputs of the cursors.
pub(crate) struct ScanSource {
    pub(super) touched: TouchedRange,
    /// The runs and the view to read, of which the filters were checked. None if the range touches several partitions: these have their own.
    selection: Selection,
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
    /// The writes of the transaction that reads.
    own: Option<OwnWrites>,
    /// [`SnapshotPoint::time`].
    time: AtomicU64,
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
        if matches!(self.scan, PartOf::Itself(_)) {
            self.record_end();
        }
        self.record_searched();
    }
}

impl fmt::Debug for ScanSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ScanSource({:?})", self.touched.range)
    }
}

impl Limits for ScanSource {
    fn lower(&self) -> Option<&[u8]> {
        Limits::lower(self.range())
    }

    fn upper(&self) -> Option<&[u8]> {
        Limits::upper(self.range())
    }
}

impl AsRef<KeyRange> for ScanSource {
    fn as_ref(&self) -> &KeyRange {
        &self.touched.range
    }
}

impl Values for ScanSource {
    fn time(&self) -> u64 {
        let Shared { time, tools, .. } = self.shared();
        let known = time.load(Ordering::Relaxed);
        if known > 0 {
            return known;
        }
        // Both ends of a scan, which may be on two threads one after the other, use the first.
        tools.context.expiry.note_used();
        let now = tools.context.expiry.now();
        time.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed).err().unwrap_or(now)
    }

    fn merge(&self, key: &[u8], base: Option<&[u8]>, operands: &Operands) -> Result<Vec<u8>> {
        let version = &self.read_state().version;
        operands.merge(version.options.merge.as_ref(), &version.name, key, base)
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

    fn record_damaged_view(&self, error: &Error) {
        if let Some(view) = &self.selection.view {
            view.named.fail(self.shared().tools.tables.environment(), error);
        }
    }

    fn record_filter_outcome(&self, run_index: usize, positive: Positive) {
        self.record_outcome(run_index, positive);
    }
}

impl ScanSource {
    /// The inputs for the part of a scan's range in the partition at `position`, one of those that the range touches.
    pub(super) fn of_partition(scan: &Arc<Self>, position: usize) -> Arc<Self> {
        let Some(touched) = scan.several_partitions() else { return Arc::clone(scan) };
        let version = &scan.read_state().version;
        let mut range = scan.range().clone();
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
            touched: TouchedRange { range, is_prefix: false, positions: position..position + 1 },
            selection: Selection::default(),
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

    #[inline]
    pub(super) fn query(&self) -> &ScanQuery {
        &self.shared().query
    }

    #[inline]
    pub(super) fn metrics(&self) -> &Metrics {
        self.shared().tools.tables.metrics()
    }

    /// The partition of which it reads runs and the view.
    pub(super) fn partition(&self) -> Option<&Partition> {
        self.read_state().version.partitions.get(self.touched.positions.start).map(AsRef::as_ref)
    }

    /// About the nanoseconds that a read of one more run takes.
    pub(super) fn read_ns(&self) -> f64 {
        let environment = self.shared().tools.tables.environment();
        environment.metrics.read_times.price_of_any(environment.access)
    }

    /// The runs and the view to read.
    pub(super) const fn selection(&self) -> &Selection {
        &self.selection
    }

    #[inline]
    pub(super) fn read_state(&self) -> &Arc<ReadState> {
        &self.shared().read_state
    }

    /// The partitions that the range touches, if they are several: nothing is selected then for the scan as a whole.
    pub(super) fn several_partitions(&self) -> Option<Range<usize>> {
        let TouchedRange { range, positions, .. } = &self.touched;
        (positions.len() > 1 && !range.is_empty()).then(|| positions.clone())
    }

    /// The partitions whose cursors the scan needs, at least one. If they are several, they select their runs and views themselves.
    pub(super) fn partitions(&self) -> Range<usize> {
        let first = self.touched.positions.start;
        self.several_partitions().unwrap_or(first..first + 1)
    }

    fn own(&self) -> Option<&OwnWrites> {
        self.shared().own.as_ref()
    }

    /// The rank of the newest run: those of memtables are below it.
    fn first_run_rank(&self) -> usize {
        FIRST_RANK + usize::from(self.own().is_some()) + self.read_state().memtables().count()
    }

    pub(super) fn merged_cursor(self: &Arc<Self>) -> Visible {
        let selection = &self.selection;
        let first_run = self.first_run_rank();
        let count = first_run + selection.runs.len() + usize::from(selection.view.is_some());
        let mut merge = MergeCursor::with_capacity(count).within(Arc::<Self>::clone(self));
        let mut first_memtable = FIRST_RANK;
        if let Some(own) = self.own() {
            merge.push(FIRST_RANK, Source::Own(own.memtable.cursor(), own.newest));
            first_memtable += 1;
        }
        for (rank, memtable) in (first_memtable..).zip(self.read_state().memtables()) {
            if memtable.memtable.entry_count() > 0 {
                merge.push(rank, Source::Memtable(memtable.memtable.cursor()));
            }
        }
        let has_counted_outcomes = self.has_counted_outcomes.swap(true, Ordering::Relaxed);
        let mut view = selection.view.as_ref();
        for (run_index, run) in selection.runs.iter().enumerate() {
            if let Some(newer) = view.take_if(|view| view.rank() < run.rank) {
                merge.push(first_run + newer.rank(), self.view_source(newer));
            }
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
        if let Some(last) = view {
            merge.push(first_run + last.rank(), self.view_source(last));
        }
        steps::count(Step::MergedSource, merge.len());
        merge.set_coverage(self.coverage());
        let own = self.own().map_or(0, |own| own.newest);
        VisibleCursor::new(merge, ReadPoint { sequence: self.sequence, own }, Arc::clone(self))
    }

    fn view_source(self: &Arc<Self>, bound: &Arc<BoundView>) -> Source {
        let input = ViewInput {
            scan: Arc::<Self>::clone(self),
            bound: Arc::clone(bound),
            first_run: self.selection.runs.len(),
            first_rank: self.first_run_rank(),
            snapshot: self.sequence,
        };
        Source::View(Box::new(ViewSource::new(input)))
    }

    /// Notes the deleted keys that the last step of a cursor has passed, if they are many.
    #[inline]
    pub(super) fn note_step(&self, cursor: &Visible) {
        // That a range is empty for a transaction says nothing about other readers.
        if self.deleted_ranges.is_worth_noting(cursor.passed_key_count()) && self.own().is_none() {
            self.deleted_ranges.note_passed(self.read_state(), self.sequence, cursor.passed_range());
        }
    }

    /// The range tombstones of all sources, including those of runs whose filters reject the range.
    fn coverage(&self) -> Option<Coverage> {
        let selector = self.selector();
        let is_selected =
            |run: &Arc<Run>| self.selection.runs.iter().any(|selected| Arc::ptr_eq(&selected.run, run));
        let runs = selector.runs().map(|(_, run)| run);
        let runs = runs.filter(|run| !sim_fault!("forget-rejected-range-tombstones") || is_selected(run));
        let memory = (&**self.read_state(), self.own());
        coverage_of(memory, self.range(), runs, &self.shared().tools.tables, self.sequence)
    }

    /// The selector of the runs and the view to read.
    pub(super) fn selector(&self) -> RangeSelector<'_> {
        let Shared { read_state, tools, query, .. } = self.shared();
        tools.selector(read_state, &self.touched, query)
    }

    /// Sets the runs and the view to read.
    pub(super) fn set_selection(&mut self, selection: Selection) {
        self.selection = selection;
    }
}

/// The point in time of a scan, and the writes of its transaction.
pub(crate) struct ScanPoint {
    pub(crate) snapshot: SnapshotPoint,
    pub(crate) own: Option<OwnWrites>,
}

impl ScanPoint {
    /// That of a scan outside of transactions.
    pub(crate) const fn at(snapshot: SnapshotPoint) -> Self {
        Self { snapshot, own: None }
    }
}

impl ReadPath {
    /// The inputs of a scan of this range. `selection`: the runs and the view to read.
    pub(super) fn scan_source(
        &self,
        read_state: Arc<ReadState>,
        touched: TouchedRange,
        point: ScanPoint,
        query: ScanQuery,
        selection: Selection,
    ) -> ScanSource {
        let ScanPoint { snapshot: SnapshotPoint { sequence, time }, own } = point;
        let (time, tools) = (AtomicU64::new(time), Arc::clone(&self.tools));
        ScanSource {
            touched,
            selection,
            has_counted_outcomes: AtomicBool::new(false),
            sequence,
            deleted_ranges: Arc::clone(&self.deleted_ranges),
            scan: PartOf::Itself(Shared { read_state, own, time, tools, query }),
        }
    }
}
