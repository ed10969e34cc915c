//! A digest of operations: two runs with equal digests did the same work. It is a fold of a few instructions for each
//! word, so that it may stand within what is timed; it guards against mistakes, not against malice.

/// Odd, and without pattern: from the digits of the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Takes operations one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationDigest(u64);

impl Default for OperationDigest {
    fn default() -> Self {
        Self(FACTOR)
    }
}

impl OperationDigest {
    /// Takes a number.
    #[inline]
    pub fn add(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(FACTOR);
    }

    /// Takes bytes and their length.
    #[inline]
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        self.add(bytes.len() as u64);
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.add(chunk.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)));
        }
        if !chunks.remainder().is_empty() {
            self.add(chunks.remainder().iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    /// The digest of all that was taken.
    pub fn finish(self) -> u64 {
        (self.0 ^ (self.0 >> 29)).wrapping_mul(FACTOR)
    }
}

#[cfg(test)]
mod tests;
