//! Scans as Python iterators: the entries of a range at one point in time.
//!
//! A scan reads chunks of entries without the interpreter's lock, and `__next__` converts one entry of the chunk to Python objects.
//! Chunks grow from a few entries, so that a short scan reads little, to some thousands, so that a long scan rarely releases
//! the lock; a scan with a small limit reads one chunk. After a seek or a turn the first chunk has one entry, and in a transaction, because what is read
//! ahead counts as read. A scan owns the state that it reads. It serves one thread at a time; a second one gets `BusyError`.
//!
//! The position of a scan is between two entries: `prev` after `__next__` returns the same entry. The engine is further, at the end of the chunk, so
//! a turn seeks it to the position, by the keys of the chunk; a scan of values also reads the keys.
//!
//! Cost per entry: one copy of key and value into the chunk, one into Python objects.

use std::sync::{Mutex, MutexGuard, TryLockError, atomic::Ordering};

use pyo3::{
    prelude::*,
    types::{PyBytes, PyList, PyTuple, PyType},
};
use tamis_bindings_common::{
    Code, Failure,
    columns::{ChunkLimit, Columns, Parts},
    fork::Guarded,
    scan::{Direction, Steps},
    transaction::AnyScan,
};

use crate::{
    codec::Codec,
    column::ScannedColumn,
    error::{OrRaise, invalid, raise, run},
    handle::{ClosedFlag, closed},
};

const FIRST_CHUNK_ENTRIES: usize = 32;
const CHUNK_ENTRIES_MAX: usize = 4096;
const CHUNK_BYTES: usize = 256 << 10;
/// Entries that a bulk read reads between checks for signals.
const BULK_CHUNK: ChunkLimit = ChunkLimit { entry_count: 64 << 10, bytes: 16 << 20 };

/// An iterator over the entries, keys or values of a range.
#[pyclass(module = "tamis._tamis", frozen, generic)]
#[derive(Debug)]
pub(crate) struct Scan {
    state: Mutex<State>,
    is_closed: ClosedFlag,
    direction: Direction,
    parts: Parts,
    codec: Codec,
    has_limit: bool,
    /// Checks that no child process uses the scan, without the lock of the state.
    owner: Guarded<()>,
}

#[derive(Debug)]
struct State {
    /// `None`: the scan is closed.
    scan: Option<Guarded<AnyScan>>,
    is_finished: bool,
    /// Entries that may still be read from the engine.
    remaining: u64,
    chunk: Columns,
    chunk_count: usize,
    /// The next entry of the chunk.
    position: usize,
    /// The direction in which the chunk was read.
    direction: Direction,
    next_chunk_entries: usize,
    /// An error that follows the entries of the chunk.
    failure: Option<Failure>,
}

/// The parameters of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanOptions {
    pub(crate) direction: Direction,
    pub(crate) parts: Parts,
    pub(crate) limit: Option<u64>,
    pub(crate) codec: Codec,
}

impl State {
    /// Reads the next chunk; the previous one is used up.
    fn fill(&mut self, parts: Parts) -> Result<(), Failure> {
        self.chunk.clear();
        (self.chunk_count, self.position) = (0, 0);
        if let Some(failure) = self.failure.take() {
            self.is_finished = true;
            return Err(failure);
        }
        let entries = self.next_chunk_entries;
        self.next_chunk_entries = (entries * 4).min(CHUNK_ENTRIES_MAX);
        // The keys are needed for turns.
        let parts = if parts == Parts::Values { Parts::Both } else { parts };
        self.append(parts, ChunkLimit { entry_count: entries, bytes: CHUNK_BYTES })
    }

    /// Seeks the engine to the position, so that it continues in another direction.
    fn turn(&mut self, direction: Direction) -> Result<(), Failure> {
        if direction == self.direction {
            return Ok(());
        }
        let scan = self.scan.as_mut().ok_or_else(scan_closed)?.get_mut()?;
        if self.chunk_count > 0 {
            // The entry before the position in the direction of the chunk is the next one, or it is beyond the first entry of the chunk.
            let is_next = self.position > 0;
            let key = self.chunk.keys.get(self.position.saturating_sub(1));
            scan.with(|scan| match (direction, is_next) {
                (Direction::Forward, true) | (Direction::Backward, false) => Ok(scan.seek(key)?),
                (Direction::Forward, false) | (Direction::Backward, true) => Ok(scan.seek_for_prev(key)?),
            })?;
        }
        self.direction = direction;
        self.restart();
        Ok(())
    }

    /// Forgets the chunk after the engine was positioned elsewhere.
    fn restart(&mut self) {
        self.chunk.clear();
        (self.chunk_count, self.position, self.failure) = (0, 0, None);
        self.next_chunk_entries = 1;
        self.is_finished = self.remaining == 0;
    }

    /// Counts the entries of the chunk that were not returned as unread, against the limit.
    fn return_unread(&mut self) {
        self.remaining = self.remaining.saturating_add((self.chunk_count - self.position) as u64);
    }

    /// Appends entries to the chunk.
    fn append(&mut self, parts: Parts, limit: ChunkLimit) -> Result<(), Failure> {
        let direction = self.direction;
        let scan = self.scan.as_mut().ok_or_else(scan_closed)?.get_mut()?;
        let entry_count = limit.entry_count.min(usize::try_from(self.remaining).unwrap_or(usize::MAX));
        let before = self.chunk.keys.len().max(self.chunk.values.len());
        let filled = scan.fill(&mut self.chunk, direction, parts, ChunkLimit { entry_count, ..limit });
        let count = self.chunk.keys.len().max(self.chunk.values.len()) - before;
        self.chunk_count += count;
        self.remaining -= count as u64;
        match filled {
            Ok(filled) => self.is_finished = filled.is_finished || self.remaining == 0,
            Err(failure) if count > 0 => self.failure = Some(failure),
            Err(failure) => {
                self.is_finished = true;
                return Err(failure);
            }
        }
        Ok(())
    }

    const fn has_entry(&self) -> bool {
        self.position < self.chunk_count
    }
}

impl Scan {
    pub(crate) fn new(scan: AnyScan, options: ScanOptions, is_closed: ClosedFlag) -> Self {
        let first = if matches!(scan, AnyScan::Transaction(_)) { 1 } else { FIRST_CHUNK_ENTRIES };
        let state = State {
            scan: Some(Guarded::new(scan)),
            is_finished: options.limit == Some(0),
            remaining: options.limit.unwrap_or(u64::MAX),
            chunk: Columns::default(),
            chunk_count: 0,
            position: 0,
            direction: options.direction,
            next_chunk_entries: options.limit.map_or(first, |limit| {
                usize::try_from(limit).unwrap_or(CHUNK_ENTRIES_MAX).clamp(1, CHUNK_ENTRIES_MAX)
            }),
            failure: None,
        };
        let ScanOptions { direction, parts, codec, limit } = options;
        let (state, has_limit, owner) = (Mutex::new(state), limit.is_some(), Guarded::new(()));
        Self { state, is_closed, direction, parts, codec, has_limit, owner }
    }

    /// The state, for this thread.
    #[inline]
    fn state(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        self.owner.get().or_raise(py)?;
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(raise(py, closed()));
        }
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let message = "another thread is using this scan; give each thread a separate scan";
                return Err(raise(py, Failure::new(Code::Busy, message)));
            }
        };
        if let Some(scan) = &state.scan {
            scan.get().and_then(AnyScan::check).or_raise(py)?;
        }
        Ok(state)
    }

    /// Makes the next entry available; `false` at the end.
    #[inline]
    fn advance(&self, py: Python<'_>, state: &mut State) -> PyResult<bool> {
        self.advance_to(py, state, self.direction)
    }

    /// Makes the next entry of a direction available; `false` at the end.
    #[inline]
    fn advance_to(&self, py: Python<'_>, state: &mut State, direction: Direction) -> PyResult<bool> {
        if direction != state.direction {
            run(py, || state.turn(direction))?;
        }
        if state.has_entry() {
            return Ok(true);
        }
        if state.scan.is_none() {
            return Err(raise(py, scan_closed()));
        }
        if state.is_finished && state.failure.is_none() {
            return Ok(false);
        }
        let parts = self.parts;
        run(py, || state.fill(parts))?;
        // Built-in functions such as `list` check for signals only here.
        py.check_signals()?;
        Ok(state.has_entry())
    }

    /// The next entry as a Python object.
    #[inline]
    fn take<'py>(&self, py: Python<'py>, state: &mut State) -> PyResult<Bound<'py, PyAny>> {
        let index = state.position;
        state.position += 1;
        match self.parts {
            Parts::Keys => self.codec.decode(py, state.chunk.keys.get(index)),
            Parts::Values => Ok(PyBytes::new(py, state.chunk.values.get(index)).into_any()),
            Parts::Both => {
                let key = self.codec.decode(py, state.chunk.keys.get(index))?;
                let value = PyBytes::new(py, state.chunk.values.get(index)).into_any();
                Ok(PyTuple::new(py, [key, value])?.into_any())
            }
        }
    }

    /// Reads all remaining entries into columns. Checks for signals between chunks.
    fn read_columns(&self, py: Python<'_>) -> PyResult<Columns> {
        let mut state = self.state(py)?;
        let state = &mut *state;
        if state.scan.is_none() {
            return Err(raise(py, scan_closed()));
        }
        if state.direction != self.direction {
            run(py, || state.turn(self.direction))?;
        }
        let mut all = Columns::default();
        for index in state.position..state.chunk_count {
            if self.parts != Parts::Values {
                all.keys.push(state.chunk.keys.get(index));
            }
            if self.parts != Parts::Keys {
                all.values.push(state.chunk.values.get(index));
            }
        }
        let held = state.chunk_count - state.position;
        (state.chunk, state.chunk_count, state.position) = (all, held, 0);
        let parts = self.parts;
        while !state.is_finished && state.failure.is_none() {
            run(py, || state.append(parts, BULK_CHUNK))?;
            py.check_signals()?;
        }
        if let Some(failure) = state.failure.take() {
            state.is_finished = true;
            return Err(raise(py, failure));
        }
        state.chunk_count = 0;
        Ok(std::mem::take(&mut state.chunk))
    }

    /// Counts the remaining entries.
    pub(crate) fn count(&self, py: Python<'_>) -> PyResult<usize> {
        let mut state = self.state(py)?;
        let state = &mut *state;
        if state.direction != self.direction {
            run(py, || state.turn(self.direction))?;
        }
        let mut count = state.chunk_count - state.position;
        state.next_chunk_entries = BULK_CHUNK.entry_count;
        state.position = state.chunk_count;
        while self.advance(py, state)? {
            count += state.chunk_count;
            state.position = state.chunk_count;
            state.next_chunk_entries = BULK_CHUNK.entry_count;
        }
        Ok(count)
    }

    /// The next entry; `None` at the end.
    pub(crate) fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut state = self.state(py)?;
        if self.advance(py, &mut state)? { self.take(py, &mut state).map(Some) } else { Ok(None) }
    }
}

#[pymethods]
impl Scan {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.next(py)
    }

    /// The next entries, at most `count`, as a list; an empty list at the end.
    #[pyo3(name = "take")]
    fn take_list<'py>(&self, py: Python<'py>, count: i64) -> PyResult<Bound<'py, PyList>> {
        let count = usize::try_from(count).map_err(|_| invalid(py, "count: give 0 or more"))?;
        let mut state = self.state(py)?;
        let list = PyList::empty(py);
        while list.len() < count && self.advance(py, &mut state)? {
            while list.len() < count && state.has_entry() {
                list.append(self.take(py, &mut state)?)?;
            }
        }
        Ok(list)
    }

    /// The entry before the position, against the direction of the scan; `None` at the beginning. After `next` it is the same entry.
    fn prev<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.has_limit {
            return Err(invalid(
                py,
                "prev: a scan with a limit moves in one direction; create it without limit=",
            ));
        }
        let opposite = match self.direction {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        };
        let mut state = self.state(py)?;
        if self.advance_to(py, &mut state, opposite)? {
            self.take(py, &mut state).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Moves the scan: the next entry is the first one at or after `key` (reverse scans: at or before it).
    fn seek(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = self.codec.encode(key)?;
        let key: &[u8] = &key;
        let direction = self.direction;
        self.reposition(py, |scan| match direction {
            Direction::Forward => scan.seek(key),
            Direction::Backward => scan.seek_for_prev(key),
        })
    }

    /// Moves the scan before the smallest key.
    fn seek_to_first(&self, py: Python<'_>) -> PyResult<()> {
        self.reposition(py, |scan| {
            scan.seek_to_first();
            Ok(())
        })
    }

    /// Moves the scan after the largest key.
    fn seek_to_last(&self, py: Python<'_>) -> PyResult<()> {
        self.reposition(py, |scan| {
            scan.seek_to_last();
            Ok(())
        })
    }

    /// Reads the remaining entries into numpy arrays.
    #[pyo3(signature = (*, key_dtype = None, value_dtype = None))]
    fn to_numpy<'py>(
        &self,
        py: Python<'py>,
        key_dtype: Option<Bound<'py, PyAny>>,
        value_dtype: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (keys, values) = self.columns(py, "numpy")?;
        py.import("tamis._columns")?.getattr("to_numpy")?.call1((keys, values, key_dtype, value_dtype))
    }

    /// Reads the remaining entries into an Arrow table.
    #[pyo3(signature = (*, value_type = None))]
    fn to_arrow<'py>(
        &self,
        py: Python<'py>,
        value_type: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (keys, values) = self.columns(py, "pyarrow")?;
        py.import("tamis._columns")?.getattr("to_arrow")?.call1((keys, values, value_type))
    }

    /// Ends the scan and releases the state that it reads.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.owner.get().or_raise(py)?;
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return self.state(py).map(drop),
        };
        let scan = state.scan.take();
        state.chunk = Columns::default();
        (state.chunk_count, state.position) = (0, 0);
        drop(state);
        py.detach(|| drop(scan));
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

    fn __repr__(&self) -> String {
        let parts = match self.parts {
            Parts::Both => "entries",
            Parts::Keys => "keys",
            Parts::Values => "values",
        };
        let direction = if self.direction == Direction::Forward { "" } else { " in reverse" };
        format!("<tamis.Scan of {parts}{direction}>")
    }
}

impl Scan {
    /// Positions the engine; the scan continues there in its own direction.
    fn reposition(
        &self,
        py: Python<'_>,
        seek: impl FnOnce(&mut dyn Steps) -> tamis::Result<()> + Send,
    ) -> PyResult<()> {
        let mut state = self.state(py)?;
        let state = &mut *state;
        let direction = self.direction;
        run(py, || {
            let scan = state.scan.as_mut().ok_or_else(scan_closed)?.get_mut()?;
            scan.with(|scan| Ok(seek(scan)?))?;
            // Entries of the chunk that were not returned do not count against the limit.
            state.return_unread();
            state.direction = direction;
            state.restart();
            Ok(())
        })
    }

    /// Reads the remaining entries into columns, after the check that `package` is installed. A part that the scan does not read
    /// is `None`.
    fn columns(&self, py: Python<'_>, package: &str) -> PyResult<(OptionalColumn, OptionalColumn)> {
        py.import("tamis._columns")?.getattr("require")?.call1((package,))?;
        let Columns { keys, values } = self.read_columns(py)?;
        let column = |column, part, codec| {
            (self.parts != part).then(|| ScannedColumn::create(py, column, codec)).transpose()
        };
        Ok((column(keys, Parts::Values, self.codec)?, column(values, Parts::Keys, Codec::Bytes)?))
    }
}

type OptionalColumn = Option<Py<ScannedColumn>>;

#[cold]
fn scan_closed() -> Failure {
    Failure::new(Code::Closed, "the scan is closed; create another one with range()")
}
