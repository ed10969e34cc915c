//! The demo's reads: gets, prefix scans, range scans in both directions, empty ranges, full scans, a snapshot.
//!
//! The first reads are those from which the store chooses its filters. It would choose them in the background; the demo asks for it,
//! so that each step shows the filters that belong to these reads.

use std::{ops::Bound, path::MAIN_SEPARATOR};

use tamis::{Keyspace, Scan, WriteBatch};

use super::{
    Demo, StepResult,
    fill::{EventPair, Samples},
};
use crate::failure::Failure;

/// Between the names of a path.
const SEPARATOR: u8 = MAIN_SEPARATOR as u8;
/// Entries per short scan.
const SCAN_LENGTH: usize = 50;
/// Reads of each kind from which the filters are chosen.
const FIRST_READS: usize = 2_000;
/// Number of keys that are deleted while a snapshot exists.
const DELETED_COUNT: usize = 1000;

impl Demo {
    /// Runs every kind of read on both keyspaces.
    pub(super) fn read(&mut self, samples: &Samples) -> Result<(), Failure> {
        self.read_first(samples)?;
        self.read_paths(samples)?;
        self.read_events(samples)?;
        self.read_snapshot(samples)
    }

    /// A few reads of each kind, and the choice of filters for them.
    fn read_first(&mut self, samples: &Samples) -> Result<(), Failure> {
        let paths = samples.paths.get(..samples.paths.len().min(FIRST_READS)).unwrap_or_default();
        let events = samples.events.get(..samples.events.len().min(FIRST_READS)).unwrap_or_default();
        self.step("first reads of each kind", None, |demo| {
            let mut done = StepResult { operation_count: 0, entry_count: 0 };
            let mut add = |step: StepResult| {
                done.operation_count += step.operation_count;
                done.entry_count += step.entry_count;
            };
            add(get_all(&demo.paths, paths.iter())?);
            add(get_all(&demo.paths, paths.iter().map(|key| absent_path(key)))?);
            add(scan_all(paths, |key| take(demo.paths.prefix(absent_folder(key)), SCAN_LENGTH))?);
            add(scan_all(paths, |key| take(empty_names(&demo.paths, key), SCAN_LENGTH))?);
            add(get_all(&demo.events, events.iter().map(|(key, _)| key))?);
            add(get_all(&demo.events, events.iter().filter_map(absent_event))?);
            add(scan_all(events, |pair| take(empty_span(&demo.events, pair), SCAN_LENGTH))?);
            Ok(done)
        })?;
        self.write_step("choose filters for these reads", |demo| {
            let replaced = demo.db.check_filters(&demo.paths)? + demo.db.check_filters(&demo.events)?;
            Ok(StepResult { operation_count: 1, entry_count: replaced })
        })
    }

    fn read_paths(&mut self, samples: &Samples) -> Result<(), Failure> {
        let keys = &samples.paths;
        let present = keys.len() as u64;
        self.step("paths: get, present", Some(present), |demo| get_all(&demo.paths, keys.iter()))?;
        let absent: Vec<_> = keys.iter().map(|key| absent_path(key)).collect();
        self.step("paths: get, absent", Some(0), |demo| get_all(&demo.paths, absent.iter()))?;
        self.step("paths: prefix scan of a folder", None, |demo| {
            scan_all(keys, |key| take(demo.paths.prefix(folder(key)), SCAN_LENGTH))
        })?;
        self.step("paths: prefix scan, reverse", None, |demo| {
            scan_all(keys, |key| take_back(demo.paths.prefix(folder(key)), SCAN_LENGTH))
        })?;
        self.step("paths: seek, 50 next", None, |demo| {
            scan_all(keys, |key| take(demo.paths.range(key.clone()..), SCAN_LENGTH))
        })?;
        self.step("paths: seek, 50 prev", None, |demo| {
            scan_all(keys, |key| take_back(demo.paths.range(..=key.clone()), SCAN_LENGTH))
        })?;
        self.step("paths: prefix of an absent folder", Some(0), |demo| {
            scan_all(keys, |key| take(demo.paths.prefix(absent_folder(key)), SCAN_LENGTH))
        })?;
        self.step("paths: empty range of names", Some(0), |demo| {
            scan_all(keys, |key| take(empty_names(&demo.paths, key), SCAN_LENGTH))
        })?;
        let stored = samples.path_count;
        self.step("paths: full scan", Some(stored), |demo| all(&demo.paths, false))?;
        self.step("paths: full scan, reverse", Some(stored), |demo| all(&demo.paths, true))
    }

    fn read_events(&mut self, samples: &Samples) -> Result<(), Failure> {
        let pairs = &samples.events;
        let present = pairs.len() as u64;
        self.step("events: get, present", Some(present), |demo| {
            get_all(&demo.events, pairs.iter().map(|(key, _)| key))
        })?;
        let absent: Vec<_> = pairs.iter().filter_map(absent_event).collect();
        self.step("events: get, absent", Some(0), |demo| get_all(&demo.events, absent.iter()))?;
        self.step("events: seek, 50 next", None, |demo| {
            scan_all(pairs, |pair| take(demo.events.range(pair.0..), SCAN_LENGTH))
        })?;
        self.step("events: seek, 50 prev", None, |demo| {
            scan_all(pairs, |pair| take_back(demo.events.range(..=pair.0), SCAN_LENGTH))
        })?;
        self.step("events: empty range", Some(0), |demo| {
            scan_all(pairs, |pair| take(empty_span(&demo.events, pair), SCAN_LENGTH))
        })?;
        self.step("events: empty range, reverse", Some(0), |demo| {
            scan_all(pairs, |pair| take_back(empty_span(&demo.events, pair), SCAN_LENGTH))
        })?;
        self.step("events: first and last", Some(2), |demo| {
            let found = [demo.events.first()?, demo.events.last()?].iter().flatten().count();
            Ok(StepResult { operation_count: 2, entry_count: found as u64 })
        })?;
        let stored = samples.event_count;
        self.step("events: full scan", Some(stored), |demo| all(&demo.events, false))?;
        self.step("events: full scan, reverse", Some(stored), |demo| all(&demo.events, true))
    }

    /// Deletes keys after a snapshot was taken, reads them from the snapshot, and puts them back.
    fn read_snapshot(&mut self, samples: &Samples) -> Result<(), Failure> {
        let keys: Vec<_> = samples.paths.iter().take(DELETED_COUNT).collect();
        let count = keys.len() as u64;
        let snapshot = self.db.snapshot();
        self.write_step("delete with a snapshot open", |demo| {
            let mut batch = WriteBatch::new();
            for key in &keys {
                batch.delete(&demo.paths, key.as_slice())?;
            }
            demo.db.write(batch)?;
            Ok(StepResult { operation_count: count, entry_count: count })
        })?;
        self.step("get deleted keys", Some(0), |demo| get_all(&demo.paths, keys.iter()))?;
        self.step("get from the snapshot", Some(count), |demo| {
            let mut entry_count = 0;
            for key in &keys {
                entry_count += u64::from(snapshot.get(&demo.paths, key.as_slice())?.is_some());
            }
            Ok(StepResult { operation_count: count, entry_count })
        })?;
        self.write_step("restore from the snapshot", |demo| {
            let mut batch = WriteBatch::new();
            for key in &keys {
                if let Some(value) = snapshot.get(&demo.paths, key.as_slice())? {
                    batch.put(&demo.paths, key.as_slice(), &value)?;
                }
            }
            demo.db.write(batch)?;
            Ok(StepResult { operation_count: count, entry_count: count })
        })?;
        self.step("get restored keys", Some(count), |demo| get_all(&demo.paths, keys.iter()))
    }
}

/// The parent folder of a path, with the trailing slash.
fn folder(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte == SEPARATOR).map_or(0, |slash| slash + 1);
    path.get(..end).unwrap_or_default()
}

/// A name that no folder has.
fn absent_path(path: &[u8]) -> Vec<u8> {
    [path, b"\0"].concat()
}

/// A folder that does not exist, next to a path.
fn absent_folder(path: &[u8]) -> Vec<u8> {
    // No file or folder has this name, because names contain no zero byte.
    [folder(path), b"absent\0", path.get(path.len().saturating_sub(4)..).unwrap_or_default(), &[SEPARATOR]]
        .concat()
}

/// Names in the folder of a path that begin with a zero byte.
fn empty_names(paths: &Keyspace, path: &[u8]) -> Scan {
    let bound = |byte| [folder(path), &[0, byte]].concat();
    paths.range(bound(0)..=bound(255))
}

/// A key between an event and its successor.
fn absent_event((key, next): &EventPair) -> Option<[u8; 16]> {
    let key = (u128::from_be_bytes(*key) + 1).to_be_bytes();
    (key < *next).then_some(key)
}

/// The second and third quarter of the time between an event and its successor.
fn empty_span(events: &Keyspace, (key, next): &EventPair) -> Scan {
    let (key, next) = (u128::from_be_bytes(*key), u128::from_be_bytes(*next));
    let quarter = (next - key) / 4;
    let (lower, upper) = (key + quarter, next - quarter);
    events.range((Bound::Excluded(lower.to_be_bytes()), Bound::Excluded(upper.to_be_bytes())))
}

fn get_all(keyspace: &Keyspace, keys: impl Iterator<Item = impl AsRef<[u8]>>) -> Result<StepResult, Failure> {
    let mut done = StepResult { operation_count: 0, entry_count: 0 };
    for key in keys {
        done.operation_count += 1;
        done.entry_count += u64::from(keyspace.get(key.as_ref())?.is_some());
    }
    Ok(done)
}

fn scan_all<S>(
    samples: &[S],
    mut scan: impl FnMut(&S) -> Result<u64, Failure>,
) -> Result<StepResult, Failure> {
    let mut done = StepResult { operation_count: 0, entry_count: 0 };
    for sample in samples {
        done.operation_count += 1;
        done.entry_count += scan(sample)?;
    }
    Ok(done)
}

/// Reads up to `length` entries forward; returns the number of entries read.
fn take(scan: Scan, length: usize) -> Result<u64, Failure> {
    let mut count = 0;
    for entry in scan.take(length) {
        entry?;
        count += 1;
    }
    Ok(count)
}

/// Like [`take`], but backward from the end.
fn take_back(scan: Scan, length: usize) -> Result<u64, Failure> {
    let mut count = 0;
    for entry in scan.rev().take(length) {
        entry?;
        count += 1;
    }
    Ok(count)
}

fn all(keyspace: &Keyspace, is_backward: bool) -> Result<StepResult, Failure> {
    let scan = keyspace.range(..);
    let entry_count = if is_backward { take_back(scan, usize::MAX)? } else { take(scan, usize::MAX)? };
    Ok(StepResult { operation_count: 1, entry_count })
}
