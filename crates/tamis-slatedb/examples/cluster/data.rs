//! The data: sensor events and paths of files, the same in every process.
//!
//! | set | key | order of loading |
//! |---|---|---|
//! | events | sensor: 4 bytes, moment in nanoseconds: 8 bytes | by moment, so that every table has all sensors |
//! | paths | `/pPPP/DDDD/FFFFFFFF.log`: project, directory, file | random |

use std::collections::HashSet;

use slatedb::PrefixExtractor;
use slatedb::prefix_extractor::PrefixTarget;
use tamis_workload::{Events, mix64};

const SEED: u64 = 42;
/// Events of each sensor.
const EVENTS_PER_SENSOR: usize = 500;
const SENSORS_MAX: u64 = 2000;
const PROJECTS: u64 = 200;
const FILES_PER_DIRECTORY: u64 = 4;

/// Bytes of a directory in a path, with the slash at its end.
const DIRECTORY_BYTES: usize = 11;
/// Bytes of the sensor in the key of an event.
pub(crate) const SENSOR_BYTES: usize = 4;

/// One of the two sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    Events,
    Paths,
}

impl Set {
    pub(crate) const ALL: [Self; 2] = [Self::Events, Self::Paths];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Paths => "paths",
        }
    }

    /// Bytes of the sensor or the directory.
    pub(crate) const fn prefix_bytes(self) -> usize {
        match self {
            Self::Events => SENSOR_BYTES,
            Self::Paths => DIRECTORY_BYTES,
        }
    }

    /// The prefix that SlateDB's filter of prefixes stores.
    pub(crate) const fn prefix(self) -> FixedPrefix {
        let name = match self {
            Self::Events => "sensor",
            Self::Paths => "directory",
        };
        FixedPrefix { name, length: self.prefix_bytes() }
    }
}

/// The first bytes of a key.
pub(crate) struct FixedPrefix {
    name: &'static str,
    length: usize,
}

impl PrefixExtractor for FixedPrefix {
    fn name(&self) -> &str {
        self.name
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        (bytes.len() >= self.length).then_some(self.length)
    }
}

/// The keys of a set.
pub(crate) struct Data {
    pub(crate) set: Set,
    /// In the order of loading.
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) sorted: Vec<Vec<u8>>,
    /// Directories of paths.
    pub(crate) directories: HashSet<Vec<u8>>,
    /// Number of sensors, and the last moment.
    pub(crate) sensors: u64,
    pub(crate) last_moment: u64,
}

pub(crate) fn event_key(sensor: u64, moment: u64) -> Vec<u8> {
    let mut key = (sensor as u32).to_be_bytes().to_vec();
    key.extend_from_slice(&moment.to_be_bytes());
    key
}

pub(crate) fn directory(number: u64) -> Vec<u8> {
    let hash = mix64(number.wrapping_mul(7).wrapping_add(SEED));
    format!("/p{:03}/{:04x}/", hash % PROJECTS, hash >> 40 & 0xffff).into_bytes()
}

pub(crate) fn file(directory: &[u8], number: u64) -> Vec<u8> {
    [directory, format!("{:08x}.log", number & 0xffff_ffff).as_bytes()].concat()
}

impl Data {
    pub(crate) fn generate(set: Set, count: usize) -> Self {
        let sensors = ((count / EVENTS_PER_SENSOR) as u64).clamp(1, SENSORS_MAX);
        let mut last_moment = 0;
        let mut directories = HashSet::new();
        let keys: Vec<Vec<u8>> = match set {
            Set::Events => {
                let events = Events::with_sensors(SEED, sensors).take(count);
                events
                    .inspect(|event| last_moment = event.timestamp)
                    .map(|event| event_key(event.sensor, event.timestamp))
                    .collect()
            }
            Set::Paths => (0..count as u64)
                .map(|number| {
                    let directory = directory(number / FILES_PER_DIRECTORY);
                    let key = file(&directory, mix64(number));
                    directories.insert(directory);
                    key
                })
                .collect(),
        };
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        sorted.dedup();
        Self { set, keys, sorted, directories, sensors, last_moment }
    }

    pub(crate) fn has_key(&self, key: &[u8]) -> bool {
        self.sorted.binary_search_by(|other| other.as_slice().cmp(key)).is_ok()
    }

    /// Whether the closed range has a key.
    pub(crate) fn has_key_between(&self, lower: &[u8], upper: &[u8]) -> bool {
        let next = self.sorted.partition_point(|key| key.as_slice() < lower);
        self.sorted.get(next).is_some_and(|key| key.as_slice() <= upper)
    }

    pub(crate) fn bytes(&self, value_bytes: usize) -> u64 {
        self.keys.iter().map(|key| (key.len() + value_bytes) as u64).sum()
    }
}
