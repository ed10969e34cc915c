//! The visible sequence number and the snapshots that compactions must respect.
//!
//! A scan owns the memtables and tables that it reads and is not registered. A [`crate::Snapshot`] can be read at any later time,
//! from the tables that exist then: its sequence number is registered here, and flushes and compactions keep the versions that it
//! sees.
//!
//! The registered numbers and the visible one are read under one lock: a job that began without a snapshot began at a
//! visible number that is not above the snapshot's number.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;

use crate::key::Sequence;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    visible: AtomicU64,
    registered: Mutex<BTreeMap<Sequence, usize>>,
}

impl Snapshots {
    /// The newest sequence number that readers see.
    pub(crate) fn visible(&self) -> Sequence {
        self.visible.load(Ordering::Acquire)
    }

    /// Makes all entries up to `sequence` visible: the last step of a commit.
    pub(crate) fn publish(&self, sequence: Sequence) {
        self.visible.store(sequence, Ordering::Release);
    }

    /// Registers a snapshot at the visible sequence number and returns the number.
    pub(crate) fn register(&self) -> Sequence {
        let mut registered = self.registered.lock();
        let sequence = self.visible();
        *registered.entry(sequence).or_insert(0) += 1;
        sequence
    }

    /// Releases a snapshot.
    pub(crate) fn release(&self, sequence: Sequence) {
        let mut registered = self.registered.lock();
        if let Some(count) = registered.get_mut(&sequence) {
            *count -= 1;
            if *count == 0 {
                registered.remove(&sequence);
            }
        }
    }

    /// The read points that a job that begins now must respect, ascending; the last one is the visible sequence number.
    pub(crate) fn read_points(&self) -> Vec<Sequence> {
        let registered = self.registered.lock();
        let visible = self.visible();
        let mut points: Vec<_> = registered.keys().copied().collect();
        if points.last() != Some(&visible) {
            points.push(visible);
        }
        points
    }
}
