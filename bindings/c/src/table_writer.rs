//! Tables that are built outside of a database, and their ingestion.

use std::{ffi::c_char, mem::MaybeUninit};

use engine::{IngestOptions, TableWriter};
use tamis_bindings_common::{Code, Failure, expiry::time_at, fork::Guarded, report};

use crate::{
    boundary::{Exclusive, bytes, call, clear_pointer, free_box, handle, items, path, put_handle, quiet},
    database::{Database, database, put_optional_json},
    keyspace::{KeyspaceHandle, keyspace},
};

/// A writer of a table, for one thread at a time. A writer that is freed before tamis_table_writer_finish leaves no file.
#[derive(Debug)]
pub struct WriterHandle(Exclusive<Guarded<Option<TableWriter>>>);

/// Creates a table file for tamis_ingest into the keyspace; the path must not exist. Free it with tamis_table_writer_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_table_writer_new(
    keyspace: Option<&KeyspaceHandle>,
    file: *const c_char,
    mut writer: Option<&mut MaybeUninit<*mut WriterHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut writer);
    call(message, || {
        if writer.is_none() {
            return Err(crate::boundary::null("writer"));
        }
        let begun = self::keyspace(keyspace)?.table_writer(path(file, "file")?)?;
        put_handle(writer, "writer", WriterHandle(Exclusive::new(Guarded::new(Some(begun)))))
    })
}

/// Runs `work` with the writer of a handle.
fn with<R>(
    writer: Option<&WriterHandle>,
    work: impl FnOnce(&mut TableWriter) -> Result<R, Failure>,
) -> Result<R, Failure> {
    handle(writer, "writer")?.0.with(|writer| work(writer.get_mut()?.as_mut().ok_or_else(finished)?))
}

fn finished() -> Failure {
    Failure::argument("writer: the table is finished; create another writer")
}

/// Adds a key with its value; it must be greater than the previous key.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_table_writer_put(
    writer: Option<&WriterHandle>,
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let (key, value) = (bytes(key, key_length, "key")?, bytes(value, value_length, "value")?);
        with(writer, |writer| Ok(writer.put(key, value)?))
    })
}

/// Adds an operand, which the ingestion adds to the value of the key; see tamis_merge.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_table_writer_merge(
    writer: Option<&WriterHandle>,
    key: *const u8,
    key_length: usize,
    operand: *const u8,
    operand_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let (key, operand) = (bytes(key, key_length, "key")?, bytes(operand, operand_length, "operand")?);
        with(writer, |writer| Ok(writer.merge(key, operand)?))
    })
}

/// Adds a key with its value and a time of expiry; see tamis_put_until.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_table_writer_put_until(
    writer: Option<&WriterHandle>,
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
    time_ms: u64,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let (key, value) = (bytes(key, key_length, "key")?, bytes(value, value_length, "value")?);
        let time = time_at(time_ms)?;
        with(writer, |writer| Ok(writer.put_until(key, value, time)?))
    })
}

/// Adds a delete of a key; the ingestion deletes the key.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_table_writer_delete(
    writer: Option<&WriterHandle>,
    key: *const u8,
    key_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let key = bytes(key, key_length, "key")?;
        with(writer, |writer| Ok(writer.delete(key)?))
    })
}

/// Finishes the table: its file is complete and survives a crash of the machine. The handle must still be freed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_table_writer_finish(
    writer: Option<&WriterHandle>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        handle(writer, "writer")?.0.with(|writer| {
            let writer = writer.get_mut()?.take().ok_or_else(finished)?;
            writer.finish()?;
            Ok(())
        })
    })
}

/// Frees a writer. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_table_writer_free(writer: *mut WriterHandle) {
    quiet(|| free_box(writer));
}

/// Adds finished tables to a keyspace atomically, as one write that is newer than all earlier writes. The files are
/// moved into the database, or copied if `keep` is true. `json` receives a report and may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_ingest(
    database: Option<&Database>,
    keyspace: Option<&KeyspaceHandle>,
    files: *const *const c_char,
    count: usize,
    keep: bool,
    mut json: Option<&mut MaybeUninit<*mut c_char>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut json);
    call(message, || {
        let files = items(files, count, "files")?.iter().map(|file| path(*file, "file"));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let (database, keyspace) = (self::database(database)?, self::keyspace(keyspace)?);
        let taken = database.ingest_with(keyspace, files, IngestOptions::default().keep(keep))?;
        put_optional_json(json, &report::ingest(&taken))
    })
}
