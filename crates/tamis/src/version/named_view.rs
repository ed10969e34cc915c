//! A sorted view as versions name it: a file and the ids of the runs that it covers.
//!
//! Reads use a view only while it is open, and merge the runs otherwise. It is opened in the background, because opening reads the
//! whole file. Once its file is found to be damaged it is never used again: a view that is built later is another one.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use super::handle::{FileHandle, ObsoleteFiles};
use crate::{
    error::{Error, Result},
    file_name::FileName,
    table::environment::TableEnvironment,
    view::{reader::View, writer::ViewOwner},
};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct NamedView {
    number: u64,
    file: Arc<FileHandle>,
    /// In the order of the view's selectors.
    runs: Vec<u64>,
    reader: OnceLock<Arc<View>>,
    is_failed: AtomicBool,
}

impl NamedView {
    pub(crate) fn new(number: u64, runs: Vec<u64>, obsolete_files: &Arc<ObsoleteFiles>) -> Self {
        let file = FileHandle::new(FileName::View(number), 0, obsolete_files);
        Self { number, file, runs, reader: OnceLock::new(), is_failed: AtomicBool::new(false) }
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
        self.reader.get().filter(|_| !self.is_failed())
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.is_failed.load(Ordering::Relaxed)
    }

    /// Whether it has to be opened before reads can use it.
    pub(crate) fn needs_open(&self) -> bool {
        self.reader.get().is_none() && !self.is_failed()
    }

    /// No read uses it from now on. Returns whether this is the first call.
    pub(crate) fn set_failed(&self) -> bool {
        !self.is_failed.swap(true, Ordering::Relaxed)
    }

    /// Opens the file. Cost: reads all of it.
    ///
    /// # Errors
    /// Those of the file system, and of a file that is damaged or another view.
    pub(crate) fn open(&self, environment: &TableEnvironment, owner: ViewOwner) -> Result<()> {
        let owner = ViewOwner { number: self.number, ..owner };
        self.set_reader(open_view(environment, owner, &self.runs)?);
        Ok(())
    }

    /// Lets reads use the view, which was opened by [`open_view`].
    pub(crate) fn set_reader(&self, view: Arc<View>) {
        // Another thread may have opened it meanwhile.
        let _ = self.reader.set(view);
    }
}

/// Opens the view of `owner` over the runs with these ids.
///
/// # Errors
/// As [`NamedView::open`].
pub(crate) fn open_view(environment: &TableEnvironment, owner: ViewOwner, runs: &[u64]) -> Result<Arc<View>> {
    let view = View::open(environment, owner.number)?;
    let found: Vec<u64> = view.runs().iter().map(|run| run.id).collect();
    if view.options().owner == owner && found == runs {
        return Ok(view);
    }
    let expected = format!("{owner:?} over runs {runs:?}");
    let got = format!("{:?} over runs {found:?}", view.options().owner);
    Err(Error::corruption(view.path(), 0, "view header", expected, got))
}
