//! The data of all stores: keys and values by index, and the streams that fill a store.
//!
//! Keys are [`KEY_FORM`]: a one-to-one function of the index, so that an index that was never written is certainly absent. A value
//! has 50 random bytes and 50 constant ones.

use tamis_workload::{KeyForm, SplitMix64, operations::hex_digits};

#[cfg(test)]
mod tests;

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;
/// Bytes of a value.
pub const VALUE_BYTES: usize = 100;
/// Bytes of an entry as a user counts them.
pub const ENTRY_BYTES: u64 = (KEY_BYTES + VALUE_BYTES) as u64;

/// How indexes become keys.
pub const KEY_FORM: KeyForm = KeyForm::Hex;
/// Random bytes of a value.
const RANDOM_BYTES: usize = 50;

/// A key.
pub type Key = [u8; KEY_BYTES];
/// A value.
pub type Value = [u8; VALUE_BYTES];

/// The number behind the key of an index.
pub fn number_of(index: u64) -> u64 {
    KEY_FORM.number(index)
}

/// A number as a key; the order of keys is the order of the numbers.
pub fn key_of_number(number: u64) -> Key {
    hex_digits(number)
}

/// Writes the value that belongs to a seed.
pub fn fill_value(seed: u64, value: &mut Value) {
    let mut random = SplitMix64::new(seed);
    let (noise, constant) = value.split_at_mut(RANDOM_BYTES);
    for part in noise.chunks_mut(8) {
        let bytes = random.next_u64().to_le_bytes();
        for (to, from) in part.iter_mut().zip(bytes) {
            *to = from;
        }
    }
    constant.fill(b'x');
}

/// The entries that one thread writes when a store is filled, in their order.
pub struct Entries {
    numbers: std::vec::IntoIter<u64>,
    is_sorted: bool,
    key: Key,
    value: Value,
}

impl Entries {
    /// The share of thread `thread` of `thread_count` of the entries of `indexes`; in the order of keys or in that of
    /// the indexes, which is random to the keys. The numbers are drawn here, before any clock starts.
    pub fn new(indexes: std::ops::Range<u64>, is_sorted: bool, thread: u64, thread_count: u64) -> Self {
        let mut numbers: Vec<u64> = indexes.map(number_of).collect();
        if is_sorted {
            numbers.sort_unstable();
        }
        if thread_count > 1 {
            let mut position = 0;
            numbers.retain(|_| {
                position += 1;
                (position - 1) % thread_count == thread
            });
        }
        let is_sorted = is_sorted && thread_count == 1;
        Self { numbers: numbers.into_iter(), is_sorted, key: [0; KEY_BYTES], value: [0; VALUE_BYTES] }
    }

    /// The next entry.
    pub fn advance(&mut self) -> Option<(&Key, &Value)> {
        let number = self.numbers.next()?;
        self.key = key_of_number(number);
        fill_value(number, &mut self.value);
        Some((&self.key, &self.value))
    }

    /// Whether each key is greater than all that any thread writes before.
    pub fn is_sorted(&self) -> bool {
        self.is_sorted
    }

    /// Entries still to come.
    pub fn remaining(&self) -> u64 {
        self.numbers.len() as u64
    }
}
