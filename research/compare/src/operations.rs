//! The operations of a pass, generated before its clock starts: the same operations in the same order for every store.
//!
//! Gets, closed ranges and YCSB mixes are streams of `tamis-workload`, distributed to the threads; iterators seek to random
//! keys.

use tamis_workload::{
    OperationKind, ScrambledZipfian, SplitMix64, Workload, ZipfianComposite, operations::Stream,
};

use crate::{
    data::{KEY_FORM, Key, key_of_number, number_of},
    workload::{Action, Pattern},
};

/// Keys of a transfer.
pub const TRANSFER_KEYS: usize = 10;

/// Neighbouring keys that are equally popular in [`Pattern::ZipfianComposite`].
const COMPOSITE_KEYS: u64 = 1024;

#[cfg(test)]
mod tests;

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reads the value.
    Get,
    /// Scans forward from the key.
    Scan,
    /// Scans forward from the key with a new iterator.
    ScanFresh,
    /// Scans backward from the key.
    ScanBack,
    /// Reads the closed range from the key to [`Operation::last`].
    Range,
    /// Overwrites the key.
    Put,
    /// Reads and overwrites the key.
    Modify,
    /// Inserts a new key.
    Insert,
    /// Exchanges the values of the keys of [`Operation::transfer_keys`] in a transaction.
    Transfer,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// The key.
    pub key: Key,
    /// The kind.
    pub verb: Verb,
    /// Number of entries that a scan reads.
    pub length: u8,
    /// The number of the last key of a closed range; for an insert, the index after the inserted item; for a transfer, the seed of its other keys.
    pub end: u64,
}

impl Operation {
    /// The last key of a closed range.
    pub fn last(&self) -> Key {
        key_of_number(self.end)
    }

    /// The keys of a transfer, among those of the fill: distinct ones in most cases.
    pub fn transfer_keys(&self, entry_count: u64) -> [Key; TRANSFER_KEYS] {
        let mut random = SplitMix64::new(self.end);
        let mut keys = [self.key; TRANSFER_KEYS];
        for key in keys.iter_mut().skip(1) {
            *key = key_of_number(number_of(random.below(entry_count.max(1))));
        }
        keys
    }
}

/// The input for generating the operations of a thread.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    /// Number of entries of the fill.
    pub entry_count: u64,
    /// Number of current entries, including inserts of earlier passes.
    pub present_count: u64,
    /// Different for each pass, the same for every store.
    pub seed: u64,
    /// Number of the thread.
    pub thread: u64,
    /// Number of threads of the pass.
    pub thread_count: u64,
}

impl Draw {
    /// The random numbers of the thread.
    fn random(self) -> SplitMix64 {
        SplitMix64::new(self.seed.wrapping_mul(0x9E37_79B9).wrapping_add(self.thread))
    }
}

/// Generates `count` operations of an action for a thread.
pub fn draw(action: Action, count: usize, draw: Draw) -> Vec<Operation> {
    match action {
        Action::Seek { count: length, is_fresh } => {
            let verb = if is_fresh { Verb::ScanFresh } else { Verb::Scan };
            points(verb, length, count, draw)
        }
        Action::Reverse { count: length } => points(Verb::ScanBack, length, count, draw),
        Action::GetUniform => dealt("readrandom", draw.entry_count, count, draw),
        Action::GetZipf => dealt("readzipfian", draw.entry_count, count, draw),
        Action::GetAbsent => dealt("readmissing", draw.entry_count, count, draw),
        Action::Empty { is_near: true } => dealt("empty-near", draw.entry_count, count, draw),
        Action::Empty { is_near: false } => dealt("empty-far", draw.entry_count, count, draw),
        Action::Ycsb(mix) => dealt(mix, draw.present_count, count, draw),
        Action::SeekBy(pattern) => visits(pattern, Verb::Scan, count, draw),
        Action::Update(pattern) => visits(pattern, Verb::Put, count, draw),
        Action::Transfer { is_hot } => transfers(is_hot, count, draw),
        Action::Fill { .. } | Action::Scan | Action::Open => Vec::new(),
    }
}

/// Scans from random positions between the keys.
fn points(verb: Verb, length: usize, count: usize, draw: Draw) -> Vec<Operation> {
    let mut random = draw.random();
    let mut point =
        || Operation { key: key_of_number(random.next_u64()), verb, length: length as u8, end: 0 };
    (0..count).map(|_| point()).collect()
}

/// Transfers between random keys of the fill.
fn transfers(is_hot: bool, count: usize, draw: Draw) -> Vec<Operation> {
    let mut random = draw.random();
    let mut transfer = || {
        let first = if is_hot { 0 } else { random.below(draw.entry_count.max(1)) };
        let key = key_of_number(number_of(first));
        Operation { key, verb: Verb::Transfer, length: 0, end: random.next_u64() }
    };
    (0..count).map(|_| transfer()).collect()
}

/// Operations on the keys of the fill, in the order of a pattern.
fn visits(pattern: Pattern, verb: Verb, count: usize, draw: Draw) -> Vec<Operation> {
    let mut random = draw.random();
    let entry_count = draw.entry_count.max(1);
    let in_key_order = || {
        let mut numbers: Vec<u64> = (0..entry_count).map(number_of).collect();
        numbers.sort_unstable();
        move |place: u64| numbers.get((place % entry_count) as usize).copied().unwrap_or_default()
    };
    let numbers: Vec<u64> = match pattern {
        Pattern::Sequential => {
            let (first, number_at) = (random.below(entry_count), in_key_order());
            (0..count as u64).map(|turn| number_at(first + turn)).collect()
        }
        Pattern::Zipfian => {
            let zipfian = ScrambledZipfian::new(entry_count);
            (0..count).map(|_| number_of(zipfian.draw(&mut random))).collect()
        }
        Pattern::ZipfianComposite => {
            let composite = ZipfianComposite::new((entry_count / COMPOSITE_KEYS).max(1));
            let number_at = in_key_order();
            let mut place = || {
                let drawn = composite.draw(&mut random);
                (drawn >> 16) * COMPOSITE_KEYS + drawn % COMPOSITE_KEYS
            };
            (0..count).map(|_| number_at(place())).collect()
        }
    };
    let visit = |number: u64| Operation { key: key_of_number(number), verb, length: 1, end: 0 };
    numbers.into_iter().map(visit).collect()
}

/// The share of a thread of the stream of a workload.
fn dealt(name: &str, item_count: u64, count: usize, draw: Draw) -> Vec<Operation> {
    let Ok(workload) = name.parse::<Workload>() else { return Vec::new() };
    let stream: Stream = workload.operations(item_count, count as u64 * draw.thread_count, draw.seed);
    stream.skip(draw.thread as usize).step_by(draw.thread_count as usize).map(translated).collect()
}

/// Converts an operation of a stream.
fn translated(operation: tamis_workload::Operation) -> Operation {
    let (verb, length) = match operation.kind {
        OperationKind::Read => (Verb::Get, 0),
        OperationKind::Insert => (Verb::Insert, 0),
        OperationKind::Update | OperationKind::Delete => (Verb::Put, 0),
        OperationKind::ReadModifyWrite => (Verb::Modify, 0),
        OperationKind::Scan => (Verb::ScanFresh, operation.limit),
        OperationKind::ScanBack => (Verb::ScanBack, operation.limit),
        OperationKind::Range => (Verb::Range, 0),
    };
    let (number, end) = match verb {
        Verb::Range => KEY_FORM.bounds(&operation),
        _ => (KEY_FORM.number(operation.item), operation.item + 1),
    };
    Operation { key: key_of_number(number), verb, length: length as u8, end }
}
