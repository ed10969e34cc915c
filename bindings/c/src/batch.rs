//! Write batches: atomic writes across keyspaces.

use std::{ffi::c_char, mem::MaybeUninit};

use engine::WriteBatch;
use tamis_bindings_common::{Code, expiry::time_at, fork::Guarded};

use crate::{
    boundary::{Exclusive, bytes, call, clear, clear_pointer, free_box, handle, put, put_handle, quiet},
    database::{Database, database, durability},
    keyspace::{KeyspaceHandle, RangeBound, bound, keyspace},
};

/// A write batch. One thread uses it at a time.
#[derive(Debug)]
pub struct Batch(Exclusive<Guarded<WriteBatch>>);

/// Creates an empty batch. Free it with tamis_batch_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_batch_new(
    mut batch: Option<&mut MaybeUninit<*mut Batch>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut batch);
    call(message, || put_handle(batch, "batch", Batch(Exclusive::new(Guarded::new(WriteBatch::new())))))
}

/// Adds a put to a batch. All keyspaces of a batch must belong to one database.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_batch_put(
    batch: Option<&Batch>,
    keyspace: Option<&KeyspaceHandle>,
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let (key, value) = (bytes(key, key_length, "key")?, bytes(value, value_length, "value")?);
        let keyspace = self::keyspace(keyspace)?;
        handle(batch, "batch")?.0.with(|batch| Ok(batch.get_mut()?.put(keyspace, key, value)?))
    })
}

/// Adds an operand to a batch, like tamis_merge.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_batch_merge(
    batch: Option<&Batch>,
    keyspace: Option<&KeyspaceHandle>,
    key: *const u8,
    key_length: usize,
    operand: *const u8,
    operand_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let (key, operand) = (bytes(key, key_length, "key")?, bytes(operand, operand_length, "operand")?);
        let keyspace = self::keyspace(keyspace)?;
        handle(batch, "batch")?.0.with(|batch| Ok(batch.get_mut()?.merge(keyspace, key, operand)?))
    })
}

/// Adds a put with a time of expiry to a batch, like tamis_put_until.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_batch_put_until(
    batch: Option<&Batch>,
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
        let keyspace = self::keyspace(keyspace)?;
        handle(batch, "batch")?.0.with(|batch| Ok(batch.get_mut()?.put_until(keyspace, key, value, time)?))
    })
}

/// Adds a delete to a batch.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_batch_delete(
    batch: Option<&Batch>,
    keyspace: Option<&KeyspaceHandle>,
    key: *const u8,
    key_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let key = bytes(key, key_length, "key")?;
        let keyspace = self::keyspace(keyspace)?;
        handle(batch, "batch")?.0.with(|batch| Ok(batch.get_mut()?.delete(keyspace, key)?))
    })
}

/// Adds the delete of all keys between two bounds to a batch.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_batch_delete_range(
    batch: Option<&Batch>,
    keyspace: Option<&KeyspaceHandle>,
    lower: RangeBound,
    upper: RangeBound,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let bounds = (bound(lower, "lower")?, bound(upper, "upper")?);
        let keyspace = self::keyspace(keyspace)?;
        handle(batch, "batch")?.0.with(|batch| Ok(batch.get_mut()?.delete_range(keyspace, bounds)?))
    })
}

/// Adds the delete of all keys that have a prefix to a batch.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_batch_delete_prefix(
    batch: Option<&Batch>,
    keyspace: Option<&KeyspaceHandle>,
    prefix: *const u8,
    prefix_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let prefix = bytes(prefix, prefix_length, "prefix")?;
        let keyspace = self::keyspace(keyspace)?;
        handle(batch, "batch")?.0.with(|batch| Ok(batch.get_mut()?.delete_prefix(keyspace, prefix)?))
    })
}

/// Adds the writes of another batch of the same database, which keeps them.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_batch_append(
    batch: Option<&Batch>,
    other: Option<&Batch>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let added = handle(other, "other")?.0.with(|other| Ok(other.get()?.clone()))?;
        handle(batch, "batch")?.0.with(|batch| Ok(batch.get_mut()?.append(&added)?))
    })
}

/// Returns the greatest number of bytes of a batch in the log.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_batch_size(
    batch: Option<&Batch>,
    mut size: Option<&mut MaybeUninit<usize>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut size);
    call(message, || {
        put(size, "size", handle(batch, "batch")?.0.with(|batch| Ok(batch.get()?.size_bytes()))?)
    })
}

/// Returns the number of writes in a batch.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_batch_count(
    batch: Option<&Batch>,
    mut count: Option<&mut MaybeUninit<usize>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut count);
    call(message, || put(count, "count", handle(batch, "batch")?.0.with(|batch| Ok(batch.get()?.len()))?))
}

/// Removes all writes from a batch; keeps the allocated memory.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_batch_clear(
    batch: Option<&Batch>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        handle(batch, "batch")?.0.with(|batch| {
            batch.get_mut()?.clear();
            Ok(())
        })
    })
}

/// Writes a batch atomically, with a durability of tamis_durability. The batch is empty afterwards, whether the write
/// succeeded or not.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_write(
    database: Option<&Database>,
    batch: Option<&Batch>,
    durability: i32,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let database = self::database(database)?;
        let durability = self::durability(durability)?;
        let taken = handle(batch, "batch")?.0.with(|batch| Ok(std::mem::take(batch.get_mut()?)))?;
        Ok(database.write_with(taken, durability)?)
    })
}

/// Frees a batch. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_batch_free(batch: *mut Batch) {
    quiet(|| free_box(batch));
}
