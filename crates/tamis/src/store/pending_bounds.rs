//! The bounds at which running jobs divide partitions.
//!
//! A job that splits or divides a partition has to cut the tables that a bound cuts through, in the end while flushes are paused. So
//! flushes end their tables at these bounds as soon as the job knows them, and these tables need not be cut.

use std::collections::BTreeMap;

use crate::sync::Mutex;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct PendingBounds(Mutex<BTreeMap<u64, Vec<Vec<u8>>>>);

impl PendingBounds {
    /// Records that a job divides a partition at these keys, which ascend. One job at a time divides a partition.
    pub(crate) fn begin(&self, partition: u64, keys: &[Vec<u8>]) -> PendingDivision<'_> {
        if !keys.is_empty() {
            self.0.lock().insert(partition, keys.to_vec());
        }
        PendingDivision { all: self, partition }
    }

    /// The keys at which a running job divides the partition, in ascending order.
    pub(crate) fn of(&self, partition: u64) -> Vec<Vec<u8>> {
        self.0.lock().get(&partition).cloned().unwrap_or_default()
    }
}

/// The job is running. Ends when it is dropped.
pub(crate) struct PendingDivision<'a> {
    all: &'a PendingBounds,
    partition: u64,
}

impl Drop for PendingDivision<'_> {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.partition);
    }
}
