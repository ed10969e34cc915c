//! A sorted view as versions name it: a file and the ids of the runs that it covers.
//!
//! Reads use a view only while it is open, and merge the runs otherwise. It is opened in the background, because opening reads the
//! whole file; a store without background jobs opens it once that saves time (`read/view_opener.rs`). Once its file is found to be damaged
//! it is never used again: a view that is built later is another one.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{
    handle::{FileHandle, ObsoleteFiles},
    view_slot::ViewSlot,
};
use crate::{
    error::{Error, Result},
    file_name::FileName,
    table::environment::TableEnvironment,
    view::{
        reader::View,
        writer::{RunSummary, ViewOwner},
    },
};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct NamedView {
    number: u64,
    file: Arc<FileHandle>,
    /// In the order of the view's selectors.
    runs: Vec<u64>,
    slot: ViewSlot<View>,
    /// See [`NamedView::count_missed_read`].
    missed_reads: AtomicU64,
}

impl NamedView {
    pub(crate) fn new(number: u64, runs: Vec<u64>, obsolete_files: &Arc<ObsoleteFiles>) -> Self {
        let file = FileHandle::new(FileName::View(number), 0, obsolete_files);
        Self { number, file, runs, slot: ViewSlot::new(), missed_reads: AtomicU64::new(0) }
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

    /// No read uses it from now on, because of this error. The first call reports it.
    pub(crate) fn fail(&self, environment: &TableEnvironment, error: &Error) {
        if self.slot.fail() {
            environment.report_view(&self.file.name().path(&environment.folder), error.to_string());
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
