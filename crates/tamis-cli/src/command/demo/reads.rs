//! The demo's reads: points, prefixes, ranges in both directions, empty ranges, whole keyspaces, a snapshot.

use std::ops::Bound;

use tamis::{Keyspace, Scan, WriteBatch};

use super::{
    Demo, Done,
    fill::{EventPair, Samples},
};
use crate::failure::Failure;

/// Entries that a short scan takes.
const SCAN_LENGTH: usize = 50;
/// Keys that are deleted under a snapshot.
const DELETED_COUNT: usize = 1000;

impl Demo {
    /// Makes every kind of read on both keyspaces.
    pub(super) fn read(&mut self, samples: &Samples) -> Result<(), Failure> {
        self.read_paths(samples)?;
        self.read_events(samples)?;
        self.read_snapshot(samples)
    }

    fn read_paths(&mut self, samples: &Samples) -> Result<(), Failure> {
        let keys = &samples.paths;
        let present = keys.len() as u64;
        self.step("paths: get, present", Some(present), |demo| get_all(&demo.paths, keys.iter()))?;
        // No file name holds a zero byte.
        let absent: Vec<_> = keys.iter().map(|key| [key, b"\0".as_slice()].concat()).collect();
        self.step("paths: get, absent", Some(0), |demo| get_all(&demo.paths, absent.iter()))?;
        self.step("paths: a folder by its prefix", None, |demo| {
            scan_all(keys, |key| take(demo.paths.prefix(folder(key)), SCAN_LENGTH))
        })?;
        self.step("paths: the same backward", None, |demo| {
            scan_all(keys, |key| take_back(demo.paths.prefix(folder(key)), SCAN_LENGTH))
        })?;
        self.step("paths: seek, 50 next", None, |demo| {
            scan_all(keys, |key| take(demo.paths.range(key.clone()..), SCAN_LENGTH))
        })?;
        self.step("paths: seek, 50 back", None, |demo| {
            scan_all(keys, |key| take_back(demo.paths.range(..=key.clone()), SCAN_LENGTH))
        })?;
        self.step("paths: closed empty range", Some(0), |demo| {
            scan_all(keys, |key| {
                let bound = |byte| [key.as_slice(), &[byte]].concat();
                take(demo.paths.range(bound(0)..=bound(1)), SCAN_LENGTH)
            })
        })?;
        let stored = samples.path_count;
        self.step("paths: all", Some(stored), |demo| all(&demo.paths, false))?;
        self.step("paths: all, backward", Some(stored), |demo| all(&demo.paths, true))
    }

    fn read_events(&mut self, samples: &Samples) -> Result<(), Failure> {
        let pairs = &samples.events;
        let present = pairs.len() as u64;
        self.step("events: get, present", Some(present), |demo| {
            get_all(&demo.events, pairs.iter().map(|(key, _)| key))
        })?;
        // Between a sampled event and its follower there is no other.
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
        self.step("events: seek, 50 back", None, |demo| {
            scan_all(pairs, |pair| take_back(demo.events.range(..=pair.0), SCAN_LENGTH))
        })?;
        self.step("events: closed empty range", Some(0), |demo| {
            scan_all(pairs, |pair| take(demo.events.range(between(pair)), SCAN_LENGTH))
        })?;
        self.step("events: the same backward", Some(0), |demo| {
            scan_all(pairs, |pair| take_back(demo.events.range(between(pair)), SCAN_LENGTH))
        })?;
        self.step("events: first and last", Some(2), |demo| {
            let found = [demo.events.first()?, demo.events.last()?].iter().flatten().count();
            Ok(Done { operation_count: 2, entry_count: found as u64 })
        })?;
        let stored = samples.event_count;
        self.step("events: all", Some(stored), |demo| all(&demo.events, false))?;
        self.step("events: all, backward", Some(stored), |demo| all(&demo.events, true))
    }

    /// A snapshot still shows what was deleted after it was taken; at the end everything is there again.
    fn read_snapshot(&mut self, samples: &Samples) -> Result<(), Failure> {
        let keys: Vec<_> = samples.paths.iter().take(DELETED_COUNT).collect();
        let count = keys.len() as u64;
        let snapshot = self.db.snapshot();
        self.write_step("delete under a snapshot", |demo| {
            let mut batch = WriteBatch::new();
            for key in &keys {
                batch.delete(&demo.paths, key.as_slice())?;
            }
            demo.db.write(batch)?;
            Ok(Done { operation_count: count, entry_count: count })
        })?;
        self.step("get the deleted keys", Some(0), |demo| get_all(&demo.paths, keys.iter()))?;
        self.step("get them from the snapshot", Some(count), |demo| {
            let mut entry_count = 0;
            for key in &keys {
                entry_count += u64::from(snapshot.get(&demo.paths, key.as_slice())?.is_some());
            }
            Ok(Done { operation_count: count, entry_count })
        })?;
        self.write_step("put them back from the snapshot", |demo| {
            let mut batch = WriteBatch::new();
            for key in &keys {
                if let Some(value) = snapshot.get(&demo.paths, key.as_slice())? {
                    batch.put(&demo.paths, key.as_slice(), &value)?;
                }
            }
            demo.db.write(batch)?;
            Ok(Done { operation_count: count, entry_count: count })
        })?;
        self.step("get them again", Some(count), |demo| get_all(&demo.paths, keys.iter()))
    }
}

/// The folder of a path, with its slash.
fn folder(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    path.get(..end).unwrap_or_default()
}

fn get_all(keyspace: &Keyspace, keys: impl Iterator<Item = impl AsRef<[u8]>>) -> Result<Done, Failure> {
    let mut done = Done { operation_count: 0, entry_count: 0 };
    for key in keys {
        done.operation_count += 1;
        done.entry_count += u64::from(keyspace.get(key.as_ref())?.is_some());
    }
    Ok(done)
}

fn scan_all<S>(samples: &[S], mut scan: impl FnMut(&S) -> Result<u64, Failure>) -> Result<Done, Failure> {
    let mut done = Done { operation_count: 0, entry_count: 0 };
    for sample in samples {
        done.operation_count += 1;
        done.entry_count += scan(sample)?;
    }
    Ok(done)
}

/// Reads up to `length` entries forward; returns how many there were.
fn take(scan: Scan, length: usize) -> Result<u64, Failure> {
    let mut count = 0;
    for entry in scan.take(length) {
        entry?;
        count += 1;
    }
    Ok(count)
}

/// The same from the end backward.
fn take_back(scan: Scan, length: usize) -> Result<u64, Failure> {
    let mut count = 0;
    for entry in scan.rev().take(length) {
        entry?;
        count += 1;
    }
    Ok(count)
}

fn all(keyspace: &Keyspace, is_backward: bool) -> Result<Done, Failure> {
    let scan = keyspace.range::<&[u8]>(..);
    let entry_count = if is_backward { take_back(scan, usize::MAX)? } else { take(scan, usize::MAX)? };
    Ok(Done { operation_count: 1, entry_count })
}
