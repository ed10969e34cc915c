//! The common length of the keys of a filter under construction.

use crate::KeySet;

/// Length of all keys in bytes; 0 for several lengths and for lengths that the format cannot store. Without keys 8.
pub(super) fn key_bytes(keys: &KeySet) -> u32 {
    let length = if keys.is_empty() { 8 } else { keys.common_length().unwrap_or(0) };
    u32::from(u16::try_from(length).unwrap_or(0))
}

#[cfg(test)]
mod tests;
