//! Tables that are built outside of a database, for `Keyspace.ingest`.

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, TryLockError},
};

use pyo3::{
    prelude::*,
    types::{PyDict, PyType},
};
use tamis::{KeyspaceOptions, TableWriter as Writer};
use tamis_bindings_common::{Code, Failure, fork::Guarded, report};

use crate::{
    batch::pairs,
    bounds,
    codec::{self, Codec},
    error::{OrRaise, raise, run},
    json, options,
    reader::entry,
    time::time,
};

/// Builds a table, key by key in ascending order. As a context manager it finishes the table at the end of the block, or removes
/// it if the block raised an exception.
#[pyclass(module = "tamis._tamis", frozen, generic)]
#[derive(Debug)]
pub(crate) struct TableWriter {
    writer: Mutex<Guarded<Option<Writer>>>,
    codec: Codec,
    path: PathBuf,
}

/// Begins a table for any database. The path must not exist.
#[pyfunction]
#[pyo3(signature = (path, *, keys = "bytes", **options))]
pub(crate) fn table_writer(
    py: Python<'_>,
    path: PathBuf,
    keys: &str,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<TableWriter> {
    let codec = Codec::from_name(py, keys)?;
    let options = options::of_keyspace(KeyspaceOptions::default(), options)?;
    let writer = run(py, || Ok(Writer::create(&path, &options)?))?;
    Ok(TableWriter::new(writer, codec, path))
}

impl TableWriter {
    pub(crate) fn new(writer: Writer, codec: Codec, path: PathBuf) -> Self {
        Self { writer: Mutex::new(Guarded::new(Some(writer))), codec, path }
    }

    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Guarded<Option<Writer>>>> {
        match self.writer.try_lock() {
            Ok(writer) => Ok(writer),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(raise(
                py,
                Failure::new(
                    Code::Busy,
                    "another thread is using this table writer; give each thread a separate writer",
                ),
            )),
        }
    }

    fn add<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Writer) -> tamis::Result<T> + Send,
    ) -> PyResult<T> {
        let mut guard = self.lock(py)?;
        let writer = guard.get_mut().or_raise(py)?.as_mut().ok_or_else(|| finished(py))?;
        run(py, || Ok(work(writer)?))
    }
}

fn finished(py: Python<'_>) -> PyErr {
    raise(py, Failure::argument("the table is finished; begin another one with table_writer()"))
}

#[pymethods]
impl TableWriter {
    /// The file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The approximate size of the table if it were finished now.
    #[getter]
    fn estimated_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.add(py, |writer| Ok(writer.estimated_bytes()))
    }

    /// Adds a key with its value; the key must be greater than the previous one.
    fn put(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (key, value) = (self.codec.encode(key)?, codec::value(value)?);
        let (key, value): (&[u8], &[u8]) = (&key, &value);
        self.add(py, |writer| writer.put(key, value))
    }

    /// Adds an operand: the ingestion of the table adds it to the value of the key.
    fn merge(&self, py: Python<'_>, key: &Bound<'_, PyAny>, operand: &Bound<'_, PyAny>) -> PyResult<()> {
        let (key, operand) = (self.codec.encode(key)?, codec::operand(operand)?);
        let (key, operand): (&[u8], &[u8]) = (&key, &operand);
        self.add(py, |writer| writer.merge(key, operand))
    }

    /// Adds a key with its value and a time of expiry; see `Keyspace.put_until()`.
    fn put_until(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        time: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (key, value) = (self.codec.encode(key)?, codec::value(value)?);
        let (key, value, time): (&[u8], &[u8], _) = (&key, &value, self::time(time)?);
        self.add(py, |writer| writer.put_until(key, value, time))
    }

    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(py, key, value)
    }

    /// Adds the entries of a mapping or of pairs, in ascending order of keys.
    fn update(&self, py: Python<'_>, entries: &Bound<'_, PyAny>) -> PyResult<()> {
        for pair in pairs(entries)?.try_iter()? {
            let (key, value) = entry(&pair?)?;
            self.put(py, &key, &value)?;
        }
        Ok(())
    }

    /// Adds a delete: the ingestion of the table deletes the key.
    fn delete(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = self.codec.encode(key)?;
        let key: &[u8] = &key;
        self.add(py, |writer| writer.delete(key))
    }

    /// Adds the delete of all keys between two keys that the database has; keys of the table are kept.
    #[pyo3(signature = (lower = None, upper = None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        lower: Option<&Bound<'_, PyAny>>,
        upper: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let limits = bounds::half_open(self.codec, lower, upper)?;
        self.add(py, |writer| writer.delete_range(limits))
    }

    /// Adds the delete of all keys that begin with `prefix`.
    fn delete_prefix(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>) -> PyResult<()> {
        let prefix = self.codec.encode_prefix(prefix)?;
        let prefix: &[u8] = &prefix;
        self.add(py, |writer| writer.delete_prefix(prefix))
    }

    /// Finishes the table, which then survives a crash of the machine; returns a report.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let writer = self.lock(py)?.get_mut().or_raise(py)?.take().ok_or_else(|| finished(py))?;
        let file = run(py, || Ok(writer.finish()?))?;
        json::to_python(py, &report::table(&file))
    }

    /// Ends the work without a table; does nothing after `finish()`.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        let writer = self.lock(py)?.get_mut().or_raise(py)?.take();
        run(py, || {
            drop(writer);
            Ok(())
        })
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        class: Option<&Bound<'_, PyType>>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if class.is_some() {
            return self.abort(py);
        }
        // The block may have finished the table.
        let is_open = self.lock(py)?.get().or_raise(py)?.is_some();
        if is_open { self.finish(py).map(drop) } else { Ok(()) }
    }

    fn __repr__(&self) -> String {
        format!("<tamis.TableWriter {:?}>", self.path.display().to_string())
    }
}
