//! Entries of the model: values, versions of a key, bounds of ranges.

use std::ops::Bound;

use tamis::{KEY_LENGTH_MAX, simulation::EntryKind};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    operator::{Operand, number_of},
    schedule::mix,
};

/// Bounds of a range of keys.
pub type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A value: its length, its hash, and the number that operands change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    pub(super) length: usize,
    hash: u64,
    number: u64,
}

impl Value {
    /// The value with these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len(), hash: xxh3_64(bytes), number: number_of(bytes) }
    }

    /// The value after an operand.
    pub(crate) fn merged(base: Option<Self>, operand: &[u8]) -> Self {
        let number = base.map_or(0, |base| base.number);
        Self::of(&Operand::decode(operand).apply(number).to_be_bytes())
    }
}

/// A state of the store at a time in milliseconds since 1970, by which entries are expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// The sequence number.
    pub sequence: u64,
    /// The time.
    pub time: u64,
}

/// The value of a version, and when it expires.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) value: Value,
    pub(super) expires_at: u64,
}

/// The versions of a key, oldest first; `None`: it is deleted.
pub(super) type Versions = Vec<(u64, Option<Held>)>;

/// Splits the logged value of an entry that expires: its time and its value.
pub fn split_time(logged: &[u8]) -> (u64, &[u8]) {
    let (time, value) = logged.split_first_chunk().unwrap_or((&[0; 8], &[]));
    (u64::from_le_bytes(*time), value)
}

/// An entry of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The number of the keyspace.
    pub keyspace: u32,
    /// The operation.
    pub kind: EntryKind,
    /// The key, or the lower bound, included.
    pub key: Vec<u8>,
    /// The value, or the upper bound, excluded.
    pub value: Vec<u8>,
}

/// Whether a range of a `BTreeMap` may have these bounds.
pub(super) fn is_range((lower, upper): &Bounds) -> bool {
    match (lower, upper) {
        (Bound::Included(lower), Bound::Included(upper)) => lower <= upper,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => lower < upper,
        _ => true,
    }
}

pub(super) fn value_at(versions: &Versions, moment: Moment) -> Option<Value> {
    let held = versions.iter().rev().find(|(number, _)| *number <= moment.sequence)?.1?;
    (held.expires_at > moment.time).then_some(held.value)
}

pub(super) fn add_version(versions: &mut Versions, version: (u64, Option<Held>), keep_from: u64) {
    if versions.len() >= 8 {
        forget(versions, keep_from);
    }
    // Entries of one batch or table can have one number.
    versions.retain(|(number, _)| *number != version.0);
    versions.push(version);
}

/// Removes the versions below the newest one that a reader at `keep_from` sees.
pub(super) fn forget(versions: &mut Versions, keep_from: u64) {
    let newest = versions.iter().rposition(|(number, _)| *number <= keep_from);
    versions.drain(..newest.unwrap_or(0));
}

/// The identity of a put.
pub(super) fn entry_hash(key: &[u8], value: Value) -> u64 {
    mix(mix(xxh3_64(key), value.hash), value.length as u64)
}

/// A range delete as the store logs it: an included lower and an excluded upper bound; `None` if no key is between them.
pub fn half_open((lower, upper): &Bounds) -> Option<(Vec<u8>, Vec<u8>)> {
    let after = |key: &[u8]| {
        let mut after = key.to_vec();
        if after.len() < KEY_LENGTH_MAX {
            after.push(0);
            return Some(after);
        }
        let kept = after.iter().rposition(|byte| *byte < 0xFF)?;
        after.truncate(kept + 1);
        if let Some(last) = after.last_mut() {
            *last += 1;
        }
        Some(after)
    };
    let lower = match lower {
        Bound::Unbounded => vec![0],
        Bound::Included(key) if key.is_empty() => vec![0],
        Bound::Included(key) => key.clone(),
        Bound::Excluded(key) => after(key)?,
    };
    let upper = match upper {
        Bound::Unbounded => Vec::new(),
        Bound::Excluded(key) if key.is_empty() => return None,
        Bound::Excluded(key) => key.clone(),
        Bound::Included(key) => after(key).unwrap_or_default(),
    };
    (upper.is_empty() || lower < upper).then_some((lower, upper))
}

/// The bounds of all keys with a prefix.
pub fn prefix_bounds(prefix: &[u8]) -> Bounds {
    let mut upper = prefix.to_vec();
    while upper.last() == Some(&0xFF) {
        upper.pop();
    }
    let upper = match upper.last_mut() {
        Some(last) => {
            *last += 1;
            Bound::Excluded(upper)
        }
        None => Bound::Unbounded,
    };
    (Bound::Included(prefix.to_vec()), upper)
}

/// A key as a short text.
pub fn short(key: &[u8]) -> String {
    let text = key.get(..40).unwrap_or(key).escape_ascii().to_string();
    if key.len() > 40 { format!("{text}... ({} bytes)", key.len()) } else { text }
}
