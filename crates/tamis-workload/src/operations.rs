//! Operations on a store: YCSB's workloads, the classic micro benchmarks, closed ranges, and mixes that shift.
//!
//! An operation names an item by its number; [`KeyForm`] makes its key. Items below the record count are loaded
//! before; inserts add the next number. A stream is one sequence for the whole store: of `n` threads, each takes every
//! n-th operation. Workload, counts and seed determine a stream (Zipfian choices use the system's `powf`). Cost: a
//! `powf` per Zipfian choice.

use std::{fmt, str::FromStr};

use crate::{
    prng::{SplitMix64, mix64},
    zipf::{Latest, ScrambledZipfian, Zipfian, fnv_hash},
};

#[cfg(test)]
mod tests;

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Reads the value of a key.
    Read,
    /// Writes a new key.
    Insert,
    /// Overwrites a key.
    Update,
    /// Reads a key and overwrites it.
    ReadModifyWrite,
    /// Deletes a key.
    Delete,
    /// Reads entries in ascending order from a key on.
    Scan,
    /// Reads entries in descending order from a key on.
    ScanBack,
    /// Reads all entries of a closed range.
    Range,
}

impl OperationKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Insert,
        Self::Update,
        Self::ReadModifyWrite,
        Self::Delete,
        Self::Scan,
        Self::ScanBack,
        Self::Range,
    ];

    /// Its name in files and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Insert => "insert",
            Self::Update => "update",
            Self::ReadModifyWrite => "read_modify_write",
            Self::Delete => "delete",
            Self::Scan => "scan",
            Self::ScanBack => "scan_back",
            Self::Range => "range",
        }
    }
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operation {
    /// Its kind.
    pub kind: OperationKind,
    /// The item.
    pub item: u64,
    /// Scans: entries to read, at least one.
    pub limit: u32,
    /// Ranges: distance of the lower bound above the item's key.
    pub distance: u64,
    /// Ranges: distance of the upper bound above the lower one.
    pub length: u64,
}

/// How items become keys. All forms but the ordered one scatter neighbouring items over the whole key space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyForm {
    /// 16 hexadecimal digits of a one-to-one function of the item.
    Hex,
    /// 16 hexadecimal digits of the item: keys are in the order of their items.
    Ordered,
    /// 8 big-endian bytes of the same number.
    Integer,
    /// YCSB's form: `user` and the decimal digits of a hash. Such keys have no ranges.
    User,
}

impl KeyForm {
    /// The number of an item's key, in the order of the keys.
    pub fn number(self, item: u64) -> u64 {
        match self {
            Self::Hex | Self::Integer => mix64(item),
            Self::Ordered => item,
            Self::User => fnv_hash(item),
        }
    }

    /// Appends the key of a number.
    pub fn encode(self, number: u64, key: &mut Vec<u8>) {
        match self {
            Self::Hex | Self::Ordered => key.extend(hex_digits(number)),
            Self::Integer => key.extend(number.to_be_bytes()),
            Self::User => key.extend(format!("user{number}").into_bytes()),
        }
    }

    /// The key of an item.
    pub fn key(self, item: u64) -> Vec<u8> {
        let mut key = Vec::with_capacity(24);
        self.encode(self.number(item), &mut key);
        key
    }

    /// The closed bounds of a range.
    pub fn bounds(self, operation: &Operation) -> (u64, u64) {
        let lower = self.number(operation.item).saturating_add(operation.distance);
        (lower, lower.saturating_add(operation.length))
    }
}

/// 16 lower-case hexadecimal digits, so that their order is that of the numbers.
pub fn hex_digits(number: u64) -> [u8; 16] {
    std::array::from_fn(|place| {
        let digit = (number >> (60 - 4 * place) & 15) as u8;
        if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }
    })
}

/// The distribution of the items of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Choice {
    /// All items equally.
    Uniform,
    /// A few items often, scattered over all of them.
    Zipfian,
    /// The newest items most often.
    Latest,
    /// Items that do not exist.
    Absent,
    /// A few neighbouring items often; their position moves once through all items during the stream.
    HotSpot,
}

/// The number of entries of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScanLength {
    /// Constant.
    Fixed(u32),
    /// Uniform from one to a maximum.
    UpTo(u32),
}

/// Operations in fixed proportions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// Kinds with their shares, which sum up to one.
    pub shares: &'static [(OperationKind, f64)],
    /// The items of all kinds except inserts.
    pub choice: Choice,
    /// How long scans are.
    pub scan: ScanLength,
    /// Ranges: maximum distance above the item's key, uniform from one.
    pub distance_max: u64,
    /// Ranges: the upper bound above the lower one.
    pub length: u64,
}

impl Mix {
    /// Reads of uniform items, a base for `..Mix::READS`.
    pub const READS: Self = Self {
        shares: &[(Read, 1.0)],
        choice: Choice::Uniform,
        scan: ScanLength::Fixed(1),
        distance_max: 1,
        length: RANGE_LENGTH,
    };
}

/// Upper minus lower bound of closed ranges: keys of full stores are a billion times farther apart.
const RANGE_LENGTH: u64 = 1023;
/// Items that are never loaded, for absent keys.
const ABSENT_FIRST: u64 = 1 << 48;

/// A named workload on a store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// `ycsb-a`, `readrandom`, `empty-near`, ...
    pub name: &'static str,
    /// The mix at the beginning.
    pub mix: Mix,
    /// The mix at the end of a shifting workload: its share grows linearly.
    pub end: Option<Mix>,
    /// Whether the workload fills an empty store: nothing is loaded before.
    pub is_fill: bool,
    /// Whether its keys are in order: see [`Stream::sorted`].
    pub is_sorted: bool,
    /// Whether one more thread writes continuously: see [`Workload::writer`].
    pub has_writer: bool,
}

const BASE: Workload =
    Workload { name: "", mix: Mix::READS, end: None, is_fill: false, is_sorted: false, has_writer: false };

use OperationKind::{Delete, Insert, Range, Read, ReadModifyWrite, Scan, ScanBack, Update};

const fn zipfian(shares: &'static [(OperationKind, f64)]) -> Mix {
    Mix { shares, choice: Choice::Zipfian, scan: ScanLength::UpTo(100), ..Mix::READS }
}

const fn of(name: &'static str, mix: Mix) -> Workload {
    Workload { name, mix, ..BASE }
}

const fn uniform(name: &'static str, shares: &'static [(OperationKind, f64)], entries: u32) -> Workload {
    of(name, Mix { shares, scan: ScanLength::Fixed(entries), ..Mix::READS })
}

const FILL: Mix = Mix { shares: &[(Insert, 1.0)], ..Mix::READS };
const NEAR: Mix = Mix { shares: &[(Range, 1.0)], ..Mix::READS };
const FAR: Mix = Mix { choice: Choice::Absent, ..NEAR };

/// YCSB's core workloads.
pub const YCSB: [Workload; 6] = [
    of("ycsb-a", zipfian(&[(Read, 0.5), (Update, 0.5)])),
    of("ycsb-b", zipfian(&[(Read, 0.95), (Update, 0.05)])),
    of("ycsb-c", zipfian(&[(Read, 1.0)])),
    of("ycsb-d", Mix { choice: Choice::Latest, ..zipfian(&[(Read, 0.95), (Insert, 0.05)]) }),
    of("ycsb-e", zipfian(&[(Scan, 0.95), (Insert, 0.05)])),
    of("ycsb-f", zipfian(&[(Read, 0.5), (ReadModifyWrite, 0.5)])),
];

/// The classic micro benchmarks.
pub const MICRO: [Workload; 13] = [
    Workload { is_fill: true, is_sorted: true, ..of("fillseq", FILL) },
    Workload { is_fill: true, ..of("fillrandom", FILL) },
    uniform("overwrite", &[(Update, 1.0)], 1),
    uniform("readrandom", &[(Read, 1.0)], 1),
    of("readzipfian", zipfian(&[(Read, 1.0)])),
    of("readmissing", Mix { choice: Choice::Absent, ..Mix::READS }),
    uniform("seekrandom", &[(Scan, 1.0)], 1),
    uniform("seekrandom-10", &[(Scan, 1.0)], 10),
    uniform("seekrandom-50", &[(Scan, 1.0)], 50),
    uniform("seekreverse", &[(ScanBack, 1.0)], 1),
    uniform("seekreverse-50", &[(ScanBack, 1.0)], 50),
    uniform("deleterandom", &[(Delete, 1.0)], 1),
    Workload { has_writer: true, ..uniform("readwhilewriting", &[(Read, 1.0)], 1) },
];

/// Closed ranges without a key: just above a key, anywhere, and up to 1024 above a key.
pub const RANGES: [Workload; 3] = [
    of("empty-near", NEAR),
    of("empty-far", FAR),
    of("empty-correlated", Mix { distance_max: 1024, ..NEAR }),
];

/// Mixes that shift during the stream.
pub const SHIFTS: [Workload; 4] = [
    Workload {
        end: Some(Mix { shares: &[(Update, 1.0)], ..Mix::READS }),
        ..of("shift-reads-to-writes", Mix::READS)
    },
    Workload {
        end: Some(NEAR),
        ..of("shift-points-to-ranges", Mix { choice: Choice::Absent, ..Mix::READS })
    },
    Workload { end: Some(NEAR), ..of("shift-far-to-near", FAR) },
    of("shift-hot-spot", Mix { choice: Choice::HotSpot, ..zipfian(&[(Read, 0.5), (Update, 0.5)]) }),
];

/// No workload has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no workload named {name:?}; there are {}", names())]
pub struct UnknownWorkload {
    /// The name that was given.
    pub name: String,
}

fn names() -> String {
    Workload::all().map(|workload| workload.name).collect::<Vec<_>>().join(", ")
}

impl Workload {
    /// All workloads, in the order in which they are listed to users.
    pub fn all() -> impl Iterator<Item = Self> {
        YCSB.into_iter().chain(MICRO).chain(RANGES).chain(SHIFTS)
    }

    /// `count` operations on a store of `record_count` items. Fills begin with item 0 for any record count. The
    /// stream of a sorted workload is in the order of its items; the key form determines the order of the keys, and
    /// [`Stream::sorted`] sorts by it.
    pub fn operations(&self, record_count: u64, count: u64, seed: u64) -> Stream {
        Stream::new(*self, if self.is_fill { 0 } else { record_count }, count, seed)
    }

    /// The operations of the additional thread of [`Workload::has_writer`]: updates of uniform items.
    pub fn writer(&self, record_count: u64, count: u64, seed: u64) -> Stream {
        let mix = Mix { shares: &[(Update, 1.0)], ..Mix::READS };
        Stream::new(of("writer", mix), record_count, count, mix64(seed))
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl FromStr for Workload {
    type Err = UnknownWorkload;

    fn from_str(name: &str) -> Result<Self, UnknownWorkload> {
        Self::all()
            .find(|workload| workload.name == name)
            .ok_or_else(|| UnknownWorkload { name: name.to_owned() })
    }
}

impl Stream {
    /// All operations in the order of their keys, for workloads with [`Workload::is_sorted`]. Needs memory for all of
    /// them.
    pub fn sorted(self, form: KeyForm) -> Vec<Operation> {
        let mut operations: Vec<Operation> = self.collect();
        match form {
            // Numbers and keys have the same order.
            KeyForm::Hex | KeyForm::Ordered | KeyForm::Integer => {
                operations.sort_unstable_by_key(|operation| form.number(operation.item));
            }
            KeyForm::User => operations.sort_by_cached_key(|operation| form.key(operation.item)),
        }
        operations
    }
}

/// The operations of a workload, one after the other.
#[derive(Debug, Clone)]
pub struct Stream {
    workload: Workload,
    random: SplitMix64,
    index: u64,
    count: u64,
    /// Existing items: loaded, and inserted so far.
    item_count: u64,
    zipfian: Option<ScrambledZipfian>,
    latest: Option<Latest>,
    hot: Option<Zipfian>,
}

impl Stream {
    fn new(workload: Workload, record_count: u64, count: u64, seed: u64) -> Self {
        let has = |choice: Choice| {
            workload.mix.choice == choice || workload.end.is_some_and(|end| end.choice == choice)
        };
        // As in YCSB: chooses among twice as many new items as expected, and draws again if an item does not exist
        // yet. So the popular items stay the same while items are inserted.
        let share = |mix: &Mix| {
            mix.shares.iter().filter(|(kind, _)| *kind == Insert).map(|(_, share)| share).sum::<f64>()
        };
        let expected = (count as f64 * share(&workload.mix) * 2.0) as u64;
        Self {
            workload,
            random: SplitMix64::new(seed),
            index: 0,
            count,
            item_count: record_count,
            zipfian: has(Choice::Zipfian).then(|| ScrambledZipfian::new(record_count + expected)),
            latest: has(Choice::Latest).then(|| Latest::new(record_count)),
            hot: has(Choice::HotSpot).then(|| Zipfian::new(record_count)),
        }
    }

    fn mix(&mut self) -> Mix {
        let Some(end) = self.workload.end else { return self.workload.mix };
        let progress = self.index as f64 / self.count.max(1) as f64;
        if self.random.unit() < progress { end } else { self.workload.mix }
    }

    fn kind(&mut self, mix: &Mix) -> OperationKind {
        let mut rest = self.random.unit();
        for (kind, share) in mix.shares {
            if rest < *share {
                return *kind;
            }
            rest -= share;
        }
        mix.shares.last().map_or(Read, |(kind, _)| *kind)
    }

    fn item(&mut self, choice: Choice) -> u64 {
        let random = &mut self.random;
        let item_count = self.item_count.max(1);
        match (choice, &self.zipfian, &mut self.latest, &self.hot) {
            (Choice::Zipfian, Some(zipfian), ..) => loop {
                let item = zipfian.draw(random);
                if item < item_count {
                    return item;
                }
            },
            (Choice::Latest, _, Some(latest), _) => item_count - 1 - latest.draw(item_count, random),
            (Choice::HotSpot, .., Some(hot)) => {
                let progress = self.index as f64 / self.count.max(1) as f64;
                (hot.draw(random) + (progress * item_count as f64) as u64) % item_count
            }
            (Choice::Absent, ..) => ABSENT_FIRST + random.below(ABSENT_FIRST),
            _ => random.below(item_count),
        }
    }
}

impl Iterator for Stream {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        if self.index == self.count {
            return None;
        }
        let mix = self.mix();
        let kind = self.kind(&mix);
        let mut operation = Operation { kind, item: 0, limit: 1, distance: 0, length: 0 };
        if kind == Insert {
            operation.item = self.item_count;
            self.item_count += 1;
        } else {
            operation.item = self.item(mix.choice);
        }
        match kind {
            Scan | ScanBack => {
                operation.limit = match mix.scan {
                    ScanLength::Fixed(entries) => entries,
                    ScanLength::UpTo(most) => 1 + self.random.below(u64::from(most)) as u32,
                }
            }
            Range => {
                operation.distance = 1 + self.random.below(mix.distance_max);
                operation.length = mix.length;
            }
            _ => {}
        }
        self.index += 1;
        Some(operation)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let rest = (self.count - self.index) as usize;
        (rest, Some(rest))
    }
}

impl ExactSizeIterator for Stream {}
