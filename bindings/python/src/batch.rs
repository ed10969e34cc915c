//! Write batches: atomic writes across the keyspaces of a database.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict, PyIterator, PyList, PyTuple, PyType},
};
use tamis::{BatchWrite, Durability};
use tamis_bindings_common::{Code, Failure, expiry, fork::Guarded};

use crate::{
    bounds,
    codec::{self, Codec},
    error::{OrRaise, invalid, raise, run},
    forgotten, options,
    reader::{Reader, entry},
    time::time,
};

/// Collects writes and applies all of them or none. As a context manager it writes at the end of the block, or nothing if the
/// block raised an exception.
#[pyclass(module = "tamis._tamis", frozen, generic)]
#[derive(Debug)]
pub(crate) struct WriteBatch {
    batch: Mutex<Guarded<tamis::WriteBatch>>,
    /// Writes without `keyspace=` go to this keyspace.
    keyspace: Py<Reader>,
    durability: Durability,
}

impl Drop for WriteBatch {
    fn drop(&mut self) {
        let batch = self.batch.get_mut().unwrap_or_else(PoisonError::into_inner);
        if batch.get().is_ok_and(|batch| !batch.is_empty()) {
            forgotten::warn(
                c"a batch with writes was dropped; call write() or clear(), or use it in a `with` block",
            );
        }
    }
}

impl WriteBatch {
    pub(crate) fn new(keyspace: &Bound<'_, Reader>, durability: Durability) -> PyResult<Self> {
        keyspace.get().handle.keyspace().or_raise(keyspace.py())?;
        let batch = Mutex::new(Guarded::new(tamis::WriteBatch::new()));
        Ok(Self { batch, keyspace: keyspace.clone().unbind(), durability })
    }

    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Guarded<tamis::WriteBatch>>> {
        match self.batch.try_lock() {
            Ok(batch) => Ok(batch),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(raise(
                py,
                Failure::new(
                    Code::Busy,
                    "another thread is using this batch; give each thread a separate batch",
                ),
            )),
        }
    }

    /// Runs `work` with the batch, the keyspace of a write and its codec.
    #[inline]
    fn add(
        &self,
        py: Python<'_>,
        keyspace: Option<&Bound<'_, Reader>>,
        work: impl FnOnce(&mut tamis::WriteBatch, &tamis::Keyspace, &Reader) -> PyResult<tamis::Result<()>>,
    ) -> PyResult<()> {
        let reader = keyspace.map_or_else(|| self.keyspace.get(), |keyspace| keyspace.get());
        if !reader.handle.is_current() {
            let message =
                "keyspace: a snapshot cannot be written by a batch, nor a transaction; give the keyspace";
            return Err(invalid(py, message));
        }
        let target = reader.handle.keyspace().or_raise(py)?;
        let mut batch = self.lock(py)?;
        work(batch.get_mut().or_raise(py)?, target, reader)?.or_raise(py)
    }
}

#[pymethods]
impl WriteBatch {
    /// Adds a put.
    #[pyo3(signature = (key, value, *, keyspace = None))]
    fn put(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        keyspace: Option<&Bound<'_, Reader>>,
    ) -> PyResult<()> {
        self.add(py, keyspace, |batch, keyspace, reader| {
            Ok(batch.put(keyspace, &*reader.codec.encode(key)?, &*codec::value(value)?))
        })
    }

    /// Adds an operand to the value of a key; see `Keyspace.merge()`.
    #[pyo3(signature = (key, operand, *, keyspace = None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
        keyspace: Option<&Bound<'_, Reader>>,
    ) -> PyResult<()> {
        self.add(py, keyspace, |batch, keyspace, reader| {
            Ok(batch.merge(keyspace, &*reader.codec.encode(key)?, &*codec::operand(operand)?))
        })
    }

    /// Adds a put with a time of expiry; see `Keyspace.put_until()`.
    #[pyo3(signature = (key, value, time, *, keyspace = None))]
    fn put_until(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        time: &Bound<'_, PyAny>,
        keyspace: Option<&Bound<'_, Reader>>,
    ) -> PyResult<()> {
        let time = self::time(time)?;
        self.add(py, keyspace, |batch, keyspace, reader| {
            Ok(batch.put_until(keyspace, &*reader.codec.encode(key)?, &*codec::value(value)?, time))
        })
    }

    /// Adds a delete.
    #[pyo3(signature = (key, *, keyspace = None))]
    fn delete(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        keyspace: Option<&Bound<'_, Reader>>,
    ) -> PyResult<()> {
        self.add(py, keyspace, |batch, keyspace, reader| {
            Ok(batch.delete(keyspace, &*reader.codec.encode(key)?))
        })
    }

    /// Adds the delete of all keys between two keys; later writes of the batch are kept.
    #[pyo3(signature = (lower = None, upper = None, *, keyspace = None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        lower: Option<&Bound<'_, PyAny>>,
        upper: Option<&Bound<'_, PyAny>>,
        keyspace: Option<&Bound<'_, Reader>>,
    ) -> PyResult<()> {
        self.add(py, keyspace, |batch, keyspace, reader| {
            Ok(batch.delete_range(keyspace, bounds::half_open(reader.codec, lower, upper)?))
        })
    }

    /// Adds the delete of all keys that begin with `prefix`.
    #[pyo3(signature = (prefix, *, keyspace = None))]
    fn delete_prefix(
        &self,
        py: Python<'_>,
        prefix: &Bound<'_, PyAny>,
        keyspace: Option<&Bound<'_, Reader>>,
    ) -> PyResult<()> {
        self.add(py, keyspace, |batch, keyspace, reader| {
            Ok(batch.delete_prefix(keyspace, &*reader.codec.encode_prefix(prefix)?))
        })
    }

    /// Adds puts: those of a mapping or of pairs.
    #[pyo3(signature = (entries, *, keyspace = None))]
    fn update(
        &self,
        py: Python<'_>,
        entries: &Bound<'_, PyAny>,
        keyspace: Option<&Bound<'_, Reader>>,
    ) -> PyResult<()> {
        for pair in pairs(entries)?.try_iter()? {
            let (key, value) = entry(&pair?)?;
            self.put(py, &key, &value, keyspace)?;
        }
        Ok(())
    }

    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.delete(py, key, None)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.lock(py)?.get().or_raise(py)?.len())
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.__len__(py)? > 0)
    }

    /// The greatest number of bytes of the writes in the log.
    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.lock(py)?.get().or_raise(py)?.size_bytes())
    }

    /// Adds the writes of another batch of the same database, which keeps them.
    fn append(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let added = other.get().lock(py)?.get().or_raise(py)?.clone();
        self.lock(py)?.get_mut().or_raise(py)?.append(&added).or_raise(py)
    }

    /// The writes to a keyspace (default: that of the batch) as tuples: `("put", key, value)`, `("put_until", key, value, time)` with the time in seconds since 1970,
    /// `("merge", key, operand)`, `("delete", key)`, `("delete_range", lower, upper)` with bounds in bytes, of which `upper` may be `None`.
    #[pyo3(signature = (keyspace = None))]
    fn writes<'py>(
        &self,
        py: Python<'py>,
        keyspace: Option<&Bound<'py, Reader>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let reader = keyspace.map_or_else(|| self.keyspace.get(), |keyspace| keyspace.get());
        let target = reader.handle.keyspace().or_raise(py)?;
        let batch = self.lock(py)?.get().or_raise(py)?.clone();
        let list = PyList::empty(py);
        for write in batch.writes(target) {
            list.append(tuple_of(py, reader.codec, write)?)?;
        }
        Ok(list)
    }

    /// The writes to the keyspace of the batch; see `writes()`.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.writes(py, None)?.try_iter()
    }

    /// Removes all writes.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.lock(py)?.get_mut().or_raise(py)?.clear();
        Ok(())
    }

    /// Applies all writes atomically. The batch is empty afterwards.
    #[pyo3(signature = (*, durability = None))]
    fn write(&self, py: Python<'_>, durability: Option<&str>) -> PyResult<()> {
        let durability = durability.map_or(Ok(self.durability), |name| options::durability(py, name))?;
        let db = self.keyspace.get().handle.db().or_raise(py)?;
        let batch = std::mem::take(self.lock(py)?.get_mut().or_raise(py)?);
        run(py, || Ok(db.write_with(batch, durability)?))
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
        if class.is_some() { self.clear(py) } else { self.write(py, None) }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<tamis.WriteBatch of {} writes>", self.__len__(py)?))
    }
}

/// A write as a tuple; see [`WriteBatch::writes`].
pub(crate) fn tuple_of<'py>(
    py: Python<'py>,
    codec: Codec,
    write: BatchWrite<'_>,
) -> PyResult<Bound<'py, PyTuple>> {
    match write {
        BatchWrite::Put { key, value } => {
            ("put", codec.decode(py, key)?, PyBytes::new(py, value)).into_pyobject(py)
        }
        BatchWrite::PutUntil { key, value, time } => {
            let (key, value) = (codec.decode(py, key)?, PyBytes::new(py, value));
            ("put_until", key, value, expiry::seconds_of(time)).into_pyobject(py)
        }
        BatchWrite::Merge { key, operand } => {
            ("merge", codec.decode(py, key)?, PyBytes::new(py, operand)).into_pyobject(py)
        }
        BatchWrite::Delete { key } => ("delete", codec.decode(py, key)?).into_pyobject(py),
        BatchWrite::DeleteRange { lower, upper } => {
            let upper = upper.map(|upper| PyBytes::new(py, upper));
            ("delete_range", PyBytes::new(py, lower), upper).into_pyobject(py)
        }
        _ => {
            let message = "a bug in Tamis: the batch has a write of an unknown kind; report the bug";
            Err(raise(py, Failure::new(Code::Panic, message)))
        }
    }
}

/// The pairs of a mapping, or the iterable itself.
pub(crate) fn pairs<'py>(entries: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let is_mapping = entries.is_instance_of::<PyDict>() || entries.hasattr("items")?;
    if is_mapping { entries.call_method0("items") } else { Ok(entries.clone()) }
}
