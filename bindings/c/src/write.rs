//! Writes of a keyspace with a durability, and range deletes.

use std::{ffi::c_char, mem::MaybeUninit};

use engine::{Keyspace, WriteBatch};
use tamis_bindings_common::Code;

use crate::{
    boundary::{Outcome, bytes, call},
    database::durability,
    keyspace::{KeyspaceHandle, RangeBound, bound, store},
};

/// Writes one batch with a durability of the header.
fn write(
    keyspace: Option<&KeyspaceHandle>,
    durability: i32,
    add: impl FnOnce(&mut WriteBatch, &Keyspace) -> engine::Result<()>,
) -> Outcome {
    let durability = self::durability(durability)?;
    let (database, keyspace) = store(keyspace)?;
    let mut batch = WriteBatch::new();
    add(&mut batch, keyspace)?;
    Ok(database.write_with(batch, durability)?)
}

/// Sets the value of a key with a durability of tamis_durability.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_put_with(
    keyspace: Option<&KeyspaceHandle>,
    key: *const u8,
    key_length: usize,
    value: *const u8,
    value_length: usize,
    durability: i32,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let (key, value) = (bytes(key, key_length, "key")?, bytes(value, value_length, "value")?);
        write(keyspace, durability, |batch, keyspace| batch.put(keyspace, key, value))
    })
}

/// Deletes a key with a durability of tamis_durability; an absent key is not an error.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_delete_with(
    keyspace: Option<&KeyspaceHandle>,
    key: *const u8,
    key_length: usize,
    durability: i32,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let key = bytes(key, key_length, "key")?;
        write(keyspace, durability, |batch, keyspace| batch.delete(keyspace, key))
    })
}

/// Deletes all keys between two bounds, with a durability of tamis_durability: one log record for any number of keys. Reversed bounds
/// delete nothing.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_delete_range(
    keyspace: Option<&KeyspaceHandle>,
    lower: RangeBound,
    upper: RangeBound,
    durability: i32,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let bounds = (bound(lower, "lower")?, bound(upper, "upper")?);
        write(keyspace, durability, |batch, keyspace| batch.delete_range(keyspace, bounds))
    })
}

/// Deletes all keys that have a prefix, like tamis_delete_range.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_delete_prefix(
    keyspace: Option<&KeyspaceHandle>,
    prefix: *const u8,
    prefix_length: usize,
    durability: i32,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let prefix = bytes(prefix, prefix_length, "prefix")?;
        write(keyspace, durability, |batch, keyspace| batch.delete_prefix(keyspace, prefix))
    })
}

/// Deletes all keys of a keyspace, like tamis_delete_range.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_clear(
    keyspace: Option<&KeyspaceHandle>,
    durability: i32,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || write(keyspace, durability, |batch, keyspace| batch.delete_range(keyspace, ..)))
}
