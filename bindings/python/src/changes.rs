//! The change feed as a Python iterator, and its changes.
//!
//! A call that waits looks for a change in short waits without the interpreter's lock, and checks for signals and for the close of the feed between
//! them. So an interrupt ends it, and `close()` from another thread. Keys are bytes: the codec of a keyspace is not stored, and a feed has the writes of all
//! keyspaces. A program gives the keyspace whose codec decodes them.

use std::{
    ops::ControlFlow,
    sync::{
        Mutex, MutexGuard, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use pyo3::{
    prelude::*,
    types::{PyList, PyType},
};
use tamis::{BatchWrite, Change};
use tamis_bindings_common::{Code, Failure, fork::Guarded};

use crate::{
    batch::tuple_of,
    codec::Codec,
    error::{OrRaise, invalid, raise, run, wrong_type},
    handle::{ClosedFlag, closed},
    reader::Reader,
};

/// The longest wait between checks for signals.
const SLICE: Duration = Duration::from_millis(50);
/// Writes of an ingest that are read without the interpreter's lock.
const CHUNK_WRITES: usize = 256;

/// An iterator over the changes behind a position, each once, in the order of the commits. `for change in changes` waits for the next one.
#[pyclass(module = "tamis._tamis", frozen)]
#[derive(Debug)]
pub(crate) struct Changes {
    /// `None`: the feed is closed.
    feed: Mutex<Option<Guarded<tamis::Changes>>>,
    is_closed: AtomicBool,
    is_database_closed: ClosedFlag,
    /// Checks that no child process uses the feed, without its lock.
    owner: Guarded<()>,
}

impl Changes {
    pub(crate) fn new(feed: tamis::Changes, is_database_closed: ClosedFlag) -> Self {
        let (feed, is_closed) = (Mutex::new(Some(Guarded::new(feed))), AtomicBool::new(false));
        Self { feed, is_closed, is_database_closed, owner: Guarded::new(()) }
    }

    /// The lock of the feed; `None` if another thread has it.
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Guarded<tamis::Changes>>>> {
        match self.feed.try_lock() {
            Ok(feed) => Some(feed),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The open feed, for this thread.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<Guarded<tamis::Changes>>>> {
        self.owner.get().or_raise(py)?;
        let feed = self.try_lock().ok_or_else(|| {
            let message = "another thread is using this feed; give each thread a separate feed";
            raise(py, Failure::new(Code::Busy, message))
        })?;
        self.check_open().or_raise(py)?;
        Ok(feed)
    }

    fn check_open(&self) -> Result<(), Failure> {
        if self.is_database_closed.load(Ordering::Relaxed) {
            return Err(closed());
        }
        if self.is_closed.load(Ordering::Relaxed) {
            let message = "the feed is closed; open another one with changes() at its position";
            return Err(Failure::new(Code::Closed, message));
        }
        Ok(())
    }

    /// The next change; waits for it until the timeout, or without end.
    fn wait<'py>(&self, py: Python<'py>, timeout: Option<Duration>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut locked = self.lock(py)?;
        let feed = &mut *locked;
        let mut left = timeout;
        let found = loop {
            let slice = left.map_or(SLICE, |left| left.min(SLICE));
            let found = run(py, || match feed.as_mut() {
                Some(feed) => Ok(feed.get_mut()?.next_within(slice)?),
                None => Ok(None),
            })?;
            left = left.map(|left| left.saturating_sub(slice));
            if found.is_some() || left == Some(Duration::ZERO) {
                break found;
            }
            py.check_signals()?;
            if let Err(failure) = self.check_open() {
                let feed = feed.take();
                py.detach(|| drop(feed));
                return Err(raise(py, failure));
            }
        };
        found.map(|change| to_python(py, change)).transpose()
    }
}

#[pymethods]
impl Changes {
    /// The place behind the last change that was returned. A program stores it with what it has done, and opens the next feed there.
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<u64> {
        let feed = self.lock(py)?;
        let feed = feed.as_ref().map(|feed| feed.get().or_raise(py)).transpose()?;
        Ok(feed.map_or(0, |feed| feed.position().sequence()))
    }

    /// The next change, or `None` if there is none yet.
    fn try_next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.wait(py, Some(Duration::ZERO))
    }

    /// The next change; waits for it, at most `timeout` seconds, after which it returns `None`.
    #[pyo3(signature = (timeout = None))]
    fn next<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let timeout = timeout.map(|seconds| match Duration::try_from_secs_f64(seconds) {
            Ok(timeout) => Ok(timeout),
            Err(_) if seconds > 0.0 => Ok(Duration::MAX),
            Err(_) => Err(invalid(py, format!("timeout: {seconds} is not valid; give 0 or more, or None"))),
        });
        self.wait(py, timeout.transpose()?)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.wait(py, None)
    }

    /// Closes the feed; a thread that waits for a change gets `ClosedError`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.owner.get().or_raise(py)?;
        self.is_closed.store(true, Ordering::Relaxed);
        // A thread that waits closes it.
        let feed = self.try_lock().and_then(|mut feed| feed.take());
        py.detach(|| drop(feed));
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _class: Option<&Bound<'_, PyType>>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.position(py) {
            Ok(position) => format!("<tamis.Changes behind {position}>"),
            Err(_) => "<tamis.Changes>".to_owned(),
        }
    }
}

fn to_python(py: Python<'_>, change: Change) -> PyResult<Bound<'_, PyAny>> {
    match change {
        Change::Batch(batch) => Ok(Bound::new(py, CommittedBatch(batch))?.into_any()),
        Change::Ingest(tables) => Ok(Bound::new(py, IngestedTables(Guarded::new(tables)))?.into_any()),
        Change::KeyspaceCreated { name, sequence } => {
            Ok(Bound::new(py, KeyspaceCreated { name, sequence })?.into_any())
        }
        Change::KeyspaceDropped { name, sequence } => {
            Ok(Bound::new(py, KeyspaceDropped { name, sequence })?.into_any())
        }
        _ => {
            let message = "a bug in Tamis: the feed has a change of an unknown kind; report the bug";
            Err(raise(py, Failure::new(Code::Panic, message)))
        }
    }
}

/// A batch or a transaction that was committed, with its writes in the order in which they were added.
#[pyclass(module = "tamis._tamis", frozen)]
#[derive(Debug)]
pub(crate) struct CommittedBatch(tamis::CommittedBatch);

#[pymethods]
impl CommittedBatch {
    /// The sequence number of its last write: the position behind it.
    #[getter]
    const fn sequence(&self) -> u64 {
        self.0.last_sequence()
    }

    /// The writes as pairs of the keyspace's name and a tuple of `WriteBatch.writes()`, with keys in bytes.
    #[getter]
    fn writes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for (name, write) in self.0.writes() {
            list.append((name, tuple_of(py, Codec::Bytes, write)?))?;
        }
        Ok(list)
    }

    /// The writes to the keyspace with the name of `keyspace`, as tuples of `WriteBatch.writes()`, with keys decoded by its codec.
    fn writes_to<'py>(&self, py: Python<'py>, keyspace: &Bound<'py, Reader>) -> PyResult<Bound<'py, PyList>> {
        let reader = keyspace.get();
        let name = reader.handle.name().or_raise(py)?;
        let list = PyList::empty(py);
        for (_, write) in self.0.writes().filter(|(of, _)| *of == name) {
            list.append(tuple_of(py, reader.codec, write)?)?;
        }
        Ok(list)
    }

    fn __repr__(&self) -> String {
        format!("<tamis.CommittedBatch of {} writes at {}>", self.0.writes().count(), self.sequence())
    }
}

/// Tables that were ingested.
#[pyclass(module = "tamis._tamis", frozen)]
#[derive(Debug)]
pub(crate) struct IngestedTables(Guarded<tamis::IngestedTables>);

#[pymethods]
impl IngestedTables {
    /// The sequence number of all their entries: the position behind the ingest.
    #[getter]
    fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.get().or_raise(py)?.sequence())
    }

    /// The name of the keyspace; empty if it was dropped before the feed has read the ingest.
    #[getter]
    fn keyspace(&self, py: Python<'_>) -> PyResult<&str> {
        Ok(self.0.get().or_raise(py)?.keyspace())
    }

    /// Calls `function` with each write of the tables, a tuple of `WriteBatch.writes()`: range deletes first, then puts and deletes in key order. Keys are bytes, or decoded by
    /// the codec of `keyspace`. `ChangesLostError`: a table was deleted.
    #[pyo3(signature = (function, *, keyspace = None))]
    fn for_each(
        &self,
        py: Python<'_>,
        function: &Bound<'_, PyAny>,
        keyspace: Option<&Bound<'_, Reader>>,
    ) -> PyResult<()> {
        if !function.is_callable() {
            return Err(wrong_type("function", "a function of a write", function));
        }
        let codec = keyspace.map_or(Codec::Bytes, |keyspace| keyspace.get().codec);
        let tables = self.0.get().or_raise(py)?;
        let shared = function.clone().unbind();
        let (mut chunk, mut raised) = (Vec::new(), None);
        run(py, || {
            tables.for_each(|write| {
                chunk.extend(OwnedWrite::of(&write));
                if chunk.len() < CHUNK_WRITES {
                    return ControlFlow::Continue(());
                }
                raised = Python::attach(|py| pass_on(py, shared.bind(py), codec, &mut chunk)).err();
                if raised.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            Ok(())
        })?;
        raised.map_or(Ok(()), Err)?;
        pass_on(py, function, codec, &mut chunk)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let tables = self.0.get().or_raise(py)?;
        Ok(format!("<tamis.IngestedTables of keyspace {:?} at {}>", tables.keyspace(), tables.sequence()))
    }
}

/// A copy of a write: its kind, its key, and its value, operand or upper bound.
struct OwnedWrite {
    kind: WriteKind,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

#[derive(Clone, Copy)]
enum WriteKind {
    Put,
    PutUntil(SystemTime),
    Merge,
    Delete,
    DeleteRange,
}

impl OwnedWrite {
    /// Copies a write; `None` for kinds that this version does not know.
    fn of(write: &BatchWrite<'_>) -> Option<Self> {
        let (kind, key, value) = match *write {
            BatchWrite::Put { key, value } => (WriteKind::Put, key, Some(value)),
            BatchWrite::PutUntil { key, value, time } => (WriteKind::PutUntil(time), key, Some(value)),
            BatchWrite::Merge { key, operand } => (WriteKind::Merge, key, Some(operand)),
            BatchWrite::Delete { key } => (WriteKind::Delete, key, None),
            BatchWrite::DeleteRange { lower, upper } => (WriteKind::DeleteRange, lower, upper),
            _ => return None,
        };
        Some(Self { kind, key: key.to_vec(), value: value.map(<[u8]>::to_vec) })
    }

    fn borrow(&self) -> BatchWrite<'_> {
        let key = self.key.as_slice();
        let value = self.value.as_deref().unwrap_or_default();
        match self.kind {
            WriteKind::Put => BatchWrite::Put { key, value },
            WriteKind::PutUntil(time) => BatchWrite::PutUntil { key, value, time },
            WriteKind::Merge => BatchWrite::Merge { key, operand: value },
            WriteKind::Delete => BatchWrite::Delete { key },
            WriteKind::DeleteRange => BatchWrite::DeleteRange { lower: key, upper: self.value.as_deref() },
        }
    }
}

/// Calls a function with writes, and removes them.
fn pass_on(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    codec: Codec,
    writes: &mut Vec<OwnedWrite>,
) -> PyResult<()> {
    py.check_signals()?;
    for write in writes.drain(..) {
        function.call1((tuple_of(py, codec, write.borrow())?,))?;
    }
    Ok(())
}

/// A keyspace that was created.
#[pyclass(module = "tamis._tamis", frozen, get_all)]
#[derive(Debug)]
pub(crate) struct KeyspaceCreated {
    /// Its name.
    name: String,
    /// The position behind the change.
    sequence: u64,
}

#[pymethods]
impl KeyspaceCreated {
    fn __repr__(&self) -> String {
        format!("<tamis.KeyspaceCreated {:?} at {}>", self.name, self.sequence)
    }
}

/// A keyspace that was dropped, with all its entries.
#[pyclass(module = "tamis._tamis", frozen, get_all)]
#[derive(Debug)]
pub(crate) struct KeyspaceDropped {
    /// Its name.
    name: String,
    /// The position behind the change.
    sequence: u64,
}

#[pymethods]
impl KeyspaceDropped {
    fn __repr__(&self) -> String {
        format!("<tamis.KeyspaceDropped {:?} at {}>", self.name, self.sequence)
    }
}
