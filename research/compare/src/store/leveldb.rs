//! LevelDB through its C interface, built from the sources in the crate `leveldb-sys` (1.22).
//!
//! It maps up to 1,000 tables of 2 MiB and does not use its block cache for them; by default reads verify no checksums. It has
//! no flush: after a fill its last memtable (less than 64 MiB) is in memory.

use std::{
    ffi::{CStr, CString, c_char},
    ptr,
};

use leveldb_sys as ffi;
use tamis_bench::{
    BenchError,
    driver::{Session, Sink, Store},
};

use super::{Compared, Kind, Result, Settings};

/// LevelDB.
pub const KIND: Kind = Kind {
    name: "leveldb",
    title: "LevelDB",
    about: "1.22, 10-bit Bloom filters, 4 KiB blocks, LRU cache; maps 1,000 tables, does not verify checksums on reads (its defaults)",
    open,
    can_stay_unmerged: false,
    can_defer: false,
    can_direct: false,
    can_transact: false,
    space: 1.8,
    is_default: true,
};

struct Level {
    db: *mut ffi::leveldb_t,
    cache: *mut ffi::leveldb_cache_t,
    filter: *mut ffi::leveldb_filterpolicy_t,
    options: *mut ffi::leveldb_options_t,
    read: *mut ffi::leveldb_readoptions_t,
    write: *mut ffi::leveldb_writeoptions_t,
}

// SAFETY: LevelDB's handle may be used by many threads at once; the other pointers are only read after open.
unsafe impl Send for Level {}
// SAFETY: as above.
unsafe impl Sync for Level {}

impl Drop for Level {
    fn drop(&mut self) {
        // SAFETY: each pointer came from its constructor and is freed once; the database is freed before the objects it uses.
        unsafe {
            ffi::leveldb_close(self.db);
            ffi::leveldb_writeoptions_destroy(self.write);
            ffi::leveldb_readoptions_destroy(self.read);
            ffi::leveldb_options_destroy(self.options);
            ffi::leveldb_filterpolicy_destroy(self.filter);
            ffi::leveldb_cache_destroy(self.cache);
        }
    }
}

/// Converts and frees the error of a call.
fn check(error: *mut c_char) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: LevelDB returns a zero-terminated string that the caller owns.
    let message = unsafe {
        let message = CStr::from_ptr(error).to_string_lossy().into_owned();
        ffi::leveldb_free(error.cast());
        message
    };
    Err(BenchError::Other(format!("LevelDB: {message}")))
}

fn open(settings: &Settings) -> Result<Box<dyn Compared>> {
    let name = CString::new(settings.folder.as_os_str().as_encoded_bytes()).map_err(BenchError::other)?;
    let mut error = ptr::null_mut();
    // SAFETY: constructors without preconditions; the objects live until the database is closed.
    let store = unsafe {
        let options = ffi::leveldb_options_create();
        let cache = ffi::leveldb_cache_create_lru(settings.cache_bytes as usize);
        let filter = ffi::leveldb_filterpolicy_create_bloom(10);
        ffi::leveldb_options_set_create_if_missing(options, 1);
        ffi::leveldb_options_set_write_buffer_size(options, settings.memtable_bytes as usize);
        ffi::leveldb_options_set_cache(options, cache);
        ffi::leveldb_options_set_filter_policy(options, filter);
        ffi::leveldb_options_set_block_size(options, 4096);
        ffi::leveldb_options_set_compression(options, ffi::Compression::No);
        let read = ffi::leveldb_readoptions_create();
        let write = ffi::leveldb_writeoptions_create();
        let db = ffi::leveldb_open(options, name.as_ptr(), &raw mut error);
        Level { db, cache, filter, options, read, write }
    };
    if let Err(failure) = check(error) {
        // There is no database to close; the process exits soon, so the options leak.
        std::mem::forget(store);
        return Err(failure);
    }
    Ok(Box::new(store))
}

impl Store for Level {
    fn session(&self, is_live: bool) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(LevelSession { store: self, kept: (!is_live).then(|| Position::new(self)) }))
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }
}

impl Compared for Level {
    fn compact(&self) -> Result<()> {
        // SAFETY: null bounds mean the ends of the key space.
        unsafe { ffi::leveldb_compact_range(self.db, ptr::null(), 0, ptr::null(), 0) };
        Ok(())
    }

    fn shape(&self) -> String {
        let count = |level: usize| {
            let name = CString::new(format!("leveldb.num-files-at-level{level}")).ok()?;
            // SAFETY: the result is null or a zero-terminated string that the caller owns.
            let text = unsafe {
                let answer = ffi::leveldb_property_value(self.db, name.as_ptr());
                if answer.is_null() {
                    return None;
                }
                let text = CStr::from_ptr(answer).to_string_lossy().into_owned();
                ffi::leveldb_free(answer.cast());
                text
            };
            (text != "0").then(|| format!("L{level}: {text} tables"))
        };
        (0..7).filter_map(count).collect::<Vec<_>>().join("; ")
    }
}

/// An iterator that is freed on drop.
struct Position<'a> {
    iterator: *mut ffi::leveldb_iterator_t,
    _store: &'a Level,
}

impl Drop for Position<'_> {
    fn drop(&mut self) {
        // SAFETY: created by `leveldb_create_iterator`, freed once, before the database.
        unsafe { ffi::leveldb_iter_destroy(self.iterator) };
    }
}

impl<'a> Position<'a> {
    fn new(store: &'a Level) -> Self {
        // SAFETY: database and options are alive.
        let iterator = unsafe { ffi::leveldb_create_iterator(store.db, store.read) };
        Self { iterator, _store: store }
    }

    fn is_valid(&self) -> bool {
        // SAFETY: the iterator is alive.
        unsafe { ffi::leveldb_iter_valid(self.iterator) != 0 }
    }

    fn seek(&mut self, key: &[u8]) {
        // SAFETY: the length is that of the key, which LevelDB only reads during the call.
        unsafe { ffi::leveldb_iter_seek(self.iterator, key.as_ptr().cast(), key.len()) };
    }

    fn seek_to_last(&mut self) {
        // SAFETY: the iterator is alive.
        unsafe { ffi::leveldb_iter_seek_to_last(self.iterator) };
    }

    /// Moves one entry; the position must be valid.
    fn step(&mut self, is_back: bool) {
        // SAFETY: callers step from valid positions only.
        unsafe {
            if is_back {
                ffi::leveldb_iter_prev(self.iterator)
            } else {
                ffi::leveldb_iter_next(self.iterator)
            }
        }
    }

    /// The key; the position must be valid.
    fn key(&self) -> &[u8] {
        let mut length = 0;
        // SAFETY: at a valid position the bytes live until the next step, which needs `&mut self`; the call writes the
        // length through the pointer although its declaration says `const`.
        unsafe {
            let bytes = ffi::leveldb_iter_key(self.iterator, (&raw mut length).cast_const());
            std::slice::from_raw_parts(bytes.cast(), length)
        }
    }

    /// The value; the position must be valid.
    fn value(&self) -> &[u8] {
        let mut length = 0;
        // SAFETY: as in `key`.
        unsafe {
            let bytes = ffi::leveldb_iter_value(self.iterator, (&raw mut length).cast_const());
            std::slice::from_raw_parts(bytes.cast(), length)
        }
    }

    fn check(&self) -> Result<()> {
        let mut error: *mut c_char = ptr::null_mut();
        // SAFETY: the call writes an error through the pointer although its declaration says `const`.
        unsafe { ffi::leveldb_iter_get_error(self.iterator, (&raw mut error).cast_const().cast()) };
        check(error)
    }

    /// Passes up to `limit` entries to the sink, none above `upper`.
    fn give(&mut self, limit: u64, is_back: bool, upper: Option<&[u8]>, sink: &mut Sink) -> Result<u64> {
        let mut given = 0;
        while given < limit && self.is_valid() && upper.is_none_or(|upper| self.key() <= upper) {
            sink.entry(|| self.key(), self.value());
            given += 1;
            if given < limit {
                self.step(is_back);
            }
        }
        self.check()?;
        Ok(given)
    }
}

struct LevelSession<'a> {
    store: &'a Level,
    /// The iterator of a session that is not live.
    kept: Option<Position<'a>>,
}

impl<'a> LevelSession<'a> {
    /// The kept iterator, or a new one in `fresh`.
    fn position<'p>(&'p mut self, fresh: &'p mut Option<Position<'a>>) -> &'p mut Position<'a> {
        match &mut self.kept {
            Some(position) => position,
            None => fresh.insert(Position::new(self.store)),
        }
    }
}

impl Session for LevelSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the lengths are those of the bytes, which LevelDB copies.
        unsafe {
            ffi::leveldb_put(
                self.store.db,
                self.store.write,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &raw mut error,
            );
        }
        check(error)
    }

    fn get(&mut self, key: &[u8], sink: &mut Sink) -> Result<bool> {
        let (mut error, mut length) = (ptr::null_mut(), 0);
        // SAFETY: lengths are those of the bytes; the caller owns a found value and frees it once.
        unsafe {
            let value = ffi::leveldb_get(
                self.store.db,
                self.store.read,
                key.as_ptr().cast(),
                key.len(),
                &raw mut length,
                &raw mut error,
            );
            if value.is_null() {
                check(error)?;
                return Ok(false);
            }
            sink.value(std::slice::from_raw_parts(value.cast(), length));
            ffi::leveldb_free(value.cast());
        }
        Ok(true)
    }

    fn scan(&mut self, lower: &[u8], limit: u64, sink: &mut Sink) -> Result<u64> {
        let mut fresh = None;
        let position = self.position(&mut fresh);
        position.seek(lower);
        position.give(limit, false, None, sink)
    }

    fn scan_back(&mut self, upper: &[u8], limit: u64, sink: &mut Sink) -> Result<u64> {
        let mut fresh = None;
        let position = self.position(&mut fresh);
        position.seek(upper);
        if !position.is_valid() {
            position.seek_to_last();
        } else if position.key() > upper {
            position.step(true);
        }
        position.give(limit, true, None, sink)
    }

    fn range(&mut self, lower: &[u8], upper: &[u8], sink: &mut Sink) -> Result<u64> {
        let mut position = Position::new(self.store);
        position.seek(lower);
        position.give(u64::MAX, false, Some(upper), sink)
    }
}
