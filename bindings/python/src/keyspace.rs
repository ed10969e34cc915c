//! Keyspaces: mutable mappings from keys to values.

use std::path::PathBuf;

use pyo3::{
    exceptions::{PyKeyError, PyTypeError},
    prelude::*,
    types::{PyBytes, PyDict, PySlice, PyString, PyTuple},
};
use tamis::{Durability, IngestOptions, TransactionOptions, WriteBatch as Batch};
use tamis_bindings_common::{
    Code,
    columns::Parts,
    report,
    scan::{Direction, Selection},
    table_filters_json,
};

use crate::{
    batch::WriteBatch,
    bounds,
    bulk::{BatchSink, TableSink, load},
    codec::{self, Codec},
    error::{OrRaise, invalid, run, wrong_type},
    handle::Handle,
    json, options,
    progress::Progress,
    reader::{Reader, Snapshot, found},
    scan::ScanOptions,
    table_writer::TableWriter,
    time::time,
    transaction::Transaction,
};

/// A named, ordered mapping of a database.
#[pyclass(module = "tamis._tamis", frozen, extends = Reader, subclass, mapping, generic)]
#[derive(Debug)]
pub(crate) struct Keyspace;

impl Keyspace {
    pub(crate) fn create(py: Python<'_>, handle: Handle, codec: Codec) -> PyResult<Py<Self>> {
        Py::new(py, (Self, Reader::new(handle, codec)))
    }

    #[inline]
    fn put_with(
        reader: &Reader,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        durability: Durability,
    ) -> PyResult<()> {
        let (key, value) = (reader.codec.encode(key)?, codec::value(value)?);
        let (key, value): (&[u8], &[u8]) = (&key, &value);
        let keyspace = reader.handle.keyspace().or_raise(py)?;
        if durability == Durability::Buffered {
            return run(py, || Ok(keyspace.put(key, value)?));
        }
        Self::write(reader, py, durability, |batch, keyspace| batch.put(keyspace, key, value))
    }

    fn remove(reader: &Reader, py: Python<'_>, key: &[u8], durability: Durability) -> PyResult<()> {
        Self::write(reader, py, durability, |batch, keyspace| batch.delete(keyspace, key))
    }

    /// Writes one batch.
    fn write(
        reader: &Reader,
        py: Python<'_>,
        durability: Durability,
        add: impl FnOnce(&mut Batch, &tamis::Keyspace) -> tamis::Result<()> + Send,
    ) -> PyResult<()> {
        let (db, keyspace) = (reader.handle.db().or_raise(py)?, reader.handle.keyspace().or_raise(py)?);
        run(py, || {
            let mut batch = Batch::new();
            add(&mut batch, keyspace)?;
            Ok(db.write_with(batch, durability)?)
        })
    }
}

#[pymethods]
impl Keyspace {
    /// Sets the value of a key.
    #[pyo3(signature = (key, value, *, durability = "buffered"))]
    fn put(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        durability: &str,
    ) -> PyResult<()> {
        let py = slf.py();
        Self::put_with(slf.as_super().get(), py, key, value, options::durability(py, durability)?)
    }

    /// Adds an operand to the value of a key, without a read: the merge operator of the keyspace (option `merge`) makes the value when the key is read.
    #[pyo3(signature = (key, operand, *, durability = "buffered"))]
    fn merge(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
        durability: &str,
    ) -> PyResult<()> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        let (key, operand) = (reader.codec.encode(key)?, codec::operand(operand)?);
        let (key, operand): (&[u8], &[u8]) = (&key, &operand);
        let durability = options::durability(py, durability)?;
        Self::write(reader, py, durability, |batch, keyspace| batch.merge(keyspace, key, operand))
    }

    /// Sets the value of a key until a time, from which on no reader finds it. The time is a `datetime` with a time zone, or a number of seconds since 1970.
    #[pyo3(signature = (key, value, time, *, durability = "buffered"))]
    fn put_until(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        time: &Bound<'_, PyAny>,
        durability: &str,
    ) -> PyResult<()> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        let (key, value, time) = (reader.codec.encode(key)?, codec::value(value)?, self::time(time)?);
        let (key, value): (&[u8], &[u8]) = (&key, &value);
        let durability = options::durability(py, durability)?;
        Self::write(reader, py, durability, |batch, keyspace| batch.put_until(keyspace, key, value, time))
    }

    /// Deletes a key; an absent key is no error.
    #[pyo3(signature = (key, *, durability = "buffered"))]
    fn delete(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, durability: &str) -> PyResult<()> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        Self::remove(reader, py, &reader.codec.encode(key)?, options::durability(py, durability)?)
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if key.is_instance_of::<PySlice>() {
            return Err(PyTypeError::new_err("a slice cannot be assigned; use update() or batch()"));
        }
        Self::put_with(slf.as_super().get(), slf.py(), key, value, Durability::Buffered)
    }

    fn __delitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        if let Ok(slice) = key.cast::<PySlice>() {
            let limits = bounds::of_slice(reader.codec, slice)?;
            let keyspace = reader.handle.keyspace().or_raise(py)?;
            return run(py, || Ok(keyspace.delete_range(limits)?));
        }
        let encoded = reader.codec.encode(key)?;
        found(key, reader.find(py, &encoded)?)?;
        Self::remove(reader, py, &encoded, Durability::Buffered)
    }

    /// Deletes all keys between two keys by one record.
    #[pyo3(signature = (lower = None, upper = None, *, include_lower = true, include_upper = false))]
    fn delete_range(
        slf: &Bound<'_, Self>,
        lower: Option<&Bound<'_, PyAny>>,
        upper: Option<&Bound<'_, PyAny>>,
        include_lower: bool,
        include_upper: bool,
    ) -> PyResult<()> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        let limits = bounds::limits(reader.codec, (lower, include_lower), (upper, include_upper))?;
        let keyspace = reader.handle.keyspace().or_raise(py)?;
        run(py, || Ok(keyspace.delete_range(limits)?))
    }

    /// Deletes all keys that begin with `prefix` by one record.
    fn delete_prefix(slf: &Bound<'_, Self>, prefix: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        let prefix = reader.codec.encode_prefix(prefix)?;
        let prefix: &[u8] = &prefix;
        let keyspace = reader.handle.keyspace().or_raise(py)?;
        run(py, || Ok(keyspace.delete_prefix(prefix)?))
    }

    /// The filters of each table and how they answered, newest first.
    fn table_filters<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, handle) = (slf.py(), &slf.as_super().get().handle);
        let (db, keyspace) = (handle.db().or_raise(py)?, handle.keyspace().or_raise(py)?);
        let tables = run(py, || Ok(table_filters_json(&db.table_filters(keyspace)?)))?;
        json::to_python(py, &tables)
    }

    /// Deletes all keys by one record.
    fn clear(slf: &Bound<'_, Self>) -> PyResult<()> {
        let keyspace = slf.as_super().get().handle.keyspace().or_raise(slf.py())?;
        run(slf.py(), || Ok(keyspace.clear()?))
    }

    /// Changes the layout, the filters or `expire_after`; sets `merge` of a keyspace without a merge operator. The change is durable when the call returns; the background adapts the tables.
    /// `keys` stores another codec, for later opens: no key is converted.
    #[pyo3(signature = (*, keys = None, **options))]
    fn set_options(
        slf: &Bound<'_, Self>,
        keys: Option<&str>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let keyspace = slf.as_super().get().handle.keyspace().or_raise(py)?;
        let mut changed = options::of_keyspace(keyspace.options(), options)?;
        if let Some(name) = keys {
            changed.key_codec = Codec::from_name(py, name)?.name().to_owned();
        }
        run(py, || Ok(keyspace.set_options(changed)?))
    }

    /// Removes a key and returns its value, or the default.
    #[pyo3(signature = (key, *default))]
    fn pop<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        if default.len() > 1 {
            return Err(PyTypeError::new_err("pop: give the key and at most one default"));
        }
        let encoded = reader.codec.encode(key)?;
        match (reader.find(py, &encoded)?, default.len()) {
            (Some(value), _) => {
                Self::remove(reader, py, &encoded, Durability::Buffered)?;
                Ok(PyBytes::new(py, &value).into_any())
            }
            (None, 0) => found(key, None),
            (None, _) => default.get_item(0),
        }
    }

    /// Removes and returns the entry with the largest key.
    fn popitem<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        let options = ScanOptions {
            direction: Direction::Backward,
            parts: Parts::Both,
            limit: Some(1),
            codec: reader.codec,
        };
        let Some(last) = reader.scan(py, &Selection::ALL, options)?.next(py)? else {
            return Err(PyKeyError::new_err("popitem: the keyspace is empty"));
        };
        let key = last.get_item(0)?;
        Self::remove(reader, py, &reader.codec.encode(&key)?, Durability::Buffered)?;
        Ok(last)
    }

    /// The value of a key; sets it to `default` if the key is absent.
    fn setdefault<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        match reader.find(py, &reader.codec.encode(key)?)? {
            Some(value) => Ok(PyBytes::new(py, &value).into_any()),
            None => {
                Self::put_with(reader, py, key, default, Durability::Buffered)?;
                Ok(default.clone())
            }
        }
    }

    /// Sets the values of a mapping or of pairs in one atomic batch.
    #[pyo3(signature = (entries, *, durability = "buffered"))]
    fn update(slf: &Bound<'_, Self>, entries: &Bound<'_, PyAny>, durability: &str) -> PyResult<()> {
        let batch = Self::batch(slf, durability)?.into_pyobject(slf.py())?;
        let written = batch.call_method1("update", (entries,)).and_then(|_| batch.call_method0("write"));
        if written.is_err() {
            // The caller has the error: the batch is not a forgotten one.
            batch.call_method0("clear")?;
        }
        written.map(drop)
    }

    /// A write batch. Writes without `keyspace=` are in this keyspace.
    #[pyo3(signature = (*, durability = "buffered"))]
    fn batch(slf: &Bound<'_, Self>, durability: &str) -> PyResult<WriteBatch> {
        WriteBatch::new(slf.as_super(), options::durability(slf.py(), durability)?)
    }

    /// A snapshot of the database that reads this keyspace.
    fn snapshot(slf: &Bound<'_, Self>) -> PyResult<Py<Snapshot>> {
        Snapshot::take(slf.as_super().get(), slf.py())
    }

    /// A transaction, which is committed at the end of a `with` block, or rolled back if the block raised an exception. It is a mapping of this keyspace, and
    /// `of()` of another one.
    #[pyo3(signature = (*, isolation = "serializable", durability = "buffered"))]
    fn transaction(slf: &Bound<'_, Self>, isolation: &str, durability: &str) -> PyResult<Py<Transaction>> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        Transaction::begin(reader, py, options::of_transaction(py, isolation, durability)?, 0)
    }

    /// A transaction without conflicts. Waits for its turn; all other writers wait until it ends.
    #[pyo3(signature = (*, durability = "buffered"))]
    fn exclusive(slf: &Bound<'_, Self>, durability: &str) -> PyResult<Py<Transaction>> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        let durability = options::durability(py, durability)?;
        Transaction::begin_exclusive(reader, py, TransactionOptions::default().durability(durability))
    }

    /// Calls `function` with a transaction, commits it and returns the result. After a conflict calls it again, from the ninth time on in an exclusive
    /// transaction. An exception rolls back.
    #[pyo3(signature = (function, *, isolation = "serializable", durability = "buffered"))]
    fn transact<'py>(
        slf: &Bound<'py, Self>,
        function: &Bound<'py, PyAny>,
        isolation: &str,
        durability: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        if !function.is_callable() {
            return Err(wrong_type("function", "a function of the transaction", function));
        }
        let options = options::of_transaction(py, isolation, durability)?;
        let mut attempt = 0;
        loop {
            let transaction = Transaction::begin(reader, py, options, attempt)?.into_bound(py);
            let result = function.call1((&transaction,)).inspect_err(|_| transaction.get().end(py))?;
            match transaction.get().try_commit(py) {
                Err(failure) if failure.code == Code::Conflict => py.check_signals()?,
                committed => return committed.map(|()| result).or_raise(py),
            }
            attempt += 1;
        }
    }

    /// Replaces the value of a key if it is `expected`, atomically; `None` is a key that does not exist. Returns whether it was.
    fn compare_and_put(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        expected: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        let key = reader.codec.encode(key)?;
        let expected = expected.map(codec::value).transpose()?;
        let value = value.map(codec::value).transpose()?;
        let (key, expected, value): (&[u8], _, _) = (&key, expected.as_deref(), value.as_deref());
        let keyspace = reader.handle.keyspace().or_raise(py)?;
        run(py, || Ok(keyspace.compare_and_put(key, expected, value)?))
    }

    /// Writes entries in batches; returns their number. `entries` are pairs, a mapping, an Arrow table, or keys with `values`.
    #[pyo3(signature = (entries, values = None, *, durability = "buffered", progress = None))]
    fn load<'py>(
        slf: &Bound<'py, Self>,
        entries: &Bound<'py, PyAny>,
        values: Option<&Bound<'py, PyAny>>,
        durability: &str,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<u64> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        check_callable(progress.as_ref())?;
        let (db, keyspace) = (reader.handle.db().or_raise(py)?, reader.handle.keyspace().or_raise(py)?);
        let durability = options::durability(py, durability)?;
        let sink = BatchSink { db: db.clone(), keyspace: keyspace.clone(), durability };
        load(py, reader.codec, sink, progress, entries, values).map(|(count, _)| count)
    }

    /// Builds tables from entries in ascending order of keys and adds them atomically; returns a report.
    #[pyo3(signature = (entries, values = None, *, progress = None))]
    fn ingest_sorted<'py>(
        slf: &Bound<'py, Self>,
        entries: &Bound<'py, PyAny>,
        values: Option<&Bound<'py, PyAny>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        check_callable(progress.as_ref())?;
        let (db, keyspace) = (reader.handle.db().or_raise(py)?, reader.handle.keyspace().or_raise(py)?);
        let sink = run(py, || TableSink::new(db.clone(), keyspace.clone()))?;
        let (_, sink) = load(py, reader.codec, sink, progress, entries, values)?;
        match run(py, || sink.finish())? {
            Some(done) => json::to_python(py, &report::ingest(&done)),
            None => Err(invalid(py, "entries: there are none; give at least one entry")),
        }
    }

    /// Begins a table for `ingest()` with the options of the keyspace. The path must not exist.
    fn table_writer(slf: &Bound<'_, Self>, path: PathBuf) -> PyResult<TableWriter> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        let keyspace = reader.handle.keyspace().or_raise(py)?;
        let writer = run(py, || Ok(keyspace.table_writer(&path)?))?;
        Ok(TableWriter::new(writer, reader.codec, path))
    }

    /// Adds finished tables atomically, by a single write that is newer than all earlier writes; returns a report. The files are moved
    /// into the database; with `keep=True` they are copied.
    #[pyo3(signature = (paths, *, keep = false))]
    fn ingest<'py>(
        slf: &Bound<'py, Self>,
        paths: &Bound<'py, PyAny>,
        keep: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        if paths.is_instance_of::<PyBytes>() || paths.is_instance_of::<PyString>() {
            return Err(wrong_type("paths", "a list of paths", paths));
        }
        let paths = paths.try_iter()?.map(|path| path?.extract()).collect::<PyResult<Vec<PathBuf>>>()?;
        if paths.is_empty() {
            return Err(invalid(py, "paths: there are none; give at least one table"));
        }
        let (db, keyspace) = (reader.handle.db().or_raise(py)?, reader.handle.keyspace().or_raise(py)?);
        let done = run(py, || Ok(db.ingest_with(keyspace, &paths, IngestOptions::default().keep(keep))?))?;
        json::to_python(py, &report::ingest(&done))
    }

    /// Compacts a range of keys into the deepest level. `progress` is called with the number of tables that were begun.
    #[pyo3(signature = (lower = None, upper = None, *, progress = None))]
    fn compact(
        slf: &Bound<'_, Self>,
        lower: Option<&Bound<'_, PyAny>>,
        upper: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        let limits = bounds::half_open(reader.codec, lower, upper)?;
        let (db, keyspace) = (reader.handle.db().or_raise(py)?, reader.handle.keyspace().or_raise(py)?);
        Progress::new(progress, "tables")?.run(py, |progress| {
            db.compact_range_with(keyspace, limits, |done| progress.report(done.table_count as u64))?;
            Ok(())
        })
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!("<tamis.Keyspace {:?}>", slf.as_super().get().handle.name().or_raise(slf.py())?))
    }
}

/// Checks a callback before the work begins.
fn check_callable(progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match progress {
        Some(progress) if !progress.is_callable() => {
            Err(wrong_type("progress", "a function of the number of entries", progress))
        }
        _ => Ok(()),
    }
}
