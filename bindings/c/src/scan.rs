//! Scans: the entries of a range in both directions, one by one or in chunks.

use std::{ffi::c_char, mem::MaybeUninit};

use tamis_bindings_common::{
    Code, Failure,
    columns::{ChunkLimit, Columns, Parts},
    fork::Guarded,
    scan::{Direction, Selection, Steps, scan, step},
    transaction::AnyScan,
};

use crate::{
    boundary::{
        Exclusive, Out, Outcome, bytes, call, clear, clear_pointer, free_box, handle, items, items_mut, null,
        put, put_handle, quiet,
    },
    keyspace::{KeyspaceHandle, RangeBound, RangeOfKeys, bound, keyspace, selection},
    snapshot::{SnapshotHandle, snapshot},
    value::{Bytes, Owner, Value},
};

/// A scan. It reads the state at its creation, and needs neither the handle of its keyspace nor of its snapshot. One
/// thread uses it at a time.
#[derive(Debug)]
pub struct ScanHandle(Exclusive<Position>);

impl ScanHandle {
    pub(crate) fn new(scan: AnyScan) -> Self {
        Self(Exclusive::new(Position { scan: Guarded::new(scan), columns: Columns::default() }))
    }
}

#[derive(Debug)]
struct Position {
    scan: Guarded<AnyScan>,
    columns: Columns,
}

/// Entries of a scan in memory that the scan owns, valid until its next call. The key of entry `i` is `key_bytes[key_ends[i - 1]]` up to
/// `key_bytes[key_ends[i]]` (exclusive); the key of entry 0 begins at 0. The same applies to values.
#[repr(C)]
#[derive(Debug)]
pub struct Chunk {
    /// Number of entries.
    pub count: usize,
    /// Whether the scan has no more entries in this direction.
    pub is_finished: bool,
    /// The bytes of all keys.
    pub key_bytes: *const u8,
    /// The end of each key.
    pub key_ends: *const usize,
    /// The bytes of all values.
    pub value_bytes: *const u8,
    /// The end of each value.
    pub value_ends: *const usize,
}

impl Default for Chunk {
    fn default() -> Self {
        Self {
            count: 0,
            is_finished: false,
            key_bytes: std::ptr::null(),
            key_ends: std::ptr::null(),
            value_bytes: std::ptr::null(),
            value_ends: std::ptr::null(),
        }
    }
}

fn new_scan(
    found: Option<&KeyspaceHandle>,
    as_of: Option<&SnapshotHandle>,
    selection: &Selection,
) -> Result<ScanHandle, Failure> {
    let scan = scan(keyspace(found)?, snapshot(as_of)?, selection, Direction::Forward);
    Ok(ScanHandle::new(AnyScan::Store(scan)))
}

/// Creates a scan of the entries between two bounds, in a snapshot or in the current state (NULL). It starts before the first entry; nothing is read
/// before the first step. Free it with tamis_scan_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_range(
    keyspace: Option<&KeyspaceHandle>,
    snapshot: Option<&SnapshotHandle>,
    lower: RangeBound,
    upper: RangeBound,
    mut scan: Option<&mut MaybeUninit<*mut ScanHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut scan);
    call(message, || put_handle(scan, "scan", new_scan(keyspace, snapshot, &selection(lower, upper)?)?))
}

/// Creates a scan of the entries whose keys have a prefix.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_prefix(
    keyspace: Option<&KeyspaceHandle>,
    snapshot: Option<&SnapshotHandle>,
    prefix: *const u8,
    prefix_length: usize,
    mut scan: Option<&mut MaybeUninit<*mut ScanHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut scan);
    call(message, || {
        let selection = Selection::Prefix(bytes(prefix, prefix_length, "prefix")?.to_vec());
        put_handle(scan, "scan", new_scan(keyspace, snapshot, &selection)?)
    })
}

/// Creates a scan for each of `count` ranges, in the order of the ranges. Scans of one call share reads of the same and of adjacent blocks. Free each with
/// tamis_scan_free. After a failure all scans are NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_multi_range(
    keyspace: Option<&KeyspaceHandle>,
    snapshot: Option<&SnapshotHandle>,
    ranges: *const RangeOfKeys,
    count: usize,
    scans: *mut MaybeUninit<*mut ScanHandle>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let targets = items_mut(scans, count, "scans")?;
        targets.iter_mut().for_each(|target| *target = MaybeUninit::new(std::ptr::null_mut()));
        let ranges = items(ranges, count, "ranges")?.iter();
        let ranges = ranges.map(|range| Ok((bound(range.lower, "lower")?, bound(range.upper, "upper")?)));
        let ranges = ranges.collect::<Result<Vec<_>, Failure>>()?;
        let keyspace = self::keyspace(keyspace)?;
        let made = match self::snapshot(snapshot)? {
            Some(snapshot) => snapshot.multi_range(keyspace, ranges),
            None => keyspace.multi_range(ranges),
        };
        for (target, scan) in targets.iter_mut().zip(made) {
            put_handle(Some(target), "scans", ScanHandle::new(AnyScan::Store(scan)))?;
        }
        Ok(())
    })
}

/// Runs `work` with the scan of a handle.
fn with<R>(
    scan: Option<&ScanHandle>,
    work: impl FnOnce(&mut dyn Steps) -> Result<R, Failure>,
) -> Result<R, Failure> {
    handle(scan, "scan")?.0.with(|position| position.scan.get_mut()?.with(work))
}

/// Moves to the next entry; `has_entry` is false after the last one.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_scan_next(
    scan: Option<&ScanHandle>,
    mut has_entry: Option<&mut MaybeUninit<bool>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut has_entry);
    call(message, || put(has_entry, "has_entry", with(scan, |scan| Ok(step(scan, Direction::Forward)?))?))
}

/// Moves to the previous entry; `has_entry` is false before the first one.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_scan_prev(
    scan: Option<&ScanHandle>,
    mut has_entry: Option<&mut MaybeUninit<bool>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut has_entry);
    call(message, || put(has_entry, "has_entry", with(scan, |scan| Ok(step(scan, Direction::Backward)?))?))
}

/// Seeks, so that tamis_scan_next returns the first entry at or after a key, and tamis_scan_prev the last entry before it.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_scan_seek(
    scan: Option<&ScanHandle>,
    key: *const u8,
    key_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let key = bytes(key, key_length, "key")?;
        with(scan, |scan| Ok(scan.seek(key)?))
    })
}

/// Seeks, so that tamis_scan_prev returns the last entry at or before a key, and tamis_scan_next the first entry after it.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_scan_seek_for_prev(
    scan: Option<&ScanHandle>,
    key: *const u8,
    key_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let key = bytes(key, key_length, "key")?;
        with(scan, |scan| Ok(scan.seek_for_prev(key)?))
    })
}

/// Moves before the first entry, so that tamis_scan_next returns it.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_scan_seek_to_first(
    scan: Option<&ScanHandle>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        with(scan, |scan| {
            scan.seek_to_first();
            Ok(())
        })
    })
}

/// Moves after the last entry, so that tamis_scan_prev returns it.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_scan_seek_to_last(
    scan: Option<&ScanHandle>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        with(scan, |scan| {
            scan.seek_to_last();
            Ok(())
        })
    })
}

/// Returns key and value of the entry of the last tamis_scan_next or tamis_scan_prev; both have length 0 if there was none. They are
/// in memory that the scan owns, valid until its next call. `key` or `value` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_scan_entry(
    scan: Option<&ScanHandle>,
    key: Option<&mut MaybeUninit<Bytes>>,
    value: Option<&mut MaybeUninit<Bytes>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    let view = |bytes: &[u8]| Bytes { data: bytes.as_ptr(), length: bytes.len() };
    call(message, || {
        with(scan, |scan| {
            key.map(|key| key.write(view(scan.key())));
            value.map(|value| value.write(view(scan.value())));
            Ok(())
        })
    })
}

/// Reads the next entries, forward or (`is_backward` not 0) backward: at most `count_max` entries, until they have `bytes_max` bytes.
/// There is no allocation per entry. Afterwards the scan is at the last entry of the chunk.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_scan_chunk(
    scan: Option<&ScanHandle>,
    is_backward: i32,
    count_max: usize,
    bytes_max: usize,
    mut chunk: Option<&mut MaybeUninit<Chunk>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut chunk);
    let direction = if is_backward == 0 { Direction::Forward } else { Direction::Backward };
    call(message, || {
        let target = chunk.ok_or_else(|| null("chunk"))?;
        handle(scan, "scan")?.0.with(|position| {
            let Position { scan, columns } = position;
            columns.clear();
            let limit = ChunkLimit { entry_count: count_max, bytes: bytes_max };
            let filled = scan.get_mut()?.fill(columns, direction, Parts::Both, limit)?;
            target.write(Chunk {
                count: filled.entry_count,
                is_finished: filled.is_finished,
                key_bytes: columns.keys.bytes.as_ptr(),
                key_ends: columns.keys.ends.as_ptr(),
                value_bytes: columns.values.bytes.as_ptr(),
                value_ends: columns.values.ends.as_ptr(),
            });
            Ok(())
        })
    })
}

/// Returns the entry with the smallest key, in a snapshot or in the current state (NULL); the pointers of `key` and `value` are NULL if there is none. Free
/// both with tamis_value_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_first(
    keyspace: Option<&KeyspaceHandle>,
    snapshot: Option<&SnapshotHandle>,
    mut key: Option<&mut MaybeUninit<Value>>,
    mut value: Option<&mut MaybeUninit<Value>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut key);
    clear(&mut value);
    call(message, || end(keyspace, snapshot, Direction::Forward, key, value))
}

/// Returns the entry with the largest key, like tamis_first.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_last(
    keyspace: Option<&KeyspaceHandle>,
    snapshot: Option<&SnapshotHandle>,
    mut key: Option<&mut MaybeUninit<Value>>,
    mut value: Option<&mut MaybeUninit<Value>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut key);
    clear(&mut value);
    call(message, || end(keyspace, snapshot, Direction::Backward, key, value))
}

fn end(
    found: Option<&KeyspaceHandle>,
    as_of: Option<&SnapshotHandle>,
    direction: Direction,
    key: Out<'_, Value>,
    value: Out<'_, Value>,
) -> Outcome {
    let key = key.ok_or_else(|| null("key"))?;
    let value = value.ok_or_else(|| null("value"))?;
    let mut scan = scan(keyspace(found)?, snapshot(as_of)?, &Selection::ALL, direction);
    if step(&mut scan, direction)? {
        key.write(Value::new(Owner::Vector(scan.key().to_vec())));
        value.write(Value::new(Owner::Vector(scan.value().to_vec())));
    }
    Ok(())
}

/// Frees a scan. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_scan_free(scan: *mut ScanHandle) {
    quiet(|| free_box(scan));
}
