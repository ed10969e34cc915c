//! Transactions as mappings: reads of a keyspace with the transaction's own writes, and its writes.

use std::sync::Arc;

use pyo3::{prelude::*, types::PyType};
use tamis::{Savepoint, TransactionOptions};
use tamis_bindings_common::{
    Failure,
    fork::Guarded,
    transaction::{SharedTransaction, ended},
};

use crate::{
    bounds, codec,
    error::{OrRaise, invalid, run},
    forgotten,
    handle::Handle,
    reader::{Reader, found},
    time::time,
};

/// A transaction; all its objects share it, one for each keyspace.
#[derive(Debug)]
pub(crate) struct OpenTransaction(Guarded<SharedTransaction>);

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        if self.get().is_ok_and(SharedTransaction::is_open) {
            forgotten::warn(
                c"a transaction was dropped and rolled back; call commit() or rollback(), or use it in a `with` block",
            );
        }
    }
}

impl OpenTransaction {
    /// The transaction, which may have ended.
    pub(crate) fn get(&self) -> Result<&SharedTransaction, Failure> {
        self.0.get()
    }
}

/// Reads and writes of all keyspaces that are committed together, or not at all.
#[pyclass(module = "tamis._tamis", frozen, extends = Reader, mapping, generic)]
#[derive(Debug)]
pub(crate) struct Transaction(Arc<OpenTransaction>);

impl Transaction {
    /// Begins an attempt of a transaction.
    pub(crate) fn begin(
        reader: &Reader,
        py: Python<'_>,
        options: TransactionOptions,
        attempt: u32,
    ) -> PyResult<Py<Self>> {
        let db = reader.handle.db().or_raise(py)?;
        let begun = run(py, || Ok(db.transaction_attempt(options, attempt)?))?;
        Self::share(reader, py, begun)
    }

    /// Waits for the turn of an exclusive transaction.
    pub(crate) fn begin_exclusive(
        reader: &Reader,
        py: Python<'_>,
        options: TransactionOptions,
    ) -> PyResult<Py<Self>> {
        let db = reader.handle.db().or_raise(py)?;
        let begun = run(py, || Ok(db.exclusive_with(options)?))?;
        Self::share(reader, py, begun)
    }

    fn share(reader: &Reader, py: Python<'_>, begun: tamis::Transaction) -> PyResult<Py<Self>> {
        let shared = Arc::new(OpenTransaction(Guarded::new(SharedTransaction::new(begun))));
        Self::create(&reader.handle, shared, reader.codec, py)
    }

    fn create(
        handle: &Handle,
        shared: Arc<OpenTransaction>,
        codec: codec::Codec,
        py: Python<'_>,
    ) -> PyResult<Py<Self>> {
        let handle = handle.with_transaction(Arc::clone(&shared)).or_raise(py)?;
        Py::new(py, (Self(shared), Reader::new(handle, codec)))
    }

    /// Commits it without the interpreter's lock.
    pub(crate) fn try_commit(&self, py: Python<'_>) -> Result<(), Failure> {
        py.detach(|| self.0.get()?.commit())
    }

    /// Rolls it back, if it is open.
    pub(crate) fn end(&self, py: Python<'_>) {
        if let Ok(shared) = self.0.get() {
            py.detach(|| drop(shared.end()));
        }
    }

    /// Runs a write.
    fn write(
        slf: &Bound<'_, Self>,
        add: impl FnOnce(&tamis::Transaction, &tamis::Keyspace) -> tamis::Result<()> + Send,
    ) -> PyResult<()> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        let keyspace = reader.handle.keyspace().or_raise(py)?;
        let shared = slf.get().0.get().or_raise(py)?;
        run(py, || shared.with(|transaction| Ok(add(transaction, keyspace)?)))
    }
}

#[pymethods]
impl Transaction {
    /// The same transaction in another keyspace.
    fn of<'py>(slf: &Bound<'py, Self>, keyspace: &Bound<'py, Reader>) -> PyResult<Py<Self>> {
        let (py, this, other) = (slf.py(), slf.as_super().get(), keyspace.get());
        if !this.handle.is_of_same_database(&other.handle) {
            let message =
                "keyspace: it belongs to another database; use a keyspace of the database of the transaction";
            return Err(invalid(py, message));
        }
        Self::create(&other.handle, Arc::clone(&slf.get().0), other.codec, py)
    }

    /// Sets the value of a key.
    fn put(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (key, value) = (slf.as_super().get().codec.encode(key)?, codec::value(value)?);
        let (key, value): (&[u8], &[u8]) = (&key, &value);
        Self::write(slf, |transaction, keyspace| transaction.put(keyspace, key, value))
    }

    /// Adds an operand to the value of a key. It is not a read: two transactions that merge into one key do not conflict.
    fn merge(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, operand: &Bound<'_, PyAny>) -> PyResult<()> {
        let (key, operand) = (slf.as_super().get().codec.encode(key)?, codec::operand(operand)?);
        let (key, operand): (&[u8], &[u8]) = (&key, &operand);
        Self::write(slf, |transaction, keyspace| transaction.merge(keyspace, key, operand))
    }

    /// Sets the value of a key until a time; see `Keyspace.put_until()`.
    fn put_until(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        time: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (key, value) = (slf.as_super().get().codec.encode(key)?, codec::value(value)?);
        let (key, value, time): (&[u8], &[u8], _) = (&key, &value, self::time(time)?);
        Self::write(slf, |transaction, keyspace| transaction.put_until(keyspace, key, value, time))
    }

    /// Deletes a key; an absent key is no error.
    fn delete(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = slf.as_super().get().codec.encode(key)?;
        let key: &[u8] = &key;
        Self::write(slf, |transaction, keyspace| transaction.delete(keyspace, key))
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::put(slf, key, value)
    }

    fn __delitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let reader = slf.as_super().get();
        found(key, reader.find(slf.py(), &reader.codec.encode(key)?)?)?;
        Self::delete(slf, key)
    }

    /// Deletes all keys between two keys.
    #[pyo3(signature = (lower = None, upper = None, *, include_lower = true, include_upper = false))]
    fn delete_range(
        slf: &Bound<'_, Self>,
        lower: Option<&Bound<'_, PyAny>>,
        upper: Option<&Bound<'_, PyAny>>,
        include_lower: bool,
        include_upper: bool,
    ) -> PyResult<()> {
        let codec = slf.as_super().get().codec;
        let limits = bounds::limits(codec, (lower, include_lower), (upper, include_upper))?;
        Self::write(slf, |transaction, keyspace| transaction.delete_range(keyspace, limits))
    }

    /// Deletes all keys that begin with `prefix`.
    fn delete_prefix(slf: &Bound<'_, Self>, prefix: &Bound<'_, PyAny>) -> PyResult<()> {
        let prefix = slf.as_super().get().codec.encode_prefix(prefix)?;
        let prefix: &[u8] = &prefix;
        Self::write(slf, |transaction, keyspace| transaction.delete_prefix(keyspace, prefix))
    }

    /// Remembers the writes so far, by a number for `roll_back_to()`.
    fn savepoint(&self, py: Python<'_>) -> PyResult<u64> {
        let shared = self.0.get().or_raise(py)?;
        run(py, || shared.with(|transaction| Ok(transaction.savepoint().0)))
    }

    /// Removes the writes since a savepoint, which can be returned to again.
    fn roll_back_to(&self, py: Python<'_>, savepoint: u64) -> PyResult<()> {
        let shared = self.0.get().or_raise(py)?;
        run(py, || shared.with(|transaction| Ok(transaction.roll_back_to(Savepoint(savepoint))?)))
    }

    /// Writes all or nothing, and ends the transaction and its scans. `ConflictError`: another write has changed what it has read or written.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let shared = self.0.get().or_raise(py)?;
        run(py, || shared.commit())
    }

    /// Ends the transaction and its scans, and writes nothing.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let shared = self.0.get().or_raise(py)?;
        run(py, || shared.end().map(drop).ok_or_else(ended))
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
        let shared = self.0.get().or_raise(py)?;
        if class.is_some() {
            self.end(py);
            return Ok(());
        }
        // The block may have ended it.
        run(py, || if shared.is_open() { shared.commit() } else { Ok(()) })
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let name = slf.as_super().get().handle.name().or_raise(slf.py())?;
        let is_open = slf.get().0.get().is_ok_and(SharedTransaction::is_open);
        let state = if is_open { "open" } else { "ended" };
        Ok(format!("<tamis.Transaction of keyspace {name:?}, {state}>"))
    }
}
