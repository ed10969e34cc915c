//! The demo's reads: gets, prefix scans, range scans in both directions, empty ranges, full scans, a snapshot.

use std::ops::Bound;

use tamis::{Keyspace, Scan, WriteBatch};

use super::{
    Demo, StepResult,
    fill::{EventPair, Samples},
};
use crate::failure::Failure;

/// Entries per short scan.
const SCAN_LENGTH: usize = 50;
/// Number of keys that are deleted while a snapshot exists.
const DELETED_COUNT: usize = 1000;

impl Demo {
    /// Runs every kind of read on both keyspaces.
    pub(super) fn read(&mut self, samples: &Samples) -> Result<(), Failure> {
        self.read_paths(samples)?;
        self.read_events(samples)?;
        self.read_snapshot(samples)
    }

    fn read_paths(&mut self, samples: &Samples) -> Result<(), Failure> {
        let keys = &samples.paths;
        let present = keys.len() as u64;
        self.step("paths: get, present", Some(present), |demo| get_all(&demo.paths, keys.iter()))?;
        // File names never contain a zero byte.
        let absent: Vec<_> = keys.iter().map(|key| [key, b"\0".as_slice()].concat()).collect();
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
        self.step("paths: empty range", Some(0), |demo| {
            scan_all(keys, |key| {
                let bound = |byte| [key.as_slice(), &[byte]].concat();
                take(demo.paths.range(bound(0)..=bound(1)), SCAN_LENGTH)
            })
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
        // There is no event between a sampled event and its successor.
        let between = |pair: &EventPair| (Bound::Excluded(pair.0), Bound::Excluded(pair.1));
        let absent: Vec<_> = pairs
            .iter()
            .map(|(key, _)| u128::from_be_bytes(*key) + 1)
            .zip(pairs)
            .filter_map(|(number, (_, next))| {
                let key = number.to_be_bytes();
                (key < *next).then_some(key)
            })
            .collect();
        self.step("events: get, absent", Some(0), |demo| get_all(&demo.events, absent.iter()))?;
        self.step("events: seek, 50 next", None, |demo| {
            scan_all(pairs, |pair| take(demo.events.range(pair.0..), SCAN_LENGTH))
        })?;
        self.step("events: seek, 50 prev", None, |demo| {
            scan_all(pairs, |pair| take_back(demo.events.range(..=pair.0), SCAN_LENGTH))
        })?;
        self.step("events: empty range", Some(0), |demo| {
            scan_all(pairs, |pair| take(demo.events.range(between(pair)), SCAN_LENGTH))
        })?;
        self.step("events: empty range, reverse", Some(0), |demo| {
            scan_all(pairs, |pair| take_back(demo.events.range(between(pair)), SCAN_LENGTH))
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
    let end = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    path.get(..end).unwrap_or_default()
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
    let scan = keyspace.range::<&[u8]>(..);
    let entry_count = if is_backward { take_back(scan, usize::MAX)? } else { take(scan, usize::MAX)? };
    Ok(StepResult { operation_count: 1, entry_count })
}
