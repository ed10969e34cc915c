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
    time::Duration,
};

use crate::{
    expiry::ExpiryClock,
    key::{Readers, Sequence},
    sync::{self, Mutex, sim_fault},
};

/// The point in time of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SnapshotPoint {
    pub(crate) sequence: Sequence,
    /// By which entries are expired ([`crate::expiry`]); 0: that of the first one that the read meets.
    pub(crate) time: u64,
}

impl SnapshotPoint {
    /// That of a read that begins now.
    #[inline]
    pub(crate) const fn now(sequence: Sequence) -> Self {
        Self { sequence, time: 0 }
    }

    /// With the time of now, unless it has one.
    pub(crate) fn with_time(self, clock: &ExpiryClock) -> Self {
        Self { time: if self.time == 0 { clock.now() } else { self.time }, ..self }
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    visible: AtomicU64,
    registered: Mutex<BTreeMap<Sequence, Registered>>,
}

/// The snapshots at one sequence number.
#[derive(Debug)]
struct Registered {
    count: usize,
    /// The time of the first of them.
    since: Duration,
    /// The time by which its entries are expired, of the first of them.
    expiry_time: u64,
}

impl Snapshots {
    /// The newest sequence number that readers see.
    pub(crate) fn visible(&self) -> Sequence {
        sync::point();
        let sequence = self.visible.load(Ordering::Acquire);
        sync::point();
        sequence
    }

    /// Makes all entries up to `sequence` visible: the last step of a commit.
    pub(crate) fn publish(&self, sequence: Sequence) {
        self.visible.store(sequence, Ordering::Release);
        #[cfg(feature = "simulation")]
        sync::hooks::visible(sequence);
    }

    /// Registers a snapshot at the visible sequence number and at the time of now.
    pub(crate) fn register(&self, now: Duration, clock: &ExpiryClock) -> SnapshotPoint {
        let mut registered = self.registered.lock();
        let (sequence, time) = (self.visible(), clock.now());
        if !sim_fault!("forget-snapshot") {
            let new = Registered { count: 0, since: now, expiry_time: time };
            registered.entry(sequence).or_insert(new).count += 1;
        }
        SnapshotPoint { sequence, time }
    }

    /// An entry that is expired at this time is expired for all snapshots and all later readers.
    fn expiry_time(&self, clock: &ExpiryClock) -> u64 {
        let registered = self.registered.lock();
        if sim_fault!("expire-before-a-snapshot") {
            return clock.now();
        }
        registered.values().next().map_or_else(|| clock.now(), |oldest| oldest.expiry_time)
    }

    /// The number of snapshots, and when the oldest was taken.
    pub(crate) fn oldest(&self) -> (usize, Option<Duration>) {
        let registered = self.registered.lock();
        let count = registered.values().map(|snapshots| snapshots.count).sum();
        (count, registered.values().next().map(|snapshots| snapshots.since))
    }

    /// Releases a snapshot; returns whether it was the last one at its sequence number.
    pub(crate) fn release(&self, sequence: Sequence) -> bool {
        let mut registered = self.registered.lock();
        let Some(snapshots) = registered.get_mut(&sequence) else { return false };
        snapshots.count -= 1;
        let is_last = snapshots.count == 0;
        if is_last {
            registered.remove(&sequence);
        }
        is_last
    }

    /// The readers that a job that begins now must respect.
    pub(crate) fn readers(&self, clock: &ExpiryClock) -> Readers {
        // Before the read points: a snapshot that they do not have has a later time.
        let expiry_time = self.expiry_time(clock);
        Readers { read_points: self.read_points(), expiry_time }
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
