//! LMDB: the sources that the crate `heed` uses, called directly with a kept transaction and cursor (the interface of heed only
//! adds overhead).
//!
//! It has no log: with `NOSYNC` a crash of the machine may damage it. A fill uses transactions of 10,000 entries; every other
//! write is a separate transaction.

use std::{
    ffi::{CStr, CString, c_int},
    path::Path,
    ptr,
};

use lmdb_master_sys as ffi;

use super::{Kind, Reader, Settings, Store, should_continue};
use crate::{
    data::{Entries, Key, Value},
    failure::{Failure, Result},
    sink::Sink,
};

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

/// Entries per transaction of a fill.
const BATCH_COUNT: u64 = 10_000;

struct Lmdb {
    environment: *mut ffi::MDB_env,
    table: ffi::MDB_dbi,
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
    Err(Failure(format!("LMDB: {}", message.to_string_lossy())))
}

/// Whether a read found an entry.
fn found(code: c_int) -> Result<bool> {
    if code == ffi::MDB_NOTFOUND {
        return Ok(false);
    }
    check(code).map(|()| true)
}

fn bytes_of(bytes: &[u8]) -> ffi::MDB_val {
    ffi::MDB_val { mv_size: bytes.len(), mv_data: bytes.as_ptr().cast_mut().cast() }
}

const EMPTY: ffi::MDB_val = ffi::MDB_val { mv_size: 0, mv_data: ptr::null_mut() };

/// The bytes of a value that LMDB returned.
fn slice(value: &ffi::MDB_val) -> &[u8] {
    if value.mv_data.is_null() {
        return &[];
    }
    // SAFETY: LMDB's values are in the mapping until the transaction ends, which no caller does while it holds the slice.
    unsafe { std::slice::from_raw_parts(value.mv_data.cast(), value.mv_size) }
}

fn open(folder: &Path, settings: &Settings) -> Result<Box<dyn Store>> {
    std::fs::create_dir_all(folder)?;
    let path = CString::new(folder.as_os_str().as_encoded_bytes())?;
    let mut store = Lmdb { environment: ptr::null_mut(), table: 0 };
    let flags = ffi::MDB_NOSYNC | ffi::MDB_NOTLS;
    // SAFETY: the calls are in the order that LMDB requires; `store` closes the environment on every return path.
    unsafe {
        check(ffi::mdb_env_create(&raw mut store.environment))?;
        check(ffi::mdb_env_set_mapsize(
            store.environment,
            (settings.data_bytes_max * 6).max(1 << 30) as usize,
        ))?;
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

    /// Writes at most `count` entries in one transaction.
    fn write<'e>(
        &self,
        count: u64,
        flags: u32,
        mut next: impl FnMut() -> Option<(&'e [u8], &'e [u8])>,
    ) -> Result<()> {
        let transaction = self.begin(0)?;
        for _ in 0..count {
            let Some((key, value)) = next() else { break };
            let (mut key, mut value) = (bytes_of(key), bytes_of(value));
            // SAFETY: LMDB copies key and value; after an error the transaction is aborted and not used again.
            unsafe {
                let code = ffi::mdb_put(transaction, self.table, &raw mut key, &raw mut value, flags);
                if code != 0 {
                    ffi::mdb_txn_abort(transaction);
                    return check(code);
                }
            }
        }
        // SAFETY: the transaction is alive and ends here.
        check(unsafe { ffi::mdb_txn_commit(transaction) })
    }
}

impl Store for Lmdb {
    fn reader(&self, is_live: bool) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(LmdbReader { store: self, view: View::new(self)?, is_live }))
    }

    fn put(&self, key: &Key, value: &Value) -> Result<()> {
        self.write(1, 0, || Some((key.as_slice(), value.as_slice())))
    }

    fn fill(&self, entries: &mut Entries) -> Result<()> {
        let flags = if entries.is_sorted() { ffi::MDB_APPEND } else { 0 };
        while entries.remaining() > 0 {
            let transaction_count = BATCH_COUNT.min(entries.remaining());
            let mut batch = Vec::with_capacity(transaction_count as usize);
            while batch.len() < transaction_count as usize
                && let Some((key, value)) = entries.advance()
            {
                batch.push((*key, *value));
            }
            let mut rest = batch.iter();
            self.write(BATCH_COUNT, flags, || {
                rest.next().map(|(key, value)| (key.as_slice(), value.as_slice()))
            })?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        // A B-tree has one run; there is nothing to merge.
        Ok(())
    }

    fn shape(&self) -> String {
        "one tree".to_owned()
    }
}

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
    fn go(
        &mut self,
        key: &[u8],
        operation: ffi::MDB_cursor_op,
    ) -> Result<Option<(ffi::MDB_val, ffi::MDB_val)>> {
        let (mut key, mut value) = (bytes_of(key), EMPTY);
        // SAFETY: the cursor is alive; LMDB only reads the given key and points both to the entry that it found.
        let code = unsafe { ffi::mdb_cursor_get(self.cursor, &raw mut key, &raw mut value, operation) };
        Ok(found(code)?.then_some((key, value)))
    }

    /// Passes up to `count` entries from `entry` to the sink, none above `upper`; with `count` 0 the entry of the key.
    fn give(
        &mut self,
        mut entry: Option<(ffi::MDB_val, ffi::MDB_val)>,
        count: usize,
        step: ffi::MDB_cursor_op,
        upper: Option<&Key>,
        sink: &mut Sink,
    ) -> Result<usize> {
        if count == 0 {
            sink.key(entry.as_ref().map_or(&[], |(key, _)| slice(key)));
            return Ok(usize::from(entry.is_some()));
        }
        let mut given = 0;
        while given < count
            && let Some((key, value)) = &entry
        {
            if upper.is_some_and(|upper| slice(key) > upper.as_slice()) {
                break;
            }
            sink.entry(|| slice(key), slice(value));
            given += 1;
            if given < count {
                entry = self.go(&[], step)?;
            }
        }
        Ok(given)
    }
}

struct LmdbReader<'a> {
    store: &'a Lmdb,
    view: View,
    is_live: bool,
}

impl Reader for LmdbReader<'_> {
    fn get(&mut self, key: &Key, sink: &mut Sink) -> Result<bool> {
        if self.is_live {
            self.view.renew()?;
        }
        let entry = self.view.go(key, ffi::MDB_SET)?;
        if let Some((_, value)) = &entry {
            sink.value(slice(value));
        }
        Ok(entry.is_some())
    }

    fn forward(&mut self, key: &Key, count: usize, is_fresh: bool, sink: &mut Sink) -> Result<usize> {
        if self.is_live {
            self.view.renew()?;
        } else if is_fresh {
            let mut view = View::new(self.store)?;
            let entry = view.go(key, ffi::MDB_SET_RANGE)?;
            return view.give(entry, count, ffi::MDB_NEXT, None, sink);
        }
        let entry = self.view.go(key, ffi::MDB_SET_RANGE)?;
        self.view.give(entry, count, ffi::MDB_NEXT, None, sink)
    }

    fn backward(&mut self, key: &Key, count: usize, sink: &mut Sink) -> Result<usize> {
        let mut entry = self.view.go(key, ffi::MDB_SET_RANGE)?;
        if entry.as_ref().is_none_or(|(found, _)| slice(found) != key.as_slice()) {
            let step = if entry.is_some() { ffi::MDB_PREV } else { ffi::MDB_LAST };
            entry = self.view.go(&[], step)?;
        }
        self.view.give(entry, count, ffi::MDB_PREV, None, sink)
    }

    fn range(&mut self, lower: &Key, upper: &Key, sink: &mut Sink) -> Result<usize> {
        let entry = self.view.go(lower, ffi::MDB_SET_RANGE)?;
        self.view.give(entry, usize::MAX, ffi::MDB_NEXT, Some(upper), sink)
    }

    fn all(&mut self, sink: &mut Sink, may_continue: &mut dyn FnMut(u64) -> bool) -> Result<u64> {
        let mut entry = self.view.go(&[], ffi::MDB_FIRST)?;
        let mut count = 0;
        while should_continue(count, may_continue)
            && let Some((key, value)) = &entry
        {
            sink.entry(|| slice(key), slice(value));
            count += 1;
            entry = self.view.go(&[], ffi::MDB_NEXT)?;
        }
        Ok(count)
    }
}
