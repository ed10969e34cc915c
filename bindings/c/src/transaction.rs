//! Transactions: reads and writes that are committed together, if nothing that they have read has changed.

use std::{ffi::c_char, mem::MaybeUninit};

use engine::{Isolation, Savepoint, Transaction, TransactionOptions};
use tamis_bindings_common::{
    Code, Failure,
    expiry::time_at,
    fork::Guarded,
    scan::{Direction, Selection},
    transaction::{AnyScan, SharedTransaction},
};

use crate::{
    boundary::{bytes, call, clear, clear_pointer, free_box, handle, null, put, put_handle, quiet},
    database::{Database, database, durability},
    keyspace::{KeyspaceHandle, RangeBound, bound, keyspace, selection},
    multi_get::read_values,
    scan::ScanHandle,
    value::{Bytes, Value},
};

/// A transaction. Any number of threads may use it; scans that it has created serve one thread at a time.
#[derive(Debug)]
pub struct TransactionHandle(Guarded<SharedTransaction>);

/// How a transaction is isolated from the writes that others commit while it is open.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationKind {
    /// The keys and ranges that it has read must not have changed at the commit.
    Serializable = 0,
    /// The keys that it has written must not have changed at the commit. Allows write skew.
    Snapshot = 1,
}

fn options(isolation: i32, durability: i32) -> Result<TransactionOptions, Failure> {
    let isolation = match isolation {
        0 => Isolation::Serializable,
        1 => Isolation::Snapshot,
        _ => return Err(Failure::argument(format!("isolation: {isolation} is not valid; give 0 or 1"))),
    };
    Ok(TransactionOptions::default().isolation(isolation).durability(self::durability(durability)?))
}

fn new_handle(transaction: Transaction) -> TransactionHandle {
    TransactionHandle(Guarded::new(SharedTransaction::new(transaction)))
}

fn shared(transaction: Option<&TransactionHandle>) -> Result<&SharedTransaction, Failure> {
    handle(transaction, "transaction")?.0.get()
}

/// Begins a transaction with an isolation of tamis_isolation and a durability of tamis_durability. It reads a snapshot of all keyspaces and its own
/// writes, and nothing waits for it. Free it with tamis_transaction_free, also after the commit.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_begin(
    database: Option<&Database>,
    isolation: i32,
    durability: i32,
    mut transaction: Option<&mut MaybeUninit<*mut TransactionHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut transaction);
    call(message, || {
        let begun = self::database(database)?.transaction_with(options(isolation, durability)?);
        put_handle(transaction, "transaction", new_handle(begun))
    })
}

/// Begins an exclusive transaction, which has no conflicts except with tamis_ingest. Waits for its turn; all other writers wait until it
/// ends. TAMIS_CODE_EXCLUSIVE_TRANSACTION: this thread has one open.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_begin_exclusive(
    database: Option<&Database>,
    durability: i32,
    mut transaction: Option<&mut MaybeUninit<*mut TransactionHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut transaction);
    call(message, || {
        let begun = self::database(database)?.exclusive_with(options(0, durability)?)?;
        put_handle(transaction, "transaction", new_handle(begun))
    })
}

/// Like tamis_transaction_begin, for a loop that runs a transaction again after TAMIS_CODE_CONFLICT. Attempts are numbered from 0: the first one begins at
/// once, the next ones wait for a short random time, and from attempt 8 on they are exclusive, so that the loop ends.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_begin_attempt(
    database: Option<&Database>,
    isolation: i32,
    durability: i32,
    attempt: u32,
    mut transaction: Option<&mut MaybeUninit<*mut TransactionHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut transaction);
    call(message, || {
        let options = options(isolation, durability)?;
        let begun = self::database(database)?.transaction_attempt(options, attempt)?;
        put_handle(transaction, "transaction", new_handle(begun))
    })
}

/// Returns the value of a key, like tamis_get.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_get(
    transaction: Option<&TransactionHandle>,
    keyspace: Option<&KeyspaceHandle>,
    key: *const u8,
    key_length: usize,
    mut value: Option<&mut MaybeUninit<Value>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut value);
    call(message, || {
        let value = value.ok_or_else(|| null("value"))?;
        let (key, keyspace) = (bytes(key, key_length, "key")?, self::keyspace(keyspace)?);
        let found = shared(transaction)?.with(|transaction| Ok(transaction.get(keyspace, key)?))?;
        value.write(Value::of_found(found));
        Ok(())
    })
}

/// Whether a key exists.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_contains(
    transaction: Option<&TransactionHandle>,
    keyspace: Option<&KeyspaceHandle>,
    key: *const u8,
    key_length: usize,
    mut is_found: Option<&mut MaybeUninit<bool>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut is_found);
    call(message, || {
        let (key, keyspace) = (bytes(key, key_length, "key")?, self::keyspace(keyspace)?);
        let found = shared(transaction)?.with(|transaction| Ok(transaction.contains(keyspace, key)?))?;
        put(is_found, "is_found", found)
    })
}

/// Reads the values of `count` keys, like tamis_multi_get.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_multi_get(
    transaction: Option<&TransactionHandle>,
    keyspace: Option<&KeyspaceHandle>,
    keys: *const Bytes,
    count: usize,
    values: *mut MaybeUninit<Value>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        read_values((keys, count), values, |keys| {
            let keyspace = self::keyspace(keyspace)?;
            shared(transaction)?.with(|transaction| Ok(transaction.multi_get(keyspace, keys)?))
        })
    })
}

fn new_scan(
    transaction: Option<&TransactionHandle>,
    found: Option<&KeyspaceHandle>,
    selection: &Selection,
) -> Result<ScanHandle, Failure> {
    let scan = shared(transaction)?.scan(keyspace(found)?, selection, Direction::Forward)?;
    Ok(ScanHandle::new(AnyScan::Transaction(scan)))
}

/// Creates a scan of the entries between two bounds as they are now, for the functions tamis_scan_...; only the part that it has passed counts as read. The
/// end of the transaction ends it: its calls return TAMIS_CODE_TRANSACTION_ENDED then, and memory that it has returned is invalid. Free it with tamis_scan_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_range(
    transaction: Option<&TransactionHandle>,
    keyspace: Option<&KeyspaceHandle>,
    lower: RangeBound,
    upper: RangeBound,
    mut scan: Option<&mut MaybeUninit<*mut ScanHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut scan);
    call(message, || put_handle(scan, "scan", new_scan(transaction, keyspace, &selection(lower, upper)?)?))
}

/// Creates a scan of the entries whose keys have a prefix, like tamis_transaction_range.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_prefix(
    transaction: Option<&TransactionHandle>,
    keyspace: Option<&KeyspaceHandle>,
    prefix: *const u8,
    prefix_length: usize,
    mut scan: Option<&mut MaybeUninit<*mut ScanHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut scan);
    call(message, || {
        let selection = Selection::Prefix(bytes(prefix, prefix_length, "prefix")?.to_vec());
        put_handle(scan, "scan", new_scan(transaction, keyspace, &selection)?)
    })
}

/// Sets the value of a key. TAMIS_CODE_SIZE: the writes of the transaction would be larger than a memtable of the keyspace; the transaction stays as it was.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_put(
    transaction: Option<&TransactionHandle>,
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
        shared(transaction)?.with(|transaction| Ok(transaction.put(keyspace, key, value)?))
    })
}

/// Adds an operand to the value of a key, like tamis_merge. It is not a read: two transactions that merge into one key do not conflict.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_merge(
    transaction: Option<&TransactionHandle>,
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
        shared(transaction)?.with(|transaction| Ok(transaction.merge(keyspace, key, operand)?))
    })
}

/// Sets the value of a key until a time, like tamis_put_until.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_put_until(
    transaction: Option<&TransactionHandle>,
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
        shared(transaction)?.with(|transaction| Ok(transaction.put_until(keyspace, key, value, time)?))
    })
}

/// Deletes a key; an absent key is not an error.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_delete(
    transaction: Option<&TransactionHandle>,
    keyspace: Option<&KeyspaceHandle>,
    key: *const u8,
    key_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let (key, keyspace) = (bytes(key, key_length, "key")?, self::keyspace(keyspace)?);
        shared(transaction)?.with(|transaction| Ok(transaction.delete(keyspace, key)?))
    })
}

/// Deletes all keys between two bounds, also those that other writes put there before the commit.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_delete_range(
    transaction: Option<&TransactionHandle>,
    keyspace: Option<&KeyspaceHandle>,
    lower: RangeBound,
    upper: RangeBound,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let bounds = (bound(lower, "lower")?, bound(upper, "upper")?);
        let keyspace = self::keyspace(keyspace)?;
        shared(transaction)?.with(|transaction| Ok(transaction.delete_range(keyspace, bounds)?))
    })
}

/// Deletes all keys that have a prefix, like tamis_transaction_delete_range.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_delete_prefix(
    transaction: Option<&TransactionHandle>,
    keyspace: Option<&KeyspaceHandle>,
    prefix: *const u8,
    prefix_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let (prefix, keyspace) = (bytes(prefix, prefix_length, "prefix")?, self::keyspace(keyspace)?);
        shared(transaction)?.with(|transaction| Ok(transaction.delete_prefix(keyspace, prefix)?))
    })
}

/// Remembers the writes so far, by a number for tamis_transaction_roll_back_to.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_savepoint(
    transaction: Option<&TransactionHandle>,
    mut savepoint: Option<&mut MaybeUninit<u64>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut savepoint);
    call(message, || {
        let target = savepoint.ok_or_else(|| null("savepoint"))?;
        target.write(shared(transaction)?.with(|transaction| Ok(transaction.savepoint().0))?);
        Ok(())
    })
}

/// Removes the writes since a savepoint, which can be returned to again. Scans keep what they see.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_roll_back_to(
    transaction: Option<&TransactionHandle>,
    savepoint: u64,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    let savepoint = Savepoint(savepoint);
    call(message, || shared(transaction)?.with(|transaction| Ok(transaction.roll_back_to(savepoint)?)))
}

/// Writes all or nothing, and ends the transaction and its scans: later calls return TAMIS_CODE_TRANSACTION_ENDED. TAMIS_CODE_CONFLICT: another write has
/// changed what the transaction has read or written, and nothing was written; begin it again. The handle must still be freed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_commit(
    transaction: Option<&TransactionHandle>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || shared(transaction)?.commit())
}

/// Frees a transaction; rolls it back, and ends its scans, if it was not committed. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_transaction_free(transaction: *mut TransactionHandle) {
    quiet(|| free_box(transaction));
}

/// Replaces the value of a key if it is the expected one, atomically: NULL as `expected` is an absent key, NULL as `value` deletes the key. `is_replaced` is whether the
/// value was the expected one.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_compare_and_put(
    keyspace: Option<&KeyspaceHandle>,
    key: *const u8,
    key_length: usize,
    expected: Option<&Bytes>,
    value: Option<&Bytes>,
    mut is_replaced: Option<&mut MaybeUninit<bool>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut is_replaced);
    call(message, || {
        let target = is_replaced.ok_or_else(|| null("is_replaced"))?;
        let key = bytes(key, key_length, "key")?;
        let expected = expected.map(|given| bytes(given.data, given.length, "expected")).transpose()?;
        let value = value.map(|given| bytes(given.data, given.length, "value")).transpose()?;
        target.write(self::keyspace(keyspace)?.compare_and_put(key, expected, value)?);
        Ok(())
    })
}
