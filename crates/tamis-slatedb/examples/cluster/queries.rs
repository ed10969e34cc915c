//! The queries: seeded, so that every run has the same.

use tamis_workload::SplitMix64;

use crate::data::{Data, SENSOR_BYTES, Set, directory, event_key, file};
use crate::messages::Kind;

/// Longest empty range of events: a tenth of the mean time between two events of a sensor.
const SPAN_NS_MAX: u64 = 20_000_000;
/// Longest empty range of file numbers.
const FILE_SPAN_MAX: u64 = 1 << 16;
/// Bytes of a moment in an empty prefix of events: a block of 17 ms.
const MOMENT_BYTES: usize = 5;
/// Entries of a full range.
const FULL_RANGE_ENTRIES: u64 = 50;

/// A query.
#[derive(Debug, Clone)]
pub(crate) enum Query {
    /// Both bounds are included.
    Range(Vec<u8>, Vec<u8>),
    /// A range of the keys with a prefix, by what follows the prefix; both bounds are included.
    Part(Vec<u8>, Vec<u8>, Vec<u8>),
    Prefix(Vec<u8>),
    Point(Vec<u8>),
}

/// Queries of one kind.
pub(crate) fn generate(data: &Data, kind: Kind, count: usize, seed: u64) -> Vec<Query> {
    let mut random = SplitMix64::new(seed ^ (kind as u64) << 32 ^ (data.set as u64) << 40);
    (0..count).map(|index| query(data, kind, index, &mut random)).collect()
}

fn query(data: &Data, kind: Kind, index: usize, random: &mut SplitMix64) -> Query {
    match kind {
        Kind::EmptyRange => {
            let (lower, upper) = empty_range(data, random);
            Query::Range(lower, upper)
        }
        Kind::EmptyPart => {
            let (mut prefix, mut upper) = empty_range(data, random);
            let lower = prefix.split_off(data.set.prefix_bytes());
            Query::Part(prefix, lower, upper.split_off(data.set.prefix_bytes()))
        }
        Kind::EmptyPrefix => empty_prefix(data, random),
        Kind::Point => Query::Point(point(data, index.is_multiple_of(2), random)),
        Kind::FullRange => {
            let count = data.sorted.len() as u64;
            let first = random.below(count.saturating_sub(FULL_RANGE_ENTRIES).max(1));
            let last = (first + FULL_RANGE_ENTRIES - 1).min(count - 1);
            let key = |index: u64| data.sorted.get(index as usize).cloned().unwrap_or_default();
            Query::Range(key(first), key(last))
        }
    }
}

fn empty_range(data: &Data, random: &mut SplitMix64) -> (Vec<u8>, Vec<u8>) {
    loop {
        let (lower, upper) = match data.set {
            Set::Events => {
                let (sensor, moment) = (random.below(data.sensors), random.below(data.last_moment));
                (event_key(sensor, moment), event_key(sensor, moment + random.below(SPAN_NS_MAX)))
            }
            Set::Paths => {
                // Half of them in directories that exist.
                let directory = if random.below(2) == 0 {
                    existing_directory(data, random)
                } else {
                    absent_directory(data, random)
                };
                let first = random.below(u64::from(u32::MAX) - FILE_SPAN_MAX);
                (file(&directory, first), file(&directory, first + random.below(FILE_SPAN_MAX)))
            }
        };
        if !data.has_key_between(&lower, &upper) {
            return (lower, upper);
        }
    }
}

fn empty_prefix(data: &Data, random: &mut SplitMix64) -> Query {
    loop {
        let prefix = match data.set {
            Set::Events => {
                let mut key = event_key(random.below(data.sensors), random.below(data.last_moment));
                key.truncate(SENSOR_BYTES + MOMENT_BYTES);
                key
            }
            Set::Paths => absent_directory(data, random),
        };
        let after = [prefix.as_slice(), &[0xff; 32]].concat();
        if !data.has_key_between(&prefix, &after) {
            return Query::Prefix(prefix);
        }
    }
}

fn point(data: &Data, is_present: bool, random: &mut SplitMix64) -> Vec<u8> {
    let present = random.below(data.sorted.len() as u64) as usize;
    let present = data.sorted.get(present).cloned().unwrap_or_default();
    if is_present {
        return present;
    }
    loop {
        let absent = match data.set {
            Set::Events => event_key(random.below(data.sensors), random.below(data.last_moment)),
            Set::Paths => file(&existing_directory(data, random), random.next_u64()),
        };
        if !data.has_key(&absent) {
            return absent;
        }
    }
}

fn existing_directory(data: &Data, random: &mut SplitMix64) -> Vec<u8> {
    directory(random.below(data.directories.len() as u64))
}

fn absent_directory(data: &Data, random: &mut SplitMix64) -> Vec<u8> {
    loop {
        let directory = directory(random.next_u64());
        if !data.directories.contains(&directory) {
            return directory;
        }
    }
}
