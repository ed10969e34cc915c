//! The data of all stores: keys and values by index, and the entries of a fill.
//!
//! A key is an injective function of its index ([`KEY_FORM`]), so an index that was never written is absent. A value has 50
//! random bytes and 50 constant bytes. Both are generated before the clock starts.

use std::sync::LazyLock;

use tamis_workload::{KeyForm, SplitMix64, operations::hex_digits};

#[cfg(test)]
mod tests;

/// Length of a key.
pub const KEY_BYTES: usize = 16;
/// Length of a value.
pub const VALUE_BYTES: usize = 100;
/// User bytes of an entry.
pub const ENTRY_BYTES: u64 = (KEY_BYTES + VALUE_BYTES) as u64;

/// The encoding of keys.
pub const KEY_FORM: KeyForm = KeyForm::Hex;
/// Random bytes of a value.
const RANDOM_BYTES: usize = 50;
/// Number of distinct values.
const VALUE_COUNT: usize = 256;

/// A key.
pub type Key = [u8; KEY_BYTES];
/// A value.
pub type Value = [u8; VALUE_BYTES];

/// The number that the key of an index encodes.
pub fn number_of(index: u64) -> u64 {
    KEY_FORM.number(index)
}

/// Encodes a number as a key; keys sort like their numbers.
pub fn key_of_number(number: u64) -> Key {
    hex_digits(number)
}

static VALUES: LazyLock<[Value; VALUE_COUNT]> = LazyLock::new(|| {
    let mut random = SplitMix64::new(0);
    std::array::from_fn(|_| {
        let mut value = [b'x'; VALUE_BYTES];
        for part in value.split_at_mut(RANDOM_BYTES).0.chunks_mut(8) {
            let bytes = random.next_u64().to_le_bytes();
            for (to, from) in part.iter_mut().zip(bytes) {
                *to = from;
            }
        }
        value
    })
});

/// The value of a number, selected by its last byte.
pub fn value_of(number: u64) -> &'static Value {
    static NONE: Value = [0; VALUE_BYTES];
    VALUES.get(number as usize % VALUE_COUNT).unwrap_or(&NONE)
}

/// The entries that one thread writes in a fill, in order.
pub struct Entries {
    /// Keys, each with the index of its value.
    entries: std::vec::IntoIter<(Key, u8)>,
    is_sorted: bool,
    key: Key,
}

impl Entries {
    /// The entries of thread `thread` of `thread_count`, from the entries of `indexes`; in key order, or in index order, which
    /// is random with respect to the keys.
    pub fn new(indexes: std::ops::Range<u64>, is_sorted: bool, thread: u64, thread_count: u64) -> Self {
        let mut numbers: Vec<u64> = indexes.map(number_of).collect();
        if is_sorted {
            numbers.sort_unstable();
        }
        let own = numbers.into_iter().skip(thread as usize).step_by(thread_count.max(1) as usize);
        let entries: Vec<_> = own.map(|number| (key_of_number(number), number as u8)).collect();
        let is_sorted = is_sorted && thread_count == 1;
        Self { entries: entries.into_iter(), is_sorted, key: [0; KEY_BYTES] }
    }

    /// Returns the next entry.
    pub fn advance(&mut self) -> Option<(&Key, &Value)> {
        let (key, last) = self.entries.next()?;
        self.key = key;
        Some((&self.key, value_of(last.into())))
    }

    /// Whether the keys are in ascending order over all threads.
    pub fn is_sorted(&self) -> bool {
        self.is_sorted
    }

    /// Number of remaining entries.
    pub fn remaining(&self) -> u64 {
        self.entries.len() as u64
    }
}
