//! The key of a cursor: the prefix of a block, and the rest of the key of an entry.
//!
//! Most keys are short. They are in the cursor itself, and their bytes behind the prefix are copied as an array of fixed length, which
//! takes a few instructions where a copy of the exact length calls a function. Bytes behind the key have no meaning.

use super::format::HEAD_LENGTH;

/// The most bytes behind prefix and head of a short key.
const SHORT_REST: usize = 16;
/// The same with the head.
const SHORT_SUFFIX: usize = HEAD_LENGTH + SHORT_REST;
/// The longest prefix of short keys.
const SHORT_PREFIX: usize = 44;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct KeyBuffer {
    /// Begins with the prefix, unless it is longer than [`SHORT_PREFIX`].
    short: [u8; SHORT_PREFIX + SHORT_SUFFIX],
    /// Begins with a prefix that is longer. Has a long key.
    long: Vec<u8>,
    prefix_length: usize,
    /// The length of a short key.
    length: usize,
    is_long: bool,
}

impl KeyBuffer {
    pub(super) const fn new() -> Self {
        let short = [0; SHORT_PREFIX + SHORT_SUFFIX];
        Self { short, long: Vec::new(), prefix_length: 0, length: 0, is_long: false }
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        if self.is_long { &self.long } else { self.short.get(..self.length).unwrap_or_default() }
    }

    /// Begins the keys of a block. The key is the prefix alone.
    pub(super) fn set_prefix(&mut self, prefix: &[u8]) {
        (self.prefix_length, self.length) = (prefix.len(), prefix.len());
        self.is_long = prefix.len() > SHORT_PREFIX;
        match self.short.get_mut(..prefix.len()) {
            Some(target) if !self.is_long => target.copy_from_slice(prefix),
            _ => {
                self.long.clear();
                self.long.extend_from_slice(prefix);
            }
        }
    }

    /// Replaces the bytes behind the prefix: by a head and the first `rest_length` bytes of `rest`.
    #[inline(always)]
    pub(super) fn set_suffix(&mut self, head: [u8; HEAD_LENGTH], rest: &[u8], rest_length: usize) {
        let target = self.short.get_mut(self.prefix_length..);
        let target = target.and_then(<[u8]>::first_chunk_mut::<SHORT_SUFFIX>);
        match (rest.first_chunk::<SHORT_REST>(), target) {
            (Some(rest), Some(target)) if rest_length <= SHORT_REST => {
                let (first, last) = target.split_at_mut(HEAD_LENGTH);
                first.copy_from_slice(&head);
                last.copy_from_slice(rest);
                self.length = self.prefix_length + HEAD_LENGTH + rest_length;
                self.is_long = false;
            }
            _ => self.set_long(&head, rest.get(..rest_length).unwrap_or_default()),
        }
    }

    /// As [`KeyBuffer::set_suffix`], for bytes of any length.
    pub(super) fn set_long(&mut self, head: &[u8], rest: &[u8]) {
        match self.short.get(..self.prefix_length).filter(|prefix| prefix.len() <= SHORT_PREFIX) {
            Some(prefix) => {
                self.long.clear();
                self.long.extend_from_slice(prefix);
            }
            None => self.long.truncate(self.prefix_length),
        }
        self.long.extend_from_slice(head);
        self.long.extend_from_slice(rest);
        self.is_long = true;
    }
}

#[cfg(test)]
mod tests;
