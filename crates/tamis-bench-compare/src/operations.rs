//! The operations of a pass, drawn before its clock starts: the same ones, in the same order, for every store.
//!
//! Gets, closed ranges and the mixes of YCSB are streams of `tamis-workload`, dealt out to the threads; iterators go to random points.

use tamis_workload::{OperationKind, SplitMix64, Workload, operations::Stream};

use crate::{
    data::{KEY_FORM, Key, key_of_number},
    workload::Action,
};

#[cfg(test)]
mod tests;

/// What is done with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reads its value.
    Get,
    /// Scans from it on.
    Scan,
    /// Scans from it on with a new iterator.
    ScanFresh,
    /// Scans from it back.
    ScanBack,
    /// Reads the closed range from it to [`Operation::last`].
    Range,
    /// Writes it.
    Put,
    /// Reads and writes it.
    Modify,
    /// Writes a key that is not there yet.
    Insert,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// The key.
    pub key: Key,
    /// What is done with it.
    pub verb: Verb,
    /// Entries that a scan reads.
    pub length: u8,
    /// The number of the last key of a closed range; of an insert, that of the item behind the one it adds.
    pub end: u64,
}

impl Operation {
    /// The last key of a closed range.
    pub fn last(&self) -> Key {
        key_of_number(self.end)
    }
}

/// What a thread's operations are drawn from.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    /// Entries that were filled in.
    pub entry_count: u64,
    /// Entries that are there now, inserts of earlier passes included.
    pub present_count: u64,
    /// Another number for each pass, the same for every store.
    pub seed: u64,
    /// The thread.
    pub thread: u64,
    /// Threads of the pass.
    pub thread_count: u64,
}

/// Draws `count` operations of an action for a thread.
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
        Action::Fill { .. } | Action::Scan | Action::Open => Vec::new(),
    }
}

/// Scans from random points, which lie between the keys.
fn points(verb: Verb, length: usize, count: usize, draw: Draw) -> Vec<Operation> {
    let mut random = SplitMix64::new(draw.seed.wrapping_mul(0x9E37_79B9).wrapping_add(draw.thread));
    let mut point =
        || Operation { key: key_of_number(random.next_u64()), verb, length: length as u8, end: 0 };
    (0..count).map(|_| point()).collect()
}

/// The part of a thread of the stream of a workload.
fn dealt(name: &str, item_count: u64, count: usize, draw: Draw) -> Vec<Operation> {
    let Ok(workload) = name.parse::<Workload>() else { return Vec::new() };
    let stream: Stream = workload.operations(item_count, count as u64 * draw.thread_count, draw.seed);
    stream.skip(draw.thread as usize).step_by(draw.thread_count as usize).map(translated).collect()
}

/// An operation of a stream, as stores are asked.
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
