//! Reads and writes of a keyspace.

use std::{ffi::c_char, mem::MaybeUninit, ops::Bound};

use engine::{Db, Keyspace, Slice, Snapshot};
use tamis_bindings_common::{
    Code, Failure, expiry::time_at, fork::Guarded, options::change_keyspace, scan::Selection,
};

use crate::{
    boundary::{bytes, call, clear, free_box, handle, own, put, quiet, text},
    database::{Database, database},
    snapshot::{SnapshotHandle, snapshot},
    value::{Bytes, Value},
};

/// A named, ordered map of a database.
#[derive(Debug)]
pub struct KeyspaceHandle(Guarded<(Db, Keyspace)>);

impl KeyspaceHandle {
    pub(crate) fn new(database: &Db, keyspace: Keyspace) -> Self {
        Self(Guarded::new((database.clone(), keyspace)))
    }
}

/// The keyspace of a handle.
pub(crate) fn keyspace(keyspace: Option<&KeyspaceHandle>) -> Result<&Keyspace, Failure> {
    Ok(&handle(keyspace, "keyspace")?.0.get()?.1)
}

/// The database and the keyspace of a handle.
pub(crate) fn store(keyspace: Option<&KeyspaceHandle>) -> Result<&(Db, Keyspace), Failure> {
    handle(keyspace, "keyspace")?.0.get()
}

/// A bound of a range: TAMIS_BOUND_KIND_UNBOUNDED (0), TAMIS_BOUND_KIND_INCLUDED (1) or TAMIS_BOUND_KIND_EXCLUDED (2) with its key.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RangeBound {
    /// A value of tamis_bound_kind.
    pub kind: i32,
    /// The key; ignored for an unbounded range.
    pub key: Bytes,
}

/// The kinds of bounds.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundKind {
    /// No bound.
    Unbounded = 0,
    /// Includes the key.
    Included = 1,
    /// Excludes the key.
    Excluded = 2,
}

/// The durability of a write when the call returns.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurabilityKind {
    /// Buffered in the process: a crash of the process may lose it.
    Deferred = 0,
    /// Survives a crash of the process, not of the machine.
    Buffered = 1,
    /// Survives a crash of the machine.
    Synced = 2,
}

/// The two bounds of a range.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RangeOfKeys {
    /// The lower bound.
    pub lower: RangeBound,
    /// The upper bound.
    pub upper: RangeBound,
}

/// Converts a bound of the header; its key remains the caller's.
pub(crate) fn borrowed<'a>(bound: RangeBound, name: &str) -> Result<Bound<&'a [u8]>, Failure> {
    let key = || bytes(bound.key.data, bound.key.length, name);
    match bound.kind {
        0 => Ok(Bound::Unbounded),
        1 => key().map(Bound::Included),
        2 => key().map(Bound::Excluded),
        kind => Err(Failure::argument(format!("{name}: {kind} is not a kind of bound; give 0, 1 or 2"))),
    }
}

/// Converts a bound of the header and copies its key.
pub(crate) fn bound(bound: RangeBound, name: &str) -> Result<Bound<Vec<u8>>, Failure> {
    Ok(borrowed(bound, name)?.map(<[u8]>::to_vec))
}

/// Converts two bounds of the header to a selection.
pub(crate) fn selection(lower: RangeBound, upper: RangeBound) -> Result<Selection, Failure> {
    Ok(Selection::Range(bound(lower, "lower")?, bound(upper, "upper")?))
}

/// Returns the name of a keyspace. Free it with tamis_text_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_keyspace_name(
    keyspace: Option<&KeyspaceHandle>,
    mut name: Option<&mut MaybeUninit<*mut c_char>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    crate::boundary::clear_pointer(&mut name);
    call(message, || {
        let found = self::keyspace(keyspace)?.name().to_owned();
        if name.is_none() {
            return Err(crate::boundary::null("name"));
        }
        put(name, "name", own(found))
    })
}

/// Changes an option of a keyspace by name: "layout", "filters" or "expire_after"; or "merge" of a keyspace without a merge operator. The change is durable
/// when the call returns; the background adapts the tables. The guide docs/guide/c.md lists the values.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_keyspace_set_option(
    keyspace: Option<&KeyspaceHandle>,
    name: *const c_char,
    value: *const c_char,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let (name, value) = (text(name, "name")?, text(value, "value")?);
        change_keyspace(self::keyspace(keyspace)?, [(name, value)])
    })
}

/// Frees the handle of a keyspace; the keyspace remains. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_keyspace_free(keyspace: *mut KeyspaceHandle) {
    quiet(|| free_box(keyspace));
}

/// Sets the value of a key with TAMIS_DURABILITY_BUFFERED; for other durabilities use tamis_put_with.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_put(
    keyspace: Option<&KeyspaceHandle>,
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let (key, value) = (bytes(key, key_length, "key")?, bytes(value, value_length, "value")?);
        Ok(self::keyspace(keyspace)?.put(key, value)?)
    })
}

/// Adds an operand to the value of a key with TAMIS_DURABILITY_BUFFERED, without a read: the merge operator of the keyspace (option "merge") makes the value when the
/// key is read. TAMIS_CODE_INVALID_ARGUMENT: the keyspace has no merge operator, or the operator refuses the operand.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_merge(
    keyspace: Option<&KeyspaceHandle>,
    key: *const u8,
    key_length: usize,
    operand: *const u8,
    operand_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let (key, operand) = (bytes(key, key_length, "key")?, bytes(operand, operand_length, "operand")?);
        Ok(self::keyspace(keyspace)?.merge(key, operand)?)
    })
}

/// Sets the value of a key with TAMIS_DURABILITY_BUFFERED until a time in milliseconds since 1970, UTC, from which on no reader finds it.
/// TAMIS_CODE_INVALID_ARGUMENT: the time is not in the future.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_put_until(
    keyspace: Option<&KeyspaceHandle>,
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
        Ok(self::keyspace(keyspace)?.put_until(key, value, time)?)
    })
}

/// Deletes a key with TAMIS_DURABILITY_BUFFERED; an absent key is not an error.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_delete(
    keyspace: Option<&KeyspaceHandle>,
    key: *const u8,
    key_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || Ok(self::keyspace(keyspace)?.delete(bytes(key, key_length, "key")?)?))
}

fn find(
    keyspace: Option<&KeyspaceHandle>,
    snapshot: Option<&SnapshotHandle>,
    key: &[u8],
) -> Result<Option<Slice>, Failure> {
    let keyspace = self::keyspace(keyspace)?;
    let found: Option<&Snapshot> = self::snapshot(snapshot)?;
    Ok(match found {
        Some(snapshot) => snapshot.get(keyspace, key)?,
        None => keyspace.get(key)?,
    })
}

/// Returns the value of a key in a snapshot, or in the current state (NULL); `value->data` is NULL if the key is absent. Long values are not
/// copied: the value keeps their block in memory. Free it with tamis_value_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_get(
    keyspace: Option<&KeyspaceHandle>,
    snapshot: Option<&SnapshotHandle>,
    key: *const u8,
    key_length: usize,
    mut value: Option<&mut MaybeUninit<Value>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut value);
    call(message, || {
        let value = value.ok_or_else(|| crate::boundary::null("value"))?;
        let found = find(keyspace, snapshot, bytes(key, key_length, "key")?)?;
        value.write(Value::of_found(found));
        Ok(())
    })
}

/// Like tamis_get, into the buffer of the caller, without an allocation. `is_found` is whether the key exists, `value_length` the length
/// of its value. TAMIS_CODE_BUFFER_TOO_SMALL: the buffer has less than `value_length` bytes; call again with a larger one.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_get_into(
    keyspace: Option<&KeyspaceHandle>,
    snapshot: Option<&SnapshotHandle>,
    key: *const u8,
    key_length: usize,
    buffer: *mut u8,
    buffer_length: usize,
    mut value_length: Option<&mut MaybeUninit<usize>>,
    mut is_found: Option<&mut MaybeUninit<bool>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut value_length);
    clear(&mut is_found);
    call(message, || {
        let target = crate::boundary::items_mut(buffer, buffer_length, "buffer")?;
        let found = find(keyspace, snapshot, bytes(key, key_length, "key")?)?;
        put(is_found, "is_found", found.is_some())?;
        let found = found.unwrap_or_else(|| Slice::from(&[][..]));
        put(value_length, "value_length", found.len())?;
        let target = target.get_mut(..found.len()).ok_or_else(|| {
            let sentence = format!(
                "the value has {} bytes, but the buffer has {buffer_length}; give a larger buffer",
                found.len()
            );
            Failure::new(Code::BufferTooSmall, sentence)
        })?;
        target.copy_from_slice(&found);
        Ok(())
    })
}

/// Whether a key exists.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_contains(
    keyspace: Option<&KeyspaceHandle>,
    snapshot: Option<&SnapshotHandle>,
    key: *const u8,
    key_length: usize,
    mut is_found: Option<&mut MaybeUninit<bool>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut is_found);
    call(message, || {
        let found = find(keyspace, snapshot, bytes(key, key_length, "key")?)?;
        put(is_found, "is_found", found.is_some())
    })
}

/// Returns the approximate number of keys between two bounds; reads no blocks.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_approximate_count(
    keyspace: Option<&KeyspaceHandle>,
    lower: RangeBound,
    upper: RangeBound,
    mut count: Option<&mut MaybeUninit<u64>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut count);
    call(message, || {
        let bounds = (bound(lower, "lower")?, bound(upper, "upper")?);
        put(count, "count", self::keyspace(keyspace)?.approximate_count(bounds)?)
    })
}

/// Compacts the entries between two bounds into the deepest level, drops tombstones and obsolete versions, and waits.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_compact(
    database: Option<&Database>,
    keyspace: Option<&KeyspaceHandle>,
    lower: RangeBound,
    upper: RangeBound,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let bounds = (bound(lower, "lower")?, bound(upper, "upper")?);
        Ok(self::database(database)?.compact_range(self::keyspace(keyspace)?, bounds)?)
    })
}
