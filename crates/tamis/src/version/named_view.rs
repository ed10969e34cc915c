//! A sorted view as versions name it: a file and the ids of the runs that it covers.
//!
//! Reads use a view only while it is open, and merge the runs otherwise. It is opened in the background, because opening reads the
//! whole file; a store without background jobs opens it once that saves time (`read/view_opener.rs`). Once its file is found to be damaged
//! it is never used again: a view that is built later is another one.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use parking_lot::Mutex;

use super::{
    filter_tally::Answers,
    handle::{FileHandle, ObsoleteFiles},
    view_slot::ViewSlot,
};
use crate::{
    error::{Error, Result},
    file_name::FileName,
    metrics::FilterAnswers,
    table::{environment::TableEnvironment, gap_cache::GapCache},
    view::{
        reader::View,
        writer::{RunSummary, ViewOwner},
    },
};

/// Consecutive false positives after which points expect an absent key. If keys are present, filters let so many follow one another only
/// rarely.
const FALSE_POSITIVES_MIN: u32 = 8;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct NamedView {
    number: u64,
    file: Arc<FileHandle>,
    /// In the order of the view's selectors.
    runs: Vec<u64>,
    slot: ViewSlot<View>,
    /// The memory that it takes when it is open, once that is known.
    memory_bytes: OnceLock<u64>,
    /// See [`NamedView::is_searched_first`].
    is_searched_first: AtomicBool,
    /// See [`NamedView::expects_absent`].
    false_positives: AtomicU32,
    /// See [`NamedView::count_missed_read`].
    missed_reads: AtomicU64,
    /// See [`NamedView::admitted_ranges`].
    admitted_ranges: AtomicU64,
    /// Known gaps between the keys of all its runs.
    gaps: Arc<GapCache>,
    /// The answers of its filters to closed ranges that only a key could decide.
    filter_answers: Answers,
    filter_checks: Mutex<FilterChecks>,
}

/// The checks of the filters of a view.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FilterChecks {
    /// Checks that kept the filters, one after the other.
    pub(crate) kept_count: u32,
    /// The greatest rate of false positives at these checks; 0 without any.
    pub(crate) seen_rate: f64,
    /// The answers of the filters at the last one.
    pub(crate) before: FilterAnswers,
    /// For a view without filters: the number of admitted ranges from which on the next check is worth its time.
    pub(crate) due_at: u64,
}

impl NamedView {
    pub(crate) fn new(number: u64, runs: Vec<u64>, obsolete_files: &Arc<ObsoleteFiles>) -> Self {
        let file = FileHandle::new(FileName::View(number), 0, obsolete_files);
        Self {
            number,
            file,
            runs,
            slot: ViewSlot::new(),
            memory_bytes: OnceLock::new(),
            is_searched_first: AtomicBool::new(false),
            false_positives: AtomicU32::new(0),
            missed_reads: AtomicU64::new(0),
            admitted_ranges: AtomicU64::new(0),
            gaps: Arc::default(),
            filter_answers: Answers::default(),
            filter_checks: Mutex::default(),
        }
    }

    /// The number of the file.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) const fn file(&self) -> &Arc<FileHandle> {
        &self.file
    }

    /// The ids of the runs that it covers.
    pub(crate) fn runs(&self) -> &[u64] {
        &self.runs
    }

    /// The open view; `None` if it is not open yet, or damaged.
    #[inline]
    pub(crate) fn reader(&self) -> Option<&Arc<View>> {
        self.slot.get()
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.slot.is_failed()
    }

    /// Whether it has to be opened before reads can use it.
    pub(crate) fn needs_open(&self) -> bool {
        self.slot.needs_open()
    }

    /// Whether the memory that is left for views is enough to open it. Reads the length of the file the first time.
    pub(crate) fn fits(&self, environment: &TableEnvironment) -> bool {
        let bytes = match self.memory_bytes.get() {
            Some(&bytes) => bytes,
            None => match environment.open_file(self.file.name()) {
                Ok(source) => *self.memory_bytes.get_or_init(|| source.memory_bytes()),
                // The open reports the error.
                Err(_) => 0,
            },
        };
        bytes <= environment.view_budget.left_bytes()
    }

    /// No read uses it from now on, because of this error. The first call reports it.
    pub(crate) fn fail(&self, environment: &TableEnvironment, error: &Error) {
        if self.slot.fail() {
            environment.report_view(&self.file.name().path(&environment.folder), error.to_string());
        }
    }

    /// Whether point reads search the view before they search the tables of the covered runs: those have no filters.
    #[inline]
    pub(crate) fn is_searched_first(&self) -> bool {
        self.is_searched_first.load(Ordering::Relaxed)
    }

    pub(crate) fn set_searched_first(&self, is_searched_first: bool) {
        self.is_searched_first.store(is_searched_first, Ordering::Relaxed);
    }

    /// Whether the last reads of runs by points were all false positives: most keys are absent, and the view is worth a search before each
    /// read.
    #[inline]
    pub(crate) fn expects_absent(&self) -> bool {
        self.false_positives.load(Ordering::Relaxed) >= FALSE_POSITIVES_MIN
    }

    /// Counts a read of a point in a run that does not have the key.
    pub(crate) fn add_false_positive(&self) {
        self.false_positives.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that a point read a run that has the key.
    #[inline]
    pub(crate) fn note_found(&self) {
        // Mostly 0: a store would take the cache line from other processors.
        if self.false_positives.load(Ordering::Relaxed) != 0 {
            self.false_positives.store(0, Ordering::Relaxed);
        }
    }

    /// Counts a read that could have used the view if it were open; returns their number.
    pub(crate) fn count_missed_read(&self) -> u64 {
        self.missed_reads.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether the caller opens the view; no other thread does.
    pub(crate) fn claim_open(&self) -> bool {
        self.slot.claim_open()
    }

    /// Known gaps between the keys of all its runs.
    pub(crate) const fn gaps(&self) -> &Arc<GapCache> {
        &self.gaps
    }

    /// The answers of its filters to closed ranges that only a key could decide.
    pub(crate) const fn filter_answers(&self) -> &Answers {
        &self.filter_answers
    }

    /// Closed ranges that the filters of tables and the view admitted.
    pub(crate) fn admitted_ranges(&self) -> u64 {
        self.admitted_ranges.load(Ordering::Relaxed)
    }

    pub(crate) fn add_admitted_range(&self) {
        self.admitted_ranges.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn filter_checks(&self) -> FilterChecks {
        *self.filter_checks.lock()
    }

    pub(crate) fn set_filter_checks(&self, checks: FilterChecks) {
        *self.filter_checks.lock() = checks;
    }

    /// Records that a check kept the filters, or built none: the next one needs twice as many answers. `seen_rate`: see
    /// [`FilterChecks`], with the rate at this check.
    pub(crate) fn keep_filters(&self, seen_rate: f64) {
        let mut checks = self.filter_checks.lock();
        checks.kept_count += 1;
        checks.seen_rate = seen_rate;
        checks.before = self.filter_answers.get();
        checks.due_at = 2 * self.admitted_ranges();
    }

    /// Opens the file of a view of these runs. Cost: reads all of it.
    ///
    /// # Errors
    /// Those of the file system, and of a file that is damaged or another view.
    pub(crate) fn open(
        &self,
        environment: &TableEnvironment,
        owner: ViewOwner,
        runs: &[RunSummary],
    ) -> Result<()> {
        let owner = ViewOwner { number: self.number, ..owner };
        self.set_reader(open_view(environment, owner, runs)?);
        Ok(())
    }

    /// Lets reads use the view, which was opened by [`open_view`].
    pub(crate) fn set_reader(&self, view: Arc<View>) {
        self.slot.set(view);
    }
}

/// Opens the view of `owner` over these runs. A file that an older copy of the store had under this name may have the ids of the runs:
/// they are compared with their numbers of entries and sequence numbers.
///
/// # Errors
/// As [`NamedView::open`].
pub(crate) fn open_view(
    environment: &TableEnvironment,
    owner: ViewOwner,
    runs: &[RunSummary],
) -> Result<Arc<View>> {
    let view = View::open(environment, owner.number)?;
    if view.options().owner == owner && view.runs() == runs {
        return Ok(view);
    }
    let (expected, got) = if view.options().owner == owner {
        let is_other = |place: &usize| runs.get(*place) != view.runs().get(*place);
        let place = (0..runs.len().max(view.runs().len())).find(is_other).unwrap_or_default();
        (describe_run(runs.get(place)), describe_run(view.runs().get(place)))
    } else {
        (describe_owner(owner), describe_owner(view.options().owner))
    };
    Err(Error::corruption(view.path(), 0, "view header", expected, got))
}

fn describe_owner(owner: ViewOwner) -> String {
    let ViewOwner { database_id, keyspace_id, number } = owner;
    format!("view {number} of keyspace {keyspace_id} of database {database_id:016x}")
}

fn describe_run(run: Option<&RunSummary>) -> String {
    let describe = |run: &RunSummary| {
        let RunSummary { id, largest_sequence, entry_count } = run;
        format!("run {id} with {entry_count} entries up to sequence number {largest_sequence}")
    };
    run.map_or_else(|| "no more runs".to_owned(), describe)
}
