//! Bulk writes: entries from Python iterables, numpy arrays and Arrow tables, into batches or into tables.
//!
//! Entries are gathered in chunks. A chunk is written without the interpreter's lock; signals are checked and progress is
//! reported between chunks.

use std::path::PathBuf;

use pyo3::prelude::*;
use tamis::{Db, Durability, IngestReport, Keyspace, TableWriter, WriteBatch};
use tamis_bindings_common::{Code, Failure, columns::Columns};
use tempfile::TempDir;

use crate::{
    batch::pairs,
    codec::{self, Codec},
    column::GivenColumn,
    error::run,
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
pub(crate) struct BatchSink<'a> {
    pub(crate) db: &'a Db,
    pub(crate) keyspace: &'a Keyspace,
    pub(crate) durability: Durability,
}

impl Sink for BatchSink<'_> {
    fn consume(&mut self, chunk: &Columns) -> Result<(), Failure> {
        let mut batch = WriteBatch::new();
        for (key, value) in chunk.keys.iter().zip(chunk.values.iter()) {
            batch.put(self.keyspace, key, value)?;
        }
        Ok(self.db.write_with(batch, self.durability)?)
    }
}

/// Builds tables of ascending keys next to the database, and ingests them at the end.
#[derive(Debug)]
pub(crate) struct TableSink<'a> {
    db: &'a Db,
    keyspace: &'a Keyspace,
    folder: TempDir,
    table: Option<TableWriter>,
    paths: Vec<PathBuf>,
}

impl<'a> TableSink<'a> {
    /// Creates the temporary folder: next to the database, so that the tables are linked and not copied.
    pub(crate) fn new(db: &'a Db, keyspace: &'a Keyspace) -> Result<Self, Failure> {
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
        Ok(Some(self.db.ingest(self.keyspace, &self.paths)?))
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

impl Sink for TableSink<'_> {
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

/// Gathers entries and passes them to a sink.
pub(crate) struct Loader<'a, 'py> {
    py: Python<'py>,
    codec: Codec,
    sink: &'a mut dyn Sink,
    progress: Option<Bound<'py, PyAny>>,
    chunk: Columns,
    /// Entries that the sink has consumed.
    written: u64,
}

impl<'a, 'py> Loader<'a, 'py> {
    pub(crate) fn new(
        py: Python<'py>,
        codec: Codec,
        sink: &'a mut dyn Sink,
        progress: Option<Bound<'py, PyAny>>,
    ) -> Self {
        Self { py, codec, sink, progress, chunk: Columns::default(), written: 0 }
    }

    /// Loads all entries; returns their number.
    pub(crate) fn load(
        mut self,
        entries: &Bound<'py, PyAny>,
        values: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<u64> {
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

    fn flush(&mut self) -> PyResult<()> {
        if self.chunk.keys.is_empty() {
            return Ok(());
        }
        let (sink, chunk) = (&mut *self.sink, &self.chunk);
        run(self.py, || sink.consume(chunk))?;
        self.written += self.chunk.keys.len() as u64;
        self.chunk.clear();
        self.py.check_signals()?;
        if let Some(progress) = &self.progress {
            progress.call1((self.written,))?;
        }
        Ok(())
    }
}
