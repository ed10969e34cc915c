//! Shared by the experiments on whole stores: values, loads, and settling.

use tamis::{Db, Keyspace, WriteBatch};
use tamis_bench::{BenchError, Context};
use tamis_workload::SplitMix64;

/// Size of a write batch, in entries.
const BATCH_ENTRIES: usize = 1_000;

/// A value that differs from others.
pub(crate) fn value(random: &mut SplitMix64, value_bytes: usize) -> Vec<u8> {
    let mut value = vec![0; value_bytes];
    tamis_workload::fill_value(random.next_u64(), &mut value);
    value
}

/// Writes keys in their order, each with a value, in batches.
pub(crate) fn put_all<K: AsRef<[u8]>>(
    (db, keyspace): (&Db, &Keyspace),
    keys: impl ExactSizeIterator<Item = K>,
    value_bytes: usize,
    context: &mut Context<'_>,
) -> Result<(), BenchError> {
    let mut random = SplitMix64::new(context.seed());
    let count = keys.len();
    let mut batch = WriteBatch::new();
    for (index, key) in keys.enumerate() {
        batch.put(keyspace, key, value(&mut random, value_bytes))?;
        if batch.len() == BATCH_ENTRIES {
            db.write(std::mem::take(&mut batch))?;
            context.progress(index as f64 / count as f64)?;
        }
    }
    Ok(db.write(batch)?)
}

/// Flushes, and waits until no compaction is due.
pub(crate) fn settle(db: &Db) -> Result<(), BenchError> {
    db.flush()?;
    Ok(db.wait_for_compactions()?)
}
