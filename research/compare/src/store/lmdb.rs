//! LMDB: the sources that the crate `heed` uses, called directly with a kept transaction and cursor (the interface of heed only
//! adds overhead).
//!
//! It has no log: with `NOSYNC` a crash of the machine may damage it. A fill uses transactions of 10,000 entries; every other
//! write is a separate transaction.

use std::{
    ffi::{CStr, CString, c_int},
    ptr,
};

use lmdb_master_sys as ffi;
use tamis_bench::{
    BenchError,
    driver::{Session, Sink, Store},
};

use super::{Compared, Kind, Pending, Result, Settings};
use crate::workload::ENTRY_BYTES;

/// LMDB.
pub const KIND: Kind = Kind {
    name: "lmdb",
    title: "LMDB",
    about: "mapped, NOSYNC, no log; fills in transactions of 10,000 (appending if sorted), other writes one by one; \
            no checksums; transaction and cursor kept",
    open,
    can_stay_unmerged: false,
    can_defer: false,
    can_direct: false,
    can_transact: false,
    space: 2.2,
    is_default: true,
};

struct Lmdb {
    environment: *mut ffi::MDB_env,
    table: ffi::MDB_dbi,
    is_filling: bool,
    is_appending: bool,
}

// SAFETY: an environment may be used by many threads; transactions stay on the threads that made them.
unsafe impl Send for Lmdb {}
// SAFETY: as above.
unsafe impl Sync for Lmdb {}

impl Drop for Lmdb {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once, after all of its transactions.
        unsafe { ffi::mdb_env_close(self.environment) };
    }
}

fn check(code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: the message is a static string.
    let message = unsafe { CStr::from_ptr(ffi::mdb_strerror(code)) };
    Err(BenchError::Other(format!("LMDB: {}", message.to_string_lossy())))
}

fn bytes_of(bytes: &[u8]) -> ffi::MDB_val {
    ffi::MDB_val { mv_size: bytes.len(), mv_data: bytes.as_ptr().cast_mut().cast() }
}

/// The bytes of a value that LMDB returned.
fn slice(value: &ffi::MDB_val) -> &[u8] {
    if value.mv_data.is_null() {
        return &[];
    }
    // SAFETY: LMDB's values are in the mapping until the transaction ends, which no caller does while it holds the slice.
    unsafe { std::slice::from_raw_parts(value.mv_data.cast(), value.mv_size) }
}

fn open(settings: &Settings) -> Result<Box<dyn Compared>> {
    let path = CString::new(settings.folder.as_os_str().as_encoded_bytes()).map_err(BenchError::other)?;
    let mut store = Lmdb {
        environment: ptr::null_mut(),
        table: 0,
        is_filling: settings.is_filling,
        is_appending: settings.is_appending,
    };
    let flags = ffi::MDB_NOSYNC | ffi::MDB_NOTLS;
    let map_bytes = (settings.entries * ENTRY_BYTES * 6).max(1 << 30) as usize;
    // SAFETY: the calls are in the order that LMDB requires; `store` closes the environment on every return path.
    unsafe {
        check(ffi::mdb_env_create(&raw mut store.environment))?;
        check(ffi::mdb_env_set_mapsize(store.environment, map_bytes))?;
        check(ffi::mdb_env_open(store.environment, path.as_ptr(), flags, 0o644))?;
    }
    let transaction = store.begin(0)?;
    // SAFETY: the transaction is alive and ends here; a null name means the unnamed database.
    unsafe {
        check(ffi::mdb_dbi_open(transaction, ptr::null(), 0, &raw mut store.table))?;
        check(ffi::mdb_txn_commit(transaction))?;
    }
    Ok(Box::new(store))
}

impl Lmdb {
    fn begin(&self, flags: u32) -> Result<*mut ffi::MDB_txn> {
        let mut transaction = ptr::null_mut();
        // SAFETY: the environment is open.
        check(unsafe { ffi::mdb_txn_begin(self.environment, ptr::null_mut(), flags, &raw mut transaction) })?;
        Ok(transaction)
    }

    /// Writes entries in one transaction.
    fn write(&self, entries: &mut Pending) -> Result<()> {
        let transaction = self.begin(0)?;
        let flags = if self.is_appending { ffi::MDB_APPEND } else { 0 };
        let written = entries.write(|key, value| {
            let (mut key, mut value) = (bytes_of(key), bytes_of(value));
            // SAFETY: the transaction is alive; LMDB copies key and value.
            check(unsafe { ffi::mdb_put(transaction, self.table, &raw mut key, &raw mut value, flags) })
        });
        // SAFETY: the transaction is alive and ends here.
        unsafe {
            match written {
                Ok(()) => check(ffi::mdb_txn_commit(transaction)),
                Err(error) => {
                    ffi::mdb_txn_abort(transaction);
                    Err(error)
                }
            }
        }
    }
}

impl Store for Lmdb {
    fn session(&self, is_live: bool) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(LmdbSession { store: self, view: None, is_live, pending: Pending::new(self.is_filling) }))
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }
}

impl Compared for Lmdb {}

/// A read transaction with its cursor.
struct View {
    transaction: *mut ffi::MDB_txn,
    cursor: *mut ffi::MDB_cursor,
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: both are alive; the cursor is closed before its transaction.
        unsafe {
            ffi::mdb_cursor_close(self.cursor);
            ffi::mdb_txn_abort(self.transaction);
        }
    }
}

/// Where a cursor is: the entry, if there is one.
type Position = Option<(ffi::MDB_val, ffi::MDB_val)>;

impl View {
    fn new(store: &Lmdb) -> Result<Self> {
        let transaction = store.begin(ffi::MDB_RDONLY)?;
        let mut cursor = ptr::null_mut();
        // SAFETY: the transaction is alive; it is aborted if no cursor can be opened.
        unsafe {
            let code = ffi::mdb_cursor_open(transaction, store.table, &raw mut cursor);
            if code != 0 {
                ffi::mdb_txn_abort(transaction);
                check(code)?;
            }
        }
        Ok(Self { transaction, cursor })
    }

    /// Moves to the newest state.
    fn renew(&mut self) -> Result<()> {
        // SAFETY: a read transaction may be reset and renewed, and its cursor with it.
        unsafe {
            ffi::mdb_txn_reset(self.transaction);
            check(ffi::mdb_txn_renew(self.transaction))?;
            check(ffi::mdb_cursor_renew(self.transaction, self.cursor))
        }
    }

    /// Moves the cursor; returns the entry there, if any.
    fn go(&mut self, key: &[u8], operation: ffi::MDB_cursor_op) -> Result<Position> {
        let (mut key, mut value) = (bytes_of(key), bytes_of(&[]));
        // SAFETY: the cursor is alive; LMDB only reads the given key and points both to the entry that it found.
        let code = unsafe { ffi::mdb_cursor_get(self.cursor, &raw mut key, &raw mut value, operation) };
        if code == ffi::MDB_NOTFOUND {
            return Ok(None);
        }
        check(code).map(|()| Some((key, value)))
    }

    /// Passes up to `limit` entries from a position to the sink, none above `upper`.
    fn give(
        &mut self,
        mut position: Position,
        limit: u64,
        step: ffi::MDB_cursor_op,
        upper: Option<&[u8]>,
        sink: &mut Sink,
    ) -> Result<u64> {
        let mut given = 0;
        while given < limit
            && let Some((key, value)) = &position
            && upper.is_none_or(|upper| slice(key) <= upper)
        {
            sink.entry(|| slice(key), slice(value));
            given += 1;
            if given < limit {
                position = self.go(&[], step)?;
            }
        }
        Ok(given)
    }
}

struct LmdbSession<'a> {
    store: &'a Lmdb,
    /// Created by the first read: an open read transaction keeps the pages that writes replace.
    view: Option<View>,
    is_live: bool,
    pending: Pending,
}

impl LmdbSession<'_> {
    /// The view: for a live session that of the newest state.
    fn view(&mut self) -> Result<&mut View> {
        match &mut self.view {
            Some(view) => {
                if self.is_live {
                    view.renew()?;
                }
                Ok(view)
            }
            none => Ok(none.insert(View::new(self.store)?)),
        }
    }
}

impl Session for LmdbSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.pending.add(key, value) { self.finish() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        if self.pending.is_empty() { Ok(()) } else { self.store.write(&mut self.pending) }
    }

    fn get(&mut self, key: &[u8], sink: &mut Sink) -> Result<bool> {
        let entry = self.view()?.go(key, ffi::MDB_SET)?;
        Ok(entry.map(|(_, value)| sink.value(slice(&value))).is_some())
    }

    fn scan(&mut self, lower: &[u8], limit: u64, sink: &mut Sink) -> Result<u64> {
        let view = self.view()?;
        let position = view.go(lower, ffi::MDB_SET_RANGE)?;
        view.give(position, limit, ffi::MDB_NEXT, None, sink)
    }

    fn scan_back(&mut self, upper: &[u8], limit: u64, sink: &mut Sink) -> Result<u64> {
        let view = self.view()?;
        let mut position = view.go(upper, ffi::MDB_SET_RANGE)?;
        if position.as_ref().is_none_or(|(found, _)| slice(found) != upper) {
            let step = if position.is_some() { ffi::MDB_PREV } else { ffi::MDB_LAST };
            position = view.go(&[], step)?;
        }
        view.give(position, limit, ffi::MDB_PREV, None, sink)
    }

    fn range(&mut self, lower: &[u8], upper: &[u8], sink: &mut Sink) -> Result<u64> {
        let view = self.view()?;
        let position = view.go(lower, ffi::MDB_SET_RANGE)?;
        view.give(position, u64::MAX, ffi::MDB_NEXT, Some(upper), sink)
    }
}
