//! The state that all parts of an open store share: file system, folder, options, clock, counters, and whether it accepts calls.
//!
//! The first background error is final (`background_error.rs`).

use std::sync::Arc;

use tamis_vfs::{Folder, fork::OpenIn};

use crate::{
    error::{Error, Result},
    expiry::ExpiryClock,
    observe::{events::Event, metrics::Metrics},
    options::Options,
    store::{background_error::BackgroundError, runtime::Runtime, store_folder},
    sync::{RwLock, RwLockReadGuard, RwLockWriteGuard},
};

/// See the head of this file.
pub(crate) struct StoreContext {
    pub(crate) folder: Folder,
    pub(crate) options: Options,
    pub(crate) runtime: Runtime,
    pub(crate) expiry: ExpiryClock,
    pub(crate) metrics: Arc<Metrics>,
    open_in: OpenIn,
    background_error: Arc<BackgroundError>,
    /// Shared by every job that uses the folder; exclusive for close, before it unlocks the folder.
    running_jobs: RwLock<()>,
}

impl StoreContext {
    pub(crate) fn new(
        folder: Folder,
        options: Options,
        runtime: Runtime,
        background_error: Arc<BackgroundError>,
    ) -> Arc<Self> {
        Arc::new(Self {
            folder,
            options,
            metrics: Arc::new(Metrics::by(Arc::clone(&runtime.clock))),
            expiry: ExpiryClock::new(Arc::clone(&runtime.clock)),
            runtime,
            open_in: OpenIn::this_process(),
            background_error,
            running_jobs: RwLock::new(()),
        })
    }

    /// Reports an event to the program's listener.
    pub(crate) fn report(&self, event: &Event) {
        if let Some(listener) = &self.options.listener {
            listener.on_event(event);
        }
    }

    /// Reports that a background job failed.
    pub(crate) fn report_failed_job(&self, job: &'static str, error: &Error) {
        self.report(&Event::JobFailed { job, error: error.to_string() });
    }

    /// Refuses all later writes. The first error is kept.
    pub(crate) fn set_background_error(&self, error: &Error) {
        self.background_error.set(error);
    }

    /// Calls `work`, which is described by `operation`. A panic becomes the background error.
    ///
    /// # Errors
    /// [`Error::Panicked`].
    pub(crate) fn catch<R>(&self, operation: &'static str, work: impl FnOnce() -> R) -> Result<R> {
        self.background_error.catch(operation, work)
    }

    /// Refuses all later calls.
    pub(crate) fn set_closed(&self) {
        self.open_in.close();
    }

    /// # Errors
    /// [`Error::Closed`] after close: another process may own the folder. [`Error::Forked`] in a child process: its locks may be held
    /// forever, and the files belong to the parent.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.open_in.is_usable() { Ok(()) } else { Err(self.not_usable()) }
    }

    /// For calls that need no open store.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.folder.process().is_current() { Ok(()) } else { Err(Error::Forked) }
    }

    #[cold]
    fn not_usable(&self) -> Error {
        if self.open_in.is_closed() { Error::Closed } else { Error::Forked }
    }

    /// # Errors
    /// As [`StoreContext::check_open`]; [`Error::ReadOnly`]; [`Error::WritesRefused`] after a background error.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.options.is_reader() {
            return Err(self.read_only_error());
        }
        self.background_error.check()
    }

    pub(crate) fn read_only_error(&self) -> Error {
        Error::ReadOnly { path: self.folder.path().to_path_buf() }
    }

    /// Registers a job that uses the folder: close waits until the guard is dropped.
    ///
    /// # Errors
    /// As [`StoreContext::check_open`].
    pub(crate) fn begin_job(&self) -> Result<RwLockReadGuard<'_, ()>> {
        self.check_open()?;
        // Only close takes the lock exclusively. A wait for it would last until all running jobs have ended.
        let running = self.running_jobs.try_read().ok_or(Error::Closed)?;
        self.check_open()?;
        Ok(running)
    }

    /// As [`StoreContext::begin_job`], for a job that writes.
    ///
    /// # Errors
    /// As [`StoreContext::check_writable`]; [`Error::FolderLost`].
    pub(crate) fn begin_write_job(&self) -> Result<RwLockReadGuard<'_, ()>> {
        let running = self.begin_job()?;
        self.check_writable()?;
        store_folder::check(&self.folder)?;
        Ok(running)
    }

    /// Waits until no job is running; none begins while the guard is held.
    pub(crate) fn wait_for_jobs(&self) -> RwLockWriteGuard<'_, ()> {
        self.running_jobs.write()
    }
}
