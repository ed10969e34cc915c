//! The database: open, close, keyspaces, maintenance, statistics.

use std::{ffi::c_char, mem::MaybeUninit};

use engine::{Db, KeyspaceOptions, Options};
use tamis_bindings_common::{Code, Failure, fork::Guarded, options, report, statistics_json};

use crate::{
    boundary::{call, clear_pointer, free_box, handle, items, own, path, put, put_handle, quiet, text},
    keyspace::KeyspaceHandle,
    options::{DatabaseOptions, OptionsOfKeyspace},
    snapshot::SnapshotHandle,
};

/// An open database.
#[derive(Debug)]
pub struct Database(pub(crate) Guarded<Db>);

/// The database of a handle.
pub(crate) fn database(database: Option<&Database>) -> Result<&Db, Failure> {
    handle(database, "database")?.0.get()
}

/// Converts a number of the header to a durability.
pub(crate) fn durability(number: i32) -> Result<engine::Durability, Failure> {
    let name = match number {
        0 => "deferred",
        1 => "buffered",
        2 => "synced",
        _ => return Err(Failure::argument(format!("durability: {number} is not valid; give 0, 1 or 2"))),
    };
    options::durability(name)
}

/// Opens or creates the database in a folder. `options` may be NULL. Close it with tamis_close or tamis_db_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_open(
    folder: *const c_char,
    options: Option<&DatabaseOptions>,
    mut database: Option<&mut MaybeUninit<*mut Database>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut database);
    call(message, || {
        let folder = path(folder, "folder")?;
        let options = match options {
            Some(options) => options.0.with(|options| Ok(options.clone()))?,
            None => Options::default(),
        };
        let db = Db::open_with(folder, options)?;
        put_handle(database, "database", Database(Guarded::new(db)))
    })
}

/// Closes a database: syncs the log and ends running jobs. Other handles of it then return TAMIS_CODE_CLOSED; existing scans
/// can be read to the end. The handle must still be freed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_close(
    database: Option<&Database>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || Ok(self::database(database)?.clone().close()?))
}

/// Frees the handle of a database. The database is closed when its last handle (keyspaces, snapshots) is freed. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_db_free(database: *mut Database) {
    quiet(|| free_box(database));
}

/// Returns the default keyspace, which every database has. Free it with tamis_keyspace_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_default_keyspace(
    database: Option<&Database>,
    mut keyspace: Option<&mut MaybeUninit<*mut KeyspaceHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut keyspace);
    call(message, || {
        let database = self::database(database)?;
        put_handle(keyspace, "keyspace", KeyspaceHandle::new(database, database.default_keyspace()))
    })
}

/// Returns the keyspace with this name. Free it with tamis_keyspace_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_keyspace_open(
    database: Option<&Database>,
    name: *const c_char,
    mut keyspace: Option<&mut MaybeUninit<*mut KeyspaceHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut keyspace);
    call(message, || {
        let database = self::database(database)?;
        let found = database.keyspace(text(name, "name")?)?;
        put_handle(keyspace, "keyspace", KeyspaceHandle::new(database, found))
    })
}

/// Creates a keyspace; it survives a crash of the machine when the call returns. `options` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_keyspace_create(
    database: Option<&Database>,
    name: *const c_char,
    options: Option<&OptionsOfKeyspace>,
    mut keyspace: Option<&mut MaybeUninit<*mut KeyspaceHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut keyspace);
    call(message, || {
        let (database, options) = (self::database(database)?, keyspace_options(options)?);
        let made = database.create_keyspace(text(name, "name")?, options)?;
        put_handle(keyspace, "keyspace", KeyspaceHandle::new(database, made))
    })
}

/// Returns the keyspace with this name; creates it if there is none. Options that differ from those of an existing keyspace are a failure.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_keyspace_get_or_create(
    database: Option<&Database>,
    name: *const c_char,
    options: Option<&OptionsOfKeyspace>,
    mut keyspace: Option<&mut MaybeUninit<*mut KeyspaceHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut keyspace);
    call(message, || {
        let (database, options) = (self::database(database)?, keyspace_options(options)?);
        let found = database.get_or_create_keyspace(text(name, "name")?, options)?;
        put_handle(keyspace, "keyspace", KeyspaceHandle::new(database, found))
    })
}

fn keyspace_options(options: Option<&OptionsOfKeyspace>) -> Result<KeyspaceOptions, Failure> {
    match options {
        Some(options) => options.0.with(|options| Ok(options.clone())),
        None => Ok(KeyspaceOptions::default()),
    }
}

/// Drops a keyspace with all its data. Its handles then return TAMIS_CODE_KEYSPACE_DROPPED.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_keyspace_drop(
    database: Option<&Database>,
    name: *const c_char,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || Ok(self::database(database)?.drop_keyspace(text(name, "name")?)?))
}

/// Like tamis_keyspace_drop for `count` keyspaces, atomically: all of them or none.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_keyspaces_drop(
    database: Option<&Database>,
    names: *const *const c_char,
    count: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let names = items(names, count, "names")?.iter().map(|name| text(*name, "name"));
        let names = names.collect::<Result<Vec<_>, _>>()?;
        Ok(self::database(database)?.drop_keyspaces(names)?)
    })
}

/// Returns the names of all keyspaces, sorted, as a JSON array. Free it with tamis_text_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_keyspace_names(
    database: Option<&Database>,
    mut json: Option<&mut MaybeUninit<*mut c_char>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut json);
    call(message, || {
        let names = self::database(database)?.keyspace_names();
        put_json(json, &names.into())
    })
}

/// Creates a snapshot of all keyspaces. Free it with tamis_snapshot_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_snapshot_new(
    database: Option<&Database>,
    mut snapshot: Option<&mut MaybeUninit<*mut SnapshotHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut snapshot);
    call(message, || {
        let taken = self::database(database)?.snapshot();
        put_handle(snapshot, "snapshot", SnapshotHandle(Guarded::new(taken)))
    })
}

/// Makes all earlier writes as durable as `durability`.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_persist(
    database: Option<&Database>,
    durability: i32,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || Ok(self::database(database)?.persist(self::durability(durability)?)?))
}

/// Flushes the memtables of all keyspaces and waits.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_flush(
    database: Option<&Database>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || Ok(self::database(database)?.flush()?))
}

/// Waits until no flush or compaction is pending, and the files that they have replaced are deleted.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_wait_for_compactions(
    database: Option<&Database>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || Ok(self::database(database)?.wait_for_compactions()?))
}

/// Creates a consistent copy of the database in a new or empty folder. `json` receives a report and may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_checkpoint(
    database: Option<&Database>,
    folder: *const c_char,
    mut json: Option<&mut MaybeUninit<*mut c_char>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut json);
    call(message, || {
        let made = self::database(database)?.checkpoint(path(folder, "folder")?)?;
        put_optional_json(json, &report::checkpoint(&made))
    })
}

/// Like tamis_checkpoint, and verifies the copy.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_checkpoint_verified(
    database: Option<&Database>,
    folder: *const c_char,
    mut json: Option<&mut MaybeUninit<*mut c_char>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut json);
    call(message, || {
        let made = self::database(database)?.checkpoint_verified(path(folder, "folder")?)?;
        put_optional_json(json, &report::checkpoint(&made))
    })
}

/// Verifies every byte of every live file. The report (JSON) lists all damage; the call fails only if it cannot continue.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_verify(
    database: Option<&Database>,
    mut json: Option<&mut MaybeUninit<*mut c_char>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut json);
    call(message, || put_json(json, &report::verify(&self::database(database)?.verify()?)))
}

/// Like tamis_verify, for a database that is not open and may be damaged.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_verify_folder(
    folder: *const c_char,
    mut json: Option<&mut MaybeUninit<*mut c_char>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut json);
    call(message, || put_json(json, &report::verify(&Db::verify_folder(path(folder, "folder")?)?)))
}

/// Repairs a damaged database from everything that is readable. Nothing is deleted; the report (JSON) lists every key range in which
/// writes may be lost.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_repair(
    folder: *const c_char,
    mut json: Option<&mut MaybeUninit<*mut c_char>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut json);
    call(message, || put_json(json, &report::repair(&Db::repair(path(folder, "folder")?)?)))
}

/// Returns the report of the open as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_open_report(
    database: Option<&Database>,
    mut json: Option<&mut MaybeUninit<*mut c_char>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut json);
    call(message, || put_json(json, &report::open(self::database(database)?.open_report())))
}

/// Returns the folder of the database. Free it with tamis_text_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_db_path(
    database: Option<&Database>,
    mut folder: Option<&mut MaybeUninit<*mut c_char>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut folder);
    call(message, || {
        let database = self::database(database)?;
        if folder.is_none() {
            return Err(crate::boundary::null("folder"));
        }
        put(folder, "folder", own(database.path().display().to_string()))
    })
}

/// Returns counters since the open, and the state of log, cache and levels, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_statistics(
    database: Option<&Database>,
    mut json: Option<&mut MaybeUninit<*mut c_char>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut json);
    call(message, || put_json(json, &statistics_json(&self::database(database)?.statistics())))
}

/// Stores JSON as a text that the caller frees.
pub(crate) fn put_json(
    target: Option<&mut MaybeUninit<*mut c_char>>,
    json: &serde_json::Value,
) -> Result<(), Failure> {
    if target.is_none() {
        return Err(crate::boundary::null("json"));
    }
    put(target, "json", own(json.to_string()))
}

/// [`put_json`] for an optional result.
pub(crate) fn put_optional_json(
    target: Option<&mut MaybeUninit<*mut c_char>>,
    json: &serde_json::Value,
) -> Result<(), Failure> {
    if target.is_none() { Ok(()) } else { put_json(target, json) }
}
