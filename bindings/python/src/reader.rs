//! Reads of a keyspace: the common base of keyspaces, databases, snapshots and transactions.

use pyo3::{
    exceptions::PyKeyError,
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyList, PyMemoryView, PySlice, PyString, PyTuple, PyType},
};
use tamis::Slice;
use tamis_bindings_common::{
    columns::Parts,
    scan::{Direction, Selection},
};

use crate::{
    bounds,
    buffer::{Buffer, Memory},
    codec::Codec,
    error::{OrRaise, invalid, raise, run, wrong_type},
    handle::{Handle, closed},
    scan::{Scan, ScanOptions},
};

/// A read-only mapping from keys to values.
#[pyclass(module = "tamis._tamis", frozen, subclass, mapping, generic, weakref)]
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) handle: Handle,
    pub(crate) codec: Codec,
}

/// The parameters of `range()` and `prefix()` that do not select entries.
#[derive(Debug, Clone, Copy, Default)]
struct ScanArguments {
    reverse: bool,
    limit: Option<i64>,
    keys_only: bool,
    values_only: bool,
}

impl ScanArguments {
    fn options(self, py: Python<'_>, codec: Codec) -> PyResult<ScanOptions> {
        let parts = match (self.keys_only, self.values_only) {
            (false, false) => Parts::Both,
            (true, false) => Parts::Keys,
            (false, true) => Parts::Values,
            (true, true) => {
                let message = "keys_only and values_only exclude each other; give one of them";
                return Err(invalid(py, message));
            }
        };
        let direction = if self.reverse { Direction::Backward } else { Direction::Forward };
        let limit = self.limit.map(u64::try_from).transpose();
        let limit = limit.map_err(|_| invalid(py, "limit: give 0 or more, or None"))?;
        Ok(ScanOptions { direction, parts, limit, codec })
    }
}

impl Reader {
    pub(crate) const fn new(handle: Handle, codec: Codec) -> Self {
        Self { handle, codec }
    }

    /// The value of a key.
    #[inline]
    pub(crate) fn find(&self, py: Python<'_>, key: &[u8]) -> PyResult<Option<Slice>> {
        let point = self.handle.read_point().or_raise(py)?;
        run(py, || point.get(key))
    }

    /// A scan over a selection.
    pub(crate) fn scan(&self, py: Python<'_>, selection: &Selection, options: ScanOptions) -> PyResult<Scan> {
        let point = self.handle.read_point().or_raise(py)?;
        // The scan reads nothing before its first step.
        let scan = point.scan(selection, options.direction).or_raise(py)?;
        Ok(Scan::new(scan, options, self.handle.closed_flag().clone()))
    }

    fn scan_all(&self, py: Python<'_>, arguments: ScanArguments) -> PyResult<Scan> {
        self.scan(py, &Selection::ALL, arguments.options(py, self.codec)?)
    }

    /// One end of the keyspace.
    fn end<'py>(&self, py: Python<'py>, reverse: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.scan_all(py, ScanArguments { reverse, limit: Some(1), ..ScanArguments::default() })?.next(py)
    }

    /// A view of `tamis/_views.py`.
    fn view<'py>(slf: &Bound<'py, Self>, class: &str) -> PyResult<Bound<'py, PyAny>> {
        static VIEWS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
        let py = slf.py();
        let views = VIEWS.get_or_try_init(py, || py.import("tamis._views").map(Bound::unbind))?;
        views.bind(py).getattr(class)?.call1((slf,))
    }
}

/// The value of a key, or the exception for an absent one.
pub(crate) fn found<'py>(key: &Bound<'py, PyAny>, value: Option<Slice>) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Some(value) => Ok(PyBytes::new(key.py(), &value).into_any()),
        None => Err(PyKeyError::new_err((key.clone().unbind(),))),
    }
}

#[pymethods]
impl Reader {
    /// The name of the keyspace.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.name().map(str::to_owned).or_raise(py)
    }

    /// The name of the codec of the keys.
    #[getter]
    fn key_codec(&self) -> &'static str {
        self.codec.name()
    }

    /// The value of a key, or `default`.
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.find(py, &self.codec.encode(key)?)? {
            Some(value) => Ok(Some(PyBytes::new(py, &value).into_any())),
            None => Ok(default),
        }
    }

    /// The value of a key as a read-only `memoryview`, or `default`. A long value is not copied: the view keeps its block in memory.
    #[pyo3(signature = (key, default = None))]
    fn get_view<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.find(py, &self.codec.encode(key)?)? {
            Some(value) => {
                let buffer = Bound::new(py, Buffer(Memory::Value(value)))?;
                Ok(Some(PyMemoryView::from(buffer.as_any())?.into_any()))
            }
            None => Ok(default),
        }
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>() {
            let selection = bounds::selection(bounds::of_slice(self.codec, slice)?);
            let options = ScanArguments::default().options(py, self.codec)?;
            return Ok(Bound::new(py, self.scan(py, &selection, options)?)?.into_any());
        }
        found(key, self.find(py, &self.codec.encode(key)?)?)
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.find(py, &self.codec.encode(key)?)?.is_some())
    }

    /// The values of keys at one point in time; `None` for absent keys.
    fn multi_get<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        if keys.is_instance_of::<PyBytes>() || keys.is_instance_of::<PyString>() {
            return Err(wrong_type("keys", "an iterable of keys", keys));
        }
        let objects = keys.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let encoded = objects.iter().map(|key| self.codec.encode(key)).collect::<PyResult<Vec<_>>>()?;
        let keys: Vec<&[u8]> = encoded.iter().map(|key| &**key).collect();
        let point = self.handle.read_point().or_raise(py)?;
        let values = run(py, || point.multi_get(&keys))?;
        PyList::new(py, values.iter().map(|value| value.as_ref().map(|value| PyBytes::new(py, value))))
    }

    /// The entries between two keys, in key order.
    #[pyo3(signature = (lower = None, upper = None, *, include_lower = true, include_upper = false, reverse = false, limit = None, keys_only = false, values_only = false))]
    #[expect(clippy::too_many_arguments, reason = "they are keyword arguments")]
    fn range(
        &self,
        py: Python<'_>,
        lower: Option<&Bound<'_, PyAny>>,
        upper: Option<&Bound<'_, PyAny>>,
        include_lower: bool,
        include_upper: bool,
        reverse: bool,
        limit: Option<i64>,
        keys_only: bool,
        values_only: bool,
    ) -> PyResult<Scan> {
        let limits = bounds::limits(self.codec, (lower, include_lower), (upper, include_upper))?;
        let arguments = ScanArguments { reverse, limit, keys_only, values_only };
        self.scan(py, &bounds::selection(limits), arguments.options(py, self.codec)?)
    }

    /// The entries whose keys begin with `prefix`, in key order.
    #[pyo3(signature = (prefix, *, reverse = false, limit = None, keys_only = false, values_only = false))]
    fn prefix(
        &self,
        py: Python<'_>,
        prefix: &Bound<'_, PyAny>,
        reverse: bool,
        limit: Option<i64>,
        keys_only: bool,
        values_only: bool,
    ) -> PyResult<Scan> {
        let selection = Selection::Prefix(self.codec.encode_prefix(prefix)?.to_vec());
        let arguments = ScanArguments { reverse, limit, keys_only, values_only };
        self.scan(py, &selection, arguments.options(py, self.codec)?)
    }

    /// The entry with the smallest key; `None` if there is none.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.end(py, false)
    }

    /// The entry with the largest key; `None` if there is none.
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.end(py, true)
    }

    /// The approximate number of keys between two keys; reads no blocks.
    #[pyo3(signature = (lower = None, upper = None))]
    fn approximate_count(
        &self,
        py: Python<'_>,
        lower: Option<&Bound<'_, PyAny>>,
        upper: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let limits = bounds::half_open(self.codec, lower, upper)?;
        let keyspace = self.handle.keyspace().or_raise(py)?;
        run(py, || Ok(keyspace.approximate_count(limits)?))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Scan> {
        self.scan_all(py, ScanArguments { keys_only: true, ..ScanArguments::default() })
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Scan> {
        self.scan_all(py, ScanArguments { keys_only: true, reverse: true, ..ScanArguments::default() })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.scan_all(py, ScanArguments { keys_only: true, ..ScanArguments::default() })?.count(py)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.end(py, false)?.is_some())
    }

    /// The keys, as a set-like view.
    fn keys<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::view(slf, "KeysView")
    }

    /// The values, as a view.
    fn values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::view(slf, "ValuesView")
    }

    /// The entries, as a set-like view.
    fn items<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::view(slf, "ItemsView")
    }
}

/// A snapshot of a database: the entries of a keyspace at the moment of `snapshot()`. A context manager that closes it.
#[pyclass(module = "tamis._tamis", frozen, extends = Reader, generic)]
#[derive(Debug)]
pub(crate) struct Snapshot;

impl Snapshot {
    /// A snapshot of the current state.
    pub(crate) fn take(reader: &Reader, py: Python<'_>) -> PyResult<Py<Self>> {
        let db = reader.handle.db().or_raise(py)?;
        let snapshot = run(py, || Ok(db.snapshot()))?;
        Self::create(&reader.handle, snapshot, reader.codec, py)
    }

    fn create(
        handle: &Handle,
        snapshot: tamis::Snapshot,
        codec: Codec,
        py: Python<'_>,
    ) -> PyResult<Py<Self>> {
        let handle = handle.with_snapshot(snapshot).or_raise(py)?;
        Py::new(py, (Self, Reader::new(handle, codec)))
    }
}

#[pymethods]
impl Snapshot {
    /// The same moment of another keyspace.
    fn of<'py>(slf: &Bound<'py, Self>, keyspace: &Bound<'py, Reader>) -> PyResult<Py<Self>> {
        let (py, this, other) = (slf.py(), slf.as_super().get(), keyspace.get());
        if !this.handle.is_of_same_database(&other.handle) {
            let message =
                "keyspace: it belongs to another database; use a keyspace of the database of the snapshot";
            return Err(invalid(py, message));
        }
        match this.handle.snapshot().or_raise(py)? {
            Some(snapshot) => Self::create(&other.handle, snapshot, other.codec, py),
            None => Err(raise(py, closed())),
        }
    }

    /// The sequence number of the newest write in the snapshot: the position behind it, for `Database.changes()`.
    #[getter]
    fn sequence(slf: &Bound<'_, Self>) -> PyResult<u64> {
        let py = slf.py();
        match slf.as_super().get().handle.snapshot().or_raise(py)? {
            Some(snapshot) => Ok(snapshot.sequence()),
            None => Err(raise(py, closed())),
        }
    }

    /// Closes the snapshot, so that compactions can drop the versions that only it needs.
    fn close(slf: &Bound<'_, Self>) {
        let reader = slf.as_super().get();
        slf.py().detach(|| reader.handle.close_snapshot());
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        slf: &Bound<'_, Self>,
        _class: Option<&Bound<'_, PyType>>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        Self::close(slf);
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!(
            "<tamis.Snapshot of keyspace {:?}>",
            slf.as_super().get().handle.name().or_raise(slf.py())?
        ))
    }
}

/// The two items of an entry.
pub(crate) fn entry<'py>(entry: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    if let Ok(tuple) = entry.cast::<PyTuple>()
        && tuple.len() == 2
    {
        return Ok((tuple.get_item(0)?, tuple.get_item(1)?));
    }
    entry.extract().map_err(|_| wrong_type("entries", "pairs (key, value)", entry))
}
