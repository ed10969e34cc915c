//! Bulk writes: entries from Python iterables, numpy arrays and Arrow tables, into batches or into tables.
//!
//! Entries are gathered in chunks. A thread writes a chunk while the next one is gathered. Signals are checked and progress is reported
//! between chunks. The wait for the thread releases the interpreter's lock.

use std::{
    path::PathBuf,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use pyo3::prelude::*;
use tamis::{Db, Durability, IngestOptions, IngestReport, Keyspace, TableWriter, WriteBatch};
use tamis_bindings_common::{Code, Failure, columns::Columns, fork::Guarded};
use tempfile::TempDir;

use crate::{
    batch::pairs,
    codec::{self, Codec},
    column::GivenColumn,
    error::{OrRaise, catch_panic, raise, run},
    reader::entry,
};

/// Bytes of keys and values that are written at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Entries that are written at once.
const CHUNK_ENTRIES: usize = 64 << 10;

/// The target of the entries of a bulk write.
pub(crate) trait Sink: Send {
    /// Writes a chunk.
    fn consume(&mut self, chunk: &Columns) -> Result<(), Failure>;
}

/// Writes each chunk as a batch.
#[derive(Debug)]
pub(crate) struct BatchSink {
    pub(crate) db: Db,
    pub(crate) keyspace: Keyspace,
    pub(crate) durability: Durability,
}

impl Sink for BatchSink {
    fn consume(&mut self, chunk: &Columns) -> Result<(), Failure> {
        let mut batch = WriteBatch::new();
        for (key, value) in chunk.keys.iter().zip(chunk.values.iter()) {
            batch.put(&self.keyspace, key, value)?;
        }
        Ok(self.db.write_with(batch, self.durability)?)
    }
}

/// Builds tables of ascending keys next to the database, and ingests them at the end.
#[derive(Debug)]
pub(crate) struct TableSink {
    db: Db,
    keyspace: Keyspace,
    folder: TempDir,
    table: Option<TableWriter>,
    paths: Vec<PathBuf>,
}

impl TableSink {
    /// Creates the temporary folder: next to the database, so that the tables are linked and not copied.
    pub(crate) fn new(db: Db, keyspace: Keyspace) -> Result<Self, Failure> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix(".tamis-ingest-");
        let path = db.path();
        let folder = match path.parent().map(|parent| builder.tempdir_in(parent)) {
            Some(Ok(folder)) => folder,
            _ => builder.tempdir().map_err(|error| {
                let message =
                    format!("create a temporary folder for tables: {error}; set TMPDIR to a writable folder");
                Failure::new(Code::Io, message)
            })?,
        };
        Ok(Self { db, keyspace, folder, table: None, paths: Vec::new() })
    }

    /// Ingests the tables; `None` if there were no entries.
    pub(crate) fn finish(mut self) -> Result<Option<IngestReport>, Failure> {
        self.finish_table()?;
        if self.paths.is_empty() {
            return Ok(None);
        }
        let options = IngestOptions::default().trusted(true);
        Ok(Some(self.db.ingest_with(&self.keyspace, &self.paths, options)?))
    }

    fn finish_table(&mut self) -> Result<(), Failure> {
        if let Some(table) = self.table.take() {
            self.paths.push(table.finish()?.path);
        }
        Ok(())
    }

    fn table(&mut self) -> Result<&mut TableWriter, Failure> {
        let table_bytes = self.keyspace.options().table_bytes;
        if self.table.as_ref().is_some_and(|table| table.estimated_bytes() >= table_bytes) {
            self.finish_table()?;
        }
        match &mut self.table {
            Some(table) => Ok(table),
            empty => {
                let path = self.folder.path().join(format!("{}.table", self.paths.len()));
                Ok(empty.insert(self.keyspace.table_writer(path)?))
            }
        }
    }
}

impl Sink for TableSink {
    fn consume(&mut self, chunk: &Columns) -> Result<(), Failure> {
        let mut entries = chunk.keys.iter().zip(chunk.values.iter()).peekable();
        while entries.peek().is_some() {
            // The size of the table is checked once for some entries.
            let table = self.table()?;
            for (key, value) in entries.by_ref().take(256) {
                table.put(key, value)?;
            }
        }
        Ok(())
    }
}

/// Gathers entries for a sink.
struct Loader<'py> {
    py: Python<'py>,
    codec: Codec,
    progress: Option<Bound<'py, PyAny>>,
    chunk: Columns,
    /// To the thread that writes, and back from it, with the chunk that is written.
    to_sink: SyncSender<Columns>,
    from_sink: Receiver<Result<Columns, Failure>>,
    is_writing: bool,
    owner: Guarded<()>,
    /// Entries that the sink has consumed.
    written: u64,
}

/// Loads all entries into a sink; returns their number, and the sink.
pub(crate) fn load<'py, S: Sink + 'static>(
    py: Python<'py>,
    codec: Codec,
    mut sink: S,
    progress: Option<Bound<'py, PyAny>>,
    entries: &Bound<'py, PyAny>,
    values: Option<&Bound<'py, PyAny>>,
) -> PyResult<(u64, S)> {
    let (to_sink, chunks) = sync_channel::<Columns>(1);
    let (written, from_sink) = sync_channel(1);
    let thread = thread::Builder::new().name("tamis-load".to_owned()).spawn(move || {
        for chunk in chunks {
            let consumed = catch_panic(|| sink.consume(&chunk));
            // An exception ends the loader before the result.
            let _ = written.send(consumed.map(|()| chunk));
        }
        sink
    });
    let failed = |error| Failure::new(Code::Io, format!("start a thread: {error}; end other threads"));
    let thread = thread.map_err(failed).or_raise(py)?;
    let (chunk, owner) = (Columns::default(), Guarded::new(()));
    let mut loader =
        Loader { py, codec, progress, chunk, to_sink, from_sink, is_writing: false, owner, written: 0 };
    let loaded = loader.load(entries, values);
    if !loader.owner.is_own() {
        // A child process has the memory of the thread, but not the thread.
        std::mem::forget((loader, thread));
        return Err(raise(py, tamis::Error::Forked.into()));
    }
    drop(loader);
    let ended = |_| Failure::new(Code::Panic, "the thread that writes has ended; see the text on stderr");
    let sink = run(py, move || thread.join().map_err(ended))?;
    Ok((loaded?, sink))
}

impl<'py> Loader<'py> {
    fn load(&mut self, entries: &Bound<'py, PyAny>, values: Option<&Bound<'py, PyAny>>) -> PyResult<u64> {
        if values.is_some() || entries.hasattr("__arrow_c_stream__")? {
            let columns = self.py.import("tamis._columns")?;
            for pair in columns.getattr("given")?.call1((entries, values, self.codec.name()))?.try_iter()? {
                let (keys, values): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
                self.load_columns(&GivenColumn::copy(&keys)?, &GivenColumn::copy(&values)?)?;
            }
        } else {
            for pair in pairs(entries)?.try_iter()? {
                let (key, value) = entry(&pair?)?;
                self.chunk.keys.push(&self.codec.encode(&key)?);
                self.chunk.values.push(&codec::value(&value)?);
                if self.is_full() {
                    self.flush()?;
                }
            }
        }
        self.flush()?;
        self.finish_chunk()?;
        Ok(self.written)
    }

    fn load_columns(&mut self, keys: &GivenColumn, values: &GivenColumn) -> PyResult<()> {
        let mut index = 0;
        while index < keys.len() {
            while index < keys.len() && !self.is_full() {
                self.chunk.keys.push(keys.get(index));
                self.chunk.values.push(values.get(index));
                index += 1;
            }
            self.flush()?;
        }
        Ok(())
    }

    const fn is_full(&self) -> bool {
        self.chunk.keys.bytes.len() + self.chunk.values.bytes.len() >= CHUNK_BYTES
            || self.chunk.keys.len() >= CHUNK_ENTRIES
    }

    /// Passes the chunk to the thread, after the chunk before.
    fn flush(&mut self) -> PyResult<()> {
        let before = self.finish_chunk()?;
        if self.chunk.keys.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.chunk, before);
        self.is_writing = self.to_sink.send(chunk).is_ok();
        Ok(())
    }

    /// Waits until the thread has written its chunk; returns the memory of the chunk.
    fn finish_chunk(&mut self) -> PyResult<Columns> {
        self.owner.get().or_raise(self.py)?;
        if !std::mem::take(&mut self.is_writing) {
            return Ok(Columns::default());
        }
        let from_sink = &mut self.from_sink;
        // The thread ends after the loader.
        let mut chunk = run(self.py, move || from_sink.recv().unwrap_or_else(|_| Ok(Columns::default())))?;
        self.written += chunk.keys.len() as u64;
        chunk.clear();
        self.py.check_signals()?;
        if let Some(progress) = &self.progress {
            progress.call1((self.written,))?;
        }
        Ok(chunk)
    }
}
