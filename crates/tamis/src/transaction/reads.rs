//! The keys that a transaction has read, by keyspace.

use std::{collections::BTreeMap, ops::Bound};

use tamis_vfs::fork::Process;

use super::key_ranges::KeyRanges;
use crate::{range_tombstone::half_open, sync::Mutex};

/// See the head of this file. Its scans have a reference to it.
#[derive(Debug)]
pub(super) struct Reads {
    /// `None`: they are not recorded.
    ranges: Option<Mutex<BTreeMap<u32, KeyRanges>>>,
    /// In a forked child another thread may hold the lock forever.
    process: Process,
}

impl Reads {
    pub(super) fn recorded(is_recorded: bool) -> Self {
        Self { ranges: is_recorded.then(Mutex::default), process: Process::current() }
    }

    /// Records keys.
    pub(super) fn add_keys<'k>(&self, keyspace: u32, keys: impl IntoIterator<Item = &'k [u8]>) {
        if let Some(ranges) = &self.ranges {
            let mut ranges = ranges.lock();
            let ranges = ranges.entry(keyspace).or_default();
            keys.into_iter().for_each(|key| ranges.add_key(key));
        }
    }

    /// Records the keys between two bounds.
    pub(super) fn add_range(&self, keyspace: u32, lower: Bound<&[u8]>, upper: Bound<&[u8]>) {
        if let Some(ranges) = &self.ranges
            && self.process.is_current()
            && let Some((lower, upper)) = half_open(lower, upper)
        {
            ranges.lock().entry(keyspace).or_default().add_range(&lower, &upper);
        }
    }

    /// The recorded keys; `None` if they are not recorded.
    pub(super) fn take(&self) -> Option<BTreeMap<u32, KeyRanges>> {
        self.ranges.as_ref().map(|ranges| std::mem::take(&mut *ranges.lock()))
    }
}
