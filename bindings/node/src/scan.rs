//! Iterators: the entries of a range at the snapshot of their creation, in chunks.
//!
//! The creation takes the snapshot and reads nothing. The first read, on the thread pool, creates the scan of the engine, which owns the
//! state that it reads, and releases the snapshot. A seek is executed by the next read.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use napi_derive::napi;
use tamis::{Slice, Snapshot};
use tamis_bindings_common::{
    columns::{ChunkLimit, Parts},
    scan::{Direction, Selection, scan, step},
};

use napi::bindgen_prelude::AsyncTask;

use crate::{
    entries::Entries,
    error::{Fault, Thrown},
    packed::{self, filled},
    range::Range,
    work::{Work, spawn},
};

/// A key and its value.
type Entry<'a> = (&'a [u8], &'a [u8]);

/// A scan of the engine, and the empty key, which is before all others.
#[derive(Debug)]
pub(crate) struct EntryScan {
    start: Option<(Arc<Entries>, Snapshot)>,
    range: Range,
    direction: Direction,
    parts: Parts,
    /// `None`: nothing was read yet.
    scan: Option<tamis::Scan>,
    /// The value of the empty key, if the range contains it.
    empty: Option<Slice>,
    /// Whether the scan has not passed the empty key.
    is_empty_next: bool,
    /// A seek that the next read executes.
    target: Option<Vec<u8>>,
    /// A seek to a key outside of the range: there are no entries.
    is_outside: bool,
    /// An error that follows the entries of the last chunk.
    failure: Option<Fault>,
}

impl EntryScan {
    pub(crate) const fn new(
        entries: Arc<Entries>,
        snapshot: Snapshot,
        range: Range,
        direction: Direction,
        parts: Parts,
    ) -> Self {
        Self {
            start: Some((entries, snapshot)),
            range,
            direction,
            parts,
            scan: None,
            empty: None,
            is_empty_next: false,
            target: None,
            is_outside: false,
            failure: None,
        }
    }

    /// The next read begins at a key.
    fn seek(&mut self, target: Vec<u8>) {
        self.failure = None;
        self.is_outside = !self.range.contains(&target);
        self.target = Some(target);
    }

    /// Executes the start and the last seek.
    fn prepare(&mut self) -> Result<(), Fault> {
        if let Some((entries, snapshot)) = self.start.take() {
            if self.range.contains(b"") {
                self.empty = entries.get(Some(&snapshot), b"")?;
            }
            self.is_empty_next = self.empty.is_some();
            let selection = Selection::Range(self.range.lower.clone(), self.range.upper.clone());
            self.scan = Some(scan(&entries.keyspace, Some(&snapshot), &selection, self.direction));
        }
        let (Some(target), Some(scan)) = (self.target.take(), &mut self.scan) else { return Ok(()) };
        match self.direction {
            Direction::Forward => {
                self.is_empty_next = self.empty.is_some() && target.is_empty();
                scan.seek(target)?;
            }
            Direction::Backward => {
                self.is_empty_next = self.empty.is_some();
                scan.seek_for_prev(target)?;
            }
        }
        Ok(())
    }

    /// The next entry.
    #[inline]
    fn advance(&mut self) -> Result<Option<Entry<'_>>, Fault> {
        let is_empty_first = self.direction == Direction::Forward && self.is_empty_next;
        if !is_empty_first
            && let Some(scan) = &mut self.scan
            && step(scan, self.direction)?
        {
            return Ok(self.scan.as_ref().map(|scan| (scan.key(), scan.value())));
        }
        let is_next = mem::take(&mut self.is_empty_next);
        Ok(self.empty.as_deref().filter(|_| is_next).map(|value| (b"".as_slice(), value)))
    }

    /// Appends the next entries, packed; returns whether there are no more. A chunk has at least one entry unless there are none.
    pub(crate) fn fill(&mut self, limit: ChunkLimit, chunk: &mut Vec<u8>) -> Result<bool, Fault> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.prepare()?;
        if self.is_outside {
            return Ok(true);
        }
        let (begin, parts) = (chunk.len(), self.parts);
        for _ in 0..limit.entry_count {
            match self.advance() {
                Ok(Some((key, value))) => {
                    if parts != Parts::Values {
                        packed::push(chunk, key);
                    }
                    if parts != Parts::Keys {
                        packed::push(chunk, value);
                    }
                }
                Ok(None) => return Ok(true),
                Err(fault) if chunk.len() > begin => {
                    self.failure = Some(fault);
                    break;
                }
                Err(fault) => return Err(fault),
            }
            if chunk.len() - begin >= limit.bytes {
                break;
            }
        }
        Ok(false)
    }
}

/// The scan of an iterator, until it is closed.
#[napi]
#[derive(Debug)]
pub struct Scan(Arc<Mutex<Option<EntryScan>>>);

impl Scan {
    pub(crate) fn new(scan: EntryScan) -> Self {
        Self(Arc::new(Mutex::new(Some(scan))))
    }
}

#[napi]
impl Scan {
    /// Reads the next entries, at most `count`, and none after `bytes`. The first byte of the result says whether there are no more.
    #[napi]
    pub fn read(&self, count: u32, bytes: u32) -> AsyncTask<Work<Vec<u8>>> {
        let scan = Arc::clone(&self.0);
        spawn(move || {
            let mut scan = scan.lock().unwrap_or_else(PoisonError::into_inner);
            let scan = scan.as_mut().ok_or_else(not_open)?;
            let mut chunk = vec![0];
            let limit = ChunkLimit { entry_count: count as usize, bytes: bytes as usize };
            if scan.fill(limit, &mut chunk)? {
                chunk.splice(..1, [1]);
            }
            Ok(chunk)
        })
    }

    /// The next read begins at the key in `buffer`.
    #[napi(catch_unwind)]
    pub fn seek(&self, buffer: &[u8], length: u32) -> Result<(), Thrown> {
        let target = filled(buffer, length)?.to_vec();
        if let Some(scan) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            scan.seek(target);
        }
        Ok(())
    }

    /// Releases the state that the scan reads; a second call does nothing.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

#[cold]
fn not_open() -> Fault {
    Fault::new("LEVEL_ITERATOR_NOT_OPEN", "Iterator is not open: create another one with iterator()")
}
