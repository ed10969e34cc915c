//! Databases: open, close, keyspaces, maintenance.

use std::{path::PathBuf, sync::atomic::Ordering, time::Duration};

use pyo3::{
    prelude::*,
    types::{PyDict, PyType},
};
use tamis::{Db, Position};
use tamis_bindings_common::{report, statistics_json};

use crate::{
    changes::Changes,
    codec::Codec,
    error::{OrRaise, invalid, run},
    event::{Events, set_listener},
    forgotten,
    handle::{ClosedFlag, Handle},
    json,
    keyspace::Keyspace,
    options,
    progress::Progress,
    reader::Reader,
};

/// An open database. It is also its default keyspace, and a context manager that closes the database.
#[pyclass(module = "tamis._tamis", frozen, extends = Keyspace, mapping, generic)]
#[derive(Debug)]
pub(crate) struct Database {
    events: Option<Events>,
    closed: ClosedFlag,
    /// The process that opened it: a child of a fork forgets nothing.
    process: u32,
}

impl Drop for Database {
    fn drop(&mut self) {
        if !self.closed.load(Ordering::Relaxed) && self.process == std::process::id() {
            forgotten::warn(c"a database was not closed; call close(), or use it in a `with` block");
        }
    }
}

impl Database {
    fn reader<'a>(slf: &'a Bound<'_, Self>) -> &'a Reader {
        slf.as_super().as_super().get()
    }

    fn db<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a Db> {
        Self::reader(slf).handle.db().or_raise(slf.py())
    }
}

/// Opens the database in a folder, or creates one there. `keys` is the codec of its keys; an existing database has one. Options are keyword arguments. `listener` is called with each event on a
/// thread that serves it alone.
#[pyfunction]
#[pyo3(signature = (path, *, keys = None, listener = None, **options))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    keys: Option<&str>,
    listener: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<Database>> {
    let given = Codec::given(py, keys)?;
    let mut options = options::of_database(Codec::options(given), options)?;
    let queue = listener.map(|listener| set_listener(listener, &mut options)).transpose()?;
    let (db, codec) = run(py, || {
        let db = Db::open_with(&path, options)?;
        let codec = Codec::of_keyspace(&db.default_keyspace(), given)?;
        Ok((db, codec))
    })?;
    let events = listener.zip(queue).map(|(listener, queue)| Events::start(listener, queue)).transpose()?;
    let reader = Reader::new(Handle::of_database(db), codec);
    let (closed, process) = (reader.handle.closed_flag().clone(), std::process::id());
    let database = Database { events, closed, process };
    Py::new(py, PyClassInitializer::from(reader).add_subclass(Keyspace).add_subclass(database))
}

/// Reads every byte of a database that is not open; returns a report of all damage. `progress` is called with the number of bytes
/// so far.
#[pyfunction]
#[pyo3(signature = (path, *, progress = None))]
pub(crate) fn verify_folder<'py>(
    py: Python<'py>,
    path: PathBuf,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let found = Progress::new(progress, "bytes")?
        .run(py, |progress| Ok(Db::verify_folder_with(&path, |found| progress.report(found.bytes))?))?;
    json::to_python(py, &report::verify(&found))
}

/// Repairs a damaged database that is not open; returns a report.
#[pyfunction]
pub(crate) fn repair(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    let found = run(py, || Ok(Db::repair(&path)?))?;
    json::to_python(py, &report::repair(&found))
}

#[pymethods]
impl Database {
    /// The folder.
    #[getter]
    fn path(slf: &Bound<'_, Self>) -> PyResult<PathBuf> {
        Ok(Self::db(slf)?.path())
    }

    /// Whether the database is closed.
    #[getter]
    fn is_closed(slf: &Bound<'_, Self>) -> bool {
        Self::reader(slf).handle.is_closed()
    }

    /// Whether the database is open read-only. A reader sees what other processes have written after `refresh()`.
    #[getter]
    fn is_reader(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Ok(Self::db(slf)?.is_reader())
    }

    /// Lets a reader see all that was written before the call. Scans and snapshots do not change. It does nothing in the process that writes.
    fn refresh(slf: &Bound<'_, Self>) -> PyResult<()> {
        let db = Self::db(slf)?;
        run(slf.py(), || Ok(db.refresh()?))
    }

    /// Refreshes a reader in a thread, now and each time that the interval has passed, until the database is closed.
    fn refresh_every(slf: &Bound<'_, Self>, seconds: f64) -> PyResult<()> {
        let (py, db) = (slf.py(), Self::db(slf)?);
        let interval = Duration::try_from_secs_f64(seconds).map_err(|_| {
            invalid(py, format!("seconds: {seconds} is not valid; give a number of at least 0.001"))
        })?;
        run(py, || Ok(db.refresh_every(interval)?))
    }

    /// The changes behind a position, in the order of the commits: 0, the sequence number of a snapshot, or a stored position.
    /// `ChangesLostError`: the log no longer has the next change; the options `keep_changes_bytes` and `keep_changes_seconds` keep the log.
    #[pyo3(signature = (position = 0))]
    fn changes(slf: &Bound<'_, Self>, position: u64) -> PyResult<Changes> {
        let db = Self::db(slf)?;
        let feed = run(slf.py(), || Ok(db.changes(Position::after(position))?))?;
        Ok(Changes::new(feed, Self::reader(slf).handle.closed_flag().clone()))
    }

    /// The keyspace with a name, and with the codec that is stored in it; `create=True` creates it with the options if it does not exist.
    #[pyo3(signature = (name, *, create = false, keys = None, **options))]
    fn keyspace(
        slf: &Bound<'_, Self>,
        name: &str,
        create: bool,
        keys: Option<&str>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Keyspace>> {
        let py = slf.py();
        let (given, db) = (Codec::given(py, keys)?, Self::db(slf)?);
        let options = options::of_keyspace(Codec::options(given), options)?;
        let (keyspace, codec) = run(py, || {
            let keyspace =
                if create { db.get_or_create_keyspace(name, options.clone())? } else { db.keyspace(name)? };
            keyspace.check_options(&options)?;
            let codec = Codec::of_keyspace(&keyspace, given)?;
            Ok((keyspace, codec))
        })?;
        Keyspace::create(py, Self::reader(slf).handle.with_keyspace(keyspace).or_raise(py)?, codec)
    }

    /// Creates a keyspace.
    #[pyo3(signature = (name, *, keys = "bytes", **options))]
    fn create_keyspace(
        slf: &Bound<'_, Self>,
        name: &str,
        keys: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Keyspace>> {
        let py = slf.py();
        let (codec, db) = (Codec::from_name(py, keys)?, Self::db(slf)?);
        let options = options::of_keyspace(Codec::options(Some(codec)), options)?;
        let keyspace = run(py, || Ok(db.create_keyspace(name, options)?))?;
        Keyspace::create(py, Self::reader(slf).handle.with_keyspace(keyspace).or_raise(py)?, codec)
    }

    /// Drops a keyspace with all its entries.
    fn drop_keyspace(slf: &Bound<'_, Self>, name: &str) -> PyResult<()> {
        let db = Self::db(slf)?;
        run(slf.py(), || Ok(db.drop_keyspace(name)?))
    }

    /// The names of all keyspaces, sorted.
    fn keyspace_names(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        Ok(Self::db(slf)?.keyspace_names())
    }

    /// Makes all earlier writes as durable as `durability`.
    #[pyo3(signature = (durability = "synced"))]
    fn persist(slf: &Bound<'_, Self>, durability: &str) -> PyResult<()> {
        let (py, db) = (slf.py(), Self::db(slf)?);
        let durability = options::durability(py, durability)?;
        run(py, || Ok(db.persist(durability)?))
    }

    /// Writes the memtables of all keyspaces into tables.
    fn flush(slf: &Bound<'_, Self>) -> PyResult<()> {
        let db = Self::db(slf)?;
        run(slf.py(), || Ok(db.flush()?))
    }

    /// Waits until no flush or compaction is due, and the files that they have replaced are deleted.
    fn wait_for_compactions(slf: &Bound<'_, Self>) -> PyResult<()> {
        let db = Self::db(slf)?;
        run(slf.py(), || Ok(db.wait_for_compactions()?))
    }

    /// Creates a consistent copy of the database in a new or empty folder; returns a report.
    #[pyo3(signature = (path, *, verify = false))]
    fn checkpoint<'py>(slf: &Bound<'py, Self>, path: PathBuf, verify: bool) -> PyResult<Bound<'py, PyAny>> {
        let (py, db) = (slf.py(), Self::db(slf)?);
        let made =
            run(py, || Ok(if verify { db.checkpoint_verified(&path)? } else { db.checkpoint(&path)? }))?;
        json::to_python(py, &report::checkpoint(&made))
    }

    /// Reads every byte of the database; returns a report of all damage. `progress` is called with the number of bytes so far.
    #[pyo3(signature = (*, progress = None))]
    fn verify<'py>(
        slf: &Bound<'py, Self>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, db) = (slf.py(), Self::db(slf)?);
        let found = Progress::new(progress, "bytes")?
            .run(py, |progress| Ok(db.verify_with(|found| progress.report(found.bytes))?))?;
        json::to_python(py, &report::verify(&found))
    }

    /// Counters since the open, and the state of log, cache and levels.
    fn statistics<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, db) = (slf.py(), Self::db(slf)?);
        let counted = run(py, || Ok(statistics_json(&db.statistics())))?;
        json::to_python(py, &counted)
    }

    /// The report of the open: replayed records, truncated logs, quarantined files.
    fn open_report<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(slf.py(), &report::open(Self::db(slf)?.open_report()))
    }

    /// Closes the database. All its objects raise `ClosedError` afterwards; a second close does nothing.
    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        let reader = Self::reader(slf);
        let closed = run(slf.py(), || reader.handle.close());
        if let Some(events) = &slf.get().events {
            events.finish(slf.py())?;
        }
        closed
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        Self::db(&slf)?;
        Ok(slf)
    }

    fn __exit__(
        slf: &Bound<'_, Self>,
        _class: Option<&Bound<'_, PyType>>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        // A child process leaves the block of its parent without an error.
        if Self::reader(slf).handle.is_own() { Self::close(slf) } else { Ok(()) }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        match Self::db(slf) {
            Ok(db) => format!("<tamis.Database {:?}>", db.path().display().to_string()),
            Err(_) => "<tamis.Database (closed)>".to_owned(),
        }
    }
}
