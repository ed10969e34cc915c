//! The values of many keys in one call.

use std::{ffi::c_char, mem::MaybeUninit};

use engine::Slice;
use tamis_bindings_common::{Code, Failure};

use crate::{
    boundary::{bytes, call, items, items_mut},
    keyspace::{KeyspaceHandle, keyspace},
    snapshot::{SnapshotHandle, snapshot},
    value::{Bytes, Value},
};

/// Reads the values of `count` keys in one consistent state, in the order of the keys; the value of an absent key has a NULL pointer. Free the values
/// with tamis_values_free. After a failure all values have a NULL pointer.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_multi_get(
    keyspace: Option<&KeyspaceHandle>,
    snapshot: Option<&SnapshotHandle>,
    keys: *const Bytes,
    count: usize,
    values: *mut MaybeUninit<Value>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        read_values((keys, count), values, |keys| {
            let keyspace = self::keyspace(keyspace)?;
            Ok(match self::snapshot(snapshot)? {
                Some(snapshot) => snapshot.multi_get(keyspace, keys)?,
                None => keyspace.multi_get(keys)?,
            })
        })
    })
}

/// Stores the values of `count` keys, which `read` returns. Without a value, and after a failure, a pointer is NULL.
pub(crate) fn read_values(
    (keys, count): (*const Bytes, usize),
    values: *mut MaybeUninit<Value>,
    read: impl FnOnce(Vec<&[u8]>) -> Result<Vec<Option<Slice>>, Failure>,
) -> Result<(), Failure> {
    let targets = items_mut(values, count, "values")?;
    targets.iter_mut().for_each(|target| *target = MaybeUninit::new(Value::default()));
    let keys = items(keys, count, "keys")?;
    let keys = keys.iter().map(|key| bytes(key.data, key.length, "key"));
    let found = read(keys.collect::<Result<Vec<&[u8]>, _>>()?)?;
    for (target, found) in targets.iter_mut().zip(found) {
        *target = MaybeUninit::new(Value::of_found(found));
    }
    Ok(())
}
