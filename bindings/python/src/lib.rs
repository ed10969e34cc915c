//! The extension module of the Python package `tamis`: the engine as Python classes.
//!
//! Rules of this crate: a call that may read or write releases the interpreter's lock ([`error::run`]); a Python object checks that
//! its process opened the database and that the database is open ([`handle`]); an object that holds an engine's object leaks it in
//! a child process instead of closing the parent's files.

use pyo3::prelude::*;

mod batch;
mod bounds;
mod buffer;
mod bulk;
mod changes;
mod codec;
mod column;
mod database;
mod error;
mod event;
mod filter;
mod forgotten;
mod handle;
mod json;
mod keyspace;
mod options;
mod progress;
mod reader;
mod scan;
mod table_writer;
mod time;
mod transaction;
mod tuple;

/// The classes and functions that the package exports, and those that its Python modules use.
#[pymodule]
#[pyo3(name = "_tamis")]
mod module {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::batch::WriteBatch;
    #[pymodule_export]
    use crate::buffer::Buffer;
    #[pymodule_export]
    use crate::changes::Changes;
    #[pymodule_export]
    use crate::changes::CommittedBatch;
    #[pymodule_export]
    use crate::changes::IngestedTables;
    #[pymodule_export]
    use crate::changes::KeyspaceCreated;
    #[pymodule_export]
    use crate::changes::KeyspaceDropped;
    #[pymodule_export]
    use crate::column::ScannedColumn;
    #[pymodule_export]
    use crate::database::Database;
    #[pymodule_export]
    use crate::database::open;
    #[pymodule_export]
    use crate::database::repair;
    #[pymodule_export]
    use crate::database::verify_folder;
    #[pymodule_export]
    use crate::event::EventQueue;
    #[pymodule_export]
    use crate::filter::Filter;
    #[pymodule_export]
    use crate::filter::advise;
    #[pymodule_export]
    use crate::filter::build_filter;
    #[pymodule_export]
    use crate::keyspace::Keyspace;
    #[pymodule_export]
    use crate::reader::Reader;
    #[pymodule_export]
    use crate::reader::Snapshot;
    #[pymodule_export]
    use crate::scan::Scan;
    #[pymodule_export]
    use crate::table_writer::TableWriter;
    #[pymodule_export]
    use crate::table_writer::table_writer;
    #[pymodule_export]
    use crate::transaction::Transaction;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
